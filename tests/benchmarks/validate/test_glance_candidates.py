"""Candidates for glance that are broken on purpose, and one that does nothing: real servers of each variant.

Minutes each, so only ``tox -e validate-tests`` runs them. The first run fetches what it needs; those after it have no
network.
"""

from __future__ import annotations

import shutil

import pytest

from tests.benchmarks.validate.command import Validate, validate_tests

validate_tests()

DATA = "glance/api/v2/image_data.py"
DOWNLOAD = "glance/glance-33-download"

#: file, what is in it, what the candidate has there
DROPS_THE_LAST_BYTE = (DATA, "= str(chunk_size)\n", "= str(chunk_size - 1)\n")
FORGETS_WHAT_BROKE_OFF = (DATA, "image.status = 'queued'\n", "image.status = 'saving'\n")
LEAKS_A_DESCRIPTOR = (
    DATA,
    "        offset, chunk_size = 0, None\n",
    "        offset, chunk_size = 0, None\n        import os\n        os.dup(0)\n",
)
DOES_NOT_START = (DATA, "LOG = logging.getLogger(__name__)\n", "LOG = logging.getLogger(__name__)\nLOG.no_such_name\n")
DOES_NOTHING = (DATA, "# create a trust if backend is registry", "# Create a trust if the backend is registry.")


@pytest.fixture(scope="module")
def validate(tmp_path_factory):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    return Validate("glance", tmp_path_factory.mktemp("validate"))


@pytest.mark.parametrize(
    ("candidate", "test"),
    [
        (DROPS_THE_LAST_BYTE, "EveryByte.test_what_is_uploaded_is_downloaded"),
        (FORGETS_WHAT_BROKE_OFF, "ThoseWhoLeave.test_an_upload_that_breaks_off_leaves_no_file"),
        (LEAKS_A_DESCRIPTOR, "NothingIsLeft.test_by_transfers"),
    ],
    ids=["drops the last byte", "forgets what broke off", "leaks a descriptor"],
)
def test_what_breaks_is_caught_and_named(validate, candidate, test):
    diff = validate.diff(*candidate)
    # One test: each look at a difference starts a server.
    suite = ["--suite", "conformance-glance", "--match", test, "--benchmarks", "none"]
    done, _ = validate("--candidate", diff, "--no-fastio", *suite)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"conformance_glance.{test}: pass -> " in done.stdout


def test_wrong_data_in_a_benchmark_is_named(validate):
    diff = validate.diff(*DROPS_THE_LAST_BYTE)
    benchmark = ["--suite", "none", "--benchmarks", DOWNLOAD, "--rounds", "1", "--size", "16MiB"]
    done, raw = validate("--candidate", diff, *benchmark)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"candidate: {DOWNLOAD} (native): WRONG DATA" in done.stdout
    (fastio,) = [row for row in raw["pythons"][0]["rows"] if row["variant"] == "fastio"]
    assert fastio["verdict"].startswith("noise")


def test_a_server_that_does_not_start_is_named(validate):
    diff = validate.diff(*DOES_NOT_START)
    benchmark = ["--suite", "none", "--benchmarks", DOWNLOAD, "--rounds", "1", "--size", "16MiB"]
    done, _ = validate("--candidate", diff, "--no-fastio", *benchmark)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"candidate: {DOWNLOAD} (native): FAILED" in done.stdout
    assert "NotServed: glance-33 did not start" in done.stdout


def test_one_that_does_nothing_is_no_difference(validate):
    diff = validate.diff(*DOES_NOTHING)
    # Of so few rounds nothing can follow.
    benchmarks = ["--benchmarks", f"{DOWNLOAD},glance/glance-33-upload-chunked", "--rounds", "2", "--size", "16MiB"]
    done, raw = validate("--candidate", diff, "--suite", "conformance-glance,glance-33-unit", *benchmarks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No difference from stock" in done.stdout
    assert len(raw["pythons"][0]["rows"]) == 4
    passed = {suite["name"]: suite["run"]["tests"] for suite in raw["pythons"][0]["suites"]}
    assert len(passed["conformance-glance"]) > 10 and len(passed["glance-33-unit"]) > 900
