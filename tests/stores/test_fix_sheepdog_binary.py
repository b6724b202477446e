"""``fix_sheepdog_binary``: glance_store's own sheepdog driver gives the bytes of an image on Python 3."""

import hashlib
import io
import pathlib
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastio
from benchmarks.backends import old_sheepdog

if old_sheepdog.missing():
    pytest.skip(old_sheepdog.missing(), allow_module_level=True)

from glance_store import BackendException, exceptions, location  # noqa: E402

MIB = 1 << 20
NAME = "fix_sheepdog_binary"

#: Of all byte values, and of sequences that are valid UTF-8.
IMAGE = random.Random(0).randbytes(2 * MIB + 17) + "äöü€🙂".encode() * 50_000


@pytest.fixture
def store(make_old_store: Callable[..., Any]) -> Any:
    """A single store, in chunks of 1 MiB."""
    return make_old_store(1)


def add(store: Any, data: bytes, name: str = "a") -> Any:
    uri, *rest = store.add(name, io.BytesIO(data), len(data), "sha512")
    return location.Location("sheepdog", store.get_store_location_class(), store.conf, uri=uri), rest


def test_upstream_gives_text(store: Any) -> None:
    where, _ = add(store, IMAGE)
    chunks = list(store.get(where)[0])
    assert {type(chunk) for chunk in chunks} == {str}
    assert "".join(chunks).encode(errors="surrogateescape") != IMAGE
    assert len(chunks) > 3


def test_an_image_is_read_as_bytes(store: Any) -> None:
    where, told = add(store, IMAGE)
    with fastio.patched(NAME, strict=True):
        chunks, size = store.get(where)
        pieces = list(chunks)
        assert [len(piece) for piece in pieces] == [MIB, MIB, len(IMAGE) - 2 * MIB]
        assert b"".join(pieces) == IMAGE
        assert fastio.metrics().patches[NAME].calls == 3
        assert size == store.get_size(where) == len(IMAGE)
        assert told == [len(IMAGE), hashlib.md5(IMAGE).hexdigest(), hashlib.sha512(IMAGE).hexdigest(), {}]
    assert {type(chunk) for chunk in store.get(where)[0]} == {str}


def test_everything_else_is_as_before(store: Any) -> None:
    with fastio.patched(NAME, strict=True):
        where, told = add(store, IMAGE)
        assert told[0] == len(IMAGE)
        with pytest.raises(exceptions.Duplicate):
            add(store, IMAGE)
        assert b"".join(store.get(where)[0]) == IMAGE
        store.delete(where)
        for operation in (store.get, store.get_size, store.delete):
            with pytest.raises(exceptions.NotFound):
                operation(where)


def test_no_shell_sees_the_name(store: Any, tmp_path: pathlib.Path) -> None:
    """CVE-2014-0162: the driver made a line for a shell of it once."""
    marker = tmp_path / "marker"
    with fastio.patched(NAME, strict=True):
        # A name without spaces: upstream cannot tell the size of an image with one.
        where, _ = add(store, IMAGE[:1000], f"a;>{marker};$(>{marker})")
        assert b"".join(store.get(where)[0]) == IMAGE[:1000]
    assert not marker.exists()


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=3000) | st.text(max_size=1000).map(lambda text: text.encode(errors="surrogatepass")))
def test_any_bytes(store: Any, data: bytes) -> None:
    with fastio.patched(NAME, strict=True):
        where, _ = add(store, data, hashlib.sha256(data).hexdigest())
        assert b"".join(store.get(where)[0]) == data
        store.delete(where)


def failure(store: Any, where: Any, caplog: pytest.LogCaptureFixture) -> tuple[Any, ...]:
    """What a failing read raises, and logs."""
    caplog.clear()
    with pytest.raises(BackendException) as caught:
        list(store.get(where)[0])
    (inner,) = caught.value.args
    said = inner.exit_code, inner.stderr, inner.cmd, type(inner), inner.description
    return *said, [(record.name, record.levelname) for record in caplog.records if record.name.startswith("glance")]


def test_a_failure_is_as_with_stock(
    store: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, _ = add(store, b"\xff" * 9 * MIB)
    store.READ_CHUNKSIZE = 9 * MIB
    monkeypatch.setenv("DOG_DIE_AFTER", "1")
    stock = failure(store, where, caplog)
    with fastio.patched(NAME, strict=True):
        assert failure(store, where, caplog) == stock
    assert stock[0] == 1
