"""``image_hashing``: add() gives the same, its data is hashed by threads, and the hub is free meanwhile."""

import ast
import gc
import hashlib
import inspect
import os
import pathlib
import pkgutil
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("glance_store")

from glance_store.common import utils

import fastio
from fastio.concurrency import events, native
from fastio.concurrency.events import NativeEvent
from fastio.io.hashing import LIMIT, BackgroundHash, pool
from tests.child import tile
from tests.concurrency.gate import Gate, until
from tests.conftest import needs_eventlet
from tests.descriptors import descriptors, forgotten
from tests.outcome import outcome, raising
from tests.stores.images import KIB, MIB

CHUNK = 64 * KIB


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    """Every test finds idle threads, and leaves them so."""
    until(lambda: not pool.load())
    yield
    # Work for a failed upload is done to its end.
    until(lambda: not pool.load())


@pytest.fixture
def hashing_patched() -> Iterator[None]:
    """The patch is in effect; the test fails if no thread has hashed anything."""
    with fastio.patched("image_hashing", strict=True):
        before = pool.batches
        yield
        assert pool.batches > before, "no thread has hashed anything"


@pytest.fixture
def store(open_store: Callable[..., Any]) -> Any:
    """A filesystem store of 64 KiB chunks, upstream's default."""
    return open_store("filesystem", filesystem_store_chunk_size=CHUNK)


def payload(size: int) -> bytes:
    return tile(b"\x00image\xff", size)


# The seam


def test_all_drivers_have_their_hashes_from_get_hasher() -> None:
    """Also those of releases to come: a driver that makes its own hash objects would not be served."""
    from glance_store import _drivers

    makers = {"md5", *("hashlib." + name for name in dir(hashlib))}
    for info in pkgutil.walk_packages(_drivers.__path__, "glance_store._drivers."):
        spec = info.module_finder.find_spec(info.name, None)  # type: ignore[call-arg]
        source = pathlib.Path(spec.origin).read_text(encoding="utf-8")  # type: ignore[union-attr, arg-type]
        calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}
        # cinder's nfs names a directory by a hash of a path; up to glance_store 4.2 it is in one module with the rest.
        names_directory = info.name.endswith((".nfs", ".cinder"))
        assert calls & makers <= ({"hashlib.sha256"} if names_directory else set()), info.name


def test_get_hasher() -> None:
    stock = utils.get_hasher("md5", False)
    unknown = outcome(lambda: utils.get_hasher("nothing"))
    with fastio.patched("image_hashing", strict=True):
        assert inspect.signature(utils.get_hasher) == inspect.signature(utils.get_hasher.__wrapped__)
        for args in (("md5", False), ("md5",), ("sha512", False), ("sha512",)):
            hash = utils.get_hasher(*args)
            assert type(hash) is BackgroundHash
            assert isinstance(hash, type(stock))
            assert (hash.name, hash.hexdigest()) == (args[0], hashlib.new(args[0]).hexdigest())
        assert utils.get_hasher(hash_algo="sha1", usedforsecurity=False).name == "sha1"
        assert unknown[0] is ValueError
        assert outcome(lambda: utils.get_hasher("nothing")) == unknown
        late = utils.get_hasher("sha512", False)
        late.update(payload(MIB))
    assert type(utils.get_hasher("md5", False)) is type(stock)
    # An upload that began before unpatch() ends as it began.
    late.update(payload(MIB))
    assert late.hexdigest() == hashlib.sha512(payload(MIB) * 2).hexdigest()


# Under eventlet


@pytest.fixture
def gate() -> Iterator[Gate]:
    """The patch is in effect, and its threads stand still until they are let through."""
    with fastio.patched("image_hashing", strict=True):
        gate = Gate(pool.workers)
        yield gate
        gate.open()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The waits for a thread that have begun."""
    begun: list[Any] = []
    make = pool.new_event

    def new_event() -> Any:
        begun.append(make())
        return begun[-1]

    monkeypatch.setattr(pool, "new_event", new_event)
    return begun


@pytest.fixture
def hub() -> Iterator[Any]:
    """eventlet's hub, which must have no listeners left at the end, and the process no more descriptors."""
    hubs = pytest.importorskip("eventlet.hubs")
    hub = hubs.get_hub()
    deque(events.new_event().close(), maxlen=0)
    # eventlet's pool of threads has one, once it was used.
    usual = [listener for event in (hub.READ, hub.WRITE) for listener in hub.listeners[event].values()]
    before = descriptors()
    yield hub
    now = [listener for event in (hub.READ, hub.WRITE) for listener in hub.listeners[event].values()]
    left = [listener for listener in now if listener not in usual]
    assert not left, f"listeners left in the hub: {left}"
    # An earlier test's sockets may have been closed meanwhile: with the garbage.
    assert descriptors() - before == set()


