"""All cases of a result at one glance, one row each: for suites whose cases have the same rows.

Those are the four ways (:data:`benchmarks.harness.ways.WAYS`) and ``limit``. A case takes part if it has a ``panel``,
which says what it measures, and a ``label``, which says of what.
"""

from __future__ import annotations

from benchmarks.harness import statistics, tables
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import EMPTY, Table, number

#: How Python runs, and the rows that are compared.
WAYS = {"native": ("native-stock", "native-fastio"), "eventlet": ("eventlet-stock", "eventlet-fastio")}
LIMIT = "limit"

#: Costs of both rows of a way: heading, and the name among the variant's costs, or else the figure of its runs.
COSTS = {
    "CPU s/GiB": "cpu_seconds_per_gib",
    "server CPU s/GiB": "server_cpu_seconds_per_gib",
    "chunks": "chunks",
    "p99 ms": "p99_ms",
}


def cases(result: Result) -> list[CaseResult]:
    """The cases that take part, by panel."""
    found = [case for case in result.cases if case.panel]
    panels = list(dict.fromkeys(case.panel for case in found))
    return sorted(found, key=lambda case: panels.index(case.panel))


def table(result: Result) -> Table:
    """Two rows per case, one for each way: throughput, what share of the limit it is, costs before and after."""
    shown = cases(result)
    head = ["", "", f"stock {shown[0].unit}", "fastio", "x stock", LIMIT, "fastio / limit", *COSTS]
    made = Table("Overview: stock → fastio", head, [_row(case, way) for case in shown for way in WAYS])
    notes: dict[str, list[str]] = {}
    for case in shown:
        for note in _notes(case):
            notes.setdefault(note, []).append(_name(case))
    made.notes += [f"{', '.join(names)}: {note}" for note, names in notes.items()]
    return made


def _name(case: CaseResult) -> str:
    return f"{case.label}: {case.panel}"


def _row(case: CaseResult, way: str) -> list[str]:
    stock, fast = WAYS[way]
    reached, limit = _median(case, fast), _median(case, LIMIT)
    return [
        _name(case),
        way,
        *(_rate(case, title) for title in (stock, fast)),
        tables.ratio(case, fast) if fast in case.variants else EMPTY,
        _rate(case, LIMIT),
        number(reached / limit) if reached and limit else EMPTY,
        *(_costs(case, WAYS[way], cost) for cost in COSTS.values()),
    ]


def _median(case: CaseResult, title: str) -> float | None:
    figures = case.figures(title) if title in case.variants else []
    return statistics.median(figures) if figures else None


def _rate(case: CaseResult, title: str) -> str:
    variant = case.variants.get(title)
    if variant is not None and variant.failure:
        return "failed"
    if variant is not None and variant.runs and not variant.verified():
        return "WRONG DATA"
    return number(_median(case, title))


def _costs(case: CaseResult, rows: tuple[str, str], cost: str) -> str:
    found = []
    for title in rows:
        variant = case.variants.get(title)
        figure = None if variant is None else variant.costs().get(cost, variant.median(cost))
        found.append(number(figure))
    return EMPTY if set(found) == {EMPTY} else " → ".join(found)


def _notes(case: CaseResult) -> list[str]:
    """Why there is no figure, and what the case has beside the four ways."""
    notes = [f"{title} skipped: {row.skipped}" if title == LIMIT else f"skipped: {row.skipped}"
             for title, row in case.variants.items() if row.skipped]  # fmt: skip
    known = {LIMIT, *(title for rows in WAYS.values() for title in rows)}
    for title in case.variants:
        figure = _median(case, title)
        if title not in known and figure is not None:
            notes.append(f"{title} {number(figure)} {case.unit}")
    return list(dict.fromkeys(notes))
