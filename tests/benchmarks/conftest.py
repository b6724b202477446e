"""What the tests of the benchmarks share."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_settings_of_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads of tests are carried out by one process, unless the test says otherwise."""
    for name in [name for name in os.environ if name.startswith("FASTIO_LOAD_")]:
        monkeypatch.delenv(name)
