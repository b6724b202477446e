"""Summaries of results: what is kept of them in ``doc/source/results``, and what the pages are made of.

A file has several runs by name. Of each row it has how many rounds there were, the least, the median and the largest
figure, the median absolute deviation as a part of the median, medians of other figures, the ratios to other rows with
their 95 % intervals, and what makes the row doubtful. The suite's findings are kept as tables.
``python -m benchmarks.harness.keep`` makes summaries of raw results.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from benchmarks.harness.results import COSTS, CaseResult, Result, ResultError, VariantResult, rounded
from benchmarks.harness.statistics import Interval, Spread
from fastio.tables import Table

FORMAT, VERSION = "fastio-benchmark-summaries", 1
#: Of cases: once, where all of a run have the same.
SAME = ("workload", "baseline", "unit", "value", "columns", "complete")


@dataclass
class SummaryRow(VariantResult):
    """A row without its runs."""

    #: measured runs
    count: int = 0
    #: the least, the median, the largest, and the median absolute deviation as a part of the median
    spread: list[float] = field(default_factory=list)
    #: the least, the median and the largest of each figure of the runs
    others: dict[str, list[float]] = field(default_factory=dict)
    #: by the figure ("" is the case's own) and the other row
    times: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    wrong: bool = False

    def median(self, key: str) -> float | None:
        return self.others[key][1] if key in self.others else None

    def costs(self) -> dict[str, float]:
        return {name: self.others[name][1] for name, *_ in COSTS if name in self.others}

    def verified(self) -> bool:
        return not self.wrong


@dataclass
class SummaryCase(CaseResult):
    """A case whose rows have no runs."""

    def rounds(self, title: str) -> int:
        return self._row(title).count

    def spread(self, title: str) -> Spread:
        return Spread(*self._row(title).spread)

    def better(self, title: str, against: str = "", key: str = "") -> Interval | None:
        found = self._row(title).times.get(key, {}).get(against or self.against(title))
        return Interval(*found) if found else None

    def figures(self, title: str, key: str = "") -> list[float]:
        """The least, the median and the largest figure; none where there are none."""
        row = self._row(title)
        return row.others.get(key, []) if key else row.spread[:3]

    def _row(self, title: str) -> SummaryRow:
        row = self.variants.get(title)
        return row if isinstance(row, SummaryRow) else SummaryRow(title, [], {}, 0, 0)


@dataclass
class Summary(Result):
    """A result without its runs."""

    #: fastio's, other than the defaults
    chosen: list[str] = field(default_factory=list)
    #: the suite's findings
    judged: list[Table] = field(default_factory=list)

    def settings(self) -> list[str]:
        return self.chosen


def read(path: Path) -> dict[str, Summary]:
    """The runs in a file.

    :raises ResultError: if it has none, or is of another version
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if (data["format"], data["version"]) != (FORMAT, VERSION):
            raise ResultError(f"{path}: format {data['format']} {data['version']}, not {FORMAT} {VERSION}")
        return {name: _summary(each, data["places"]) for name, each in data["runs"].items()}
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise error if isinstance(error, ResultError) else ResultError(f"{path}: no summary: {error!r}") from error


def _summary(data: dict[str, Any], places: list[list[dict[str, Any]]]) -> Summary:
    machine, packages = places[data.pop("place")]
    keys = data.pop("keys")
    same = {name: data.pop(name) for name in SAME if name in data}
    cases: list[CaseResult] = [_case(same | each, keys) for each in data.pop("cases")]
    judged = [Table(**each) for each in data.pop("judged")]
    return Summary(**data, machine=machine, packages=packages, cases=cases, judged=judged)


def _case(data: dict[str, Any], keys: list[str]) -> SummaryCase:
    rows: dict[str, VariantResult] = {
        title: _row(title, data["parameters"], keys, row) for title, row in data.pop("rows").items()
    }
    return SummaryCase(**data, seed=0, variants=rows)


