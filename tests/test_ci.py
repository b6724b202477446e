"""What CI prints: what failed is at the end, too, and what there was no time for."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "run"


def run(directory, programs, **environ):
    """What .ci/run does where these programs stand for those that it starts."""
    (directory / ".ci").mkdir()
    (directory / ".ci" / "run").write_bytes(SCRIPT.read_bytes())
    for name, text in programs.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    environment = {**os.environ, **environ, "PATH": f"{directory}:{os.environ['PATH']}"}
    environment.pop("CI_LOG", None)
    return subprocess.run(
        ["bash", ".ci/run"], cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=100,
    )  # fmt: skip


#: Nothing is made, installed or run, and tox notes what it is asked for. nginx and a compiler seem to be here.
QUIET = {
    "cc": "",
    "nginx": "",
    "python3": "",
    "apt-get": "",
    ".venv/bin/pip": "",
    ".venv/bin/python": "",
    ".venv/bin/tox": 'echo "tox $*" >> asked',
}
ENVIRONMENTS = [
    "tests-benchmarks",
    "plain",
    "bench-quick",
    "fuzz",
    "equivalence",
    "distributions",
    "stores",
    "load",
    "glance",
]


# Empty is the default.
@pytest.mark.parametrize("minutes", ["", "0"])
def test_what_there_is_no_time_for_is_not_begun_and_named_at_the_end(tmp_path, minutes):
    ran = run(tmp_path, QUIET, CI_MINUTES=minutes)
    assert ran.returncode == 0, ran.stdout
    asked = (tmp_path / "asked").read_text().splitlines()
    # Those of README are run in any case.
    assert asked[:2] == ["tox ", "tox -e sheepdog"]
    left = [line for line in ran.stdout.splitlines() if line.startswith("CI has not run ")]
    if not minutes:
        assert not left
        assert [name for name in ENVIRONMENTS if not any(name in line for line in asked)] == []
    else:
        assert len(asked) == 2
        # Each is named when its turn comes, and once more at the end.
        half = len(left) // 2
        assert left[:half] == left[half:] == ran.stdout.splitlines()[-half:]
        assert [name for name in ENVIRONMENTS if not any(name in line for line in left)] == []


def test_a_suite_that_fails_ends_the_run(tmp_path):
    ran = run(tmp_path, {**QUIET, ".venv/bin/tox": 'echo "tox $*" >> asked\ncase "$*" in *equivalence*) exit 3;; esac'})
    assert ran.returncode == 3
    assert "equivalence" in (tmp_path / "asked").read_text().splitlines()[-1]


def test_what_failed_is_said_at_the_end(tmp_path):
    told = [
        "E   assert 1 == 2",
        "FAILED tests/test_it.py::test_it - assert 1 == 2",
        "  tests: FAIL code 1 (1.00 seconds)",
    ]
    (tmp_path / "told").write_text("\n".join([*told, *["noise"] * 100, ""]))
    ran = run(tmp_path, {"python3": "cat told\nexit 1"})
    assert ran.returncode not in (0, None)
    _, _, end = ran.stdout.partition("CI failed, exit status ")
    assert [line for line in told if line in end.splitlines()] == told
    assert "noise" not in end
