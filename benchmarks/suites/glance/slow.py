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
(``requests``); ``server_cpu_seconds``, of a proxy in front as well, and the largest resident memory of one of the
server's processes (``rss_mib``).
"""

import contextlib
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness import probes
from benchmarks.harness.modes import MIB, warmed
from benchmarks.harness.other_requests import Requests
from benchmarks.harness.slow_clients import Clients, Plan
from benchmarks.harness.worker import digests, peak, random_payload, reset_peak, surroundings
from benchmarks.operations.services import Glance, Nginx, downloaded_sha512, sha512


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
    payload = warmed(random_payload(parameters["size"]))
    images = [service.new() for _ in range(_uploads(parameters))]
    plan = Plan(
        service.port, urllib.parse.urlsplit(service.place("{}")).path, str(payload.path), parameters["clients"],
        parameters["rate"], parameters["ramp"], parameters.get("source", ""), images, bool(parameters.get("chunked")),
    )  # fmt: skip
    try:
        found, complete = _measured(service, pids, plan, parameters["seconds"])
        known = digests(payload).multihash
        verified = all(service.multihash(each) == known == sha512(service.stored(each)) for each in complete)
    finally:
        for image in images:
            # glance may still be giving up one that was cut off.
            with contextlib.suppress(RuntimeError):
                service.delete(image)
    return {**found, "verified": verified and bool(complete)}


def _uploads(parameters: Mapping[str, Any]) -> int:
    """How many images the clients may want: no client is ahead of its rate by as much as an image."""
    each = parameters["rate"] * (parameters["ramp"] + parameters["seconds"]) / parameters["size"]
    return (int(each) + 2) * int(parameters["clients"])


def _measured(
    source: Glance | Nginx, pids: list[int], plan: Plan, seconds: float
) -> tuple[dict[str, Any], Sequence[str]]:
    """The figures of the clients and of the other requests; and the images that uploads have completed."""
    # A server whose workers are all busy would not answer the first of them.
    for pid in pids:
        reset_peak(pid)
    with Requests(source.port, source.cheap, at_once=False) as requests, Clients(plan) as clients:
        with probes.measured(pids=pids, waiting=True) as figures:
            requests.begin()
            time.sleep(seconds)
            clients.wait()
            found = clients.stop()
        moved = {"bytes": found["bytes"], "transfers": found["ended"], "served": found["served"]}
        memory = {"rss_mib": max(map(peak, pids)) / MIB}
        return {**figures, **moved, **memory, **requests.stop()}, found["complete"]
