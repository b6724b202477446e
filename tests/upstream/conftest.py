"""Upstream suites run in processes of their own, whatever this one is patched with."""

from tests.conftest import MONKEY_PATCHED

collect_ignore_glob = ["test_*.py"] if MONKEY_PATCHED else []
