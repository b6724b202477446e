"""What an object costs the Python client that gets or puts it, as :mod:`benchmarks.suites.never_slower` does it.

The measured process is the client. The server is the plain one of that suite, another process on the same host. A small
object comes first, so that imports and the connection are not measured. One more, which is not measured, is hashed.

Parameters:

``operation``
    one of :data:`OPERATIONS`
``size``
    bytes of the object
"""

from collections.abc import Mapping
from typing import Any

from benchmarks.harness.modes import KIB, MODES, Mode, choice, variants, warmed
from benchmarks.harness.worker import measure, random_payload
from benchmarks.suites.never_slower import operations, servers

#: Each operation, and what it imports.
OPERATIONS = {"openstacksdk-object": ("openstack",), "swiftclient-put": ("swiftclient",)}
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
    return measured.result(bytes=payload.size, verified=verified)


VARIANTS = variants(run)
