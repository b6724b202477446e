"""What fastio costs or gains in each case, and why a case that is slower is the default."""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from benchmarks.harness.results import CaseResult, Result
from benchmarks.harness.statistics import Interval
from benchmarks.harness.tables import EMPTY, Table, number
from benchmarks.suites.never_slower.pairs import NOT_SLOWER, SLOWER, UNDECIDED, interval, together, verdict
from fastio.config import format_size

#: Why what is slower is the default all the same: patterns of ``CASE, SIZE, N concurrent, busy or idle``. The
#: first that fits counts.
REASONS: Mapping[str, str] = {
    "filesystem-get-eventlet, large, 20 *": "it yields after its share, so that other requests are served",
    "filesystem-get-eventlet, large, 1 *": "it yields after its share, so that other requests are served",
    "filesystem-???-eventlet, *": "less than 0.2 ms a call, where a request takes glance milliseconds",
    "filesystem-???-native, *": "about 0.1 ms a call or less, where a request takes glance milliseconds",
    "http-get-native, large, 20 *": "an image of 4 MiB is one chunk of upstream's, and four of fastio's 1 MiB",
    "child-output-native, 1 KiB, *": "about 0.1 ms a command",
    "glanceclient-native, large, 20 *": "20 hashes fill the processors in any case; a lone large download gains",
    "openstacksdk-image-native, large, 20 *": "20 hashes fill the processors in any case; a lone large download gains",
}


class Compared(NamedTuple):
    """A cell, and what its pairs say."""

    case: CaseResult
    record: Mapping[str, Any]
    times: Interval
    verdict: str

    @property
    def size(self) -> str:
        return "large" if self.record["large"] else format_size(self.record["size"])

    @property
    def beside(self) -> str:
        return "busy" if self.record["busy"] else "idle"

    @property
    def name(self) -> str:
        return f"{self.case.name}, {self.size}, {self.record['at_once']} concurrent, {self.beside}"

    @property
    def words(self) -> str:
        """The verdict, with the loss in percent."""
        if self.verdict != SLOWER:
            return self.verdict
        least, most = (_percent(1 - each) for each in (self.times.high, self.times.low))
        return f"by {_percent(1 - self.times.ratio)} % ({least}–{most})"


def _percent(part: float) -> str:
    return number(100 * part)


def compared(cases: Iterable[CaseResult]) -> list[Compared]:
    """All cells, those that are slower first, the worst of them on top."""
    found = []
    for case in cases:
        runs = [run["pairs"] for row in case.variants.values() for run in row.measured()]
        # All runs have the same cells, in the same order.
        for record in map(together, zip(*runs, strict=True)):
            found.append(Compared(case, record, interval(record), verdict(record)))
    return sorted(found, key=lambda each: (each.verdict != SLOWER, each.times.ratio))


def judgement(result: Result) -> list[Table]:
    """A row for each case, with its worst cell of each size."""
    found = compared(result.cases)
    by_size = sorted(found, key=lambda each: (bool(each.record["large"]), each.record["size"]))
    sizes = list(dict.fromkeys(each.size for each in by_size))
    made = Table(
        "fastio's rate in stock's, in the worst cell of each size, with 95 % intervals",
        ["", *sizes, "verdict", "why it is the default all the same"], [],
    )  # fmt: skip
    cases: dict[str, list[Compared]] = {}
    for each in found:
        cases.setdefault(each.case.title or each.case.name, []).append(each)
    for title, own in cases.items():
        # The worst comes first.
        worst = {each.size: str(each.times) for each in reversed(own)}
        made.rows.append([title, *(worst.get(size, EMPTY) for size in sizes), _verdict(own), reason(own[0])])
    counts = {word: sum(each.verdict == word for each in found) for word in (SLOWER, NOT_SLOWER, UNDECIDED)}
    faster = sum(each.times.low > 1 and each.verdict == NOT_SLOWER for each in found)
    made.notes.append(
        f"of {len(found)} cells {counts[NOT_SLOWER]} are not slower, of which {faster} are faster; "
        f"{counts[SLOWER]} are slower; {counts[UNDECIDED]} have too few pairs"
    )
    large = dict.fromkeys(format_size(each.record["size"]) for each in found if each.record["large"])
    made.notes.append(f"large data: {', '.join(large)} a call")
    made.notes += _missing(result)
    return [made]


def reason(cell: Compared) -> str:
    """Why a cell that is slower is so by default."""
    if cell.verdict != SLOWER:
        return ""
    return next((why for pattern, why in REASONS.items() if fnmatchcase(cell.name, pattern)), EMPTY)


def _verdict(own: list[Compared]) -> str:
    """The verdict of a case, of which the worst cell is the first; with that cell where it is slower."""
    worst, slower = own[0], sum(each.verdict == SLOWER for each in own)
    if not slower:
        return worst.verdict
    where = worst.name.removeprefix(f"{worst.case.name}, ")
    return f"{slower} of {len(own)} cells slower; {where}: {worst.words}"


def _missing(result: Result) -> Iterator[str]:
    for case in result.cases:
        yield from (f"{case.title or case.name}: {each}" for row in case.variants.values() for each in row.troubles())
