"""Validations run in separate processes."""

from importlib.util import find_spec

import pytest

#: Of the extra "bench".
NEEDED = ("packaging", "psutil", "rich", "scipy")

collect_ignore_glob = ["test_*.py"] if not all(map(find_spec, NEEDED)) else []


def pytest_itemcollected(item: pytest.Item) -> None:
    # Upstream's suites run in it, and are given 1,500 s.
    item.add_marker(pytest.mark.limit(1800))
