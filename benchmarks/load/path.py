"""A network path of a given rate, on one machine: what comes in at one port goes out to another, no faster than that.

It is a stand-in for a slow network, not a model of one: there is no loss and no delay beyond what the rate makes.
"""

import contextlib
import socket
import socketserver
import threading
import time
from collections.abc import Iterator

#: Bytes that are taken at once, and seconds of the rate that may be sent at once after a pause.
PIECE = 64 << 10
BURST = 0.05


@contextlib.contextmanager
def slowed(host: str, port: int, rate: float) -> Iterator[str]:
    """Carry connections to ``host`` and ``port``, in threads; yields the address where they come in.

    :param rate: bytes in a second, of all connections together, in each direction
    """
    there, back = _Bucket(rate), _Bucket(rate)

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError), socket.create_connection((host, port)) as far:
                answers = threading.Thread(target=_pump, args=[far, self.request, back], daemon=True)
                answers.start()
                _pump(self.request, far, there)
                answers.join()

    with _Server(("127.0.0.1", 0), Connection) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield "{}:{}".format(*server.server_address)
        finally:
            server.shutdown()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128


class _Bucket:
    """Gives bytes at a rate; who comes later waits longer."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free_at = 0.0
        self._lock = threading.Lock()

    def take(self, size: int) -> None:
        now = time.monotonic()
        with self._lock:
            self._free_at = max(self._free_at, now - BURST) + size / self._rate
            wait = self._free_at - now
        time.sleep(max(0.0, wait))


def _pump(source: socket.socket, target: socket.socket, bucket: _Bucket) -> None:
    try:
        while data := source.recv(PIECE):
            bucket.take(len(data))
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # Neither end waits for what will not come.
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
