"""A pytest plugin that writes what a run has seen, as JSON, into the file that ``MUTANTS_SEEN`` names."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "MUTANTS_SEEN"


class Seen:
    """What is counted, and the first failure."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._passed = 0
        self._failed: dict[str, Any] | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed:
            self._note(item.nodeid, report.when, call.excinfo)
        elif report.passed and report.when == "call":
            self._passed += 1
        return report

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any]) -> None:
        if isinstance(node, pytest.Collector):
            self._note(node.nodeid, "collect", call.excinfo)

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps({"passed": self._passed, "failed": self._failed}))

    def _note(self, test: str, phase: str, found: pytest.ExceptionInfo[BaseException] | None) -> None:
        if self._failed is None and found is not None:
            lines = str(found.value).strip().splitlines() or [""]
            self._failed = {
                "test": test,
                "phase": phase,
                "types": [each.__name__ for each in type(found.value).__mro__],
                "text": f"{found.typename}: {lines[0]}",
            }


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Seen(Path(os.environ[VARIABLE])), "what mutants' tests have seen")
