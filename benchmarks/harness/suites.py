"""The tables and plots of each suite besides the common ones.

A suite is a folder of ``benchmarks/suites``; it does not have to be listed here. Of it are taken

- of ``bench_SUITE.py`` the first paragraph of its docstring, which says what is measured,
- ``GOALS`` of the same file (:class:`benchmarks.harness.goals.Asked`),
- of ``tables.py``, if it is there, ``judgement(result)``: tables of what the figures say,
- of ``plots.py``, if it is there, ``PLOTS``: what only this suite draws (:class:`benchmarks.harness.plots.Drawing`).

Results that no suite makes have a module in :data:`OTHERS`, which may have ``judgement``.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from benchmarks.harness.goals import asked
from benchmarks.harness.results import ROOT, Result, ResultError
from benchmarks.harness.summaries import Summary
from fastio.tables import Table

#: First word of the suite -> module.
OTHERS = {
    "validate": "benchmarks.validate",
    "load": "benchmarks.load.report",
}


class Suite:
    """The presentation of a suite.

    :param name: as its results have it
    :raises ResultError: if there is no such suite; the message says which there are
    """

    def __init__(self, name: str) -> None:
        first = name.split()[0] if name.split() else name
        if first not in known():
            raise ResultError(f"suite {name!r} is none that a report knows: allowed are {', '.join(known())}")
        self._folder = f"benchmarks.suites.{first}"
        self._main = OTHERS.get(first, f"{self._folder}.bench_{first}")

    @property
    def about(self) -> str:
        """The object of its measurement."""
        documented = importlib.import_module(self._main).__doc__ or ""
        return " ".join(documented.partition("\n\n")[0].split()).replace("``", "")

    def judgement(self, result: Result) -> list[Table]:
        """Tables of what the figures say, those that have rows."""
        if isinstance(result, Summary):
            return result.judged
        return self.judged(result)

    def judged(self, result: Result) -> list[Table]:
        """The same, made of the figures, whatever a summary says of them."""
        goals = getattr(importlib.import_module(self._main), "GOALS", ())
        judge = self._declared("tables", "judgement")
        made = [*([asked(result, goals)] if goals else []), *(judge(result) if judge else [])]
        return [each for each in made if each.rows]

    def plots(self) -> Mapping[str, Any]:
        """The plots of this suite only (:class:`benchmarks.harness.plots.Drawing`), by the end of the file's name."""
        return self._declared("plots", "PLOTS") or {}

    def _declared(self, part: str, name: str) -> Any:
        own = f"{self._folder}.{part}"
        module = self._main if self._main in OTHERS.values() else own
        return getattr(importlib.import_module(module), name, None) if find_spec(module) else None


def known() -> list[str]:
    """The names of all suites, as a report knows them."""
    return sorted([*(folder.name for folder in pkgutil.iter_modules([str(ROOT / "benchmarks" / "suites")])), *OTHERS])
