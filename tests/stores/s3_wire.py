"""boto3's requests to the S3 server, seen where they leave botocore."""

import io
import threading
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.outcome import as_upstream, outcome

PART = 5 << 20

#: The smallest parts that glance_store allows, MiB, for every image.
MULTIPART = {"s3_store_large_object_size": 0, "s3_store_large_object_chunk_size": 5}


class Request(NamedTuple):
    method: str
    path: str
    #: without the id of the upload, which is new each time
    query: tuple[tuple[str, str], ...]
    #: bytes of the body
    length: int

    @property
    def part(self) -> int:
        """The number of the part that is sent, 0 if it is none."""
        return int(dict(self.query).get("partNumber", 0))

    @property
    def creates_bucket(self) -> bool:
        return self.method == "PUT" and self.path.count("/") == 1

    @property
    def aborts(self) -> bool:
        """Whether a multipart upload is given up."""
        return self.method == "DELETE" and ("uploadId", "") in self.query


class Wire:
    """The requests of this process to S3 servers, in the order in which they are sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from botocore.httpsession import URLLib3Session

        self.requests: list[Request] = []
        #: called with each request; what it returns is the server's answer, unless it is None
        self.answer: Callable[[Request], Any] = lambda request: None
        send = URLLib3Session.send

        def recorded(session: Any, request: Any) -> Any:
            url = urlsplit(request.url)
            pairs = parse_qsl(url.query, keep_blank_values=True)
            query = tuple(sorted((name, "" if name == "uploadId" else value) for name, value in pairs))
            seen = Request(request.method, url.path, query, int(request.headers.get("Content-Length", 0)))
            self.requests.append(seen)
            answer = self.answer(seen)
            return send(session, request) if answer is None else answer

        monkeypatch.setattr(URLLib3Session, "send", recorded)

    def take(self) -> list[Request]:
        """The requests so far, forgotten.

        Parts come last, in the order of their numbers: they are sent by several threads, and an upload may be given up
        before its first part is on its way. The creation of the bucket, by whoever comes first, is left out.
        """
        taken, self.requests = self.requests, []
        parts = sorted((request for request in taken if request.part), key=lambda request: request.part)
        return [request for request in taken if not request.part and not request.creates_bucket] + parts


def refusal(status: int, code: str) -> Any:
    """A server's answer that is an error."""
    from botocore.awsrequest import AWSResponse

    body = f"<Error><Code>{code}</Code><Message>refused by the test</Message></Error>".encode()
    answer = AWSResponse("http://127.0.0.1/", status, {}, io.BytesIO(body))
    answer._content = body
    return answer


def same(patch: str, store: Any, wire: Wire, call: Callable[[Any], Any], **settings: Any) -> Any:
    """Assert that ``call(store)`` comes to the same, also on the wire, with and without the patch; stock's outcome."""

    def go() -> Any:
        wire.take()
        return outcome(lambda: call(store)), wire.take()

    return as_upstream(go, patch, strict=True, **settings)


class Gate:
    """Holds whoever passes until it is opened, and counts them."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self.arrived = 0

    def open(self) -> None:
        self._open.set()

    def hold(self) -> None:
        self.arrived += 1
        if not self._open.wait(60):
            raise AssertionError("the gate was not opened")
