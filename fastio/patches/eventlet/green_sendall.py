"""``green_sendall``: eventlet's ``GreenSocket.sendall`` sends the rest of a buffer without copying it, and is fair.

The kernel takes at most what its buffer has room for. After each partial send, upstream (seen in eventlet 0.30 to
0.41) slices off the rest, so most of a buffer of many MiB is copied again and again. With this patch, the rest of
``bytes`` is sent in place. The rest of a ``bytearray`` is copied, like upstream's, because other greenlets may change
it while the rest waits for room.

Upstream yields only when the kernel's buffer is full. A peer that always has room keeps all other greenlets waiting,
within a large buffer and from one call to the next. With this patch, each socket yields after its share of
``yield_bytes``, before it sends on. A slow peer would have the same effect. A socket in non-blocking mode never yields,
and neither does a call in the hub's own greenlet.

``GreenSSLSocket.sendall`` has the same line of code. But OpenSSL takes the whole buffer, so no rest is copied there.
"""

from collections.abc import Callable
from typing import Any

from fastio import counters
from fastio.concurrency.pace import Pace
from fastio.counters import Reason
from fastio.patching.known_code import KNOWN, Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of ``GreenSocket.sendall``."""
    from eventlet.greenio.base import GreenSocket

    def sendall(self: Any, data: Any, flags: int = 0) -> None:
        if not hook.active:
            return wrapped(self, data, flags)
        if self.act_non_blocking:
            _counts.fell_back(Reason.NON_BLOCKING)
            return wrapped(self, data, flags)
        # Others may define a send(), which upstream's sendall() calls.
        if type(self) is not GreenSocket or "send" in self.__dict__:
            _counts.fell_back(Reason.FOREIGN)
            return wrapped(self, data, flags)
        _counts.took()
        in_place = type(data) is bytes
        tail = _send(self, self.fd.send, data, flags)
        len_data = len(data)
        while tail < len_data:
            if in_place:
                tail += _send(self, _sender_of_rest(self.fd.send, tail), data, flags)
            else:
                tail += _send(self, self.fd.send, data[tail:], flags)
        return None

    return sendall


def _sender_of_rest(send: Callable[..., int], start: int) -> Callable[..., int]:
    """``send`` for what ``data`` has from ``start`` on."""

    def send_rest(data: Any, flags: int) -> int:
        with memoryview(data) as view, view[start:] as rest:
            return send(rest, flags)

    return send_rest


def _send(sock: Any, send: Callable[..., int], data: Any, flags: int) -> int:
    """Send once, when it is the socket's turn and there is room; returns how many bytes it was."""
    pace = sock.__dict__.get("_fastio_pace")
    if pace is None:
        pace = sock._fastio_pace = Pace()
    pace.yield_when_due()
    try:
        count = send(data, flags)
    except BlockingIOError:
        counters.io.waits += 1
        # Upstream's way to wait, with the socket's time-out. Others run meanwhile, and its share begins anew.
        count = sock._send_loop(send, data, flags)
        pace.renew()
    else:
        pace.moved(count)
    counters.io.writes += 1
    counters.io.bytes_out += count
    _counts.moved(count)
    return count


PATCH = Patch(
    __name__,
    summary="eventlet: sendall() of a large buffer does not copy what is left of it, and lets other greenlets run",
    targets=(
        Target(
            "eventlet.greenio.base:GreenSocket.sendall",
            make,
            # send() has to be known: what it does is done here.
            relies_on={"send": KNOWN, "_send_loop": Uses("self, send_method, data, *args")},
            direct=True,
        ),
    ),
)
