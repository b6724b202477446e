"""The recorder: bounded, never in the way, whole lines, one set of files per process."""

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastio.trace import recorder, resources, spans
from fastio.trace.recorder import Limits, Recorder
from tests.conftest import MONKEY_PATCHED, needs_eventlet
from tests.eventually import until
from tests.trace import traces

LIMITS = Limits(buffer=1 << 16, file_size=64 << 20, total_size=1 << 30)


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Iterator[Callable[..., Recorder]]:
    def start(directory: pathlib.Path = tmp_path, **limits: int) -> Recorder:
        recorder.start(str(directory), LIMITS._replace(**limits))
        assert recorder.active is not None
        return recorder.active

    yield start
    recorder.stop()


def put(*numbers: int) -> None:
    for number in numbers:
        spans.event("P", number, None, "test.event", {"bytes": number})


def kept(*files: traces.File) -> list[int]:
    """The numbers of those that are in the files."""
    return [event.values["bytes"] for file in files for event in file.events if event.name == "test.event"]


def stopped(directory: pathlib.Path) -> traces.File:
    """The one file, with all that there was to write."""
    recorder.stop()
    (file,) = traces.read(directory)
    return file


def wait_until_written(directory: pathlib.Path, text: bytes = b"test.event") -> None:
    until(lambda: any(text in path.read_bytes() for path in directory.iterdir()), repr(text))


def test_what_is_recorded_is_in_the_file(start, tmp_path):
    start().component = "a-service"
    put(*range(1000))
    file = stopped(tmp_path)
    assert kept(file) == list(range(1000))
    assert (file.head["pid"], file.head["component"], file.head["file"]) == (os.getpid(), "a-service", 0)
    assert file.ended
    assert (file.notes[-1]["events"], file.notes[-1]["lost"]) == (len(file.events), 0)
    assert file.path.stat().st_mode & 0o007 == 0


@pytest.mark.parametrize(
    ("umask", "file", "directory"), [(0o077, 0o600, 0o700), (0o022, 0o640, 0o750), (0, 0o640, 0o750)]
)  # fmt: skip
def test_the_umask_holds(start, tmp_path, umask, file, directory):
    before = os.umask(umask)
    try:
        start(tmp_path / "trace")
        put(1)
        recorder.stop()
    finally:
        os.umask(before)
    assert (tmp_path / "trace").stat().st_mode & 0o777 == directory
    (path,) = (tmp_path / "trace").iterdir()
    assert path.stat().st_mode & 0o777 == file


def test_a_process_that_records_nothing_has_no_file(start, tmp_path):
    start()
    recorder.stop()
    assert list(tmp_path.iterdir()) == []


def test_events_are_written_while_the_process_runs(start, tmp_path):
    """A process that is killed has lost no more than those of the last moment."""
    start()
    put(1)
    wait_until_written(tmp_path)
    # However often the writer has looked, nothing is lost.
    put(2)
    file = stopped(tmp_path)
    assert kept(file) == [1, 2]
    assert (file.lost, file.notes[-1]["lost"]) == (0, 0)


@pytest.mark.skipif(MONKEY_PATCHED, reason="there it is a greenlet")
def test_the_writer_is_a_thread_of_the_operating_system(start, tmp_path):
    before = set(os.listdir("/proc/self/task"))
    start()
    put(1)
    wait_until_written(tmp_path)
    assert len(set(os.listdir("/proc/self/task")) - before) == 1


def test_events_that_do_not_fit_are_counted(start, tmp_path):
    found = start(buffer=256)
    put(*range(200_000))
    assert len(found.buffer) <= 256 + 1
    file = stopped(tmp_path)
    assert file.lost > 0
    assert len(kept(file)) + file.lost == 200_000
    assert file.notes[-1]["lost"] == file.lost


def test_each_note_tells_of_the_losses_since_the_last_one(start, tmp_path):
    start(buffer=16)
    put(*range(1000))
    wait_until_written(tmp_path, b'{"lost":')
    put(*range(1000))
    file = stopped(tmp_path)
    assert sum("lost" in note and "end" not in note for note in file.notes) >= 2
    assert file.lost == file.notes[-1]["lost"]
    assert file.lost + len(kept(file)) == 2000


