"""eventlet's WSGI server with a large response, and ``sendall()`` of large buffers.

The measured process is the server. Its client is another process, which in the measured pass only counts what it
receives, so that it is the server that is measured; in a second pass it hashes.

Parameters:

``task``
    ``"length"``: a response with Content-Length; ``"chunked"``: one without, in HTTP/1.1 chunks; ``"sendall"``: no
    WSGI, the buffers go straight to ``socket.sendall()``
``size``
    bytes of the response; whole chunks of it
``chunk``
    bytes of each item of the response, or of each buffer; all of them are the same one, as the server would have it
    from its cache
``period``
    seconds between two heartbeats
``settings``
    of fastio

Results: CPU time is the server's alone; ``p99_ms`` and others of a heartbeat greenlet in the server, see
:mod:`benchmarks.suites.fairness.workload`.
"""

import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.harness import http_client
from benchmarks.harness.children import Child
from benchmarks.harness.modes import GREEN, MIB, Mode, check_fast, choice, enter, require, variants
from benchmarks.harness.worker import Payload, digest, measure, random_payload
from benchmarks.suites.fairness.workload import Heartbeat, lateness

TASKS = ("length", "chunked", "sendall")
#: fastio's patches that are measured here.
PATCHES = ("green_sendall",)


class Response(NamedTuple):
    """What the server sends."""

    chunk: bytes
    #: how many chunks
    count: int  # type: ignore[assignment]

    @property
    def size(self) -> int:
        return len(self.chunk) * self.count

    def chunks(self) -> Iterator[bytes]:
        return itertools.repeat(self.chunk, self.count)

    def sha256(self) -> str:
        return digest(self.chunks())


def response_of(payload: Payload, size: int) -> Response:
    return Response(payload.path.read_bytes(), max(1, size // payload.size))


def serve_wsgi(listener: Any, response: Response, with_length: bool) -> None:
    """Respond to every request until the greenlet is killed."""
    from eventlet import wsgi

    headers = [("Content-Type", "application/octet-stream")]
    if with_length:
        headers.append(("Content-Length", str(response.size)))

    def application(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", headers)
        return response.chunks()

    wsgi.server(listener, application, log_output=False)


def serve_sendall(listener: Any, response: Response) -> None:
    """The same without WSGI, and for one client at a time."""
    while True:
        client, _ = listener.accept()
        with client:
            client.recv(65536)
            client.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
            for chunk in response.chunks():
                client.sendall(chunk)


def measure_serving(parameters: Mapping[str, Any]) -> dict[str, Any]:
    import eventlet

    task = choice(parameters, "task", *TASKS)
    payload = random_payload(parameters["chunk"])
    response = response_of(payload, parameters["size"])
    listener = eventlet.listen(("127.0.0.1", 0))
    if task == "sendall":
        server = eventlet.spawn(serve_sendall, listener, response)
    else:
        server = eventlet.spawn(serve_wsgi, listener, response, task == "length")
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    client = Child(__name__, url)
    # It has been started, and its start is not measured.
    client.read()
    period = parameters.get("period", 0.001)
    heartbeat = Heartbeat(period)
    with measure() as measured:
        counted = int(client.ask("count"))
    late = heartbeat.stop()
    verified = counted >= response.size and client.ask("hash") == response.sha256()
    verified &= digest([response.chunk]) == payload.sha256
    client.end()
    server.kill()
    return measured.result(bytes=response.size, verified=verified, **lateness(late, period))


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    enter(mode, parameters)
    from eventlet import wsgi  # noqa: F401 (its patch is applied when it is imported)

    if mode.fast:
        require(*PATCHES)
    result = measure_serving(parameters)
    if parameters["task"] == "sendall":
        # Twice, and without the first buffer.
        check_fast(mode, 2 * (result["bytes"] - parameters["chunk"]))
    return result


def main(arguments: list[str]) -> None:
    """In the client: count the bytes of a response, or hash its content, as it is asked to."""
    (url,) = arguments
    print("ready", flush=True)
    for line in sys.stdin:
        found = http_client.fetched(url, MIB) if line == "count\n" else http_client.fetched_sha256(url)
        print(found, flush=True)


VARIANTS = variants(run, names=GREEN)


if __name__ == "__main__":
    main(sys.argv[1:])
