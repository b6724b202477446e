"""A real glance-api, stock and with fastio: downloads and uploads, and what other requests wait for meanwhile.

Release 32 with its eventlet server and release 33 under uWSGI with threads, both with a filesystem store at its default
configuration. The limit is nginx with the same file. What is asked of fastio is shown beside what is reached.
"""

from __future__ import annotations

from benchmarks.suites.glance import cases

CASES = cases.CASES


def test_glance(recorded):
    recorded()
