"""Apply each known fault to a copy of the checkout, and see a test fail.

``python -m benchmarks.tools.mutants [NAME …]``. The status is 0 if every fault was seen, 1 if one was not, and 2 if the
command or the list is wrong. With ``--against`` it is 1 only for a fault that was seen when that table was made, or
that the table does not have.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from benchmarks.tools.mutants import listed, table
from benchmarks.tools.mutants.listed import ListError, Mutant
from benchmarks.tools.mutants.table import Row, TableError
from benchmarks.tools.mutants.trial import Copy, Verdict
from fastio import terminal
from fastio.arguments import Parser


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.tools.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("name", nargs="*", help="mutants to try; all by default")
    parser.add_argument("--list", action="store_true", help="print the names, and try nothing")
    parser.add_argument("--file", type=Path, default=listed.LIST, help="another list")
    parser.add_argument("--root", type=Path, default=listed.ROOT, help="another checkout")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="so many at a time")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write what became of each; of others it is kept")
    parser.add_argument("--against", type=Path, metavar="FILE", help="only fail for what is not seen any more")
    given = parser.parse_args(arguments)
    if given.jobs < 1:
        parser.error(f"--jobs must be at least 1, not {given.jobs}")
    if given.table is not None and not given.table.absolute().parent.is_dir():
        parser.error(f"--table {given.table}: there is no such directory")
    try:
        known = listed.read(given.file)
        mutants = listed.select(known, given.name)
        against = None if given.against is None else table.read(given.against)
        kept = table.read(given.table) if given.table is not None and given.table.exists() else {}
    except (ListError, TableError, OSError) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    if given.list:
        print("\n".join(mutant.name for mutant in mutants))
        return 0
    rows: dict[str, Row] = {}
    try:
        _try_all(mutants, given.root, max(1, min(given.jobs, len(mutants))), lambda row: rows.update({row.name: row}))
    finally:
        if given.table is not None:
            table.write(given.table, table.merged(known, kept, rows))
    if against is not None:
        return _compare(against, rows, [mutant.name for mutant in known])
    return 0 if all(row.verdict in (table.KILLED, table.SKIPPED) for row in rows.values()) else 1


def _compare(against: Mapping[str, Row], rows: Mapping[str, Row], known: Sequence[str]) -> int:
    found = table.new_survivors(against, rows, known)
    for line in found:
        print(f"new survivor: {line}")
    print(f"{len(found)} new survivors")
    return 1 if found else 0


def _try_all(mutants: Sequence[Mutant], root: Path, jobs: int, note: Callable[[Row], None]) -> None:
    begin = time.monotonic()
    copies: SimpleQueue[Copy] = SimpleQueue()
    rows: list[Row] = []

    def try_one(mutant: Mutant) -> tuple[Verdict, float]:
        missing = mutant.why_not()
        if missing:
            return Verdict("skipped", missing), 0.0
        copy = copies.get()
        started = time.monotonic()
        try:
            return copy.judge(mutant), time.monotonic() - started
        finally:
            copies.put(copy)

    with ExitStack() as stack:
        for _ in range(jobs):
            copies.put(stack.enter_context(Copy(root)))
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        for mutant, (verdict, seconds) in zip(mutants, pool.map(try_one, mutants), strict=True):
            print(f"{verdict.word:8}  {mutant.name}: {verdict.detail}", flush=True)
            rows.append(Row(mutant.name, mutant.area, verdict.word, verdict.test, round(seconds, 1)))
            note(rows[-1])
    counted = Counter(row.verdict for row in rows)
    took = time.monotonic() - begin
    print(f"by area: {table.by_area(rows)}")
    print(f"{counted['killed']} of {len(mutants)} mutants are seen, {counted['skipped']} skipped; {took:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
