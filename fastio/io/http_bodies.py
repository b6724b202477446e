"""Shared code of the drivers that use HTTP through requests. It is imported only after requests.

requests and urllib3 also serve other users, so nothing in them is replaced. Each session gets a separate adapter, and
each response is read through a separate object.
"""

from __future__ import annotations

import functools
import io
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, cast

from requests.adapters import HTTPAdapter
from urllib3.poolmanager import PoolKey, PoolManager

from fastio import counters
from fastio.counters import Cause, Reason, Tally
from fastio.io import lowwater, uploads


def _enlarge(manager: PoolManager, size: int) -> None:
    """Have the connections that ``manager`` will make send bodies in blocks of ``size`` bytes."""
    manager.connection_pool_kw["blocksize"] = size


def _enlarge_1(manager: PoolManager, size: int) -> None:
    """The block size for urllib3 1.26: it is http.client's, and no part of the key of a connection pool."""
    pools: dict[str, Any] = {
        scheme: functools.partial(cls, blocksize=size) for scheme, cls in manager.pool_classes_by_scheme.items()
    }
    manager.pool_classes_by_scheme = pools


_IS_1 = "key_blocksize" not in PoolKey._fields
_enlarge_manager = _enlarge_1 if _IS_1 else _enlarge

#: Bytes of a block of upstream's: urllib3 1.26 leaves it to http.client.
STOCK = 8192 if _IS_1 else 16384


class BlockAdapter(HTTPAdapter):
    """requests' own adapter, but bodies are read and sent in blocks of ``blocksize`` bytes.

    Of a body that may come slowly a block is what comes at once. With a time-out blocks have upstream's size, because
    it is for each.
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

    def send(self, request: Any, stream: bool = False, timeout: Any = None, *args: Any, **kwargs: Any) -> Any:
        body = request.body
        if not hasattr(body, "read") or isinstance(body, io.TextIOBase) or timeout is None and uploads.is_at_hand(body):
            return super().send(request, stream, timeout, *args, **kwargs)
        request.body = uploads.Gathered(body, STOCK, timed=timeout is not None)
        try:
            return super().send(request, stream, timeout, *args, **kwargs)
        finally:
            request.body = body

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

    TLS frames the body itself, so there nothing changes; nor where the socket has a time-out, which
    counts from one piece to the next.

    :param raw: urllib3's response
    :param read: reads from it; ``raw.read`` by default
    :param counts: of the patch that it is for; a body that is left to upstream's code counts as one call
    """

    def __init__(self, raw: Any, read: Callable[..., bytes] | None = None, counts: Tally = counters.UNCOUNTED) -> None:
        self._raw = raw
        self._counts = counts
        self._left_alone = False
        self._read = raw.read if read is None else read

    def read(self, amt: int | None = None, *args: Any, **kwargs: Any) -> bytes:
        left = getattr(self._raw, "length_remaining", None)
        if not amt or left == 0:
            return self._read(amt, *args, **kwargs)
        sock = getattr(getattr(self._raw, "connection", None), "sock", None)
        why_not = _why_not(sock, left)
        if why_not is not None:
            if not self._left_alone:
                self._left_alone = True
                self._counts.fell_back(why_not)
            return self._read(amt, *args, **kwargs)
        data = lowwater.read(sock, lambda size: self._read(size, *args, **kwargs), amt, cast(int, left))
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
