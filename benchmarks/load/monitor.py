"""What machines and their server processes use while a load goes on: processors, memory, network, disk.

A sample holds counters as they are, so that what was used between any two moments can be told later on
(:mod:`benchmarks.load.usage`). Samples go to a gzipped file, a line of JSON for each, the first one says of which
machine; on machines elsewhere an agent takes them (:mod:`benchmarks.load.agent`).
"""

import contextlib
import gzip
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import psutil

from benchmarks.harness.probes import server_cpu_seconds
from benchmarks.load import Wrong

FORMAT = "fastio-load-samples"
VERSION = 1

#: Seconds between two samples.
PERIOD = 0.25
#: Samples between two looks for processes that are new.
LOOK_EVERY = 4

#: Threads of a process that a sample names: the busiest ones.
THREADS = 4


class Watched:
    """Which processes are watched, by name.

    :param pids: name -> processes; what each has started is watched with it
    :param patterns: name -> regular expression; the processes whose command line has it
    """

    def __init__(
        self, pids: Mapping[str, Collection[int]] | None = None, patterns: Mapping[str, str] | None = None
    ) -> None:
        self._pids = {name: list(each) for name, each in (pids or {}).items()}
        self._patterns = {name: re.compile(each) for name, each in (patterns or {}).items()}

    def processes(self) -> dict[int, tuple[str, psutil.Process]]:
        """Those that are there now."""
        found: dict[int, tuple[str, psutil.Process]] = {}
        for name, pids in self._pids.items():
            for pid in pids:
                # Most are children of one before them.
                if pid not in found:
                    with contextlib.suppress(psutil.Error):
                        server = psutil.Process(pid)
                        for each in (server, *server.children(recursive=True)):
                            found.setdefault(each.pid, (name or title(each), each))
        for process in psutil.process_iter() if self._patterns else ():
            if process.pid != os.getpid():
                with contextlib.suppress(psutil.Error):
                    command = " ".join(process.cmdline())
                    for name, pattern in self._patterns.items():
                        if pattern.search(command):
                            found.setdefault(process.pid, (name, process))
        return found


def title(process: psutil.Process) -> str:
    """What a process is called: its program, or the script or module that an interpreter runs."""
    with contextlib.suppress(psutil.Error):
        words = process.cmdline()
        program = os.path.basename(words[0]) if words else process.name()
        if program.startswith("python"):
            for word, follower in zip(words[1:], [*words[2:], ""], strict=True):
                if word == "-m" and follower:
                    return follower
                if not word.startswith("-"):
                    return os.path.basename(word)
        return program
    return "?"


class Sampler:
    """Takes samples of this machine."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._processes: dict[int, tuple[str, psutil.Process]] = {}
        self._count = 0

    def sample(self) -> dict[str, Any]:
        """The counters now; times are in seconds, sizes in bytes."""
        if self._count % LOOK_EVERY == 0:
            self._processes = self._watched.processes()
        self._count += 1
        memory, disk = psutil.virtual_memory(), psutil.disk_io_counters(perdisk=True) or {}
        network = psutil.net_io_counters(pernic=True)
        found: dict[str, Any] = {
            "time": round(time.time(), 4),
            "cpus": [_busy(each) for each in psutil.cpu_times(percpu=True)],
            "memory": [memory.total - memory.available, memory.total],
            "network": {name: [each.bytes_sent, each.bytes_recv] for name, each in network.items()},
            "disks": {
                name: [each.read_bytes, each.write_bytes, getattr(each, "busy_time", 0)]
                for name, each in disk.items() if each.read_bytes or each.write_bytes
            },
            "processes": {},
        }  # fmt: skip
        for pid, (name, process) in list(self._processes.items()):
            try:
                found["processes"][str(pid)] = {"name": name, **self._process(process)}
            except psutil.Error:
                del self._processes[pid]
        return found

    def _process(self, process: psutil.Process) -> dict[str, Any]:
        with process.oneshot():
            cpu = server_cpu_seconds([process.pid])
            threads = sorted(process.threads(), key=lambda each: -(each.user_time + each.system_time))
            found: dict[str, Any] = {
                "cpu": round(cpu, 6),
                "threads": [[each.id, round(each.user_time + each.system_time, 3)] for each in threads[:THREADS]],
                "memory": process.memory_info().rss,
                "cores": process.cpu_affinity(),
            }
            with contextlib.suppress(psutil.Error):
                moved = process.io_counters()
                found["disk"] = [moved.read_bytes, moved.write_bytes]
        return found


def _busy(times: Any) -> float:
    idle = times.idle + getattr(times, "iowait", 0)
    # Time of guests is within that of users.
    return round(sum(times) - idle - getattr(times, "guest", 0) - getattr(times, "guest_nice", 0), 3)


def about() -> dict[str, Any]:
    """The machine whose samples follow."""
    speeds = {name: each.speed for name, each in psutil.net_if_stats().items() if each.speed}
    return {
        "host": socket.gethostname(), "cores": psutil.cpu_count(), "memory": psutil.virtual_memory().total,
        # Megabits in a second, where the interface has a speed.
        "speeds": speeds,
    }  # fmt: skip


class Log:
    """A file of samples."""

    def __init__(self, path: Path, first: Mapping[str, Any]) -> None:
        self._file: TextIO = gzip.open(path, "wt", compresslevel=1, encoding="utf-8")  # noqa: SIM115
        self._lock = threading.Lock()
        self.add({"format": FORMAT, "version": VERSION, **first})

    def add(self, line: Mapping[str, Any]) -> None:
        with self._lock:
            self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def close(self) -> None:
        with self._lock:
            self._file.close()


def go_on(sampler: Sampler, add: Callable[[dict[str, Any]], None], ended: threading.Event, period: float) -> None:
    """Sample at the beginning, then every ``period`` seconds, and once more at the end."""
    due = time.monotonic()
    while True:
        add(sampler.sample())
        # After a pause of the whole machine there is nothing to be made up for.
        due = max(due + period, time.monotonic() - period)
        if ended.wait(max(0.0, due - time.monotonic())):
            add(sampler.sample())
            return


@contextlib.contextmanager
def monitored(watched: Watched, path: Path, period: float = PERIOD) -> Iterator[None]:
    """Sample this machine while the block goes on."""
    log = Log(path, {**about(), "clock_offset": 0.0, "clock_error": 0.0})
    ended = threading.Event()
    thread = threading.Thread(target=go_on, args=(Sampler(watched), log.add, ended, period), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        log.close()


def patterns(texts: Sequence[str]) -> dict[str, str]:
    """``NAME=PATTERN``, or a pattern that is its own name; raises :class:`Wrong` for one that is none."""
    found = {}
    for text in texts:
        name, equals, pattern = text.partition("=")
        pattern = pattern if equals else text
        try:
            re.compile(pattern)
        except re.error as error:
            raise Wrong(f"{text!r} is not NAME=PATTERN: {error}") from error
        found[name if equals else text] = pattern
    return found
