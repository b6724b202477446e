"""The findings of a validation, as human-readable tables."""

import re
from collections import Counter
from collections.abc import Iterator

from packaging.utils import canonicalize_name

from benchmarks.harness.compare import differing
from benchmarks.harness.tables import hardware
from benchmarks.tools.upstream import report
from benchmarks.tools.upstream.compare import VERDICTS, WORSE
from fastio.tables import EMPTY, Table, number

from .environments import Variant
from .measurements import Row
from .outcome import Outcome

#: Files of a variant that a table names; of more it says how many there are.
FEW_FILES = 5


def found(outcome: Outcome) -> list[Table]:
    """All tables that have rows, in the order in which they are read."""
    tested = [report.suites(outcome.suites), report.differences(outcome.suites)]
    return [table for table in (variants(outcome), *tested, benchmarks(outcome)) if table.rows]


def variants(outcome: Outcome) -> Table:
    """Return the compared variants."""
    head = ["variant", outcome.project.name, "files that are not stock's"]
    rows = [[each.name, each.version, _files(each.changed)] for each in outcome.variants]
    return Table("Compared variants", head, rows)


def _files(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= FEW_FILES else f"{len(names)} files"


def benchmarks(outcome: Outcome) -> Table:
    """A line for each row of a benchmark but stock's, with stock's figures and its own."""
    rows = outcome.rows
    known = (heading for row in rows for heading, figures in row.figures.items() if figures != (None, None))
    used = list(dict.fromkeys(known))
    head = ["benchmark", "variant", "stock", "here", "unit", "times better (95 %)", "verdict", *used]
    lines = [
        [
            f"{row.title} ({row.mode})", row.variant, number(row.stock), number(row.figure), row.unit,
            str(row.better) if row.better else EMPTY, _verdict(row), *(_pair(row, heading) for heading in used),
        ]
        for row in rows
    ]  # fmt: skip
    noise = sum(row.verdict.startswith("noise") for row in rows)
    late = "by how much a greenlet that wants to run every millisecond is late"
    if outcome.project.service:
        late = "how long other requests wait for their answers; CPU is that of the clients, beside the server's"
    notes = [
        f"{noise} of {len(rows)} rows are only noise. Medians of interleaved runs in fresh processes; in brackets the "
        "95 % interval of the ratio; the verdict is by a rank test at p < 0.01 and an interval beyond ±3 %.",
        f"Costs and lateness are stock's → the variant's; waits are trips to the hub or to a selector; p99 is {late}.",
    ]
    return Table("Benchmarks", head, lines, notes)


def _verdict(row: Row) -> str:
    return f"{row.verdict}: FAILED" if row.failure and row.better else row.verdict


def _pair(row: Row, heading: str) -> str:
    before, after = row.figures.get(heading, (None, None))
    if before is None and after is None:
        return EMPTY
    return f"{number(before)} → {number(after)}"


def tracebacks(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Return the message of each test that newly fails: a heading and the text."""
    for comparison in outcome.suites:
        for found in comparison.found(WORSE):
            place = f"{comparison.variant}, {comparison.suite.name}"
            yield f"{found.test} ({place}): {found.stock.outcome} → {found.patched.outcome}", found.patched.detail


def was_run(outcome: Outcome) -> bool:
    """Whether there is anything to judge."""
    return bool(outcome.rows or outcome.suites)


def headline(outcome: Outcome) -> str:
    """The judgement in a sentence."""
    failures = outcome.failures()
    if failures:
        return f"FAILED: {len(failures)} reason{'s' * (len(failures) != 1)}"
    if not was_run(outcome):
        return "Nothing was run"
    if outcome.empty():
        return "No difference from stock"
    return "Nothing newly fails"


def environments(outcome: Outcome) -> list[str]:
    """How the sides differ beside what is compared, a line each; or that they do not. How all of them ran is last."""
    found = []
    stock, *others = outcome.variants
    for variant in others:
        packages = differing("", _packages(outcome, stock), _packages(outcome, variant))
        if packages:
            what = ", ".join(line.strip() for line in packages)
            found.append(f"{variant.name}: other packages than stock: {what}")
    candidate = outcome.candidate
    ran = outcome.isolation.line(candidate is not None, candidate is not None and candidate.kind == "version")
    return [*(found or ["environments: the same Python and packages"]), ran]


def _packages(outcome: Outcome, variant: Variant) -> dict[str, str]:
    """All but the project itself, whose version is what a candidate may change."""
    own = canonicalize_name(outcome.project.name)
    installed = variant.environment.versions().items()
    return {name: version for name, version in installed if canonicalize_name(name) != own}


def verdicts(outcome: Outcome) -> list[str]:
    """A line for each variant: how many of its tests and of its benchmarks are not what stock's are."""
    return [f"{each.name}: {_tests(outcome, each.name)}; {_rows(outcome, each.name)}" for each in outcome.variants[1:]]


def _tests(outcome: Outcome, variant: str) -> str:
    own = [comparison for comparison in outcome.suites if comparison.variant == variant]
    if not own:
        return "no suites"
    counts = {word: sum(len(comparison.found(word)) for comparison in own) for word in VERDICTS}
    return "tests: " + (", ".join(f"{count} {word}" for word, count in counts.items() if count) or "no difference")


def _rows(outcome: Outcome, variant: str) -> str:
    # A verdict may go on: noise (within 3 %), FAILED: exit status 1.
    words = Counter(re.split(r"[ :]", row.verdict)[0] for row in outcome.rows if row.variant == variant)
    return "benchmarks: " + ", ".join(f"{words[word]} {word}" for word in words) if words else "no benchmarks"


def title(outcome: Outcome) -> str:
    what = "fastio" if outcome.candidate is None else outcome.candidate.name
    return f"{what} against {outcome.project.name} {outcome.variants[0].version}"


def machine_line(outcome: Outcome) -> str:
    machine = outcome.machine
    return (
        f"Python {outcome.python.version}; {hardware(machine)}; {machine['distribution']}, Linux {machine['kernel']}; "
        f"{outcome.started}"
    )
