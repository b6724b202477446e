"""The suites, a folder each: ``bench_SUITE.py``, which pytest collects, and what belongs to it alone.

``workload.py`` is what one fresh process does when it is measured. It has ``VARIANTS``: a function by name that takes
the parameters (plain data) and returns one result (numbers). A variant imports what it needs itself, because what a
process has imported is part of what is measured. ``tables.py`` and ``plots.py``, where a suite has them, are what is
read from its results.
"""
