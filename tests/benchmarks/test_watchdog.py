"""The time limits: whatever a test hangs in, the run ends, its processes end, and the test is named."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="the engine needs the extra 'bench'")

from benchmarks.backends.keeper import state_and_parent
from benchmarks.harness.engine import Case, Options, Variant
from benchmarks.tools.watchdog import LIMIT, RUN_VARIABLE
from tests.conftest import needs_eventlet
from tests.eventually import until

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``run(code, conftest="tests.conftest", **environment)``: pytest with this file of tests and this conftest."""

    def run_(code: str, conftest: str = "tests.conftest", **environment: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "conftest.py").write_text(f"pytest_plugins = [{conftest!r}]\n")
        (tmp_path / "test_it.py").write_text(textwrap.dedent(code))
        environ = {name: value for name, value in os.environ.items() if name != "TEST_LIMIT"}
        # Importing plugins that are not used takes longer than these tests.
        environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
            env={**environ, "PYTHONPATH": str(ROOT), **environment},
            cwd=tmp_path, capture_output=True, text=True, timeout=100,
        )  # fmt: skip

    return run_


#: What a test can hang in, and what is told of it.
HANGS = {
    "asleep": ("time.sleep(1000)", "Timeout (", "in test_it\n"),
    "holds the GIL": ("ctypes.PyDLL(None).sleep(1000)", "Timeout (", "in test_it\n"),
    "spins": ("while True: pass", "Timeout (", "in test_it\n"),
    "stopped": ("os.kill(os.getpid(), signal.SIGSTOP)", "Python's stacks cannot be had", "T (stopped)"),
}


@pytest.mark.parametrize(
    ("hang", "eventlet"), [*((each, "0") for each in HANGS), pytest.param("asleep", "1", marks=needs_eventlet)]
)
def test_a_test_that_hangs_is_ended_and_named(run: Run, hang: str, eventlet: str) -> None:
    how, word, more = HANGS[hang]
    code = f"""
        import ctypes, os, signal, time
        import pytest

        def test_before():
            pass

        @pytest.mark.limit(4)
        def test_it():
            {how}
    """
    done = run(code, TEST_EVENTLET=eventlet)
    assert done.returncode == -signal.SIGKILL, done
    assert "FAILED test_it.py::test_it - not ended within its limit of 4 s" in done.stderr
    assert word in done.stderr
    # Where the greenlet of the test waits, it is the hub's stack that the thread has.
    assert ("hubs" if eventlet == "1" else more) in done.stderr, done.stderr


def test_what_the_test_has_started_ends_with_it(run: Run, tmp_path: Path) -> None:
    code = """
        import os, subprocess, sys, time
        from pathlib import Path
        import pytest

        def note(name, pid):
            Path(name).write_text(str(pid))

        @pytest.mark.limit(5)
        def test_it():
            note("child", subprocess.Popen(["sleep", "1000"]).pid)
            note("session", subprocess.Popen(["sleep", "1000"], start_new_session=True).pid)
            deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
            note("deaf", subprocess.Popen([sys.executable, "-c", deaf]).pid)
            # Its parent ends at once.
            orphan = "sleep 1000 <&- >&- 2>&- & echo $!"
            note("orphan", subprocess.run(["sh", "-c", orphan], capture_output=True, check=True).stdout.decode())
            Path("all").touch()
            time.sleep(1000)
    """
    # What they have of the output is closed when they have ended, which is what run() waits for.
    done = run(code)
    assert "FAILED test_it.py::test_it" in done.stderr, done
    assert (tmp_path / "all").exists()
    pids = {name: int((tmp_path / name).read_text()) for name in ("child", "session", "deaf", "orphan")}
    assert {name: state_and_parent(pid)[0] in "ZX" for name, pid in pids.items()} == dict.fromkeys(pids, True)
    assert f"{pids['orphan']} sleep: S (sleeping)" in done.stderr


