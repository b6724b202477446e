"""Counters of the fast paths in this process: calls, bytes and fallbacks of each patch, and the system calls they made.

Counts show what times on a noisy machine cannot show: that the fast path really ran, and how few reads and waits it
needed. They are plain additions, and nothing here takes a lock: a finalizer, a signal handler or a fork may come at any
time. Each addition is to a slot of an object, between whose reading and writing no CPython with the global interpreter
lock runs anything else, which makes the counts exact there. A forked child starts from zero: the sum over all processes
of a service counts each call once.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

#: Counters of ``io``.
NAMES = ("exchanges", "reads", "writes", "bytes_in", "bytes_out", "waits", "yields")


class Cause(str):
    """Why a call went to upstream's code: a name, and what it means."""

    meaning: str

    def __new__(cls, name: str, meaning: str) -> "Cause":
        cause = str.__new__(cls, name)
        cause.meaning = meaning
        return cause

    def __reduce__(self) -> tuple[Any, ...]:
        """There is one of each: a copy of its holder, such as a copied file, has the same one."""
        return getattr, (Reason, self.upper())


class Reason:
    """Every :class:`Cause` that there is. No Enum: to look up a member of one takes as long as to count a call."""

    CONFIGURED = Cause("configured", "the configuration of a kept client is not known for certain")
    EXITED = Cause("exited", "the child had already exited, so that there was nothing to wait for")
    FOREIGN = Cause("foreign", "the object is of another class than upstream's own: a subclass, a mock, another tool's")
    FORKING = Cause("forking", "the process was about to be forked")
    FRAMING = Cause("framing", "the length of the body is not known, or it comes in chunks")
    HUB = Cause("hub", "a native wait would have held the hub of the thread")
    INPUT = Cause("input", "the data is of a kind that only upstream's code takes, such as an array")
    LIMIT = Cause("limit", "as many transfers are under way as the settings and the system allow")
    NON_BLOCKING = Cause("non_blocking", "the program has set the socket to non-blocking mode")
    PREEXEC_FN = Cause("preexec_fn", "the child runs a function of the caller's, or keeps its signals unchanged")
    REFUSED = Cause("refused", "the kernel, the C library or the store's library refused a call, or has not got it")
    SMALL = Cause("small", "the data is too small for the fast path to gain anything")
    TIMEOUT = Cause("timeout", "the socket has a time-out, which counts from one piece of data to the next")
    TLS = Cause("tls", "the connection is encrypted")
    WRAPPED_BODY = Cause("wrapped_body", "other code, such as a middleware, has to see the bytes")


CAUSES = tuple(each for each in vars(Reason).values() if isinstance(each, Cause))


class Tally:
    """The counts of one patch, which the patch adds to itself."""

    __slots__ = ("patch", "calls", "bytes", "fallbacks", "reads", "bytes_in")

    def __init__(self, patch: str) -> None:
        self.patch = patch
        self.reset()

    def reset(self) -> None:
        #: calls that the patch took, without ``reads``
        self.calls = 0
        #: bytes that its own code moved or hashed, without ``bytes_in``
        self.bytes = 0
        #: Calls that were one read system call of the I/O core each, and their bytes, where a second pair of counts
        #: would take long beside the read: whoever takes one adds to both.
        self.reads = 0
        self.bytes_in = 0
        #: calls that it left to upstream's code, by the reason
        self.fallbacks = dict.fromkeys(CAUSES, 0)

    def took(self) -> None:
        """Count a call that the patch takes."""
        self.calls += 1
        if wake is not None:
            wake(self, None)

    def moved(self, size: int) -> None:
        """Add ``size`` bytes to a call that was counted."""
        self.bytes += size

    def fell_back(self, reason: Cause) -> None:
        """Count a call that goes to upstream's code."""
        self.fallbacks[reason] += 1
        if wake is not None:
            wake(self, reason)


#: Called after a count, but not for calls that are one system call; see :mod:`fastio.run_dir`. The call may come in a
#: finalizer, a signal handler or the hub's own greenlet, and must not raise.
wake: Callable[[Tally, Cause | None], None] | None = None

#: Of code whose calls count for no patch.
UNCOUNTED = Tally("")


class _Io:
    """Counters of the I/O core, for all patches together."""

    __slots__ = NAMES

    #: ``_communicate`` calls served by fastio
    exchanges: int
    #: read system calls that returned data or end of file
    reads: int
    #: write system calls that moved data
    writes: int
    #: bytes read from children
    bytes_in: int
    #: bytes written to children and to eventlet's sockets
    bytes_out: int
    #: waits in the hub (eventlet) or the selector (native)
    waits: int
    #: times a reader or writer yielded to the hub although it could have gone on
    yields: int


io = _Io()
_tallies: dict[str, Tally] = {}
#: when the counts began, as ``time.time()`` has it
since = 0.0
#: the process whose counts they are
pid = 0


def of(patch: str) -> Tally:
    """The counts of a patch, by its name or by that of the module that declares it."""
    name = patch.rpartition(".")[2]
    return _tallies.get(name) or _tallies.setdefault(name, Tally(name))


def tallies() -> Iterator[Tally]:
    """The counts of all patches that have any."""
    return iter(sorted(_tallies.values(), key=lambda tally: tally.patch))


def snapshot() -> dict[str, int]:
    """Return the counters of the I/O core, by name."""
    found = {name: getattr(io, name) for name in NAMES}
    for tally in list(_tallies.values()):
        found["reads"] += tally.reads
        found["bytes_in"] += tally.bytes_in
    return found


def reset() -> None:
    """Set every count to zero."""
    global since, pid
    since = time.time()
    pid = os.getpid()
    for name in NAMES:
        setattr(io, name, 0)
    for tally in list(_tallies.values()):
        tally.reset()


def __getattr__(name: str) -> Any:
    """Return the counters of :func:`snapshot` by their names alone."""
    if name in NAMES:
        return snapshot()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


reset()
os.register_at_fork(after_in_child=reset)
