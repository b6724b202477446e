"""A server that speaks as much of glance's v2 API as a download takes: an image's record, and its data.

It is tests.stores.http_server, which also breaks off and stalls, here with TLS where that is asked for.
"""

import contextlib
import hashlib
import json
import random
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.stores.http_server import Answer, Request, Server


def content(size: int) -> bytes:
    return random.Random(size).randbytes(size)


@dataclass
class Image:
    """What the server has of one image."""

    data: bytes
    #: beside the id, the record of the image: by default what glance computes of the data
    record: dict[str, Any] | None = None
    #: of the answer with the data
    headers: dict[str, str] = field(default_factory=dict)
    #: more about that answer, as :class:`Answer` has it
    answer: dict[str, Any] = field(default_factory=dict)
    #: bytes of each chunk of a chunked encoding; 0 for a body of known length
    chunked: int = 0

    def described(self) -> dict[str, Any]:
        if self.record is not None:
            return self.record
        return {
            "checksum": hashlib.md5(self.data).hexdigest(),
            "os_hash_algo": "sha512",
            "os_hash_value": hashlib.sha512(self.data).hexdigest(),
        }


class ImageServer(Server):
    """The API on a port of its own, with TLS if it is given a context."""

    def __init__(self, images: dict[str, Image], context: ssl.SSLContext | None = None) -> None:
        self._images = images
        self._context = context
        super().__init__(self._answer_of)
        if context is not None:
            self.url = self.url.replace("http:", "https:")

    def _answer_of(self, request: Request) -> Answer:
        _, version, kind, identifier, *rest = request.path.split("?")[0].split("/")
        if (version, kind) == ("v2", "schemas"):
            schema = {"name": identifier, "properties": {}, "additionalProperties": {"type": "string"}}
            return Answer(body=json.dumps(schema).encode(), headers={"Content-Type": "application/json"})
        image = self._images.get(identifier)
        if image is None:
            return Answer("404 Not Found", body=b"no such image", headers={"Content-Type": "text/plain"})
        if not rest:
            record = {"id": identifier, **image.described()}
            return Answer(body=json.dumps(record).encode(), headers={"Content-Type": "application/json"})
        headers = {"Content-Type": "application/octet-stream", **image.headers}
        return Answer(body=image.data, headers=headers, **image.answer)

    def _serve(self, connection: socket.socket, number: int) -> None:
        if self._context is not None:
            try:
                connection = self._context.wrap_socket(connection, server_side=True)
            except OSError:
                connection.close()
                return
            # The one that was accepted has given its descriptor to this one, which is to be shut down at the end.
            self._connections[number] = connection
        super()._serve(connection, number)

    def _send(self, connection: socket.socket, request: Request, answer: Answer) -> bool:
        image = self._images.get(request.path.split("/")[3])
        if image is None or not image.chunked or not request.path.endswith("/file"):
            return super()._send(connection, request, answer)
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        for start in range(0, len(image.data), image.chunked):
            piece = image.data[start : start + image.chunked]
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        connection.sendall(b"0\r\n\r\n")
        return True


@contextlib.contextmanager
def image_api(images: dict[str, Image], context: ssl.SSLContext | None = None) -> Iterator[ImageServer]:
    """The server for the ``with`` block."""
    server = ImageServer(images, context)
    try:
        yield server
    finally:
        server.close()


def client(url: str, **options: Any) -> Any:
    """glanceclient's for ``url``; ``options`` are those of its own session."""
    from glanceclient.v2 import client as v2

    return v2.Client(url, token="token", **options)


def outcome(download: Callable[[], Any]) -> Any:
    """The sizes and the data of the chunks of a download, and how it ends."""
    found: list[bytes] = []
    try:
        for chunk in download():
            found.append(chunk)
    except Exception as error:
        return [len(each) for each in found], b"".join(found), type(error), str(error)
    return [len(each) for each in found], b"".join(found), None, None
