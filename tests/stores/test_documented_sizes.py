"""The table of chunk sizes in the documentation is that of the patches."""

import re
from pathlib import Path

import pytest

from fastio.config import MIB, STORES, parse_size
from fastio.patches.glance_store import (
    store_cinder,
    store_filesystem,
    store_http,
    store_rbd,
    store_s3,
    store_swift,
    store_vmware,
)

PAGE = (Path(__file__).parents[2] / "doc" / "source" / "operators" / "stores.rst").read_text(encoding="utf-8")
SIZES = {
    "filesystem": (store_filesystem.CHUNK, store_filesystem.CHUNK),
    "http": (store_http.READ_CHUNK, None),
    "swift": (store_swift.CHUNK, store_swift.CHUNK),
    "s3": (store_s3.READ_CHUNK, 5 << 20),
    "rbd": (store_rbd.READ_CHUNK, store_rbd.CHUNK),
    "cinder": (store_cinder.CHUNK, store_cinder.CHUNK),
    "vmware": (store_vmware.CHUNK, store_vmware.CHUNK),
    # The default of fastio's own driver, which has an option for it.
    "sheepdog": (MIB, MIB),
}


@pytest.mark.parametrize("store", STORES)
def test_the_table_has_the_defaults(store: str) -> None:
    (row,) = re.findall(rf"^``{store}`` +(.+?)  +(.+?)(?:  |$)", PAGE, re.MULTILINE)
    assert tuple(None if cell.strip() == "–" else parse_size(cell.strip()) for cell in row) == SIZES[store]
