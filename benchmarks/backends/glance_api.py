"""The calls of glance's API that move data, as a client makes them, and one that breaks off."""

import contextlib
import hashlib
import http.client
import json
import socket
import ssl
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.backends.base import HOST

#: An address of this host that is not the services' own.
ELSEWHERE = "127.0.0.2"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Api:
    """The calls of glance's API that move data, each on a separate connection.

    :param source: the address that they come from, instead of the service's own
    """

    def __init__(self, port: int, timeout: float = 60, tls: ssl.SSLContext | None = None, source: str = "") -> None:
        self._port = port
        self._timeout = timeout
        self._tls = tls
        self._source = (source, 0) if source else None

    def connect(self) -> http.client.HTTPConnection:
        options: dict[str, Any] = {"timeout": self._timeout, "source_address": self._source}
        if self._tls is None:
            return http.client.HTTPConnection(HOST, self._port, **options)
        return http.client.HTTPSConnection(HOST, self._port, context=self._tls, **options)

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        connection = self.connect()
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            try:
                content = response.read()
            except http.client.IncompleteRead as error:
                content = error.partial
            return Answer(response.status, dict(response.getheaders()), content)
        finally:
            connection.close()

    def create(self, **fields: Any) -> str:
        """A new image without data; returns its id."""
        fields = {"name": "image", "disk_format": "raw", "container_format": "bare", **fields}
        answer = self.ask("POST", "/v2/images", json.dumps(fields), {"Content-Type": "application/json"})
        return _said(answer, 201)["id"]

    def upload(self, image: str, data: Any) -> Answer:
        """Give an image its data: bytes with their length, an iterable in chunks."""
        return self.ask("PUT", f"/v2/images/{image}/file", data, {"Content-Type": "application/octet-stream"})

    def stage(self, image: str, data: Any) -> Answer:
        """Give an image its data for ``glance-direct``."""
        return self.ask("PUT", f"/v2/images/{image}/stage", data, {"Content-Type": "application/octet-stream"})

    def import_image(self, image: str, method: Mapping[str, str], stores: Sequence[str], **fields: Any) -> Answer:
        """Have glance import an image into ``stores``; it goes on after the answer."""
        body = json.dumps({"method": method, "stores": stores, **fields})
        return self.ask("POST", f"/v2/images/{image}/import", body, {"Content-Type": "application/json"})

    def imported(self, image: str, look: float = 0.05) -> dict[str, Any]:
        """The task of an image's import, once glance does not work on it any more.

        :param look: seconds between two looks at it
        """
        deadline = time.monotonic() + self._timeout
        while True:
            tasks = json.loads(self.ask("GET", f"/v2/images/{image}/tasks").body)["tasks"]
            # A failed one gives the image back after it has reported that.
            if tasks[-1]["status"] in ("success", "failure") and "os_glance_import_task" not in self.show(image):
                return tasks[-1]
            assert time.monotonic() < deadline, tasks
            time.sleep(look)

    def make(self, data: bytes) -> str:
        """A new image with data; returns its id."""
        image = self.create()
        answer = self.upload(image, data)
        assert answer.status == 204, answer
        return image

    def download(self, image: str, **headers: str) -> Answer:
        return self.ask("GET", f"/v2/images/{image}/file", headers=headers)

    def show(self, image: str) -> dict[str, Any]:
        return _said(self.ask("GET", f"/v2/images/{image}"), 200)

    def delete(self, image: str) -> int:
        return self.ask("DELETE", f"/v2/images/{image}").status

    @contextlib.contextmanager
    def started_download(
        self, image: str, receive_buffer: int = 65536, headers: Mapping[str, str] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """A download whose headers alone have been read, with a small receive buffer."""
        with socket.socket() as sock:
            sock.settimeout(self._timeout)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            if self._source:
                sock.bind(self._source)
            sock.connect((HOST, self._port))
            lines = {"Host": HOST, "Connection": "close", **(headers or {})}
            head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            sock.sendall(f"GET /v2/images/{image}/file HTTP/1.1\r\n{head}\r\n".encode())
            response = http.client.HTTPResponse(sock)
            response.begin()
            with response:
                yield response

    def abort_download(self, image: str, after: int) -> None:
        """Read ``after`` bytes of an image's data and reset the connection."""
        with self.started_download(image) as response:
            left = after
            while left:
                data = response.read(min(left, 65536))
                if not data:
                    raise http.client.IncompleteRead(b"", left)
                left -= len(data)
            reset(response)

    @contextlib.contextmanager
    def started_upload(self, image: str, data: bytes, announced: int | None = None) -> Iterator[socket.socket]:
        """An upload whose head and first ``data`` have been sent, of ``announced`` bytes, or chunked."""
        with socket.create_connection((HOST, self._port), timeout=self._timeout) as sock:
            length = "Transfer-Encoding: chunked" if announced is None else f"Content-Length: {announced}"
            lines = [f"Host: {HOST}", "Connection: close", "Content-Type: application/octet-stream", length]
            head = "\r\n".join([f"PUT /v2/images/{image}/file HTTP/1.1", *lines, "\r\n"])
            sock.sendall(head.encode() + data)
            yield sock

    def abort_upload(self, image: str, data: bytes, announced: int) -> None:
        """Send ``data`` of ``announced`` bytes and reset the connection."""
        with self.started_upload(image, data, announced) as sock:
            # The service is then in the middle of it, and not still waiting for the first byte.
            time.sleep(0.3)
            reset_at_close(sock)


def _said(answer: Answer, status: int) -> Any:
    """Return the content of an answer; raises RuntimeError if it has another status."""
    if answer.status != status:
        raise RuntimeError(f"status {answer.status}, not {status}: {answer.body[:300]!r}")
    return json.loads(answer.body)


def reset(response: http.client.HTTPResponse) -> None:
    """Have the connection of a response reset, rather than ended, when it is closed."""
    reset_at_close(response.fp.raw._sock)  # type: ignore[attr-defined]


def reset_at_close(sock: socket.socket) -> None:
    """Have a connection reset, rather than ended, when it is closed."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def sha512(data: bytes | bytearray) -> str:
    return hashlib.sha512(data).hexdigest()
