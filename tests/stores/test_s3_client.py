"""``s3_client``: one client per configuration, per process and for no longer than it may."""

import functools
import gc
import importlib
import logging
import os
import pathlib
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import fastio
from fastio.patches.glance_store import s3_client
from tests.conftest import MONKEY_PATCHED

pytest.importorskip("glance_store")
boto3 = pytest.importorskip("boto3")

from tests.forked import told_by_a_fork  # noqa: E402
from tests.outcome import outcome  # noqa: E402

patched = functools.partial(fastio.patched, ["s3_client"], strict=True)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Weak references to the clients that were built."""
    clients: list[Any] = []
    build = boto3.session.Session.client

    def client(*args: Any, **kwargs: Any) -> Any:
        made = build(*args, **kwargs)
        clients.append(weakref.ref(made))
        return made

    monkeypatch.setattr(boto3.session.Session, "client", client)
    return clients


def option(store: Any, name: str, value: Any) -> None:
    """Change an option of the store's group."""
    from oslo_config import cfg

    cfg.CONF.set_override(name, value, group=store.identifier)


def client_of(store: Any) -> Any:
    """The client with which the store's driver would work now."""
    return store.driver._create_s3_client()


def alive(built: list[Any]) -> int:
    gc.collect()
    return len([client for client in built if client() is not None])


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Those that clients made."""
    made: list[Any] = []
    connection = importlib.import_module("urllib3.connection").HTTPConnection
    connect = connection._new_conn

    def new(self: Any) -> Any:
        made.append(self)
        return connect(self)

    monkeypatch.setattr(connection, "_new_conn", new)
    return made


# One client.


def use(store: Any, data: bytes = b"data") -> None:
    """Everything that a store is there for."""
    added = store.add(data)
    assert store.size(added.url) == len(data)
    assert store.read(added.url) == data
    store.delete(added.url)


def test_all_is_done_by_one_client(s3_store: Any, built: list[Any]) -> None:
    with patched():
        for _ in range(3):
            use(s3_store)
    assert len(built) == 1
    assert fastio.metrics().patches["s3_client"].calls == 3 * 4


def test_no_connection_is_kept_from_one_operation_to_the_next(s3_store: Any, connections: list[Any]) -> None:
    """As with upstream; so one that the server closes meanwhile, or forgets without a word, costs nothing."""
    counts = []
    for patch in (fastio.patched([]), patched()):
        with patch:
            use(s3_store)
            counts.append(len(connections))
            connections.clear()
    assert counts[0] == counts[1] >= 4


def test_idle_connections_are_closed_and_their_places_stay(s3_store: Any) -> None:
    """Without them a thread that asks meanwhile would have a connection too many, and urllib3 warns of it."""
    queue = importlib.import_module("urllib3.connectionpool").HTTPConnectionPool.QueueCls(3)
    closed: list[int] = []

    class Connection:
        def close(self) -> None:
            closed.append(queue.qsize())

    with patched():
        client = client_of(s3_store)
        pools = client._endpoint.http_session._manager.pools
        for connection in (None, Connection(), Connection()):
            queue.put(connection)
        pools["of the test"] = type("Pool", (), {"pool": queue, "close": lambda self: None})()
        assert client_of(s3_store) is client
        assert closed == [3, 3]
        assert [queue.get(block=False) for _ in range(3)] == [None] * 3


def test_a_download_that_is_given_up(s3_store: Any, built: list[Any]) -> None:
    """Its connection, with the rest of the image in it, is not used again."""
    data = os.urandom(5 << 20)
    with patched():
        url = s3_store.add(data).url
        for _ in range(3):
            chunks, _ = s3_store.get(url)
            next(iter(chunks))
            del chunks
            gc.collect()
            assert s3_store.read(url) == data
    assert len(built) == 1


def test_concurrent_readers_share_the_client(s3_store: Any, built: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    """Each gets its own bytes, and no connection is thrown away; botocore would do that from the eleventh on."""
    caplog.set_level(logging.WARNING, "urllib3")
    images = {s3_store.add(data).url: data for data in (os.urandom(1 << 20) for _ in range(4))}
    started = threading.Barrier(24)

    def reader(url: str) -> list[bool]:
        started.wait()
        return [s3_store.read(url) == images[url] for _ in range(2)]

    with patched():
        client_of(s3_store)
        built.clear()
        with ThreadPoolExecutor(24) as pool:
            assert list(pool.map(reader, [*images] * 6)) == [[True] * 2] * 24
    assert not built
    assert "pool is full" not in caplog.text


def test_threads_that_need_the_first_client_at_once(s3_store: Any, built: list[Any]) -> None:
    started = threading.Barrier(6)

    def first(driver: Any) -> Any:
        started.wait()
        return driver._create_s3_client()

    with patched():
        with ThreadPoolExecutor(6) as pool:
            clients = list(pool.map(first, [s3_store.driver] * 6))
        assert len({id(client) for client in clients}) == 1
        assert client_of(s3_store) is clients[0]
        clients.clear()
        assert alive(built) == 1


# Another client where anything differs.

#: An option of the store's group, a variable of the environment, or the content of a file that one of these names.
CHANGES: list[tuple[str, Any]] = [
    ("s3_store_access_key", "another"),
    ("s3_store_secret_key", "another secret"),
    ("s3_store_host", "http://127.0.0.1:1"),
    ("s3_store_region_name", "eu-north-1"),
    ("s3_store_bucket", "another-bucket"),
    ("s3_store_bucket_url_format", "virtual"),
    ("s3_store_cacert", "/nowhere/ca.pem"),
    ("s3_store_enable_data_integrity_protection", True),
    ("s3_store_request_checksum_calculation", "when_supported"),
    ("s3_store_response_checksum_validation", "when_supported"),
    ("HTTP_PROXY", "http://127.0.0.1:1"),
    ("config", "[default]\nmax_attempts = 10\n"),
    ("ca.pem", "another"),
    ("ca.pem", None),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_another_client_for_changed_options(
    open_store: Callable[..., Any], name: str, value: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """There is another client then, and the first one again when it is taken back."""
    from oslo_config import cfg

    files = {"config": "[default]\nmax_attempts = 2\n", "ca.pem": "one"}
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    store = open_store("s3", identifier="changing", s3_store_cacert=str(tmp_path / "ca.pem"))
    if name.startswith("s3_") and name not in cfg.CONF[store.identifier]:
        pytest.skip("this glance_store does not have it")
    with patched():
        first = client_of(store)
        if name in files:
            path = tmp_path / name
            path.write_text(value) if value else path.unlink()
        elif name.startswith("s3_"):
            before = cfg.CONF[store.identifier][name]
            option(store, name, value)
        else:
            monkeypatch.setenv(name, value)
        second = client_of(store)
        assert second is not first
        assert client_of(store) is second
        if name not in files:
            monkeypatch.delenv(name) if name.isupper() else option(store, name, before)
            assert client_of(store) is first
    if name.startswith("s3_"):
        cfg.CONF.clear_override(name, group=store.identifier)


def test_the_client_is_made_like_stocks(open_store: Callable[..., Any]) -> None:
    store = open_store("s3", identifier="same_client", s3_store_region_name="eu-north-1")

    def looks(client: Any) -> Any:
        credentials = client._request_signer._credentials
        config = {name: value for name, value in vars(client.meta.config).items() if not name.startswith("_")}
        return client.meta.endpoint_url, client.meta.region_name, credentials.access_key, credentials.secret_key, config

    stock = looks(client_of(store))
    with patched():
        assert looks(client_of(store)) == stock
        assert looks(client_of(store)) == stock


def test_a_replaced_boto3_is_used(s3_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of others put fakes there, and expect them to be used at once and not after."""
    with patched():
        real = client_of(s3_store)
        with monkeypatch.context() as patch:
            fakes = []
            for fake in (object(), object()):
                patch.setattr(boto3.session.Session, "client", lambda *args, fake=fake, **kwargs: fake)
                assert client_of(s3_store) is fake
                fakes.append(fake)
        assert client_of(s3_store) is real


