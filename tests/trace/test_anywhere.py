"""Spans end in finalizers, in handlers of signals and in forked children, and nothing hangs."""

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import needs_eventlet
from tests.trace import traces

MODES = ["native", pytest.param("green", marks=needs_eventlet)]

BEGIN = """
import gc, os, signal, sys, time
from _queue import SimpleQueue
directory, mode = sys.argv[1:3]
if mode == "green":
    import eventlet
    eventlet.monkey_patch()
    eventlet.sleep(0)
from fastio.concurrency import native
from fastio.io import libc
from fastio.trace import recorder, spans
from fastio.trace.streams import Body, Passed, watch

def record(name):
    spans.Span(name).end()
"""


@pytest.fixture
def recording(run_python: Any, tmp_path: pathlib.Path) -> Callable[..., str]:
    """``recording(code, mode, …)`` runs ``code``, which records into the test's directory; returns what it prints."""
    return lambda code, mode="green", *more: run_python(BEGIN + code, str(tmp_path), mode, *more).stdout


INTERRUPTED = """
how = sys.argv[3]

def give_up(make):
    "An aborted transfer, whose span ends when it is forgotten."
    span = spans.Span("test.stream")
    return make(iter([b"a"]), Passed(span, lambda passed, outcome: span.end(outcome)))

class Transfer:
    def __init__(self, number):
        self.me = self
        self.data = give_up(watch if number % 2 else Body)

number = 0
collecting = False
def collected(phase, info):
    global collecting
    collecting = phase == "start"
gc.callbacks.append(collected)

def garbage(frame, *args):
    global number
    if not collecting and number < 200 and frame.f_code.co_filename.endswith(("recorder.py", "otlp.py", "threads.py")):
        number += 1
        Transfer(number)

def disturb(on):
    if how == "finalizer":
        # A call leaves something for the collector, and every allocation begins a collection.
        gc.freeze()
        gc.set_threshold(1 if on else 0)
        sys.setprofile(garbage if on else None)
    else:
        signal.signal(signal.SIGALRM, lambda *args: give_up(watch) and None)
        signal.setitimer(signal.ITIMER_REAL, 1e-4 if on else 0, 1e-4)

def work(directory):
    disturb(True)
    for _ in range(3):
        record("test.first")
        recorder.start(directory + "-other")
        record("test.second")
        recorder.start(directory)
    disturb(False)
    recorder.stop()

hung = 0
for child in range(4):
    recorder.start(directory)
    record("test.parent")
    pid = os.fork()
    if not pid:
        # Not by the handler, which may be what hangs.
        limit = native.module("_thread").start_new_thread(lambda: (native.module("time").sleep(25), os._exit(1)), ())
        try:
            work(directory + "-child")
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
        os._exit(2)
    hung += os.waitpid(pid, 0)[1] != 0
    if child % 2:
        recorder.stop()
print(hung)
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["finalizer", "signal"])
def test_whatever_comes_while_it_records(run_python, tmp_path, how, mode):
    done = run_python(BEGIN + INTERRUPTED, str(tmp_path / "trace"), mode, how, timeout=110)
    assert done.stdout == "0\n", done.stderr
    found = [span for path in tmp_path.glob("*/*.jsonl") for span in traces.of_file(path)]
    traces.well_formed(found)
    names = [span.name for span in found]
    assert set(names) <= {"test.first", "test.second", "test.parent", "test.stream"}
    assert "test.stream" in names
    # Each of them is there: 4 in the parent, and 3 in each of 4 children.
    assert [names.count(f"test.{name}") for name in ("parent", "first", "second")] == [4, 12, 12]


SLOW_DISK = """
# The call that opens the file waits for a gate.
gate = SimpleQueue()
opening = libc.open_at
libc.open_at = lambda *args: (gate.get,)
recorder.start(directory)
record("test.first")
libc.open_at = opening
began = time.monotonic()
for _ in range(100):
    sys.modules.get("eventlet", time).sleep(0)
    record("test.more")
assert time.monotonic() - began < 5
found = recorder.active
found.settle()
print(found.written, found.lost)
gate.put(os.open(found._path(0), os.O_WRONLY | os.O_CREAT, 0o600))
recorder.stop()
print(found.written, found.lost)
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_slow_disk_delays_none(recording, tmp_path, mode):
    """Lines that came meanwhile are one write."""
    assert recording(SLOW_DISK, mode) == "0 0\n101 0\n"
    assert len(traces.spans(tmp_path)) == 101


DEAD_DISK = """
opening = libc.open_at
libc.open_at = lambda *args: (SimpleQueue().get,)
recorder.start(directory)
record("test.first")
libc.open_at = opening
began = time.monotonic()
recorder.start(directory + "-other")
assert time.monotonic() - began < recorder._PATIENCE / 2
record("test.second")
recorder._PATIENCE = 0.5
ran = []
if mode == "green":
    eventlet.spawn(ran.append, None)
recorder.stop()
print("ended", len(ran), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("mode", MODES)
def test_no_wait_for_a_dead_disk(recording, tmp_path, mode):
    """Not at all where another directory is chosen; for a while at the end, and other greenlets run meanwhile."""
    assert recording(DEAD_DISK, mode) == f"ended {int(mode == 'green')}\n"
    other = tmp_path.with_name(f"{tmp_path.name}-other")
    assert [span.name for span in traces.spans(other)] == ["test.second"]
