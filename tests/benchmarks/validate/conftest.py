"""What is validated runs in processes of its own."""

from collections import Counter
from importlib.util import find_spec

import pytest

from tests.benchmarks.validate.broken import BROKEN

#: Of the extra "bench".
NEEDED = ("packaging", "psutil", "rich", "scipy")

collect_ignore_glob = ["test_*.py"] if not all(map(find_spec, NEEDED)) else []


def pytest_itemcollected(item: pytest.Item) -> None:
    # Upstream's suites run in it, and are given 1,500 s.
    item.add_marker(pytest.mark.limit(1800))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Of each project whose broken candidates were run, how many were caught."""
    ended = {
        outcome: Counter(
            value
            for report in terminalreporter.stats.get(outcome, [])
            for name, value in report.user_properties
            if name == "broken"
        )
        for outcome in ("passed", "failed")
    }
    for project, candidates in BROKEN.items():
        caught, missed = ended["passed"][project], ended["failed"][project]
        if caught or missed:
            others = len(candidates) - caught - missed
            rest = f", {others} not run" if others else ""
            terminalreporter.write_line(f"{project}: {caught} of {len(candidates)} broken candidates caught{rest}")
