"""The drivers of glance_store: a real filesystem store, traced, in every order of patching."""

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

import fastio
from fastio.trace import recorder
from tests.stores.images import ImageFile
from tests.targets import attributes, import_targets
from tests.trace import traces

pytest.importorskip("glance_store", reason="the stores need glance_store")

SIZE = 3_000_001


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Iterator[Any]:
    import_targets()
    from benchmarks.backends.stores import opened

    options = {"filesystem_store_datadir": str(tmp_path / "images")}
    with opened({"backend": "filesystem", "driver": "file", "options": options}, "traced") as store:
        yield store


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    yield tmp_path / "trace"
    fastio.unpatch()
    assert recorder.active is None


def use(store: Any) -> None:
    """Add an image, read it, and delete it."""
    import glance_store

    content = os.urandom(SIZE)
    added = store.add(content, hashing="sha256")
    assert added.size == SIZE
    assert store.read(added.url) == content
    assert store.read(added.url, offset=7, chunk_size=1000) == content[7:1007]
    store.delete(added.url)
    with pytest.raises(glance_store.NotFound):
        store.get(added.url)


def check(directory: pathlib.Path) -> None:
    traces.well_formed(traces.spans(directory))
    gets = traces.ends(directory, "store.filesystem.get")
    assert [(get["outcome"], get.get("bytes")) for get in gets] == [("ok", SIZE), ("ok", 1000), ("error", None)]
    assert gets[0]["chunks"] >= 1
    assert gets[0]["busy_ns"] > 0
    assert gets[2]["error"].startswith("glance_store.exceptions.NotFound")
    (add,) = traces.ends(directory, "store.filesystem.add")
    assert (add["outcome"], add["bytes"]) == ("ok", SIZE)
    (delete,) = traces.ends(directory, "store.filesystem.delete")
    assert delete["outcome"] == "ok"


@pytest.mark.parametrize("trace_first", [True, False])
@pytest.mark.parametrize("own", ["store_filesystem", "image_fairness", [], None])
def test_stacked_with_what_replaces_the_same_functions(
    store: Any, directory: pathlib.Path, own: Any, trace_first: bool
) -> None:
    """In either order, and each may go first; on and off again, what was there is there."""
    before = attributes()
    names: Any = [] if trace_first else own
    given: dict[str, Any] = {"trace": str(directory)} if trace_first else {}
    fastio.patch(names, **given)
    fastio.patch(own, trace=str(directory))
    use(store)
    # The trace goes, the patches stay.
    fastio.patch(own)
    assert recorder.active is None
    use(store)
    check(directory)
    # The patches go, the trace stays.
    other = directory.with_name("other")
    fastio.patch(own, trace=str(other))
    fastio.unpatch(list(fastio.names()) if own is None else own)
    assert recorder.active is not None
    use(store)
    fastio.unpatch()
    check(other)
    after = attributes()
    assert all(after[key] is value for key, value in before.items())


def test_data_that_is_not_taken_to_the_end(store: Any, directory: pathlib.Path) -> None:
    added = store.add(os.urandom(SIZE))
    fastio.patch([], trace=str(directory))
    data, _ = store.get(added.url)
    iterator = iter(data)
    next(iterator)
    del data, iterator
    fastio.unpatch()
    (get,) = traces.ends(directory, "store.filesystem.get")
    assert get["outcome"] == "aborted"
    assert 0 < get["bytes"] < SIZE


def test_input_that_fails(store: Any, directory: pathlib.Path) -> None:
    broken = ImageFile(b"", fails_at=0, error=OSError(5, "Input/output error"))
    fastio.patch([], trace=str(directory))
    with pytest.raises(OSError):
        store.add(broken, size=SIZE)
    fastio.unpatch()
    (add,) = traces.ends(directory, "store.filesystem.add")
    assert add["error"] == "OSError EIO"
    assert add["outcome"] == "error"
