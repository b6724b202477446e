"""``green_communicate``: what only the hub makes different."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from fastio import counters
from fastio.concurrency.budget import Budget
from tests.child import BIG, MIB, OUTPUTS, PIPES, Gate, command, data, dump, err, out
from tests.descriptors import recycled
from tests.outcome import as_upstream, outcome
from tests.patches.conftest import timers
from tests.stores.images import Ticker, TimeIsOver
from tests.targets import SENDS_REST

eventlet = pytest.importorskip("eventlet")
greenlet = pytest.importorskip("greenlet")

pytestmark = pytest.mark.fast_path("exchanges")


class Switches:
    """Counts the switches into the hub, as greenlet itself sees them."""

    def __init__(self, hub: Any) -> None:
        self._hub = hub
        self.count = 0

    def _trace(self, event: str, args: Any) -> None:
        if event == "switch" and args[1] is self._hub.greenlet:
            self.count += 1

    def __enter__(self) -> Switches:
        self._before = greenlet.settrace(self._trace)
        return self

    def __exit__(self, *exc_info: object) -> None:
        greenlet.settrace(self._before)


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    path = tmp_path_factory.mktemp("data") / "64MiB"
    path.write_bytes(os.urandom(64 * MIB))
    yield path
    path.unlink()


def test_hub_waits_and_reads_per_mib(patched: Any, hub: Any, green: ModuleType, large_file: pathlib.Path) -> None:
    with Switches(hub) as switches:
        stdout, _ = green.Popen(dump(large_file), **PIPES).communicate()
    assert stdout == large_file.read_bytes()
    assert switches.count / 64 <= 4
    assert counters.waits / 64 <= 4
    assert counters.reads / 64 <= 4


def test_hub_waits_and_writes_per_mib_of_input(
    patched: Any, hub: Any, green: ModuleType, large_file: pathlib.Path
) -> None:
    payload = large_file.read_bytes()
    with Switches(hub) as switches:
        stdout, _ = green.Popen(command("digest"), **PIPES).communicate(payload)
    assert stdout.split()[0] == str(64 * MIB).encode()
    # Stock needs 4,096: for every 512 bytes one in select, and one in os.write. The least is the reader's business.
    assert switches.count / 64 <= 64


@pytest.mark.no_fast_path(reason="it is stock that is counted")
def test_stock_waits_for_each_small_read(hub: Any, green: ModuleType, large_file: pathlib.Path) -> None:
    with Switches(hub) as switches:
        stdout, _ = green.Popen(["head", "-c", str(8 * MIB), str(large_file)], **PIPES).communicate()
    assert len(stdout) == 8 * MIB
    assert switches.count / 8 >= 32, "upstream needs few waits now; the patch has little to do"


@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_the_hub_lives_during_a_transfer(patched: Any, hub: Any, green: ModuleType, direction: str) -> None:
    """Another greenlet gets its turn at least once for every ``yield_bytes`` that a descriptor moves."""
    size = 32 * MIB
    steps = {"out": [out(1, size)], "in": ["in:-1"], "both": ["echo"]}[direction]
    with Ticker() as ticker:
        stdout, _ = green.Popen(command(*steps), **PIPES).communicate(data(2, size) if direction != "out" else None)
    assert len(stdout) == (0 if direction == "in" else size)
    assert ticker.ticks >= max(counters.bytes_in, counters.bytes_out) // MIB - 1


def test_many_transfers_share_one_turn(patched: Any, hub: Any, green: ModuleType, standing_budget: Budget) -> None:
    """Between two turns of another greenlet, all transfers together move about ``yield_bytes``."""
    with Ticker(lambda: counters.bytes_in) as others:
        results = list(
            eventlet.GreenPool().imap(
                lambda n: green.Popen(command(out(n, 8 * MIB, MIB)), **OUTPUTS).communicate()[0], range(16)
            )
        )
    assert results == [data(n, 8 * MIB) for n in range(16)]
    # In one turn they may all begin, or end: each then has its share of those that are active at that moment.
    assert others.most <= sum(MIB // active for active in range(1, 17))


@pytest.mark.parametrize("fastio_settings", [{"yield_bytes": "64KiB"}], ids=str)
def test_a_turn_has_a_share_for_each_pipe(patched: Any, hub: Any, green: ModuleType) -> None:
    """Concurrent input and output: between two turns of another greenlet each moves a share at most."""
    payload = data(1, 8 * MIB)
    with Ticker(lambda: counters.bytes_in + counters.bytes_out) as others:
        stdout, _ = green.Popen(command("echo"), **PIPES).communicate(payload)
    assert stdout == payload
    assert others.most <= 2 * 64 * 1024


def in_transfer(green: ModuleType, gate: Gate, **options: Any) -> tuple[Any, Any]:
    """A greenlet that waits in communicate() for a child that has written and read something."""
    steps = ["in:100000", out(1, 100_000), err(2, 10), gate.tell, gate.wait, "in:-1", out(3, 10)]
    popen = green.Popen(command(*steps), pass_fds=gate.fds, **PIPES)
    waiter = eventlet.spawn(popen.communicate, data(4, BIG), **options)
    gate.reached(eventlet.sleep)
    for _ in range(5):
        eventlet.sleep(0)
    assert not waiter.dead
    return popen, waiter


@pytest.mark.parametrize("timeout", [None, 100])
@pytest.mark.parametrize("how", ["kill", "throw", "Timeout"])
def test_an_exception_thrown_into_the_transfer(
    patched: Any, hub: Any, green: ModuleType, gate: Gate, standing_budget: Budget, how: str, timeout: float | None
) -> None:
    popen, waiter = in_transfer(green, gate, timeout=timeout)
    assert standing_budget.active() == 1 and list(hub.get_readers())
    if how == "kill":
        waiter.kill()
        with pytest.raises(greenlet.GreenletExit):
            raise waiter.wait()
    elif how == "throw":
        eventlet.spawn(waiter.throw, TimeIsOver)
        with pytest.raises(TimeIsOver):
            waiter.wait()
    else:
        # None: a Timeout with seconds would start its clock here and end some later test.
        waiter.kill(eventlet.Timeout(None))
        with pytest.raises(eventlet.Timeout):
            waiter.wait()
    assert not list(hub.get_readers()) and not list(hub.get_writers())
    assert standing_budget.active() == 0
    # Nothing that came is lost, and the next call goes on.
    assert b"".join(popen._fileobj2output[popen.stdout]) == data(1, 100_000)
    # CPython 3.15 forgets what was sent.
    assert popen._input_offset == 0 if sys.version_info >= (3, 15) else 100_000 <= popen._input_offset < BIG
    if not SENDS_REST:
        # The child would wait for the rest of its input.
        popen.stdin.close()
    gate.open()
    assert popen.communicate() == (data(1, 100_000) + data(3, 10), data(2, 10))
    assert popen._input_offset == BIG or not SENDS_REST


def test_no_timer_is_left(patched: Any, hub: Any, green: ModuleType) -> None:
    before = timers(hub)
    assert green.Popen(command("echo"), **PIPES).communicate(data(1, BIG), timeout=1000) == (data(1, BIG), b"")
    assert counters.waits > 1
    assert timers(hub) <= before


def test_two_greenlets_on_one_child(hub: Any, green: ModuleType) -> None:
    """The second call is refused, and what the first reads from then on is for the third."""

    def go() -> Any:
        with Gate() as gate:
            steps = [out(1, 100), gate.tell, gate.wait, out(2, 10)]
            popen = green.Popen(command(*steps), pass_fds=gate.fds, **OUTPUTS)
            first = eventlet.spawn(popen.communicate)
            gate.reached(eventlet.sleep)
            eventlet.sleep(0.01)
            with pytest.raises(RuntimeError, match="Second simultaneous read"):
                popen.communicate()
            gate.open()
            return first.wait(), popen.communicate()

    assert as_upstream(go) == ((data(1, 100), b""), (data(2, 10), b""))


def test_a_call_without_time_does_not_ask_the_hub(hub: Any, green: ModuleType, gate: Gate) -> None:
    """Not where another greenlet reads, and not in the hub itself."""
    popen = green.Popen(command(gate.wait), pass_fds=gate.fds, **OUTPUTS)
    reader = eventlet.spawn(popen.stdout.read)
    eventlet.sleep(0)

    def go() -> Any:
        errors = eventlet.event.Event()
        hub.schedule_call_global(0, lambda: errors.send(outcome(lambda: popen.communicate(timeout=0))))
        return [each[0].__name__ for each in (outcome(lambda: popen.communicate(timeout=0)), errors.wait())]

    assert as_upstream(go) == ["TimeoutExpired", "TimeoutExpired"]
    gate.open()
    assert reader.wait() == b""
    popen.communicate()


def test_a_descriptor_that_is_recycled_under_the_transfer(hub: Any, green: ModuleType, gate: Gate) -> None:
    """The hub wakes the waiting greenlet; the bytes of the other file are not taken for the child's."""

    def go() -> Any:
        popen = green.Popen(command(out(1, 100), gate.tell, gate.wait), pass_fds=gate.fds, **OUTPUTS)
        raw = popen.stdout
        fd = raw.fileno()
        waiter = eventlet.spawn(outcome, popen.communicate)
        gate.reached(eventlet.sleep)
        eventlet.sleep(0.01)
        os.close(fd)
        reader, writer = recycled(fd)
        os.write(writer, b"secret")
        eventlet.sleep(0.01)  # the hub reports it at the start of its next turn, which could be a minute away
        result = waiter.wait()
        gate.open()
        for fd in (reader, writer):
            os.close(fd)
        raw._mark_as_closed()
        popen.stderr.close()
        popen.wait()
        return result

    assert as_upstream(go, counts={"exchanges": 1})[0] is eventlet.hubs.IOClosed


