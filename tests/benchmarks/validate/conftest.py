"""What is validated runs in processes of its own."""

from importlib.util import find_spec

from tests.conftest import MONKEY_PATCHED

#: Of the extra "bench".
NEEDED = ("packaging", "psutil", "rich", "scipy")

collect_ignore_glob = ["test_*.py"] if MONKEY_PATCHED or not all(map(find_spec, NEEDED)) else []
