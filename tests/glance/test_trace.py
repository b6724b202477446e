"""A traced glance-api: what the files have of downloads, uploads and failures, without secrets."""

import functools
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.backends.base import HOST
from benchmarks.backends.glance import RELEASES, Service
from benchmarks.backends.glance_api import Api
from tests.eventually import until
from tests.glance.sending import start_sending
from tests.glance.usable import usable
from tests.trace import traces

SIZE = 3 << 20
SECRETS = {"X-Auth-Token": "HEADERSECRET1", "Cookie": "session=HEADERSECRET2"}


@pytest.fixture(scope="module", params=sorted(RELEASES))
def release(request: pytest.FixtureRequest) -> type[Service]:
    return usable(request.param)


@pytest.fixture(scope="module", params=["off", "on"], ids=["stock", "fastio"])
def service(request: pytest.FixtureRequest, release: type[Service]) -> Iterator[Service]:
    with release(fastio=request.param, trace="on") as running:
        yield running


@pytest.fixture
def api(service: Service) -> Api:
    return Api(service.http_port)


def the_one(service: Service, answer: Any) -> traces.Span:
    """The request that was answered so."""
    headers = {name.lower(): value for name, value in answer.headers.items()}
    identity = headers["x-openstack-request-id"]

    def found() -> list[traces.Span]:
        of = [span for span in traces.spans(service.traces) if span.name == "glance.request"]
        return [span for span in of if span.values.get("request") == identity]

    (span,) = until(found)
    return span


class Image(NamedTuple):
    id: str
    content: bytes
    #: to the upload, and what that had as its global id
    answer: Any
    identity: str


@pytest.fixture
def image(api: Api) -> Image:
    content = os.urandom(SIZE)
    image = api.create(name="traced")
    identity = f"req-{uuid.uuid4()}"
    headers = {"Content-Type": "application/octet-stream", "X-OpenStack-Request-ID": identity, **SECRETS}
    answer = api.ask("PUT", f"/v2/images/{image}/file?token=QUERYSECRET", content, headers)
    assert answer.status == 204
    return Image(image, content, answer, identity)


def within(service: Service, request: traces.Span) -> dict[str, dict[str, Any]]:
    """The values of the spans in the request, by name."""
    return {span.name: span.values for span in traces.spans(service.traces) if span.trace == request.trace}


def test_an_upload(service: Service, image: Image) -> None:
    request = the_one(service, image.answer)
    end = request.values
    assert (end["status"], end["outcome"], end["global"]) == (204, "ok", image.identity)
    assert (end["method"], end["path"]) == ("PUT", "/v2/images/{id}/file")
    assert request.trace == image.identity.removeprefix("req-").replace("-", "")
    spans = within(service, request)
    assert spans["store.filesystem.add"]["bytes"] == SIZE
    assert spans["store.filesystem.add"]["outcome"] == "ok"
    assert spans["store.filesystem.add"]["input_ns"] > 0
    assert spans["glance.image_data.upload"]["outcome"] == "ok"


def test_a_download_has_the_spans_of_its_states(service: Service, api: Api, image: Image) -> None:
    answer = api.ask("GET", f"/v2/images/{image.id}/file")
    assert answer.body == image.content
    request = the_one(service, answer)
    assert (request.values["status"], request.values["outcome"], request.values["bytes"]) == (200, "ok", SIZE)
    spans = within(service, request)
    assert spans["store.filesystem.get"]["bytes"] == spans["glance.body"]["bytes"] == SIZE
    assert spans["store.filesystem.get"]["chunks"] >= 1
    assert spans["store.filesystem.get"]["busy_ns"] > 0
    assert spans["glance.image_data.download"]["outcome"] == "ok"


def test_a_part_of_an_image(service: Service, api: Api, image: Image) -> None:
    answer = api.ask("GET", f"/v2/images/{image.id}/file", headers={"Range": "bytes=1000-1999999"})
    assert (answer.status, answer.body) == (206, image.content[1000:2_000_000])
    end = the_one(service, answer).values
    assert (end["status"], end["outcome"], end["bytes"]) == (206, "ok", 1_999_000)


def test_an_image_that_is_not_there(service: Service, api: Api) -> None:
    answer = api.ask("GET", "/v2/images/00000000-1111-4222-8333-444444444444")
    assert answer.status == 404
    end = the_one(service, answer).values
    assert (end["status"], end["outcome"]) == (404, "error")
    assert "ImageNotFound" in end["error"]


def test_data_that_is_not_there(service: Service, api: Api, image: Image) -> None:
    (service.images / image.id).unlink()
    answer = api.ask("GET", f"/v2/images/{image.id}/file")
    request = the_one(service, answer)
    assert request.values["status"] == answer.status
    assert "NotFound" in (request.values.get("error") or request.values["recovered"])
    get = within(service, request)["store.filesystem.get"]
    assert (get["outcome"], get["error"].partition(" ")[0]) == ("error", "glance_store.exceptions.NotFound")


def test_deleting(service: Service, api: Api, image: Image) -> None:
    answer = api.ask("DELETE", f"/v2/images/{image.id}")
    assert answer.status == 204
    assert within(service, the_one(service, answer))["store.filesystem.delete"]["outcome"] == "ok"


def test_spans_are_whole_and_nothing_is_secret(service: Service, image: Image) -> None:
    the_one(service, image.answer)
    found = traces.spans(service.traces)
    traces.well_formed(found)
    assert all("SECRET" not in path.read_text() for path in traces.files(service.traces))
    assert {"glance-api"} == {span.resource["service.name"] for span in found if span.name.startswith("glance.")}
    if service.name == "glance-32":
        assert any(span.values.get("waits") for span in found)


@pytest.mark.parametrize("flavor", ["", "caching"])
def test_the_kernel_still_sends_the_file(serve: Callable[..., Service], tmp_path: Path, flavor: str) -> None:
    """The proxies of a store's data, and of a body, do not hide the file from ``glance_sendfile``."""
    data = os.urandom(5 << 20)
    sending = start_sending(serve, tmp_path, "glance-32", "patched", flavor, trace="on")
    image = sending.api.make(data)
    service = sending.service
    for number in range(2):
        before = len(bodies(service))
        answer, sent = sending.sent_by(lambda: sending.api.download(image))
        assert answer.body == data
        # The first chunk goes out with the headers. An image that goes to the cache has to be read.
        assert sent == ({} if flavor and not number else {"mapped": len(data) - (1 << 20)})
        assert until(functools.partial(since, service, before)) == [len(data)]


def bodies(service: Service) -> list[int]:
    """Bytes of each download."""
    return [end["bytes"] for end in traces.ends(service.traces, "glance.request") if "bytes" in end
            and (end["method"], end["path"]) == ("GET", "/v2/images/{id}/file")]  # fmt: skip


def since(service: Service, before: int) -> list[int]:
    """The same, of those after so many."""
    return bodies(service)[before:]


def test_every_worker_has_a_file(release: type[Service]) -> None:
    with release(fastio="on", trace="on", workers=2) as running:
        api = Api(running.http_port)

        def workers() -> set[int]:
            assert api.ask("GET", f"http://{HOST}/v2/schemas/image").status == 200
            return {span.resource["process.pid"] for span in traces.spans(running.traces) if "glance." in span.name}

        found = until(lambda: workers() if len(workers()) == 2 else None)
        assert found <= set(running.pids())
