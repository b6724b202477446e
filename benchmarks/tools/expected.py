"""Writes ``fastio/expected.json`` from the kept results: what ``fastio check`` says can be expected.

    python -m benchmarks.tools.expected

The figures of a whole glance-api come first, then those of the drivers of glance_store alone.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness import results, statistics
from benchmarks.harness.engine import ROOT
from benchmarks.harness.results import CaseResult
from fastio.expected import EVENTLET, THREADS, Gain

KEPT = ROOT / "doc" / "source" / "results"
FILE = ROOT / "fastio" / "expected.json"

#: The services that were measured: the name in the cases, and how they are served.
SERVICES = {"glance-32": EVENTLET, "glance-33": THREADS}
#: What the rows of the drivers' cases begin with.
DRIVERS = {"eventlet": EVENTLET, "native": THREADS}
#: Downloads at a time, of those that were measured, that services meet.
CONCURRENT = (20, 100, 400)
OTHERS = "99 % of other requests wait at most, with 20 {}s"


def gains() -> list[Gain]:
    return [*_services(), *_many(), *_drivers()]


def _services() -> Iterator[Gain]:
    """Images of the filesystem store by way of glance-api, and what others wait for meanwhile."""
    name = "glance.json"
    result = results.read(KEPT / name)
    for service, way in SERVICES.items():
        for task in ("download", "upload"):
            case = result.case(f"{service}-{task}")
            title = service.replace("-", " ")
            yield _gain(case, "filesystem", way, f"{task} of 1 GiB, {title}", "stock", "fastio", name)
            what, busy = f"{OTHERS.format(task)}, {title}", ", 20 + requests"
            yield _gain(case, "filesystem", way, what, f"stock{busy}", f"fastio{busy}", name, key="p99_ms")


def _many() -> Iterator[Gain]:
    for service, way in SERVICES.items():
        name = f"concurrency_{service.replace('-', '')}.json"
        result = results.read(KEPT / name)
        for users in CONCURRENT:
            what = f"{users} downloads of 16 MiB at a time, {service.replace('-', ' ')}"
            yield _gain(result.case(f"{service}-{users}"), "filesystem", way, what, "stock", "fastio", name)


def _drivers() -> Iterator[Gain]:
    for name in ("stores.json", "stores_rbd.json", "stores_s3.json"):
        for case in results.read(KEPT / name).cases:
            store = case.name.partition("-")[0]
            for mode, way in DRIVERS.items():
                yield _gain(case, store, way, f"driver, {case.title}", f"{mode}-stock", f"{mode}-fastio", name)
    name = "sheepdog_driver.json"
    for case in results.read(KEPT / name).cases:
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
    found = [
        [float(run[key]) for run in case.variants[title].measured()] if key else case.figures(title)
        for title in (stock, fastio)
    ]
    more = case.more_is_better and not key
    times = statistics.ratio(*(reversed(found) if more else found))
    medians = [statistics.median(each) for each in found]
    figures = zip(("stock", "fastio", "times", "low", "high"), (*medians, *times), strict=True)
    rounded: dict[str, Any] = {name: float(f"{figure:.4g}") for name, figure in figures}
    unit, rounds = "ms" if key else case.unit, min(map(len, found))
    return Gain(store=store, way=way, what=what, unit=unit, **rounded, rounds=rounds, source=source)


def text() -> str:
    """What the file has, a line for each figure."""
    return "[\n" + ",\n".join(json.dumps(asdict(each)) for each in gains()) + "\n]\n"


def main(path: Path = FILE) -> int:
    path.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
