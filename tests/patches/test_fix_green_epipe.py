"""``fix_green_epipe``: green ``os.write`` raises where there is no reader."""

import importlib.metadata
import os
import subprocess
from typing import Any

import pytest

import fastio
from fastio.patching.registry import reached
from tests.child import command, data, out
from tests.conftest import HAS_OSLO, MONKEY_PATCHED
from tests.outcome import as_upstream

eventlet = pytest.importorskip("eventlet")

from eventlet import hubs  # noqa: E402
from eventlet.green import os as green_os  # noqa: E402

EVENTLET = importlib.metadata.version("eventlet")

pytestmark = [
    pytest.mark.no_fast_path(reason="os.write() itself has no counters"),
    pytest.mark.skipif(not hasattr(green_os, "write"), reason="this eventlet has no green os.write"),
]


def test_a_reader_that_goes_away_while_it_waits(patched: Any, hub: Any) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with pytest.raises(BlockingIOError):
        while True:
            __import__("posix").write(writer, bytes(65536))
    waiter = eventlet.spawn(green_os.write, writer, b"abc")
    eventlet.sleep(0)
    assert not waiter.dead
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        waiter.wait()
    os.close(writer)


def test_other_errors_are_raised_as_before(hub: Any) -> None:
    def errors() -> list[Any]:
        found = []
        for fd in (10**6, -1):
            try:
                found.append(green_os.write(fd, b"abc"))
            except Exception as error:
                found.append((type(error), error.args))
        for value in ("text", None, 5):
            reader, writer = os.pipe()
            hubs.notify_opened(writer)
            try:
                found.append(green_os.write(writer, value))
            except Exception as error:
                found.append((type(error), str(error)))
            os.close(reader)
            os.close(writer)
        return found

    as_upstream(errors)


def test_the_hang_without_the_fast_communicate(hub: Any, green_subprocess: Any) -> None:
    """The fix stands on its own: upstream's communicate() returns with it."""
    with fastio.patched("fix_green_epipe"):
        popen = green_subprocess.Popen(command("in:1000", out(1, 10), "exit:3"), stdin=-1, stdout=-1, stderr=-1)
        assert popen.communicate(data(1, 200_000)) == (data(1, 10), b"")
        assert popen.returncode == 3


@pytest.mark.skipif(not HAS_OSLO, reason="oslo.concurrency is not installed")
def test_the_hang_of_execute(patched: Any) -> None:
    from oslo_concurrency import processutils

    with pytest.raises(processutils.ProcessExecutionError) as caught:
        processutils.execute("exit 3", shell=True, process_input=data(1, 100_000))
    assert caught.value.exit_code == 3


def test_os_is_patched_where_eventlet_has_put_its_own(patched: Any) -> None:
    assert (os.write is green_os.write) == MONKEY_PATCHED


SPINS = """
import sys
import eventlet; eventlet.monkey_patch()
import fastio, os
fastio.patch(disabled=["fix_green_epipe"])
reader, writer = os.pipe()
os.close(reader)
try:
    os.write(writer, b"abc")
except BrokenPipeError:
    print("raises")
"""


@pytest.mark.skipif(MONKEY_PATCHED, reason="the process is a fresh one, the same as without TEST_EVENTLET")
@pytest.mark.skipif(not reached(f"eventlet {EVENTLET}", ("0.35",)), reason=f"eventlet {EVENTLET} does not spin yet")
def test_upstream_still_spins(run_python: Any) -> None:
    """When this fails upstream has mended it, and the fix can go."""
    with pytest.raises(subprocess.TimeoutExpired):
        run_python(SPINS, options=("-W", "ignore"), timeout=3)
