"""Use of machines in a part of a run: the samples of :mod:`benchmarks.load.monitor` at the time of the operations.

Counters are interpolated linearly between samples, so a part may begin and end anywhere. Clocks of other machines
are put right by what the agent's clock was off.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy

from benchmarks.load import Wrong, files
from benchmarks.load.monitor import FORMAT, VERSION


@dataclass
class Process:
    """All processes of a name, on one machine. Means over the time; rates are in bytes a second."""

    host: str
    name: str
    pids: list[int]
    #: processors that they used, together
    cpu: float
    #: share of the busiest thread among theirs
    thread: float
    #: cores that they may run on
    cores: list[int]
    #: bytes that they had resident, at the most
    memory: int
    read: float
    written: float


@dataclass
class Machine:
    """A machine."""

    host: str
    #: busy share of each core
    cores: list[float]
    #: bytes in use at the most, and bytes that there are
    memory: int
    memory_total: int
    #: interface -> bytes a second sent and received
    network: dict[str, list[float]]
    #: interface -> bytes a second that it can, where that is known
    speeds: dict[str, float]
    #: disk -> bytes a second read and written, and the share of the time in which it was busy
    disks: dict[str, list[float]]

    @property
    def cpu(self) -> float:
        """Processors in use."""
        return sum(self.cores)


@dataclass
class Usage:
    """Of a part of a run."""

    #: of the part
    seconds: float
    machines: list[Machine] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    #: descriptions of the machines whose usage is not known
    problems: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Samples:
    """The samples of one machine."""

    def __init__(self, path: Path) -> None:
        lines = list(_lines(path))
        first = lines[0] if lines else {}
        try:
            files.check(first, "samples", FORMAT, VERSION)
        except Wrong as error:
            raise Wrong(f"{path}: {error}") from error
        self.path, self.about = path, first
        self.samples = [each for each in lines[1:] if "time" in each]
        self.times = numpy.array([each["time"] - first["clock_offset"] for each in self.samples])

    def add_to(self, usage: Usage, begin: float, end: float) -> None:
        """Add what was used from one moment to the other, in seconds since the epoch.

        :raises Wrong: if there are no samples of that time
        """
        if len(self.times) < 2 or end <= self.times[0] or begin >= self.times[-1]:
            raise Wrong(f"{self.path}: no samples from {begin:.1f} to {end:.1f}")
        begin, end = max(begin, float(self.times[0])), min(end, float(self.times[-1]))
        # Those in between, and one before and after.
        first = max(0, int(numpy.searchsorted(self.times, begin, "right")) - 1)
        within = self.samples[first : int(numpy.searchsorted(self.times, end, "left")) + 1]
        rates = self._rates(within, begin, end)
        usage.machines.append(
            Machine(
                host=self.about["host"],
                cores=[min(1.0, each) for each in rates["core"].values()],
                memory=max(sample["memory"][0] for sample in within), memory_total=within[0]["memory"][1],
                network={name: [sent, rates["received"][name]] for name, sent in rates["sent"].items()},
                speeds={name: megabits * 125e3 for name, megabits in self.about["speeds"].items()},
                disks={name: [read, rates["written"][name], rates["busy"][name]]
                       for name, read in rates["read"].items()},
            )
        )  # fmt: skip
        names = {pid: each["name"] for sample in within for pid, each in sample["processes"].items()}
        for name in sorted(set(names.values())):
            pids = [pid for pid in names if names[pid] == name]
            own = [[sample["processes"][pid] for pid in pids if pid in sample["processes"]] for sample in within]

            def total(group: str, pids: Sequence[str] = pids) -> float:
                return sum(rates.get(group, {}).get(pid, 0.0) for pid in pids)

            threads = [rate for thread, rate in rates.get("thread", {}).items() if thread.partition(" ")[0] in pids]
            usage.processes.append(
                Process(
                    host=self.about["host"], name=name, pids=[int(pid) for pid in pids], cpu=total("process cpu"),
                    thread=max(threads, default=0.0),
                    cores=sorted({core for sample in own for process in sample for core in process["cores"]}),
                    memory=max(sum(process["memory"] for process in sample) for sample in own),
                    read=total("process read"), written=total("process written"),
                )
            )  # fmt: skip

    def _rates(self, within: Sequence[dict[str, Any]], begin: float, end: float) -> dict[str, dict[str, float]]:
        """By how much each counter of these samples grew, in a second."""
        found: dict[str, dict[str, float]] = {}
        names = dict.fromkeys(
            (group, name) for each in within for group, own in each["counters"].items() for name in own
        )
        for group, name in names:
            values = [each["counters"].get(group, {}).get(name, numpy.nan) for each in self.samples]
            known = ~numpy.isnan(values)
            first, last = numpy.interp([begin, end], self.times[known], numpy.array(values)[known])
            found.setdefault(group, {})[name] = float(last - first) / (end - begin)
        return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines, up to where the file was cut off if it was."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)
    except (EOFError, zlib.error, gzip.BadGzipFile, ValueError):
        return


def of(samples: Sequence[Samples], begin: float, end: float) -> Usage:
    """Return what was used on all machines; one whose samples end before, because its agent was lost, is a problem."""
    usage = Usage(end - begin)
    for each in samples:
        try:
            each.add_to(usage, begin, end)
        except Wrong as error:
            usage.problems.append(str(error))
    return usage


def read(directory: Path) -> list[Samples]:
    """All samples in a directory.

    :raises Wrong: if a file holds none
    """
    return [Samples(path) for path in sorted(directory.glob("samples-*.jsonl.gz"))]
