"""Judge a candidate change to an upstream project: does anything break, and is it faster?

``python -m benchmarks.validate PROJECT --candidate …``, or ``fastio validate`` in a checkout, is the entry. Fresh
environments hold the release (stock), the candidate, and the release with fastio; upstream's own suites
(:mod:`benchmarks.tools.upstream`) and the benchmarks (:mod:`benchmarks.harness.engine`) run in each of them, and are
compared with stock.
"""
