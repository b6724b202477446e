"""The tables of disk against Swift: those of the study, robust figures beside them, and the goals."""

from collections.abc import Iterator
from typing import Any

from benchmarks.harness import statistics
from benchmarks.harness.goals import Goal, goal_table
from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.tables import EMPTY, Table, number
from benchmarks.suites.disk_swift.bench_disk_swift import DIRECT, LARGE, LOG, SERVERS, SOURCES
from benchmarks.suites.disk_swift.records import PHASES

#: Times the speed of stock that a transfer from Swift has to have.
TRANSFER = 1.3
#: Requests from which on there is a 99th percentile to speak of.
ENOUGH = 100
#: Rows that are to win back what stock loses.
FAST = ("swift-fastio", "swift-1MiB-fastio", "swift-wide-fastio")


def rows(case: CaseResult) -> list[str]:
    """The titles of the rows that have runs, a source's stock beside its fastio."""
    known = [*(f"{source}-{server}" for source in SOURCES for server in SERVERS), DIRECT]
    return [title for title in known if title in case.variants and case.variants[title].measured()]


def published(result: Result) -> list[Table]:
    """A table for each scenario whose records were kept: what the study published, and robust figures below."""
    return [made for case in result.cases if (made := _published(case)) is not None]


def _published(case: CaseResult) -> Table | None:
    columns = {title: case.summary[title] for title in rows(case) if title in case.summary}
    if not columns:
        return None
    made = Table(f"{case.title or case.name}: per request", ["", "", *columns], [])
    for phase, words in PHASES.items():
        for statistic in next(iter(columns.values()))[phase]:
            cells = (_cell(each[phase][statistic]) for each in columns.values())
            made.rows.append([f"{words}, ms", statistic, *cells])
    made.notes.append(
        "outliers are more than two standard deviations from the mean, as published; the interval is of the median, "
        "95 %; requests: " + ", ".join(f"{title} {each['requests']}" for title, each in columns.items())
    )
    return made


def _cell(figure: Any) -> str:
    """A number; a count; or a figure with its interval."""
    if isinstance(figure, list):
        middle, low, high = map(number, figure)
        return f"{middle} ({low}–{high})"
    return str(figure) if isinstance(figure, int) else number(figure)


def losses(result: Result) -> Table:
    """Where Swift loses time against disk, and how much of that fastio wins back; of the medians of the runs."""
    head = ["", "phase", "disk, ms", "Swift, ms", "lost, ms", "Swift itself, ms"]
    made = Table("Where Swift loses against disk", [*head, *(f"won back by {title}" for title in FAST)], [])
    for case in result.cases:
        for phase, words in PHASES.items():
            disk, stock = (case.median(f"{source}-stock", f"{phase}_p50_ms") for source in ("disk", "swift"))
            if disk is None or stock is None:
                continue
            lost = stock - disk
            direct = number(case.median(DIRECT, f"{phase}_p50_ms"))
            row = [case.title or case.name, words, number(disk), number(stock), number(lost), direct]
            for title in FAST:
                won = case.median(title, f"{phase}_p50_ms")
                row.append(EMPTY if won is None or lost <= 0 else f"{(stock - won) / lost:.0%}")
            made.rows.append(row)
    made.notes.append(
        "a server that reads 1 MiB at a time sends nothing before that is there: for a log of that size most of the "
        "transfer becomes part of the response, and the whole request counts; Swift itself: without a log server"
    )
    return made


def goals(result: Result) -> Table:
    """The goals of fastio, of the medians of the runs."""
    made = goal_table("Goals", [*(goal for case in result.cases for goal in _goals(case)), *_together(result)])
    if made.rows:
        made.notes.append(
            "stock reads 64 KiB at a time; fastio's row is named: swift-1MiB reads 1 MiB at a time, and behind "
            "swift-wide Swift's own servers do so with fastio as well; p99 is judged by the lower end of the interval "
            "of its ratio, so one line in twenty says no by chance alone, and that of all scenarios together counts"
        )
    return made


def _goals(case: CaseResult) -> Iterator[Goal]:
    if case.parameters.get("size") == LOG or case.parameters.get("size", 0) >= LARGE:
        for title in (each for each in FAST if each in case.variants):
            for phase, bound in (("transfer", TRANSFER), ("whole", 1.0)):
                stock, fast = (case.median(each, f"{phase}_p50_ms") for each in ("swift-stock", title))
                if stock is not None or fast is not None:
                    what = f"{case.name}: {PHASES[phase]} from Swift, ms, {title}"
                    times = stock / fast if stock and fast else None
                    yield Goal(what, stock, fast, times, "≥", bound, "x stock's speed")
    for source in SOURCES:
        before, after = _slowest(case, source)
        if before:
            # The lower end of the ratio's interval is judged: above 1, the growth is beyond chance.
            grown = statistics.ratio(after, before, case.seed).low
            stock, fast = (statistics.median(each) for each in (before, after))
            yield Goal(f"{case.name}: response p99, ms, {source}", stock, fast, grown, "≤", 1.0, "x stock at least")


def _together(result: Result) -> Iterator[Goal]:
    """The p99 of all scenarios: the median of their ratios."""
    for source in SOURCES:
        pairs = [_slowest(case, source) for case in result.cases]
        ratios = [statistics.median(after) / statistics.median(before) for before, after in pairs if before]
        if len(ratios) > 2:
            low, _ = statistics.median_interval(ratios)
            what = f"{len(ratios)} scenarios: response p99, {source}"
            yield Goal(what, None, None, low, "≤", 1.0, "x stock at least")


def _slowest(case: CaseResult, source: str) -> tuple[list[float], list[float]]:
    """The response's p99 of each run, stock's and fastio's; empty where there are too few requests for one."""
    titles = [f"{source}-{server}" for server in SERVERS]
    if min(sum(case.figures(title, "operations")) for title in titles) < ENOUGH:
        return [], []
    stock, fast = (case.figures(title, "response_p99_ms") for title in titles)
    return stock, fast


def judgement(result: Result) -> list[Table]:
    return [*published(result), losses(result), goals(result)]
