"""What tracing costs: an event, a chunk that is counted, a wait in the hub, and the downloads of a real glance-api.

Parameters:

``count``
    spans that are recorded, chunks that pass, or waits
``seconds``
    downloads follow one another for so long, on a new connection each
``size``
    bytes of an image
``server``
    as in :mod:`benchmarks.suites.glance.workload`
``without``, ``pairs``
    the server that the other one is compared with, and how often

Results: ``event_us``, microseconds of CPU, the writer's included, for each event, chunk or wait; of downloads
``downloads`` and ``server_ms``, milliseconds of the server's CPU for each; of pairs ``times``, how many times as long a
download takes from ``server`` as from the other one, the median of the pairs.
"""

import http.client
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.backends.base import HOST
from benchmarks.harness import statistics
from benchmarks.harness.modes import KIB, MIB
from benchmarks.harness.worker import surroundings
from benchmarks.suites.glance import workload as service

#: Of what is recorded before there is a pause, and its seconds: more than the writer's interval.
BURST = 1000
PAUSE = 0.3


class LostEvents(Exception):
    """Not all of the events were written: what was measured is less than what they cost."""


def _cost(work: Callable[[], int], count: int, traced: bool = True) -> dict[str, Any]:
    """CPU of ``work``, and of the writer until everything is in the file, for each of ``count``."""
    from fastio.trace import recorder, spans

    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as directory:
        if traced:
            recorder.start(directory, recorder.Limits(buffer=1 << 22, file_size=1 << 30, total_size=1 << 40))
            # The file is there, and what a process does once.
            spans.point("benchmark.start", None, {})
            time.sleep(PAUSE)
        found = recorder.active
        start, cpu = time.perf_counter(), time.process_time()
        expected = work()
        recorder.stop()
        cpu = time.process_time() - cpu
        seconds = time.perf_counter() - start
        if found is not None and (found.lost or found.written < expected):
            raise LostEvents(f"{found.lost} of {expected}")
    return {"seconds": seconds, "cpu_seconds": cpu, "bytes": 0, "verified": True, "event_us": cpu / count * 1e6}


def _in_bursts(count: int) -> Iterator[int]:
    """``range(count)`` with the pauses of a service that waits for its clients, in which the writer has its turn.

    Else the events would pile up, and what they cost would be that of a large heap.
    """
    for number in range(count):
        if number % BURST == BURST - 1:
            time.sleep(PAUSE)
        yield number


