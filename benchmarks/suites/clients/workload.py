"""What an object costs the Python client that gets or puts it, as :mod:`benchmarks.suites.never_slower` does it.

The measured process is the client. The server is the plain one of that suite, another process on the same host. A small
object comes first, so that imports and the connection are not measured. One more, which is not measured, is hashed.

Parameters:

``operation``
    one of :data:`OPERATIONS`
``size``
    bytes of the object
"""

import socket
from collections.abc import Mapping
from typing import Any

from benchmarks.harness.modes import KIB, MODES, Mode, choice, variants, warmed
from benchmarks.harness.worker import measure, random_payload
from benchmarks.suites.never_slower import operations, servers

#: Each operation, and what it imports.
OPERATIONS = {
    "openstacksdk-object": ("openstack",),
    "swiftclient-put": ("swiftclient",),
    "upload-file": ("requests",),
    "upload-memory": ("requests",),
}
#: Patches that have to take the large objects.
PATCHES = {"upload-file": "urllib3_sendfile", "upload-memory": "urllib3_blocks"}
#: Bytes of the object that comes first.
FIRST = 64 * KIB


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    operation = operations.OPERATIONS[choice(parameters, "operation", *OPERATIONS)]
    payload, _ = warmed(random_payload(parameters["size"])), random_payload(FIRST)
    with servers.running("plain", MODES["native-stock"]) as port:
        told = {"url": f"http://127.0.0.1:{port}", "size": payload.size}
        with operation(mode, told) as work:
            work.once(FIRST)
            with measure() as measured:
                count = work.once(payload.size)
            verified = count == payload.size and work.sha256(payload.size) == payload.sha256
    if mode.fast and parameters["operation"] in PATCHES:
        check(PATCHES[parameters["operation"]])
    return measured.result(bytes=payload.size, verified=verified)


def check(patch: str) -> None:
    """Check that the patch has taken both large objects.

    :raises RuntimeError: if it has not
    """
    import fastio

    counts = fastio.metrics().patches[patch]
    if counts.calls < 2 or not counts.bytes:
        raise RuntimeError(f"fastio's {patch} has taken {counts.calls} of 2 uploads: {counts.fallbacks}")


def reference(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``socket.sendfile()`` of a file."""
    payload = warmed(random_payload(parameters["size"]))

    def upload(path: str) -> str:
        with open(payload.path, "rb") as file, socket.create_connection(("127.0.0.1", port)) as connection:
            head = f"PUT /{path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {payload.size}\r\n\r\n"
            connection.sendall(head.encode())
            connection.sendfile(file)
            with connection.makefile("rb") as answer:
                return answer.read().partition(b"\r\n\r\n")[2].decode()

    with servers.running("plain", MODES["native-stock"]) as port:
        with measure() as measured:
            counted = int(upload("count"))
        verified = counted == payload.size and upload("hash") == payload.sha256
    return measured.result(bytes=payload.size, verified=verified)


VARIANTS = variants(run, {"reference-sendfile": reference})
