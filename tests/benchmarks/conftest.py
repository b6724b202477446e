"""Shared by the tests of the benchmarks."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

# Without the extra 'bench' there is nothing to test.
collect_ignore_glob = [] if all(map(find_spec, ("numpy", "psutil", "rich", "scipy"))) else ["test_*.py"]


@pytest.fixture(autouse=True)
def no_settings_of_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads of tests are carried out by one process, unless the test says otherwise."""
    for name in [name for name in os.environ if name.startswith("FASTIO_LOAD_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the runs of a test keep their payloads, for all tests; the operator's settings do not reach them."""
    path = tmp_path_factory.getbasetemp() / "payloads"
    monkeypatch.setenv("FASTIO_BENCHMARK_CACHE", str(path))
    for name in [name for name in os.environ if name == "FASTIO" or name.startswith("TEST_")]:
        monkeypatch.delenv(name)
    return path
