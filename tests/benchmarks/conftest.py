"""The benchmarks run in processes of their own: that this one is monkey patched would change nothing but hang."""

from tests.conftest import MONKEY_PATCHED

collect_ignore_glob = ["test_*.py"] if MONKEY_PATCHED else []
