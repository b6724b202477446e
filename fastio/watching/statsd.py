"""What the process did since the last time, for statsd: datagrams with a counter in each line."""

from __future__ import annotations

import _socket  # C, and native also where eventlet has replaced socket's
from collections.abc import Iterator

from fastio import config
from fastio.watching.metrics import Metrics

#: Bytes of a datagram that no network of today cuts in pieces.
_SIZE = 1432


class Statsd:
    """What the process tells a statsd at ``address``, such as ``127.0.0.1:8125`` or ``[::1]:8125``."""

    def __init__(self, address: str) -> None:
        host, port = config.split_address(address)
        family = _socket.AF_INET6 if ":" in host else _socket.AF_INET
        self._address = (host, port)
        self._socket = _socket.socket(family, _socket.SOCK_DGRAM | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC)
        self._told: dict[str, int] = {}

    def publish(self, found: Metrics, last: bool = False) -> None:
        """Send what has been added. What the system does not take, for example for want of memory, is sent later."""
        for lines, counts in _datagrams(dict(_counts(found)), self._told):
            try:
                self._socket.sendto(lines, self._address)
            except OSError:
                # Nobody is there: a datagram of before has come back.
                continue
            self._told.update(counts)

    def close(self) -> None:
        self._socket.close()


def _counts(found: Metrics) -> Iterator[tuple[str, int]]:
    for each in found.series():
        yield ".".join(["fastio", each.counter, *each.labels.values()]), each.value


def _datagrams(counts: dict[str, int], told: dict[str, int]) -> Iterator[tuple[bytes, dict[str, int]]]:
    """Datagrams, each with the counts that have been told once it has been sent."""
    lines: list[bytes] = []
    having: dict[str, int] = {}
    for name, count in counts.items():
        if count <= told.get(name, 0):
            continue
        line = f"{name}:{count - told.get(name, 0)}|c".encode()
        if lines and sum(map(len, lines)) + len(lines) + len(line) > _SIZE:
            yield b"\n".join(lines), having
            lines, having = [], {}
        lines.append(line)
        having[name] = count
    if lines:
        yield b"\n".join(lines), having
