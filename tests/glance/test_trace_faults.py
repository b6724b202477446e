"""Each class of fault, made to happen in a real glance-api, is named correctly by the report on its trace."""

import contextlib
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.backends import backend
from benchmarks.backends.base import HOST
from benchmarks.backends.glance import RELEASES, Service
from benchmarks.backends.glance_api import Api
from benchmarks.backends.swift import Swift
from fastio.trace.analysis.analysis import Analysis
from fastio.trace.analysis.requests import ABORTED, FAILED, Request
from tests.backends.required import missing
from tests.eventually import until
from tests.glance.faults import Fault, Proxy, add_full_store, add_swift_store
from tests.glance.reports import reported
from tests.glance.usable import usable
from tests.trace import traces

MIB = 1 << 20
#: Bytes of the small file system.
ROOM = 4 * MIB
#: More than sockets buffer.
LARGE = 40 * MIB
FILE = "/v2/images/{id}/file"
BINARY = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def swift() -> Iterator[Swift]:
    reason = backend("swift")().why_not()
    if reason:
        missing("swift", reason)
    with backend("swift")() as running:
        yield running


@pytest.fixture(scope="module", params=sorted(RELEASES))
def release(request: pytest.FixtureRequest) -> type[Service]:
    return usable(request.param)


class Seeded:
    """A traced service, its stores, and the report on its trace."""

    def __init__(self, service: Service, proxy: Proxy | None = None, full: Path | str = "") -> None:
        self.service = service
        self.api = Api(service.http_port, timeout=100)
        #: in front of Swift
        self.proxy = proxy
        #: the small file system, or why there is none
        self.full = full
        #: when the newest request was sent
        self.since = 0

    def upload(self, store: str, size: int) -> tuple[str, int]:
        """An image, and the status of the upload of its data."""
        image = self.api.create(name=store)
        headers = {**BINARY, "X-Image-Meta-Store": store}
        self.since = time.time_ns()
        # A service that cannot take the data answers before it has read all of it, and closes.
        with contextlib.suppress(ConnectionError):
            return image, self.api.ask("PUT", f"/v2/images/{image}/file", bytes(size), headers).status
        return image, 0

    def told(self, method: str, path: str) -> tuple[Analysis, Request]:
        """The report, once it has the newest request of this route."""

        def found() -> Any:
            analysis = reported(self.service.traces)
            requests = [each for each in analysis.requests if self._is(each, method, path)] if analysis else []
            return (analysis, requests[-1]) if requests and requests[-1].outcome in (FAILED, ABORTED) else None

        return until(found)

    def _is(self, request: Request, method: str, path: str) -> bool:
        root = request.server
        return (
            root is not None
            and (root.text("method"), root.text("path")) == (method, path)
            and (root.finish >= self.since)
        )

    def category(self, method: str, path: str) -> str:
        """The class of that request; the table of errors has it, too, and shows where it came from."""
        analysis, request = self.told(method, path)
        category = analysis.causes[id(request)]
        errors = [each for each in analysis.failures if each.request is request and each.category == category]
        assert errors
        assert analysis.problems == []
        return category


@pytest.fixture(scope="module", params=["off", "on"], ids=["stock", "fastio"])
def seeded(
    request: pytest.FixtureRequest, release: type[Service], swift: Swift, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Seeded]:
    with contextlib.ExitStack() as stack:
        config: dict[str, dict[str, object]] = {"DEFAULT": {"enabled_backends": "images:file, mistrusted:swift"}}
        proxy = add_swift_store(stack, swift, config)
        config["mistrusted"] = {**config["swift"], "swift_store_key": "another user's"}
        full = add_full_store(stack, tmp_path_factory.mktemp("full") / "store", ROOM, config)
        yield Seeded(stack.enter_context(release(config=config, fastio=request.param, trace="on")), proxy, full)


def test_a_store_that_refuses_the_service_s_password(seeded: Seeded) -> None:
    image, status = seeded.upload("mistrusted", MIB)
    assert status >= 400 or not status
    assert seeded.category("PUT", FILE) == "authentication failure"


def test_a_store_that_is_unavailable(seeded: Seeded) -> None:
    image, status = seeded.upload("swift", MIB)
    assert status == 204
    assert seeded.proxy is not None
    failed_before = seeded.proxy.failed
    # Not 503, which the client asks again for half a minute.
    seeded.proxy.fail("PUT", "/", Fault(reset_request=1))
    try:
        image, status = seeded.upload("swift", MIB)
    finally:
        seeded.proxy.fail("PUT", "/", Fault())
    assert seeded.proxy.failed > failed_before
    assert status >= 400 or not status
    assert seeded.category("PUT", FILE) == "store down"


def test_a_disk_that_is_full(seeded: Seeded) -> None:
    if isinstance(seeded.full, str):
        pytest.skip(seeded.full)
    image, status = seeded.upload("full", 2 * ROOM)
    assert status in (413, 0)
    assert seeded.category("PUT", FILE) == "disk full"


def test_a_client_that_leaves_a_download(seeded: Seeded) -> None:
    image, status = seeded.upload("images", LARGE)
    assert status == 204
    seeded.since = time.time_ns()
    seeded.api.abort_download(image, MIB)
    assert seeded.category("GET", FILE) == "client gone"


def test_a_client_that_leaves_an_upload(seeded: Seeded) -> None:
    image = seeded.api.create(name="never there")
    seeded.since = time.time_ns()
    seeded.api.abort_upload(image, bytes(MIB), LARGE)
    assert seeded.category("PUT", FILE) == "client gone"


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
    """The error of the request is the database's, by its class and number, and without what the request said."""
    with release(fastio="on", trace="on") as service:
        have_no_patience(service)
        seeded = Seeded(service)
        with locked_database(service):
            body = b'{"name": "VALUESECRET", "disk_format": "raw", "container_format": "bare"}'
            answer = seeded.api.ask("POST", "/v2/images", body, {"Content-Type": "application/json"})
        assert answer.status >= 500
        analysis, request = seeded.told("POST", "/v2/images")
        assert analysis.causes[id(request)] == "database locked"
        assert request.server is not None
        assert "sqlite3.OperationalError SQLITE_BUSY" in request.server.text("error")
        assert all("SECRET" not in path.read_text() for path in traces.files(service.traces))


def test_an_unauthenticated_client(release: type[Service]) -> None:
    """keystone's middleware, without a keystone: it refuses a request that has no token by itself."""
    identity = {
        "www_authenticate_uri": f"http://{HOST}:9/identity", "auth_url": f"http://{HOST}:9/identity",
        "auth_type": "password", "username": "glance", "password": "secret", "project_name": "service",
        "user_domain_id": "default", "project_domain_id": "default", "http_request_max_retries": 0,
        "memcached_servers": "",
    }  # fmt: skip
    with release(fastio="on", trace="on", flavor="keystone", config={"keystone_authtoken": identity}) as service:
        seeded = Seeded(service)
        path = "/v2/images/00000000-1111-4222-8333-444444444444"
        assert seeded.api.ask("GET", path).status == 401
        assert seeded.category("GET", "/v2/images/{id}") == "authentication failure"
