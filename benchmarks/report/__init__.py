"""One page of any results: ``python -m benchmarks.report RESULT…``, or ``fastio report RESULT…`` in a checkout.

:mod:`benchmarks.report.sections` makes sections of a page of a result, :mod:`benchmarks.report.pictures` its plots;
:mod:`benchmarks.harness.page` renders.
"""
