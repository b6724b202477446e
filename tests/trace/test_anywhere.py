"""Events are recorded by finalizers, by handlers of signals and in forked children, and nothing hangs."""

import json
import os
import pathlib
from collections.abc import Callable
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
from fastio.concurrency import native, offload
from fastio.io import libc
from fastio.trace import recorder, spans
from fastio.trace.streams import Body, Passed, watch
LIMITS = recorder.Limits(1 << 16, 1 << 30, 1 << 40)

def until(true):
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, recorder.active and recorder.active.failure
        sys.modules.get("eventlet", time).sleep(0.01)

def hold(name, number):
    "Have the native thread that makes this call of the C library, the number-th one, wait for a gate; gate, and calls."
    gate, calls, to_hold = native.module("_thread").allocate_lock(), [], [None]
    real, run = getattr(libc, name), offload.run
    def call(*args):
        calls.append(real(*args))
        return calls[-1]
    def slow(function, *args):
        if len(calls) == number and function is calls[0][0] and to_hold:
            to_hold.pop()
            run(gate.acquire)
        return run(function, *args)
    setattr(libc, name, call)
    offload.run = slow
    gate.acquire()
    return gate, calls
"""


@pytest.fixture
def recording(run_python: Any, tmp_path: pathlib.Path) -> Callable[..., str]:
    """``recording(code, mode, …)`` runs ``code``, which records into the test's directory; what it prints."""
    return lambda code, mode="green", *more: run_python(BEGIN + code, str(tmp_path), mode, *more).stdout


INTERRUPTED = """
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
    for path in tmp_path.glob("*/*.jsonl"):
        names = {event.name for event in traces.read_file(path).events}
        assert names <= {"test.first", "test.second", "test.parent", "test.stream", "process.resources"}
    assert any(event.name == "test.stream" for path in tmp_path.glob("*child*") for event in traces.events(path))


FINALIZERS = """
ident = native.module("_thread").get_ident
main, elsewhere, ended = ident(), 0, 0
class Cycle:
    def __init__(self):
        self.me = self
    def __del__(self):
        global elsewhere, ended
        ended += 1
        elsewhere += ident() != main
def garbage():
    # Whoever allocates next finds them.
    gc.disable()
    for _ in range(50):
        Cycle()
    gc.enable()
gc.freeze()
gc.set_threshold(1)
recorder.start(directory, LIMITS)
def record():
    garbage()
    for _ in range(20):
        spans.point("test.event", None, {"bytes": 1})
    garbage()
    return recorder.active.written >= 200
until(record)
recorder.stop()
assert ended
print(elsewhere)
"""


@needs_eventlet
def test_no_finalizer_runs_in_a_writer_of_ours(recording, tmp_path):
    """Those of a service that has a hub belong in the hub's thread. Natively they are at home in any."""
    assert recording(FINALIZERS) == "0\n"
    assert sum(event.name == "test.event" for event in traces.events(tmp_path)) >= 200


SLOW_DISK = """
# The first text: the head of the file is written.
gate, calls = hold("pwrite", 2)
recorder.start(directory, LIMITS)
spans.point("test.first", None, {})
until(lambda: len(calls) == 2)
for _ in range(100):
    eventlet.sleep(0)
    spans.point("test.second", None, {})
if sys.argv[3] == "stop":
    recorder.stop()
    gate.release()
else:
    assert recorder.active.written == 0
    gate.release()
    until(lambda: recorder.active.written >= 100)
    recorder.stop()
(path,) = (os.path.join(directory, name) for name in os.listdir(directory))
until(lambda: b'"end":' in open(path, "rb").read())
"""


@needs_eventlet
@pytest.mark.parametrize("end", ["stop", "go on"])
def test_a_disk_that_is_slow_does_not_hold_the_hub(recording, tmp_path, end):
    """What the end of the trace finds half done is done, and is there once."""
    recording(SLOW_DISK, "green", end)
    found = [event.name for event in traces.events(tmp_path)]
    assert found == ["test.first"] + ["test.second"] * 100
    (file,) = traces.read(tmp_path)
    assert file.ended and file.lost == 0


HUB_WITHOUT_PATCHING = """
import threading
recorder.start(directory, LIMITS)
spans.point("test.first", None, {})
import eventlet
from fastio.concurrency import current
eventlet.sleep(0)
before = len(os.listdir("/proc/self/task"))
until(lambda: spans.point("test.event", None, {}) or recorder.active._green and recorder.active.written)
# A thread of the service beside the hub's, such as tpool's.
thread = threading.Thread(target=lambda: [spans.point("test.thread", None, {}) for _ in range(10)])
thread.start()
thread.join()
until(lambda: not recorder.active._in_hub.taken)
assert not recorder.active.buffer and recorder.active.room == 0
hub = current.hub_of_thread()
assert all(timer.called for _, timer in hub.timers + hub.next_timers)
spans.point("test.last", None, {})
until(lambda: not recorder.active.buffer)
"""


@needs_eventlet
def test_a_hub_that_comes_later_takes_over(recording, tmp_path):
    recording(HUB_WITHOUT_PATCHING, "native")
    (file,) = traces.read(tmp_path)
    assert file.ended and file.lost == 0
    names = [event.name for event in file.events]
    assert names.count("test.thread") == 10
    assert names.count("test.first") == names.count("test.last") == 1


