"""Samples of what machines and their server processes use during a load: processors, memory, network, disk.

A sample holds raw counters, so that what was used between any two moments can be computed later on
(:mod:`benchmarks.load.usage`). Samples go to a gzipped file, a line of JSON for each; the first one describes the
machine. Samples of machines elsewhere are taken by an agent there (:mod:`benchmarks.load.agent`).
"""

import contextlib
import fnmatch
import gzip
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

import psutil

from benchmarks.harness.probes import server_cpu_seconds
from benchmarks.load import Wrong, files

FORMAT = "fastio-load-samples"
VERSION = 2

#: Seconds between two samples.
PERIOD = 0.25
#: Samples between two looks for processes that are new.
LOOK_EVERY = 4
#: Threads of a process that a sample names: the busiest ones.
THREADS = 4


class Source(Protocol):
    """Gives samples of a machine."""

    def about(self) -> dict[str, Any]:
        """The machine."""

    def clock(self) -> float:
        """Its time, in seconds since the epoch."""

    def sample(self) -> dict[str, Any]:
        """The counters now; times are in seconds, sizes in bytes."""


class Sampler:
    """Takes samples of this machine.

    :param pids: processes that are watched, and with each what it has started
    :param patterns: name -> pattern of the shell; the processes whose command line has it are watched as well. Agents
        are given them by others, who could have a regular expression take for ever
    """

    def __init__(self, pids: Sequence[int] = (), patterns: Mapping[str, str] | None = None) -> None:
        self._pids = pids
        self._patterns = {name: f"*{each}*" for name, each in (patterns or {}).items()}
        self._processes: dict[int, tuple[str, psutil.Process]] = {}
        self._count = 0

    def processes(self) -> dict[int, tuple[str, psutil.Process]]:
        """Those that are there now, with their names."""
        found: dict[int, tuple[str, psutil.Process]] = {}
        for pid in self._pids:
            # Most are children of one before them.
            if pid not in found:
                with contextlib.suppress(psutil.Error):
                    server = psutil.Process(pid)
                    for each in (server, *server.children(recursive=True)):
                        found.setdefault(each.pid, (title(each), each))
        for process in psutil.process_iter() if self._patterns else ():
            if process.pid != os.getpid():
                with contextlib.suppress(psutil.Error):
                    command = " ".join(process.cmdline())
                    for name, pattern in self._patterns.items():
                        if fnmatch.fnmatchcase(command, pattern):
                            found.setdefault(process.pid, (name, process))
        return found

    def about(self) -> dict[str, Any]:
        # Megabits in a second, where the interface has a speed.
        speeds = {name: each.speed for name, each in psutil.net_if_stats().items() if each.speed}
        return {"host": socket.gethostname(), "speeds": speeds}

    def clock(self) -> float:
        return time.time()

    def sample(self) -> dict[str, Any]:
        if self._count % LOOK_EVERY == 0:
            self._processes = self.processes()
        self._count += 1
        memory = psutil.virtual_memory()
        network = psutil.net_io_counters(pernic=True)
        disks = {name: each for name, each in (psutil.disk_io_counters(perdisk=True) or {}).items()
                 if each.read_bytes or each.write_bytes}  # fmt: skip
        counters: dict[str, dict[str, float]] = {
            "core": {str(number): _busy(each) for number, each in enumerate(psutil.cpu_times(percpu=True))},
            "sent": {name: each.bytes_sent for name, each in network.items()},
            "received": {name: each.bytes_recv for name, each in network.items()},
            "read": {name: each.read_bytes for name, each in disks.items()},
            "written": {name: each.write_bytes for name, each in disks.items()},
            "busy": {name: getattr(each, "busy_time", 0) / 1000 for name, each in disks.items()},
        }
        found: dict[str, Any] = {
            "time": round(time.time(), 4), "memory": [memory.total - memory.available, memory.total],
            "counters": counters, "processes": {},
        }  # fmt: skip
        for pid, (name, process) in list(self._processes.items()):
            try:
                with process.oneshot():
                    used = {"process cpu": round(server_cpu_seconds([pid]), 6)}
                    threads = [(each.user_time + each.system_time, each.id) for each in process.threads()]
                    watched = {"name": name, "memory": process.memory_info().rss, "cores": process.cpu_affinity()}
                    with contextlib.suppress(psutil.Error):
                        moved = process.io_counters()
                        used |= {"process read": moved.read_bytes, "process written": moved.write_bytes}
            except psutil.Error:
                del self._processes[pid]
                continue
            found["processes"][str(pid)] = watched
            for group, value in used.items():
                counters.setdefault(group, {})[str(pid)] = value
            for spent, number in sorted(threads, reverse=True)[:THREADS]:
                counters.setdefault("thread", {})[f"{pid} {number}"] = round(spent, 3)
        return found


def title(process: psutil.Process) -> str:
    """Return the name of a process: its program, or the script or module that an interpreter runs."""
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


def _busy(times: Any) -> float:
    idle = times.idle + getattr(times, "iowait", 0)
    # Time of guests is within that of users.
    return round(sum(times) - idle - getattr(times, "guest", 0) - getattr(times, "guest_nice", 0), 3)


def write(file: TextIO, line: Mapping[str, Any]) -> None:
    """Add a line to a file of samples."""
    file.write(json.dumps(line, separators=(",", ":")) + "\n")


@contextlib.contextmanager
def monitored(source: Source, path: Path, problems: list[str], period: float = PERIOD) -> Iterator[None]:
    """Write samples to a file while the block goes on: at its beginning, every ``period`` seconds, and at its end.

    :param problems: why they end before, if they do, is added here
    """
    offset, error = files.clock_ahead(source.clock)
    about = {"format": FORMAT, "version": VERSION, **source.about(), "clock_offset": offset, "clock_error": error}
    ended = threading.Event()

    def go_on() -> None:
        due = time.monotonic()
        with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
            write(file, about)
            try:
                while not ended.is_set():
                    write(file, source.sample())
                    # After a pause of the whole machine there is nothing to be made up for.
                    due = max(due + period, time.monotonic() - period)
                    ended.wait(max(0.0, due - time.monotonic()))
                write(file, source.sample())
            except Exception as error:
                problems.append(f"{error}; its samples end before the run does")

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def patterns(texts: Sequence[str]) -> dict[str, str]:
    """``NAME=PATTERN``, or a pattern that is its own name; raises :class:`Wrong` for one that is none."""
    found = {}
    for text in texts:
        name, equals, pattern = text.partition("=")
        pattern = pattern if equals else text
        if not pattern:
            raise Wrong(f"{text!r} is not NAME=PATTERN")
        found[name if equals else text] = pattern
    return found
