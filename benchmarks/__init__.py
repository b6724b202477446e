"""The benchmarks and the tools: a folder for each concern.

``harness`` measures and shows, ``suites`` say what is measured, ``backends`` are the real servers for it, ``load`` puts
load on them, ``logserver`` is a separate service, ``validate`` judges candidates for upstream, ``report`` makes pages
of results, ``documentation`` their tables and plots for fastio's own, and ``tools`` look after the project.

Nothing in ``fastio`` imports this package. How we measure is described in doc/source/measuring/methods.rst.
"""
