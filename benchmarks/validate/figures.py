"""The gains of fastio's own candidates, for the documentation: ``python -m benchmarks.validate.figures [NAME …]``.

Each of those named (``all``: every one) is measured beside stock and fastio, and its summary is kept in
``doc/source/results/candidates.json``. Then, or without a name at once, the tables of all that are kept are printed.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import keep, markup, summaries
from benchmarks.harness.results import Result
from benchmarks.harness.tables import EMPTY, number, summary
from fastio import terminal
from fastio.arguments import Parser
from fastio.tables import Table

from . import measurements
from .__main__ import validated
from .environments import CANDIDATE, FASTIO, STOCK
from .measurements import Row

CANDIDATES = Path("doc/source/candidates")
#: The file that has their summaries.
FILE = "candidates"

#: Each candidate's project, the benchmarks that show what it changes, and how they are run.
MEASURED = {
    "eventlet-communicate": (
        "eventlet",
        "processes/output-popen-16MiB,processes/output-popen-200MiB,processes/input-popen-16MiB",
        [],
    ),
    "eventlet-buffering": ("eventlet", "processes/pipe-read,processes/pipe-lines", []),
    "eventlet-pidfd-wait": ("eventlet", "processes/late-exit,processes/wait", []),
    "oslo.concurrency-preexec-fn": ("oslo.concurrency", "processes/true-1GiB", ["--rounds", "5"]),
    "openstacksdk-object-chunks": ("openstacksdk", "clients/openstacksdk-object", ["--rounds", "5"]),
    "python-swiftclient-upload-blocks": ("python-swiftclient", "clients/swiftclient-put", []),
    "glance_store-chunk-size": ("glance_store", "stores/s3-get-256MiB", ["--rounds", "5", "--size", "64MiB"]),
    "glance_store-hashing": ("glance_store", "stores/filesystem-add-256MiB", ["--rounds", "5", "--size", "64MiB"]),
}  # fmt: skip


def measure(name: str) -> None:
    """Validate a candidate by its benchmarks alone, and keep what they have measured."""
    project, cases, options = MEASURED[name]
    candidate = str(CANDIDATES / f"{name}.patch")
    asked = [project, "--candidate", candidate, "--suite", "none", "--benchmarks", cases, *options]
    # As the kept results were measured; the candidates are fastio's own.
    result = validated([*asked, "--isolation", "none"]).benchmarks
    assert result is not None
    result.command = ["fastio", "validate", *asked]
    keep.add(name, keep.summary(result, [table(name, result)]), FILE)


def page() -> str:
    """The tables of all that are kept."""
    kept = summaries.read(keep.KEPT / f"{FILE}.json")
    return "\n\n".join(markup.rst(table) for run in kept.values() for table in run.judged) + "\n"


def table(name: str, result: Result) -> Table:
    """A line for each benchmark and mode: the candidate against stock, and fastio beside it."""
    head = ["", "", "stock", "candidate", "times better (95 %)", "verdict", "CPU s", "fastio: times better"]
    rows = measurements.rows(result)
    fastio = {(row.case, row.mode): row for row in rows if row.variant == FASTIO}
    lines = [_line(result, row, fastio[row.case, row.mode]) for row in rows if row.variant == CANDIDATE]
    rounds = dict.fromkeys(str(len(row.measured())) for case in result.cases for row in case.variants.values())
    load = max(case.load_before for case in result.cases)
    notes = [
        f"``{' '.join(result.command)}``" + ", whose size is not that of the title" * ("--size" in result.command),
        f"{', '.join(rounds)} rounds; load average before a case: up to {load:g}",
        *summary(result)[:2],
    ]
    return Table(name, head, lines, notes)


def _line(result: Result, row: Row, fastio: Row) -> list[str]:
    case = result.case(row.case)
    seconds = [case.variants[f"{row.mode}-{each}"].median("cpu_seconds") for each in (STOCK, CANDIDATE)]
    return [
        case.title.partition(": ")[2], row.mode, f"{number(row.stock)} {row.unit}", f"{number(row.figure)} {row.unit}",
        str(row.better or EMPTY), row.verdict, " → ".join(map(number, seconds)), str(fastio.better or fastio.verdict),
    ]  # fmt: skip


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.validate.figures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=["all", *MEASURED, []], help=", ".join(MEASURED))
    chosen = parser.parse_args(arguments).names
    for name in MEASURED if "all" in chosen else chosen:
        measure(name)
    sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
