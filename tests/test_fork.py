"""Forked children use the patched code, also where their parent was in the middle of something."""

import multiprocessing
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

import fastio
from fastio import counters
from fastio.concurrency import budget
from fastio.report import Outcome
from tests.child import BIG, PIPES, Gate, command, data, err
from tests.conftest import MONKEY_PATCHED, needs_eventlet
from tests.forked import in_a_fork

pytestmark = [
    pytest.mark.fast_path("exchanges"),
    # multi-threaded fork is what services do, and what is tested here
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

FAILED, NOT_PATCHED, NOT_FAST = 11, 12, 13


def transfers(module: Any = subprocess) -> int:
    """The exit status of a process that tries the patched communicate()."""
    counters.reset()
    popen = module.Popen(command("echo", err(1, 100_000)), **PIPES)
    if popen.communicate(data(2, BIG), timeout=60) != (data(2, BIG), data(1, 100_000)):
        return FAILED
    if not any(entry.outcome is Outcome.APPLIED for entry in fastio.status().entries):
        return NOT_PATCHED
    return 0 if counters.exchanges == 1 and counters.bytes_in > BIG else NOT_FAST


def test_a_fork_and_its_fork(patched: Any) -> None:
    assert in_a_fork(lambda: transfers() or in_a_fork(transfers)) == 0
    assert transfers() == 0


def test_patching_in_the_child_only() -> None:
    def go() -> int:
        fastio.patch(strict=True)
        return transfers()

    counters.reset()
    assert in_a_fork(go) == 0
    assert fastio.status().outcome("communicate") is not Outcome.APPLIED


def test_unpatching_in_the_child_only(patched: Any) -> None:
    def go() -> int:
        fastio.unpatch()
        return 0 if transfers() == NOT_PATCHED else 1

    assert in_a_fork(go) == 0
    assert transfers() == 0


@pytest.mark.skipif(MONKEY_PATCHED, reason="native threads")
def test_while_other_threads_transfer(patched: Any) -> None:
    stop = threading.Event()
    failures = []

    def busy() -> None:
        while not stop.is_set():
            done = subprocess.run(["cat"], input=data(1, 500_000), capture_output=True)
            if done.stdout != data(1, 500_000):
                failures.append(done)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        statuses = [in_a_fork(lambda: os.EX_OK if budget.shared.active() == 0 else 1) for _ in range(5)]
        statuses += [in_a_fork(transfers) for _ in range(5)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert statuses == [0] * 10
    assert not failures


@needs_eventlet
def test_while_a_greenlet_transfers(patched: Any) -> None:
    import eventlet
    from eventlet.green import subprocess as green

    with Gate() as gate:
        popen = green.Popen(command(gate.wait, "digest"), pass_fds=gate.fds, **PIPES)
        other = eventlet.spawn(popen.communicate, data(3, BIG))
        while not popen.__dict__.get("_input_offset"):
            eventlet.sleep(0)
        mover = object()
        budget.shared.enter(mover)

        def go() -> int:
            # The parent's transfer is not ours: the whole turn is.
            alone = budget.shared.active() == 0
            eventlet.hubs.use_hub()
            return transfers(green) if alone else 1

        assert in_a_fork(go) == 0
        budget.shared.leave(mover)
        gate.open()
        stdout, stderr = other.wait()
    assert stdout.startswith(str(BIG).encode()) and stderr == b""


def in_a_worker(number: int) -> tuple[int, int]:
    return number, transfers()


@pytest.mark.skipif(MONKEY_PATCHED, reason="a green multiprocessing.Pool never ends, patched or not")
def test_multiprocessing(patched: Any) -> None:
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        assert sorted(pool.map(in_a_worker, range(6), chunksize=1)) == [(number, 0) for number in range(6)]
    process = context.Process(target=lambda: sys.exit(transfers()))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert transfers() == 0
