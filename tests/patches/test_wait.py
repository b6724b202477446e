"""``wait`` and ``green_wait``: tests for both."""

import contextlib
import errno
import json
import os
import posix
import signal
import subprocess
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from fastio.concurrency import child_exit
from tests.child import Gate, command, data, err, out
from tests.conftest import MONKEY_PATCHED
from tests.outcome import as_upstream, describe, raising
from tests.targets import not_needed

pytestmark = pytest.mark.no_fast_path(reason="waiting moves no bytes; the tests count how often the child is looked at")

NEVER = 100


def native_thread(target: Callable[[], Any]) -> None:
    """Start ``target`` in a thread of the kernel's."""
    if MONKEY_PATCHED:
        import eventlet.patcher

        eventlet.patcher.original("_thread").start_new_thread(target, ())
    else:
        threading.Thread(target=target, daemon=True).start()


def counting(sp: ModuleType, act: Callable[[Any], object], at: int) -> type:
    """A Popen that counts in ``looks`` how often its status is looked at, and calls ``act`` then."""

    class Popen(sp.Popen):  # type: ignore[misc, name-defined]
        looks = 0

        @property
        def returncode(self) -> Any:
            self.looks += 1
            if self.looks == at:
                act(self)
            return vars(self)["returncode"]

        @returncode.setter
        def returncode(self, value: Any) -> None:
            self.__dict__["returncode"] = value

    return Popen


def test_a_timeout_names_the_whole_of_it(patched: Any, sp: ModuleType, gate: Gate) -> None:
    popen = sp.Popen(command(gate.wait, "exit:3"), pass_fds=gate.fds)
    with pytest.raises(sp.TimeoutExpired) as caught:
        popen.wait(timeout=0.2)
    assert (caught.value.timeout, caught.value.cmd, caught.value.output) == (0.2, popen.args, None)
    assert type(caught.value) is sp.TimeoutExpired
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    gate.open()
    assert popen.wait() == 3


class Ended(Exception):
    pass


ends = raising(Ended)


def becomes_another(popen: Any) -> None:
    popen.__class__ = type("Other", (type(popen),), {"poll": ends, "_try_wait": ends})


@pytest.mark.parametrize(
    "change",
    [
        lambda popen: setattr(popen, "returncode", 3),
        lambda popen: popen.__dict__.update(poll=ends, _try_wait=ends),
        becomes_another,
        ends,
    ],
    ids=["its status", "its methods", "its class", "it raises"],
)
def test_changes_by_others_meanwhile_are_seen(sp: ModuleType, is_green: bool, gate: Gate, change: Any) -> None:
    """By greenlets, threads and handlers, or where a subclass ends the wait: the child goes on."""
    if not_needed("wait") and not is_green:
        pytest.skip("upstream does not look at the child again and again")

    def go() -> Any:
        popen = counting(sp, change, 12)(command(gate.wait), pass_fds=gate.fds)
        try:
            return popen.wait(timeout=5)
        except Exception as error:
            return type(error)
        finally:
            gate.open()
            posix.waitpid(popen.pid, 0)
            popen.returncode = 0

    as_upstream(go)


@pytest.mark.parametrize(
    ("end", "returncode", "timeout"),
    [
        *(("exit:0", 0, timeout) for timeout in (None, NEVER, 0.001, 1e10)),
        *(("exit:255", 255, timeout) for timeout in (None, 0.001, float("inf"))),
        *(("kill:9", -9, timeout) for timeout in (None, NEVER, threading.TIMEOUT_MAX)),
        *(("kill:15", -15, timeout) for timeout in (NEVER, 0.001, 2_000_000)),
    ],
)
def test_the_exit_status_of_every_end(
    patched: Any, sp: ModuleType, end: str, returncode: int, timeout: float | None
) -> None:
    popen = sp.Popen(command(end))
    if timeout == 0.001:
        # As good as gone when it is waited for.
        os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOWAIT)
    assert popen.wait(timeout) == popen.wait() == popen.wait(0) == popen.poll() == popen.returncode == returncode


@pytest.mark.parametrize("timeout", [0, 0.0, -1, -0.5, 1e-9, float("-inf")])
def test_a_time_out_of_zero_expires_at_once(sp: ModuleType, gate: Gate, timeout: float) -> None:
    def go() -> Any:
        popen = sp.Popen(command(gate.wait), pass_fds=gate.fds)
        with pytest.raises(sp.TimeoutExpired) as caught:
            popen.wait(timeout)
        found = describe(caught.value, timeout)
        gate.open()
        return found, popen.wait()

    as_upstream(go)


@pytest.mark.parametrize("timeout", ["1", (1,), float("nan")])
def test_invalid_timeouts_are_like_upstream(sp: ModuleType, timeout: Any) -> None:
    def go() -> Any:
        popen = sp.Popen(command("sleep:0.1"))
        try:
            return popen.wait(timeout)
        except Exception as error:
            return type(error)
        finally:
            popen.wait()

    as_upstream(go)


