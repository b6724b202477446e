"""Hash objects that threads work for: the same as those of hashlib, in bounded memory, and never stuck."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import signal
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastio.core.hashing import BATCH, JOINED, LIMIT, SMALL, TOTAL, BackgroundHash, NativeBell, Pool
from fastio.patches._hashing import native_threading

# multi-threaded fork is what services do, and what is tested here
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

ALGORITHMS = sorted(hashlib.algorithms_guaranteed)
PIECE = bytes(range(256)) * 256


def new(algorithm: str) -> Any:
    return hashlib.new(algorithm, usedforsecurity=False)


def result(hash: Any) -> str:
    return hash.hexdigest(20) if hash.name.startswith("shake") else hash.hexdigest()


@pytest.fixture
def pool() -> Iterator[Pool]:
    """Native threads of the test's own; at its end none of them may have anything to do."""
    pool = Pool(native_threading)
    yield pool
    until(lambda: not pool._jobs)


def until(condition: Callable[[], Any]) -> None:
    """Let other threads run until ``condition`` holds; what never comes is ended by the hard limit."""
    pause = native_threading().Event()
    while not condition():
        # Not time.sleep(): under eventlet it would make a hub for each native thread that calls it.
        pause.wait(0.001)


class Held:
    """A real hash object; an ``update()`` of much data waits until it is let through, and is written to ``log``."""

    def __init__(self, algorithm: str = "sha512", name: str = "", log: list[str] | None = None) -> None:
        self._hash = hashlib.new(algorithm)
        self._gate = native_threading().Event()
        self._name = name
        self.log = [] if log is None else log

    def update(self, data: Any) -> None:
        if len(data) >= SMALL:
            self.log.append(self._name)
            self._gate.wait()
        self._hash.update(data)

    def let_through(self) -> None:
        self._gate.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hash, name)


def in_thread(function: Callable[[], Any]) -> Any:
    """A started native thread, also where eventlet has patched ``threading``."""
    thread = native_threading().Thread(target=function, daemon=True)
    thread.start()
    return thread


# The same as hashlib


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_results(algorithm: str, pool: Pool) -> None:
    stock, ours = new(algorithm), BackgroundHash(new(algorithm), pool)
    sizes = [0, 1, SMALL - 1, SMALL, JOINED - 1, JOINED, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH + 7]
    for number, size in enumerate([*sizes, *reversed(sizes)]):
        data = bytes([number]) * size
        assert stock.update(data) == ours.update(data)  # type: ignore[func-returns-value]
        if number % 7 == 3:
            assert result(ours) == result(stock)
    assert result(ours) == result(stock)
    if not algorithm.startswith("shake"):
        assert ours.digest() == stock.digest()
    assert pool.batches > 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_it_looks_the_same(algorithm: str, pool: Pool) -> None:
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


def test_a_copy_goes_its_own_way(pool: Pool) -> None:
    ours = BackgroundHash(new("sha512"), pool)
    ours.update(PIECE * 10)
    other = ours.copy()
    other.update(PIECE * 7)
    ours.update(PIECE * 5)
    assert isinstance(other, BackgroundHash)
    assert other.hexdigest() == hashlib.sha512(PIECE * 17).hexdigest()
    assert ours.hexdigest() == hashlib.sha512(PIECE * 15).hexdigest()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="hashlib.file_digest is new in Python 3.11")
def test_file_digest_takes_it(pool: Pool, tmp_path: Any) -> None:
    path = tmp_path / "file"
    path.write_bytes(PIECE * 50)
    with path.open("rb") as file:
        ours = hashlib.file_digest(file, lambda: BackgroundHash(new("sha256"), pool))  # type: ignore[arg-type]
    assert ours.hexdigest() == hashlib.sha256(PIECE * 50).hexdigest()


@pytest.mark.parametrize("wrong", ["text", None, 7, [1], memoryview(bytes(10_000))[::2], object()], ids=repr)
@pytest.mark.parametrize("before", [0, 10 * BATCH], ids=["nothing before", "much before"])
def test_what_is_no_data_is_refused_at_once(wrong: Any, before: int, pool: Pool) -> None:
    ours = BackgroundHash(new("sha512"), pool)
    ours.update(bytes(before))
    with pytest.raises((TypeError, BufferError, ValueError)) as expected:
        new("sha512").update(wrong)
    with pytest.raises(expected.type) as found:
        ours.update(wrong)
    assert str(found.value) == str(expected.value)
    ours.update(b"more")
    assert ours.hexdigest() == hashlib.sha512(bytes(before) + b"more").hexdigest()


