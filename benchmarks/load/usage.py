"""What was used in a part of a run: the samples of :mod:`benchmarks.load.monitor` at the time of the operations.

Counters are read in between two samples in proportion, so a part may begin and end anywhere. Clocks of other machines
are put right by what the agent's clock was off.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy

from benchmarks.load import Wrong, files
from benchmarks.load.monitor import FORMAT, VERSION

#: Disk counters of the kernel are in milliseconds.
_MILLISECONDS = 1000.0


class SamplesError(Wrong):
    """A file that holds no samples, or none of the time that is asked for."""


@dataclass
class Process:
    """All processes of a name, on one machine. Means over the time; rates are in bytes a second."""

    host: str
    name: str
    pids: list[int]
    #: processors that they used, together
    cpu: float
    #: the same of the busiest thread among theirs
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
            files.check(first, "samples", FORMAT, VERSION, SamplesError)
        except SamplesError as error:
            raise SamplesError(f"{path}: {error}") from error
        self.path, self.about = path, first
        self.samples = [each for each in lines[1:] if "time" in each]
        self.times = numpy.array([each["time"] - first["clock_offset"] for each in self.samples])

    def add_to(self, usage: Usage, begin: float, end: float) -> None:
        """Add what was used from one moment to the other, in seconds since the epoch.

        :raises SamplesError: if there are no samples of that time
        """
        if len(self.times) < 2 or end <= self.times[0] or begin >= self.times[-1]:
            raise SamplesError(f"{self.path}: no samples from {begin:.1f} to {end:.1f}")
        begin, end = max(begin, float(self.times[0])), min(end, float(self.times[-1]))
        # Those in between, and one before and after.
        first = max(0, int(numpy.searchsorted(self.times, begin, "right")) - 1)
        within = self.samples[first : int(numpy.searchsorted(self.times, end, "left")) + 1]
        host = self.about["host"]

        def rate(counter: Callable[[dict[str, Any]], float | None]) -> float:
            return self._rate(counter, begin, end)

        usage.machines.append(self._machine(host, within, rate))
        names: dict[str, list[str]] = {}
        for sample in within:
            for pid, process in sample["processes"].items():
                pids = names.setdefault(process["name"], [])
                if pid not in pids:
                    pids.append(pid)
        for name, pids in sorted(names.items()):
            usage.processes.append(self._process(host, name, pids, within, rate))

    def _rate(self, counter: Callable[[dict[str, Any]], float | None], begin: float, end: float) -> float:
        """By how much a counter grew, in a second."""
        known = [(moment, counter(sample)) for moment, sample in zip(self.times, self.samples, strict=True)]
        moments, values = numpy.array([each for each in known if each[1] is not None], dtype=float).reshape(-1, 2).T
        if len(moments) < 2:
            return 0.0
        first, last = numpy.interp([begin, end], moments, values)
        return float(last - first) / (end - begin)

    def _machine(self, host: str, within: Sequence[dict[str, Any]], rate: Callable[..., float]) -> Machine:
        def of(group: str, name: str, index: int) -> float:
            return rate(lambda sample: sample[group][name][index] if name in sample[group] else None)

        interfaces = sorted({name for sample in within for name in sample["network"]})
        disks = sorted({name for sample in within for name in sample["disks"]})
        cores = range(len(within[0]["cpus"]))
        return Machine(
            host=host,
            cores=[min(1.0, rate(lambda sample, core=core: sample["cpus"][core])) for core in cores],
            memory=max(sample["memory"][0] for sample in within), memory_total=within[0]["memory"][1],
            network={name: [of("network", name, 0), of("network", name, 1)] for name in interfaces},
            speeds={name: megabits * 125e3 for name, megabits in self.about.get("speeds", {}).items()},
            disks={
                name: [of("disks", name, 0), of("disks", name, 1), of("disks", name, 2) / _MILLISECONDS]
                for name in disks
            },
        )  # fmt: skip

    @staticmethod
    def _process(
        host: str, name: str, pids: Sequence[str], within: Sequence[dict[str, Any]], rate: Callable[..., float]
    ) -> Process:
        def of(pid: str, value: Callable[[dict[str, Any]], float | None]) -> float:
            return rate(lambda sample: value(sample["processes"][pid]) if pid in sample["processes"] else None)

        def thread(pid: str, number: int) -> float:
            return of(pid, lambda process: dict(map(tuple, process["threads"])).get(number))

        seen = [sample["processes"][pid] for sample in within for pid in pids if pid in sample["processes"]]
        threads = {
            (pid, number) for sample in within for pid in pids if pid in sample["processes"]
            for number, _ in sample["processes"][pid]["threads"]
        }  # fmt: skip
        memory = [sum(sample["processes"][pid]["memory"] for pid in pids if pid in sample["processes"])
                  for sample in within]  # fmt: skip

        def moved(index: int) -> float:
            return sum(of(pid, lambda process: process["disk"][index] if "disk" in process else None) for pid in pids)

        return Process(
            host=host, name=name, pids=[int(pid) for pid in pids],
            cpu=sum(of(pid, lambda process: process["cpu"]) for pid in pids),
            thread=max((thread(*each) for each in threads), default=0.0),
            cores=sorted({core for process in seen for core in process["cores"]}), memory=max(memory),
            read=moved(0), written=moved(1),
        )  # fmt: skip


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines, up to where the file was cut off if it was."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)
    except (EOFError, zlib.error, gzip.BadGzipFile, ValueError):
        return


def of(samples: Sequence[Samples], begin: float, end: float) -> Usage:
    """What was used on all machines; one whose samples end before, because its agent was lost, is a problem."""
    usage = Usage(end - begin)
    for each in samples:
        try:
            each.add_to(usage, begin, end)
        except SamplesError as error:
            usage.problems.append(str(error))
    return usage


def read(directory: Path) -> list[Samples]:
    """All samples in a directory.

    :raises SamplesError: if a file holds none
    """
    return [Samples(path) for path in sorted(directory.glob("samples-*.jsonl.gz"))]
