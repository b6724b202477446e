"""A traced glance-api: what the files tell of downloads, uploads, failures and clients that leave, without secrets."""

import contextlib
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.backends.base import HOST
from benchmarks.backends.glance_api import Api
from benchmarks.backends.glance_service import RELEASES, Service
from tests.conftest import MONKEY_PATCHED
from tests.eventually import until
from tests.glance.sending import start_sending
from tests.glance.usable import usable
from tests.trace import traces

pytestmark = pytest.mark.skipif(MONKEY_PATCHED, reason="the services are processes of their own")

SIZE = 3 << 20
GLOBAL = "req-11111111-2222-4333-8444-555555555555"
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


def requests(service: Service, identity: str) -> list[dict[str, Any]]:
    """The ends of the requests whose path has ``identity``."""
    return [end for end in traces.ends(service.traces, "glance.request", writing=True) if identity in end["path"]]


def so_far(service: Service) -> list[traces.File]:
    """The files of a service that runs."""
    return traces.read(service.traces, writing=True)


def the_one(service: Service, identity: str, method: str, number: int = 0) -> dict[str, Any]:
    return until(lambda: [end for end in requests(service, identity) if end["method"] == method][number:])[0]


@pytest.fixture
def image(api: Api) -> Iterator[tuple[str, bytes]]:
    content = os.urandom(SIZE)
    identity = api.create(name="traced")
    headers = {"Content-Type": "application/octet-stream", "X-OpenStack-Request-ID": GLOBAL, **SECRETS}
    assert api.ask("PUT", f"/v2/images/{identity}/file?token=QUERYSECRET", content, headers).status == 204
    yield identity, content