def spans(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Spans with what an image's have: two events each."""
    from fastio.trace import redaction, spans

    count = parameters["count"]
    store = redaction.name("images")

    def work() -> int:
        for number in _in_bursts(count):
            with spans.begin("store.filesystem.get", store=store) as span:
                span.values.update(bytes=16 * MIB, chunks=number, busy_ns=1_234_567)
        return 2 * count

    with spans.begin("benchmark.outer"):
        return _cost(work, 2 * count)


def points(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Messages that are sent and received: one event each."""
    from fastio.trace import redaction, spans

    count = parameters["count"]
    identity = redaction.request_id("req-5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3")

    def work() -> int:
        for _ in _in_bursts(count):
            spans.point("message.sent", None, {"message": identity})
        return count

    return _cost(work, count)


def requests(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Requests to an application that answers at once: with what the middleware does, by their events."""
    from fastio.trace.wsgi import traced

    count = parameters["count"]
    identity = "req-5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3"

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain"), ("X-OpenStack-Request-ID", identity)])
        return iter((b"answer",))

    def work() -> int:
        watched = traced(application, "benchmark")
        for _ in _in_bursts(count):
            environ = {
                "REQUEST_METHOD": "GET", "PATH_INFO": "/v2/images/5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3/file",
                "REMOTE_ADDR": HOST, "HTTP_X_OPENSTACK_REQUEST_ID": identity,
            }  # fmt: skip
            body: Any = watched(environ, lambda *answer: None)
            for _ in body:
                pass
            body.close()
        return 6 * count

    return _cost(work, 6 * count)


def chunks(parameters: Mapping[str, Any], traced: bool) -> dict[str, Any]:
    """Chunks of 64 KiB that pass from a store to a server, as they do in glance-api."""
    from fastio.trace import spans
    from fastio.trace.streams import Body, Passed, watch

    count = parameters["count"]
    chunk = bytes(64 * KIB)

    def work() -> int:
        data: Any = (chunk for _ in range(count))
        if traced:
            got = watch(data, Passed(spans.begin("store.filesystem.get"), lambda passed, outcome: None))
            data = Body(got, Passed(spans.begin("glance.body"), lambda passed, outcome: None))
        for _ in data:
            pass
        return 0

    return _cost(work, count, traced)


def waits(parameters: Mapping[str, Any], traced: bool) -> dict[str, Any]:
    """Trips through the hub, in a span."""
    import eventlet

    import fastio
    from fastio.trace import recorder, spans

    count = parameters["count"]

    def work() -> int:
        with spans.begin("benchmark.waits"):
            for _ in range(count):
                eventlet.sleep(0)
        return 0

    if not traced:
        return _cost(work, count, False)
    with tempfile.TemporaryDirectory() as directory:
        fastio.patch([], trace=directory, strict=True)
        try:
            # The patch is what is measured here.
            recorder.stop()
            return _cost(work, count)
        finally:
            fastio.unpatch()


def downloads(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One image, again and again, to the end of the time."""
    source, pids = service.server(parameters)
    path = _path(parameters)
    _download(source.port, path)
    with service.measured(parameters, (source.port, source.cheap), pids) as figures:
        done = _downloaded(source.port, path, parameters.get("seconds", 0))
        figures["bytes"] = sum(done)
    verified = set(done) == {parameters["size"]} and _is_right(parameters)
    server_ms = figures["server_cpu_seconds"] / len(done) * 1e3
    return {**figures, "verified": verified, "downloads": len(done), "server_ms": server_ms}


def _path(parameters: Mapping[str, Any]) -> str:
    return f"/v2/images/{surroundings()['prepared']['images'][parameters.get('server') or '']}/file"


def _is_right(parameters: Mapping[str, Any]) -> bool:
    """Whether the server's image is the one that it was given."""
    source, _ = service.server(parameters)
    told = surroundings()["prepared"]
    image = told["images"][parameters.get("server") or ""]
    return bool(service.downloaded_sha512(source.place(image)) == told["multihash"])


def _download(port: int, path: str) -> int:
    """One download, on a connection of its own; returns its bytes."""
    room = bytearray(MIB)
    connection = http.client.HTTPConnection(HOST, port, timeout=service.PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        received = 0
        while count := answer.readinto(room):
            received += count
    finally:
        connection.close()
    return received


def _downloaded(port: int, path: str, seconds: float) -> list[int]:
    """The bytes of downloads one after the other, for so long, but of one at least."""
    done: list[int] = []
    deadline = time.monotonic() + seconds
    while not done or time.monotonic() < deadline:
        done.append(_download(port, path))
    return done


def pairs(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Downloads from two servers in turn, so that both see the same drift of the machine."""
    both = [parameters, {**parameters, "server": parameters["without"]}]
    servers = [service.server(each) for each in both]
    ports, paths = [source.port for source, _ in servers], [_path(each) for each in both]
    for port, path in zip(ports, paths, strict=True):
        _download(port, path)
    source = servers[0][0]
    done: list[int] = []
    times: list[float] = []
    with service.measured(
        parameters, (source.port, source.cheap), [pid for _, pids in servers for pid in pids]
    ) as figures:
        for number in range(parameters["pairs"]):
            took = [0.0, 0.0]
            # Each is first as often as the other.
            for which in (0, 1) if number % 2 else (1, 0):
                # What the writer of the other one has left to do is not to fall into this one's time.
                time.sleep(PAUSE)
                began = time.perf_counter()
                found = _downloaded(ports[which], paths[which], parameters.get("seconds", 0))
                took[which] = (time.perf_counter() - began) / len(found)
                done += found
            times.append(math.log(took[0] / took[1]))
        figures["bytes"] = sum(done)
    verified = set(done) == {parameters["size"]} and all(map(_is_right, both))
    return {**figures, "verified": verified, "downloads": len(done), "times": math.exp(statistics.median(times))}


VARIANTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "spans": spans,
    "points": points,
    "requests": requests,
    "chunks": lambda parameters: chunks(parameters, False),
    "chunks-traced": lambda parameters: chunks(parameters, True),
    "waits": lambda parameters: waits(parameters, False),
    "waits-traced": lambda parameters: waits(parameters, True),
    "downloads": downloads,
    "pairs": pairs,
    "prepare": service.prepare,
}
