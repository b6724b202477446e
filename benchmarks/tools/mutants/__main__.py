"""Apply each known fault to a copy of the checkout, and see a test fail.

``python -m benchmarks.tools.mutants [NAME …]``. The status is 0 if every fault was seen, 1 if one was not, and 2 if the
command or the list is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from benchmarks.tools.mutants import listed
from benchmarks.tools.mutants.listed import ListError, Mutant
from benchmarks.tools.mutants.trial import Copy, Verdict


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tools.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("name", nargs="*", help="mutants to try; all by default")
    parser.add_argument("--list", action="store_true", help="print the names, and try nothing")
    parser.add_argument("--file", type=Path, default=listed.LIST, help="another list")
    parser.add_argument("--root", type=Path, default=listed.ROOT, help="another checkout")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="so many at a time")
    given = parser.parse_args(arguments)
    if given.jobs < 1:
        parser.error(f"--jobs must be at least 1, not {given.jobs}")
    try:
        mutants = listed.select(listed.read(given.file), given.name)
    except (ListError, OSError) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    if given.list:
        print("\n".join(mutant.name for mutant in mutants))
        return 0
    return _try_all(mutants, given.root, given.jobs)


def _try_all(mutants: Sequence[Mutant], root: Path, jobs: int) -> int:
    begin = time.monotonic()
    copies: SimpleQueue[Copy] = SimpleQueue()
    made = [Copy(root) for _ in range(min(jobs, max(len(mutants), 1)))]
    counted: Counter[str] = Counter()
    try:
        for copy in made:
            copies.put(copy)

        def try_one(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                return _try(mutant, copy)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(len(made)) as pool:
            for mutant, verdict in zip(mutants, pool.map(try_one, mutants), strict=True):
                print(f"{verdict.word:8}  {mutant.name}: {verdict.detail}", flush=True)
                counted[verdict.word] += 1
    finally:
        for copy in made:
            copy.__exit__()
    seen, skipped = counted["killed"], counted["skipped"]
    took = time.monotonic() - begin
    print(f"{seen} of {len(mutants)} mutants are seen, {skipped} skipped; {took:.0f} s")
    return 0 if seen + skipped == len(mutants) else 1


def _try(mutant: Mutant, copy: Copy) -> Verdict:
    missing = mutant.why_not()
    return Verdict("skipped", missing) if missing else copy.judge(mutant)


if __name__ == "__main__":
    sys.exit(main())
