"""The findings of a validation, as human-readable tables."""

import re
from collections import Counter
from collections.abc import Iterator

from packaging.utils import canonicalize_name

from benchmarks.harness.compare import differing
from benchmarks.harness.tables import EMPTY, number
from benchmarks.tools.upstream import compare
from benchmarks.tools.upstream.report import (
    COUNTED,
    joined,
    last_line,
    outcomes_of,
    short,
)
from benchmarks.tools.upstream.runner import Outcome as TestOutcome
from benchmarks.tools.upstream.runner import Run
from fastio.tables import Table

from .environments import Variant
from .measurements import Row
from .outcome import Outcome
from .suites import MOST_CONFIRMED, WORDS, Compared

#: Files of a variant that a table names; of more it says how many there are.
FEW_FILES = 5
#: Characters of what a test says.
MOST_SAID = 110
#: As a traceback ends.
_EXCEPTION = re.compile(r"[\w.]+(Error|Exception|Expired)\b")


def found(outcome: Outcome) -> list[Table]:
    """All tables that have rows, in the order in which they are read."""
    made = [variants(outcome), suites(outcome), differences(outcome), benchmarks(outcome)]
    return [table for table in made if table.rows]


def variants(outcome: Outcome) -> Table:
    """Return the compared variants."""
    head = ["variant", outcome.project.name, "files that are not stock's"]
    rows = [[each.name, each.version, _files(each.changed)] for each in outcome.variants]
    return Table("Compared variants", head, rows)


def _files(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= FEW_FILES else f"{len(names)} files"


def suites(outcome: Outcome) -> Table:
    """A line for each run of a suite."""
    head = ["suite", "variant", "tests", *(heading for heading, _ in COUNTED), *WORDS.values(), "result"]
    rows = []
    stock_shown = set()
    for compared in outcome.suites:
        stock = compared.comparison.stock
        if stock is not None and compared.name not in stock_shown:
            stock_shown.add(compared.name)
            rows.append([compared.name, "stock", *outcomes_of(stock), *[""] * (len(WORDS) + 1)])
        rows.append([compared.name, compared.variant, *_judged(compared)])
    return Table("Suites", head, rows)


def _judged(compared: Compared) -> list[str]:
    run = compared.comparison.patched
    counts = outcomes_of(run) if run else [EMPTY] * (len(COUNTED) + 1)
    if compared.comparison.unavailable:
        return [*counts, *[EMPTY] * len(WORDS), f"not run: {compared.comparison.unavailable}"]
    found = [str(len(compared.found(word))) for word in WORDS.values()]
    return [*counts, *found, "FAILED" if compared.failures() else _no_worse(run)]


def _no_worse(run: Run | None) -> str:
    # In stock too, or not when run alone; such a test proves nothing, and must not look like one that passes.
    hangs = run.counts().get("hang", 0) if run else 0
    return f"no worse, but {hangs} hang" if hangs else "no worse"


def differences(outcome: Outcome) -> Table:
    """A line for each test whose outcome is not stock's, what newly fails first."""
    head = ["", "variant", "suite", "test", "stock", "here", "alone, stock", "alone, here", "says"]
    rows = [
        [
            word, compared.variant, compared.name, short(found.test), found.stock.outcome, found.patched.outcome,
            joined(found.stock_alone), joined(found.patched_alone), _says(found.patched),
        ]
        for word in WORDS.values()
        for compared in outcome.suites
        for found in compared.found(word)
    ]  # fmt: skip
    notes = [
        f"Newly fails: worse than in stock, in {compare.BELIEVED} of {compare.RERUNS} runs alone as well (which "
        f"{MOST_CONFIRMED} tests of a suite at most are given).",
        "Flaky: not so when alone.",
        "Changed: neither better nor worse, or a test that the candidate no longer has.",
    ]
    return Table("Tests whose outcome differs", head, rows, notes)


def _says(outcome: TestOutcome) -> str:
    """The line of a traceback that has the exception; unittest may put a long comparison below it."""
    lines = reversed(outcome.detail.splitlines())
    return next((line[:MOST_SAID] for line in lines if _EXCEPTION.match(line)), last_line(outcome))


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
    for compared in outcome.suites:
        for found in compared.found(WORDS["worse"]):
            place = f"{compared.variant}, {compared.name}"
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
    own = [compared for compared in outcome.suites if compared.variant == variant]
    if not own:
        return "no suites"
    counts = {word: sum(len(compared.found(word)) for compared in own) for word in WORDS.values()}
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
        f"Python {outcome.python.version}; {machine['processor']}, {machine['usable_threads']} threads, "
        f"{machine['memory'] / (1 << 30):.0f} GiB; {machine['distribution']}, Linux {machine['kernel']}; "
        f"{outcome.started}"
    )
