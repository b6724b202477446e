"""``green_wait``: waiting in the hub."""

import errno
import os
import time
from typing import Any

import pytest

from tests.child import Gate, command
from tests.descriptors import descriptors, forgotten
from tests.patches.conftest import timers
from tests.stores.images import TimeIsOver

eventlet = pytest.importorskip("eventlet")

pytestmark = pytest.mark.no_fast_path(reason="waiting moves no bytes")

NEVER = 100


@pytest.mark.parametrize("timeout", [None, NEVER])
def test_other_greenlets_run_meanwhile(patched: Any, hub: Any, green: Any, gate: Gate, timeout: Any) -> None:
    popen = green.Popen(command(gate.wait, "exit:3"), pass_fds=gate.fds)
    waiter = eventlet.spawn(popen.wait, timeout)
    for _ in range(50):
        eventlet.sleep(0)
    assert not waiter.dead
    gate.open()
    assert waiter.wait() == 3


def test_many_children_end_in_their_own_order(patched: Any, hub: Any, green: Any) -> None:
    gates = [Gate() for _ in range(20)]
    children = [green.Popen(command(gate.wait, f"exit:{n}"), pass_fds=gate.fds) for n, gate in enumerate(gates)]
    ended: list[int] = []
    waiters = [eventlet.spawn(lambda child=child: ended.append(child.wait())) for child in children]
    for number in range(19, -1, -1):
        gates[number].open()
        waiters[number].wait()
    assert ended == list(range(19, -1, -1))
    for gate in gates:
        gate.close()


def test_the_check_interval_is_accepted(patched: Any, hub: Any, green: Any, gate: Gate) -> None:
    assert green.Popen(command("exit:3")).wait(None, 0.001) == 3
    assert green.Popen(command("exit:3")).wait(timeout=NEVER, check_interval=5) == 3
    popen = green.Popen(command(gate.wait), pass_fds=gate.fds)
    with pytest.raises(green.TimeoutExpired):
        popen.wait(0.1, check_interval=0.01)
    gate.open()
    # Stock would look once in 500 seconds; here the hub reports it.
    assert popen.wait(check_interval=500) == 0


