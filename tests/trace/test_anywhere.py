"""Events are recorded by finalizers, by handlers of signals and in forked children, and nothing hangs."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import pytest

from tests.conftest import needs_eventlet
from tests.trace import traces

MODES = ["native", pytest.param("green", marks=needs_eventlet)]

BEGIN = """
import gc, os, signal, sys, time
directory, mode = sys.argv[1:3]
if mode == "green":
    import eventlet
    eventlet.monkey_patch()
    eventlet.sleep(0)
from fastio.concurrency import native
from fastio.trace import recorder, spans
from fastio.trace.streams import Body, Passed, watch
LIMITS = recorder.Limits(1 << 16, 1 << 30, 1 << 40)
"""

INTERRUPTED = (
    BEGIN
    + """
how = sys.argv[3]

def give_up(make):
    "An aborted transfer, whose end is recorded when it is forgotten."
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
    if not collecting and number < 200 and frame.f_code.co_filename.endswith(("recorder.py", "files.py")):
        number += 1
        Transfer(number)

def record(*args):
    give_up(watch)

def disturb(on):
    if how == "finalizer":
        # A call leaves something for the collector, and every allocation begins a collection.
        gc.freeze()
        gc.set_threshold(1 if on else 0)
        sys.setprofile(garbage if on else None)
    else:
        signal.signal(signal.SIGALRM, record)
        signal.setitimer(signal.ITIMER_REAL, 1e-4 if on else 0, 1e-4)

def work(directory):
    disturb(True)
    for _ in range(3):
        spans.point("test.first", None, {})
        recorder.start(directory + "-other", LIMITS)
        spans.point("test.second", None, {})
        recorder.start(directory, LIMITS)
    disturb(False)
    recorder.stop()

hung = 0
for child in range(4):
    recorder.start(directory, LIMITS)
    spans.point("test.parent", None, {})
    pid = os.fork()
    if not pid:
        # Not by the handler, which may be what hangs.
        limit = native.module("_thread").start_new_thread(lambda: (native.module("time").sleep(10), os._exit(1)), ())
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
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["finalizer", "signal"])
def test_whatever_comes_while_it_records(run_python: Any, tmp_path: pathlib.Path, how: str, mode: str) -> None:
    done = run_python(INTERRUPTED, str(tmp_path / "trace"), mode, how, timeout=110)
    assert done.stdout == "0\n", done.stderr
    for path in tmp_path.glob("*/*.jsonl"):
        names = {event.name for event in traces.read_file(path).events}
        assert names <= {"test.first", "test.second", "test.parent", "test.stream", "process.resources"}
    assert any(
        event.name == "test.stream" for path in tmp_path.glob("*child*") for event in traces.events(path)
    )  # fmt: skip


FINALIZERS = (
    BEGIN
    + """
ident = native.module("_thread").get_ident
main, elsewhere, ended = ident(), 0, 0
class Cycle:
    def __init__(self):
        self.me = self
    def __del__(self):
        global elsewhere, ended
        ended += 1
        elsewhere += ident() != main
gc.freeze()
gc.set_threshold(1)
recorder.start(directory, LIMITS)
deadline = time.monotonic() + 60
while recorder.active.written < 200:
    assert time.monotonic() < deadline
    # Whoever allocates next finds them.
    gc.disable()
    for _ in range(50):
        Cycle()
    gc.enable()
    for _ in range(20):
        spans.point("test.event", None, {"bytes": 1})
    gc.disable()
    for _ in range(50):
        Cycle()
    gc.enable()
    time.sleep(0.01)
recorder.stop()
assert ended
print(elsewhere)
"""
)


@needs_eventlet
def test_no_finalizer_runs_in_a_writer_of_ours(run_python: Any, tmp_path: pathlib.Path) -> None:
    """Those of a service that has a hub belong in the hub's thread. Natively they are at home in any."""
    assert run_python(FINALIZERS, str(tmp_path), "green", timeout=100).stdout == "0\n"
    assert sum(event.name == "test.event" for event in traces.events(tmp_path)) >= 200


SLOW_DISK = (
    BEGIN
    + """
from fastio.io import libc
from fastio.concurrency import offload
gate = native.module("_thread").allocate_lock()
real, run = libc.pwrite, offload.run
blocked = []
def pwrite(*args):
    blocked.append(args)
    return real(*args)
libc.pwrite = pwrite
def slow(function, *args):
    if len(blocked) == 2 and gate.locked():
        # The first text; the head of the file is written. The same thread then makes the call.
        run(gate.acquire)
    return run(function, *args)
offload.run = slow
gate.acquire()
recorder.start(directory, LIMITS)
spans.point("test.first", None, {})
deadline = time.monotonic() + 60
while len(blocked) < 2:
    assert time.monotonic() < deadline
    eventlet.sleep(0.01)
turns = 0
for _ in range(100):
    eventlet.sleep(0)
    spans.point("test.second", None, {})
if sys.argv[3] == "stop":
    recorder.stop()
    gate.release()
else:
    assert recorder.active.written == 0
    gate.release()
    while recorder.active.written < 100:
        assert time.monotonic() < deadline
        eventlet.sleep(0.01)
    recorder.stop()
eventlet.sleep(0.5)
"""
)


