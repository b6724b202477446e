"""``glanceclient_hashing``: what is downloaded is verified by threads, and the check is where upstream has it."""

import hashlib
import inspect
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("glanceclient", reason="python-glanceclient is not installed: pip install fastio[client]")

from glanceclient.common import utils  # noqa: E402

import fastio  # noqa: E402
from fastio.io.hashing import BATCH  # noqa: E402
from fastio.io.hashing_pool import pool  # noqa: E402
from tests.conftest import MONKEY_PATCHED  # noqa: E402
from tests.patches.image_api import Image, client, content, image_api, outcome  # noqa: E402
from tests.patches.verified import MIB, leaves_the_hub_free, pieces, settled  # noqa: E402, F401

NAME = "glanceclient_hashing"

#: The record of an image by which each of the two is checked.
RECORDS: dict[str, Any] = {
    "multihash": lambda data: {"os_hash_algo": "sha512", "os_hash_value": hashlib.sha512(data).hexdigest()},
    "other multihash": lambda data: {"os_hash_algo": "sha256", "os_hash_value": hashlib.sha256(data).hexdigest()},
    "checksum": lambda data: {"checksum": hashlib.md5(data).hexdigest()},
}


def check(kind: str, source: Any, data: bytes, right: bool) -> Any:
    """One of the two, on ``source``, which is to have ``data``."""
    algorithm = hashlib.md5 if kind == "integrity_iter" else hashlib.sha512
    expected = algorithm(data).hexdigest() if right else "0"
    if kind == "integrity_iter":
        return utils.integrity_iter(source, expected)
    return utils.serious_integrity_iter(source, hashlib.sha512(), expected)


KINDS = ("serious_integrity_iter", "integrity_iter")


@pytest.mark.parametrize("record", list(RECORDS))
@pytest.mark.parametrize("right", [True, False])
def test_downloads(record: str, right: bool) -> None:
    data = content(9 * MIB + 5)
    described = RECORDS[record](data if right else data[1:])
    with image_api({"a": Image(data, record=described)}) as server:
        glance = client(server.url)
        stock = outcome(lambda: glance.images.data("a"))
        before = pool.batches
        with fastio.patched(NAME, strict=True):
            assert outcome(lambda: glance.images.data("a")) == stock
        assert pool.batches > before, "no thread has hashed anything"
    assert stock[1] == data
    assert (stock[2] is None) == right


@pytest.mark.parametrize("right", [True, False])
def test_content_md5(right: bool) -> None:
    """The server's header, where the record has neither."""
    data = content(2 * MIB)
    header = hashlib.md5(data).hexdigest() if right else "0"
    with image_api({"a": Image(data, record={}, headers={"Content-MD5": header})}) as server:
        glance = client(server.url)
        stock = outcome(lambda: glance.images.data("a"))
        with fastio.patched(NAME, strict=True):
            assert outcome(lambda: glance.images.data("a")) == stock
    assert (stock[2] is None) == right


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_any_pieces(kind: str, data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([0, 1, 2047, 2048, BATCH - 1, BATCH, BATCH + 1, 3 * MIB + 1]))
    piece = data.draw(st.integers(max(1, size // 500), max(1, size)))
    right = data.draw(st.booleans())
    whole = content(size)
    found = []
    for names in ([], [NAME]):
        with fastio.patched(names):
            found.append(outcome(lambda: check(kind, pieces(whole, piece), whole, right)))
    assert found[0] == found[1]
    assert (found[0][2] is None) == right
    assert found[0][1] == whole


@pytest.mark.parametrize("kind", KINDS)
def test_the_error_comes_after_the_last_chunk(kind: str) -> None:
    whole = content(3 * MIB)
    with fastio.patched(NAME, strict=True):
        found = check(kind, pieces(whole, MIB), whole, False)
        assert inspect.isgenerator(found)
        for _ in range(3):
            assert len(next(found)) == MIB  # type: ignore[arg-type]
        with pytest.raises(OSError, match=r"\[Errno 32\] Corrupt image download\. .* expected 0$") as caught:
            next(found)
        assert type(caught.value) is BrokenPipeError
        assert list(found) == []


@pytest.mark.parametrize("kind", KINDS)
def test_text_and_buffers_as_pieces(kind: str) -> None:
    whole = content(MIB)
    as_pieces = [whole[:1000].decode("latin-1"), bytearray(whole[1000:500_000]), memoryview(whole)[500_000:]]
    with fastio.patched(NAME, strict=True):
        assert list(check(kind, iter(as_pieces), whole, True)) == as_pieces


@pytest.mark.parametrize("kind", KINDS)
def test_the_source_fails(kind: str) -> None:
    def failing() -> Iterator[bytes]:
        yield content(MIB)
        raise ConnectionResetError(104, "Connection reset by peer")

    found = []
    for names in ([], [NAME]):
        with fastio.patched(names):
            found.append(outcome(lambda: check(kind, failing(), b"", True)))
    assert found[0] == found[1]
    assert found[0][2] is ConnectionResetError


@pytest.mark.parametrize("kind", KINDS)
def test_left_half_way_the_source_is_left_too(kind: str) -> None:
    closed = []

    def source() -> Iterator[bytes]:
        try:
            while True:
                yield content(MIB)
        finally:
            closed.append(True)

    with fastio.patched(NAME, strict=True):
        found = utils.IterableWithLength(check(kind, source(), b"", True), 10 * MIB)
        iterator = iter(found)
        assert len(next(iterator)) == MIB
        iterator.close()
        del found, iterator
    assert closed == [True]


def test_md5_may_be_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def new(name: str, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(f"[digital envelope routines] unsupported: {name}")

    monkeypatch.setattr(hashlib, "new", new)
    found = []
    for names in ([], [NAME]):
        with fastio.patched(names):
            found.append(outcome(lambda: utils.integrity_iter(iter([b"data"]), "0")))
    assert found[0] == found[1]
    assert "md5 algorithm is not available" in found[0][3]


@pytest.mark.skipif(not MONKEY_PATCHED, reason="there are greenlets only after monkey_patch()")
def test_the_hub_is_free_meanwhile() -> None:
    leaves_the_hub_free(NAME, lambda source, data: check("serious_integrity_iter", source, data, True))


def test_the_command(tmp_path: pathlib.Path) -> None:
    """``fastio run -- glance image-download``: to a file, to stdout, and a damaged one."""
    data = content(3 * MIB + 1)
    bad = {"os_hash_algo": "sha512", "os_hash_value": "0" * 128}
    # Beside this Python, or the distribution's.
    places = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    command = [sys.executable, "-m", "fastio", "run", "--", shutil.which("glance", path=places) or "glance"]
    with image_api({"good": Image(data), "bad": Image(data, record=bad)}) as server:

        def glance(*arguments: str) -> subprocess.CompletedProcess[bytes]:
            options = ["--os-image-url", server.url, "--os-auth-token", "token", "--os-image-api-version", "2"]
            return subprocess.run([*command, *options, *arguments], cwd=tmp_path, capture_output=True, timeout=60)

        filed = glance("image-download", "good", "--file", "image", "--progress")
        assert (filed.returncode, filed.stderr) == (0, b"")
        assert (tmp_path / "image").read_bytes() == data
        assert glance("image-download", "good").stdout == data
        damaged = glance("image-download", "bad", "--file", "image")
        assert damaged.returncode == 1
        assert b"Corrupt image download" in damaged.stderr
