"""``oslo_spawn``: commands of oslo.concurrency without fork, and otherwise the same."""

import functools
import gc
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
from fastio.patches.oslo_concurrency import oslo_spawn
from fastio.report import Outcome
from tests.child import command, data, out
from tests.conftest import HAS_EVENTLET, MONKEY_PATCHED
from tests.outcome import as_upstream
from tests.targets import import_targets

processutils = pytest.importorskip("oslo_concurrency.processutils")

ROOT = str(pathlib.Path(fastio.__file__).parent.parent)

pytestmark = pytest.mark.fast_path("exchanges")

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


# Called by fork() on behalf of a preexec_fn; vfork() has none.
os.register_at_fork(before=_count_fork)


@pytest.fixture
def forks() -> Callable[[], int]:
    """How often this process was forked since the test began."""
    before = _forks
    return lambda: _forks - before


def test_stock_forks(forks: Callable[[], int]) -> None:
    assert processutils.execute("echo", "a", timeout=100) == ("a\n", "")
    assert forks() == 1


def test_a_command_needs_no_fork(patched: Any, forks: Callable[[], int]) -> None:
    for _ in range(3):
        assert processutils.execute("echo", "a") == ("a\n", "")
    assert forks() == 0


STATUS = ["SigIgn", "SigBlk", "SigCgt", "NoNewPrivs", "Groups", "Uid", "Gid", "Cpus_allowed_list"]


def without_internal_signals(status: str) -> str:
    """``/proc/self/status`` without signals 32 and 33, which are glibc's own.

    From CPython 3.13 a Popen without preexec_fn uses posix_spawn(), and glibc has the new program ignore these two.
    """

    def mask(match: re.Match[str]) -> str:
        return match[1] + format(int(match[2], 16) & ~(0b11 << 31), "016x")

    return re.sub(r"(SigIgn\W+t?)([0-9a-f]{16})", mask, status)


def looks(**options: Any) -> Any:
    """A command's view of itself: signals, limits, directory, environment, descriptors, session."""
    code = """
import json, os, resource, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps([
    {name: status[name] for name in %r}, os.getcwd(), dict(os.environ), sorted(os.listdir("/proc/self/fd")),
    {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")},
    os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid(), os.umask(0), os.getpriority(os.PRIO_PROCESS, 0),
    os.get_blocking(0), os.get_blocking(1), os.get_blocking(2), os.ttyname(0) if os.isatty(0) else None]))
"""
    argv = [sys.executable, "-I", "-S", "-c", code % (STATUS,)]
    stdout, stderr = processutils.execute(*argv, **options)
    return json.loads(without_internal_signals(stdout)), stderr


def looks_of_shell(**options: Any) -> Any:
    """The signals that a shell command ignores; Python itself ignores SIGPIPE, a shell does not."""
    stdout, stderr = processutils.execute(
        "grep -E 'Sig(Ign|Blk|Cgt)' /proc/self/status; pwd; env | sort", shell=True, **options
    )
    return without_internal_signals(stdout), stderr


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "cwd": {"cwd": "/usr"},
    "env": {"env_variables": {"A": "b", "PATH": os.environ["PATH"]}},
    "input": {"process_input": b"abc"},
    "prlimit": {"prlimit": processutils.ProcessLimits(number_files=77, core_file_size=0)},
    "preexec_fn": {"preexec_fn": lambda: os.umask(0o77)},
    "timeout": {"timeout": 100},
}


@pytest.mark.parametrize("case", CASES)
def test_the_command_finds_everything_as_with_stock(case: str) -> None:
    if "timeout" in CASES[case] and "timeout" not in processutils.execute.__doc__:
        pytest.skip("this oslo.concurrency has no timeout")
    as_upstream(lambda: looks(**CASES[case]))
    as_upstream(lambda: looks_of_shell(**CASES[case]))


@pytest.fixture(params=["ignored", "default"])
def sigpipe(request: pytest.FixtureRequest) -> Iterator[str]:
    """How the parent has SIGPIPE; Python ignores it."""
    action = signal.SIG_IGN if request.param == "ignored" else signal.SIG_DFL
    before = signal.signal(signal.SIGPIPE, action)
    yield request.param
    signal.signal(signal.SIGPIPE, before)


