"""A differential fuzzer of what fastio patches in ``subprocess`` and eventlet: see
:mod:`benchmarks.tools.fuzz.__main__`.

``programs`` makes random programs, ``worker`` runs them (stock or patched, one process for each side), ``compare`` and
``rules`` judge, and ``search`` is the loop around them.
"""
