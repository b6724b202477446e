"""Clients that download or upload slowly at a real glance-api, and what other requests wait for meanwhile.

All clients have begun before the first of the other requests is sent, and are cut off at the end. The others' answers
are waited for: those that only come when the slow clients are gone have waited for at least the rest of the
measurement.

Every byte that is downloaded is compared, and the SHA-512 of one more download, which is not measured, must be glance's
own. Of each upload that has ended, glance's SHA-512 and that of the stored file must be the payload's.

Parameters:

``clients``
    how many there are, each with one image after the other
``rate``
    bytes a second that each of them reads or sends
``size``
    bytes of an image
``ramp``
    seconds in which they start one after the other
``seconds``
    how long other requests are sent; in any case until one transfer has ended
``server``, ``source``, ``chunked``
    as in :mod:`benchmarks.suites.glance.workload`

Results: of the measured time ``bytes``, ``seconds``, the number of transfers that have ended (``transfers``) and of
clients that moved any byte (``served``); of the other requests ``p50_ms``, ``p99_ms``, ``worst_ms`` and their number
(``requests``); ``server_cpu_seconds``, of a proxy in front as well; of uploads ``temporary_mb``, the most that the
temporary files of the server's processes had at a time.
"""

import contextlib
import os
import threading
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness import probes
from benchmarks.harness.modes import warmed
from benchmarks.harness.other_requests import Requests
from benchmarks.harness.slow_clients import Clients, Plan
from benchmarks.harness.worker import digests, random_payload, running, surroundings
from benchmarks.operations.services import Glance, Nginx, downloaded_sha512, sha512

#: Seconds between two looks at temporary files.
LOOK = 0.2


def download(source: Glance | Nginx, pids: list[int], parameters: Mapping[str, Any]) -> dict[str, Any]:
    told = surroundings()["prepared"]
    place = source.place(told["images"][parameters.get("server") or ""])
    plan = Plan(
        source.port, urllib.parse.urlsplit(place).path, str(random_payload(parameters["size"]).path),
        parameters["clients"], parameters["rate"], parameters["ramp"], parameters.get("source", ""),
    )  # fmt: skip
    found, _ = _measured(source, pids, plan, parameters["seconds"])
    return {**found, "verified": downloaded_sha512(place) == told["multihash"]}


def upload(service: Glance | Nginx, pids: list[int], parameters: Mapping[str, Any]) -> dict[str, Any]:
    directory = running(parameters.get("server"))["access"]["temporary"]
    payload = warmed(random_payload(parameters["size"]))
    images = [service.new() for _ in range(_uploads(parameters))]
    plan = Plan(
        service.port, urllib.parse.urlsplit(service.place("{}")).path, str(payload.path), parameters["clients"],
        parameters["rate"], parameters["ramp"], parameters.get("source", ""), images, bool(parameters.get("chunked")),
    )  # fmt: skip
    try:
        with Temporary(directory, pids) as temporary:
            found, complete = _measured(service, pids, plan, parameters["seconds"])
        known = digests(payload).multihash
        verified = all(service.multihash(each) == known == sha512(service.stored(each)) for each in complete)
    finally:
        for image in images:
            # glance may still be giving up one that was cut off.
            with contextlib.suppress(RuntimeError):
                service.delete(image)
    return {**found, "temporary_mb": temporary.most / 1e6, "verified": verified and bool(complete)}


def _uploads(parameters: Mapping[str, Any]) -> int:
    """How many images the clients may want: no client is ahead of its rate by as much as an image."""
    each = parameters["rate"] * (parameters["ramp"] + parameters["seconds"]) / parameters["size"]
    return (int(each) + 2) * int(parameters["clients"])


def _measured(
    source: Glance | Nginx, pids: list[int], plan: Plan, seconds: float
) -> tuple[dict[str, Any], Sequence[str]]:
    """The figures of the clients and of the other requests; and the images that uploads have completed."""
    # A server whose workers are all busy would not answer the first of them.
    with Requests(source.port, source.cheap, at_once=False) as requests, Clients(plan) as clients:
        with probes.measured(pids=pids, waiting=True) as figures:
            requests.begin()
            time.sleep(seconds)
            clients.wait()
            found = clients.stop()
        moved = {"bytes": found["bytes"], "transfers": found["ended"], "served": found["served"]}
        return {**figures, **moved, **requests.stop()}, found["complete"]


class Temporary:
    """The temporary files of a server while the block runs, also those that have no name any more.

    :param directory: where it makes them
    :param pids: its processes
    """

    def __init__(self, directory: str, pids: Sequence[int]) -> None:
        self._directory = f"{directory}/"
        self._pids = pids
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on)
        #: the most bytes that they had at a time
        self.most = 0

    def __enter__(self) -> "Temporary":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._over.wait(LOOK):
            self.most = max(self.most, self.now())

    def now(self) -> int:
        """The bytes that they have."""
        sizes: dict[tuple[int, int], int] = {}
        for pid in self._pids:
            for path in self._open(pid):
                with contextlib.suppress(OSError):
                    if os.readlink(path).startswith(self._directory):
                        found = os.stat(path)
                        sizes[found.st_dev, found.st_ino] = found.st_size
        return sum(sizes.values())

    def _open(self, pid: int) -> list[str]:
        try:
            return [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            return []
