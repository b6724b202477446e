"""Running backends, and glance_store set up for them.

A backend is started when the first test asks for it and stopped after the last one of the session. The servers are
processes of their own, so they are the same whether the tests are monkey patched or not. What is not installed skips
its tests, with the line that installs it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tests.green_ssl  # noqa: F401
from benchmarks.backends import BACKENDS, backend
from benchmarks.backends.base import Backend, Unavailable
from tests.backends.required import missing
from tests.conftest import MONKEY_PATCHED, with_services

Running = Callable[..., Backend]


def pytest_itemcollected(item: pytest.Item) -> None:
    if "running_backend" in getattr(item, "fixturenames", ()):
        item.add_marker(with_services)


@pytest.fixture(autouse=True, scope="module")
def leaves_no_hub() -> Iterator[None]:
    """Natively a thread has no hub: one that a file's tests of greenlets have made would make the next file's green."""
    yield
    local = getattr(sys.modules.get("eventlet.hubs"), "_threadlocal", None)
    hub = None if MONKEY_PATCHED else getattr(local, "hub", None)
    if hub is not None:
        tpool = sys.modules.get("eventlet.tpool")
        if tpool is not None:
            # Its threads answer to a greenlet of this hub; the next hub gets others.
            tpool.killall()
        hub.abort(wait=True)
        del local.hub
        close = getattr(getattr(hub, "poll", None), "close", None)
        if close is not None:
            close()


@pytest.fixture(scope="session")
def running_backend(request: pytest.FixtureRequest) -> Iterator[Running]:
    """``running_backend(name, **parameters)`` is that backend, started with these parameters once per session.

    Skips the test where it is not installed. The logs are kept if a test of the session has failed.
    """
    started: dict[tuple[Any, ...], Backend] = {}

    def running(name: str, **parameters: Any) -> Backend:
        key = (name, *sorted(parameters.items()))
        if key not in started:
            pytest.importorskip("glance_store")
            try:
                started[key] = backend(name)(**parameters).start()
            except Unavailable as error:
                if parameters:
                    # What a run requires is the backend, not each program that can be it.
                    pytest.skip(str(error))
                missing(name, str(error))
        return started[key]

    yield running
    failed = bool(request.session.testsfailed)
    with contextlib.ExitStack() as stack:
        for each in started.values():
            stack.callback(each.stop, keep_logs=failed)
        reporter = request.config.pluginmanager.get_plugin("terminalreporter")
        if failed and reporter is not None:
            for each in started.values():
                if any(path.stat().st_size for path in each.logs.iterdir()):
                    reporter.write_line(f"logs of {each.name}: {each.logs}")


@pytest.fixture
def open_store(running_backend: Running) -> Iterator[Callable[..., Any]]:
    """``open_store(name, parameters={}, identifier=None, **options)`` is a store of glance_store on that backend.

    :param parameters: of the backend, such as Swift's chunk sizes
    :param options: glance_store's, of the store's group

    It is a :class:`benchmarks.backends.stores.Store` with ``add()``, ``get()``, ``read()``, ``size()``, ``delete()``
    and ``driver``; forgotten by glance_store after the test. Stores of one test need different identifiers.
    """
    from benchmarks.backends.stores import opened

    with contextlib.ExitStack() as stack:

        def open_(
            name: str, parameters: dict[str, Any] | None = None, identifier: str | None = None, **options: Any
        ) -> Any:
            access = running_backend(name, **(parameters or {})).access()
            return stack.enter_context(opened(access, identifier, **options))

        yield open_


@pytest.fixture(params=list(BACKENDS))
def store_backend(request: pytest.FixtureRequest, open_store: Callable[..., Any]) -> Any:
    """A store on each backend in turn."""
    return open_store(request.param)


@pytest.fixture
def filesystem_store(open_store: Callable[..., Any]) -> Any:
    """A store on the filesystem backend."""
    return open_store("filesystem")


@pytest.fixture
def swift_store(open_store: Callable[..., Any]) -> Any:
    """A store on Swift."""
    return open_store("swift")


@pytest.fixture
def s3_store(open_store: Callable[..., Any]) -> Any:
    """A store on the S3 server."""
    return open_store("s3")


@pytest.fixture
def http_store(open_store: Callable[..., Any]) -> Any:
    """A store on nginx; it only reads: ``place()`` puts images there."""
    return open_store("http")


@pytest.fixture
def ceph_store(open_store: Callable[..., Any]) -> Any:
    """A store on Ceph's rbd."""
    return open_store("ceph")


@pytest.fixture
def cinder_store(open_store: Callable[..., Any]) -> Any:
    """A store on cinder's fakes and plain files."""
    return open_store("cinder")


@pytest.fixture
def vmware_store(open_store: Callable[..., Any]) -> Any:
    """A store on the HTTPS server and the fake session of VMware."""
    return open_store("vmware")


def pytest_configure(config: pytest.Config) -> None:
    # swiftclient's Keystone v3 goes through what keystoneclient has deprecated.
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:keystoneclient")


@pytest.fixture(autouse=True)
def starts_without_a_hub() -> bool:
    """The hub stays from test to test: what a store does under eventlet is tested in native processes, too."""
    return False
