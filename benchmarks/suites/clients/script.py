"""Runs in the Python that has glanceclient: one download as a service does it.

``python script.py JSON`` with ``url``, ``image``, ``path`` (where the image is written to) and ``report``
(a file that gets the figures of the transfer alone, without the imports); ``verify``, ``green``, ``fast``; ``cacert``.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


def main(told: dict[str, Any]) -> None:
    work = download(told)
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    work()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    with open(told["report"], "w") as file:
        json.dump({"transfer_seconds": seconds, "transfer_cpu_seconds": spent}, file)


def download(told: dict[str, Any]) -> Callable[[], None]:
    if told["green"]:
        import eventlet

        eventlet.monkey_patch()
    import glanceclient
    import requests  # noqa: F401 (the imports of a service come before the patches)

    if told["fast"]:
        patch()
    client = glanceclient.Client("2", told["url"], token="none", cacert=told["cacert"])

    def work() -> None:
        data = client.images.data(told["image"], do_checksum=told["verify"])
        with open(told["path"], "wb") as file:
            for chunk in data:
                file.write(chunk)

    return work


def patch() -> None:
    """Patch, or fail: stock under the name of fastio would be a wrong result."""
    import fastio

    fastio.patch()
    entries = [entry for entry in fastio.status().entries if entry.name.startswith("glanceclient")]
    if not any(entry.in_effect for entry in entries) or any(entry.left_alone for entry in entries):
        raise RuntimeError(f"fastio's patches are not all in effect for glanceclient:\n{fastio.status()}")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
