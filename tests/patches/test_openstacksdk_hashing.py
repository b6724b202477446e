"""``openstacksdk_hashing``: an image is verified by threads, and the check is where upstream has it."""

import hashlib
import inspect
import pathlib
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("openstack", reason="openstacksdk is not installed: pip install fastio[client]")

from openstack import exceptions  # noqa: E402
from openstack.image import _download  # noqa: E402

import fastio  # noqa: E402
from fastio.io.hashing import BATCH  # noqa: E402
from fastio.io.hashing_pool import pool  # noqa: E402
from tests.conftest import MONKEY_PATCHED  # noqa: E402
from tests.patches.cloud import Cloud  # noqa: E402
from tests.patches.image_api import Image, content, image_api, outcome  # noqa: E402
from tests.patches.verified import MIB, leaves_the_hub_free, pieces, settled  # noqa: E402, F401

if not hasattr(_download, "_integrity_iter"):
    pytest.skip("this release of openstacksdk hashes elsewhere", allow_module_level=True)

NAME = "openstacksdk_hashing"


def check(source: Any, data: bytes, right: bool) -> Any:
    expected = hashlib.sha512(data).hexdigest() if right else "0"
    return _download._integrity_iter(source, hashlib.sha512(), expected, "sha512")


#: The record of an image by which it is checked.
RECORDS: dict[str, Any] = {
    "multihash": lambda data: {"os_hash_algo": "sha512", "os_hash_value": hashlib.sha512(data).hexdigest()},
    "checksum": lambda data: {"checksum": hashlib.md5(data).hexdigest()},
}


@pytest.mark.parametrize("record", list(RECORDS))
@pytest.mark.parametrize("right", [True, False])
def test_downloads(record: str, right: bool, tmp_path: pathlib.Path) -> None:
    data = content(9 * MIB + 5)
    described = RECORDS[record](data if right else data[1:])
    found: list[Any] = []
    with image_api({"a": Image(data, record=described)}) as server:
        for names in ([], [NAME]):
            path = tmp_path / "image"
            before = pool.batches
            with fastio.patched(names, strict=True):
                try:
                    Cloud(server).image.download_image("a", stream=True, output=str(path))
                    found.append((None, path.read_bytes()))
                except exceptions.SDKException as error:
                    found.append((re.sub(r"port=\d+", "", str(error)), path.read_bytes()))
            assert (pool.batches > before) == bool(names)
    assert found[0] == found[1]
    assert found[0][1] == data
    assert (found[0][0] is None) == right


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_any_pieces(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([0, 1, 2047, 2048, BATCH - 1, BATCH, BATCH + 1, 3 * MIB + 1]))
    piece = data.draw(st.integers(max(1, size // 500), max(1, size)))
    right = data.draw(st.booleans())
    whole = content(size)
    found = []
    for names in ([], [NAME]):
        with fastio.patched(names):
            found.append(outcome(lambda: check(pieces(whole, piece), whole, right)))
    assert found[0] == found[1]
    assert (found[0][2] is None) == right
    assert found[0][1] == whole


def test_the_error_comes_after_the_last_chunk() -> None:
    whole = content(3 * MIB)
    with fastio.patched(NAME, strict=True):
        found = check(pieces(whole, MIB), whole, False)
        assert inspect.isgenerator(found)
        for _ in range(3):
            assert len(next(found)) == MIB  # type: ignore[arg-type]
        with pytest.raises(exceptions.InvalidResponse, match="checksum mismatch"):
            next(found)
        assert list(found) == []


def test_nothing_to_compare_with() -> None:
    whole = content(MIB)
    with fastio.patched(NAME, strict=True):
        assert b"".join(_download._integrity_iter(iter([whole]), hashlib.sha512(), None, None)) == whole


@pytest.mark.skipif(not MONKEY_PATCHED, reason="there are greenlets only after monkey_patch()")
def test_the_hub_is_free_meanwhile() -> None:
    leaves_the_hub_free(NAME, lambda source, data: check(source, data, True))