def test_files_that_hang_when_they_are_imported_are_named(run: Run) -> None:
    done = run("import time; time.sleep(1000)", TEST_LIMIT="5")
    assert "FAILED test_it.py, being collected - not ended within its limit of 5 s" in done.stderr, done


def test_a_fixture_that_hangs_after_its_test_has_failed(run: Run) -> None:
    # pytest takes faulthandler's timer away when a test fails.
    code = """
        import time
        import pytest

        @pytest.fixture
        def slow():
            yield
            time.sleep(1000)

        @pytest.mark.limit(4)
        def test_it(slow):
            assert False
    """
    done = run(code)
    assert "FAILED test_it.py::test_it - not ended" in done.stderr, done
    assert "Timeout (" in done.stderr and "in slow\n" in done.stderr


def test_a_thread_that_nobody_ends(run: Run) -> None:
    code = """
        import threading, time

        def test_it():
            threading.Thread(target=time.sleep, args=(1000,)).start()
    """
    done = run(code, TEST_LIMIT="5")
    assert "1 passed" in done.stdout
    assert "FAILED pytest, after its tests - not ended within its limit of 5 s" in done.stderr, done


def test_a_run_that_ends_leaves_no_process(run: Run, tmp_path: Path) -> None:
    code = f"""
        import os
        from pathlib import Path

        def test_it():
            Path("run").write_text("{RUN_VARIABLE}=" + os.environ["{RUN_VARIABLE}"])
    """
    assert run(code).returncode == 0
    found = (tmp_path / "run").read_text()
    until(lambda: not belonging(found))


def belonging(run: str) -> list[str]:
    """The processes whose environment has this variable."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if os.fsencode(run) in (entry / "environ").read_bytes():
                    found.append(entry.name)
    return found


def test_no_limit(run: Run) -> None:
    code = """
        import time

        def test_it():
            time.sleep(2)
    """
    done = run(code, TEST_LIMIT="0")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("value", ["soon", "-1", "nan"])
def test_a_limit_that_is_none(run: Run, value: str) -> None:
    done = run("def test_it(): pass", TEST_LIMIT=value)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"TEST_LIMIT='{value}' is not a number of seconds, such as {LIMIT:g}" in done.stderr


@pytest.mark.parametrize("arguments", ["", "0", "'long'"])
def test_a_marker_that_says_no_limit(run: Run, arguments: str) -> None:
    done = run(f"import pytest\n@pytest.mark.limit({arguments})\ndef test_it(): pass\n")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "test_it.py::test_it: the marker is limit(seconds), with a positive number" in done.stderr


def test_benchmarks_have_the_limit_of_what_is_around_their_runs(run: Run) -> None:
    pytest.importorskip("pytest_benchmark")
    code = """
        import time
        from benchmarks.harness.engine import Case

        CASES = [Case("case", "no_such_workload", ["one"], rounds=1, warmup=0, timeout=0.5)]

        def test_it(recorded):
            time.sleep(1000)
    """
    done = run(code, conftest="benchmarks.conftest", TEST_LIMIT="2", PYTEST_DISABLE_PLUGIN_AUTOLOAD="")
    most = Options().most_seconds(Case("case", "no_such_workload", ["one"], rounds=1, warmup=0, timeout=0.5))
    said = f"FAILED test_it.py::test_it[case-one] - not ended within its limit of {most / LIMIT * 2:g} s"
    assert said in done.stderr, done


def test_the_most_that_a_case_takes() -> None:
    variants: list[Variant | str] = ["a", Variant("b", rounds=1, warmup=2)]
    case = Case("case", "commands", variants, rounds=5, warmup=1, timeout=10)
    around = Options().most_seconds(Case("case", "commands", ["a"], rounds=0, warmup=0))
    assert around > 0
    assert Options().most_seconds(case) == around + (5 + 1 + 1 + 2) * 10
    assert Options(quick=True).most_seconds(case) == around + 2 * 10
    prepared = Case("case", "commands", variants, rounds=5, warmup=1, timeout=10, prepare="p", finish="f")
    assert Options().most_seconds(prepared) == around + (9 + 2) * 10
