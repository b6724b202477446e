"""The requests of glanceclient, against a real HTTP server in a thread."""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

import fastio
from tests.stores.http_server import Answer, Request, Server, serving
from tests.trace import traces

http = pytest.importorskip("glanceclient.common.http", reason="the client needs python-glanceclient")

ANSWERED = "req-5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3"
OWN = "req-00000000-6a0c-4f0e-9a42-4ef5b8e0a1c3"
DATA = bytes(range(256)) * 10_000


@pytest.fixture
def server() -> Iterator[Server]:
    def answer(request: Request) -> Answer:
        headers = {"X-OpenStack-Request-ID": ANSWERED}
        if request.path.startswith("/v2/none"):
            return Answer("404 Not Found", {**headers, "Content-Type": "text/plain"}, b"nothing is here")
        return Answer(headers={**headers, "Content-Type": "application/octet-stream"}, body=DATA)

    with serving(answer) as server:
        yield server


def client(server: Any, **more: Any) -> Any:
    return http.HTTPClient(server.url, token="TOKENSECRET", **more)


@pytest.mark.parametrize("own", [None, OWN])
def test_a_download_has_one_span_of_the_client(server: Any, tmp_path: pathlib.Path, own: str | None) -> None:
    with fastio.patched([], trace=str(tmp_path)):
        _, body = client(server, global_request_id=own).get("/v2/images/a/file?token=QUERYSECRET")
        assert b"".join(body) == DATA
    (span,) = traces.spans(tmp_path)
    (end,) = traces.ends(tmp_path, "client.request")
    assert (end["status"], end["outcome"], end["bytes"], end["request"]) == (200, "ok", len(DATA), ANSWERED)
    assert (end["method"], end["path"]) == ("GET", "/v2/images/{id}/file")
    (request,) = server.requests
    # The one of the caller, or one that was made.
    assert request.headers["x-openstack-request-id"] == end["global"]
    assert own in (None, end["global"])
    assert span.events == [("message.sent", {"message": end["global"]}), ("message.received", {"message": ANSWERED})]
    assert span.resource["service.name"] == "client"
    for path in tmp_path.iterdir():
        assert "SECRET" not in path.read_text()


def test_a_request_that_fails(server: Any, tmp_path: pathlib.Path) -> None:
    with fastio.patched([], trace=str(tmp_path)), pytest.raises(Exception, match="nothing is here"):
        client(server).get("/v2/none")
    (end,) = traces.ends(tmp_path, "client.request")
    assert (end["status"], end["outcome"]) == (404, "error")
    assert end["error"] == "glanceclient.exc.HTTPNotFound HTTP 404"


def test_no_listener(server: Any, tmp_path: pathlib.Path) -> None:
    with fastio.patched([], trace=str(tmp_path)), pytest.raises(Exception, match="finding address"):
        http.HTTPClient("http://127.0.0.1:1").get("/v2/images")
    (end,) = traces.ends(tmp_path, "client.request")
    assert end["outcome"] == "error"
    assert end["error"].startswith("glanceclient.exc.CommunicationError")
    assert end["error"].endswith("ConnectionRefusedError ECONNREFUSED")


def test_a_download_that_is_given_up(server: Any, tmp_path: pathlib.Path) -> None:
    with fastio.patched([], trace=str(tmp_path)):
        _, body = client(server).get("/v2/images/a/file")
        next(body)
        del body
    (end,) = traces.ends(tmp_path, "client.request")
    assert end["outcome"] == "aborted"


@pytest.mark.parametrize("names", [[], None])
def test_headers_are_otherwise_the_same(server: Any, tmp_path: pathlib.Path, names: Any) -> None:
    given = {"X-Custom": "1"}
    for trace in (False, True):
        given_trace: dict[str, Any] = {"trace": str(tmp_path)} if trace else {}
        with fastio.patched(names, **given_trace):
            _, body = client(server).get("/v2/images/a/file", headers=given)
            assert b"".join(body) == DATA
    stock, traced = (request.headers for request in server.requests)
    assert given == {"X-Custom": "1"}
    assert traced.pop("x-openstack-request-id").startswith("req-")
    assert stock == traced
