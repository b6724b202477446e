"""Disk against Swift: a log server whose logs are on its disk or in a real Swift, stock and with fastio.

The study of the OpenStack infra team's log server, and what it left open. Per request: sent, response and transfer, in
milliseconds. More rows tell where the time goes: ``swift-1MiB`` is a log server that reads 1 MiB at a time instead of
64 KiB, with which a service would use fastio (the patches themselves change no size that a program has chosen); behind
``swift-wide`` Swift's servers do so, too, and with fastio they all have it; ``swift-direct`` is no log server at all,
the limit of what can be won in one.
"""

from __future__ import annotations

from benchmarks.suites.disk_swift import cases

CASES = cases.CASES


def test_disk_swift(recorded):
    recorded()
