"""The results of a benchmark run: every raw figure, with all that is needed to judge it, as versioned JSON."""

import datetime
import json
import statistics
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from benchmarks.harness import page
from fastio.report import Outcome

if TYPE_CHECKING:
    from benchmarks.harness.statistics import Interval, Spread

FORMAT = "fastio-benchmark"
#: Grows when a reader of older files would misread newer ones.
VERSION = 3
#: Outcomes of patches that had nothing to do with a run, since what they patch was not installed or not imported. A
#: comparison does without them.
UNTOUCHED = frozenset({Outcome.WAITING.value, Outcome.ABSENT.value})

#: Units of throughput, in bytes per second.
THROUGHPUT: Mapping[str, float] = {"MB/s": 1e6, "MiB/s": float(1 << 20)}
#: Units of time, per second.
TIME: Mapping[str, float] = {"s": 1.0, "ms": 1e3, "us": 1e6}

ROOT = Path(__file__).resolve().parents[2]

MIB = 1 << 20
GIB = 1 << 30

#: Fewer rounds than this have no interval.
FEW_ROUNDS = 3
#: Significant digits of medians, which are judged, and of all that is kept: more than tables show.
DIGITS = 6

#: Costs of a run by the bytes it moved: name, heading of a column, the figure they come from, bytes of the unit.
COSTS = (
    ("cpu_seconds_per_gib", "CPU s/GiB", "cpu_seconds", GIB),
    ("server_cpu_seconds_per_gib", "server CPU s/GiB", "server_cpu_seconds", GIB),
    ("machine_cpu_seconds_per_gib", "machine CPU s/GiB", "machine_cpu_seconds", GIB),
    ("reads_per_mib", "reads/MiB", "reads", MIB),
    ("waits_per_mib", "waits/MiB", "waits", MIB),
    ("peak_memory_per_byte", "peak memory/payload", "peak_memory", 1),
)

_Record = TypeVar("_Record")


def rounded(figure: float) -> float:
    """A figure with the digits that are kept of it."""
    return float(f"{figure:.{DIGITS}g}")


class ResultError(ValueError):
    """A file that is no result, or one of a version that we do not know."""


@dataclass
class VariantResult:
    """One row: how it was run, and the runs."""

    #: key in the workload's ``VARIANTS``
    name: str
    #: of one run
    command: list[str]
    parameters: dict[str, Any]
    #: how many measured runs were asked for
    rounds: int
    #: how many the case's other rows have
    usual_rounds: int
    #: title of the row that this one is compared with; the case's baseline by default
    against: str = ""
    #: why it could not be run here
    skipped: str = ""
    #: ``reason``, ``status`` (of the exit) and ``stderr`` of the run that failed; there is no run after it
    failure: dict[str, Any] | None = None
    #: output of the last run beside its figures: ``python`` and, where it was used, ``fastio`` (status and settings)
    details: dict[str, Any] = field(default_factory=dict)
    #: one per run, in the order of time, the warm-up too: ``round``, ``warmup``, ``started`` (seconds since the
    #: epoch) and the figures as the worker gave them
    runs: list[dict[str, Any]] = field(default_factory=list)

    def measured(self) -> list[dict[str, Any]]:
        """The runs that count."""
        return [run for run in self.runs if not run["warmup"]]

    def median(self, key: str) -> float | None:
        """The median of a figure of the measured runs, None unless all of them have it; also of :data:`COSTS`."""
        if key in (name for name, *_ in COSTS):
            return self.costs().get(key)
        found: list[Any] = [run.get(key) for run in self.measured()]
        return rounded(statistics.median(found)) if found and None not in found else None

    def costs(self) -> dict[str, float]:
        """The known medians of :data:`COSTS`; ``cpu_seconds_per_gib`` includes the children's."""
        moved = self.median("bytes")
        found = {name: (self.median(key), unit) for name, _, key, unit in COSTS}
        return {
            name: rounded(median * unit / moved)
            for name, (median, unit) in found.items() if moved and median is not None
        }  # fmt: skip

    def verified(self) -> bool:
        """Whether the payload of every run, the warm-up included, had the right SHA-256."""
        return bool(self.runs) and all(run["verified"] for run in self.runs)

    def troubles(self) -> list[str]:
        """Why it has no figures, or none that can be trusted."""
        found = [f"skipped: {self.skipped}"] if self.skipped else []
        if self.failure:
            last = self.failure["stderr"].strip().splitlines()[-1:] or ["nothing on its standard error"]
            found.append(f"failed: {self.failure['reason']}: {last[0]}")
        if self.runs and not self.verified():
            found.append("WRONG DATA: the payload did not have the expected SHA-256")
        return found


