"""Writes ``fastio/expected.json`` from the kept results: what ``fastio check`` says can be expected.

    python -m benchmarks.tools.expected

The figures of a whole glance-api come first, then those of the drivers of glance_store alone.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import gains, keep
from benchmarks.harness.engine import ROOT
from benchmarks.harness.results import CaseResult
from benchmarks.harness.summaries import Summary
from fastio.expected import EVENTLET, THREADS, Gain

FILE = ROOT / "fastio" / "expected.json"


class Service(NamedTuple):
    """A service that was measured."""

    #: in the names of cases
    name: str
    title: str
    way: str
    #: the runs that have its rows
    one: str
    many: str


SERVICES = (
    Service("glance-33-shipped", "glance 33 as it is shipped", THREADS, "glance_shipped", "concurrency_shipped"),
    Service("glance-32", "glance 32", EVENTLET, "glance", "concurrency_glance32"),
    Service("glance-33", "glance 33 with 28 threads", THREADS, "glance", "concurrency_glance33"),
)
#: What the rows of the drivers' cases begin with.
DRIVERS = {"eventlet": EVENTLET, "native": THREADS}
#: Downloads at a time, of those that were measured, that services meet.
CONCURRENT = (20, 100, 400)
OTHERS = "99 % of other requests wait at most, with 20 {}s"


def measured() -> list[Gain]:
    kept = keep.runs()
    return [*_services(kept), *_many(kept), *_drivers(kept)]


def _services(kept: Mapping[str, Summary]) -> Iterator[Gain]:
    """Images of the filesystem store by way of glance-api, and what others wait for meanwhile."""
    for service in SERVICES:
        name, result = service.one, kept[service.one]
        for task in ("download", "upload"):
            case = result.case(f"{service.name}-{task}")
            yield _gain(case, "filesystem", service.way, f"{task} of 1 GiB, {service.title}", "stock", "fastio", name)
            what, busy = f"{OTHERS.format(task)}, {service.title}", ", 20 + requests"
            yield _gain(case, "filesystem", service.way, what, f"stock{busy}", f"fastio{busy}", name, key="p99_ms")


def _many(kept: Mapping[str, Summary]) -> Iterator[Gain]:
    for service in SERVICES:
        name, result = service.many, kept[service.many]
        for users in CONCURRENT:
            what = f"{users} downloads of 16 MiB at a time, {service.title}"
            case = result.case(f"{service.name}-{users}")
            yield _gain(case, "filesystem", service.way, what, "stock", "fastio", name)


def _drivers(kept: Mapping[str, Summary]) -> Iterator[Gain]:
    for name in ("stores", "stores_rbd", "stores_s3"):
        for case in kept[name].cases:
            store = case.name.partition("-")[0]
            for mode, way in DRIVERS.items():
                yield _gain(case, store, way, f"driver, {case.title}", f"{mode}-stock", f"{mode}-fastio", name)
    name = "sheepdog_driver"
    for case in kept[name].cases:
        if case.name.endswith("-real"):
            for mode, way in DRIVERS.items():
                what = f"driver against the old one, {case.name.partition('-')[0]} of 256 MiB"
                yield _gain(case, "sheepdog", way, what, f"{mode}-old", f"{mode}-fastio", name)


def _gain(
    case: CaseResult, store: str, way: str, what: str, stock: str, fastio: str, source: str, key: str = ""
) -> Gain:
    """One figure of a case; of another than the case's own, less is better.

    :param key: the other figure, in milliseconds
    """
    found = gains.gain(case, fastio, stock, key)
    if found is None:
        raise LookupError(f"{source}: {case.name} has no figures of {stock} and {fastio}")
    figures: dict[str, Any] = dict(zip(("times", "low", "high"), found.times, strict=True))
    figures |= {"stock": case.median(stock, key), "fastio": case.median(fastio, key)}
    rounded: dict[str, Any] = {name: float(f"{figure:.4g}") for name, figure in figures.items()}
    return Gain(
        store=store, way=way, what=what, unit="ms" if key else case.unit, **rounded, rounds=found.rounds, source=source
    )


def text() -> str:
    """What the file has, a line for each figure."""
    return "[\n" + ",\n".join(json.dumps(asdict(each)) for each in measured()) + "\n]\n"


def main(path: Path = FILE) -> int:
    path.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
