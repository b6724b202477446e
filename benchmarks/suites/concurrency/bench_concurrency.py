"""A real glance-api with 5 to 2,000 downloads at a time, stock and with fastio: where it saturates, and on what.

Release 32 with its eventlet server and release 33 under uWSGI with threads, both as behind keystone, with an identity
that is confirmed already. The rows that say ``traced`` record a trace of the server meanwhile, of which comes what the
requests wait for in each state; their speed is not compared.
"""

from __future__ import annotations

from benchmarks.suites.concurrency import cases

CASES = cases.CASES


def test_concurrency(recorded):
    recorded()
