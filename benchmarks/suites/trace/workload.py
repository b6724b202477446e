"""What tracing costs: a span, a chunk that is counted, a wait in the hub, and the downloads of a real glance-api.

Parameters:

``count``
    spans or requests that are recorded, chunks that pass, or waits
``size``
    bytes of an image
``server``
    as in :mod:`benchmarks.suites.glance.workload`
``pairs``
    how often the two are compared

Results: ``span_us``, microseconds of CPU, those of writing included, for each span, chunk or wait. Of pairs: ``times``,
how many times as long downloads take with a trace as without, and ``cost_us``, how many microseconds longer one takes,
both the median; ``server_ms``, milliseconds of the server's CPU for a download.
"""

import contextlib
import http.client
import math
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.backends.base import HOST
from benchmarks.harness import statistics
from benchmarks.harness.modes import KIB, MIB
from benchmarks.harness.worker import surroundings
from benchmarks.operations.services import PATIENCE, downloaded_sha512
from benchmarks.suites.glance import workload as service

#: Of what is recorded before there is a pause, and its seconds.
BURST = 1000
PAUSE = 0.3
#: Downloads that count on each side of a pair: few, since the machine's speed drifts within tenths of a second.
BLOCK = 2


class LostSpans(Exception):
    """Not all of the spans were written: what was measured is less than what they cost."""


def _cost(work: Callable[[], int], count: int, traced: bool = True) -> dict[str, Any]:
    """CPU of ``work``, and of the writer until everything is in the file, for each of ``count``."""
    from fastio.trace import recorder, spans

    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as directory:
        if traced:
            recorder.start(directory)
            # The file is there, and what a process does once.
            spans.Span("benchmark.start").end()
            time.sleep(PAUSE)
        found = recorder.active
        start, cpu = time.perf_counter(), time.process_time()
        expected = work()
        recorder.stop()
        cpu = time.process_time() - cpu
        seconds = time.perf_counter() - start
        if found is not None and (found.lost or found.written < expected):
            raise LostSpans(f"{found.lost} of {expected}")
    return {"seconds": seconds, "cpu_seconds": cpu, "bytes": 0, "verified": True, "span_us": cpu / count * 1e6}


def _in_bursts(count: int) -> Iterator[int]:
    """``range(count)`` with the pauses of a service that waits for its clients, in which the lines are written."""
    for number in range(count):
        if number % BURST == BURST - 1:
            time.sleep(PAUSE)
        yield number


def spans(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Spans with what an image's have."""
    from fastio.trace import spans, values

    count = parameters["count"]
    store = values.name("images")

    def work() -> int:
        for number in _in_bursts(count):
            with spans.begin("store.filesystem.get", store=store) as span:
                span.values.update(bytes=16 * MIB, chunks=number, busy_ns=1_234_567)
        return count

    return _cost(work, count)


def requests(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Requests to an application that answers at once, of two spans each: with what the middleware does."""
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
        return 2 * count

    return _cost(work, 2 * count)


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


def _path(parameters: Mapping[str, Any]) -> str:
    return f"/v2/images/{surroundings()['prepared']['images'][parameters.get('server') or '']}/file"


def _is_right(parameters: Mapping[str, Any]) -> bool:
    """Whether the server's image is the one that it was given."""
    source, _ = service.server(parameters)
    told = surroundings()["prepared"]
    image = told["images"][parameters.get("server") or ""]
    return bool(downloaded_sha512(source.place(image)) == told["multihash"])


def _download(port: int, path: str, traced: bool) -> int:
    """One download, on a connection of its own; returns its bytes. Unless ``traced``, it asks not to be recorded."""
    room = bytearray(MIB)
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers={} if traced else {"X-Trace": "off"})
        answer = connection.getresponse()
        received = 0
        while count := answer.readinto(room):
            received += count
    finally:
        connection.close()
    return received


def pairs(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Downloads with and without a trace in turn, from the same process: both see the same drift of the machine.

    Client and server each have a processor of their own, where there are two. Else the times have two modes, by where
    the kernel puts the two. The first download of each block does not count, because what a server does after the last
    byte of one falls into the next. What the writer does falls into both.
    """
    source, pids = service.server(parameters)
    path = _path(parameters)
    done: list[int] = []
    times: list[float] = []
    longer: list[float] = []
    # Each side is first as often as the other, but at random: turns could keep in step with the writer's interval.
    firsts = [number % 2 == 0 for number in range(parameters["pairs"])]
    random.shuffle(firsts)
    with _apart(pids), service.measured(parameters, (source.port, source.cheap), pids) as figures:
        for first in firsts:
            took = {}
            for traced in (first, not first):
                done.append(_download(source.port, path, traced))
                began = time.perf_counter()
                done += [_download(source.port, path, traced) for _ in range(BLOCK)]
                took[traced] = time.perf_counter() - began
            times.append(math.log(took[True] / took[False]))
            longer.append((took[True] - took[False]) / BLOCK)
        figures["bytes"] = sum(done)
    return {
        **figures, "verified": set(done) == {parameters["size"]} and _is_right(parameters), "downloads": len(done),
        "times": math.exp(statistics.median(times)), "cost_us": statistics.median(longer) * 1e6,
        "server_ms": figures["server_cpu_seconds"] / len(done) * 1e3,
    }  # fmt: skip


@contextlib.contextmanager
def _apart(pids: Sequence[int]) -> Iterator[None]:
    """This thread on one processor, and all threads of these processes on another, if there are two."""
    before = os.sched_getaffinity(0)
    if len(before) > 1:
        first, second, *_ = sorted(before)
        os.sched_setaffinity(0, {first})
        for pid in pids:
            for thread in os.listdir(f"/proc/{pid}/task"):
                # It may have ended meanwhile.
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(int(thread), {second})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


VARIANTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "spans": spans,
    "requests": requests,
    "chunks": lambda parameters: chunks(parameters, False),
    "chunks-traced": lambda parameters: chunks(parameters, True),
    "waits": lambda parameters: waits(parameters, False),
    "waits-traced": lambda parameters: waits(parameters, True),
    "pairs": pairs,
    "prepare": service.prepare,
}
