"""A child whose output or input is streamed: its errors, an end that does not come, and others' turns meanwhile.

All of its bytes, and whoever gives up in between: tests/stores.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from fastio.drivers import _process
from fastio.drivers._process import Child
from fastio.io import pipes
from tests.conftest import MONKEY_PATCHED
from tests.descriptors import descriptors, forgotten, unread
from tests.eventually import until
from tests.stores.images import KIB, MIB, Ticker
from tests.tracer import deathless

in_a_hub = pytest.mark.skipif(not MONKEY_PATCHED, reason="there is no hub")


@pytest.fixture(autouse=True)
def leaves_no_descriptor() -> Iterator[None]:
    time.sleep(0)  # The hub's own are opened by the first wait.
    before = descriptors()
    yield
    assert not descriptors() - before


def python(code: str) -> list[str]:
    return [sys.executable, "-ISc", code]


def test_errors_are_many_and_no_text() -> None:
    with Child(python("import os; os.write(2, b'\\xff' + b'x' * 2**20); os.write(1, b'out'); os._exit(7)")) as child:
        assert list(child.chunks(MIB)) == [b"out"]
        status, said = child.finish()
    assert status == 7
    assert said == "\ufffd" + "x" * (16 * KIB - 1)


# --- children that do not end


def reaped(pid: int) -> bool:
    with Child(["true"]):
        pass
    return not os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize("thrown_away", [False, True])
def test_a_child_that_survives_its_end(thrown_away: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like one that the kernel holds in a system call: it is not waited for, and the next child reaps it."""
    monkeypatch.setattr(_process, "_DEATH", 0.2)
    child = Child(["sleep", "1000"])
    with deathless(child._popen.pid) as living:
        with Ticker() if MONKEY_PATCHED and not thrown_away else contextlib.nullcontext() as ticker:
            child.stop(wait=not thrown_away)
        assert living()
        assert os.path.exists(f"/proc/{child._popen.pid}")
        # Others run meanwhile.
        assert ticker is None or ticker.ticks
    until(lambda: reaped(child._popen.pid))


@pytest.mark.parametrize("output", [b"", b"some"])
@pytest.mark.parametrize("closes", [True, False])
def test_a_child_is_ended_at_its_limit(output: bytes, closes: bool) -> None:
    """Of a child that goes on, whether or not its output has ended."""
    code = f"import os, signal; os.write(1, {output!r}); {closes} and os.close(1); signal.pause()"
    with Child(python(code), limit=0.3) as child, pytest.raises(TimeoutError, match="within 0.3 seconds"):
        received = b"".join(child.chunks(100))
        assert closes
        assert received == output
        child.finish()
    with Child(python("print('x')"), limit=60) as child:
        assert list(child.chunks(100)) == [b"x\n"]
        assert child.finish() == (0, "")


@in_a_hub
def test_no_pidfd_and_a_popen_that_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kernel before 5.3, with ``monkey_patch(subprocess=False)``."""
    import eventlet

    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.setattr(subprocess, "Popen", eventlet.patcher.original("subprocess").Popen)

    def end(pid: int) -> None:
        while ticker.ticks <= 5:
            eventlet.sleep(0)
        os.kill(pid, signal.SIGKILL)

    with Child(python("import os, signal; os.close(1); signal.pause()")) as child, Ticker() as ticker:
        assert list(child.chunks(1)) == []
        # Without turns of others it never ends.
        eventlet.spawn(end, child._popen.pid)
        assert child.finish() == (-signal.SIGKILL, "")


def test_the_end_of_the_child_blocks_its_own_end_only() -> None:
    """A pipe that does not block would have ``dog`` spin."""
    with Child(python("import os; print(os.get_blocking(1))")) as child:
        assert list(child.chunks(100)) == [b"True\n"]
    with Child(python("import os, sys; sys.exit(os.get_blocking(0))"), feeds=True) as child:
        assert child.finish()[0] == 1


@pytest.mark.parametrize("feeds", [False, True])
@in_a_hub
def test_a_transfer_without_waits_yields(monkeypatch: pytest.MonkeyPatch, feeds: bool) -> None:
    monkeypatch.setenv("FASTIO_YIELD_BYTES", "64KiB")
    with Child(["sleep", "1000"] if feeds else ["head", "-c", str(MIB), "/dev/zero"], feeds=feeds) as child:
        pipes.grow(child._fd, MIB)
        if pipes.capacity(child._fd) < MIB:
            pytest.skip("the system grants no pipe of 1 MiB")
        while not feeds and unread(child._fd) < MIB:
            time.sleep(0.001)
        with Ticker() as ticker:
            if feeds:
                child.write(bytes(MIB))
            else:
                assert next(child.chunks(MIB)) == bytes(MIB)
    assert ticker.ticks >= MIB // (64 * KIB) - 1


@in_a_hub
@pytest.mark.parametrize("feeds", [False, True])
def test_its_pipe_has_a_number_that_the_hub_knows(feeds: bool) -> None:
    """A file was closed while a greenlet waited for it, without the hub's knowledge."""
    from eventlet import hubs

    def opens() -> int:
        with Child(["true"], feeds=feeds) as child:
            return child._fd

    with forgotten(opens) as waiting, Child(["cat" if feeds else "true"], feeds=feeds) as child:
        if feeds:
            child.write(b"x" * 3 * MIB)
        else:
            assert list(child.chunks(MIB)) == []
        assert child.finish() == (0, "")
        assert waiting.wait() is hubs.IOClosed