def test_not_in_the_hub_itself(hub: Any, green: ModuleType) -> None:
    def go() -> Any:
        popen = green.Popen(command(out(1, 10)), **OUTPUTS)
        errors = eventlet.event.Event()

        def in_the_hub() -> None:
            errors.send(outcome(popen.communicate))

        hub.schedule_call_global(0, in_the_hub)
        return errors.wait(), popen.communicate()

    assert "mainloop" in as_upstream(go, strict=True)[0][1]


def test_other_hubs(in_hub: Any) -> None:
    code = """
    import fastio, subprocess
    from fastio import counters
    from tests.child import Gate, command, data, err, out
    fastio.patch(strict=True)
    # Older eventlet raises the one of its native copy.
    timed_out = subprocess.TimeoutExpired, eventlet.patcher.original("subprocess").TimeoutExpired

    def go(number):
        with Gate() as gate:
            popen = subprocess.Popen(
                command("in:2000000", out(number, 2000000), err(9, 1000), gate.wait, "echo"),
                stdin=-1, stdout=-1, stderr=-1, pass_fds=gate.fds)
            try:
                popen.communicate(data(5, 3000000), timeout=0.3)
            except timed_out:
                # Not all releases send the rest of the input.
                popen.stdin.close()
                sent = popen._input_offset
                gate.open()
                stdout, stderr = popen.communicate()
                return stdout == data(number, 2000000) + data(5, 3000000)[2000000:sent], stderr == data(9, 1000)

    print(*eventlet.GreenPool().imap(go, range(4)), counters.exchanges)
    """
    assert in_hub(code) == "(True, True) " * 4 + "8"


