"""Candidates for eventlet that are broken on purpose, and one that does nothing, from a diff to the report.

Minutes each, so only ``tox -e validate-tests`` runs them. The first run fetches what it needs; those after it have no
network.
"""

from __future__ import annotations

import difflib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.engine import ROOT

if not os.environ.get("VALIDATE_TESTS"):
    pytest.skip("runs in tox -e validate-tests", allow_module_level=True)

SUBPROCESS, PIPES = "eventlet/green/subprocess.py", "eventlet/greenio/py3.py"

#: Nobody listens there.
NO_NETWORK = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "PIP_NO_INDEX": "1"}

_WAIT = "    def wait(self, timeout=None, check_interval=0.01):\n"
_METHOD = "    def communicate(self, input=None, timeout=None):\n"

#: file, what is in it, what the candidate has there
DROPS_THE_LAST_BYTE = (
    SUBPROCESS, _WAIT,
    _METHOD + """\
        out, err = super().communicate(input, timeout)
        return out[:-1] if out else out, err

""" + _WAIT,
)  # fmt: skip
IGNORES_THE_TIMEOUT = (
    SUBPROCESS,
    "        if timeout is not None:\n            endtime = time.time() + timeout\n",
    "        timeout = None\n",
)
LEAKS_A_DESCRIPTOR = (
    SUBPROCESS,
    "                    setattr(self, attr, wrapped_pipe)\n",
    "                    setattr(self, attr, wrapped_pipe)\n"
    "                    if attr == 'stdout':\n"
    "                        import os\n"
    "                        os.dup(wrapped_pipe.fileno())\n",
)
STARVES_THE_HUB = (
    SUBPROCESS,
    """\
        _communicate = FunctionType(
            subprocess_orig.Popen._communicate.__code__,
            globals())
""",
    "        _communicate = subprocess_orig.Popen._communicate\n",
)
IS_SLOWER = (
    SUBPROCESS, _WAIT,
    _METHOD + """\
        from time import perf_counter
        began = perf_counter()
        result = super().communicate(input, timeout)
        ended = perf_counter()
        while perf_counter() - ended < ended - began:
            pass
        return result

""" + _WAIT,
)  # fmt: skip
DOES_NOTHING = (PIPES, "# TODO get rid of this", "# TODO: get rid of this")


class Validate:
    """Runs ``fastio validate eventlet`` and reads what it has written."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        done, raw = self("--suite", "none", "--benchmarks", "none", network=True)
        assert done.returncode == 0, done.stdout + done.stderr
        version = raw["pythons"][0]["variants"][0]["version"]
        self._source = ROOT / "build" / "validate" / "sources" / f"eventlet-{version}"

    def __call__(self, *options: str, network: bool = False) -> tuple[subprocess.CompletedProcess[str], dict]:
        results = self._directory / f"results-{len(list(self._directory.iterdir()))}"
        done = subprocess.run(
            [sys.executable, "-m", "fastio", "validate", "eventlet", "--plain", "--results", str(results), *options],
            cwd=ROOT, env={**os.environ, **({} if network else NO_NETWORK)}, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=1500,
        )  # fmt: skip
        found = list(results.glob("*/raw.json"))
        return done, json.loads(found[0].read_text()) if found else {}

    def diff(self, name: str, old: str, new: str) -> str:
        """A file with the diff that replaces ``old`` by ``new`` in a file of the release."""
        before = (self._source / name).read_text()
        assert before.count(old) == 1, f"{name} of this release is another one: write the candidate anew"
        lines = difflib.unified_diff(
            before.splitlines(True), before.replace(old, new).splitlines(True), f"a/{name}", f"b/{name}"
        )
        path = self._directory / "candidate.diff"
        path.write_text("".join(lines))
        return str(path)


@pytest.fixture(scope="module")
def validate(tmp_path_factory):
    return Validate(tmp_path_factory.mktemp("validate"))


@pytest.mark.parametrize(
    ("candidate", "tests"),
    [
        (DROPS_THE_LAST_BYTE, ["EveryByte.test_output_of_communicate", "Execute.test_output"]),
        (IGNORES_THE_TIMEOUT, ["TimeOuts.test_wait"]),
        (LEAKS_A_DESCRIPTOR, ["NothingIsLeft.test_by_communicate", "NothingIsLeft.test_by_execute"]),
        (STARVES_THE_HUB, ["OthersRun.test_while_a_child_says_nothing"]),
    ],
    ids=["drops the last byte", "ignores the timeout", "leaks a descriptor", "starves the hub"],
)
def test_what_breaks_is_caught_and_named(validate, candidate, tests):
    diff = validate.diff(*candidate)
    options = ["--no-fastio", "--suite", "conduct-green", "--benchmarks", "none"]
    done, raw = validate("--candidate", diff, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    (suite,) = raw["pythons"][0]["suites"]
    failing = {each["test"] for each in suite["differences"] if each["verdict"] == "newly fails"}
    for test in tests:
        assert any(each.endswith("." + test) for each in failing), (test, failing, done.stdout)
        assert f"{test}: pass -> " in done.stdout


def test_wrong_data_in_a_benchmark_is_named(validate):
    diff = validate.diff(*DROPS_THE_LAST_BYTE)
    case = "communicate/popen-1MiB-stdout-binary"
    done, raw = validate(
        "--candidate", diff, "--no-fastio", "--suite", "none", "--benchmarks", case, "--rounds", "1"
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"candidate: {case} (eventlet): WRONG DATA" in done.stdout


def test_what_is_twice_as_slow_is_named(validate):
    diff = validate.diff(*IS_SLOWER)
    case = "communicate/popen-16MiB-stdout-binary"
    options = ["--no-fastio", "--suite", "none", "--benchmarks", case, "--rounds", "15"]
    done, raw = validate("--candidate", diff, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    (row,) = raw["pythons"][0]["rows"]
    assert (row["verdict"], row["failure"]) == ("slower", True)
    assert f"candidate: {case} (eventlet): slower" in done.stdout


def test_one_that_does_nothing_is_no_difference(validate):
    diff = validate.diff(*DOES_NOTHING)
    suites = ["--suite", "conduct-green,oslo-green"]
    done, raw = validate(
        "--candidate", diff, "--no-fastio", *suites, "--benchmarks", "communicate/popen-16MiB-stdout-binary"
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No difference from stock" in done.stdout
    verdicts = [each["verdict"] for suite in raw["pythons"][0]["suites"] for each in suite["differences"]]
    assert set(verdicts) <= {"flaky"}


def test_fastio_itself_passes(validate):
    done, raw = validate("--suite", "conduct-green", "--benchmarks", "communicate/popen-16MiB-stdout-binary")
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = raw["pythons"][0]["rows"]
    assert (row["variant"], row["verdict"]) == ("fastio", "faster")
