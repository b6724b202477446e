"""What the fast paths did in this process: calls, bytes and fallbacks of each patch, and the system calls they made.

Counts show what times on a noisy machine cannot show: that the fast path really ran, and how few reads and waits it
needed. They are plain additions, and nothing here takes a lock: a finalizer, a signal handler or a fork may come at any
time. Each addition is to a slot of an object, between whose reading and writing no CPython with the global interpreter
lock runs anything else. So the counts are exact there. A forked child starts from zero, so that the sum over all
processes of a service counts each call once.
"""

import os
import time
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

#: What ``io`` counts.
NAMES = ("exchanges", "reads", "writes", "bytes_in", "bytes_out", "waits", "yields")


class Reason(str, Enum):  # noqa: UP042 - StrEnum came with Python 3.11
    """Why a call went to upstream's code although a patch is there for it. There are no other reasons."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> "Reason":
        reason = str.__new__(cls, value)
        reason._value_ = value
        reason.meaning = meaning
        return reason

    CONFIGURED = "configured", "what a kept client would be made from cannot be told from something else"
    EXITED = "exited", "the child had already exited, so that there was nothing to wait for"
    FOREIGN = "foreign", "the object is of another class than upstream's own: a subclass, a mock, another tool's"
    FORKING = "forking", "the process was about to be forked"
    FRAMING = "framing", "the length of the body is not known, or it comes in chunks"
    HUB = "hub", "a native wait would have held the hub of the thread"
    INPUT = "input", "the data is of a kind that only upstream's code takes, such as an array"
    NON_BLOCKING = "non_blocking", "the program has set the socket to non-blocking mode"
    PREEXEC_FN = "preexec_fn", "the child has to run a function of the caller's, or keeps its signals as they are"
    REFUSED = "refused", "the kernel, the C library or the store's library refused a call, or has not got it"
    SMALL = "small", "the data is too small for the fast path to gain anything"
    TIMEOUT = "timeout", "the socket has a time-out, which counts from one piece of data to the next"
    TLS = "tls", "the connection is encrypted"
    WRAPPED_BODY = "wrapped_body", "other code, such as a middleware, has to see the bytes"

    # That of str is C: Enum's own is Python, and would make an addition to a dictionary inexact.
    __hash__ = str.__hash__

    def __str__(self) -> str:
        return self.value


class Tally:
    """The counts of one patch.

    Whoever adds a patch has its calls counted without doing anything; see ``Patch.counted``.
    """

    __slots__ = ("patch", "calls", "bytes", "fallbacks")

    def __init__(self, patch: str) -> None:
        self.patch = patch
        self.reset()

    def reset(self) -> None:
        #: calls that the patch took
        self.calls = 0
        #: bytes that its own code moved or hashed
        self.bytes = 0
        #: calls that it left to upstream's code, by the reason
        self.fallbacks = dict.fromkeys(Reason, 0)

    def took(self, size: int = 0) -> None:
        """The patch takes a call, or has taken one that moved ``size`` bytes."""
        self.calls += 1
        self.bytes += size

    def moved(self, size: int) -> None:
        """So many bytes more were moved in a call that was counted."""
        self.bytes += size

    def fell_back(self, reason: Reason) -> None:
        """A call goes to upstream's code."""
        self.fallbacks[reason] += 1


#: Of code whose calls count for no patch.
UNCOUNTED = Tally("")


class _Heard(Tally):
    """The same while somebody wants to hear of each call."""

    __slots__ = ()

    def took(self, size: int = 0) -> None:
        Tally.took(self, size)
        _tell(self.patch, None)

    def fell_back(self, reason: Reason) -> None:
        Tally.fell_back(self, reason)
        _tell(self.patch, reason)


class _Io:
    """What the I/O core did, whatever patch it worked for."""

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
_listeners: tuple[Callable[[str, Reason | None], None], ...] = ()
#: when the counts began, as ``time.time()`` has it
since = 0.0


def of(patch: str) -> Tally:
    """The counts of a patch, by its name or by that of the module that declares it."""
    name = patch.rpartition(".")[2]
    return _tallies.get(name) or _tallies.setdefault(name, (_Heard if _listeners else Tally)(name))


def tallies() -> Iterator[Tally]:
    """The counts of all patches that have any."""
    return iter(sorted(_tallies.values(), key=lambda tally: tally.patch))


def listen(listener: Callable[[str, Reason | None], None], on: bool = True) -> None:
    """Have ``listener`` be called for each call with the patch, and the reason if the call falls back; or no more.

    It is called wherever calls are counted, also in a finalizer or the hub's own greenlet, and must not raise.
    """
    global _listeners
    others = tuple(each for each in _listeners if each is not listener)
    _listeners = (*others, listener) if on else others
    for tally in list(_tallies.values()):
        tally.__class__ = _Heard if _listeners else Tally


def _tell(patch: str, reason: Reason | None) -> None:
    for listener in _listeners:
        listener(patch, reason)


def snapshot() -> dict[str, int]:
    """What the I/O core did, by name."""
    return {name: getattr(io, name) for name in NAMES}


def reset() -> None:
    """Set every count to zero."""
    global since
    since = time.time()
    for name in NAMES:
        setattr(io, name, 0)
    for tally in list(_tallies.values()):
        tally.reset()


def __getattr__(name: str) -> Any:
    """Those of ``io`` by their names alone."""
    if name in NAMES:
        return getattr(io, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


reset()
os.register_at_fork(after_in_child=reset)