# No longer than it may.


def test_few_clients_are_kept(s3_store: Any, built: list[Any]) -> None:
    with patched():
        kept = client_of(s3_store)
        for number in range(s3_client.CLIENTS + 3):
            option(s3_store, "s3_store_region_name", f"region-{number}")
            client_of(s3_store)
            # One that is used stays.
            option(s3_store, "s3_store_region_name", "")
            assert client_of(s3_store) is kept
        assert len(built) == s3_client.CLIENTS + 4
        assert alive(built) == s3_client.CLIENTS


def test_none_is_left_when_the_patch_is_taken_back(s3_store: Any, built: list[Any]) -> None:
    for _ in range(2):
        with patched():
            use(s3_store)
            assert alive(built) == 1
        assert alive(built) == 0
    assert len(built) == 2


def test_a_client_is_not_shared_with_a_child(s3_store: Any, built: list[Any]) -> None:
    data = os.urandom(1 << 20)
    with patched():
        url = s3_store.add(data).url
        before = client_of(s3_store)
        assert told_by_a_fork(lambda: [s3_store.read(url) == data, client_of(s3_store) is not before, len(built)]) == [
            True,
            True,
            2,
        ]
        assert s3_store.read(url) == data
        assert client_of(s3_store) is before


@pytest.mark.skipif(not MONKEY_PATCHED, reason="natively all threads share one client")
def test_native_threads_do_not_share_one_under_eventlet(s3_store: Any) -> None:
    from eventlet import patcher, tpool

    with patched():
        mine = client_of(s3_store)
        assert client_of(s3_store) is mine
        assert tpool.execute(client_of, s3_store) is not mine
    tpool.killall()
    assert patcher.is_monkey_patched("thread")


