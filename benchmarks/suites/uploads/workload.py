"""A file that is uploaded with ``requests.put(url, data=...)``: what it costs the client.

The measured process is the client. The server is another process on the same host, which throws away what it receives,
and in a second upload, which is not measured, hashes it.

Parameters:

``size``
    bytes of the file
``body``
    ``"file"``: what ``open()`` returns; ``"memory"``: an ``io.BytesIO``
``settings``
    of fastio
"""

import hashlib
import io
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.modes import MIB, Mode, choice, enter, require, variants, warmed
from benchmarks.harness.worker import Payload, measure, random_payload

#: fastio's patches that are measured here, by the body that they are for.
PATCHES = {"file": "urllib3_sendfile", "memory": "urllib3_blocks"}

#: Uploads a file to a port, under a path that says what becomes of it, and returns what the server has found.
Upload = Callable[[int, str, Payload], str]


class Server:
    """The process that receives."""

    def __enter__(self) -> "Server":
        command = [sys.executable, "-m", "benchmarks.suites.uploads.workload"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.communicate()


def measured_upload(upload: Upload, payload: Payload) -> dict[str, Any]:
    with Server() as server:
        with measure() as measured:
            counted = int(upload(server.port, "count", payload))
        verified = counted == payload.size and upload(server.port, "hash", payload) == payload.sha256
    return measured.result(bytes=payload.size, verified=verified)


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    body = choice(parameters, "body", *PATCHES)
    payload = warmed(random_payload(parameters["size"]))
    enter(mode, parameters)
    import requests

    content = Path(payload.path).read_bytes() if body == "memory" else b""

    def upload(port: int, path: str, payload: Payload) -> str:
        with open(payload.path, "rb") as file:
            data: Any = file if body == "file" else io.BytesIO(content)
            return requests.put(f"http://127.0.0.1:{port}/{path}", data=data).text

    if mode.fast:
        require(*PATCHES.values())
    result = measured_upload(upload, payload)
    if mode.fast:
        check(PATCHES[body])
    return result


def check(patch: str) -> None:
    """Check that the patch has taken both uploads.

    :raises RuntimeError: if it has not
    """
    import fastio

    counts = fastio.metrics().patches[patch]
    if counts.calls != 2 or not counts.bytes:
        raise RuntimeError(f"fastio's {patch} has taken {counts.calls} of 2 uploads: {counts.fallbacks}")


def reference(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``socket.sendfile()``."""

    def upload(port: int, path: str, payload: Payload) -> str:
        with open(payload.path, "rb") as file, socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(f"PUT /{path} HTTP/1.1\r\nContent-Length: {payload.size}\r\n\r\n".encode())
            connection.sendfile(file)
            with connection.makefile("rb") as answer:
                return answer.read().partition(b"\r\n\r\n")[2].decode()

    return measured_upload(upload, warmed(random_payload(parameters["size"])))


def serve() -> None:
    """In the server: tell the port, and take uploads until the client ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        # The measured upload, and the one that is checked.
        for _ in range(2):
            connection, _ = listener.accept()
            with connection:
                answer = receive(connection).encode()
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\nConnection: close\r\n\r\n"
                connection.sendall(head.encode() + answer)
        # The answer is read before the end of the process is.
        os.read(0, 1)


def receive(connection: socket.socket) -> str:
    """How many bytes a body has, or their SHA-256."""
    buffer = memoryview(bytearray(MIB))
    data = bytearray()
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, rest = bytes(data).partition(b"\r\n\r\n")
    lines = head.lower().splitlines()
    size = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:"))
    hasher = hashlib.sha256(rest) if b"/hash" in lines[0] else None
    received = len(rest)
    while received < size and (count := connection.recv_into(buffer)):
        received += count
        if hasher is not None:
            hasher.update(buffer[:count])
    return str(received) if hasher is None else hasher.hexdigest()


VARIANTS = variants(run, {"reference-sendfile": reference})

if __name__ == "__main__":
    serve()
