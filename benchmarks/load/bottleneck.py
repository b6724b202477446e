"""The resource that limits a load, the process that used it, and the figures that show this.

A resource that is used to :data:`SATURATED` of what there is cannot give much more. Several may be at once; what is
named first is what explains the others: who asks (the load generator), what was limited on purpose (a path's rate, a
quota), a process that is one thread, the cores, then disk, network and memory. If none is, more clients or a shorter
way is what would make it faster, and the figures of the nearest one are given.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.harness.statistics import BUSY
from benchmarks.load.usage import Machine, Process, Usage

#: Share of a resource from which it is the limit.
SATURATED = 0.85
#: Share of the time of a user that is thought or waited, from which the users are the limit.
IDLE = 0.5

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits that were set on purpose, and the load.

    :param processors: of the servers together: a quota, or the cores that they are pinned to; 0: no limit
    :param how: the limit is set, in words
    :param rate: bytes a second of the path to the servers; 0: any
    :param users: of the load
    :param think: seconds that each waits after an operation
    """

    processors: float = 0
    how: str = ""
    rate: float = 0
    users: int = 1
    think: float = 0


@dataclass(frozen=True)
class Share:
    """How much of a resource was used."""

    #: ``generator``, ``path``, ``quota``, ``thread``, ``cores``, ``disk``, ``network``, ``memory``,
    #: ``users`` or ``turns``
    resource: str
    #: the process, machine or device
    of: str
    share: float
    #: in words, with figures
    evidence: str


@dataclass(frozen=True)
class Bottleneck:
    """The resource that is the limit, and the use of the others."""

    #: the share that is the limit, None if no resource is
    limit: Share | None
    #: all shares, that of the limit first, then by size
    shares: tuple[Share, ...]

    @property
    def resource(self) -> str:
        return self.limit.resource if self.limit else "none"

    def __str__(self) -> str:
        if self.limit is not None:
            return f"{self.limit.resource} of {self.limit.of}: {self.limit.evidence}"
        nearest = self.shares[0] if self.shares else None
        told = f"; the most used is {nearest.resource} of {nearest.of}: {nearest.evidence}" if nearest else ""
        return f"no resource is used up{told}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "resource": self.resource, "text": str(self),
            "shares": [[each.resource, each.of, round(each.share, 3), each.evidence] for each in self.shares],
        }  # fmt: skip


def find(usage: Usage, figures: dict[str, Any], limits: Limits) -> Bottleneck:
    """The bottleneck of a run.

    :param usage: in the part of the run that counts
    :param figures: of the run, :func:`benchmarks.load.report.figures`
    """
    ordered = list(_shares(usage, figures, limits))
    limit = next((each for each in ordered if each.share >= SATURATED), None)
    rest = sorted((each for each in ordered if each is not limit), key=lambda each: -each.share)
    return Bottleneck(limit, tuple(([limit] if limit else []) + rest))


def _shares(usage: Usage, figures: dict[str, Any], limits: Limits) -> Iterator[Share]:
    """Yield how much of each resource was used, causes before their effects."""
    generator = figures.get("generator_cpu", 0.0)
    # It is one thread, and what counts is whether it had time left in nearly all seconds.
    words = f"its busiest worker used {generator:.2f} of its one processor"
    yield Share("generator", "the load generator", min(1.0, generator * SATURATED / BUSY), words)
    if limits.rate:
        moved = figures["bytes"] / figures["seconds"]
        words = f"{moved / MIB:.1f} of {limits.rate / MIB:.1f} MiB/s"
        yield Share("path", "the network path", moved / limits.rate, words)
    processes = sorted(usage.processes, key=lambda each: -each.cpu)
    used = sum(each.cpu for each in processes)
    servers = ", ".join(f"{each.name} {each.cpu:.2f}" for each in processes[:3] if each.cpu >= 0.005)
    if limits.processors and processes:
        words = f"the servers used {used:.2f} of {limits.processors:g} processors ({limits.how}): {servers}"
        yield Share("quota", processes[0].name, used / limits.processors, words)
    for each in sorted(processes, key=lambda each: -each.thread):
        if each.thread > 0:
            words = f"one thread used {each.thread:.2f} of the 1 processor that it can ({each.cpu:.2f} in all)"
            yield Share("thread", each.name, each.thread, words)
    for find_of in (_cores, _devices):
        found = [share for machine in usage.machines for share in find_of(machine, processes)]
        yield from sorted(found, key=lambda each: -each.share)
    # Too few concurrent requests.
    whole = figures.get("whole_p50_ms", 0.0) / 1000
    if limits.think and whole:
        share, think = limits.think / (limits.think + whole), limits.think * 1000
        words = f"{limits.users} users think {think:.0f} ms after each answer, which takes {whole * 1000:.0f} ms"
        # Half of the time is enough to halve what the servers have to do.
        yield Share("users", "the load", min(1.0, share * SATURATED / IDLE), words)
    elif not limits.think and processes:
        spent = (used + generator) / limits.users
        words = (
            f"{limits.users} users, and for each {spent:.2f} processors are at work one after the other: "
            f"the load generator {generator:.2f}, {servers}"
        )
        yield Share("turns", "the requests", min(1.0, spent), words)


def _cores(machine: Machine, processes: Sequence[Process]) -> Iterator[Share]:
    """The cores that the processes may run on, whoever else is on them; all of them, if there are none to watch."""
    own = [each for each in processes if each.host == machine.host]
    for cores in {tuple(each.cores) for each in own} or {tuple(range(len(machine.cores)))}:
        here = [each for each in own if tuple(each.cores) == cores]
        known = {core: machine.cores[core] for core in cores if core < len(machine.cores)}
        busy = sum(known.values())
        by_core = ", ".join(f"core {core} {share:.2f}" for core, share in known.items())
        parts = [*((each.name, each.cpu) for each in here[:3]), ("all others", busy - sum(each.cpu for each in here))]
        users = ", ".join(f"{name} {cpu:.2f}" for name, cpu in parts if cpu >= 0.05)
        words = f"{busy:.2f} of {len(known)} cores were busy ({by_core}){': ' + users if users else ''}"
        yield Share("cores", here[0].name if here else machine.host, busy / len(known) if known else 0.0, words)


def _devices(machine: Machine, _: Sequence[Process]) -> Iterator[Share]:
    for name, (read, written, busy) in machine.disks.items():
        words = f"busy {busy:.0%} of the time, {read / MIB:.1f} MiB/s read, {written / MIB:.1f} MiB/s written"
        yield Share("disk", f"{name} of {machine.host}", min(1.0, busy), words)
    for name, (sent, received) in machine.network.items():
        if name in machine.speeds:
            speed = machine.speeds[name]
            words = f"{sent / MIB:.1f} MiB/s sent, {received / MIB:.1f} MiB/s received of {speed / MIB:.1f} MiB/s"
            yield Share("network", f"{name} of {machine.host}", max(sent, received) / speed, words)
    words = f"{machine.memory / MIB:.0f} of {machine.memory_total / MIB:.0f} MiB in use"
    share = machine.memory / machine.memory_total
    # Memory that is nearly full slows nothing down; that it is full does.
    yield Share("memory", machine.host, share if share > 0.97 else min(share, SATURATED - 0.01), words)