def test_the_check_interval_without_a_pidfd(
    patched: Any, hub: Any, green: Any, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastio.concurrency import child_exit

    monkeypatch.delattr(child_exit.os, "pidfd_open")
    slept: list[Any] = []
    sleep = eventlet.sleep

    def noting(seconds: float) -> None:
        if not slept:
            gate.open()
        slept.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(eventlet, "sleep", noting)
    assert green.Popen(command(gate.wait, "exit:3"), pass_fds=gate.fds).wait(check_interval=0.03) == 3
    assert set(slept) == {0.03}


@pytest.mark.parametrize("timeout", [None, NEVER])
def test_an_exception_thrown_into_a_waiting_greenlet(
    patched: Any, hub: Any, green: Any, gate: Gate, timeout: Any
) -> None:
    before = descriptors()
    popen = green.Popen(command(gate.wait, "exit:3"), pass_fds=gate.fds)
    waiter = eventlet.spawn(popen.wait, timeout)
    eventlet.sleep(0)
    assert list(hub.get_readers())
    waiter.kill(TimeIsOver())
    with pytest.raises(TimeIsOver):
        waiter.wait()
    assert not list(hub.get_readers())
    with pytest.raises(eventlet.Timeout), eventlet.Timeout(0.05):
        popen.wait(timeout)
    assert not list(hub.get_readers())
    assert not descriptors() - before
    gate.open()
    assert popen.wait(timeout) == 3


def test_no_timer_is_left(patched: Any, hub: Any, green: Any) -> None:
    before = timers(hub)
    for _ in range(10):
        assert green.Popen(command("sleep:0.01", "exit:3")).wait(NEVER) == 3
    assert timers(hub) <= before


def test_a_wait_for_a_closed_file_is_not_woken(patched: Any, hub: Any, green: Any, gate: Gate) -> None:
    """As the hub does where another file gets the number; upstream's wait() opens none."""
    popen = green.Popen(command(gate.wait, "exit:3"), pass_fds=gate.fds)

    def opens() -> int:
        pidfd = os.pidfd_open(popen.pid)
        os.close(pidfd)
        return pidfd

    with forgotten(opens) as waiting:
        waiter = eventlet.spawn(popen.wait)
        eventlet.sleep(0.02)
        gate.open()
        assert waiter.wait() == 3
        assert not waiting.dead


def test_a_hub_that_has_no_room_for_the_pidfd(
    patched: Any, hub: Any, green: Any, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = []
    register = hub.register

    def refuse(fileno: int, new: bool = False) -> None:
        if new and "pidfd" in os.readlink(f"/proc/self/fd/{fileno}"):
            refused.append(fileno)
            raise OSError(errno.ENOSPC, "No space left on device")
        register(fileno, new=new)

    popen = green.Popen(command(gate.wait, "exit:3"), pass_fds=gate.fds)
    monkeypatch.setattr(hub, "register", refuse)
    waiter = eventlet.spawn(popen.wait)
    eventlet.sleep(0.02)
    assert not waiter.dead and refused and not hub.get_readers()
    gate.open()
    assert waiter.wait() == 3


def test_in_the_hub_itself_only_what_needs_no_wait_works(patched: Any, hub: Any, green: Any, gate: Gate) -> None:
    gone = green.Popen(command("exit:3"))
    os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)
    running = green.Popen(command(gate.wait), pass_fds=gate.fds)
    results: list[Any] = []

    def in_the_hub() -> None:
        results.append(gone.wait())
        try:
            running.wait(1)
        except (RuntimeError, AssertionError) as error:
            results.append(type(error))

    hub.schedule_call_global(0, in_the_hub)
    eventlet.sleep(0.01)
    assert results[0] == 3 and len(results) == 2
    gate.open()
    assert running.wait() == 0


def test_other_hubs(in_hub: Any) -> None:
    code = """
    import fastio, subprocess
    from tests.child import Gate, command
    fastio.patch(strict=True)
    gate = Gate()
    popen = subprocess.Popen(command(gate.wait, "exit:3"), pass_fds=gate.fds)
    waiters = [eventlet.spawn(popen.wait, timeout) for timeout in (None, 50, 50)]
    try:
        popen.wait(0.1)
    except Exception as error:
        # eventlet has a separate class if subprocess had not been imported before.
        print(type(error).__name__)
    gate.open()
    print([waiter.wait() for waiter in waiters])
    """
    assert in_hub(code) == "TimeoutExpired\n[3, 3, 3]"


def test_hubs_with_a_pidfd_beyond_the_numbers_of_select(in_hub: Any) -> None:
    code = """
    import os, resource
    import fastio, subprocess
    from tests.child import Gate, command
    fastio.patch(strict=True)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    gate = Gate()
    popen = subprocess.Popen(command(gate.wait, "exit:3"), pass_fds=gate.fds)
    for _ in range(1100):
        os.dup(0)
    waiter = eventlet.spawn(popen.wait)
    eventlet.sleep(0.1)
    gate.open()
    print(waiter.wait())
    """
    assert in_hub(code) == "3"


def test_a_poll_that_waits_itself_is_left_to_end(patched: Any, green: Any, gate: Gate) -> None:
    """The child exits meanwhile."""
    naps: list[float] = []

    class Limited(green.Popen):  # type: ignore[misc, name-defined]
        def poll(self) -> Any:
            if not naps:
                gate.open()
                start = time.monotonic()
                eventlet.sleep(0.5)
                naps.append(time.monotonic() - start)
                return None
            return super().poll()

    popen = Limited(command(gate.wait, "exit:3"), pass_fds=gate.fds)
    assert popen.wait() == 3
    assert naps[0] >= 0.5
