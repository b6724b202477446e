"""The counts of this process as data, as text for Prometheus, and as counters of OpenTelemetry."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fastio import counters, log
from fastio.patching import patcher
from fastio.patching.state import STATE
from fastio.report import Outcome, Report
from fastio.version import VERSION

if TYPE_CHECKING:
    from fastio.tables import Table


class PatchMetrics(NamedTuple):
    """The counts of one patch in this process."""

    #: calls that it took
    calls: int
    #: bytes that its own code moved or hashed; 0 for a patch that moves none
    bytes: int
    #: calls that it left to upstream's code, by :class:`fastio.counters.Cause`; only reasons that occurred
    fallbacks: Mapping[str, int]


class Metrics(NamedTuple):
    """The counts of the fast paths in this process since it began, or was forked."""

    pid: int
    #: seconds since the epoch at which the counts were zero
    since: float
    #: by the patch's name; only patches that this process has loaded
    patches: Mapping[str, PatchMetrics]
    #: counts of the I/O core for all of them: ``exchanges``, ``reads``, ``writes``, ``bytes_in``, ``bytes_out``,
    #: ``waits`` and ``yields``, see :mod:`fastio.counters`
    io: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as ``fastio status --pid --json`` prints it."""
        patches = {
            name: {**found._asdict(), "fallbacks": dict(found.fallbacks)} for name, found in self.patches.items()
        }
        return {"pid": self.pid, "since": self.since, "patches": patches, "io": dict(self.io)}

    def to_prometheus(self, states: Mapping[str, str] | None = None) -> str:
        """Return the text that Prometheus reads, each series with the pid of this process.

        :param states: from :func:`states_of`; by default those of a new report
        """
        values: dict[str, list[tuple[Mapping[str, str], float]]] = {family: [] for family in FAMILIES}
        for counter, labels, value in self.series():
            values[f"fastio_{counter}_total"].append((labels, value))
        for name, state in sorted((states_of(patcher.status()) if states is None else states).items()):
            values["fastio_patch_state"].append(({"patch": name, "state": state}, 1))
        values["fastio_start_time_seconds"].append(({}, round(self.since, 3)))
        values["fastio_info"].append(({"version": VERSION}, 1))
        lines, pid = [], {"pid": str(self.pid)}
        for family, (kind, meaning) in FAMILIES.items():
            lines += [f"# HELP {family} {meaning}", f"# TYPE {family} {kind}"]
            lines += [f"{family}{_labels({**labels, **pid})} {value}" for labels, value in values[family]]
        return "\n".join(lines) + "\n"

    def series(self) -> Iterator[tuple[str, Mapping[str, str], int]]:
        """Yield each of :data:`COUNTERS` that is not zero, its labels and its value: the one source of all outputs."""
        for name, found in sorted(self.patches.items()):
            if found.calls:
                yield "calls", {"patch": name}, found.calls
            if found.bytes:
                yield "bytes", {"patch": name}, found.bytes
            for reason, count in sorted(found.fallbacks.items()):
                yield "fallbacks", {"patch": name, "reason": reason}, count
        for name, count in self.io.items():
            if count:
                yield "io", {"what": name}, count

    def table(self, patch: str = "") -> Table:
        """Return the counts of the patches that have taken or left a call, or of the one named ``patch``."""
        from fastio.tables import Table

        rows = [
            [name, str(found.calls), str(found.bytes), ", ".join(f"{key}={n}" for key, n in found.fallbacks.items())]
            for name, found in sorted(self.patches.items())
            if name == patch or not patch and (found.calls or found.fallbacks)
        ]
        return Table("", ["patch", "calls", "bytes", "fallbacks"], rows)


#: The counts.
COUNTERS = {
    "calls": "Calls that a patch took.",
    "bytes": "Bytes that a patch's own code moved or hashed.",
    "fallbacks": "Calls that a patch left to upstream's code, by the reason.",
    "io": "Exchanges, reads, writes, bytes, waits and yields of the I/O core.",
}

#: The metrics for Prometheus: the type of each, and its description.
FAMILIES = {
    **{f"fastio_{name}_total": ("counter", meaning) for name, meaning in COUNTERS.items()},
    "fastio_patch_state": ("gauge", "1 for the state of each patch."),
    "fastio_start_time_seconds": ("gauge", "When the counts of the process began, in seconds since the epoch."),
    "fastio_info": ("gauge", "The release of fastio."),
}


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def states_of(report: Report) -> dict[str, str]:
    """Return the state of each patch but those that are off, or whose library is absent."""
    return {each.name: each.word for each in report.patches() if each.word not in (Outcome.OFF, Outcome.ABSENT)}


def read() -> Metrics:
    """Return the current counts."""
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
    """Return the sum of several processes' counts, each as :meth:`Metrics.to_dict` returns it; its pid is 0."""
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
    return {"pid": 0, "since": min(since, default=0.0), "patches": patches, "io": io}


def from_dict(data: Mapping[str, Any]) -> Metrics:
    """Return what :meth:`Metrics.to_dict` was made from."""
    patches = {name: PatchMetrics(**found) for name, found in data["patches"].items()}
    return Metrics(data["pid"], data["since"], patches, data["io"])


# OpenTelemetry's counters

_UNITS = {"bytes": "By", "io": ""}
_instruments: list[Any] = []


def create_counters(api: Any) -> None:
    """Create the counters; the API keeps them until the program has set up its SDK."""
    try:
        meter = api.get_meter("fastio", VERSION)
        for name, meaning in COUNTERS.items():
            observe = [_observe(name, api.Observation)]
            unit = _UNITS.get(name, "{call}")
            _instruments.append(meter.create_observable_counter(f"fastio.{name}", observe, unit, meaning))
    except Exception as error:
        # The program imports it for its own use, which goes on.
        log.log(log.WARNING, "fastio: no counters for OpenTelemetry: %s: %s", type(error).__name__, error)


def _observe(counter: str, observation: Callable[..., Any]) -> Callable[[Any], Iterable[Any]]:
    def observe(options: Any) -> Iterable[Any]:
        if not STATE.wanted:
            return []
        # Workers have the resource of the process that they were forked from.
        own = {"process.pid": os.getpid()}
        return [observation(value, {**labels, **own}) for name, labels, value in read().series() if name == counter]

    return observe
