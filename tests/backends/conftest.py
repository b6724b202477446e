"""Shared by the tests of the backends."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import tests.green_ssl  # noqa: F401
from benchmarks.backends.base import Backend
from benchmarks.backends.keeper import state_and_parent
from tests.backends.required import usable
from tests.conftest import with_services


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(with_services)


@pytest.fixture(name="usable")
def usable_backend() -> Callable[[str], type[Backend]]:
    """``usable(name)`` is the class of a backend; the test is skipped where it cannot be started."""
    return usable


def alive(pid: int) -> bool:
    """Whether there is such a process, zombies excepted."""
    return state_and_parent(pid)[0] not in "ZX"


def processes_of(path: Path) -> list[int]:
    """The processes whose command line or environment names ``path``."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                text = Path("/proc", entry, "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(path) in text:
                found.append(int(entry))
    return found