@needs_eventlet
def test_other_greenlets_run_while_an_upload_waits(store: Any, gate: Gate, hub: Any, waits: list[Any]) -> None:
    """The upload cannot go on before the other greenlet has had its turns: a hub that is blocked never comes back."""
    import eventlet

    data = payload(2 * LIMIT)
    turns = 0

    def other() -> None:
        nonlocal turns
        while not waits or turns < 100:
            eventlet.sleep(0)
            turns += 1
        gate.open()

    eventlet.sleep(0)
    greenlet = eventlet.spawn_after(0, other)
    added = store.add(data)
    greenlet.wait()
    assert turns >= 100
    assert added.multihash == hashlib.sha512(data).hexdigest()


@needs_eventlet
@pytest.mark.parametrize("how", ["timeout", "kill", "throw"])
def test_an_upload_is_cancelled(how: str, store: Any, gate: Gate, hub: Any, waits: list[Any]) -> None:
    import eventlet
    import greenlet

    data = payload(2 * LIMIT)
    references = sys.getrefcount(data)
    raised: list[type] = []

    def upload() -> None:
        try:
            if how == "timeout":
                with eventlet.Timeout(0.05):
                    store.add(iter([data, data]), size=0)
            else:
                store.add(iter([data, data]), size=0)
        except BaseException as error:
            raised.append(type(error))

    thread = eventlet.spawn(upload)
    while not waits and not raised:
        eventlet.sleep(0)
    if how == "kill":
        thread.kill()
    elif how == "throw":
        eventlet.hubs.get_hub().schedule_call_global(0, thread.throw, KeyError, "wrong")
    while not raised:
        eventlet.sleep(0.001)
    assert raised == [{"timeout": eventlet.Timeout, "kill": greenlet.GreenletExit, "throw": KeyError}[how]]
    gate.open()
    while pool.load():
        eventlet.sleep(0.001)
    waits.clear()
    del thread
    gc.collect()
    # Nothing holds the image: neither a thread nor a queue.
    while sys.getrefcount(data) > references:
        eventlet.sleep(0.001)


@needs_eventlet
@pytest.mark.parametrize("where", ["tpool", "native thread", "separate hub", "timer"])
def test_an_upload_from_elsewhere(where: str, store: Any, hashing_patched: None) -> None:
    """A thread that has no hub is blocked and gets none; so is the hub's own greenlet, which must not switch."""
    import eventlet
    from eventlet import hubs, tpool

    data = payload(3 * LIMIT)
    results: list[Any] = []

    def upload() -> None:
        results.append(store.add(data))
        results.append(hasattr(hubs._threadlocal, "hub"))

    def with_hub() -> None:
        eventlet.spawn(upload).wait()

    if where == "tpool":
        tpool.execute(upload)
    elif where == "timer":
        hubs.get_hub().schedule_call_global(0, upload)
        while len(results) < 2:
            eventlet.sleep(0.001)
    else:
        thread = native.module("threading").Thread(target=upload if where == "native thread" else with_hub)
        thread.start()
        while thread.is_alive():
            eventlet.sleep(0.001)
    added, has_hub = results
    assert added.multihash == hashlib.sha512(data).hexdigest()
    assert has_hub == (where in ("separate hub", "timer"))


@needs_eventlet
def test_without_descriptors_other_greenlets_run_all_the_same(
    store: Any, gate: Gate, waits: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import eventlet

    eventlet.sleep(0)
    monkeypatch.setattr(os, "eventfd", raising(OSError(24, "Too many open files")))
    eventlet.spawn_after(0.01, gate.open)
    data = payload(3 * LIMIT)
    assert store.add(data).multihash == hashlib.sha512(data).hexdigest()
    assert waits and all(type(event) is not NativeEvent for event in waits)


@needs_eventlet
def test_an_event_has_a_number_that_the_hub_knows() -> None:
    """A file was closed while a greenlet waited for it, without the hub's knowledge."""
    from eventlet import hubs

    def opens() -> int:
        event = events.HubEvent()
        deque(event.close(), maxlen=0)
        return event._fd

    with forgotten(opens) as waiting:
        event = events.HubEvent()
        assert not event.wait(0.001)
        deque(event.set(), maxlen=0)
        assert event.wait(60)
        assert waiting.wait() is hubs.IOClosed
        deque(event.close(), maxlen=0)
