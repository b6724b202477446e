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

import io
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.modes import MODES, Mode, choice, enter, require, variants, warmed
from benchmarks.harness.worker import Payload, measure, random_payload
from benchmarks.suites.never_slower import servers

#: fastio's patches that are measured here, by the body that they are for.
PATCHES = {"file": "urllib3_sendfile", "memory": "urllib3_blocks"}

#: Uploads a file to a port, under a path that says what becomes of it, and returns what the server has found.
Upload = Callable[[int, str, Payload], str]


def measured_upload(upload: Upload, payload: Payload) -> dict[str, Any]:
    with servers.running("plain", MODES["native-stock"]) as port:
        with measure() as measured:
            counted = int(upload(port, "count", payload))
        verified = counted == payload.size and upload(port, "hash", payload) == payload.sha256
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
            head = f"PUT /{path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {payload.size}\r\n\r\n"
            connection.sendall(head.encode())
            connection.sendfile(file)
            with connection.makefile("rb") as answer:
                return answer.read().partition(b"\r\n\r\n")[2].decode()

    return measured_upload(upload, warmed(random_payload(parameters["size"])))


VARIANTS = variants(run, {"reference-sendfile": reference})
