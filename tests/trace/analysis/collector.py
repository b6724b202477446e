"""A collector of OpenTelemetry's: a process that takes spans over HTTP, and keeps what it is sent as it came.

``collector.py FD DIRECTORY ANSWER…`` listens on a socket that is bound already, and answers one request after the other
like this: a status, or a status and seconds of ``Retry-After`` (``503:1``). The last one holds for all that come after.
Each request is a file ``N-STATUS``, which is there once it is answered.
"""

import http.server
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    directory: Path
    answers: list[str]
    done = 0

    def do_POST(self) -> None:
        kind = type(self)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, _, after = kind.answers[min(kind.done, len(kind.answers) - 1)].partition(":")
        if self.path != "/v1/traces" or self.headers["Content-Type"] != "application/x-protobuf":
            status = "404"
        made = self.directory / f"{kind.done}-{status}"
        kind.done += 1
        made.with_suffix(".new").write_bytes(body)
        made.with_suffix(".new").rename(made)
        self.send_response(int(status))
        if after:
            self.send_header("Retry-After", after)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def main(fd: str, directory: str, *answers: str) -> None:
    Handler.directory, Handler.answers = Path(directory), list(answers) or ["200"]
    server = http.server.HTTPServer(("", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=int(fd))
    server.socket.listen()
    server.serve_forever()


class Collector:
    """The process, and what it was sent. Until it is started, connections are refused."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir()
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._process: Any = None

    def start(self, *answers: str) -> None:
        self._socket.listen()
        fd = self._socket.fileno()
        command = [sys.executable, __file__, str(fd), str(self._directory), *answers]
        self._process = subprocess.Popen(command, pass_fds=[fd])

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._socket.close()

    def statuses(self) -> list[int]:
        """What each request was answered."""
        found = [name.partition("-") for name in os.listdir(self._directory) if "." not in name]
        return [int(status) for _, _, status in sorted(found, key=lambda parts: int(parts[0]))]

    def spans(self) -> Iterator[tuple[dict[str, Any], Any]]:
        """The spans that it has taken, each with the attributes of its resource."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        for path in sorted(self._directory.glob("*-200"), key=lambda path: int(path.name.partition("-")[0])):
            for each in ExportTraceServiceRequest.FromString(path.read_bytes()).resource_spans:
                for scope in each.scope_spans:
                    yield from ((attributes(each.resource), span) for span in scope.spans)


def attributes(of: Any) -> dict[str, Any]:
    """Attributes of a message as plain values."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in of.attributes}


if __name__ == "__main__":
    main(*sys.argv[1:])
