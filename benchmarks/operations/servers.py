"""A plain server that clients use, and eventlet's WSGI server.

``python -m benchmarks.operations.servers NAME GREEN FAST KIND`` prints its port, and serves until its standard
input ends. A payload has its size for a name.
"""

import contextlib
import functools
import hashlib
import http.server
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.harness import modes
from benchmarks.harness.children import Child
from benchmarks.harness.modes import MIB, Mode
from benchmarks.harness.worker import MULTIHASH, digests, random_payload
from fastio.io import scratch


@contextlib.contextmanager
def running(name: str, mode: Mode, kind: str = "") -> Iterator[int]:
    """Run one; yields its port.

    :raises RuntimeError: if it does not start
    """
    with Child(__name__, name, str(int(mode.green)), str(int(mode.fast)), kind, name=f"the server {name}") as server:
        yield int(server.read())


class Plain(http.server.BaseHTTPRequestHandler):
    """Images by the paths of glance's API, and uploads that are counted or hashed."""

    protocol_version = "HTTP/1.1"
    # The end of an answer does not wait for more.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        size = next(int(part) for part in parts if part.isdecimal())
        if parts[-1] != "file":
            self._say(_about(size), "application/json")
            return
        self._head(size, "application/octet-stream")
        with open(random_payload(size).path, "rb") as file:
            self.connection.sendfile(file)

    def do_PUT(self) -> None:
        hasher, count = hashlib.sha256(), 0
        hashed = self.path.endswith("hash")
        left = int(self.headers["Content-Length"])
        buffer = scratch.allocate(min(MIB, max(1, left)))
        while left and (received := self.rfile.readinto(buffer[:left])):  # type: ignore[attr-defined]
            left -= received
            count += received
            if hashed:
                hasher.update(buffer[:received])
        self._say((hasher.hexdigest() if hashed else str(count)).encode(), "text/plain")

    def _say(self, said: bytes, kind: str) -> None:
        self._head(len(said), kind, said.decode() if kind == "text/plain" else "")
        self.wfile.write(said)

    def _head(self, size: int, kind: str, tag: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        if tag:
            self.send_header("ETag", tag)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@functools.cache
def _about(size: int) -> bytes:
    """Return glance's record of an image."""
    known = digests(random_payload(size))
    about = {"id": str(size), "size": size, "status": "active", "checksum": known.checksum}
    return json.dumps({**about, "os_hash_algo": MULTIHASH, "os_hash_value": known.multihash}).encode()


class _Server(http.server.ThreadingHTTPServer):
    #: As many as come concurrently.
    request_queue_size = 128


def plain(mode: Mode, kind: str) -> None:
    server = _Server(("127.0.0.1", 0), Plain)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    os.read(0, 1)


#: Answers of :func:`serve`: with Content-Length, in chunked encoding, or without WSGI, by ``socket.sendall()``.
KINDS = ("length", "chunked", "sendall")


def serve(mode: Mode, kind: str, chunk: int) -> int:
    """Serve payloads by eventlet in this process, which has been made what the mode says; returns the port."""
    import eventlet
    from eventlet import wsgi

    if mode.fast:
        modes.require("green_sendall")

    @functools.cache
    def body(size: int) -> list[bytes]:
        data = random_payload(size).path.read_bytes()
        return [data[start : start + chunk] for start in range(0, size, chunk)]

    def application(environ: Any, start_response: Any) -> list[bytes]:
        size = int(environ["PATH_INFO"].strip("/"))
        headers = [("Content-Type", "application/octet-stream")]
        start_response("200 OK", headers + [("Content-Length", str(size))] * (kind == "length"))
        # A list of one would get a length from the server.
        return body(size) if kind == "length" else iter(body(size))  # type: ignore[return-value]

    def sendall() -> None:
        while True:
            client, _ = listener.accept()
            with client:
                size = int(client.recv(65536).split()[1].strip(b"/"))
                client.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
                for each in body(size):
                    client.sendall(each)

    listener = eventlet.listen(("127.0.0.1", 0), backlog=128)
    if kind == "sendall":
        eventlet.spawn(sendall)
    else:
        eventlet.spawn(wsgi.server, listener, application, log_output=False)
    return listener.getsockname()[1]


def wsgi(mode: Mode, kind: str) -> None:
    """eventlet's, in chunks of 1 MiB."""
    modes.enter(mode, {})
    from eventlet import hubs

    print(serve(mode, kind, MIB), flush=True)
    hubs.trampoline(0, read=True)


def main(arguments: Sequence[str]) -> None:
    name, green, fast, kind = arguments
    {"plain": plain, "wsgi": wsgi}[name](Mode(green=bool(int(green)), fast=bool(int(fast))), kind)


if __name__ == "__main__":
    main(sys.argv[1:])