@pytest.mark.parametrize("kind", [bytearray, lambda data: memoryview(bytearray(data))], ids=["bytearray", "view"])
def test_what_can_change_is_hashed_as_it_was(kind: Any, pool: Pool) -> None:
    ours, stock = BackgroundHash(new("md5"), pool), new("md5")
    buffer = kind(bytes(2 * BATCH))
    for number in range(20):
        buffer[:3] = bytes([number] * 3)
        stock.update(buffer)
        ours.update(buffer)
        ours.update(PIECE * 5)
        stock.update(PIECE * 5)
        buffer[:3] = b"bad"
    assert ours.hexdigest() == stock.hexdigest()


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
    assert pool.threads == 0


def test_no_more_threads_than_processors(pool: Pool) -> None:
    hashes = [BackgroundHash(new("sha512"), pool) for _ in range(50)]
    for _ in range(3):
        for each in hashes:
            each.update(PIECE * 5)
    assert {each.hexdigest() for each in hashes} == {hashlib.sha512(PIECE * 15).hexdigest()}
    assert 0 < pool.threads <= max(2, len(os.sched_getaffinity(0)))


def test_two_hash_objects_are_worked_on_at_the_same_time(pool: Pool) -> None:
    held = [Held("md5"), Held("sha512")]
    ours = [BackgroundHash(each, pool) for each in held]
    for each in ours:
        each.update(bytes(BATCH))
    until(lambda: all(each.log for each in held))
    for each in held:
        each.let_through()
    for each in ours:
        assert each.hexdigest() == hashlib.new(each.name, bytes(BATCH)).hexdigest()


def test_hash_objects_take_turns(pool: Pool) -> None:
    pool.most_threads = 1
    log: list[str] = []
    held = [Held("sha512", name, log) for name in "abc"]
    ours = [BackgroundHash(each, pool) for each in held]
    for each in ours:
        for _ in range(4):
            each.update(bytes(BATCH))
    for hash in held:
        hash.let_through()
    for each in ours:
        each.hexdigest()
    # The first goes on alone until it is let through, since nobody was there yet when it began.
    assert "".join(log).endswith("abcabcabc")


