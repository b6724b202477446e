"""Threads that run no Python: whatever a collection finds is not ended in them, and nothing is lost or left."""

import _socket
import os
import pathlib
import sys
import types
from collections import deque
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pytest

from fastio.concurrency import native, threads
from fastio.concurrency.events import NativeEvent
from fastio.concurrency.threads import Workers, step
from tests.concurrency.gate import Gate
from tests.conftest import needs_eventlet
from tests.outcome import raising


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Three of the test's own, which have nothing to do at its end."""
    workers = Workers(3, native.start_new_thread)
    yield workers
    for worker in workers:
        worker.finish(NativeEvent)
        assert worker.load() == 0


def test_submitted_work_is_done_in_order(workers: Workers) -> None:
    worker = workers.idlest()
    assert worker is not None
    done: deque[int] = deque()
    for number in range(1000):
        worker.submit(map(done.append, (number,)))
    worker.finish(NativeEvent)
    assert list(done) == list(range(1000))


def test_a_worker_is_started_when_the_others_are_busy(workers: Workers) -> None:
    lock = native.module("_thread").allocate_lock()
    lock.acquire()
    used = []
    for _ in range(5):
        worker = workers.idlest()
        assert worker is not None
        worker.submit(step(lock.acquire), step(lock.release))
        used.append(worker)
    lock.release()
    assert len(set(map(id, used))) == len(workers) == 3


def test_a_mark_is_reached_after_what_came_before_it(workers: Workers) -> None:
    gate = Gate(workers)
    worker = workers.idlest()
    assert worker is not None
    with worker.mark(NativeEvent()) as mark:
        assert not mark._event.wait(0.001)
        gate.open()
        mark.wait()
        assert mark.reached


def test_a_step_that_raises_does_not_end_the_others(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda told: None)
    monkeypatch.setattr(threads, "PATIENCE", 0.05)
    worker = workers.idlest()
    assert worker is not None
    done: deque[int] = deque()
    worker.submit(step([].remove, 1), step(done.append, 1))
    # The one behind it, another caller's, may already be in the queue.
    worker.submit(step(done.append, 2))
    worker.finish(NativeEvent)
    worker.finish(NativeEvent)
    assert list(done) == [2]
    assert worker.failed and worker.load() == 0


FINALIZERS = """
import gc, hashlib, os, sys, _thread
green = sys.argv[1] == "green"
from fastio.concurrency import native
from fastio.io import libc
from fastio.io.hashing import BackgroundHash
from fastio.concurrency import offload
from fastio.io import hashing, image_files
from fastio.trace import recorder, spans
recorder.start("trace")
ident = native.module("_thread").get_ident
main, elsewhere = ident(), 0

class Cycle:
    "Ended by the collector, wherever that runs."
    def __init__(self):
        self.me = self
    def __del__(self):
        global elsewhere
        elsewhere += ident() != main

def almost(number):
    "So much garbage that the next few allocations, of whichever thread, make a collection."
    while gc.get_count()[0] < 199 - number % 15:
        Cycle()

def work(number):
    data = os.urandom(300_000)
    stock, ours = hashlib.sha512(), BackgroundHash(hashlib.sha512(), hashing.pool)
    with open(f"image-{number}", "wb") as raw:
        file = image_files.wrap(raw)
        for _ in range(10):
            file.write(data)
            almost(_)
            ours.update(data)
            stock.update(data)
            almost(_)
            file.write(data)
            almost(_)
            spans.Span("test.root").end()
    assert ours.hexdigest() == stock.hexdigest()
    fd = os.open(f"image-{number}", os.O_RDONLY)
    for start in range(0, 3_000_000, 300_000):
        almost(start // 300_000)
        read = bytearray(300_000)
        assert offload.run(*libc.pread(fd, memoryview(read), start)) == 300_000
        assert read == data
    os.close(fd)

gc.set_threshold(200)
if green:
    pool = eventlet.GreenPool()
    for number in range(4):
        pool.spawn(work, number)
    pool.waitall()
else:
    work(0)
assert len(hashing.pool.workers) > 0
assert len(offload._workers) > 0 or not green
found = recorder.active
recorder.stop()
assert found.written == (40 if green else 10), found.lost
print(elsewhere)
"""


def test_no_finalizer_runs_in_a_thread_of_ours(in_mode: Any) -> None:
    assert in_mode(FINALIZERS) == "0\n"


@pytest.mark.parametrize("what", ["hash", pytest.param("offload", marks=needs_eventlet)])
def test_no_frame_of_python_in_a_thread_of_ours(what: str) -> None:
    """Whatever the collector does: where no instruction is executed no finalizer can run."""
    from fastio.concurrency import offload
    from fastio.io import hashing
    from fastio.io.hashing import BackgroundHash

    data = bytes(16 << 20)
    # C, and it blocks until there is a reader.
    near, far = _socket.socketpair()
    before = set(sys._current_frames())
    if what == "hash":
        BackgroundHash(types.SimpleNamespace(update=near.sendall), hashing.pool).update(data)
    else:
        import eventlet

        eventlet.sleep(0)
        greenlet = eventlet.spawn(offload.run, near.sendall, data)
        eventlet.sleep(0)
    # Now the thread is in the middle of it.
    left = len(data) - len(far.recv(1))
    assert set(sys._current_frames()) <= before
    while left:
        left -= len(far.recv(1 << 20))
    if what == "offload":
        greenlet.wait()
    near.close()
    far.close()


