"""The content of an answer that is read ahead in parts: its bytes, its errors, and who is asked for how much."""

import gc
import random
import signal
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastio.concurrency import handover, native
from fastio.counters import Tally
from fastio.io import ahead
from tests.child import data
from tests.conftest import MONKEY_PATCHED
from tests.eventually import until as eventually

#: Bytes of a part, of a piece, and of what is watched.
PART, PIECE, WATCHED = 32, 8, 4


class Service:
    """An object, whose answers take the time of a clock that nothing else moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, total: int, seconds: float = 1.0, busy: float = 0.0) -> None:
        self.content, self.seconds, self.busy = data(total, total), seconds, busy
        #: number of a part -> bytes after which it ends or fails, and the exception
        self.fate: dict[int, tuple[int, Exception | None]] = {}
        #: byte at which the first answer fails
        self.breaks: int | None = None
        self.asked: list[int] = []
        self.closed, self.first_closed = 0, 0
        self._now = 0.0
        clock = types.SimpleNamespace(monotonic=lambda: self._now, process_time=lambda: self.busy * self._now)
        monkeypatch.setattr(ahead, "time", clock)
        for name, value in {"PART": PART, "PIECE": PIECE, "WATCHED": WATCHED, "FAST": 1000}.items():
            monkeypatch.setattr(ahead, name, value)

    def open(self) -> ahead.Ahead:
        position = 0

        def read(size: int | None) -> bytes:
            nonlocal position
            self._now += self.seconds
            end = len(self.content) if size is None else position + size
            if self.breaks is not None and min(end, len(self.content)) > self.breaks:
                raise ConnectionResetError(self.breaks)
            found = self.content[position:end]
            position += len(found)
            return found

        def close() -> None:
            self.first_closed += 1

        return ahead.Ahead(read, close, len(self.content), self.ask, Tally("test"))

    def ask(self, first: int, end: int) -> tuple[ahead.Read, Callable[[], Any]]:
        self.asked.append(first)
        stops, error = self.fate.get(first // PART, (PART, None))
        if stops < 0:
            raise ValueError("another object")
        position = first

        def read(size: int) -> bytes:
            nonlocal position
            until = min(position + size, end, first + stops)
            if until == position and error is not None:
                raise error
            found = self.content[position:until]
            position = until
            return found

        def close() -> None:
            self.closed += 1

        return read, close


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Service]:
    return lambda *args, **kwargs: Service(monkeypatch, *args, **kwargs)


def drained(content: ahead.Ahead, sizes: Callable[[], int]) -> bytes:
    found = []
    while piece := content.read(sizes()):
        found.append(piece)
    return b"".join(found)


def idle() -> None:
    eventually(lambda: not ahead._under_way)


@given(
    st.integers(0, 600),
    st.randoms(use_true_random=False),
    st.dictionaries(st.integers(0, 18), st.tuples(st.integers(-1, PART), st.sampled_from([None, OSError("part")]))),
    st.none() | st.integers(0, 600),
)
def test_the_bytes_and_the_errors_are_those_of_one_answer(
    total: int, sizes: random.Random, fates: dict[int, tuple[int, Exception | None]], breaks: int | None
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        service = Service(monkeypatch, total)
        service.breaks, service.fate = breaks, fates
        content = service.open()
        found = []
        try:
            while piece := content.read(sizes.randint(1, 3 * PIECE)):
                found.append(piece)
        except ConnectionResetError:
            assert breaks is not None and breaks < total
        else:
            assert b"".join(found) == service.content
            assert content.read(1) == b""
        assert service.content.startswith(b"".join(found))
        idle()
        assert service.closed <= len(service.asked)


@pytest.mark.parametrize("keeps_up", [True, False])
def test_parts_of_a_slow_connection(
    service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch, keeps_up: bool
) -> None:
    far = service(20 * PART)
    content, parts = far.open(), []
    take = handover.Handover.take

    def waited(self: handover.Handover) -> Any:
        far._now += keeps_up
        parts.append(len(content._parts))
        return take(self)

    monkeypatch.setattr(handover.Handover, "take", waited)

    def sizes() -> int:
        far._now += 0 if keeps_up else 0.5
        return PIECE

    assert drained(content, sizes) == far.content
    # All of the rest, each once, and in order but for those that are asked for at the same moment.
    assert sorted(far.asked) == list(range(PIECE, 20 * PART, PART))
    assert (parts[0], max(parts)) == (2, ahead.MOST if keeps_up else 2)
    idle()
    assert far.first_closed == 1 and far.closed == len(far.asked)


@pytest.mark.parametrize(
    ("total", "seconds", "busy"),
    [(20 * PART, 0.001, 0.0), (20 * PART, 1.0, 0.6), (2 * PART, 1.0, 0.0)],
    ids=["fast", "busy", "small"],
)
def test_one_connection_where_more_do_not_help(
    service: Callable[..., Service], total: int, seconds: float, busy: float
) -> None:
    far = service(total, seconds, busy)
    assert drained(far.open(), lambda: PIECE) == far.content
    assert not far.asked and not far.first_closed


def test_a_slow_reader_has_one_connection(service: Callable[..., Service]) -> None:
    far = service(20 * PART)
    content = far.open()

    def sizes() -> int:
        far._now += 3
        return PIECE

    assert drained(content, sizes) == far.content
    assert not far.asked


@pytest.mark.parametrize("how", ["close", "forget"])
def test_an_end_in_the_middle_ends_all_parts(service: Callable[..., Service], how: str) -> None:
    far = service(20 * PART)
    content = far.open()
    content.read(PIECE)
    content.read(PIECE)
    if how == "close":
        content.close()
        assert far.first_closed == 1
    del content
    gc.collect()
    idle()
    assert far.closed == len(far.asked) <= ahead.MOST


def test_the_parts_of_a_process_are_bounded(service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> None:
    far = service(20 * PART)
    stopped = threading.Event()
    ask = far.ask

    def wait(first: int, end: int) -> Any:
        stopped.wait(60)
        return ask(first, end)

    monkeypatch.setattr(far, "ask", wait)
    readers = []
    for _ in range(20):
        readers.append(far.open())
        readers[-1].read(PIECE)
    # Each has one, and what is left of the bound goes to the first ones.
    assert [len(each._parts) for each in readers] == [2] * 4 + [1] * 16
    assert len(ahead._under_way) <= ahead.MOST_OF_ALL + len(readers)
    stopped.set()
    assert all(drained(each, lambda: PIECE) == far.content[PIECE:] for each in readers)


def test_its_threads_take_no_signals() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    masks = handover.Handover()
    handover.start(lambda: masks.give(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
    assert masks.take() == (before if MONKEY_PATCHED else before | native.SIGNALS - {signal.SIGKILL, signal.SIGSTOP})
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_no_more_threads(service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*args: Any) -> None:
        raise RuntimeError("can't start new thread")

    far = service(20 * PART)
    monkeypatch.setattr(ahead.handover, "start", start)
    assert drained(far.open(), lambda: PIECE) == far.content
    assert not ahead._under_way and not far.asked


def test_a_piece_that_an_exception_took_comes_again(service: Callable[..., Service]) -> None:
    far = service(20 * PART)
    content = far.open()
    content.read(PIECE)
    # As a signal handler's, before the piece has been given to the reader.
    content._parts[0].pieces.take()
    assert far.content[:PIECE] + drained(content, lambda: PIECE) == far.content


@pytest.mark.parametrize("number", [0, 1, 2, 9])
def test_a_read_that_a_timeout_ends_is_made_again(
    service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    far = service(20 * PART)
    content, take, calls = far.open(), handover.Handover.take, 0

    def ended(self: handover.Handover) -> Any:
        nonlocal calls
        calls += 1
        if calls == number + 1:
            raise TimeoutError
        return take(self)

    monkeypatch.setattr(handover.Handover, "take", ended)
    found = b""
    with pytest.raises(TimeoutError):
        while piece := content.read(3 * PIECE):
            found += piece
    assert found + drained(content, lambda: 3 * PIECE) == far.content


def test_all_at_once(service: Callable[..., Service]) -> None:
    far = service(20 * PART)
    content = far.open()
    assert content.read(PIECE) + content.read() == far.content
    assert content.read(None) == b"" == content.read(5)
