"""All that a validation has found."""

from dataclasses import asdict, dataclass, field
from typing import Any

import fastio
from benchmarks.harness.results import Result
from benchmarks.tools.pythons import Python
from benchmarks.tools.upstream.compare import FLAKY, Comparison

from .candidates import Candidate
from .environments import Variant
from .measurements import Row
from .projects import Project
from .sandbox import Isolation


@dataclass
class Outcome:
    """The findings of a validation."""

    project: Project
    candidate: Candidate | None
    #: how the validation was started
    command: list[str]
    machine: dict[str, Any]
    started: str
    #: how the code that is compared was run
    isolation: Isolation
    python: Python
    #: stock is the first
    variants: list[Variant]
    suites: list[Comparison] = field(default_factory=list)
    benchmarks: Result | None = None
    rows: list[Row] = field(default_factory=list)

    def failures(self) -> list[str]:
        """Why this fails, a line each; empty if nothing newly fails."""
        found = [line for compared in self.suites for line in compared.failures()]
        return found + [str(row) for row in self.rows if row.failure]

    def empty(self) -> bool:
        """Whether nothing differs from stock, but what is flaky or noise."""
        differs = any(each.verdict(found) != FLAKY for each in self.suites for found in each.differences)
        moved = any(not row.verdict.startswith("noise") for row in self.rows)
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
            "python": asdict(self.python),
            "failures": self.failures(),
            "variants": [
                {
                    "name": variant.name, "version": variant.version, "changed": variant.changed,
                    "packages": variant.environment.versions(),
                }
                for variant in self.variants
            ],
            "suites": [compared.to_dict() for compared in self.suites],
            "rows": [asdict(row) for row in self.rows],
            "benchmarks": None if self.benchmarks is None else asdict(self.benchmarks),
        }  # fmt: skip
