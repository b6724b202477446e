"""What limits each row over a network, with the figures that say so, or why it could not be measured."""

from collections.abc import Iterator

from benchmarks.harness import statistics
from benchmarks.harness.results import GIB, CaseResult, Result, VariantResult
from benchmarks.harness.tables import EMPTY, Table, number, ratio

HEAD = (
    "", "row", "MiB/s", "x stock (95 %)", "server CPU s/GiB", "x stock's CPU (95 %)", "machine CPU s/GiB", "limit",
    "evidence",
)  # fmt: skip


def judgement(result: Result) -> list[Table]:
    rows = [_row(case, title, row) for case in result.cases for title, row in _shown(case)]
    return [Table("What limits the load over a network", list(HEAD), rows)]


def _shown(case: CaseResult) -> Iterator[tuple[str, VariantResult]]:
    for title, row in case.variants.items():
        if row.skipped or row.measured():
            yield title, row


def _row(case: CaseResult, title: str, row: VariantResult) -> list[str]:
    if row.skipped:
        return [case.name, title, *[EMPTY] * 5, "not measured", row.skipped]
    found = row.details["shares"]
    own, everybody = (_cost(row, key) for key in ("server_cpu_seconds", "machine_cpu_seconds"))
    return [
        case.name, title, number(case.median(title)), ratio(case, title), number(own), _times(case, title),
        number(everybody), found["resource"], found["text"],
    ]  # fmt: skip


def _cost(row: VariantResult, key: str) -> float | None:
    """Seconds for a GiB."""
    moved, spent = row.median("bytes"), row.median(key)
    return spent / moved * GIB if moved and spent is not None else None


def _times(case: CaseResult, title: str) -> str:
    """How many times the CPU time of stock's server it takes."""
    if case.against(title) == title:
        return "1"
    own, stock = (
        [run["server_cpu_seconds"] / run["bytes"] for run in case.variants[each].measured()]
        for each in (title, case.against(title))
    )
    return str(statistics.ratio(own, stock, case.seed)) if stock else EMPTY
