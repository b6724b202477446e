"""Clients that download slowly from a real glance-api, and what other requests wait for meanwhile.

The servers are those of :mod:`benchmarks.suites.glance.workload`, and so are their images and the other requests. All
clients have begun before the first of the other requests is sent, and are cut off at the end. The others' answers are
waited for: those that only come when the slow clients are gone have waited for at least the rest of the measurement.

Every byte that comes is compared, and the SHA-512 of one more download, which is not measured, must be glance's own.

Parameters:

``clients``
    how many read slowly, each one image after the other
``rate``
    bytes a second that each of them reads
``size``
    bytes of an image
``ramp``
    seconds in which they start one after the other
``seconds``
    how long other requests are sent; in any case until one download has ended
``server``
    name of the server among those ``beside`` the case's backend; the backend itself by default
``source``
    address that the slow clients come from, instead of the server's own

Results: of the measured time ``bytes``, ``seconds``, the number of downloads that have ended (``transfers``) and of
clients that got any byte (``served``); of the other requests ``p50_ms``, ``p99_ms``, ``worst_ms`` and their number
(``requests``); ``server_cpu_seconds``.
"""

import time
import urllib.parse
from collections.abc import Mapping
from typing import Any

from benchmarks.harness.other_requests import Requests
from benchmarks.harness.worker import measure, random_payload, surroundings
from benchmarks.suites.glance.workload import downloaded_sha512, prepare, server
from benchmarks.suites.slow_clients.readers import Clients, Plan
from benchmarks.suites.stores.workload import server_cpu_seconds


def run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    source, pids = server(parameters)
    told = surroundings()["prepared"]
    place = source.place(told["images"][parameters.get("server") or ""])
    plan = Plan(
        source.port, urllib.parse.urlsplit(place).path, str(random_payload(parameters["size"]).path),
        parameters["clients"], parameters["rate"], parameters["ramp"], parameters.get("source", ""),
    )  # fmt: skip
    # A server whose workers are all busy would not answer the first of them.
    with Requests(source.port, source.cheap, at_once=False) as requests, Clients(plan) as clients:
        before = server_cpu_seconds(pids)
        with measure() as found:
            requests.begin()
            time.sleep(parameters["seconds"])
            clients.wait()
            figures = clients.stop()
        cpu = server_cpu_seconds(pids) - before
        others = requests.stop()
    return {
        "bytes": figures["bytes"], "seconds": found.seconds, "cpu_seconds": found.cpu_seconds,
        "server_cpu_seconds": cpu, "transfers": figures["ended"], "served": figures["served"], **others,
        "verified": downloaded_sha512(place) == told["multihash"],
    }  # fmt: skip


VARIANTS = {"prepare": prepare, "run": run}
