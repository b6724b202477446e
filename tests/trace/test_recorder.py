"""The recorder: bounded, never in the way, whole lines, files of each process's own."""

import json
import logging
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fastio.trace import recorder, spans
from fastio.trace.recorder import Recorder
from tests.conftest import MONKEY_PATCHED, needs_eventlet
from tests.eventually import until
from tests.forked import in_a_fork
from tests.trace import traces


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Iterator[Callable[..., Recorder]]:
    def start(directory: pathlib.Path = tmp_path) -> Recorder:
        recorder.start(str(directory))
        assert recorder.active is not None
        return recorder.active

    yield start
    recorder.stop()


def put(*numbers: int) -> None:
    for number in numbers:
        spans.Span("test.root", None, {"bytes": number}).end()


def kept(directory: pathlib.Path) -> list[int]:
    return [span.values["bytes"] for span in traces.spans(directory)]


def test_recorded_spans_are_in_the_file(start: Any, tmp_path: pathlib.Path) -> None:
    found = start()
    found.component = "a-service"
    put(*range(1000))
    recorder.stop()
    (path,) = traces.files(tmp_path)
    assert kept(tmp_path) == list(range(1000))
    assert (found.written, found.lost) == (1000, 0)
    resource = traces.spans(tmp_path)[0].resource
    assert (resource["process.pid"], resource["service.name"]) == (os.getpid(), "a-service")
    assert path.stat().st_mode & 0o007 == 0


@pytest.mark.parametrize(
    ("umask", "file", "directory"), [(0o077, 0o600, 0o700), (0o022, 0o640, 0o750), (0, 0o640, 0o750)]
)  # fmt: skip
def test_the_umask_holds(start: Any, tmp_path: pathlib.Path, umask: int, file: int, directory: int) -> None:
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


def test_a_process_that_records_nothing_has_no_file(start: Any, tmp_path: pathlib.Path) -> None:
    start()
    recorder.stop()
    assert list(tmp_path.iterdir()) == []


def test_a_request_is_written_when_it_has_ended(start: Any, tmp_path: pathlib.Path) -> None:
    """A process that is killed has lost no more than what is under way."""
    start()
    put(1)
    until(lambda: traces.files(tmp_path) and kept(tmp_path) == [1])
    put(2)
    until(lambda: kept(tmp_path) == [1, 2])


@pytest.mark.skipif(MONKEY_PATCHED, reason="the thread is the system's in both")
def test_many_threads_lose_nothing(start: Any, tmp_path: pathlib.Path) -> None:
    found = start()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: put(*range(2000)), range(4)))
    recorder.stop()
    assert (len(kept(tmp_path)), found.written, found.lost) == (8000, 8000, 0)


def test_no_descriptor_is_kept(start: Any, tmp_path: pathlib.Path) -> None:
    """A daemon may close all that it has: nothing of ours writes to a number that is another file's by then."""
    start()
    before = set(os.listdir("/proc/self/fd"))
    put(1)
    until(lambda: traces.files(tmp_path) and kept(tmp_path) == [1])
    until(lambda: set(os.listdir("/proc/self/fd")) <= before)