LOST_TIMER = """
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
until(lambda: spans.point("test.event", None, {}) or recorder.active.written)
"""


@needs_eventlet
def test_a_timer_that_the_hub_has_lost_is_not_waited_for(recording, tmp_path):
    recording(LOST_TIMER)
    (file,) = traces.read(tmp_path)
    assert [event.name for event in file.events].count("test.finalizer") == 1
    assert file.ended and file.lost == 0


IN_THE_HUB = """
import types
from importlib import metadata
from fastio.trace import files
recorder.start(directory, recorder.Limits(1 << 16, 1, 1 << 30))
done = []
def told(function):
    return lambda *args: (done.append((function.__name__, args)), function(*args))[1]
metadata.version = told(metadata.version)
posix = files.posix
files.posix = types.SimpleNamespace(**{**vars(posix), "close": told(posix.close)})
until(lambda: spans.point("test.event", None, {}) or len(os.listdir(directory)) >= 4)
# One file may be open.
ours = [name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")
    and os.readlink(f"/proc/self/fd/{name}").startswith(directory)]
print(done, len(ours) <= 1)
# The end is written in this thread, and may wait.
files.posix = posix
"""


@needs_eventlet
def test_what_may_wait_for_a_disk_is_not_done_in_the_hub(recording, tmp_path):
    """A file on a network is written out when it is closed; the release of a distribution is read from files."""
    assert recording(IN_THE_HUB) == "[] True\n"
    found = traces.read(tmp_path)
    assert {"python", "fastio", "eventlet"} <= set(found[0].head["versions"])
    assert any(file.ended for file in found)


ENDS_AT_ITS_OPEN = """
recorder.start(directory, LIMITS)
calls, open_file, run = [], libc.open_file, offload.run
def call(*args):
    calls.append(open_file(*args))
    return calls[-1]
def run_and_wait(function, *args):
    result = run(function, *args)
    if calls and function is calls[0][0]:
        eventlet.sleep(60)
    return result
libc.open_file, offload.run = call, run_and_wait
spans.point("test.event", None, {})
until(lambda: os.listdir(directory))
"""


@needs_eventlet
def test_a_process_that_ends_as_its_file_is_opened_leaves_no_empty_one(recording, tmp_path):
    recording(ENDS_AT_ITS_OPEN)
    (file,) = traces.read(tmp_path)
    assert file.ended and [event.name for event in file.events].count("test.event") == 1


FULL_DISK = """
import resource
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
gate, cuts = hold("truncate", 1)
recorder.start(directory, LIMITS)
found = recorder.active
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
    until(lambda: not found._in_hub.taken)
else:
    gate.release()
    until(lambda: found.failure)
    spans.point("test.third", None, {})
    recorder.stop()
"""


@needs_eventlet
@pytest.mark.parametrize(
    ("end", "names"),
    [("stop", [["test.first"], ["test.second"] * 100]), ("go on", [["test.first", "test.third"]])],
    ids=["stop", "go on"],
)
def test_what_a_full_disk_did_not_take_is_cut_off_elsewhere(recording, tmp_path, end, names):
    """The end of the trace does not wait for it, and loses nothing that it writes meanwhile."""
    recording(FULL_DISK, "green", end)
    found = sorted(traces.read(tmp_path), key=lambda file: file.head["file"])
    assert [[event.name for event in file.events if event.name != "process.resources"] for file in found] == names
    assert found[-1].ended


SLOW_CLOSE = """
gate, closes = hold("close", 1)
recorder.start(directory, recorder.Limits(1 << 16, 1, 1 << 30))
found = recorder.active
spans.point("test.first", None, {})
until(lambda: closes)
spans.point("test.second", None, {})
recorder.stop()
assert found.written >= 2
gate.release()
until(lambda: not found._in_hub.taken)
print(repr(found.failure), found._files._fd)
"""


@needs_eventlet
def test_the_trace_ends_while_a_full_file_is_closed(recording, tmp_path):
    assert recording(SLOW_CLOSE) == "'' None\n"
    names = [event.name for event in traces.events(tmp_path) if event.name != "process.resources"]
    assert sorted(names) == ["test.first", "test.second"]
    assert [file.ended for file in sorted(traces.read(tmp_path), key=lambda file: file.head["file"])][-1]


WORKERS = """
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


@needs_eventlet
def test_workers_that_are_forked_by_a_service(recording, tmp_path):
    assert recording(WORKERS) == "[0, 0, 0]\n"
    names = sorted(
        [event.name for event in file.events if event.name != "process.resources"] for file in traces.read(tmp_path)
    )
    assert names == [["test.child"] * 10] * 3 + [["test.parent"] + ["test.before"] * 3]
    assert all(json.loads(path.read_bytes().splitlines()[-1])["end"] for path in tmp_path.iterdir())
    assert len({file.head["pid"] for file in traces.read(tmp_path)}) == 4
    assert os.getpid() not in {file.head["pid"] for file in traces.read(tmp_path)}