@pytest.mark.parametrize("timeout", [None, NEVER])
def test_a_child_that_was_reaped_elsewhere(patched: Any, sp: ModuleType, timeout: float | None) -> None:
    popen = sp.Popen(command("exit:3"))
    pid, _ = os.waitpid(popen.pid, 0)
    assert pid == popen.pid
    # The status is lost, and upstream takes it for a success.
    assert popen.wait(timeout) == 0


@pytest.mark.parametrize("timeout", [None, NEVER])
def test_a_child_that_is_reaped_while_it_is_waited_for(patched: Any, sp: ModuleType, timeout: float | None) -> None:
    popen = sp.Popen(command("sleep:0.3", "exit:3"))

    def reap() -> None:
        with contextlib.suppress(ChildProcessError):
            posix.waitpid(popen.pid, 0)

    native_thread(reap)
    assert popen.wait(timeout) in (0, 3)
    with pytest.raises(ChildProcessError):
        posix.waitpid(popen.pid, 0)


def reap(*_: Any) -> None:
    with contextlib.suppress(ChildProcessError):
        posix.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize("timeout", [None, NEVER])
@pytest.mark.parametrize("step", ["sleep:0.3", "exit:3"])
@pytest.mark.parametrize("handler", [signal.SIG_IGN, reap], ids=["ignored", "handled"])
def test_a_child_that_sigchld_reaps(
    patched: Any, sp: ModuleType, request: pytest.FixtureRequest, handler: Any, step: str, timeout: float | None
) -> None:
    before = signal.signal(signal.SIGCHLD, handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGCHLD, before))
    assert sp.Popen(command(step)).wait(timeout) in ((0,) if handler is signal.SIG_IGN else (0, 3))
    assert sp.run(command(out(1, 100_000), err(2, 9)), capture_output=True).stdout == data(1, 100_000)


@pytest.mark.parametrize("error", [None, errno.ENOSYS, errno.EPERM, errno.EMFILE, errno.ESRCH, errno.EINVAL])
def test_kernels_and_pythons_without_pidfd(
    patched: Any, sp: ModuleType, is_green: bool, monkeypatch: pytest.MonkeyPatch, error: int | None, gate: Gate
) -> None:
    if error is None and not_needed("wait") and not is_green:
        pytest.skip("upstream looks for it only once")

    def pidfd_open(pid: int, flags: int = 0) -> int:
        assert error is not None
        raise OSError(error, os.strerror(error))

    if error is None:
        monkeypatch.delattr(child_exit.os, "pidfd_open")
    else:
        monkeypatch.setattr(child_exit.os, "pidfd_open", pidfd_open)
    popen = counting(sp, lambda _: gate.open(), 9)(command(gate.wait, "exit:3"), pass_fds=gate.fds)
    assert popen.wait(NEVER) == 3
    assert popen.looks > 8
    popen = sp.Popen(command(gate.wait), pass_fds=gate.fds)
    with pytest.raises(sp.TimeoutExpired):
        popen.wait(0.1)
    gate.open()
    assert popen.wait() == 0


@pytest.mark.skipif(MONKEY_PATCHED, reason="native threads")
def test_threads_with_and_without_a_timeout(patched: Any, gate: Gate) -> None:
    popen = subprocess.Popen(command(gate.wait, "exit:3"), pass_fds=gate.fds)
    results: list[Any] = []

    def wait(timeout: float | None) -> None:
        try:
            results.append(popen.wait(timeout))
        except subprocess.TimeoutExpired as error:
            results.append(error.timeout)

    threads = [threading.Thread(target=wait, args=(timeout,)) for timeout in (None, NEVER, 0.1, None, NEVER)]
    for thread in threads:
        thread.start()
    threads[2].join()
    assert results == [0.1]
    gate.open()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0.1, 3, 3, 3, 3]


INTERRUPTED = """
import json, os, signal, subprocess
# What a shell starts in the background ignores the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
import fastio
from tests.child import Gate, command
fastio.patch(strict=True)
gate = Gate()
popen = subprocess.Popen(command(gate.wait, "settled", "interrupt", gate.wait, "exit:3"), pass_fds=gate.fds)
before = len(os.listdir("/proc/self/fd"))
try:
    gate.open()
    popen.wait(timeout=40)
    caught = None
except KeyboardInterrupt:
    caught = "KeyboardInterrupt"
after = len(os.listdir("/proc/self/fd"))
gate.open()
print(json.dumps([caught, after - before, popen.wait(timeout=40)]))
"""


def test_ctrl_c(in_mode: Any, request: pytest.FixtureRequest) -> None:
    # The hub's epoll is opened by the first wait.
    caught, opened, returncode = json.loads(in_mode(INTERRUPTED))
    assert (caught, returncode) == ("KeyboardInterrupt", 3)
    assert opened <= (1 if "green" in request.node.name else 0)
