"""The middleware: what a server does with the body decides how a request ended."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastio.trace import spans
from fastio.trace.wsgi import traced
from tests.outcome import raising
from tests.trace import traces

ID = "req-5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3"
ASKED = {"method": "GET", "path": "/v2/images"}
OTHER = "req-00000000-6a0c-4f0e-9a42-4ef5b8e0a1c3"


def environ(**more: str) -> dict[str, Any]:
    return {"REQUEST_METHOD": "GET", "PATH_INFO": "/v2/images", "QUERY_STRING": "token=QUERYSECRET", **more}


def answer(status: str, body: Any, *headers: tuple[str, str]) -> Callable[..., Any]:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        start_response(status, list(headers))
        return body

    return application


def call(application: Callable[..., Any], **more: str) -> tuple[Any, list[Any]]:
    answers: list[Any] = []
    body = traced(application, "a-service", "service")(environ(**more), lambda *given: answers.append(given))
    return body, answers


def end(found: list[traces.Span], name: str = "service.request") -> dict[str, Any]:
    (span,) = [span for span in found if span.name == name]
    return span.values


def test_a_list_is_handed_on_unchanged(recorded: Callable[[], list[traces.Span]]) -> None:
    body = [b"abc", b"de"]
    found, answers = call(answer("200 OK", body, ("X-OpenStack-Request-ID", ID)), HTTP_X_OPENSTACK_REQUEST_ID=OTHER)
    assert found is body
    assert answers == [("200 OK", [("X-OpenStack-Request-ID", ID)])]
    found = recorded()
    assert end(found) == {**ASKED, "status": 200, "bytes": 5, "request": ID, "global": OTHER, "outcome": "ok"}
    assert found[0].events == [("message.received", {"message": OTHER}), ("message.sent", {"message": ID})]
    assert found[0].trace == OTHER.removeprefix("req-").replace("-", "")
    assert found[0].resource["service.name"] == "a-service"


def test_a_body_that_is_taken_to_the_end(recorded: Callable[[], list[traces.Span]]) -> None:
    body, _ = call(answer("200 OK", iter([b"abc", b"de"])))
    assert list(body) == [b"abc", b"de"]
    body.close()
    found = recorded()
    assert end(found) == {**ASKED, "status": 200, "bytes": 5, "outcome": "ok"}
    assert end(found, "service.body") == {"bytes": 5, "chunks": 2, "outcome": "ok"}


@pytest.mark.parametrize("leave", ["close", "forget"])
@pytest.mark.parametrize("taken", [0, 1])
def test_a_client_that_leaves(recorded: Callable[[], list[traces.Span]], leave: str, taken: int) -> None:
    body, _ = call(answer("200 OK", iter([b"abc", b"de"])))
    iterator = iter(body)
    for _ in range(taken):
        next(iterator)
    del iterator
    if leave == "close":
        body.close()
    del body
    found = end(recorded())
    assert (found["outcome"], found["bytes"]) == ("aborted", 3 * taken)


def test_the_close_of_the_body_is_called(recorded: Callable[[], list[traces.Span]]) -> None:
    class Body:
        closed = 0

        def __iter__(self) -> Iterator[bytes]:
            yield b"a"

        def close(self) -> None:
            self.closed += 1

    original = Body()
    body, _ = call(answer("200 OK", original))
    assert list(body) == [b"a"]
    body.close()
    assert original.closed == 1
    assert end(recorded())["outcome"] == "ok"


def test_an_error_on_the_way_out(recorded: Callable[[], list[traces.Span]]) -> None:
    def broken() -> Iterator[bytes]:
        yield b"a"
        raise OSError(5, "Input/output error")

    body, _ = call(answer("200 OK", broken()))
    with pytest.raises(OSError):
        list(body)
    body.close()
    found = end(recorded())
    assert (found["outcome"], found["error"]) == ("error", "OSError EIO")


def test_an_application_that_fails(recorded: Callable[[], list[traces.Span]]) -> None:
    error = RuntimeError("password=geheim1")

    with pytest.raises(RuntimeError) as caught:
        call(raising(error))
    assert caught.value is error
    assert end(recorded()) == {**ASKED, "outcome": "error", "error": "RuntimeError"}


def test_a_status_of_an_error(recorded: Callable[[], list[traces.Span]]) -> None:
    call(answer("503 Service Unavailable", [b""]))
    found = end(recorded())
    assert (found["status"], found["outcome"], found["error"]) == (503, "error", "HTTP 503")


def test_one_request_after_another_in_one_greenlet(recorded: Callable[[], list[traces.Span]]) -> None:
    for _ in range(3):
        body, _ = call(answer("200 OK", iter([b"a"])))
        list(body)
        body.close()
        assert spans.current.get() is None
    found = recorded()
    assert [span.parent for span in found if span.name == "service.request"] == [""] * 3


def test_a_body_that_another_request_finds_forgotten(recorded: Callable[[], list[traces.Span]]) -> None:
    """The collector may run anywhere: who runs then keeps its span."""
    body, _ = call(answer("200 OK", iter([b"a"])))
    spans.current.set(None)
    with spans.begin("test.other") as span:
        del body
        assert spans.current.get() is span
    recorded()


def test_off_means_the_application_alone() -> None:
    body = iter([b"a"])
    found, _ = call(answer("200 OK", body))
    assert found is body
