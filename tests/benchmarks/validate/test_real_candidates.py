"""Candidates for real releases, from what is given to the report: of each kind, doing nothing, and our own.

Minutes each, so they run only if ``VALIDATE_TESTS`` is set. The first run fetches what it needs; those after it have no
network.
"""

import os
import re
import shutil

import pytest

from benchmarks.harness.engine import ROOT
from tests import test_tutorials
from tests.benchmarks.validate.broken import eventlet, glance
from tests.benchmarks.validate.command import Validate

if not os.environ.get("VALIDATE_TESTS"):
    pytest.skip("runs if VALIDATE_TESTS is set", allow_module_level=True)

DOES_NOTHING = (eventlet.PIPES, "# TODO get rid of this", "# TODO: get rid of this")
DOES_NOTHING_TO_GLANCE = (
    glance.DATA,
    "# create a trust if backend is registry",
    "# Create a trust if the backend is registry.",
)

OWN = [*sorted((ROOT / "doc" / "source" / "candidates").glob("*.patch")), *sorted((ROOT / "private").glob("*.patch"))]
OWN_SUITES = {
    "eventlet": "conformance-green,eventlet",
    "oslo.concurrency": "conformance-native,conformance-green,oslo-native,oslo-green",
    "glance_store": "conformance-stores-native,conformance-stores-green,glance_store-native,glance_store-green",
    "glance": "conformance-glance,glance-33-unit",
    "nova": "nova-images",
    "ironic": "ironic-images",
    "openstacksdk": "openstacksdk-native,openstacksdk-green",
    "python-swiftclient": "swiftclient-native,swiftclient-green",
    "keystoneauth1": "keystoneauth1-native",
    "urllib3": "urllib3-native",
}
ONE_TEST = ["--no-fastio", "--suite", "conformance-green", "--match", "EveryByte.test_text", "--benchmarks", "none"]


@pytest.fixture(scope="module")
def validate(tmp_path_factory):
    return Validate("eventlet", tmp_path_factory.mktemp("validate"))


@pytest.fixture(scope="module")
def validate_glance(tmp_path_factory):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    return Validate("glance", tmp_path_factory.mktemp("validate"))


@pytest.mark.parametrize(
    ("candidate", "said"), [(glance.DROPS_THE_LAST_BYTE, "WRONG DATA"), (glance.DOES_NOT_START, "FAILED: NotServed")]
)
def test_a_failing_benchmark_fails_alone(validate_glance, candidate, said):
    benchmark = ["--suite", "none", "--benchmarks", glance.DOWNLOAD, "--rounds", "1", "--size", "16MiB"]
    raw = validate_glance.run(1, "--candidate", validate_glance.diff(*candidate.change), *benchmark)
    assert f"candidate: {glance.DOWNLOAD} (native): {said.partition(':')[0]}" in validate_glance.said
    assert said.rpartition(" ")[2] in validate_glance.said
    (fastio,) = [row for row in raw["rows"] if row["variant"] == "fastio"]
    assert fastio["verdict"].startswith("noise")


def test_one_that_does_nothing_is_no_difference(validate):
    options = ["--no-fastio", "--suite", "conformance-green,oslo-green", "--candidate", validate.diff(*DOES_NOTHING)]
    options += ["--benchmarks", "processes/output-popen-16MiB"]
    raw = validate.run(0, *options)
    if not raw["rows"][0]["verdict"].startswith("noise"):
        # Chance alone does that once in a hundred times.
        raw = validate.run(0, *options)
    assert "No difference from stock" in validate.said
    verdicts = [each["verdict"] for suite in raw["suites"] for each in suite["differences"]]
    assert set(verdicts) <= {"flaky"}


def test_one_that_does_nothing_to_glance_is_no_difference(validate_glance):
    # Of so few rounds nothing can follow.
    benchmarks = ["--benchmarks", f"{glance.DOWNLOAD},glance/glance-33-upload-chunked"]
    benchmarks += ["--rounds", "2", "--size", "16MiB"]
    diff = validate_glance.diff(*DOES_NOTHING_TO_GLANCE)
    raw = validate_glance.run(0, "--candidate", diff, "--suite", "conformance-glance,glance-33-unit", *benchmarks)
    assert "No difference from stock" in validate_glance.said
    assert len(raw["rows"]) == 4
    passed = {suite["name"]: suite["run"]["tests"] for suite in raw["suites"]}
    assert len(passed["conformance-glance"]) > 10 and len(passed["glance-33-unit"]) > 900


def test_fastio_itself_passes(validate):
    # Fast enough that no other load hides it.
    raw = validate.run(0, "--suite", "conformance-green", "--benchmarks", "processes/input-popen-16MiB")
    (row,) = raw["rows"]
    assert (row["variant"], row["verdict"]) == ("fastio", "faster")


@pytest.mark.parametrize("patch", OWN, ids=lambda patch: patch.stem)
def test_nothing_newly_fails_with_our_own_candidates(tmp_path, patch):
    """In the newest release of each project, so that a candidate that no longer applies there is noticed."""
    text = patch.read_text()
    project = re.search(r"^Release: (\S+)", text, re.MULTILINE)[1]
    options = ["--candidate", str(patch), "--no-fastio", "--suite", OWN_SUITES[project], "--benchmarks", "none"]
    raw = Validate(project, tmp_path).run(0, *options)
    passing = {
        re.split("[.:]", test)[-1]
        for suite in raw["suites"]
        for test, outcome in suite["run"]["tests"].items()
        if outcome["outcome"] == "pass"
    }
    assert set(re.findall(r"^\+ *def (test_\w+)", text, re.MULTILINE)) <= passing


def test_the_change_of_the_tutorial_is_judged(tmp_path):
    """With all suites, as the page says."""
    first, _ = test_tutorials.judged()
    Validate(first[0], tmp_path).run(0, *first[1:], network=True)


def test_another_release_is_installed_and_compared(validate):
    raw = validate.run(0, "--candidate", "0.40.4", *ONE_TEST, network=True)
    assert [each["version"] for each in raw["variants"]] == [validate.version, "0.40.4"]
    assert validate.run(2, "--candidate", "0.0.999", *ONE_TEST, network=True) == {}
    assert "eventlet==0.0.999" in validate.said
