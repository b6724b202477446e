"""A run of tests ends with the stacks of what hangs."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import needs_eventlet

ROOT = Path(__file__).resolve().parents[1]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``run(code, **environment)`` runs pytest with this file of tests."""

    def run_(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "conftest.py").write_text("pytest_plugins = ['tests.conftest']\n")
        (tmp_path / "test_it.py").write_text("import ctypes, threading, time, pytest\n" + textwrap.dedent(code))
        # Importing plugins that are not used takes longer than these tests.
        environ = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HYPOTHESIS_NO_PLUGINS": "1", "PYTHONPATH": str(ROOT)}
        environ |= {"TEST_LIMIT": "5", **environment}
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
            env={**os.environ, **environ}, cwd=tmp_path, capture_output=True, text=True, timeout=100,
        )  # fmt: skip

    return run_


HANGS = {
    "asleep": ("def test_it():\n    time.sleep(1000)", "in test_it\n"),
    # Of the default of 120 s, this is what 5 s are of it.
    "marker": ("@pytest.mark.limit(24)\ndef test_it():\n    time.sleep(1000)", "Timeout (0:00:01)!"),
    "holds the GIL": ("def test_it():\n    ctypes.PyDLL(None).sleep(1000)", "in test_it\n"),
    # The greenlet that runs is the hub's.
    "green": ("def test_it():\n    time.sleep(1000)", "hub.py"),
    "fixture of a test that failed": (
        "@pytest.fixture\ndef slow():\n    yield\n    time.sleep(1000)\ndef test_it(slow):\n    assert False",
        "in slow\n",
    ),
}


@pytest.mark.parametrize(
    ("hang", "eventlet"),
    [*((each, "0") for each in HANGS if each != "green"), pytest.param("green", "1", marks=needs_eventlet)],
)
def test_a_run_that_hangs_ends_with_its_stacks(run: Run, hang: str, eventlet: str) -> None:
    code, said = HANGS[hang]
    done = run(code, TEST_EVENTLET=eventlet)
    assert done.returncode == 1
    assert "Timeout (0:00:0" in done.stderr and said in done.stderr, done


@pytest.mark.parametrize("value", ["soon", "-1", "nan"])
def test_a_limit_that_is_none(run: Run, value: str) -> None:
    done = run("def test_it(): pass", TEST_LIMIT=value)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"TEST_LIMIT='{value}' is not a number of seconds; 0 is no limit" in done.stderr
