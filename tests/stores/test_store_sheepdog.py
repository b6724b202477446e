"""``store_sheepdog``: the chunk sizes of glance_store's own sheepdog driver, as the commands show them."""

import io
from collections.abc import Callable
from typing import Any

import pytest

import fastio
from benchmarks.backends import old_sheepdog

if old_sheepdog.missing():
    pytest.skip(old_sheepdog.missing(), allow_module_level=True)

from glance_store import location  # noqa: E402

MIB = 1 << 20
NAMES = ("store_sheepdog", "fix_sheepdog_binary")
IMAGE = bytes(range(256)) * 4096 * 3


@pytest.fixture
def lengths(old_driver: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], dict[str, list[int]]]:
    """``lengths(store)`` adds and gets an image: the lengths that the commands are given, in KiB, by command."""

    class Processutils:
        ProcessExecutionError = old_driver.processutils.ProcessExecutionError

        @staticmethod
        def execute(*words: Any, **options: Any) -> Any:
            if len(words) > 2 and words[2] in seen:
                seen[words[2]].append(int(words[-1]) // 1024)
            return execute(*words, **options)

    execute = old_driver.processutils.execute
    seen: dict[str, list[int]] = {}
    monkeypatch.setattr(old_driver, "processutils", Processutils)

    def measure(store: Any) -> dict[str, list[int]]:
        seen.update(read=[], write=[])
        group = store.backend_group
        uri, *_ = store.add("a", io.BytesIO(IMAGE), len(IMAGE), "sha512")
        where = location.Location("sheepdog", store.get_store_location_class(), store.conf, uri=uri, backend=group)
        assert b"".join(store.get(where)[0]) == IMAGE
        store.delete(where)
        return {command: list(found) for command, found in seen.items()}

    return measure


def equal(*sizes: int) -> dict[str, list[int]]:
    return {"read": list(sizes), "write": list(sizes)}


@pytest.mark.parametrize("group", [None, "kennel"])
def test_chunk_sizes(make_old_store: Any, lengths: Any, group: str | None) -> None:
    """The setting of the driver, that of all drivers, the operator's option, upstream's default."""
    with fastio.patched(NAMES, strict=True, store_chunk_sizes={"sheepdog": "1MiB"}, store_chunk_size="512KiB"):
        assert lengths(make_old_store(2, group)) == equal(1024, 1024, 1024)
    with fastio.patched(NAMES, strict=True, store_chunk_size="2MiB"):
        assert lengths(make_old_store(1, group)) == equal(2048, 1024)
    with fastio.patched(NAMES, strict=True):
        assert lengths(make_old_store(2, group)) == equal(2048, 1024)
        assert lengths(make_old_store(None, group)) == equal(3072)
        before = fastio.metrics().patches["store_sheepdog"].calls
        assert make_old_store(None, group).READ_CHUNKSIZE == make_old_store(64, group).WRITE_CHUNKSIZE == 64 * MIB
        assert fastio.metrics().patches["store_sheepdog"].calls - before >= 2


def test_of_another_driver_only(make_old_store: Any, lengths: Any) -> None:
    with fastio.patched(NAMES, strict=True, store_chunk_sizes={"rbd": "1MiB"}):
        assert lengths(make_old_store(2)) == equal(2048, 1024)


def test_a_store_that_is_there_already(make_old_store: Any, lengths: Any) -> None:
    store = make_old_store(2)
    with fastio.patched(NAMES, strict=True, store_chunk_size="1MiB"):
        assert lengths(store) == equal(1024, 1024, 1024)
        with fastio.patched(NAMES, strict=True, store_chunk_size="1536KiB"):
            assert lengths(store) == equal(1536, 1536)
    assert store.READ_CHUNKSIZE == store.WRITE_CHUNKSIZE == 2 * MIB


def test_the_class_is_as_it_was(old_driver: Any, make_old_store: Any) -> None:
    with fastio.patched(NAMES, strict=True, store_chunk_size="1MiB"):
        assert "READ_CHUNKSIZE" in vars(old_driver.Store)
        store = make_old_store(3)
    assert not {"READ_CHUNKSIZE", "WRITE_CHUNKSIZE"} & set(vars(old_driver.Store))
    assert old_driver.Store.READ_CHUNKSIZE == 4 * MIB
    assert store.READ_CHUNKSIZE == store.WRITE_CHUNKSIZE == 3 * MIB
