"""Loads on a real glance-api: many concurrent requests, a rate that grows, and over a network.

The variants are those of :mod:`benchmarks.suites.concurrency.images`, of :mod:`~benchmarks.suites.concurrency.offered`
and of :mod:`~benchmarks.suites.concurrency.network`.
"""

from benchmarks.suites.concurrency import images, network, offered

VARIANTS = {
    "prepare": images.prepare,
    "run": images.run,
    "prepare-offered": offered.prepare,
    "offered": offered.run,
    "network": network.run,
}
