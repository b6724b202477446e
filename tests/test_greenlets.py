"""Many greenlets at once, each with its own bytes."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from fastio import counters
from fastio.concurrency import budget
from tests.child import PIPES, Gate, command, data, err, out
from tests.outcome import timed_out, until

eventlet = pytest.importorskip("eventlet")

pytestmark = pytest.mark.fast_path("bytes_in", "waits")

GREENLETS = 60


def listeners() -> set[int]:
    hub = eventlet.hubs.get_hub()
    return {id(listener) for listener in (*hub.get_readers(), *hub.get_writers())}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No test leaves a listener in the hub; eventlet's pool of threads has one there, once it was used."""
    usual = listeners()
    yield
    assert listeners() <= usual
    assert budget.shared.active() == 0


def test_many_with_separate_payloads(patched: Any, green: Any) -> None:
    sizes = random.Random(1)
    plans = [(number, sizes.choice([0, 1, 1000, 65537, 300_000])) for number in range(GREENLETS)]

    def go(plan: tuple[int, int]) -> bool:
        number, size = plan
        popen = green.Popen(command("echo", err(number + 1000, 2000)), **PIPES)
        return popen.communicate(data(number, size)) == (data(number, size), data(number + 1000, 2000))

    assert list(eventlet.GreenPool(GREENLETS).imap(go, plans)) == [True] * GREENLETS
    assert counters.exchanges == GREENLETS


def test_a_slow_one_does_not_hold_up_the_others(patched: Any, green: Any) -> None:
    ended: list[Any] = []
    slow = green.Popen(command("in:-1", out(1, 100)), **PIPES)

    def go(number: int) -> None:
        popen = green.Popen(command(out(number, 300_000)), stdout=-1, stderr=-1)
        assert popen.communicate()[0] == data(number, 300_000)
        ended.append(number)

    # The slow child ends when its input does, and that is when all others have ended.
    waiter = eventlet.spawn(slow.stdout.read)
    pool = eventlet.GreenPool()
    for number in range(20):
        pool.spawn_n(go, number)
    pool.waitall()
    assert not waiter.dead and sorted(ended) == list(range(20))
    slow.stdin.close()
    assert waiter.wait() == data(1, 100)
    slow.wait()


def test_one_that_is_killed_does_not_disturb_the_others(patched: Any, green: Any) -> None:
    def go(number: int) -> Any:
        popen = green.Popen(command("echo"), **PIPES)
        try:
            return popen.communicate(data(number, 2_000_000))[0] == data(number, 2_000_000)
        finally:
            if popen.poll() is None:
                popen.kill()
                popen.wait()

    greenlets = [eventlet.spawn(go, number) for number in range(30)]
    for _ in range(3):
        eventlet.sleep(0)
    for greenlet in greenlets[::3]:
        greenlet.kill()
    survivors = [greenlet for number, greenlet in enumerate(greenlets) if number % 3]
    assert [greenlet.wait() for greenlet in survivors] == [True] * 20


def test_timeouts_among_many(patched: Any, green: Any) -> None:
    def echoed(number: int) -> Any:
        popen = green.Popen(command("echo"), **PIPES)
        return popen.communicate(data(number, 200_000), timeout=60)[0]

    def times_out(number: int) -> Any:
        with Gate() as gate:
            steps = [out(number, 1000), "close:1", gate.tell, gate.wait]
            popen = green.Popen(command(*steps), pass_fds=gate.fds, **PIPES)
            # Its output is in the pipe before the time begins.
            gate.reached(lambda: eventlet.sleep(0.01))
            errors = [timed_out(green, popen, 0.5, data(number, 200_000))]
            # The others may take so long to start their children that it has not been read in that time.
            until(lambda: errors[-1].output, lambda: errors.append(timed_out(green, popen, 0.5)))
            popen.kill()
            popen.communicate()
            return errors[-1].output

    def go(number: int) -> Any:
        return echoed(number) if number % 2 else times_out(number)

    results = list(eventlet.GreenPool(20).imap(go, range(20)))
    assert results == [data(number, 200_000 if number % 2 else 1000) for number in range(20)]