CLOSED = """
    import subprocess
    import fastio
    from tests.child import Gate, command

    def closed_while_it_waits(stream, step):
        with Gate() as gate:
            popen = subprocess.Popen(command(gate.wait, step), stdin=-1, stdout=-1, pass_fds=gate.fds)
            waiter = eventlet.spawn(popen.communicate, bytes(1 << 24))
            # Until the pipe is full, and all that is left is to wait.
            offsets = [-1]
            while offsets[0] != offsets[-1] or len(offsets) < 20:
                eventlet.sleep(0)
                offsets = [*offsets[-19:], getattr(popen, "_input_offset", -1)]
            getattr(popen, stream).close()
            gate.open()
            try:
                with eventlet.Timeout(60):
                    return waiter.wait()
            except BaseException as error:
                return type(error).__name__, *error.args[:1]

    for stream, step in (("stdin", "out:2:2:78"), ("stdout", "in:-1")):
        stock = closed_while_it_waits(stream, step)
        # Upstream leaves one.
        hub = eventlet.hubs.get_hub()
        hub.listeners[hub.WRITE].clear()
        with fastio.patched("green_communicate", strict=True):
            patched = closed_while_it_waits(stream, step)
        print(stock == patched and "Timeout" not in stock or (stock, patched))
"""


def test_a_stream_that_another_closes_has_upstreams_error(in_hub: Any) -> None:
    """In each hub; in epoll's it is one of the guarantees."""
    assert in_hub(CLOSED) == "True\nTrue"


def test_in_a_native_thread_with_a_separate_hub(patched: Any, hub: Any, green: ModuleType) -> None:
    def go() -> Any:
        return green.Popen(command("echo"), **PIPES).communicate(data(1, BIG))

    from eventlet import tpool

    assert tpool.execute(go) == (data(1, BIG), b"")
    tpool.killall()
