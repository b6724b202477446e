"""The counts of this process as data and as text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from fastio import counters
from fastio.tables import Table
from fastio.version import VERSION


@dataclass(frozen=True)
class PatchMetrics:
    """What one patch did in this process."""

    #: calls that it took
    calls: int
    #: bytes that its own code moved or hashed; 0 for a patch that moves none
    bytes: int
    #: calls that it left to upstream's code, by :class:`fastio.counters.Cause`; only reasons that occurred
    fallbacks: Mapping[str, int]


@dataclass(frozen=True)
class Metrics:
    """What the fast paths did in this process since it began, or was forked."""

    pid: int
    #: seconds since the epoch at which the counts were zero
    since: float
    #: by the patch's name; only patches that this process has loaded
    patches: Mapping[str, PatchMetrics]
    #: what the I/O core did for all of them: ``exchanges``, ``reads``, ``writes``, ``bytes_in``, ``bytes_out``,
    #: ``waits`` and ``yields``, see :mod:`fastio.counters`
    io: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as ``fastio status --pid`` has it."""
        return asdict(self)

    def to_prometheus(self) -> str:
        """Return the text that Prometheus reads, each series with the pid of this process."""
        return text(self, {"pid": str(self.pid)})

    def series(self) -> Iterator[Series]:
        """Each count: the one source of all that gathers them."""
        for name, found in sorted(self.patches.items()):
            yield Series("calls", {"patch": name}, found.calls)
            yield Series("bytes", {"patch": name}, found.bytes)
            for reason, count in sorted(found.fallbacks.items()):
                yield Series("fallbacks", {"patch": name, "reason": reason}, count)
        for name, count in self.io.items():
            yield Series("io", {"what": name}, count)

    def table(self, patch: str = "") -> Table:
        """The counts of the patches that have taken or left a call, or of the one named ``patch``."""
        rows = [
            [name, str(found.calls), str(found.bytes), ", ".join(f"{key}={n}" for key, n in found.fallbacks.items())]
            for name, found in sorted(self.patches.items())
            if name == patch or not patch and (found.calls or found.fallbacks)
        ]
        return Table("", ["patch", "calls", "bytes", "fallbacks"], rows)


class Series(NamedTuple):
    """One count, which only grows."""

    #: one of :data:`COUNTERS`
    counter: str
    labels: Mapping[str, str]
    value: int


#: What is counted.
COUNTERS = {
    "calls": "Calls that a patch took.",
    "bytes": "Bytes that a patch's own code moved or hashed.",
    "fallbacks": "Calls that a patch left to upstream's code, by the reason.",
    "io": "Exchanges, reads, writes, bytes, waits and yields of the I/O core.",
}

#: The metrics for Prometheus: the type of each, and what it tells.
FAMILIES = {
    **{f"fastio_{name}_total": ("counter", meaning) for name, meaning in COUNTERS.items()},
    "fastio_start_time_seconds": ("gauge", "When the counts of the process began, in seconds since the epoch."),
    "fastio_info": ("gauge", "The release of fastio."),
}


def text(found: Metrics, more: Mapping[str, str]) -> str:
    """The text that Prometheus reads, with ``more`` labels of each series."""
    values: dict[str, list[tuple[Mapping[str, str], float]]] = {family: [] for family in FAMILIES}
    for each in found.series():
        values[f"fastio_{each.counter}_total"].append((each.labels, each.value))
    values["fastio_start_time_seconds"].append(({}, round(found.since, 3)))
    values["fastio_info"].append(({"version": VERSION}, 1))
    lines = []
    for family, (kind, meaning) in FAMILIES.items():
        lines += [f"# HELP {family} {meaning}", f"# TYPE {family} {kind}"]
        lines += [f"{family}{_labels({**labels, **more})} {value}" for labels, value in values[family]]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}" if labels else ""


def read() -> Metrics:
    """Return the counts as they are now."""
    return Metrics(
        pid=os.getpid(),
        since=counters.since,
        patches={
            tally.patch: PatchMetrics(
                tally.calls + tally.reads,
                tally.bytes + tally.bytes_in,
                {str(reason): count for reason, count in tally.fallbacks.items() if count},
            )
            for tally in counters.tallies()
        },
        io=counters.snapshot(),
    )


def total(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sum of what several processes did, each as :meth:`Metrics.to_dict` has it; its pid is 0."""
    since: list[float] = []
    patches: dict[str, dict[str, Any]] = {}
    io: Counter[str] = Counter()
    for part in parts:
        since.append(part["since"])
        io.update(part["io"])
        for name, found in part["patches"].items():
            sums = patches.setdefault(name, {"calls": 0, "bytes": 0, "fallbacks": Counter()})
            sums["calls"] += found["calls"]
            sums["bytes"] += found["bytes"]
            sums["fallbacks"].update(found["fallbacks"])
    return {"pid": 0, "since": min(since), "patches": patches, "io": io}


def from_dict(data: Mapping[str, Any]) -> Metrics:
    """What :meth:`Metrics.to_dict` was made from."""
    patches = {name: PatchMetrics(**found) for name, found in data["patches"].items()}
    return Metrics(data["pid"], data["since"], patches, data["io"])
