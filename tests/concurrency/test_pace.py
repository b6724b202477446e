"""The pace: shares of one budget, and when others run."""

import os
import subprocess
import time
from collections.abc import Callable

import pytest

from fastio import counters
from fastio.concurrency import budget, native
from fastio.concurrency.pace import Pace
from tests.conftest import needs_eventlet

KIB = 1 << 10


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """``[time]`` of the budget's clock, in seconds; no other transfer is active."""
    time = [1000.0]
    monkeypatch.setattr(budget, "shared", budget.Budget(lambda: time[0]))
    monkeypatch.setenv("FASTIO_YIELD_BYTES", "1MiB")
    return time


def test_shares_of_those_who_move_bytes(now: list[float]) -> None:
    one, other = Pace(64 * KIB), Pace(64 * KIB)
    one.renew()
    assert one.left == 1024 * KIB
    with other:
        other.renew()
        assert other.left == 1024 * KIB
        # It has not entered, and counts itself besides.
        one.renew()
        assert one.left == 512 * KIB
        with one:
            other.renew()
            assert other.left == 512 * KIB
    other.renew()
    assert other.left == 1024 * KIB
    assert budget.shared.active() == 0


def test_a_transfer_of_many_turns_stays_active(now: list[float]) -> None:
    with Pace() as pace:
        for _ in range(10):
            now[0] += budget.PERIOD
            pace.renew()
            assert budget.shared.active() == 1
        # It waits for its peer, and says nothing.
        now[0] += 3 * budget.PERIOD
        assert budget.shared.active() == 0


def test_no_share_is_below_its_floor(now: list[float]) -> None:
    others = [Pace().enter() for _ in range(100)]
    for floor in (64 * KIB, 256 * KIB):
        pace = Pace(floor)
        pace.renew()
        assert pace.left == floor
    for each in others:
        each.leave()
    assert budget.shared.active() == 0


@needs_eventlet
@pytest.mark.parametrize("fixed", [None, 10])
def test_others_run_between_shares(fixed: int | None) -> None:
    import eventlet

    turns: list[int] = []

    def other() -> None:
        while True:
            turns.append(1)
            eventlet.sleep(0)

    def move() -> list[int]:
        pace, seen = Pace(fixed=fixed), []
        for _ in range(3):
            pace.yield_when_due()
            seen.append(len(turns))
            pace.moved(pace.left)
        return seen

    before = counters.yields
    running = eventlet.spawn(other)
    # The first share comes without a turn of others; a fixed one always does.
    assert eventlet.spawn(move).wait() == ([1, 2, 3] if fixed is None else [1, 1, 1])
    assert counters.yields - before == (2 if fixed is None else 0)
    running.kill()


@needs_eventlet
def test_a_transfer_stopped_while_others_run_has_no_share() -> None:
    import eventlet

    pace = Pace()
    pace.renew()
    pace.moved(pace.left)
    yielding = eventlet.spawn(pace.yield_when_due)
    eventlet.spawn(yielding.kill)
    eventlet.sleep(0)
    eventlet.sleep(0)
    assert yielding.dead and pace.left <= 0
    assert budget.shared.active() == 0


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """``turn()``: whether a lone transfer that has used up its share lets others run; however long ago it last did."""
    import eventlet

    monkeypatch.setattr("fastio.concurrency.pace.LONGEST", 1000.0)
    # There is a hub, and nothing left of what ran before.
    eventlet.sleep(0)
    one = Pace()
    one.renew()
    one._ran = time.monotonic()
    return one.yield_to_hub


@needs_eventlet
def test_no_yield_while_nothing_waits(turn: Callable[[], bool]) -> None:
    import eventlet
    from eventlet.hubs import get_hub

    # Only much later.
    timer = get_hub().schedule_call_global(1000, print)
    read, write = os.pipe()
    listener = get_hub().add(get_hub().READ, read, print, print, print)
    eventlet.sleep(0)
    yields = counters.yields
    assert not turn()
    assert counters.yields == yields
    timer.cancel()
    get_hub().remove(listener)
    os.close(read)
    os.close(write)


@needs_eventlet
@pytest.mark.parametrize("seconds", [0, 0.001])
def test_yields_when_a_timer_is_due(turn: Callable[[], bool], seconds: float) -> None:
    from eventlet import hubs

    found: list[str] = []
    hubs.get_hub().schedule_call_global(0, found.append, "new")
    assert turn() and found == ["new"]
    hubs.get_hub().schedule_call_global(seconds, found.append, "due")
    # The hub has it among its timers now.
    turn()
    native.module("time").sleep(2 * seconds)
    turn()
    assert found == ["new", "due"]


@needs_eventlet
def test_yields_when_a_descriptor_is_ready(turn: Callable[[], bool]) -> None:
    import eventlet
    from eventlet import hubs

    read, write = os.pipe()
    waiting = eventlet.spawn(hubs.trampoline, read, read=True)
    eventlet.sleep(0)
    assert not turn()
    os.write(write, b"x")
    assert turn()
    waiting.wait()
    os.close(read)
    os.close(write)


@needs_eventlet
def test_sooner_or_later_others_run_in_any_case(turn: Callable[[], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown work of a hub is not put off for long."""
    assert not turn()
    monkeypatch.setattr("fastio.concurrency.pace.LONGEST", 0)
    assert turn()


@needs_eventlet
@pytest.mark.parametrize("hub", ["epolls", "poll", "selects", "asyncio"])
def test_each_hub(hub: str, run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """Those that do not tell what is ready are taken for busy."""
    done = run_python(EACH_HUB, hub)
    assert done.stdout == {"epolls": "True False\n", "poll": "True False\n"}.get(hub, "False False\n")


EACH_HUB = """
import sys
import eventlet
from eventlet import hubs
hubs.use_hub(sys.argv[1])
eventlet.sleep(0)
from fastio.concurrency import current
idle = current.is_idle(hubs.get_hub())
eventlet.spawn(print)
print(idle, current.is_idle(hubs.get_hub()))
"""