@dataclass
class CaseResult:
    """One table: the same work, done by each variant."""

    name: str
    title: str
    workload: str
    parameters: dict[str, Any]
    #: title of the variant that the others are compared with
    baseline: str
    unit: str
    value: str
    columns: list[str]
    #: of the order of the variants
    seed: int
    #: the server it ran against: ``name``, ``directory`` of its files, and its own parameters
    backend: dict[str, Any] = field(default_factory=dict)
    #: load average over the minute before it
    load_before: float = 0.0
    #: False when the run was interrupted
    complete: bool = False
    #: the suite's summary of all runs of each row, where it takes more than their figures
    summary: dict[str, Any] = field(default_factory=dict)
    #: by title
    variants: dict[str, VariantResult] = field(default_factory=dict)

    @property
    def more_is_better(self) -> bool:
        return self.unit in THROUGHPUT

    def rounds(self, title: str) -> int:
        """How many measured runs a row has."""
        return len(self.figures(title))

    def spread(self, title: str) -> "Spread":
        """How far the figures of a row are from each other."""
        from benchmarks.harness import statistics

        return statistics.spread(self.figures(title))

    def better(self, title: str, against: str = "", key: str = "") -> "Interval | None":
        """How many times better than another row a row is, with the 95 % interval.

        With fewer than :data:`FEW_ROUNDS` rounds the interval is from the worst round against the best to the other
        way round. None where one of the two has not run, or where a figure is 0: a heartbeat that is never late, say.

        :param against: the row it is compared with by default
        :param key: of another figure of the runs than the case's, of which less is better
        """
        from benchmarks.harness import statistics

        figures, base = (self.figures(each, key) for each in (title, against or self.against(title)))
        if not figures or not base or not all(figures) or not all(base):
            return None
        above, below = (figures, base) if self.more_is_better and not key else (base, figures)
        times = statistics.ratio(above, below, self.seed)
        if min(len(figures), len(base)) < FEW_ROUNDS:
            return times._replace(low=min(above) / max(below), high=max(above) / min(below))
        return times

    def figure(self, run: Mapping[str, Any]) -> float:
        """The figure of one run that the case is about, in ``unit``."""
        if self.unit in THROUGHPUT:
            return run["bytes"] / run["seconds"] / THROUGHPUT[self.unit]
        if self.value == "seconds":
            return run["seconds"] * TIME[self.unit]
        return run[self.value]

    def against(self, title: str) -> str:
        """Title of the row that this one is compared with."""
        return self.variants[title].against or self.baseline

    def figures(self, title: str, key: str = "") -> list[float]:
        """The figures of a row's measured runs, or another figure of those that have it; none without such a row."""
        runs = self.variants[title].measured() if title in self.variants else []
        return [run[key] for run in runs if key in run] if key else [self.figure(run) for run in runs]

    def median(self, title: str, key: str = "") -> float | None:
        """The median of a row's figures, or of another figure of its runs; None where it has none."""
        if key:
            return self.variants[title].median(key) if title in self.variants else None
        figures = self.figures(title)
        return rounded(statistics.median(figures)) if figures else None

    def measured(self) -> bool:
        """Whether any row has figures."""
        return any(map(self.figures, self.variants))


@dataclass
class Result:
    """One run of a suite."""

    suite: str
    machine: dict[str, Any]
    #: versions of what takes part
    packages: dict[str, str]
    #: how the run was started
    command: list[str] = field(default_factory=lambda: list(sys.argv))
    started: str = field(default_factory=lambda: _now())
    finished: str = ""
    cases: list[CaseResult] = field(default_factory=list)

    def settings(self) -> list[str]:
        """The settings of fastio that were not the defaults, each combination once."""
        found: dict[str, None] = {}
        for case in self.cases:
            for row in case.variants.values():
                settings = row.details.get("fastio", {}).get("settings", {})
                chosen = (f"{name} {each['value']}" for name, each in settings.items() if each["source"] != "default")
                found[", ".join(chosen)] = None
        return list(filter(None, found))

    def case(self, name: str) -> CaseResult:
        for case in self.cases:
            if case.name == name:
                return case
        raise KeyError(name)

    def text(self) -> str:
        """Describe the file, a line for each case."""
        data = asdict(self)
        cases = ",\n".join(map(json.dumps, data.pop("cases")))
        head = json.dumps({"format": FORMAT, "version": VERSION, **data})
        return f'{head[:-1]}, "cases": [\n{cases}\n]}}\n'

    def write(self, path: Path) -> None:
        """Write the file as a whole, so that whoever reads it at any time finds valid JSON."""
        self.finished = _now()
        path.parent.mkdir(parents=True, exist_ok=True)
        page.write(path, self.text())


def read(path: Path | str) -> Result:
    """The result in a file.

    :raises ResultError: if it is none, or of another version
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ResultError(f"{path}: not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ResultError(f"{path}: not a result of these benchmarks (no format {FORMAT!r} in it)")
    if data.get("version") != VERSION:
        raise ResultError(f"{path}: format version {data.get('version')!r}, but this program reads version {VERSION}")
    try:
        result = _record(Result, data)
        result.cases = [_record(CaseResult, case) for case in data["cases"]]
        for case in result.cases:
            case.variants = {title: _record(VariantResult, row) for title, row in case.variants.items()}
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise ResultError(f"{path}: incomplete: {error}") from error
    return result


def _record(kind: type[_Record], data: Any) -> _Record:
    known = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in data.items() if name in known})


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