def test_many_threads_lose_nothing_uncounted(start, tmp_path):
    start(buffer=512)
    threads = [threading.Thread(target=put, args=range(20_000)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file = stopped(tmp_path)
    assert len(kept(file)) + file.lost == 80_000


def test_files_are_rotated_and_the_oldest_deleted(start, tmp_path):
    start(buffer=1 << 20, file_size=64 << 10, total_size=256 << 10)
    total = 20_000
    put(*range(total))
    recorder.stop()
    files = sorted(traces.read(tmp_path), key=lambda file: file.head["file"])
    numbers = [file.head["file"] for file in files]
    assert len(files) > 1
    assert numbers == list(range(numbers[0], numbers[0] + len(files)))
    assert numbers[0] > 0
    # A file is a batch of events larger than its bound at most.
    assert sum(file.path.stat().st_size for file in files) <= (256 << 10) + (64 << 10)
    # The newest stay, in order, and what has gone is counted.
    left = kept(*files)
    assert left == list(range(total - len(left), total))
    end = files[-1].notes[-1]
    samples = sum(event.name == "process.resources" for file in files for event in file.events)
    assert end["lost"] + len(left) + samples >= total
    assert end["events"] - end["lost"] == len(left) + samples


PROCESS = """
import os, resource, signal, sys, time
from fastio.trace import recorder, spans
recorder.start(sys.argv[1], recorder.Limits(1 << 16, 1 << 30, 1 << 40))
def put(name, number):
    spans.event("P", number, None, name, {"bytes": number})
"""


def test_a_full_disk_costs_events_and_nothing_else(run_python, tmp_path):
    """What was written stays whole, what could not be is counted, and it goes on once there is room."""
    code = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
deadline = time.monotonic() + 60
def many(name, count, until):
    for number in range(count):
        put(name, number)
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.01)
found = recorder.active
many("test.before", 100, lambda: found.written >= 100)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
many("test.full", 100, lambda: found.written >= 200)
many("test.full", 9_900, lambda: found.failure)
assert "File too large" in found.failure, found.failure
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
many("test.after", 100, lambda: True)
"""
    run_python(PROCESS + code, str(tmp_path))
    (file,) = traces.read(tmp_path)
    names = [event.name for event in file.events]
    assert names.count("test.before") == names.count("test.after") == 100
    samples = names.count("process.resources")
    assert 0 < names.count("test.full") < 10_000
    assert file.lost >= 10_000 - names.count("test.full")
    assert file.ended
    assert file.notes[-1]["events"] == len(names) == 200 + names.count("test.full") + samples


def test_each_child_has_a_file_of_its_own(start, tmp_path):
    start()
    put(0)
    for child in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                put(100 + child)
                recorder.stop()
            finally:
                os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    put(1)
    recorder.stop()
    files = traces.read(tmp_path)
    assert len(files) == 4
    numbers = {file.head["pid"]: kept(file) for file in files}
    assert numbers.pop(os.getpid()) == [0, 1]
    assert sorted(numbers.values()) == [[100], [101], [102]]
    assert all(file.ended for file in files)


def test_a_child_that_runs_something_else_has_none(start, tmp_path):
    start()
    put(0)
    for _ in range(3):
        subprocess.run(["true"], check=True, preexec_fn=lambda: None)
    stopped(tmp_path)


def test_the_end_of_the_process_ends_the_file(run_python, tmp_path):
    run_python(PROCESS + "for number in range(5000): put('test.event', number)", str(tmp_path))
    (file,) = traces.read(tmp_path)
    assert file.ended
    assert kept(file) == list(range(5000))


@needs_eventlet
@pytest.mark.skipif(MONKEY_PATCHED, reason="the process that is started is patched in its own order")
@pytest.mark.parametrize("early", [True, False], ids=["before", "after"])
def test_monkey_patching_before_or_after_the_first_event(run_python, tmp_path, early):
    """A thread writes until there are greenlets, and one of those from then on."""
    patching = "import eventlet\neventlet.monkey_patch()\n"
    begin = PROCESS + "put('test.event', 0)\n"
    code = """
deadline = time.monotonic() + 60
number = 0
while recorder.active.written < 10 or recorder.active.mode is not None:
    assert time.monotonic() < deadline
    number += 1
    put("test.event", number)
    eventlet.sleep(0.01)
assert recorder.active._green
print(number + 1)
"""
    done = run_python((patching + begin if early else begin + patching) + code, str(tmp_path), options=("-W", "ignore"))
    (file,) = traces.read(tmp_path)
    assert file.ended
    assert kept(file) == list(range(int(done.stdout)))


def test_a_killed_process_leaves_whole_lines_and_no_end(run_python, tmp_path):
    code = """
while not os.listdir(sys.argv[1]) or not recorder.active.written:
    put("test.event", 1)
    time.sleep(0.0005)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_python(PROCESS + code, str(tmp_path), check=False).returncode == -signal.SIGKILL
    (file,) = traces.read(tmp_path)
    assert kept(file)
    assert not file.ended


def test_values_that_are_none_of_json_do_not_cost_the_others(start, tmp_path):
    start()
    spans.event("E", 1, None, "test.event", {"outcome": object()})
    # orjson's have 64 bits.
    spans.event("P", 1, None, "test.event", {"bytes": 1 << 80})
    put(2)
    assert [event.values for event in stopped(tmp_path).events if event.name == "test.event"] == [
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
    # What earlier tests have left may end meanwhile.
    before, found, after = len(os.listdir("/proc/self/task")), resources.sample(), len(os.listdir("/proc/self/task"))
    assert before >= found["threads"] >= after
    assert found["rss"] > len(held)
    assert found["cpu_s"] > 0
    assert 0 < found["fds"] <= resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert {"read", "write", "net_sent", "net_received", "wall"} <= set(found)
    with open(os.devnull, "wb", 0) as file:
        file.write(bytes(100_000))
    assert resources.sample()["write"] >= found["write"] + 100_000
