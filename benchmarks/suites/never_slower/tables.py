"""Where fastio is slower than stock, by how much and why that is the default, and all that was compared."""

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
        return f"slower by {_percent(1 - self.times.ratio)} % ({least}–{most})"


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
    found = compared(result.cases)
    return [_slower(found), _all(result, found)]


def _slower(found: list[Compared]) -> Table:
    head = ["", "data", "concurrent", "machine", "x stock (95 %)", "verdict", "why it is the default all the same"]
    rows = [
        [
            each.case.title or each.case.name, _bytes(each), str(each.record["at_once"]), each.beside, str(each.times),
            each.words, reason(each.name),
        ]
        for each in found
        if each.verdict == SLOWER
    ]  # fmt: skip
    return Table("Where fastio is slower", head, rows)


def reason(name: str) -> str:
    """Why a cell that is slower is so by default."""
    return next((why for pattern, why in REASONS.items() if fnmatchcase(name, pattern)), EMPTY)


def _bytes(each: Compared) -> str:
    return format_size(each.record["size"])


def _all(result: Result, found: list[Compared]) -> Table:
    """A row for each case and size."""
    columns = sorted({(each.record["busy"] > 0, each.record["at_once"]) for each in found})
    head = ["", "data", *(f"{many} concurrent, {'busy' if busy else 'idle'}" for busy, many in columns), "verdict"]
    rows: dict[tuple[str, str], dict[tuple[bool, int], Compared]] = {}
    for each in found:
        own = rows.setdefault((each.case.title or each.case.name, each.size), {})
        own[each.record["busy"] > 0, each.record["at_once"]] = each
    made = Table("fastio's rate in stock's, with 95 % intervals", head, [])
    for (title, size), own in rows.items():
        cells = [str(own[column].times) if column in own else EMPTY for column in columns]
        made.rows.append([title, size, *cells, _verdict(list(own.values()))])
    counts = {word: sum(each.verdict == word for each in found) for word in (SLOWER, NOT_SLOWER, UNDECIDED)}
    faster = sum(each.times.low > 1 and each.verdict == NOT_SLOWER for each in found)
    made.notes.append(
        f"of {len(found)} cells {counts[NOT_SLOWER]} are not slower, of which {faster} are faster; "
        f"{counts[SLOWER]} are slower; {counts[UNDECIDED]} have too few pairs"
    )
    large = dict.fromkeys(_bytes(each) for each in found if each.record["large"])
    made.notes.append(f"large data: {', '.join(large)} a call")
    made.notes += _missing(result)
    return made


def _verdict(own: list[Compared]) -> str:
    """Return the verdict of a row: of its worst cell."""
    slower = [each for each in own if each.verdict == SLOWER]
    return min(slower, key=lambda each: each.times.ratio).words if slower else own[0].verdict


def _missing(result: Result) -> Iterator[str]:
    for case in result.cases:
        yield from (f"{case.title or case.name}: {each}" for row in case.variants.values() for each in row.troubles())
