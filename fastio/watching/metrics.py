"""The counts of this process as data and as text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fastio import counters
from fastio.version import VERSION


@dataclass(frozen=True)
class PatchMetrics:
    """What one patch did in this process."""

    #: calls that it took
    calls: int
    #: bytes that its own code moved or hashed; 0 for a patch that moves none
    bytes: int
    #: calls that it left to upstream's code, by :class:`fastio.counters.Reason`; only reasons that occurred
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
        patches = sorted(self.patches.items())
        pid = {"pid": str(self.pid)}
        series: dict[str, Iterable[tuple[dict[str, str], float]]] = {
            "fastio_calls_total": [({"patch": name}, found.calls) for name, found in patches],
            "fastio_bytes_total": [({"patch": name}, found.bytes) for name, found in patches],
            "fastio_fallbacks_total": [
                ({"patch": name, "reason": reason}, count)
                for name, found in patches
                for reason, count in sorted(found.fallbacks.items())
            ],
            "fastio_io_total": [({"what": name}, count) for name, count in self.io.items()],
            "fastio_start_time_seconds": [({}, round(self.since, 3))],
            "fastio_info": [({"version": VERSION}, 1)],
        }
        lines = []
        for family, (kind, text) in FAMILIES.items():
            lines += [f"# HELP {family} {text}", f"# TYPE {family} {kind}"]
            lines += [f"{family}{_labels({**labels, **pid})} {value}" for labels, value in series[family]]
        return "\n".join(lines) + "\n"


#: The metrics for Prometheus: the type of each, and what it tells.
FAMILIES = {
    "fastio_calls_total": ("counter", "Calls that a patch took."),
    "fastio_bytes_total": ("counter", "Bytes that a patch's own code moved or hashed."),
    "fastio_fallbacks_total": ("counter", "Calls that a patch left to upstream's code, by the reason."),
    "fastio_io_total": ("counter", "Exchanges, reads, writes, bytes, waits and yields of the I/O core."),
    "fastio_start_time_seconds": ("gauge", "When the counts of the process began, in seconds since the epoch."),
    "fastio_info": ("gauge", "The release of fastio."),
}


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def read() -> Metrics:
    """Return the counts as they are now."""
    return Metrics(
        pid=os.getpid(),
        since=counters.since,
        patches={
            tally.patch: PatchMetrics(
                tally.calls, tally.bytes, {str(reason): count for reason, count in tally.fallbacks.items() if count}
            )
            for tally in counters.tallies()
        },
        io=counters.snapshot(),
    )