@needs_eventlet
@pytest.mark.parametrize("end", ["stop", "go on"])
def test_a_disk_that_is_slow_does_not_hold_the_hub(run_python: Any, tmp_path: pathlib.Path, end: str) -> None:
    """What the end of the trace finds half done is done, and is there once."""
    run_python(SLOW_DISK, str(tmp_path), "green", end, timeout=100)
    found = [event.name for event in traces.events(tmp_path)]
    assert found == ["test.first"] + ["test.second"] * 100
    (file,) = traces.read(tmp_path)
    assert file.ended and file.lost == 0


HUB_WITHOUT_PATCHING = (
    BEGIN
    + """
import threading
recorder.start(directory, LIMITS)
spans.point("test.first", None, {})
import eventlet
from fastio.concurrency import current
eventlet.sleep(0)
before = len(os.listdir("/proc/self/task"))
deadline = time.monotonic() + 60
while not recorder.active._green or not recorder.active.written:
    assert time.monotonic() < deadline
    spans.point("test.event", None, {})
    eventlet.sleep(0.01)
# A thread of the service beside the hub's, such as tpool's.
thread = threading.Thread(target=lambda: [spans.point("test.thread", None, {}) for _ in range(10)])
thread.start()
thread.join()
while recorder.active._hub_tickets == []:
    assert time.monotonic() < deadline
    eventlet.sleep(0.01)
assert not recorder.active.buffer and recorder.active.room == 0
hub = current.hub_of_thread()
assert all(timer.called for _, timer in hub.timers + hub.next_timers)
spans.point("test.last", None, {})
while recorder.active.buffer:
    assert time.monotonic() < deadline
    eventlet.sleep(0.01)
"""
)


@needs_eventlet
def test_a_hub_that_comes_later_takes_over(run_python: Any, tmp_path: pathlib.Path) -> None:
    run_python(HUB_WITHOUT_PATCHING, str(tmp_path), "native", timeout=100)
    (file,) = traces.read(tmp_path)
    assert file.ended and file.lost == 0
    names = [event.name for event in file.events]
    assert names.count("test.thread") == 10
    assert names.count("test.first") == names.count("test.last") == 1


LOST_TIMER = (
    BEGIN
    + """
from eventlet import hubs
recorder._STALE = 0.5
recorder.start(directory, LIMITS)
class Timers(list):
    # The hub has gone through them and is about to empty the list: a finalizer that records then adds to it.
    def __delitem__(self, part):
        if not recorder.active.buffer:
            spans.point("test.finalizer", None, {})
        super().__delitem__(part)
hub = hubs.get_hub()
hub.next_timers = Timers(hub.next_timers)
eventlet.sleep(0)
assert recorder.active.buffer and not hub.next_timers
hub.next_timers = []
deadline = time.monotonic() + 30
while not recorder.active.written:
    assert time.monotonic() < deadline
    spans.point("test.event", None, {})
    eventlet.sleep(0.01)
"""
)


@needs_eventlet
def test_a_timer_that_the_hub_has_lost_is_not_waited_for(run_python: Any, tmp_path: pathlib.Path) -> None:
    run_python(LOST_TIMER, str(tmp_path), "green", timeout=100)
    (file,) = traces.read(tmp_path)
    assert [event.name for event in file.events].count("test.finalizer") == 1
    assert file.ended and file.lost == 0


IN_THE_HUB = (
    BEGIN
    + """
import types
from importlib import metadata
from fastio.trace import files
recorder.start(directory, recorder.Limits(1 << 16, 1, 1 << 30))
done = []
def told(function):
    return lambda *args: (done.append((function.__name__, args)), function(*args))[1]
metadata.version = told(metadata.version)
files.posix = types.SimpleNamespace(close=told(files.posix.close))
deadline = time.monotonic() + 60
while len(os.listdir(directory)) < 4:
    assert time.monotonic() < deadline
    spans.point("test.event", None, {})
    eventlet.sleep(0.01)
# One file may be open.
ours = [name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")
    and os.readlink(f"/proc/self/fd/{name}").startswith(directory)]
print(done, len(ours) <= 1)
"""
)


@needs_eventlet
def test_what_may_wait_for_a_disk_is_not_done_in_the_hub(run_python: Any, tmp_path: pathlib.Path) -> None:
    """A file on a network is written out when it is closed; the release of a distribution is read from files."""
    assert run_python(IN_THE_HUB, str(tmp_path), "green", timeout=100).stdout == "[] True\n"
    assert {"python", "fastio", "eventlet"} <= set(traces.read(tmp_path)[0].head["versions"])


