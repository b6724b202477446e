"""Running backends, and glance_store set up for them.

A backend is started when the first test asks for it and stopped after the last one of the session. The servers are
separate processes, so they are the same whether the tests are monkey patched or not. A missing dependency skips its
tests, with the command that installs it.
"""

import contextlib
import http.client
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
import tests.green_ssl  # noqa: F401
from benchmarks.backends import backend, dog
from benchmarks.backends.base import Backend, Unavailable
from fastio.concurrency import offload
from fastio.io import lowwater, uploads
from tests.backends.required import missing
from tests.conftest import MONKEY_PATCHED, with_services
from tests.stores.s3_wire import Wire

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
        # With what tests.conftest.hide_hub() has left to make the same one again.
        vars(local).clear()
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
                    # A run requires the backend, not each program that can be it.
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
def dog_access(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The options of glance_store for fastio's sheepdog driver and the stand-in for ``dog``, which is in the path."""
    pytest.importorskip("glance_store")
    dog.install(tmp_path / "sheepdog")
    for name, value in dog.environment(tmp_path / "sheepdog", **dog.FAST).items():
        monkeypatch.setenv(name, value)
    return {"backend": "sheepdog", "driver": "sheepdog", "options": {}}


@contextlib.contextmanager
def opened_dog(access: dict[str, Any], identifier: str, **options: Any) -> Iterator[Any]:
    """As :func:`benchmarks.backends.stores.opened`: there is no server of sheepdog's to be started."""
    import glance_store
    from glance_store import location

    from benchmarks.backends import stores

    access = {**access, "options": options}
    with stores.configured(identifier, access["driver"], options) as conf:
        glance_store.create_multi_stores(conf)
        yield stores.Store(identifier, access)
    location.SCHEME_TO_CLS_BACKEND_MAP["sheepdog"].pop(identifier)


@pytest.fixture
def open_store(running_backend: Running, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
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
            if name == "sheepdog":
                access = request.getfixturevalue("dog_access")
                return stack.enter_context(opened_dog(access, identifier or name, **options))
            access = running_backend(name, **(parameters or {})).access()
            return stack.enter_context(opened(access, identifier, **options))

        yield open_


def _store_on(backend: str) -> Any:
    @pytest.fixture
    def store(open_store: Callable[..., Any]) -> Any:
        """A store of that backend; of http's, which only reads, ``place()`` puts images there."""
        return open_store(backend)

    return store


filesystem_store, swift_store, s3_store, http_store, ceph_store, cinder_store, vmware_store = map(
    _store_on, ("filesystem", "swift", "s3", "http", "ceph", "cinder", "vmware")
)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """The requests sent to S3 servers."""
    return Wire(monkeypatch)


@pytest.fixture
def one_client() -> Iterator[None]:
    """Of s3: clients take most of the time, and have separate tests."""
    with fastio.patched(["s3_client"], strict=True):
        yield


@pytest.fixture
def offloads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the calls that went to a native thread."""
    pytest.importorskip("eventlet").sleep(0)
    names: list[str] = []
    run = offload.run

    def noting(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        names.append(call.__name__)
        return run(call, *args, **kwargs)

    monkeypatch.setattr(offload, "run", noting)
    return names


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The low-water marks that were wanted of sockets."""
    found: list[int] = []
    mark = lowwater.mark

    def note(size: int, left: int) -> int:
        found.append(mark(size, left))
        return found[-1]

    monkeypatch.setattr(lowwater, "mark", note)
    return found


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each send() of an HTTP connection is given, from 1,000 on; what is there comes at once."""
    monkeypatch.setattr(uploads, "AT_ONCE", 60)
    found: list[int] = []
    send = http.client.HTTPConnection.send

    def note(self: Any, data: Any) -> None:
        if not hasattr(data, "read") and len(data) >= 1000:
            found.append(len(data))
        send(self, data)

    monkeypatch.setattr(http.client.HTTPConnection, "send", note)
    return found


def pytest_configure(config: pytest.Config) -> None:
    # swiftclient's Keystone v3 goes through what keystoneclient has deprecated.
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:keystoneclient")


@pytest.fixture(autouse=True)
def starts_without_a_hub() -> bool:
    """The hub stays from test to test: what a store does under eventlet is tested in native processes, too."""
    return False
