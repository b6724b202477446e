"""Images yield to other greenlets: hub turns are counted, nothing is timed."""

import importlib
import io
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("glance_store")

import fastio
from fastio import counters
from fastio.concurrency.pace import SHARE
from fastio.io import paced
from fastio.patches.glance_store import image_fairness
from tests.conftest import MONKEY_PATCHED, needs_eventlet
from tests.stores.images import KIB, Ticker, TimeIsOver

CHUNK = 256 * KIB
CHUNKS = 40


@pytest.fixture
def store(open_store: Callable[..., Any]) -> Any:
    """A filesystem store of chunks of 256 KiB."""
    return open_store("filesystem", filesystem_store_chunk_size=CHUNK)


@pytest.fixture
def fair() -> Iterator[None]:
    fastio.patch("image_fairness", strict=True, yield_bytes=CHUNK)
    counters.reset()
    yield
    fastio.unpatch()


IMAGE = bytes(range(256)) * (CHUNK // 256) * CHUNKS


@needs_eventlet
@pytest.mark.parametrize("multiple", [None, 1, 2, 8])
def test_share_of_yield_bytes(store: Any, standing_budget: Any, multiple: int | None) -> None:
    """Without the patch there is no turn: when that fails upstream has mended it, and the patch can go."""
    settings: dict[str, Any] = {"yield_bytes": multiple * CHUNK} if multiple else {}
    with fastio.patched(["image_fairness"] if multiple else [], strict=True, **settings):
        with Ticker() as adding:
            url = store.add(IMAGE).url
        with Ticker() as getting:
            data, size = store.get(url)
            assert b"".join(data) == IMAGE
    assert size == len(IMAGE)
    # One turn before each share but the first, and before the read that finds the end.
    turns = CHUNKS // multiple if multiple else 0
    assert {adding.ticks, getting.ticks} <= ({turns, turns + 1} if multiple else {0})


@needs_eventlet
def test_transfers_share_the_budget(store: Any, standing_budget: Any) -> None:
    """Four images with 16 chunks per turn: each yields after four chunks once it meets the others."""
    import eventlet

    uri = store.add(IMAGE).url
    order: list[int] = []

    def read(number: int) -> bytes:
        chunks = []
        for chunk in store.get(uri)[0]:
            order.append(number)
            chunks.append(chunk)
        return b"".join(chunks)

    with fastio.patched("image_fairness", strict=True, yield_bytes=16 * CHUNK):
        readers = [eventlet.spawn(read, number) for number in range(4)]
        assert all(reader.wait() == IMAGE for reader in readers)
    # After the first round, in which each thinks that it is alone, they take turns.
    late = order[len(order) // 2 : len(order) // 2 + 16]
    assert sorted(late) == sorted([0, 1, 2, 3] * 4)


@needs_eventlet
def test_every_driver_is_wrapped(fair: None) -> None:
    for target in image_fairness.PATCH.targets:
        importlib.import_module(target.module)
    applied = {entry.target for entry in fastio.status().entries if entry.name == "image_fairness" and entry.in_effect}
    assert applied == {target.key for target in image_fairness.PATCH.targets}
    assert len(applied) == 13


@pytest.mark.skipif(MONKEY_PATCHED, reason="the process is monkey patched")
def test_natively_nothing_is_in_between(store: Any, fair: None) -> None:
    from glance_store._drivers import filesystem

    found: list[Any] = []

    def native() -> None:
        data, _ = store.get(uri)
        found.append(type(data))
        data.close()

    uri = store.add(IMAGE).url
    counters.reset()
    thread = threading.Thread(target=native)
    thread.start()
    thread.join()
    assert found == [filesystem.ChunkedFile]
    assert not counters.yields


@pytest.fixture
def wrap() -> Callable[[Any], Any]:
    """``paced.wrap`` where greenlets may be."""
    pytest.importorskip("eventlet").sleep(0)
    return paced.wrap


@needs_eventlet
@pytest.mark.parametrize(("size", "stands_in"), [
    (SHARE, False), (SHARE + 1, True), (0, True), (None, True), (str(KIB), True), (True, True),
])  # fmt: skip
def test_data_within_the_first_share_needs_no_proxy(size: Any, stands_in: bool, wrap: Callable[[Any], Any]) -> None:
    """An image that is known to be small would not yield."""
    data = io.BytesIO(b"data")
    seen = []
    get = image_fairness.make_get(lambda store: (data, size), None)
    add = image_fairness.make_add(lambda store, image_id, image_file, *args, **kwargs: seen.append(image_file), None)
    seen.append(get(None)[0])
    add(None, "image", data, size, "sha512")
    add(None, "image", data, image_size=size)
    assert [each is not data for each in seen] == [stands_in] * 3


@needs_eventlet
def test_a_share_that_is_set_smaller_counts(wrap: Callable[[Any], Any]) -> None:
    data = io.BytesIO(b"data")
    with fastio.patched("image_fairness", yield_bytes=CHUNK):
        get = image_fairness.make_get(lambda store, size: (data, size), None)
        assert get(None, CHUNK)[0] is data and get(None, CHUNK + 1)[0] is not data


@pytest.mark.parametrize("data", [None, 5, object()])
def test_unreadable_data_stays_itself(wrap: Callable[[Any], Any], data: Any) -> None:
    """And a proxy."""
    assert wrap(data) is data
    assert wrap(found := wrap(io.BytesIO())) is found


@needs_eventlet
def test_time_out_while_others_run_loses_nothing(fair: None) -> None:
    """The time-out comes before bytes are moved, so that a reader who goes on gets all of them."""
    import eventlet
    from eventlet import hubs

    hubs.get_hub()
    stand_in = paced.wrap(iter([b"x" * CHUNK, b"y" * CHUNK]))
    first = next(stand_in)

    current = eventlet.getcurrent()
    eventlet.spawn_n(current.throw, TimeIsOver())
    with pytest.raises(TimeIsOver):
        next(stand_in)
    assert first + b"".join(stand_in) == b"x" * CHUNK + b"y" * CHUNK
    assert counters.yields


@needs_eventlet
def test_in_the_hub_itself_nothing_yields(fair: None) -> None:
    import eventlet
    from eventlet import hubs

    seen: list[bytes] = []
    hub = hubs.get_hub()
    stand_in = paced.wrap(iter([b"x" * CHUNK, b"y" * CHUNK, b"z"]))
    hub.schedule_call_global(0, lambda: seen.extend(stand_in))
    eventlet.sleep(0.01)
    assert b"".join(seen) == b"x" * CHUNK + b"y" * CHUNK + b"z"
    assert not counters.yields
