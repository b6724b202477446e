"""Hash objects that threads work for: the same as those of hashlib, in bounded memory, and never stuck."""

import copy
import hashlib
import itertools
import os
import pickle
import platform
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
from fastio.concurrency import native
from fastio.concurrency.events import NativeEvent
from fastio.io.hashing import BATCH, LIMIT, SMALL, TOTAL, BackgroundHash, Pool
from tests.concurrency.gate import Gate, until
from tests.conftest import RunPython
from tests.forked import in_a_fork
from tests.outcome import raising

# multi-threaded fork is what services do, and what is tested here
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

PACKAGE = os.path.dirname(fastio.__file__)
ALGORITHMS = sorted(hashlib.algorithms_guaranteed)
PIECE = bytes(range(256)) * 256


def new(algorithm: str) -> Any:
    return hashlib.new(algorithm, usedforsecurity=False)


@pytest.fixture
def pool() -> Iterator[Pool]:
    """Native threads of the test's own; at its end none of them may have anything to do."""
    pool = Pool()
    pool.new_event = NativeEvent
    yield pool
    until(lambda: not pool.load())


@pytest.fixture
def gate(pool: Pool) -> Iterator[Gate]:
    """All threads of ``pool`` stand still until the gate is opened, at the latest at the test's end."""
    # Two, on a machine with many processors as well: each that stands still counts among what shares the bound.
    pool.workers.most = 2
    gate = Gate(pool.workers)
    yield gate
    gate.open()


@pytest.fixture
def waits(pool: Pool) -> list[Any]:
    """The waits for a thread of ``pool`` that have begun."""
    begun: list[Any] = []

    class Event(NativeEvent):
        def wait(self, seconds: float) -> bool:
            begun.append(self)
            return super().wait(seconds)

    pool.new_event = Event
    return begun


def in_thread(function: Callable[[], Any]) -> Any:
    """A started native thread, also where eventlet has patched ``threading``."""
    thread = native.module("threading").Thread(target=function, daemon=True)
    thread.start()
    return thread


# The same as hashlib, beside what any calls give: tests/properties/test_hashing_properties.py


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_background_hash_looks_like_hashlibs(algorithm: str, pool: Pool) -> None:
    stock = new(algorithm)
    ours = BackgroundHash(stock, pool)
    for name in ("name", "digest_size", "block_size"):
        assert getattr(ours, name) == getattr(stock, name)
    assert isinstance(ours, type(stock))
    assert ours.__class__ is stock.__class__
    assert repr(ours) == repr(stock)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy, lambda hash: hash.nothing, lambda hash: hash.digest("x")):
        with pytest.raises(Exception) as expected:  # noqa: B017
            attempt(stock)
        with pytest.raises(expected.type) as found:
            attempt(ours)
        assert str(found.value) == str(expected.value)
    with pytest.raises(AttributeError):
        ours.nothing = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", ["text", None, 7, [1], memoryview(bytes(10_000))[::2], object()], ids=repr)
@pytest.mark.parametrize("before", [0, 10 * BATCH], ids=["nothing before", "much before"])
def test_objects_that_are_no_data_are_refused_at_once(wrong: Any, before: int, pool: Pool) -> None:
    ours = BackgroundHash(new("sha512"), pool)
    ours.update(bytes(before))
    with pytest.raises((TypeError, BufferError, ValueError)) as expected:
        new("sha512").update(wrong)
    with pytest.raises(expected.type) as found:
        ours.update(wrong)
    assert str(found.value) == str(expected.value)
    ours.update(b"more")
    assert ours.hexdigest() == hashlib.sha512(bytes(before) + b"more").hexdigest()


# Threads


