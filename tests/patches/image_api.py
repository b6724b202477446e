"""A server that speaks as much of glance's v2 API as a download takes: an image's record, and its data.

It is tests.stores.http_server, which also breaks off and stalls, and speaks TLS where that is asked for.
"""

import contextlib
import hashlib
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.stores.http_server import Answer, Request, Server, serving


@dataclass
class Image:
    """The server's record of one image."""

    data: bytes
    #: beside the id, the record of the image: by default what glance computes of the data
    record: dict[str, Any] | None = None
    #: of the answer with the data
    headers: dict[str, str] = field(default_factory=dict)
    #: more about that answer, as :class:`Answer` has it
    answer: dict[str, Any] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        if self.record is not None:
            return self.record
        return {
            "checksum": hashlib.md5(self.data).hexdigest(),
            "os_hash_algo": "sha512",
            "os_hash_value": hashlib.sha512(self.data).hexdigest(),
        }


def image_api(
    images: dict[str, Image], context: ssl.SSLContext | None = None
) -> contextlib.AbstractContextManager[Server]:
    """The API on a separate port for the ``with`` block, with TLS if it is given a context."""

    def answer(request: Request) -> Answer:
        _, version, kind, identifier, *rest = request.path.split("?")[0].split("/")
        json_ = {"Content-Type": "application/json"}
        if (version, kind) == ("v2", "schemas"):
            schema = {"name": identifier, "properties": {}, "additionalProperties": {"type": "string"}}
            return Answer(body=json.dumps(schema).encode(), headers=json_)
        image = images.get(identifier)
        if image is None:
            return Answer("404 Not Found", body=b"no such image", headers={"Content-Type": "text/plain"})
        if not rest:
            return Answer(body=json.dumps({"id": identifier, **image.described()}).encode(), headers=json_)
        headers = {"Content-Type": "application/octet-stream", **image.headers}
        return Answer(body=image.data, headers=headers, **image.answer)

    return serving(answer, context)


def client(url: str, **options: Any) -> Any:
    """glanceclient's for ``url``; ``options`` are its session's."""
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
