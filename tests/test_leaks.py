"""Nothing is left behind: no descriptor, no zombie, no memory, no object."""

import gc
import os
import pathlib
import signal
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
from fastio.concurrency import budget
from fastio.io import scratch
from fastio.patching import imports
from tests.child import BIG, MIB, PIPES, Gate, command, data, err, out
from tests.descriptors import descriptors
from tests.outcome import timed_out
from tests.targets import import_targets

pytestmark = pytest.mark.fast_path("exchanges")


@pytest.fixture(autouse=True, scope="module")
def nothing_old_is_collected() -> Iterator[None]:
    """Leftovers of all tests before these are not looked at each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def children() -> set[str]:
    """Every child of this process, zombies too."""
    return {f"child {pid}" for pid in pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def threads() -> set[str]:
    return {f"thread {task}" for task in os.listdir("/proc/self/task")}


def there_is() -> set[object]:
    """All of them. Leftovers of an earlier test may end at any moment, so tests look for new ones."""
    return {*descriptors(), *children(), *threads()}


def succeeds(module: Any) -> None:
    popen = module.Popen(command("echo", err(1, 100_000)), **PIPES)
    assert popen.communicate(data(2, BIG)) == (data(2, BIG), data(1, 100_000))


def times_out(module: Any) -> None:
    with Gate() as gate, pytest.raises(module.TimeoutExpired):
        module.run(
            command(out(1, 1000), gate.wait), pass_fds=gate.fds, input=data(1, BIG), capture_output=True, timeout=0.05
        )


def breaks_its_pipe(module: Any) -> None:
    module.run(command("in:10", out(1, 1000), "exit:3"), input=data(1, BIG), capture_output=True)


def is_killed(module: Any) -> None:
    module.run(command(out(1, 100_000), "kill:9"), capture_output=True)


def can_not_be_started(module: Any) -> None:
    with pytest.raises(FileNotFoundError):
        module.run(["/no such command"], input=b"abc", capture_output=True)


def is_waited_for(module: Any) -> None:
    assert module.run(command("sleep:0.01"), capture_output=True, timeout=100).returncode == 0


def can_not_be_decoded(module: Any) -> None:
    with pytest.raises(UnicodeDecodeError):
        module.run(command(out(1, 100_000), err(1, 1)), capture_output=True, encoding="utf-8")


def resumes(module: Any) -> None:
    with Gate() as gate:
        popen = module.Popen(command(gate.wait, "digest"), pass_fds=gate.fds, **PIPES)
        timed_out(module, popen, 0.01, data(1, BIG))
        # Not all releases send the rest of it.
        popen.stdin.close()
        gate.open()
        assert popen.communicate()[0]


USES = [
    succeeds, times_out, breaks_its_pipe, is_killed, can_not_be_started, is_waited_for, can_not_be_decoded, resumes,
]  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_no_descriptor_and_no_zombie(patched: Any, popen_module: Any, use: Callable[[Any], None], request: Any) -> None:
    if use is can_not_be_started:
        request.applymarker(pytest.mark.no_fast_path(reason="nothing is started"))
    use(popen_module)
    gc.collect()
    before = there_is()
    for _ in range(5):
        use(popen_module)
    gc.collect()
    assert there_is() - before == set()
    assert budget.shared.active() == 0


@pytest.mark.parametrize("use", [succeeds, times_out, breaks_its_pipe, is_killed, resumes])
def test_no_popen_is_held(patched: Any, popen_module: Any, use: Callable[[Any], None]) -> None:
    """It is gone as soon as the caller lets go of it: no cycle waits for the collector."""
    seen: list[weakref.ref[Any]] = []

    class Module:
        def __getattr__(self, name: str) -> Any:
            return getattr(popen_module, name)

        def Popen(self, *args: Any, **kwargs: Any) -> Any:  # noqa: N802
            popen = popen_module.Popen(*args, **kwargs)
            seen.append(weakref.ref(popen))
            return popen

    popen = Module().Popen(command("echo"), **PIPES)
    popen.communicate(data(1, BIG))
    gc.collect()
    gc.disable()
    try:
        del popen
        assert seen[0]() is None
    finally:
        gc.enable()
    use(Module())
    gc.collect()
    assert all(reference() is None for reference in seen)


def test_no_input_is_held(patched: Any, popen_module: Any) -> None:
    class Bytes(bytearray):
        pass

    payload = Bytes(data(1, BIG))
    reference = weakref.ref(payload)
    popen = popen_module.Popen(command("digest"), **PIPES)
    gc.collect()
    gc.disable()
    try:
        popen.communicate(payload)
        # It has no view any more: it can change its size again.
        payload.append(1)
        del popen, payload
        assert reference() is None
    finally:
        gc.enable()


MEMORY = """
import gc, subprocess
import fastio
from tests.child import command, data

fastio.patch(strict=True)
payload = data(1, 1 << 20)

def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * 4096

def turn(count):
    for _ in range(count):
        assert subprocess.run(["cat"], input=payload, capture_output=True).stdout == payload
        try:
            subprocess.run(["sleep", "10"], input=payload, capture_output=True, timeout=0.001)
        except subprocess.TimeoutExpired:
            pass

turn(50)
before = resident()
turn(100)
print(fastio.counters.exchanges, resident() - before)
"""


@pytest.mark.no_fast_path(reason="counted in the other process")
def test_no_memory_after_many_calls(in_mode: Any) -> None:
    exchanges, grown = map(int, in_mode(MEMORY).split())
    assert exchanges >= 150
    # 200 payloads of 1 MiB went through; what little the allocator keeps is far less than one in fifty.
    assert grown < 4 * MIB


PEAK = """
import subprocess
import fastio

def peak():
    # Not ru_maxrss, which begins with that of the process that started this one.
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))

fastio.patch(strict=True)
subprocess.run(["true"], capture_output=True)
before = peak()
done = subprocess.run(["head", "-c", str(200 << 20), "/dev/zero"], capture_output=True)
assert len(done.stdout) == 200 << 20
print((peak() - before) / 1024 / 200)
"""


@pytest.mark.no_fast_path(reason="counted in the other process")
def test_the_payload_is_in_memory_once(in_mode: Any) -> None:
    assert 0.95 < float(in_mode(PEAK)) <= 1.15


def state() -> dict[str, object]:
    return {
        "handlers": [signal.getsignal(number) for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGALRM)],
        "wakeup": signal.set_wakeup_fd(-1),
        "finders": [finder for finder in sys.meta_path if finder is not imports._Finder],
        "trace": (sys.gettrace(), sys.getprofile()),
        "environment": dict(os.environ),
    }


def test_patching_and_taking_back_leave_nothing(popen_module: Any) -> None:
    import_targets()
    # Files that the libraries open for good at the first use are not ours: the hub's epoll, for one.
    with fastio.patched(strict=True):
        succeeds(popen_module)
    before, there = state(), there_is()
    for _ in range(2):
        with fastio.patched(strict=True):
            for use in (succeeds, times_out, breaks_its_pipe, is_waited_for):
                use(popen_module)
    assert state() == before
    assert there_is() - there == set()
    assert len(scratch._spare) <= scratch.KEPT
