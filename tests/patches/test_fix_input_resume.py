"""``fix_input_resume``: the rest of the input is sent by the next communicate()."""

import contextlib
import os
import signal
from types import ModuleType
from typing import Any

import pytest

import fastio
from fastio import counters
from tests.child import BIG, PIPES, Gate, command, data, digest
from tests.outcome import timed_out, until
from tests.targets import not_needed

pytestmark = pytest.mark.fast_path("exchanges")

INPUTS = {
    "bytes": data(1, BIG),
    "bytearray": bytearray(data(1, BIG)),
    "view": memoryview(data(1, BIG)),
}


@pytest.mark.parametrize("timeouts", [[0.3], [0], [0, 0.1, 0.1]], ids=str)
@pytest.mark.parametrize("kind", INPUTS)
def test_every_byte_is_sent_once(patched: Any, sp: ModuleType, gate: Gate, kind: str, timeouts: list[float]) -> None:
    popen = sp.Popen(command(gate.wait, "digest"), pass_fds=gate.fds, **PIPES)
    input = INPUTS[kind]
    offsets = []
    for number, timeout in enumerate(timeouts):
        with pytest.raises(sp.TimeoutExpired):
            popen.communicate(None if number else input, timeout=timeout)
        offsets.append(popen._input_offset)
    assert offsets == sorted(offsets) and offsets[-1] < BIG
    gate.open()
    assert popen.communicate() == (digest(bytes(input)), b"")
    assert popen._input_offset == BIG
    assert popen.stdin.closed


def test_a_child_that_goes_away_in_between(patched: Any, sp: ModuleType, gate: Gate) -> None:
    popen = sp.Popen(command(gate.wait, "exit:3"), pass_fds=gate.fds, **PIPES)
    timed_out(sp, popen, 0.1, data(1, BIG))
    gate.open()
    popen.wait()
    assert popen.communicate() == (b"", b"")
    assert popen.returncode == 3


def test_input_that_was_all_sent_is_not_sent_again(patched: Any, sp: ModuleType, gate: Gate) -> None:
    popen = sp.Popen(command("digest", gate.wait), pass_fds=gate.fds, **PIPES)

    def time_out(*input: bytes) -> None:
        with pytest.raises(sp.TimeoutExpired):
            popen.communicate(*input, timeout=0.3)

    time_out(data(1, 1000))
    until(lambda: popen.stdin.closed, time_out)
    assert popen.stdin.closed
    gate.open()
    assert popen.communicate() == (digest(data(1, 1000)), b"")


def test_stdin_closed_by_the_caller_in_between(patched: Any, sp: ModuleType, gate: Gate) -> None:
    popen = sp.Popen(command(gate.wait, "digest"), pass_fds=gate.fds, **PIPES)
    timed_out(sp, popen, 0, data(1, BIG))
    popen.stdin.close()
    gate.open()
    assert popen.communicate() == (digest(data(1, popen._input_offset)), b"")


#: What upstream does itself it does in its own way.
waits_for_all = pytest.mark.skipif(not_needed("fix_input_resume"), reason="upstream waits until all of it is sent")


@waits_for_all
def test_a_process_left_behind_holds_stdin(patched: Any, sp: ModuleType, gate: Gate) -> None:
    """Upstream returns once the outputs have ended and the child has exited."""
    popen = sp.Popen(command("close:1", "close:2", gate.grandchild, gate.tell, gate.wait), pass_fds=gate.fds, **PIPES)
    gate.reached()
    timed_out(sp, popen, 0.2, data(1, BIG))
    sent = popen._input_offset
    popen.kill()
    assert popen.communicate() == (b"", b"")
    assert popen.returncode == -signal.SIGKILL
    # As upstream leaves them.
    assert not popen.stdin.closed and sent <= popen._input_offset < BIG
    popen.stdin.close()
    gate.open()


@waits_for_all
def test_a_process_left_behind_by_a_shell(patched: Any, sp: ModuleType, gate: Gate) -> None:
    told = gate.tell.partition(":")[2]
    script = f"exec 3<&0; sleep 600 <&3 >/dev/null 2>&1 & echo x; printf '!' >/dev/fd/{told}; wait"
    popen = sp.Popen(["/bin/sh", "-c", script], pass_fds=gate.fds, start_new_session=True, **PIPES)
    try:
        gate.reached()
        with pytest.raises(sp.TimeoutExpired):
            popen.communicate(data(1, BIG), timeout=0.2)
        popen.kill()
        assert popen.communicate() == (b"x\n", b"")
        popen.stdin.close()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(popen.pid, signal.SIGKILL)


@pytest.mark.parametrize("timeout", [None, 100])
def test_the_outputs_end_before_the_input_does(patched: Any, sp: ModuleType, gate: Gate, timeout: float | None) -> None:
    """The child is there and reads: it gets all of it."""
    steps = ["close:1", "close:2", gate.wait, f"in:{BIG}", "in:1", "exit:4"]
    popen = sp.Popen(command(*steps), pass_fds=gate.fds, **PIPES)
    timed_out(sp, popen, 0.2, data(1, BIG))
    gate.open()
    assert popen.communicate(timeout=timeout) == (b"", b"")
    assert (popen.returncode, popen._input_offset, popen.stdin.closed) == (4, BIG, True)


def test_time_outs_go_on_while_only_input_is_left(patched: Any, sp: ModuleType, gate: Gate) -> None:
    popen = sp.Popen(command("close:1", "close:2", gate.wait, "in:-1"), pass_fds=gate.fds, **PIPES)
    for number in range(3):
        with pytest.raises(sp.TimeoutExpired) as caught:
            popen.communicate(None if number else data(1, BIG), timeout=0.2)
        assert caught.value.timeout == 0.2 and popen.returncode is None
    gate.open()
    assert popen.communicate() == (b"", b"")
    assert popen._input_offset == BIG


@pytest.mark.parametrize("disabled", [["communicate", "green_communicate"], []], ids=["alone", "with the others"])
def test_without_the_patches_beneath(sp: ModuleType, gate: Gate, disabled: list[str]) -> None:
    with fastio.patched(disabled=disabled):
        counters.reset()
        popen = sp.Popen(command(gate.wait, "digest"), pass_fds=gate.fds, **PIPES)
        with pytest.raises(sp.TimeoutExpired):
            popen.communicate(data(1, BIG), timeout=0.2)
        gate.open()
        assert popen.communicate() == (digest(data(1, BIG)), b"")
        alone = 0 if not_needed("fix_input_resume") else 1
        assert counters.exchanges == (alone if disabled else 2)
