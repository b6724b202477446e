"""``s3_ranges``, ``swift_ranges`` and ``http_ranges``: images of distant services come in parts, of one version."""

import functools
import gc
import os
import pathlib
import time
from collections.abc import Callable
from typing import Any

import pytest

import fastio
from fastio import counters
from fastio.io import ahead

pytest.importorskip("glance_store")
requests = pytest.importorskip("requests")

MIB = 1 << 20
SIZE = 24 * MIB + 7
AWAY = {"latency_ms": 5, "rate": 40_000_000}


@pytest.fixture(params=["s3", "swift", "http"])
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(driver: str, open_store: Callable[..., Any]) -> Any:
    return open_store(driver, AWAY, "far")


@pytest.fixture
def patched(driver: str) -> Callable[..., Any]:
    return functools.partial(fastio.patched, [f"{driver}_ranges", f"store_{driver}"], strict=True)


def parts(driver: str) -> int:
    """How many parts have been asked for so far."""
    return counters.of(f"{driver}_ranges").calls


def place(store: Any, data: bytes, age: float = 3600) -> str:
    """Put an image that is so many seconds old where that counts; returns its URL."""
    url = str(store.place(data))
    if "place" in store.access:
        then = time.time() - age
        os.utime(pathlib.Path(store.access["place"]["directory"], url.rpartition("/")[2]), (then, then))
    return url


def replace(store: Any, url: str, data: bytes) -> None:
    """Put another image at the place of one."""
    name = url.rpartition("/")[2]
    if store.access["driver"] == "s3":
        store.driver._create_s3_client().put_object(Bucket="images", Key=name, Body=data)
        return
    if store.access["driver"] == "swift":
        client = pytest.importorskip("swiftclient")
        access = [store.access[key] for key in ("auth_v1", "user", "key")]
        client.Connection(*access).put_object("images", name, data)
        return
    path = pathlib.Path(store.access["place"]["directory"], name)
    path.with_suffix(".new").write_bytes(data)
    path.with_suffix(".new").replace(path)


def test_an_image_comes_in_parts(driver: str, store: Any, patched: Any) -> None:
    data = os.urandom(SIZE)
    url = place(store, data)
    with patched():
        before = parts(driver)
        assert store.read(url) == data
        assert parts(driver) - before == 3


def test_an_object_that_is_replaced_meanwhile_is_never_mixed(
    store: Any, patched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, other = os.urandom(SIZE), os.urandom(SIZE)
    url = place(store, data)
    monkeypatch.setattr(ahead, "MOST", 2)
    with patched():
        pieces, _ = store.get(url)
        found = [next(iter(pieces))]
        replace(store, url, other)
        try:
            found += pieces
        except Exception as error:
            # The server may not keep what it has begun to send.
            assert "IncompleteRead" in repr(error) or "Connection" in repr(error), error
            assert data.startswith(b"".join(found))
        else:
            assert b"".join(found) == data


def test_a_reader_that_gives_up_leaves_nothing_open(store: Any, patched: Any) -> None:
    url = place(store, os.urandom(SIZE))
    gc.collect()
    gc.disable()
    try:
        with patched():
            pieces, _ = store.get(url)
            assert next(iter(pieces)) and readers()
            del pieces
            assert not readers()
    finally:
        gc.enable()


def readers() -> int:
    return sum(type(each) is ahead.Ahead for each in gc.get_objects())


@pytest.mark.parametrize("change", ["size", "weak tag", "encoding", "age"])
def test_upstream_reads_all_else(
    driver: str, store: Any, patched: Any, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    if change == "age" and driver != "http":
        pytest.skip("its tags are hashes")
    data = os.urandom(MIB if change == "size" else SIZE)
    url = place(store, data, 30 if change == "age" else 3600)
    module = "botocore.httpsession:URLLib3Session" if driver == "s3" else "requests:Session"
    headers = {"weak tag": {"ETag": 'W/"weak"'}, "encoding": {"Content-Encoding": "identity"}}.get(change, {})
    owner = getattr(pytest.importorskip(module.partition(":")[0]), module.partition(":")[2])
    send = owner.send

    def changed(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = send(self, *args, **kwargs)
        answer.headers.update(headers)
        return answer

    monkeypatch.setattr(owner, "send", changed)
    with patched():
        before = parts(driver)
        assert store.read(url) == data
        assert parts(driver) == before