def test_sigpipe_kills_a_command_as_with_stock(sigpipe: str, forks: Callable[[], int]) -> None:
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("no bash")

    def go() -> Any:
        # head goes away, and SIGPIPE ends yes.
        stdout, stderr = processutils.execute(shell, "-c", "set -o pipefail; yes | head -1; echo $?")
        mask, _ = processutils.execute("grep", "SigIgn", "/proc/self/status")
        return stdout, stderr, mask

    upstream = go()
    before = forks()
    with fastio.patched():
        assert go() == upstream
    assert forks() == before
    assert upstream[0] == "y\n141\n"
    assert int(upstream[2].split()[1], 16) >> (signal.SIGPIPE - 1) & 1 == 0


def test_a_preexec_fn_of_the_callers_is_called(patched: Any, tmp_path: pathlib.Path, forks: Callable[[], int]) -> None:
    path = tmp_path / "called"
    processutils.execute("true", preexec_fn=lambda: path.write_text(str(os.getpid())))
    assert path.read_text() != str(os.getpid())
    assert forks() == 1
    with pytest.raises(Exception, match="preexec_fn"):
        processutils.execute("true", preexec_fn=lambda: 1 / 0)


def test_popen_with_another_preexec_fn(patched: Any, sp: Any, forks: Callable[[], int]) -> None:
    popen = sp.Popen(["sh", "-c", "umask"], stdout=-1, stderr=-1, preexec_fn=lambda: os.umask(0o7))
    assert popen.communicate(timeout=100) == (b"0007\n", b"")
    assert forks() == 1


def test_signals_that_are_not_restored(sp: Any, sigpipe: str, forks: Callable[[], int]) -> None:
    """With restore_signals=False only the preexec_fn restores SIGPIPE: it is called."""
    setup = functools.partial(processutils._subprocess_setup, None)

    def go() -> Any:
        popen = sp.Popen(
            ["grep", "SigIgn", "/proc/self/status"], stdout=-1, stderr=-1, preexec_fn=setup, restore_signals=False
        )
        return popen.communicate(timeout=100)

    upstream = go()
    with fastio.patched():
        assert go() == upstream
    assert forks() == 2


def test_exactly_what_is_left_out() -> None:
    setup = processutils._subprocess_setup
    assert oslo_spawn.needless(functools.partial(setup, None), True, setup)

    def other(function: Any) -> None:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    class Partial(functools.partial):
        pass

    class EqualToAll:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            raise AssertionError("nothing of the caller's is called")

        def __call__(self, *args: Any) -> None:
            pass

    same = types.FunctionType(setup.__code__, {})
    for preexec_fn, restore in [
        (None, True),
        (functools.partial(setup, None), False),
        (functools.partial(setup, print), True),
        (functools.partial(setup, on_preexec_fn=None), True),
        (functools.partial(setup), True),
        (functools.partial(setup, None, None), True),
        (setup, True),
        (functools.partial(other, None), True),
        (functools.partial(print, None), True),
        (Partial(setup, None), True),
        (lambda: setup(None), True),
        (functools.partial(setup, EqualToAll()), True),
        (functools.partial(EqualToAll(), None), True),
        (functools.partial(same, None), True),
    ]:
        assert not oslo_spawn.needless(preexec_fn, restore, setup), preexec_fn


@pytest.mark.no_fast_path
def test_a_preexec_fn_is_not_kept(patched: Any, sp: Any) -> None:
    def function(argument: Any) -> None:
        pass

    kept = weakref.ref(function)
    process = sp.Popen(["true"], preexec_fn=functools.partial(function, None))
    assert process.wait(timeout=100) == 0
    del function, process
    gc.collect()
    assert kept() is None


KEYS = ["subprocess:Popen._execute_child"] * (not MONKEY_PATCHED)
KEYS += ["eventlet.green.subprocess:Popen._execute_child"] * HAS_EVENTLET