def _row(title: str, parameters: dict[str, Any], keys: list[str], row: list[Any]) -> SummaryRow:
    count, spread, others, times, rest = row
    if len(spread) == 1:
        spread = [*spread * 3, 0]
    ends = {key: each if isinstance(each, list) else [each] * 3 for key, each in zip(keys, others, strict=False)}
    return SummaryRow(
        name=title, command=[], rounds=count, usual_rounds=count, count=count, spread=spread, times=times,
        others={key: each for key, each in ends.items() if each[0] is not None},
        parameters=parameters | rest.pop("parameters", {}), **rest,
    )  # fmt: skip


def write(path: Path, runs: Mapping[str, Summary]) -> None:
    """Write a file, a line for each row; each machine with its versions is in it once."""
    places: dict[str, int] = {}
    texts = [f'"{name}": {_text(run, places)}' for name, run in runs.items()]
    head = f'"format": "{FORMAT}", "version": {VERSION},\n"places": [\n{_joined(places)}\n]'
    path.write_text(f'{{{head},\n"runs": {{\n{_joined(texts)}\n}}}}\n', encoding="utf-8")


def _text(run: Summary, places: dict[str, int]) -> str:
    place = places.setdefault(_compact([run.machine, run.packages]), len(places))
    rows = [row for case in run.cases for row in case.variants.values()]
    keys = list(dict.fromkeys(key for row in rows for key in getattr(row, "others", ())))
    same = {
        name: getattr(run.cases[0], name) for name in SAME if len({str(getattr(each, name)) for each in run.cases}) == 1
    }
    head = {**_changed(run, "cases", "judged", "machine", "packages"), "place": place, "keys": keys, **same}
    judged = (_compact({name: value for name, value in asdict(each).items() if value}) for each in run.judged)
    cases = (_case_text(case, keys, same) for case in run.cases)
    return f'{_compact(head)[:-1]},"judged":[\n{_joined(judged)}\n],"cases":[\n{_joined(cases)}\n]}}'


def _case_text(case: CaseResult, keys: list[str], same: Iterable[str]) -> str:
    head = _changed(case, "variants", "seed", *same)
    rows = (f"{_compact(title)}:{_compact(_packed(case, row, keys))}" for title, row in case.variants.items())
    return f'{_compact(head)[:-1]},"rows":{{\n{_joined(rows)}\n}}}}'


def _packed(case: CaseResult, row: Any, keys: list[str]) -> list[Any]:
    own = {name: value for name, value in row.parameters.items() if case.parameters.get(name) != value}
    against = row.against if row.against != case.baseline else ""
    rest = {"against": against, "skipped": row.skipped, "failure": row.failure, "details": row.details}
    rest |= {"notes": row.notes, "wrong": row.wrong, "parameters": own}
    others = [_short(row.others[key]) if key in row.others else None for key in keys]
    while others and others[-1] is None:
        others.pop()
    # The only run of a row has no spread.
    return [
        row.count,
        row.spread if row.count > 1 else row.spread[:1],
        others,
        row.times,
        {name: value for name, value in rest.items() if value},
    ]


def _short(values: list[float]) -> Any:
    return values[0] if len(set(values)) == 1 else values


def _joined(lines: Iterable[str]) -> str:
    return ",\n".join(lines)


def _changed(record: Any, *without: str) -> dict[str, Any]:
    """Return a record's fields that are not empty by default."""
    needed = {each.name for each in fields(record) if each.default is each.default_factory is MISSING}
    found = {each.name: getattr(record, each.name) for each in fields(record) if each.name not in without}
    return {name: value for name, value in found.items() if value or name in needed}


def _compact(value: Any) -> str:
    return json.dumps(_rounded(value), ensure_ascii=False, separators=(",", ":"))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        found = rounded(value)
        return int(found) if found.is_integer() else found
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return list(map(_rounded, value)) if isinstance(value, (list, tuple)) else value
