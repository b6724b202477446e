"""The recorder: bounded, never in the way, whole lines, one set of files per process."""

from __future__ import annotations

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastio.trace import recorder, resources
from fastio.trace.recorder import Limits, Recorder
from tests.conftest import MONKEY_PATCHED, needs_eventlet
from tests.trace import traces

LIMITS = Limits(buffer=1 << 16, file_size=64 << 20, total_size=1 << 30)


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Iterator[Callable[..., Recorder]]:
    def start(limits: Limits = LIMITS, directory: str | None = None) -> Recorder:
        recorder.start(directory or str(tmp_path), limits)
        assert recorder.active is not None
        return recorder.active

    yield start
    recorder.stop()


def put(found: Recorder, number: int, name: str = "test.event") -> None:
    found.put(("P", time.monotonic_ns(), number, None, name, 1, {"bytes": number}))


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_is_recorded_is_in_the_file(start: Callable[..., Recorder], tmp_path: pathlib.Path) -> None:
    found = start()
    found.component = "a-service"
    for number in range(1000):
        put(found, number)
    recorder.stop()
    (file,) = traces.read(tmp_path)
    assert [event.values["bytes"] for event in file.events if event.name == "test.event"] == list(range(1000))
    assert file.head["pid"] == os.getpid()
    assert file.head["component"] == "a-service"
    assert file.head["file"] == 0
    assert file.ended
    assert (file.notes[-1]["events"], file.notes[-1]["lost"]) == (len(file.events), 0)
    assert file.path.stat().st_mode & 0o007 == 0


@pytest.mark.parametrize(
    ("umask", "file", "directory"), [(0o077, 0o600, 0o700), (0o022, 0o640, 0o750), (0, 0o640, 0o750)]
)  # fmt: skip
def test_the_umask_holds(
    start: Callable[..., Recorder], tmp_path: pathlib.Path, umask: int, file: int, directory: int
) -> None:
    before = os.umask(umask)
    try:
        put(start(directory=str(tmp_path / "trace")), 1)
        recorder.stop()
    finally:
        os.umask(before)
    assert (tmp_path / "trace").stat().st_mode & 0o777 == directory
    (path,) = (tmp_path / "trace").iterdir()
    assert path.stat().st_mode & 0o777 == file


def test_a_process_that_records_nothing_has_no_file(start: Callable[..., Recorder], tmp_path: pathlib.Path) -> None:
    start()
    recorder.stop()
    assert list(tmp_path.iterdir()) == []


def test_events_are_written_while_the_process_runs(start: Callable[..., Recorder], tmp_path: pathlib.Path) -> None:
    """A process that is killed has lost no more than those of the last moment."""
    found = start()
    put(found, 1)
    wait_until(lambda: any(b"test.event" in path.read_bytes() for path in tmp_path.iterdir()))
    # However often the writer has looked, nothing is lost.
    put(found, 2)
    recorder.stop()
    (file,) = traces.read(tmp_path)
    assert [event.values for event in file.events if event.name == "test.event"] == [{"bytes": 1}, {"bytes": 2}]
    assert (file.lost, file.notes[-1]["lost"]) == (0, 0)


@pytest.mark.skipif(MONKEY_PATCHED, reason="there it is a greenlet")
def test_the_writer_is_a_thread_of_the_operating_system(start: Callable[..., Recorder], tmp_path: pathlib.Path) -> None:
    before = len(os.listdir("/proc/self/task"))
    put(start(), 1)
    deadline = time.monotonic() + 20
    while not any(b"test.event" in path.read_bytes() for path in tmp_path.iterdir()):
        assert time.monotonic() < deadline
    assert len(os.listdir("/proc/self/task")) == before + 1


def test_events_that_do_not_fit_are_counted(start: Callable[..., Recorder], tmp_path: pathlib.Path) -> None:
    found = start(LIMITS._replace(buffer=256))
    put(found, 0)
    many = 200_000
    for number in range(many):
        put(found, number)
    assert len(found.buffer) <= 256 + 1
    recorder.stop()
    (file,) = traces.read(tmp_path)
    kept = [event for event in file.events if event.name == "test.event"]
    assert file.lost > 0
    assert len(kept) + file.lost == many + 1
    assert file.notes[-1]["lost"] == file.lost


def test_each_note_tells_of_the_losses_since_the_last_one(
    start: Callable[..., Recorder], tmp_path: pathlib.Path
) -> None:
    found = start(LIMITS._replace(buffer=16))
    for number in range(1000):
        put(found, number)
    wait_until(lambda: any(b'{"lost":' in path.read_bytes() for path in tmp_path.iterdir()))
    for number in range(1000):
        put(found, number)
    recorder.stop()
    (file,) = traces.read(tmp_path)
    assert sum("lost" in note and "end" not in note for note in file.notes) >= 2
    assert file.lost == file.notes[-1]["lost"]
    assert file.lost + sum(event.name == "test.event" for event in file.events) == 2000