FULL_DISK = (
    BEGIN
    + """
import resource
from fastio.concurrency import offload
from fastio.io import libc
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
gate = native.module("_thread").allocate_lock()
cuts, real, run = [], libc.truncate, offload.run
def truncate(*args):
    cuts.append(real(*args))
    return cuts[-1]
def slow(function, *args):
    if cuts and function is cuts[0][0]:
        # The same thread cuts the file off then.
        run(gate.acquire)
    return run(function, *args)
libc.truncate, offload.run = truncate, slow
gate.acquire()
recorder.start(directory, LIMITS)
found = recorder.active
deadline = time.monotonic() + 30
def until(true):
    while not true():
        assert time.monotonic() < deadline, found.failure
        eventlet.sleep(0.01)
spans.point("test.first", None, {})
until(lambda: found.written)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
for _ in range(100):
    spans.point("test.second", None, {})
until(lambda: cuts)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
if sys.argv[3] == "stop":
    recorder.stop()
    gate.release()
    until(lambda: found._hub_tickets)
else:
    gate.release()
    until(lambda: found.failure)
    spans.point("test.third", None, {})
    recorder.stop()
"""
)


@needs_eventlet
@pytest.mark.parametrize(
    ("end", "names"),
    [("stop", [["test.first"], ["test.second"] * 100]), ("go on", [["test.first", "test.third"]])],
    ids=["stop", "go on"],
)
def test_what_a_full_disk_did_not_take_is_cut_off_elsewhere(
    run_python: Any, tmp_path: pathlib.Path, end: str, names: list[list[str]]
) -> None:
    """The end of the trace does not wait for it, and loses nothing that it writes meanwhile."""
    run_python(FULL_DISK, str(tmp_path), "green", end, timeout=100)
    found = sorted(traces.read(tmp_path), key=lambda file: file.head["file"])
    assert [[event.name for event in file.events if event.name != "process.resources"] for file in found] == names
    assert found[-1].ended


SLOW_CLOSE = (
    BEGIN
    + """
from fastio.io import libc
from fastio.concurrency import offload
gate = native.module("_thread").allocate_lock()
closes, real, run = [], libc.close, offload.run
def close(fd):
    closes.append(fd)
    return real(fd)
libc.close = close
def slow(function, *args):
    if closes and gate.locked():
        # The same thread closes the file then.
        run(gate.acquire)
    return run(function, *args)
offload.run = slow
gate.acquire()
recorder.start(directory, recorder.Limits(1 << 16, 1, 1 << 30))
found = recorder.active
spans.point("test.first", None, {})
deadline = time.monotonic() + 60
while not closes:
    assert time.monotonic() < deadline
    eventlet.sleep(0.01)
spans.point("test.second", None, {})
recorder.stop()
assert found.written >= 2
gate.release()
while found._hub_tickets == []:
    assert time.monotonic() < deadline
    eventlet.sleep(0.01)
print(repr(found.failure), found._files._fd)
"""
)


@needs_eventlet
def test_the_trace_ends_while_a_full_file_is_closed(run_python: Any, tmp_path: pathlib.Path) -> None:
    assert run_python(SLOW_CLOSE, str(tmp_path), "green", timeout=100).stdout == "'' None\n"
    names = [event.name for event in traces.events(tmp_path) if event.name != "process.resources"]
    assert sorted(names) == ["test.first", "test.second"]
    assert [file.ended for file in sorted(traces.read(tmp_path), key=lambda file: file.head["file"])][-1]


WORKERS = (
    BEGIN
    + """
recorder.start(directory, LIMITS)
spans.point("test.parent", None, {})
def parent():
    while recorder.active.written < 1:
        eventlet.sleep(0.01)
eventlet.spawn(parent).wait()
pids = []
for child in range(3):
    spans.point("test.before", None, {})
    pid = os.fork()
    if not pid:
        # As a worker of oslo.service: another hub, since two processes with one epoll object take each other's events.
        eventlet.hubs.use_hub()
        for _ in range(10):
            spans.point("test.child", None, {})
            eventlet.sleep(0.06)
        while not recorder.active.written:
            eventlet.sleep(0.01)
        recorder.stop()
        os._exit(0)
    pids.append(pid)
print([os.waitpid(pid, 0)[1] for pid in pids])
"""
)


@needs_eventlet
def test_workers_that_are_forked_by_a_service(run_python: Any, tmp_path: pathlib.Path) -> None:
    assert run_python(WORKERS, str(tmp_path), "green", timeout=100).stdout == "[0, 0, 0]\n"
    names = sorted(
        [event.name for event in file.events if event.name != "process.resources"] for file in traces.read(tmp_path)
    )
    assert names == [["test.child"] * 10] * 3 + [["test.parent"] + ["test.before"] * 3]
    assert all(json.loads(path.read_bytes().splitlines()[-1])["end"] for path in tmp_path.iterdir())
    assert len({file.head["pid"] for file in traces.read(tmp_path)}) == 4
    assert os.getpid() not in {file.head["pid"] for file in traces.read(tmp_path)}
