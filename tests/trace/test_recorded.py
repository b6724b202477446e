"""The analysis reads the recorder's files: requests of a WSGI application, recorded and reported."""

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastio.trace import recorder, spans
from fastio.trace.analysis.analysis import Analysis, analyse
from fastio.trace.wsgi import traced

SECRET = "gAAAAABnotforanybody"


@pytest.fixture
def reported(tmp_path: pathlib.Path) -> Iterator[Callable[[], Analysis]]:
    recorder.start(str(tmp_path))

    def reported() -> Analysis:
        recorder.stop()
        return analyse([tmp_path])

    yield reported
    recorder.stop()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
    """Downloads and uploads as glance's application is seen by the recorder."""
    controller = "download" if environ["REQUEST_METHOD"] == "GET" else "upload"
    with spans.begin(f"glance.image_data.{controller}"):
        if controller == "upload":
            with spans.begin("store.filesystem.add"):
                raise OSError(28, "No space left on device", f"/srv/images/{SECRET}")
        spans.begin("store.filesystem.get").end()
    start_response("200 OK", [("X-OpenStack-Request-ID", environ["id"])])
    return iter([b"abc", b"de"])


def call(method: str, number: int, taken: int | None = None) -> None:
    identity = f"req-{number:08x}-6a0c-4f0e-9a42-4ef5b8e0a1c3"
    environ = {"REQUEST_METHOD": method, "PATH_INFO": f"/v2/images/{number}/file", "id": identity}
    try:
        body = traced(application, "glance-api", "glance")(environ, lambda *given: None)
        left = iter(body)
        for _ in range(10 if taken is None else taken):
            next(left, None)
        body.close()
    except OSError:
        pass


def test_requests_that_end_in_every_way(reported: Callable[[], Analysis], tmp_path: pathlib.Path) -> None:
    for number in range(3):
        call("GET", number)
    call("GET", 3, taken=1)
    call("PUT", 4)
    analysis = reported()
    assert analysis.problems == []
    assert [process.component for process in analysis.trace.processes] == ["glance-api"]
    assert [(each.kind.name, each.outcome, each.unexpected) for each in analysis.requests] == [
        *[("download", "ok", [])] * 3, ("download", "aborted", []), ("upload", "failed", [])
    ]  # fmt: skip
    first, aborted, failed = analysis.requests[0], analysis.requests[3], analysis.requests[4]
    assert first.bytes == 5
    assert first.id == "req-00000000-6a0c-4f0e-9a42-4ef5b8e0a1c3"
    assert [stay.state for stay in first.stays] == [
        "middleware", "controller", "store: opening", "serializing", "body", "finishing"
    ]  # fmt: skip
    assert aborted.state == "body"
    assert failed.state == "store: adding"
    assert sorted(analysis.causes.values()) == ["client gone", "disk full"]
    assert all(SECRET not in path.read_text() for path in tmp_path.iterdir())
