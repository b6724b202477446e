"""The benchmarks: one engine, the backends it needs, and suites that only say what they measure.

Nothing in ``fastio`` imports this package. How we measure is described in doc/source/benchmarks.rst.
"""
