"""Short commands: what it costs to start one, and how soon its end is noticed.

Parameters:

``task``
    ``"execute"``: ``processutils.execute("true")``;
    ``"late_exit"``: the same with a child that closes its outputs 1 ms before it exits;
    ``"wait"``: ``Popen.wait(timeout)`` for a child that lives for a while;
    ``"patch"``, ``"run"``, ``"child"``: a Python that does nothing; with fastio it calls ``fastio.patch()``, or it is
    started by ``fastio run``, or by a program under ``fastio run --children``
``commands``
    how many, one after the other
``heap``
    bytes of touched memory in the parent, as a service has it: forking copies its page tables
``settings``
    of fastio

Results: ``p50_ms`` and ``p90_ms``. For ``execute`` these are of whole commands; for the other two of the time from the
child's exit, as seen by a third process that waits for the same child (:class:`Watcher`), until Python goes on. For a
Python they are its CPU time; it is that of glance 33's environment, if ``BENCHMARK_GLANCE33`` names one.
"""

import os
import resource
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.backends.base import ROOT, server_environment
from benchmarks.harness.modes import Mode, choice, enter
from benchmarks.harness.worker import measure
from fastio import launcher

#: Seconds that the children of ``wait`` live: from well below to well above the 50 ms to which the standard library's
#: pauses between two looks grow, so that no phase of them is favoured.
LIVES = (0.02, 0.033, 0.05, 0.075, 0.11, 0.16)

LATE_EXIT = "import os, time; os.close(1); os.close(2); time.sleep(0.001); os._exit(0)"


#: Tasks that are the start of a Python.
STARTS = ("patch", "run", "child")


class Watcher:
    """A separate process that notes when a given process exits: no lock and no hub of the measured process delays it.

    Must be made before eventlet is there and before the heap is large, because it is a fork of this process.
    """

    def __init__(self) -> None:
        numbers, self._ask = os.pipe()
        self._answer, times = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(numbers)
            os.close(times)
            return
        try:
            os.close(self._ask)
            os.close(self._answer)
            self._serve(numbers, times)
        finally:
            os._exit(0)

    @staticmethod
    def _serve(numbers: int, times: int) -> None:
        import select

        while line := os.read(numbers, 8):
            pidfd = os.pidfd_open(int.from_bytes(line, "little"))
            os.write(times, line)
            poll = select.poll()
            poll.register(pidfd, select.POLLIN)
            poll.poll()
            os.write(times, time.monotonic_ns().to_bytes(8, "little"))
            os.close(pidfd)

    def watch(self, pid: int) -> None:
        """Let it watch ``pid``, a child that is not waited for yet; it does so when this returns."""
        os.write(self._ask, pid.to_bytes(8, "little"))
        self._read()

    def exit_time(self) -> float:
        """When the process watched last has exited, in seconds on the clock of ``time.monotonic()``."""
        return self._read() / 1e9

    def _read(self) -> int:
        answer = os.read(self._answer, 8)
        if not answer:
            raise RuntimeError("the watching process has ended")
        return int.from_bytes(answer, "little")

    def close(self) -> None:
        os.close(self._ask)
        os.close(self._answer)
        os.waitpid(self._pid, 0)


def occupy(size: int) -> bytearray:
    """Memory of that size, every page of it touched."""
    heap = bytearray(size)
    pages = len(range(0, size, 4096))
    heap[::4096] = b"\x01" * pages
    return heap


def _once(task: str, number: int, watcher: Watcher | None) -> tuple[float, bytes]:
    """Seconds of a command, or from its end on where there is a watcher; and what it has said."""
    import subprocess

    from oslo_concurrency import processutils

    if task == "wait":
        with subprocess.Popen(["sleep", str(LIVES[number % len(LIVES)])]) as child:
            assert watcher is not None
            watcher.watch(child.pid)
            child.wait(timeout=10)
            return time.monotonic() - watcher.exit_time(), b""
    command = ["true"] if watcher is None else [sys.executable, "-ISs", "-c", LATE_EXIT]
    watch = None if watcher is None else lambda child: watcher.watch(child.pid)
    start = time.monotonic()
    out, err = processutils.execute(*command, binary=True, on_execute=watch)
    end = time.monotonic()
    return end - (start if watcher is None else watcher.exit_time()), out + err


def latencies(seconds: Sequence[float]) -> dict[str, float]:
    """Median and 90th percentile in milliseconds."""
    return {
        "p50_ms": statistics.median(seconds) * 1000,
        "p90_ms": statistics.quantiles(seconds, n=10, method="inclusive")[-1] * 1000,
    }


def cpu_time(how: str, fast: bool) -> float:
    """Seconds that a Python takes from its start to its end."""
    import subprocess

    python = os.environ.get("BENCHMARK_GLANCE33") or sys.executable
    command, places = [python, "-c", "import fastio; fastio.patch()" if fast and how == "patch" else ""], [str(ROOT)]
    environ = {}
    if fast and how == "run":
        command = [python, "-m", "fastio", "run", "--", *command]
    elif fast and how == "child":
        places.insert(0, launcher.BOOTSTRAP)
        environ[launcher.PROGRAM] = "0 children"
    environ["PYTHONPATH"] = os.pathsep.join(places)
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    subprocess.run(command, env=server_environment(environ), check=True, timeout=60)
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    task = choice(parameters, "task", "execute", "late_exit", "wait", *STARTS)
    commands = parameters["commands"]
    if task in STARTS:
        # The first one may compile what the others find.
        cpu_time(task, mode.fast)
        with measure() as measured:
            figures = latencies([cpu_time(task, mode.fast) for _ in range(commands)])
        return measured.result(bytes=0, verified=True, commands=commands, **figures)
    watcher = None if task == "execute" else Watcher()
    enter(mode, parameters)
    heap = occupy(parameters.get("heap", 0))
    # The first command of a process imports and compiles what the others find ready.
    _once(task, 0, watcher)
    with measure() as measured:
        done = [_once(task, number, watcher) for number in range(commands)]
    if watcher is not None:
        watcher.close()
    del heap
    spent, outputs = zip(*done, strict=True)
    return measured.result(bytes=0, verified=not any(outputs), commands=commands, **latencies(spent))