def test_many_threads_lose_nothing_uncounted(start: Callable[..., Recorder], tmp_path: pathlib.Path) -> None:
    found = start(LIMITS._replace(buffer=512))
    threads = [
        threading.Thread(target=lambda: [put(found, number) for number in range(20_000)]) for _ in range(4)  # type: ignore[func-returns-value]
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.stop()
    (file,) = traces.read(tmp_path)
    kept = [event for event in file.events if event.name == "test.event"]
    assert len(kept) + file.lost == 80_000


def test_files_are_rotated_and_the_oldest_deleted(start: Callable[..., Recorder], tmp_path: pathlib.Path) -> None:
    found = start(Limits(buffer=1 << 20, file_size=64 << 10, total_size=256 << 10))
    total = 20_000
    for number in range(total):
        put(found, number)
    recorder.stop()
    files = traces.read(tmp_path)
    files.sort(key=lambda file: file.head["file"])
    numbers = [file.head["file"] for file in files]
    assert len(files) > 1
    assert numbers == list(range(numbers[0], numbers[0] + len(files)))
    assert numbers[0] > 0
    # A file is a batch of events larger than its bound at most.
    assert sum(file.path.stat().st_size for file in files) <= (256 << 10) + (64 << 10)
    kept = [event.values["bytes"] for file in files for event in file.events if event.name == "test.event"]
    # The newest stay, in order, and what has gone is counted.
    assert kept == list(range(total - len(kept), total))
    end = files[-1].notes[-1]
    samples = sum(event.name == "process.resources" for file in files for event in file.events)
    assert end["lost"] + len(kept) + samples >= total
    assert end["events"] - end["lost"] == len(kept) + samples


def test_a_full_disk_costs_events_and_nothing_else(tmp_path: pathlib.Path) -> None:
    """What was written stays whole, what could not be is counted, and it goes on once there is room."""
    code = f"""
import resource, signal, sys, time
from fastio.trace import recorder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
recorder.start({str(tmp_path)!r}, recorder.Limits(1 << 16, 1 << 30, 1 << 40))
def put(name, count):
    for number in range(count):
        recorder.active.put(("P", time.monotonic_ns(), number, None, name, 1, {{"bytes": number}}))
        if number % 1000 == 0:
            time.sleep(0.01)
put("test.before", 100)
time.sleep(1)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
put("test.full", 10_000)
time.sleep(1)
assert "File too large" in recorder.active.failure, recorder.active.failure
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
put("test.after", 100)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=pathlib.Path(recorder.__file__).parents[2])
    (file,) = traces.read(tmp_path)
    names = [event.name for event in file.events]
    assert names.count("test.before") == names.count("test.after") == 100
    samples = names.count("process.resources")
    assert 0 < names.count("test.full") < 10_000
    assert file.lost >= 10_000 - names.count("test.full")
    assert file.ended
    assert file.notes[-1]["events"] == len(names) == 200 + names.count("test.full") + samples


def test_each_child_has_a_file_of_its_own(start: Callable[..., Recorder], tmp_path: pathlib.Path) -> None:
    found = start()
    put(found, 0)
    for child in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                assert recorder.active is not None
                put(recorder.active, 100 + child)
                recorder.stop()
            finally:
                os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    put(found, 1)
    recorder.stop()
    files = traces.read(tmp_path)
    assert len(files) == 4
    numbers = {
        file.head["pid"]: [event.values["bytes"] for event in file.events if event.name == "test.event"]
        for file in files
    }
    assert numbers.pop(os.getpid()) == [0, 1]
    assert sorted(numbers.values()) == [[100], [101], [102]]
    assert all(file.ended for file in files)


def test_a_child_that_runs_something_else_has_none(start: Callable[..., Recorder], tmp_path: pathlib.Path) -> None:
    put(start(), 0)
    for _ in range(3):
        subprocess.run(["true"], check=True, preexec_fn=lambda: None)
    recorder.stop()
    assert len(traces.read(tmp_path)) == 1


def test_the_end_of_the_process_ends_the_file(tmp_path: pathlib.Path) -> None:
    code = f"""
import time
from fastio.trace import recorder
recorder.start({str(tmp_path)!r}, recorder.Limits(1 << 16, 1 << 30, 1 << 40))
for number in range(5000):
    recorder.active.put(("P", time.monotonic_ns(), number, None, "test.event", 1, {{}}))
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=pathlib.Path(recorder.__file__).parents[2])
    (file,) = traces.read(tmp_path)
    assert file.ended
    assert sum(event.name == "test.event" for event in file.events) == 5000


