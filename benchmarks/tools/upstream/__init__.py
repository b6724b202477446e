"""Upstream's own test suites, run stock and patched on the same Python and compared test by test.

``python -m benchmarks.tools.upstream`` is the entry; nothing here runs as part of the project's own tests, except
``test_runner.py``, which tests the runner on small made-up suites.
"""
