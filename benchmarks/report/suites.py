"""What each suite shows beside what all of them have.

A suite's module is ``benchmarks/suites/SUITE/bench_SUITE.py``; it does not have to be listed here. Of it a report
takes

- the first paragraph of its docstring, which says what is measured,
- ``judgement(result)``, if it is there: tables of what the figures say,
- ``plot(result, directory, name)``, if it is there: draws into files and returns them; the SVG files are shown,
- ``PLOTS``, if it is there: for the names of those files, without ``name-`` and ``.svg``, what each shows: a caption,
  or a caption and lines of what can be seen in it, or a function that says this of a result.

Results that no such file makes have a module in :data:`OTHERS`, which has the same.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import suites
from benchmarks.harness.results import Result, ResultError
from benchmarks.harness.tables import Table

#: First word of the suite -> module.
OTHERS = {
    "validate": "benchmarks.validate.measured",
    "load": "benchmarks.load.report",
    "workload": "benchmarks.load.workloads",
}


class Suite:
    """What a suite shows.

    :param name: as its results have it
    :raises ResultError: if there is no such suite; the message says which there are
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._module = _module(name)

    @property
    def about(self) -> str:
        """What it measures."""
        return " ".join((self._module.__doc__ or "").partition("\n\n")[0].split()).replace("``", "")

    def judgement(self, result: Result) -> Sequence[Table]:
        """Tables of what the figures say."""
        judge = getattr(self._module, "judgement", None)
        return [each for each in judge(result) if each.rows] if judge else []

    def draw(self, result: Result, directory: Path, name: str) -> Sequence[Path]:
        """Draw what only this suite has; the files."""
        plot = getattr(self._module, "plot", None)
        return plot(result, directory, name) if plot else []

    def caption(self, drawn: str, result: Result) -> tuple[str, Sequence[str]]:
        """What a file of :meth:`draw` shows, and what can be seen in it.

        :param drawn: its name without that of the result and without the suffix
        """
        captions: Mapping[str, Any] = getattr(self._module, "PLOTS", {})
        found = captions.get(drawn, drawn)
        if callable(found):
            found = found(result)
        return (found, ()) if isinstance(found, str) else found


def known() -> list[str]:
    """The names of all suites, as a report knows them."""
    return sorted([*(folder.name for folder in pkgutil.iter_modules(suites.__path__)), *OTHERS])


def _module(name: str) -> ModuleType:
    first = name.split()[0] if name.split() else name
    if first not in known():
        raise ResultError(f"suite {name!r} is none that a report knows: allowed are {', '.join(known())}")
    return importlib.import_module(OTHERS.get(first, f"benchmarks.suites.{first}.bench_{first}"))
