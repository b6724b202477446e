"""All that a validation has found."""

from dataclasses import asdict, dataclass, field
from typing import Any

import fastio
from benchmarks.harness.results import Result
from benchmarks.tools.pythons import Python

from .candidates import Candidate
from .environments import Variant
from .measurements import Row
from .projects import Project
from .sandbox import Isolation
from .suites import WORDS, Compared


@dataclass
class PythonOutcome:
    """What was found with one Python."""

    python: Python
    #: stock is the first
    variants: list[Variant]
    suites: list[Compared] = field(default_factory=list)
    benchmarks: Result | None = None
    rows: list[Row] = field(default_factory=list)

    @property
    def place(self) -> str:
        """What tells it from those with other Pythons, in names of files."""
        return f"py{self.python.version}"

    def failures(self) -> list[str]:
        found = [line for compared in self.suites for line in compared.failures()]
        found += [str(row) for row in self.rows if row.failure]
        return [f"Python {self.python.version}: {line}" for line in found]


@dataclass
class Outcome:
    """What was found with all Pythons."""

    project: Project
    candidate: Candidate | None
    #: how the validation was started
    command: list[str]
    machine: dict[str, Any]
    started: str
    #: how the code that is compared was run
    isolation: Isolation
    pythons: list[PythonOutcome] = field(default_factory=list)

    def failures(self) -> list[str]:
        """Why this fails, a line each; empty if nothing newly fails."""
        return [line for each in self.pythons for line in each.failures()]

    def empty(self) -> bool:
        """Whether nothing differs from stock, but what is flaky or noise."""
        differs = any(
            compared.found(word)
            for each in self.pythons
            for compared in each.suites
            for word in WORDS.values()
            if word != WORDS["not reproduced"]
        )
        moved = any(not row.verdict.startswith("noise") for each in self.pythons for row in each.rows)
        return not (differs or moved or self.failures())

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            "format": "fastio-validation",
            "version": 1,
            "fastio": fastio.__version__,
            "project": self.project.name,
            "candidate": None if self.candidate is None else asdict(self.candidate),
            "command": self.command,
            "machine": self.machine,
            "started": self.started,
            "isolation": self.isolation.to_dict(),
            "failures": self.failures(),
            "pythons": [_python(each) for each in self.pythons],
        }


def _python(each: PythonOutcome) -> dict[str, Any]:
    return {
        "python": asdict(each.python),
        "variants": [
            {
                "name": variant.name,
                "version": variant.version,
                "changed": variant.changed,
                "packages": variant.environment.versions(),
            }
            for variant in each.variants
        ],
        "suites": [_suite(compared) for compared in each.suites],
        "rows": [asdict(row) for row in each.rows],
        "benchmarks": None if each.benchmarks is None else asdict(each.benchmarks),
        "failures": each.failures(),
    }


def _suite(compared: Compared) -> dict[str, Any]:
    comparison = compared.comparison
    runs = {"stock": comparison.stock, "run": comparison.patched}
    return {
        "name": compared.name,
        "variant": compared.variant,
        "unavailable": comparison.unavailable,
        **{name: None if run is None else {**asdict(run), "counts": run.counts()} for name, run in runs.items()},
        "differences": [{**asdict(found), "verdict": compared.verdict(found)} for found in comparison.differences],
        "faults": comparison.faults,
        "failures": compared.failures(),
    }
