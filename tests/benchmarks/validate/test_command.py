"""The kinds of candidates and of Pythons, and an interruption, with real releases."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tarfile

import pytest

from benchmarks.validate import pythons
from benchmarks.validate.errors import ValidateError
from tests.benchmarks.validate.command import Validate, validate_tests

validate_tests()

SUBPROCESS = "eventlet/green/subprocess.py"
#: Loses the end of every output.
BROKEN = (
    SUBPROCESS,
    "    def wait(self, timeout=None, check_interval=0.01):\n",
    """\
    def communicate(self, input=None, timeout=None):
        out, err = super().communicate(input, timeout)
        return out[:-1] if out else out, err

    def wait(self, timeout=None, check_interval=0.01):
""",
)
TEST = "EveryByte.test_text"
ONE_TEST = ["--no-fastio", "--suite", "conformance-green", "--match", TEST, "--benchmarks", "none"]


@pytest.fixture(scope="module")
def validate(tmp_path_factory):
    return Validate("eventlet", tmp_path_factory.mktemp("validate"))


@pytest.fixture
def tree(validate, tmp_path):
    made = tmp_path / f"eventlet-{validate.version}"
    shutil.copytree(validate.source, made)
    (made / SUBPROCESS).write_text(validate.changed(*BROKEN))
    return made


def sdist(tree):
    made = tree.with_name(tree.name + ".tar.gz")
    with tarfile.open(made, "w:gz") as tar:
        tar.add(tree, tree.name)
    return made


def wheel(tree):
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tree.parent), str(tree)]
    subprocess.run(command, check=True, capture_output=True)
    (made,) = tree.parent.glob("*.whl")
    return made


@pytest.mark.parametrize("make", [lambda tree: tree, sdist, wheel], ids=["directory", "sdist", "wheel"])
def test_what_is_built_is_judged(validate, tree, make):
    # What builds it may have to be fetched.
    done, raw = validate("--candidate", str(make(tree)), *ONE_TEST, network=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{TEST}: pass -> fail" in done.stdout
    assert SUBPROCESS in raw["pythons"][0]["variants"][1]["changed"]


def test_a_directory_that_has_changed_is_built_again(validate, tree):
    assert validate("--candidate", str(tree), *ONE_TEST, network=True)[0].returncode == 1
    shutil.copyfile(validate.source / SUBPROCESS, tree / SUBPROCESS)
    done, raw = validate("--candidate", str(tree), *ONE_TEST, network=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert SUBPROCESS not in raw["pythons"][0]["variants"][1]["changed"]


def test_another_release(validate):
    done, raw = validate("--candidate", "0.40.4", *ONE_TEST, network=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each["version"] for each in raw["pythons"][0]["variants"]] == [validate.version, "0.40.4"]


def test_a_release_that_does_not_exist(validate):
    done, raw = validate("--candidate", "0.0.999", *ONE_TEST, network=True)
    assert (done.returncode, raw) == (2, {})
    assert "eventlet==0.0.999" in done.stderr


def test_several_pythons(validate):
    here = pythons.find("").version
    other = next((each for each in ("3.13", "3.12", "3.11", "3.10") if _is_here(each) and each not in here), "")
    if not other:
        pytest.skip("there is no other Python here")
    done, raw = validate(
        "--python", f"{here},{other}", "--candidate", validate.diff(*BROKEN), *ONE_TEST, network=True
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    versions = [each["python"]["version"] for each in raw["pythons"]]
    assert versions[0] == here and versions[1].startswith(other)
    for version in versions:
        assert f"Python {version}: candidate: conformance-green: " in done.stdout


def _is_here(version):
    try:
        return bool(pythons.find(version))
    except ValidateError:
        return False


def test_an_interrupted_run_goes_on(validate):
    results, case = validate.results(), "green_pipe/read"
    options = ["--suite", "conformance-green", "--match", "EveryByte", "--benchmarks", case, "--rounds", "3"]
    process = validate.start(results, *options)
    said = []
    for line in process.stdout:
        said.append(line)
        if "conformance-green fastio" in line:
            break
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=120)
    assert process.returncode == 130, "".join(said) + rest + errors
    assert "the same command goes on from here" in errors
    done = subprocess.run(
        validate.command(results, *options), env=validate.environment(), capture_output=True, text=True, timeout=900
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "going on with what" in done.stdout
    assert "conformance-green stock:" not in done.stdout
    assert "conformance-green fastio:" in done.stdout
