"""Counts of what the fast paths did in this process.

Counts show what times on a noisy machine cannot show: that the fast path really ran, and how few reads and waits it
needed. They are updated without a lock, so with several native threads they are close, but not exact.
"""

NAMES = ("exchanges", "reads", "writes", "bytes_in", "bytes_out", "waits", "yields")

#: ``_communicate`` calls served by fastio
exchanges = 0
#: read system calls that returned data or end of file
reads = 0
#: write system calls that moved data
writes = 0
#: bytes read from children
bytes_in = 0
#: bytes written to children and to eventlet's sockets
bytes_out = 0
#: waits in the hub (eventlet) or the selector (native)
waits = 0
#: times a reader or writer yielded to the hub although it could have gone on
yields = 0


def snapshot() -> dict[str, int]:
    """All counts by name."""
    return {name: globals()[name] for name in NAMES}


def reset() -> None:
    """Set every count to zero."""
    for name in NAMES:
        globals()[name] = 0
