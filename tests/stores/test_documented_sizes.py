"""The table of chunk sizes in the documentation is that of the patches."""

import importlib
import re
from pathlib import Path

import pytest

from fastio.config import MIB, STORES, parse_size

PAGE = (Path(__file__).parents[2] / "doc" / "source" / "operators" / "stores.rst").read_text(encoding="utf-8")
#: Sizes of reads and of writes that are no constants of a patch: a part of s3's, and those of fastio's own driver.
OTHERS = {"s3": {"CHUNK": 5 * MIB}, "sheepdog": {"CHUNK": MIB}}


@pytest.mark.parametrize("store", STORES)
def test_the_table_has_the_defaults(store: str) -> None:
    name = f"fastio.patches.glance_store.store_{store}"
    constants = OTHERS.get(store, {}) | (vars(importlib.import_module(name)) if store != "sheepdog" else {})
    (row,) = re.findall(rf"^``{store}`` +(.+?)  +(.+?)(?:  |$)", PAGE, re.MULTILINE)
    found = [None if cell.strip() == "–" else parse_size(cell.strip()) for cell in row]
    assert found == [constants.get("READ_CHUNK", constants.get("CHUNK")), constants.get("CHUNK")]
