"""Runs in the Python that has glanceclient: one download as a service does it.

``python -m benchmarks.suites.clients.script JSON`` with the ``mode``, ``url``, ``image``, ``path`` (where the image is
written to), ``report`` (a file that gets the figures of the transfer alone, without the imports), ``verify`` and
``cacert``.
"""

import json
import resource
import sys
import time
from typing import Any

from benchmarks.harness import modes


def main(told: dict[str, Any]) -> None:
    # The imports of a service come before the patches.
    modes.enter(modes.MODES[told["mode"]], {}, ("glanceclient", "requests"), ("glanceclient_hashing",))
    import glanceclient

    client = glanceclient.Client("2", told["url"], token="none", cacert=told["cacert"])
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    data = client.images.data(told["image"], do_checksum=told["verify"])
    with open(told["path"], "wb") as file:
        for chunk in data:
            file.write(chunk)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    with open(told["report"], "w") as file:
        json.dump({"transfer_seconds": seconds, "transfer_cpu_seconds": spent}, file)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
