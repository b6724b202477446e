"""What part of the best chunk size's throughput fastio's default reaches, of a result of ``bench_store_chunks.py``."""

from collections.abc import Sequence

from benchmarks.harness import statistics
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import EMPTY, Table, number
from fastio.config import format_size

#: Title of the row without a setting.
DEFAULT = "default"


def judgement(result: Result) -> list[Table]:
    return [table(result)]


def table(result: Result) -> Table:
    """One row per case: every chunk size's throughput, the best of them, and how much of it the default reaches."""
    chunks = list(dict.fromkeys(title for case in result.cases for title in case.variants if title != DEFAULT))
    unit = result.cases[0].unit if result.cases else ""
    head = ["", *chunks, f"{DEFAULT}, {unit}", "largest chunk", "best", "default / best"]
    made = Table("fastio's default beside other chunk sizes", head, [_row(case, chunks) for case in result.cases])
    rounds = [len(case.figures(title)) for case in result.cases for title in case.variants]
    few = min(filter(None, rounds), default=0)
    made.notes.append(
        "the best of several is partly the luckiest of them: with equal chunk sizes the last column is below 1, too"
    )
    if few < statistics.FEW_ROUNDS:
        made.notes.append(f"only {few} round{'s' * (few != 1)} of some")
    return made


def _row(case: CaseResult, chunks: Sequence[str]) -> list[str]:
    medians = {title: statistics.median(case.figures(title)) for title in case.variants if case.figures(title)}
    row = [case.name, *(number(medians.get(title)) for title in chunks)]
    if DEFAULT not in medians or len(medians) < 2:
        return row + [number(medians.get(DEFAULT)), EMPTY, EMPTY, EMPTY]
    best = max((title for title in medians if title != DEFAULT), key=lambda title: medians[title])
    largest = case.variants[DEFAULT].median("largest_chunk")
    ratio = statistics.ratio(case.figures(DEFAULT), case.figures(best), case.seed)
    few = min(len(case.figures(title)) for title in (DEFAULT, best)) < 3
    shown = number(ratio.ratio) if few else str(ratio)
    return row + [number(medians[DEFAULT]), format_size(int(largest)) if largest else EMPTY, best, shown]
