"""``python -m benchmarks.tools.denied [CALL:ERROR …]``: the tests of I/O, once per call and error, natively and green.

The status is 0 if all of them pass under each, 1 if not, and 2 where nothing can be forbidden or a name is wrong.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.tools.denied import VARIABLE, filters
from fastio import terminal
from fastio.arguments import Parser

_ROOT = Path(__file__).resolve().parents[3]

#: The tests that move bytes and wait for children, without what takes long and shows no other path.
_IO = [
    f"tests/io/test_{name}.py" for name in ("drain", "exchange", "feed", "pipes", "lowwater", "unbuffered", "hashing")
]
_PATCHES = [
    f"tests/patches/test_{name}.py"
    for name in ("green_pipe", "wait", "green_wait", "pipe_sizes", "fix_green_pipelines", "native_popen_in_a_hub")
]
_TESTS = [*_IO, "tests/drivers/test_process.py", *_PATCHES]


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.tools.denied", description=__doc__.partition("\n")[0])
    parser.add_argument("denial", nargs="*", metavar="CALL:ERROR", help="such as pwritev2:EPERM; all by default")
    parser.add_argument("--list", action="store_true", help="print them, and run nothing")
    parser.add_argument("--tests", nargs="+", default=_TESTS, help="what pytest is given")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="so many at a time")
    given = parser.parse_args(arguments)
    if given.jobs < 1:
        parser.error(f"--jobs must be at least 1, not {given.jobs}")
    unknown = sorted(set(given.denial) - set(filters.DENIALS))
    if unknown:
        parser.error(f"{', '.join(unknown)} cannot be forbidden; --list shows what can")
    if given.list:
        print("\n".join(filters.DENIALS))
        return 0
    if not filters.supported():
        print("denied: the numbers of this machine's system calls are not known", file=sys.stderr)
        return 2
    runs = [(denial, eventlet) for denial in given.denial or filters.DENIALS for eventlet in (False, True)]
    with ThreadPoolExecutor(given.jobs) as pool:
        passed = list(pool.map(lambda run: _run(run[0], run[1], given.tests), runs))
    print(f"{sum(passed)} of {len(runs)} runs pass")
    return 0 if all(passed) else 1


def _run(denial: str, eventlet: bool, tests: Sequence[str]) -> bool:
    begin = time.monotonic()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=short", "-p", "no:cacheprovider", *tests],
        cwd=_ROOT, env={**environ, VARIABLE: denial, "TEST_EVENTLET": str(int(eventlet))}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    took = time.monotonic() - begin
    summary = done.stdout.strip().rpartition("\n")[2]
    print(f"{denial:20}  {'eventlet' if eventlet else 'native':8}  {took:4.0f} s  {summary}", flush=True)
    if done.returncode:
        print(done.stdout, flush=True)
    return not done.returncode


if __name__ == "__main__":
    sys.exit(main())
