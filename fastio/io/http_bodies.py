"""What the drivers that use HTTP through requests share. It is imported only after requests.

requests and urllib3 also serve other users, so nothing in them is replaced. A session gets an adapter of its own, and
a response is read through an object of its own.
"""

from __future__ import annotations

import functools
import http.client
import io
import socket
import ssl
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from requests.adapters import HTTPAdapter
from urllib3.poolmanager import PoolKey, PoolManager

from fastio import counters
from fastio.concurrency import current, waiting
from fastio.concurrency.pace import Pace
from fastio.counters import Cause, Reason, Tally
from fastio.io import lowwater, unbuffered

#: Bytes that :func:`stream_large` reads at a time: as many as glanceclient.
LARGE = 1024 * 1024
#: Bytes that are more than what glibc and Python add to a block.
_PAGE = 4096


def _enlarge(manager: PoolManager, size: int) -> None:
    """Have the connections that ``manager`` will make send bodies in blocks of ``size`` bytes."""
    manager.connection_pool_kw["blocksize"] = size


def _enlarge_1(manager: PoolManager, size: int) -> None:
    """The same for urllib3 1.26: the block size is http.client's, and not among what tells connection pools apart."""
    pools: dict[str, Any] = {
        scheme: functools.partial(cls, blocksize=size) for scheme, cls in manager.pool_classes_by_scheme.items()
    }
    manager.pool_classes_by_scheme = pools


_enlarge_manager = _enlarge if "key_blocksize" in PoolKey._fields else _enlarge_1


class BlockAdapter(HTTPAdapter):
    """requests' own adapter, but bodies are read and sent in blocks of ``blocksize`` bytes.

    urllib3 2 has 16 KiB, urllib3 1.26 (that is http.client) 8 KiB.
    """

    __attrs__ = [*HTTPAdapter.__attrs__, "blocksize"]

    blocksize: int

    @classmethod
    def like(cls, adapter: HTTPAdapter, blocksize: int) -> BlockAdapter:
        """One with all properties of ``adapter``: what requests itself keeps of an adapter that is pickled."""
        new = cls.__new__(cls)
        new.__setstate__({**adapter.__getstate__(), "blocksize": blocksize})
        return new

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # The pool manager is made in there, and needs it.
        self.blocksize = state["blocksize"]
        super().__setstate__(dict(state))

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        _enlarge_manager(self.poolmanager, self.blocksize)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        is_new = proxy not in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **kwargs)
        if is_new:
            _enlarge_manager(manager, self.blocksize)
        return manager


def enlarge_blocks(session: Any, size: int) -> None:
    """Have a new session send bodies in blocks of ``size`` bytes; an adapter that is not requests' own stays."""
    for prefix, adapter in list(getattr(session, "adapters", {}).items()):
        if type(adapter) is HTTPAdapter:
            session.mount(prefix, BlockAdapter.like(adapter, size))


class Body:
    """The body of a response, read in large chunks with few wake-ups; see :mod:`fastio.io.lowwater`.

    TLS has framing of its own below the body, so there nothing changes; nor where the socket has a time-out, which
    counts from one piece to the next.

    :param raw: urllib3's response
    :param read: what reads from it; ``raw.read`` by default
    :param counts: of the patch that it is for; a body that is left to upstream's code counts as one call
    """

    def __init__(self, raw: Any, read: Callable[..., bytes] | None = None, counts: Tally = counters.UNCOUNTED) -> None:
        self._raw = raw
        self._counts = counts
        self._left_alone = False
        self._read = raw.read if read is None else read

    def read(self, amount: int | None = None, *args: Any, **kwargs: Any) -> bytes:
        left = getattr(self._raw, "length_remaining", None)
        if not amount or left == 0:
            return self._read(amount, *args, **kwargs)
        sock = getattr(getattr(self._raw, "connection", None), "sock", None)
        why_not = _why_not(sock, left)
        if why_not is not None:
            if not self._left_alone:
                self._left_alone = True
                self._counts.fell_back(why_not)
            return self._read(amount, *args, **kwargs)
        data = lowwater.read(sock, lambda size: self._read(size, *args, **kwargs), amount, cast(int, left))
        self._counts.moved(len(data))
        return data


def _why_not(sock: Any, left: Any) -> Cause | None:
    """Why the rest of a body is left to upstream's code; None if it is not."""
    if not isinstance(left, int):
        return Reason.FRAMING
    # Looked up each time: under eventlet it is the green one. A subclass does more than a socket does.
    if type(sock) is not socket.socket:
        return Reason.TLS if isinstance(sock, ssl.SSLSocket) else Reason.FOREIGN
    return None if sock.gettimeout() is None else Reason.TIMEOUT


def read_unbuffered(response: Any, counts: Tally = counters.UNCOUNTED) -> None:
    """Have the body of requests' ``response`` read as :mod:`fastio.io.unbuffered` does.

    urllib3 and http.client keep doing what they do of lengths, errors and the connection: only the file below them is
    another one. Where that is not what they usually have, nothing changes.

    :param counts: of the patch that it is for
    """
    original: Any = getattr(response.raw, "_fp", None)
    why_not = _why_not_unbuffered(original)
    if why_not is not None:
        counts.fell_back(why_not)
        return
    original.fp = unbuffered.reader(_below(original, counts))