def test_pieces_are_handed_over_many_at_a_time(pool: Pool) -> None:
    held = Held()
    ours = BackgroundHash(held, pool)
    for _ in range(LIMIT // 4096):
        ours.update(bytes(4096))
    held.let_through()
    assert ours.hexdigest() == hashlib.sha512(bytes(LIMIT)).hexdigest()
    assert len(held.log) == LIMIT // BATCH


def test_where_no_thread_can_be_started(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(native_threading().Thread, "start", start)
    ours = BackgroundHash(new("sha512"), pool)
    for _ in range(100):
        ours.update(PIECE)
    assert ours.hexdigest() == hashlib.sha512(PIECE * 100).hexdigest()
    assert pool.threads == 0


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
def test_what_piles_up_is_bounded(size: int, pool: Pool) -> None:
    held = Held()
    ours = BackgroundHash(held, pool)
    accepted = []

    def produce() -> None:
        for _ in range(3 * LIMIT // size):
            ours.update(bytes(size))
            accepted.append(size)

    producer = in_thread(produce)
    until(lambda: ours._bells)
    assert LIMIT - size < sum(accepted) <= LIMIT
    held.let_through()
    producer.join()
    assert ours.hexdigest() == hashlib.sha512(bytes(3 * LIMIT // size * size)).hexdigest()


def test_a_piece_that_is_larger_than_the_bound_waits_for_the_one_before(pool: Pool) -> None:
    held = Held()
    ours = BackgroundHash(held, pool)
    data = bytes(LIMIT + 1)
    ours.update(data)
    producer = in_thread(lambda: ours.update(data))
    until(lambda: ours._bells)
    assert ours._outstanding == len(data)
    held.let_through()
    producer.join()
    assert ours.hexdigest() == hashlib.sha512(data + data).hexdigest()


def test_many_share_the_bound(pool: Pool) -> None:
    held = [Held() for _ in range(64)]
    ours = [BackgroundHash(each, pool) for each in held]
    assert pool.limit() == LIMIT
    for each in ours:
        each.update(bytes(BATCH))
    assert pool.limit() == TOTAL // 64
    for hash in held:
        hash.let_through()
    for each in ours:
        each.hexdigest()
    assert pool.limit() == LIMIT


def test_nothing_is_kept(pool: Pool) -> None:
    data = bytes(2 * BATCH)
    references = sys.getrefcount(data)
    for left_alone in (False, True):
        held = Held()
        ours = BackgroundHash(held, pool)
        for _ in range(5):
            ours.update(data)
        # The thread may have it in its hands already, and then has some of its own.
        assert sys.getrefcount(data) >= references + 5
        held.let_through()
        if left_alone:
            # An upload that was given up: what had been handed over is hashed, and forgotten.
            del ours
        else:
            ours.hexdigest()
            del ours
        reference = weakref.ref(held)
        del held
        # Not even the hash object stays with the thread that worked on it last.
        until(lambda reference=reference: reference() is None)  # type: ignore[misc]
        assert sys.getrefcount(data) == references


def test_who_waited_is_told_when_the_memory_is_free(pool: Pool) -> None:
    data = bytes(LIMIT)
    references = sys.getrefcount(data)
    noted = []

    class Noting(NativeBell):
        def ring(self) -> None:
            noted.append(sys.getrefcount(data))
            super().ring()

    pool.new_bell = lambda: Noting(native_threading().Lock())
    held = Held()
    ours = BackgroundHash(held, pool)
    ours.update(data)
    reader = in_thread(ours.hexdigest)
    until(lambda: ours._bells)
    held.let_through()
    reader.join()
    assert noted == [references]


# What goes wrong


class Failing(Held):
    """Runs out of memory with the first large piece."""

    def update(self, data: Any) -> None:
        if len(data) >= SMALL:
            raise MemoryError("no memory for OpenSSL")
        super().update(data)


@pytest.mark.parametrize("call", ["hexdigest", "digest", "copy", "update"])
def test_a_failure_in_the_thread_is_raised_to_the_next_caller(call: str, pool: Pool) -> None:
    ours = BackgroundHash(Failing(), pool)
    ours.update(PIECE * 5)
    until(lambda: not pool._jobs)
    for _ in range(2):
        with pytest.raises(MemoryError, match="no memory for OpenSSL"):
            getattr(ours, call)(*([PIECE] if call == "update" else []))
    # The thread goes on.
    other = BackgroundHash(new("md5"), pool)
    other.update(PIECE * 5)
    assert other.hexdigest() == hashlib.md5(PIECE * 5).hexdigest()


@pytest.mark.parametrize("call", ["update", "hexdigest"])
def test_an_interrupted_wait_leaves_nothing(call: str, pool: Pool, request: pytest.FixtureRequest) -> None:
    # What a shell starts in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    held = Held()
    ours = BackgroundHash(held, pool)
    pieces = LIMIT // len(PIECE)
    for _ in range(pieces):
        ours.update(PIECE)

    def interrupt() -> None:
        until(lambda: ours._bells)
        os.kill(os.getpid(), signal.SIGINT)

    in_thread(interrupt)
    with pytest.raises(KeyboardInterrupt):
        getattr(ours, call)(*([PIECE] if call == "update" else []))
    assert not ours._bells
    held.let_through()
    assert ours.hexdigest() == hashlib.sha512(PIECE * pieces).hexdigest()


# Fork and exit


def in_a_fork(function: Callable[[], bool]) -> int:
    """The exit status of ``function`` in a forked child: 0 if it returns True; the kernel ends a child that hangs."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            status = 0 if function() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_has_threads_of_its_own(pool: Pool) -> None:
    def go() -> bool:
        before = pool.threads
        ours = BackgroundHash(new("sha512"), pool)
        for _ in range(100):
            ours.update(PIECE)
        return before == 0 < pool.threads and ours.hexdigest() == hashlib.sha512(PIECE * 100).hexdigest()

    for _ in range(3):
        ours = BackgroundHash(new("sha512"), pool)
        ours.update(PIECE * 10)
        assert in_a_fork(go) == 0
        assert ours.hexdigest() == hashlib.sha512(PIECE * 10).hexdigest()
    assert in_a_fork(lambda: go() and in_a_fork(go) == 0) == 0


def test_a_hash_begun_before_the_fork_goes_on_in_both(pool: Pool) -> None:
    for _ in range(10):
        ours = [BackgroundHash(new(name), pool) for name in ("md5", "sha512")]
        for each in ours:
            for _ in range(40):
                each.update(PIECE)

        def go(hashes: list[BackgroundHash] = ours) -> bool:
            for each in hashes:
                each.update(PIECE * 20)
            return all(each.hexdigest() == hashlib.new(each.name, PIECE * 60).hexdigest() for each in hashes)

        assert in_a_fork(go) == 0
        assert go()


def test_forks_while_other_threads_hash(pool: Pool) -> None:
    stop = native_threading().Event()
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
        return pool.threads > 0 and ours.hexdigest() == hashlib.sha512(PIECE * 30).hexdigest()

    threads = [in_thread(busy) for _ in range(3)]
    try:
        statuses = [in_a_fork(go) for _ in range(10)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert statuses == [0] * 10
    assert not wrong
    assert pool.threads > 0


EXIT = """
import atexit, hashlib, threading
from fastio.core import hashing
pool = hashing.Pool(lambda: threading)
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
