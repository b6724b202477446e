"""The cost of tracing: a span alone, and the two of a request.

The parameter ``count`` is how many spans or requests are recorded. The result ``span_us`` is microseconds of CPU, those
of writing included, for each span.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.backends.base import HOST
from benchmarks.harness.modes import MIB

#: Of what is recorded before there is a pause, and its seconds.
BURST = 1000
PAUSE = 0.3


class LostSpans(Exception):
    """Not all of the spans were written: what was measured is less than what they cost."""


def _cost(work: Callable[[], object], recorded: int) -> dict[str, Any]:
    """CPU of ``work``, and of the writer until everything is in the file, for each of its spans."""
    from fastio.trace import recorder, spans

    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as directory:
        recorder.start(directory)
        # The file is there, and what a process does once.
        spans.Span("benchmark.start").end()
        time.sleep(PAUSE)
        found = recorder.active
        start, cpu = time.perf_counter(), time.process_time()
        work()
        recorder.stop()
        cpu = time.process_time() - cpu
        seconds = time.perf_counter() - start
        if found is None or found.lost or found.written < recorded:
            raise LostSpans(f"{found and found.lost} of {recorded}")
    return {"seconds": seconds, "cpu_seconds": cpu, "bytes": 0, "verified": True, "span_us": cpu / recorded * 1e6}


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

    def work() -> None:
        for number in _in_bursts(count):
            with spans.begin("store.filesystem.get", store=store) as span:
                span.values.update(bytes=16 * MIB, chunks=number, busy_ns=1_234_567)

    return _cost(work, count)


def requests(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Requests to an application that answers at once, of two spans each: with what the middleware does."""
    from fastio.trace.wsgi import traced

    count = parameters["count"]
    identity = "req-5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3"

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain"), ("X-OpenStack-Request-ID", identity)])
        return iter((b"answer",))

    def work() -> None:
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

    return _cost(work, 2 * count)


VARIANTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"spans": spans, "requests": requests}