@pytest.mark.parametrize("links", [True, False], ids=["a link", "a pipe"])
def test_an_object_in_place_of_a_file_is_not_written_to(start: Any, tmp_path: pathlib.Path, links: bool) -> None:
    found = start(tmp_path / "trace")
    path = pathlib.Path(found._path(0))
    other = tmp_path / "other"
    other.write_text("")
    if links:
        path.symlink_to(other)
    else:
        os.mkfifo(path)
    put(1)
    recorder.stop()
    assert (other.read_text(), found.lost) == ("", 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's files are worth it")
@pytest.mark.parametrize(("mode", "owner"), [(0o777, 0), (0o750, 12345)])
def test_root_writes_nothing_where_others_may(start: Any, tmp_path: pathlib.Path, mode: int, owner: int) -> None:
    directory = tmp_path / "trace"
    directory.mkdir()
    directory.chmod(mode)
    os.chown(directory, owner, -1)
    with pytest.raises(PermissionError, match="only root may own it"):
        start(directory)
    directory.chmod(mode | stat.S_ISVTX)
    if owner == 0:
        start(directory)


def test_files_are_rotated_and_the_oldest_deleted(
    start: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "FILE_SIZE", 16 << 10)
    monkeypatch.setattr(recorder, "FILES", 3)
    found = start()
    for number in range(300):
        put(number)
        if number % 10 == 0:
            # Otherwise files would be larger by the waiting lines.
            until(lambda: found.settle() or not found._unsettled)
    recorder.stop()
    paths = traces.files(tmp_path)
    # Lines that wait while a file gets full go into the same file.
    assert 1 <= len(paths) <= 3 and all(path.stat().st_size <= 32 << 10 for path in paths)
    left = sorted(kept(tmp_path))
    assert len(left) < 100 and left == list(range(300 - len(left), 300))


def test_all_files_together_are_bounded(start: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of processes that have ended, and nothing else is removed."""
    monkeypatch.setattr(recorder, "TOTAL_SIZE", 2500)
    names = [f"a-host-{number}-0123456789ab-0.jsonl" for number in range(4)] + ["own.jsonl"]
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(bytes(1000))
        os.utime(tmp_path / name, (number, number))
    (tmp_path / "b-1-0123456789ab-0.jsonl").symlink_to(tmp_path / "own.jsonl")
    start()
    # The names of hosts have no blanks or dashes; these have.
    assert len(os.listdir(tmp_path)) == 6
    recorder.stop()
    for name in names[:4]:
        (tmp_path / name).rename(tmp_path / name.replace("a-host", "host"))
    start()
    assert sorted(os.listdir(tmp_path)) == [
        "b-1-0123456789ab-0.jsonl", "host-2-0123456789ab-0.jsonl", "host-3-0123456789ab-0.jsonl", "own.jsonl"
    ]  # fmt: skip


PROCESS = """
import os, resource, signal, sys, time
from fastio.trace import recorder, spans
recorder.start(sys.argv[1])
def put(*numbers):
    for number in numbers:
        spans.Span("test.root", None, {"bytes": number}).end()
"""


def test_a_full_disk_costs_spans_and_one_line_in_the_log(run_python: Any, tmp_path: pathlib.Path) -> None:
    """Written lines stay whole, lost ones are counted, and it goes on once there is room."""
    code = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from fastio.trace.wsgi import traced
request = traced(lambda environ, start_response: [b""], "a-service")
found = recorder.active
def until(true):
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
        found.settle()
put(*range(10))
until(lambda: found.written == 10)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat(found._path(0)).st_size + 1000, hard))
for number in range(10, 20):
    put(number)
    until(lambda: found.written + found.lost == number + 1)
for _ in range(3):
    request({}, None)
until(lambda: found.written + found.lost == 23)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
put(*range(20, 30))
recorder.stop()
print(found.written, found.lost)
"""
    done = run_python(PROCESS + code, str(tmp_path))
    written, lost = map(int, done.stdout.split())
    assert written + lost == 33 and lost >= 10
    (line,) = done.stderr.splitlines()
    assert re.search(r"fastio: trace: \d+ spans could not be written to .* is the disk full", line)
    (path,) = traces.files(tmp_path)
    found, torn = [], 0
    for line in filter(None, path.read_text().splitlines()):
        try:
            found.append(json.loads(line))
        except ValueError:
            torn += 1
    assert (len(found), torn) == (written, 1)
    # The losses are in the trace as well.
    assert f'"fastio.lost","value":{{"intValue":"{lost}"}}' in path.read_text()


def test_each_child_has_a_separate_file(start: Any, tmp_path: pathlib.Path) -> None:
    start()
    put(0)
    outer = spans.begin("test.outer")
    with outer:
        for child in range(3):

            def record(number: int = 100 + child) -> int:
                # The parent's span is the parent's.
                outer.end()
                put(number)
                recorder.stop()
                return 0

            assert in_a_fork(record) == 0
    put(1)
    recorder.stop()
    assert len(traces.files(tmp_path)) == 4
    found: dict[int, list[Any]] = {}
    for span in traces.spans(tmp_path):
        found.setdefault(span.resource["process.pid"], []).append(span.values.get("bytes"))
    assert found.pop(os.getpid()) == [0, None, 1]
    assert sorted(found.values()) == [[100], [101], [102]]
    traces.well_formed(traces.spans(tmp_path))


def test_the_master_of_uwsgi_has_no_thread(start: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It forks its workers at any moment: a lock that a thread holds then would be held in them for ever."""
    worker = 0
    monkeypatch.setitem(sys.modules, "uwsgi", types.SimpleNamespace(worker_id=lambda: worker))
    found = start()
    put(1, 2)
    assert (kept(tmp_path), found.written, len(found._workers)) == ([1, 2], 2, 0)
    worker = 1
    put(3)
    assert len(found._workers) == 1


def test_a_child_that_runs_something_else_has_none(start: Any, tmp_path: pathlib.Path) -> None:
    start()
    put(0)
    for _ in range(3):
        subprocess.run(["true"], check=True, preexec_fn=lambda: None)
    recorder.stop()
    assert len(traces.files(tmp_path)) == 1


def test_the_end_of_the_process_writes_the_rest(run_python: Any, tmp_path: pathlib.Path) -> None:
    run_python(PROCESS + "put(*range(5000))", str(tmp_path))
    assert kept(tmp_path) == list(range(5000))


@needs_eventlet
@pytest.mark.skipif(MONKEY_PATCHED, reason="the process that is started is patched in its own order")
@pytest.mark.parametrize("early", [True, False], ids=["before", "after"])
def test_monkey_patching_before_or_after_the_first_span(run_python: Any, tmp_path: pathlib.Path, early: bool) -> None:
    patching = "import eventlet\neventlet.monkey_patch()\n"
    begin = PROCESS + "put(0)\n"
    code = "for number in range(1, 50):\n    put(number)\n    eventlet.sleep(0.001)\n"
    run_python((patching + begin if early else begin + patching) + code, str(tmp_path), options=("-W", "ignore"))
    assert kept(tmp_path) == list(range(50))


def test_a_killed_process_leaves_whole_lines(run_python: Any, tmp_path: pathlib.Path) -> None:
    code = """
while not os.listdir(sys.argv[1]) or not recorder.active.written:
    put(1)
    time.sleep(0.0005)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_python(PROCESS + code, str(tmp_path), check=False).returncode == -signal.SIGKILL
    assert kept(tmp_path)


def test_lines_that_cannot_be_queued_are_lost_and_counted(
    start: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recorder, "MOST_WAITING", 0)
    found = start()
    put(*range(5))
    with caplog.at_level(logging.WARNING, "fastio"):
        recorder.stop()
    assert (found.written, found.lost) == (0, 5)
    assert len(caplog.records) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_thread_that_was_lost_is_replaced(start: Any, tmp_path: pathlib.Path) -> None:
    found = start()
    put(0)
    until(lambda: found.settle() or found.written == 1)
    # An error that no step should raise, in the write of a line.
    usual = found._steps
    found._steps = map(os.close, [-1])
    put(100)
    (worker,) = found._workers
    until(lambda: worker._sink() is None)
    found._steps = usual
    put(*range(1, 10))
    # The line that was to be written is not lost: the thread ended before it took it.
    until(lambda: found.settle() or found.written == 11)
    assert (sorted(kept(tmp_path)), found.lost) == ([*range(10), 100], 0)