@needs_eventlet
@pytest.mark.skipif(MONKEY_PATCHED, reason="the process that is started is patched in its own order")
@pytest.mark.parametrize("early", [True, False], ids=["before", "after"])
def test_monkey_patching_before_or_after_the_first_event(tmp_path: pathlib.Path, early: bool) -> None:
    """A thread writes until there are greenlets, and one of those from then on."""
    lines = ["recorder.start(directory, recorder.Limits(1 << 16, 1 << 30, 1 << 40))", "put(0)"]
    patching = ["import eventlet", "eventlet.monkey_patch()"]
    code = f"""
import os, sys, time
from fastio.trace import recorder
directory = {str(tmp_path)!r}
def put(number):
    recorder.active.put(("P", time.monotonic_ns(), number, None, "test.event", 1, {{}}))
{chr(10).join([*patching, *lines] if early else [*lines, *patching])}
deadline = time.monotonic() + 20
number = 0
while recorder.active.written < 10 or recorder.active.mode is not None:
    assert time.monotonic() < deadline
    number += 1
    put(number)
    eventlet.sleep(0.01)
assert recorder.active._green
print(number + 1)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60, stdout=subprocess.PIPE, text=True,
        cwd=pathlib.Path(recorder.__file__).parents[2],
    )  # fmt: skip
    (file,) = traces.read(tmp_path)
    assert file.ended
    numbers = [event.span for event in file.events if event.name == "test.event"]
    assert numbers == list(range(int(done.stdout)))


def test_a_killed_process_leaves_whole_lines_and_no_end(tmp_path: pathlib.Path) -> None:
    code = f"""
import time
from fastio.trace import recorder
recorder.start({str(tmp_path)!r}, recorder.Limits(1 << 16, 1 << 30, 1 << 40))
while True:
    recorder.active.put(("P", time.monotonic_ns(), 1, None, "test.event", 1, {{"bytes": 1}}))
    time.sleep(0.0005)
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=pathlib.Path(recorder.__file__).parents[2])
    wait_until(lambda: any(b"test.event" in path.read_bytes() for path in tmp_path.iterdir()))
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    (file,) = traces.read(tmp_path)
    assert file.events
    assert not file.ended


def test_values_that_are_none_of_json_do_not_cost_the_others(
    start: Callable[..., Recorder], tmp_path: pathlib.Path
) -> None:
    found = start()
    found.put(("E", 1, 1, None, "test.event", 1, {"outcome": object()}))
    # orjson's have 64 bits.
    found.put(("P", 1, 1, None, "test.event", 1, {"bytes": 1 << 80}))
    put(found, 2)
    recorder.stop()
    (file,) = traces.read(tmp_path)
    assert [event.values for event in file.events if event.name == "test.event"] == [
        {"outcome": "***"}, {"bytes": 1 << 80}, {"bytes": 2},
    ]  # fmt: skip


#: what is between two events, among other things
TEXTS = st.text(max_size=8) | st.text('}],["\\BEP\n', max_size=12)
VALUES = st.dictionaries(
    TEXTS,
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    max_size=5,
)


@pytest.fixture(params=["as installed", "without orjson"], scope="module")
def encoder(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "without orjson":
            patch.setitem(sys.modules, "orjson", None)
            patch.setattr(recorder, "_encode", recorder._encoder())
        yield


@given(st.sampled_from("BEP"), st.integers(0), st.integers(0), st.none() | st.integers(0), st.integers(0), VALUES)
def test_a_line_is_what_json_says(
    encoder: None, kind: str, when: int, span: int, parent: int | None, thread: int, values: dict[str, object]
) -> None:
    event = (kind, when, span, parent, "test.event", thread, values)
    for count in (1, 2, 5):
        found = recorder.encode([event] * count).split(b"\n")
        assert found.pop() == b""
        assert [json.loads(line) for line in found] == [list(event)] * count


def test_samples_tell_what_the_process_uses() -> None:
    held = bytearray(os.urandom(32 << 20))
    found = resources.sample()
    assert found["rss"] > len(held)
    assert found["cpu_s"] > 0
    assert found["threads"] == len(os.listdir("/proc/self/task"))
    assert 0 < found["fds"] <= resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert {"read", "write", "net_sent", "net_received", "wall"} <= set(found)
    with open(os.devnull, "wb", 0) as file:
        file.write(bytes(100_000))
    assert resources.sample()["write"] >= found["write"] + 100_000