def _below(original: Any, counts: Tally, arrived: bool = False) -> unbuffered.Unbuffered:
    """What reads the rest of http.client's response from its socket.

    :param arrived: whether a read is to return what has arrived rather than wait until the chunk is full
    """
    counts.took()
    below = original.fp
    before: Callable[[], None] | None = None
    after: Callable[[int], None] = counts.moved
    if current.is_green():
        pace = Pace(counts=counts)
        before, after = pace.yield_when_due, pace.moved
    if type(below.raw._sock) is ssl.SSLSocket:
        return (unbuffered.Arrived if arrived else unbuffered.Decrypted)(below, before, after)
    return unbuffered.Gathered(below, _wait, before, after)


def stream_large(response: Any, counts: Tally = counters.UNCOUNTED, joined: bool = False) -> None:
    """Have ``response.iter_content(size)`` read much at a time, however small ``size`` is; once.

    It still gives pieces of ``size`` bytes. What has arrived is given after 50 ms at the latest, and if the body breaks
    off, the same pieces have come before the error. Nothing changes for a response that is not requests' own, for a
    body that is short, compressed or of unknown length, and for ``iter_content(None)``.

    :param counts: of the patch that it is for
    :param joined: whether a piece may also be a multiple of ``size``, of up to about 1 MiB
    """
    raw = getattr(response, "raw", None)
    why_not = _why_not_unbuffered(getattr(raw, "_fp", None))
    if why_not is None and cast(Any, raw).headers.get("Content-Encoding"):
        why_not = Reason.FRAMING
    if why_not is not None:
        counts.fell_back(why_not)
        return
    # The response must not refer to itself: who lets go of it expects its connection to be closed at once.
    cast(Any, raw).stream = functools.partial(_stream, weakref.ref(raw), counts, joined)


def _stream(found: Callable[[], Any], counts: Tally, joined: bool, amt: Any, decode_content: Any = None) -> Any:
    """In the place of ``stream`` of urllib3's response, for one call."""
    raw = found()
    del raw.stream
    original = raw._fp
    if type(amt) is not int or amt <= 0:
        counts.fell_back(Reason.INPUT)
    elif (why_not := _why_not_unbuffered(original)) is not None:
        # Something of it was read meanwhile.
        counts.fell_back(why_not)
    elif amt >= lowwater.MOST:
        original.fp = unbuffered.reader(_below(original, counts))
    else:
        return _pieces(raw, original, amt, counts, joined)
    return raw.stream(amt, decode_content=decode_content)


def _pieces(raw: Any, original: Any, size: int, counts: Tally, joined: bool) -> Iterator[bytes]:
    """The rest of a body in pieces of ``size`` bytes, or of a multiple if they may be ``joined``."""
    original.fp = file = unbuffered.Pieces(unbuffered.Whole(_below(original, counts, arrived=True), size))
    _keep_memory()
    rest = b""
    while raw.length_remaining:
        file.at_once = True
        try:
            # Undecoded, urllib3 returns what one read of the file returns.
            data = raw.read(LARGE // size * size, decode_content=False)
        finally:
            file.at_once = False
        if not data:
            break
        if len(data) < size and raw.length_remaining:
            # The connection has ended. If that is an error, upstream loses the piece that is not complete.
            rest = data
        elif joined:
            yield data
        else:
            for start in range(0, len(data), size):
                yield data[start : start + size]
    if rest:
        yield rest


def _keep_memory() -> None:
    """Have glibc take the memory for each piece from its heap, which uses it again for the next one.

    glibc asks the kernel for each block of 128 KiB or more anew, until one of that size or more has been freed. Here
    each block is cut to what has arrived before it is freed, so one of the full size may never be. Every page from the
    kernel costs a page fault, and all of them together cost more CPU time than the rest of a download.
    """
    # It is freed at once. Nobody writes to it, so it costs no page.
    bytes(LARGE + _PAGE)


def _why_not_unbuffered(original: Any) -> Cause | None:
    """Why http.client's response is left as it is; None if it is not."""
    if type(original) is not http.client.HTTPResponse:
        return Reason.FOREIGN
    if original.chunked or original.length is None:
        return Reason.FRAMING
    if original.length < 2 * lowwater.LEAST:
        return Reason.SMALL
    below = original.fp
    if type(below) is not io.BufferedReader:
        return Reason.FOREIGN
    file = type(below.raw)
    # By name: eventlet has a copy of the module, whose sockets are the green ones' files.
    if (file.__module__, file.__qualname__) != ("socket", "SocketIO"):
        return Reason.FOREIGN
    sock = below.raw._sock  # type: ignore[attr-defined]
    # Looked up each time: under eventlet they are the green ones. A subclass does more than a socket does.
    if type(sock) not in (socket.socket, ssl.SSLSocket):
        return Reason.FOREIGN
    return Reason.NON_BLOCKING if sock.gettimeout() == 0 else None


def _wait(fd: int, seconds: float) -> bool:
    """Whether ``fd`` became readable within that time; other greenlets run meanwhile."""
    waiter = waiting.waiter_for_a_moment()
    if waiter is None:
        # The hub itself runs this, or it is another library's: upstream's read knows what to do.
        return False
    try:
        return waiter.readable(fd, seconds)
    except waiter.closed:
        # eventlet's sockets put it so.
        raise EOFError from None