def within(service: Service, request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The ends of the spans in the request of that id, by name."""
    for file in so_far(service):
        for event in file.events:
            if event.kind == "E" and event.values.get("request") == request["request"]:
                inner = {event.span}
                for other in file.events:
                    if other.kind == "B" and other.parent in inner:
                        inner.add(other.span)
                return {other.name: other.values for other in file.events if other.kind == "E" and other.span in inner}
    raise AssertionError(request)


def test_an_upload(service: Service, image: tuple[str, bytes]) -> None:
    end = the_one(service, image[0], "PUT")
    assert (end["status"], end["outcome"], end["global"]) == (204, "ok", GLOBAL)
    assert end["path"] == f"/v2/images/{image[0]}/file"
    assert end["request"].startswith("req-")
    spans = within(service, end)
    assert spans["store.filesystem.add"]["bytes"] == SIZE
    assert spans["store.filesystem.add"]["outcome"] == "ok"
    assert spans["store.filesystem.add"]["input_ns"] > 0
    assert spans["glance.image_data.upload"]["outcome"] == "ok"


def test_a_download(service: Service, api: Api, image: tuple[str, bytes]) -> None:
    answer = api.ask("GET", f"/v2/images/{image[0]}/file")
    assert answer.body == image[1]
    end = the_one(service, f"{image[0]}/file", "GET")
    assert (end["status"], end["outcome"], end["bytes"]) == (200, "ok", SIZE)
    headers = {name.lower(): value for name, value in answer.headers.items()}
    assert end["request"] == headers["x-openstack-request-id"]
    spans = within(service, end)
    assert spans["store.filesystem.get"]["bytes"] == spans["glance.body"]["bytes"] == SIZE
    assert spans["store.filesystem.get"]["chunks"] >= 1
    assert spans["store.filesystem.get"]["busy_ns"] > 0
    assert spans["glance.image_data.download"]["outcome"] == "ok"


def test_a_part_of_an_image(service: Service, api: Api, image: tuple[str, bytes]) -> None:
    answer = api.ask("GET", f"/v2/images/{image[0]}/file", headers={"Range": "bytes=1000-1999999"})
    assert (answer.status, answer.body) == (206, image[1][1000:2_000_000])
    end = the_one(service, f"{image[0]}/file", "GET")
    assert (end["status"], end["outcome"], end["bytes"]) == (206, "ok", 1_999_000)


def test_an_image_that_is_not_there(service: Service, api: Api) -> None:
    identity = "00000000-1111-4222-8333-444444444444"
    assert api.ask("GET", f"/v2/images/{identity}").status == 404
    end = the_one(service, identity, "GET")
    assert (end["status"], end["outcome"]) == (404, "error")
    assert "No image found with ID" in end["error"]


def test_data_that_is_not_there(service: Service, api: Api, image: tuple[str, bytes]) -> None:
    (service.images / image[0]).unlink()
    status = api.ask("GET", f"/v2/images/{image[0]}/file").status
    end = the_one(service, f"{image[0]}/file", "GET")
    assert end["status"] == status
    assert "NotFound" in (end.get("error") or end["recovered"])
    (get,) = [end for name, end in within(service, end).items() if name == "store.filesystem.get"]
    assert (get["outcome"], "NotFound" in get["error"]) == ("error", True)


def test_deleting(service: Service, api: Api, image: tuple[str, bytes]) -> None:
    assert api.ask("DELETE", f"/v2/images/{image[0]}").status == 204
    end = the_one(service, image[0], "DELETE")
    assert within(service, end)["store.filesystem.delete"]["outcome"] == "ok"


def test_spans_are_whole_and_nothing_is_secret(service: Service, image: tuple[str, bytes]) -> None:
    until(lambda: requests(service, image[0]))
    files = until(lambda: [file for file in so_far(service) if file.head["component"] == "glance-api"])
    for file in files:
        assert "SECRET" not in file.path.read_text()
        ended = {event.span for event in file.events if event.kind == "E"}
        whole = [event for event in file.events if event.span in ended and event.kind in "BE"]
        traces.well_formed(whole)
        assert file.lost == 0
        if service.name == "glance-32":
            assert any(event.values.get("waits") for event in file.events)


def have_no_patience(service: Service) -> None:
    """Start the service again so that it gives up after a second with a database that is locked."""
    connection = f"sqlite:///{service.directory / 'glance.sqlite'}?timeout=1"
    service.expect_end()
    # With its workers, who listen at the address, too; itself first, or there would be new ones.
    pids = [service.pid, *(pid for pid in service.workers() if pid != service.pid)]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    # A process may be a zombie while a thread of it still ends, which has its sockets, too.
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))
    service.reconfigure({"database": {"connection": connection, "max_retries": 0, "db_max_retries": 0}})
    service.start_again()


@contextlib.contextmanager
def locked_database(service: Service) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(service.directory / "glance.sqlite", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")


def test_a_database_that_is_locked(release: type[Service]) -> None:
    """The text of the request's error is the database's, without what was to be written."""
    with release(fastio="on", trace="on") as running:
        have_no_patience(running)
        with locked_database(running):
            answer = Api(running.http_port).ask(
                "POST", "/v2/images", b'{"name": "VALUESECRET", "disk_format": "raw", "container_format": "bare"}',
                {"Content-Type": "application/json"},
            )  # fmt: skip
        assert answer.status >= 500
        end = until(lambda: [end for end in requests(running, "/v2/images") if end["method"] == "POST"])[-1]
        assert (end["status"], end["outcome"]) == (answer.status, "error")
        assert "database is locked" in end["error"]
        for file in so_far(running):
            assert "SECRET" not in file.path.read_text()


@pytest.mark.parametrize("flavor", ["", "caching"])
def test_the_kernel_still_sends_the_file(serve: Callable[..., Service], tmp_path: Path, flavor: str) -> None:
    """What stands for the data of a store, and for a body, does not hide the file from ``glance_sendfile``."""
    data = os.urandom(5 << 20)
    sending = start_sending(serve, tmp_path, "glance-32", "patched", flavor, trace="on")
    image = sending.api.make(data)
    service = sending.service
    for number in range(2):
        answer, sent = sending.sent_by(lambda: sending.api.download(image))
        assert answer.body == data
        # The first chunk goes out with the headers. An image that goes to the cache has to be read.
        assert sent == ({} if flavor and not number else {"mapped": len(data) - (1 << 20)})
        assert the_one(service, f"{image}/file", "GET", number)["bytes"] == len(data)


def test_every_worker_has_a_file(release: type[Service]) -> None:
    with release(fastio="on", trace="on", workers=2) as running:
        api = Api(running.http_port)

        def workers() -> set[int]:
            assert api.ask("GET", f"http://{HOST}/v2/schemas/image").status == 200
            files = so_far(running)
            return {file.head["pid"] for file in files if file.head["component"] == "glance-api"}

        found = until(lambda: workers() if len(workers()) == 2 else None)
        assert found <= set(running.pids())