# Credentials.


def test_no_secret_is_reported(open_store: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "fastio")
    secret = "a-secret-of-somebody"
    store = open_store("s3", identifier="secretive", s3_store_secret_key=secret)
    with patched() as report:
        client_of(store)
        key = s3_client._key(store.driver, None)
        assert secret not in repr(key)
        assert secret not in str(report) + str(fastio.status())
    assert secret not in caplog.text


# Impossible files.


def test_errors_are_as_from_stock(open_store: Callable[..., Any], built: list[Any]) -> None:
    store = open_store("s3", identifier="faulty")
    driver = store.driver

    def create() -> Any:
        return driver._create_s3_client()

    for name, value in (("s3_store_host", ""), ("s3_store_bucket_url_format", "")):
        option(store, name, value)
        stock = outcome(create)
        with patched():
            assert outcome(create) == outcome(create) == stock
        option(store, name, store.access["options"][name])
    driver.bucket = "Not_A_Name_of_DNS"
    option(store, "s3_store_bucket_url_format", "virtual")
    stock = outcome(create)
    assert stock[0].__name__ == "InvalidDNSNameError"
    with patched():
        assert outcome(create) == outcome(create) == stock
    option(store, "s3_store_bucket_url_format", store.access["options"]["s3_store_bucket_url_format"])
    assert not built


def test_a_store_that_holds_something_unexpected_is_left_to_upstream(s3_store: Any, built: list[Any]) -> None:
    class Key(str):
        pass

    driver = s3_store.driver
    with patched():
        driver.region_name = object()
        with pytest.raises(TypeError):
            s3_client._key(driver, None)
        outcome(driver._create_s3_client)
        driver.region_name = Key("eu-north-1")
        driver._create_s3_client()
        driver._create_s3_client()
    assert len(built) == 1


def test_without_boto3(s3_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import glance_store._drivers.s3 as module

    driver = s3_store.driver
    monkeypatch.setattr(module, "boto_session", None)
    stock = outcome(driver._create_s3_client)
    with patched():
        assert outcome(driver._create_s3_client) == stock