def test_no_thread_for_little_data(pool: Pool) -> None:
    for _ in range(100):
        ours = BackgroundHash(new("sha512"), pool)
        ours.update(bytes(BATCH - 1))
        assert ours.hexdigest() == hashlib.sha512(bytes(BATCH - 1)).hexdigest()
    tiny = BackgroundHash(new("sha512"), pool)
    for _ in range(2 * BATCH // SMALL):
        tiny.update(bytes(SMALL - 1))
    tiny.hexdigest()
    assert len(pool.workers) == 0


def test_no_more_threads_than_processors(pool: Pool) -> None:
    hashes = [BackgroundHash(new("sha512"), pool) for _ in range(50)]
    for _ in range(3):
        for each in hashes:
            each.update(PIECE * 5)
    assert {each.hexdigest() for each in hashes} == {hashlib.sha512(PIECE * 15).hexdigest()}
    assert 0 < len(pool.workers) <= max(2, len(os.sched_getaffinity(0)))


def test_one_hash_object_stays_with_its_thread_while_that_has_some_of_its_data(pool: Pool, gate: Gate) -> None:
    """Its data must be hashed in order."""
    ours = BackgroundHash(new("sha512"), pool)
    ours.update(bytes(BATCH))
    worker = ours._worker
    for _ in range(3):
        # Now the other thread has less to do.
        ours.update(PIECE * 5)
        assert ours._worker is worker
    gate.open()
    assert ours.hexdigest() == hashlib.sha512(bytes(BATCH) + PIECE * 15).hexdigest()


def test_pieces_are_handed_over_in_batches(pool: Pool) -> None:
    ours = BackgroundHash(new("sha512"), pool)
    for _ in range(LIMIT // 4096):
        ours.update(bytes(4096))
    assert ours.hexdigest() == hashlib.sha512(bytes(LIMIT)).hexdigest()
    # Fewer where the thread did not keep up, and more than one batch was taken.
    assert 0 < pool.batches <= LIMIT // BATCH


def test_where_no_thread_can_be_started() -> None:
    pool = Pool()
    pool.workers._native_start = lambda: raising(RuntimeError("can't start new thread"))
    ours = BackgroundHash(new("sha512"), pool)
    for _ in range(100):
        ours.update(PIECE)
    assert ours.hexdigest() == hashlib.sha512(PIECE * 100).hexdigest()
    assert len(pool.workers) == 0


def test_a_hash_object_of_python_code_is_worked_on_by_its_caller(pool: Pool) -> None:
    class Python:
        def __init__(self) -> None:
            self.hash = new("sha512")
            self.threads: set[Any] = set()

        def update(self, data: Any) -> None:
            self.threads.add(native.module("_thread").get_ident())
            self.hash.update(data)

        def hexdigest(self) -> Any:
            return self.hash.hexdigest()

    found = Python()
    ours = BackgroundHash(found, pool)
    for _ in range(10):
        ours.update(PIECE * 10)
    assert ours.hexdigest() == hashlib.sha512(PIECE * 100).hexdigest()
    assert found.threads == {native.module("_thread").get_ident()}


def test_several_threads_may_use_one_hash_object(pool: Pool) -> None:
    ours = BackgroundHash(new("sha512"), pool)

    def work() -> None:
        for number in range(200):
            ours.update(PIECE)
            if number % 50 == 0:
                ours.hexdigest()
                ours.copy().update(b"x")

    threads = [in_thread(work) for _ in range(4)]
    for thread in threads:
        thread.join()
    assert ours.hexdigest() == hashlib.sha512(PIECE * 800).hexdigest()


# Memory


@pytest.mark.parametrize("size", [64 * 1024, BATCH, 1 << 20, LIMIT - 1])
def test_the_backlog_is_bounded(size: int, pool: Pool, gate: Gate, waits: list[Any]) -> None:
    ours = BackgroundHash(new("sha512"), pool)
    accepted = []

    def produce() -> None:
        for _ in range(3 * LIMIT // size):
            ours.update(bytes(size))
            accepted.append(size)

    producer = in_thread(produce)
    until(lambda: waits)
    # The gate counts among what is shared.
    assert LIMIT - 2 * max(size, BATCH) <= sum(accepted) <= LIMIT
    gate.open()
    producer.join()
    assert ours.hexdigest() == hashlib.sha512(bytes(3 * LIMIT // size * size)).hexdigest()


def test_a_piece_that_is_larger_than_the_bound_waits_for_the_one_before(
    pool: Pool, gate: Gate, waits: list[Any]
) -> None:
    ours = BackgroundHash(new("sha512"), pool)
    data = bytes(LIMIT + 1)
    ended: list[int] = []

    def produce() -> None:
        for number in range(2):
            ours.update(data)
            ended.append(number)

    producer = in_thread(produce)
    until(lambda: waits)
    assert ended == [0]
    gate.open()
    producer.join()
    assert ours.hexdigest() == hashlib.sha512(data + data).hexdigest()


def test_many_share_the_bound(pool: Pool, gate: Gate) -> None:
    ours = [BackgroundHash(new("sha512"), pool) for _ in range(64 - pool.load())]
    assert pool.limit() == LIMIT
    for each in ours:
        each.update(bytes(BATCH))
    assert pool.limit() == TOTAL // 64
    gate.open()
    for each in ours:
        each.hexdigest()
    until(lambda: not pool.load())
    assert pool.limit() == LIMIT


def test_data_is_released_once_it_is_hashed(pool: Pool) -> None:
    data = bytes(2 * BATCH)
    references = sys.getrefcount(data)
    for left_alone in (False, True):
        gate = Gate(pool.workers)
        hash = new("sha512")
        of_hash = sys.getrefcount(hash)
        ours = BackgroundHash(hash, pool)
        for _ in range(5):
            ours.update(data)
        assert sys.getrefcount(data) >= references + 5
        gate.open()
        if not left_alone:
            ours.hexdigest()
        # Else an upload that was given up: what had been handed over is hashed, and forgotten.
        del ours
        until(lambda: sys.getrefcount(data) == references)
        # Not even the hash object stays with the thread that worked on it last.
        while sys.getrefcount(hash) > of_hash:
            native.module("threading").Event().wait(0.001)


# Errors


@pytest.mark.parametrize("call", ["hexdigest", "digest", "copy", "update"])
def test_a_failure_in_the_thread_is_raised_to_the_next_caller(
    call: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hashlib's own functions do not fail; if one did, its data must not be missing without a word."""
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told_of: told.append(str(told_of.exc_value)))
    # Written in C, and refuses what it is given.
    stock = new("sha512")
    calls = {name: getattr(stock, name) for name in ("hexdigest", "digest", "copy")}
    ours = BackgroundHash(type("Failing", (), {"update": [].remove, **calls})(), pool)
    ours.update(PIECE * 5)
    until(lambda: told)
    with pytest.raises(RuntimeError, match="could not hash all of its data"):
        getattr(ours, call)(*([b"x"] if call == "update" else []))
    # The thread goes on.
    other = BackgroundHash(new("md5"), pool)
    other.update(PIECE * 5)
    assert other.hexdigest() == hashlib.md5(PIECE * 5).hexdigest()


@pytest.mark.parametrize("call", ["update", "hexdigest"])
def test_an_interrupted_wait_leaves_nothing(
    call: str, pool: Pool, gate: Gate, waits: list[Any], request: pytest.FixtureRequest
) -> None:
    # A background job of a shell ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    ours = BackgroundHash(new("sha512"), pool)
    pieces = LIMIT // 2 // len(PIECE)
    for _ in range(pieces):
        ours.update(PIECE)
    last = bytes(LIMIT)

    def interrupt() -> None:
        until(lambda: waits)
        os.kill(os.getpid(), signal.SIGINT)

    in_thread(interrupt)
    with pytest.raises(KeyboardInterrupt):
        getattr(ours, call)(*([last] if call == "update" else []))
    gate.open()
    # As with hashlib's own, the data of a call that was interrupted may count or not.
    allowed = [b""] if call == "hexdigest" else [b"", last]
    assert ours.hexdigest() in [hashlib.sha512(PIECE * pieces + more).hexdigest() for more in allowed]


def interrupted(number: int, call: Callable[..., Any], *args: Any) -> bool:
    """Whether ``call`` was interrupted, as by a signal, before this instruction of fastio's; False if it has fewer."""
    left = number

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(*args)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("call", ["update", "hexdigest"])
@pytest.mark.parametrize("size", [4096, BATCH], ids=["joined", "alone"])
def test_an_interruption_anywhere_loses_nothing(size: int, call: str) -> None:
    """Neither a piece that was taken before, nor the account of what a thread has yet to do, for which others wait."""
    pool = Pool()
    pool.new_event = NativeEvent
    # The threads are there: this is not about their start. Some Pythons tell of instructions from the next trace on.
    Gate(pool.workers).open()
    interrupted(0, pool.limit)
    data, last = bytes(range(256)) * (2 * BATCH // 256 - 32), bytes(size)
    allowed = [hashlib.md5(data + more).hexdigest() for more in (b"", last)]
    for number in itertools.count():  # noqa: B007
        ours = BackgroundHash(new("md5"), pool)
        for start in range(0, len(data), size):
            ours.update(data[start : start + size])
        if not interrupted(number, *([ours.update, last] if call == "update" else [ours.hexdigest])):
            break
        for worker in pool.workers:
            worker.finish(NativeEvent)
        # Asked before hexdigest(), which would wait for ever.
        assert not ours._unfinished and not pool.load()
        assert ours.hexdigest() in (allowed if call == "update" else allowed[:1])
    assert number > 30


# Fork and exit


def test_a_hash_begun_before_the_fork_goes_on_in_both(pool: Pool) -> None:
    """A child, and its child, have their own threads."""
    for _ in range(10):
        ours = [BackgroundHash(new(name), pool) for name in ("md5", "sha512")]
        for each in ours:
            for _ in range(40):
                each.update(PIECE)

        def go(ours: list[BackgroundHash] = ours) -> bool:
            hashes = [*ours, BackgroundHash(new("sha512"), pool)]
            before = len(pool.workers)
            for each in hashes:
                each.update(PIECE * 20)
            wanted = [hashlib.new(each.name, PIECE * 60).hexdigest() for each in ours]
            wanted.append(hashlib.sha512(PIECE * 20).hexdigest())
            return before == 0 < len(pool.workers) and [each.hexdigest() for each in hashes] == wanted

        assert in_a_fork(lambda: not go()) == 0
        assert [each.hexdigest() for each in ours] == [hashlib.new(each.name, PIECE * 40).hexdigest() for each in ours]
    assert in_a_fork(lambda: in_a_fork(lambda: not go()) or not go()) == 0


def test_forks_while_other_threads_hash(pool: Pool) -> None:
    stop = native.module("threading").Event()
    wrong: list[str] = []

    def busy() -> None:
        while not stop.is_set():
            ours = BackgroundHash(new("md5"), pool)
            for _ in range(30):
                ours.update(PIECE)
            if ours.hexdigest() != hashlib.md5(PIECE * 30).hexdigest():
                wrong.append(ours.hexdigest())

    def go() -> bool:
        ours = BackgroundHash(new("sha512"), pool)
        ours.update(PIECE * 30)
        return len(pool.workers) > 0 and ours.hexdigest() == hashlib.sha512(PIECE * 30).hexdigest()

    threads = [in_thread(busy) for _ in range(3)]
    try:
        statuses = [in_a_fork(lambda: not go()) for _ in range(10)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert statuses == [0] * 10
    assert not wrong
    assert len(pool.workers) > 0


EXIT = """
import atexit, hashlib
from fastio.io import hashing
pool = hashing.Pool()
piece = bytes(1 << 20)
ours = hashing.BackgroundHash(hashlib.sha512(), pool)
def last():
    for _ in range(20):
        ours.update(piece)
    print(ours.hexdigest() == hashlib.sha512(piece * 24).hexdigest(), flush=True)
    ours.update(piece)
atexit.register(last)
for _ in range(4):
    ours.update(piece)
"""


def test_a_process_ends_in_the_middle_of_it(run_python: Any) -> None:
    for _ in range(5):
        done = run_python(EXIT)
        assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others have rules of their own for freed memory")
def test_pieces_come_from_memory_that_the_process_has(run_python: RunPython) -> None:
    """Those that were let go of are not given back to the system: each would cost 256 page faults again."""
    code = f"""
        import hashlib, resource
        from fastio.concurrency.events import NativeEvent
        from fastio.io.hashing import BackgroundHash, Pool
        pool = Pool()
        pool.new_event = NativeEvent
        hash = BackgroundHash(hashlib.new("md5", usedforsecurity=False), pool)
        hash.update(bytes({BATCH}))
        def several():
            pieces = [bytes(bytearray(1 << 20)) for _ in range(5)]
        several()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(20):
            several()
        print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 256)
        """
    assert int(run_python(code).stdout) < 20
