"""A volume that is a file, and is extended while an image of unknown size is written."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import pytest

pytest.importorskip("glance_store")

import fastio
from benchmarks.backends import cinder as backend
from tests.stores.images import MIB

pytest.importorskip("glance_store._drivers.cinder")

NAME = "fix_cinder_file_volumes"
#: Two of upstream's chunks.
GB = 8 * MIB


@pytest.fixture
def data(cinder_store: Any, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """An image of two and a half :data:`GB`."""
    driver = sys.modules[type(cinder_store.driver).__module__]
    monkeypatch.setattr(driver.units, "Gi", GB)
    monkeypatch.setattr(backend, "GIB", GB)
    return os.urandom(GB * 5 // 2)


@pytest.fixture
def attached(cinder_store: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """For what the driver attaches volumes."""
    modes: list[str] = []
    client = cinder_store.driver.get_cinderclient()
    create = client.attachments.create

    def noting(volume: Any, *args: Any, **kwargs: Any) -> Any:
        modes.append(kwargs["mode"])
        return create(volume, *args, **kwargs)

    monkeypatch.setattr(client.attachments, "create", noting)
    return modes


@pytest.mark.parametrize("others", [(), ("store_cinder", "image_fairness", "fix_cinder_read_errors")])
def test_nothing_is_lost(cinder_store: Any, data: bytes, attached: list[str], others: tuple[str, ...]) -> None:
    with fastio.patched((NAME, *others), strict=True):
        added = cinder_store.add(io.BytesIO(data))
        assert cinder_store.read(added.url) == data
        assert fastio.metrics().patches[NAME].calls == 3
    assert added.size == len(data)
    assert attached == ["rw", "rw", "rw", "ro"]


def test_upstream_loses_all_but_the_last_part(cinder_store: Any, data: bytes) -> None:
    """When this fails upstream has mended it, and the fix can go."""
    added = cinder_store.add(io.BytesIO(data))
    assert cinder_store.read(added.url) == bytes(2 * GB) + data[2 * GB :]


@pytest.mark.parametrize("method", ["__eq__", "__ne__"])
def test_upstream_takes_the_mode_for_its_own(method: str) -> None:
    from fastio.patches.glance_store.fix_cinder_file_volumes import _Mode

    for other in ("wb", "rb", "rb+"):
        assert getattr(_Mode("rb+"), method)(other) is getattr("wb", method)(other)
