"""Deliberate faults: a backend that answers wrongly, a connection that is reset, a file system that is full."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.backends.base import HOST
from benchmarks.backends.swift import Swift

_PIECE = 65536
_REQUEST = re.compile(rb"(\S+) (\S+) HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\nContent-Length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Fault:
    """The fate of a request; None is for nothing."""

    #: the answer is this status, once the request's body has been taken
    status: int | None = None
    #: the connection is reset after so many bytes of the answer, its head included
    reset_answer: int | None = None
    #: the connection is reset after so many bytes of the request, its head included
    reset_request: int | None = None
    #: the connection is ended after so many bytes of the answer, its head included
    end_answer: int | None = None


class Proxy:
    """Relays HTTP to a server on loopback, one request to a connection, but for requests that are to fail."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._faults: dict[tuple[str, str], list[Fault]] = {}
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        #: how many requests have failed
        self.failed = 0

    def fail(self, method: str, part: str, *faults: Fault) -> None:
        """Have requests with ``part`` in their path fail from now on, one after the other; the last fault stays."""
        self._faults[method, part] = list(faults)

    def _fault(self, method: str, path: str) -> Fault:
        for (of, part), faults in self._faults.items():
            if of == method and part in path:
                fault = faults.pop(0) if len(faults) > 1 else faults[0]
                self.failed += fault != Fault()
                return fault
        return Fault()

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # A thread that waits in accept() is not woken by close() alone.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(60)
            head, rest = _read_head(client)
            request = _REQUEST.match(head)
            if request is None:
                return
            method, path = request[1].decode(), request[2].decode()
            fault = self._fault(method, path)
            if fault.status is not None:
                _drain(client, head, rest)
                client.sendall(b"HTTP/1.1 %d Fault\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % fault.status)
                return
            with socket.create_connection((HOST, self._upstream), timeout=60) as server:
                # Each connection then has one request.
                server.sendall(head[:-2] + b"Connection: close\r\n\r\n" + rest)
                _relay(client, server, fault, len(head) + len(rest))


def _read_head(sock: socket.socket) -> tuple[bytes, bytes]:
    """The head of a message, with the empty line, and the bytes after it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(_PIECE)
        if not piece:
            return b"", b""
        data += piece
    end = data.index(b"\r\n\r\n") + 4
    return data[:end], data[end:]


def _drain(sock: socket.socket, head: bytes, body: bytes) -> None:
    """Take the body of a request."""
    length = _LENGTH.search(head)
    if length is not None:
        left = int(length[1]) - len(body)
        while left > 0:
            left -= len(sock.recv(_PIECE)) or left
    elif b"chunked" in head.lower():
        while not body.endswith(b"0\r\n\r\n"):
            piece = sock.recv(_PIECE)
            if not piece:
                return
            body = body[-8:] + piece


def _relay(client: socket.socket, server: socket.socket, fault: Fault, sent: int) -> None:
    """Relay in both directions until the answer has ended, or the fault resets both connections."""
    limits = {client: fault.reset_request, server: fault.reset_answer}
    moved = {client: sent, server: 0}
    sources = [client, server]
    while True:
        # One thread for both: a socket that another thread waits for is not reset when it is closed.
        for source in select.select(sources, [], [])[0]:
            target = server if source is client else client
            data = source.recv(_PIECE)
            if not data and source is server:
                return
            if not data:
                sources.remove(client)
                server.shutdown(socket.SHUT_WR)
            if source is server and fault.end_answer is not None and moved[server] + len(data) >= fault.end_answer:
                target.sendall(data[: fault.end_answer - moved[server]])
                return
            limit = limits[source]
            if limit is not None and moved[source] + len(data) >= limit:
                target.sendall(data[: max(0, limit - moved[source])])
                # A reset drops what the target has not received yet.
                time.sleep(0.2)
                for sock in (client, server):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            target.sendall(data)
            moved[source] += len(data)


@contextlib.contextmanager
def small_file_system(directory: Path, size: int) -> Iterator[Path]:
    """A file system of ``size`` bytes; raises OSError where none can be mounted: that takes root."""
    directory.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)], capture_output=True, text=True
    )
    if done.returncode:
        raise OSError(f"a small tmpfs cannot be mounted here: {done.stderr.strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def add_full_store(
    stack: contextlib.ExitStack, directory: Path, size: int, config: dict[str, dict[str, object]]
) -> Path | str:
    """Add a store ``full`` on a small file system to glance's options; returns its directory, or why there is none."""
    try:
        full = stack.enter_context(small_file_system(directory, size))
    except OSError as error:
        return str(error)
    add_file_store(config, "full", full)
    return full


def add_file_store(config: dict[str, dict[str, object]], name: str, directory: Path) -> None:
    """Add a store of files to glance's options."""
    config["DEFAULT"]["enabled_backends"] = f"{config['DEFAULT']['enabled_backends']}, {name}:file"
    config[name] = {"filesystem_store_datadir": directory}


def add_swift_store(stack: contextlib.ExitStack, swift: Swift, config: dict[str, dict[str, object]]) -> Proxy:
    """Add a store ``swift`` to glance's options; returns the proxy between the two."""
    proxy = stack.enter_context(Proxy(int(swift.access()["url"].rpartition(":")[2])))
    options: dict[str, object] = {key: str(value) for key, value in swift.options().items()}
    options["swift_store_auth_address"] = f"http://{HOST}:{proxy.port}/v3"
    config["DEFAULT"]["enabled_backends"] = f"{config['DEFAULT']['enabled_backends']}, swift:swift"
    config["swift"] = options
    return proxy
