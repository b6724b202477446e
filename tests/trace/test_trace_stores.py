"""The drivers of glance_store: a real filesystem store, traced, in every order of patching."""

import io
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

import fastio
from fastio.trace import recorder
from tests.targets import attributes, import_targets
from tests.trace import traces

pytest.importorskip("glance_store", reason="the stores need glance_store")

SIZE = 3_000_001


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Any:
    import_targets()
    import glance_store
    from oslo_config import cfg

    (tmp_path / "images").mkdir()
    conf = cfg.ConfigOpts()
    glance_store.register_opts(conf)
    conf(args=[])
    conf.set_override("stores", ["file"], group="glance_store")
    conf.set_override("default_store", "file", group="glance_store")
    conf.set_override("filesystem_store_datadir", str(tmp_path / "images"), group="glance_store")
    glance_store.create_stores(conf)
    return glance_store.get_store_from_scheme("file")


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    yield tmp_path / "trace"
    fastio.unpatch()
    assert recorder.active is None


def use(store: Any, number: int) -> None:
    """Add an image, read it, and delete it."""
    import glance_store
    from glance_store.location import get_location_from_uri

    content = os.urandom(SIZE)
    identifier = f"image-{number}"
    uri, size, *_ = store.add(identifier, io.BytesIO(content), SIZE, hashing_algo="sha256")
    assert size == SIZE
    location = get_location_from_uri(uri, conf=store.conf)
    data, size = store.get(location)
    assert b"".join(data) == content
    data, size = store.get(location, offset=7, chunk_size=1000)
    assert b"".join(data) == content[7:1007]
    store.delete(location)
    with pytest.raises(glance_store.NotFound):
        store.get(location)


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
    use(store, 1)
    # The trace goes, the patches stay.
    fastio.patch(own)
    assert recorder.active is None
    use(store, 2)
    check(directory)
    # The patches go, the trace stays.
    other = directory.with_name("other")
    fastio.patch(own, trace=str(other))
    fastio.unpatch(list(fastio.names()) if own is None else own)
    assert recorder.active is not None
    use(store, 3)
    fastio.unpatch()
    check(other)
    after = attributes()
    assert all(after[key] is value for key, value in before.items())


def test_data_that_is_not_taken_to_the_end(store: Any, directory: pathlib.Path) -> None:
    from glance_store.location import get_location_from_uri

    uri, *_ = store.add("image", io.BytesIO(os.urandom(SIZE)), SIZE, hashing_algo="sha256")
    fastio.patch([], trace=str(directory))
    data, _ = store.get(get_location_from_uri(uri, conf=store.conf))
    iterator = iter(data)
    next(iterator)
    del data, iterator
    fastio.unpatch()
    (get,) = traces.ends(directory, "store.filesystem.get")
    assert get["outcome"] == "aborted"
    assert 0 < get["bytes"] < SIZE


def test_input_that_fails(store: Any, directory: pathlib.Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    fastio.patch([], trace=str(directory))
    with pytest.raises(OSError):
        store.add("image", Broken(), SIZE, hashing_algo="sha256")
    fastio.unpatch()
    (add,) = traces.ends(directory, "store.filesystem.add")
    assert add["error"] == "OSError EIO"
    assert add["outcome"] == "error"