def other_setup(on_preexec_fn: Any) -> None:
    """A possible future function of oslo.concurrency's."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.umask(0o77)


other_setup.__module__ = processutils.__name__


def changed(monkeypatch: pytest.MonkeyPatch, what: str) -> Any:
    """Another ``_subprocess_setup``, and what the report says of it."""
    setup = processutils._subprocess_setup
    code = types.FunctionType(other_setup.__code__, vars(processutils), "_subprocess_setup")
    default = types.FunctionType(setup.__code__, vars(processutils), "_subprocess_setup", (None,))
    if what == "gone":
        monkeypatch.delattr(processutils, "_subprocess_setup")
        return "does not exist"
    there = {"code": code, "default": default, "wrapper": functools.wraps(setup)(lambda function: setup(function))}
    monkeypatch.setattr(processutils, "_subprocess_setup", there[what])
    return "stands at" if what == "wrapper" else "unknown code"


@pytest.mark.parametrize("what", ["code", "default", "wrapper", "gone"])
def test_another_setup_is_unknown_code(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the report would say that it is applied while it does nothing."""
    import_targets()
    found = changed(monkeypatch, what)
    with fastio.patched("oslo_spawn") as report:
        for key in KEYS:
            assert report.outcome("oslo_spawn", key) is fastio.status().outcome("oslo_spawn", key) is Outcome.CHANGED
        entries = [entry for entry in report.entries if entry.target in KEYS]
        assert all(found in entry.found and "_subprocess_setup" in entry.found for entry in entries)
        assert not any(entry.in_effect for entry in report.entries)


@pytest.mark.parametrize("what", ["code", "wrapper", "gone"])
def test_another_setup_since_it_was_patched(what: str) -> None:
    import_targets()
    with fastio.patched("oslo_spawn", strict=True), pytest.MonkeyPatch.context() as monkeypatch:
        changed(monkeypatch, what)
        for key in KEYS:
            assert fastio.status().outcome("oslo_spawn", key) is Outcome.CHANGED
        report = fastio.patch("oslo_spawn")
        assert {report.outcome("oslo_spawn", key) for key in KEYS} == {Outcome.CHANGED}
        monkeypatch.undo()
        report = fastio.patch("oslo_spawn")
        assert {report.outcome("oslo_spawn", key) for key in KEYS} == {Outcome.APPLIED}


def test_a_reloaded_module_is_examined_again(forks: Callable[[], int]) -> None:
    """The findings in the old one say nothing of the new one, and a call to patch() looks at that."""
    with fastio.patched("oslo_spawn", strict=True):
        anew = types.FunctionType(processutils._subprocess_setup.__code__, vars(processutils), "_subprocess_setup")
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(processutils, "_subprocess_setup", anew)
            assert processutils.execute("echo", "a") == ("a\n", "")
            assert forks() == 1
            assert fastio.status().outcome("oslo_spawn", KEYS[0]) is Outcome.CHANGED
            assert fastio.patch("oslo_spawn").outcome("oslo_spawn", KEYS[0]) is Outcome.APPLIED
            assert processutils.execute("echo", "a") == ("a\n", "")
            assert forks() == 1
        fastio.patch("oslo_spawn", strict=True)


def test_failures_are_as_with_stock(tmp_path: pathlib.Path) -> None:
    plain = tmp_path / "not executable"
    plain.write_text("#!/bin/sh\n")

    def go(*argv: str, **options: Any) -> Any:
        try:
            return processutils.execute(*argv, **options)
        except processutils.ProcessExecutionError as error:
            return "failed", error.exit_code, error.stdout, error.stderr, error.cmd
        except Exception as error:
            return type(error), str(error), getattr(error, "filename", None), getattr(error, "errno", None)

    commands: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (("no such command",), {}),
        ((str(plain),), {}),
        ((str(tmp_path),), {}),
        (("true",), {"cwd": "/no such directory"}),
        (("false",), {}),
        (("exit 7",), {"shell": True, "check_exit_code": [7]}),
        (("exit 7",), {"shell": True}),
        (("kill -9 $$",), {"shell": True}),
        (("true", "a\0b"), {}),
        (("sh", "-c", "echo out; echo err >&2; exit 3"), {}),
        (tuple(command(out(1, 200_000), "in:-1", "exit:4")), {"binary": True, "check_exit_code": False}),
    ]
    upstream = as_upstream(lambda: [go(*argv, **options) for argv, options in commands])
    assert upstream[-1] == (data(1, 200_000), b"")