UNTOLD = """
import ctypes, hashlib, os, sys, time
from fastio.concurrency import events, native
from fastio.concurrency.threads import step
from fastio.io import hashing
from fastio.io.hashing import BackgroundHash
data = os.urandom(1 << 20)
def digest(hash):
    hash.update(data)
    return hash.digest()
expected = hashlib.sha512(data).digest()
assert digest(BackgroundHash(hashlib.sha512(), hashing.pool)) == expected
lock = native.module("_thread").allocate_lock()
lock.acquire()
halfway = BackgroundHash(hashlib.sha512(), hashing.pool)
there = []
for _ in range(hashing.pool.workers.most):
    hashing.pool.workers.idlest().submit(step(there.append, 1), step(lock.acquire), step(lock.release))
while len(there) < hashing.pool.workers.most:
    # A thread that waits for the interpreter's lock during a fork unknown to Python hangs the child, in CPython.
    time.sleep(0.001)
halfway.update(data)
before = len(hashing.pool.workers)
child = ctypes.PyDLL(None).fork()
if child == 0:
    assert len(hashing.pool.workers) == 0 < before
    assert digest(BackgroundHash(hashlib.sha512(), hashing.pool)) == expected
    try:
        halfway.digest()
    except RuntimeError:
        os._exit(3)
    os._exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
lock.release()
assert halfway.digest() == expected
"""


def test_a_forked_child_unknown_to_python_has_its_own_threads(run_python: Any) -> None:
    """uWSGI forks like that: what a thread of the parent was in the middle of is an error, and nothing waits for it."""
    assert run_python(UNTOLD).stdout == "3\n"


# Offloaded calls


@pytest.fixture
def offloading() -> Iterator[Gate]:
    """A gate before the threads of :mod:`fastio.concurrency.offload`, in a greenlet that has a hub."""
    from fastio.concurrency import offload

    pytest.importorskip("eventlet").sleep(0)
    gate = Gate(offload._workers)
    yield gate
    gate.open()


@needs_eventlet
@pytest.mark.parametrize("how", ["kill", "timeout", "hub"])
def test_an_offloaded_call_ends_before_an_exception_comes_through(
    offloading: Gate, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects in use by a thread are neither closed nor reused; meanwhile others run."""
    import eventlet

    from fastio.concurrency import offload

    log: list[str] = []
    called: list[int] = []

    def call() -> None:
        try:
            with eventlet.Timeout(0.01 if how == "timeout" else None):
                offload.run(called.append, 1)
        finally:
            log.append(f"ended after {len(called)} calls")

    thread = eventlet.spawn(call)
    if how == "hub":
        monkeypatch.setattr(eventlet.hubs.get_hub(), "add", raising(OSError))
    eventlet.sleep(0)
    if how == "kill":
        eventlet.spawn(thread.kill)
    for _ in range(20):
        eventlet.sleep(0.005)
        log.append("others run")
    offloading.open()
    while not log[-1].startswith("ended"):
        eventlet.sleep(0.001)
    assert log == ["others run"] * 20 + ["ended after 1 calls"]
    with pytest.raises({"kill": eventlet.greenlet.GreenletExit, "timeout": eventlet.Timeout, "hub": OSError}[how]):
        result = thread.wait()
        raise result if isinstance(result, BaseException) else AssertionError(result)


@needs_eventlet
def test_a_file_that_is_closed_before_a_thread_writes_to_it(offloading: Gate, tmp_path: pathlib.Path) -> None:
    """Another file has its number by then."""
    import eventlet

    from fastio.io import image_files

    data = bytes(image_files.SMALL + 1)
    with open(tmp_path / "image", "wb", buffering=0) as file:
        writing = eventlet.spawn(image_files.wrap(file).write, data)
        eventlet.sleep(0)
    with open(tmp_path / "other", "wb", buffering=0):
        offloading.open()
        assert writing.wait() == len(data)
    assert [os.path.getsize(tmp_path / name) for name in ("image", "other")] == [len(data), 0]


@needs_eventlet
def test_concurrent_calls_have_separate_threads() -> None:
    import eventlet

    from fastio.concurrency import offload

    eventlet.sleep(0)
    # A call has returned before its thread has written it off, and until then counts as something to do.
    while any(worker.load() for worker in offload._workers):
        eventlet.sleep(0.001)
    locks = [native.module("_thread").allocate_lock() for _ in range(offload.MOST)]
    for lock in locks:
        lock.acquire()
    threads = [eventlet.spawn(offload.run, lock.acquire) for lock in locks]
    eventlet.sleep(0)
    assert len(offload._workers) == offload.MOST
    # In another order than they began.
    for lock, thread in reversed(list(zip(locks, threads, strict=True))):
        lock.release()
        assert thread.wait() is True


def test_natively_it_is_a_plain_call() -> None:
    from fastio.concurrency import offload

    before = len(offload._workers)
    found = [*map(offload.run, repeat(native.module("_thread").get_ident, 3))]
    # In this greenlet of a thread without a hub nothing is handed over; with one, another thread did it.
    from fastio.concurrency import current

    if current.hub() is None:
        assert set(found) == {native.module("_thread").get_ident()}
        assert len(offload._workers) == before
