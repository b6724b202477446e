"""Disk against Swift: a log server whose logs are on its disk or in a real Swift, stock and with fastio.

The study of the OpenStack infra team's log server, and what it left open. ``swift-1MiB`` is a server that reads 1 MiB
at a time instead of 64 KiB, with which a service would use fastio: the patches themselves change no size that a
program has chosen. Per request: sent, response and transfer, in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.engine import Case, Variant
from benchmarks.results import Result
from benchmarks.tables import Table
from benchmarks.workloads import KIB, MIB

#: Bytes of a log: that of the study's on average.
LOG = 1_220_000
RECENT = 50

#: Rows: source -> bytes that the server reads at a time. The study's server is a program of 64 KiB or less.
SOURCES = {"disk": ("disk", 64 * KIB), "swift": ("swift", 64 * KIB), "swift-1MiB": ("swift", MIB)}

#: Bytes -> requests. The large ones take as long as all the others together.
SIZES = {10**6: 60, 10**7: 30, 10**8: 10, 256 * MIB: 8, 2 * 10**9: 3}
LARGE = 256 * MIB

QUICK = {"total": 8, "seconds": 0, "objects": 3, "size": 150_000, "records": ""}


def _variants(case: str) -> Iterator[Variant]:
    for title, (source, chunk) in SOURCES.items():
        for fastio in ("stock", "fastio"):
            parameters = {
                "source": source, "chunk": chunk, "fastio": "on" if fastio == "fastio" else "off",
                "records": f"disk_swift/{case}/{title}-{fastio}",
            }  # fmt: skip
            yield Variant("run", label=f"{title}-{fastio}", parameters=parameters, against=f"{title}-stock")


def _case(name: str, title: str, *, users: int = 1, objects: int = 1, size: int = LOG, **fields: Any) -> Case:
    parameters = {"users": users, "objects": objects, "size": size, "total": 100 * users}
    parameters |= fields.pop("parameters", {})
    return Case(
        name=name, title=title, workload="disk_swift", variants=tuple(_variants(name)),
        **{
            "parameters": parameters, "rounds": 5, "warmup": 0, "baseline": "disk-stock", "unit": "ms",
            "value": "transfer_p50_ms", "quick": QUICK,
            "columns": ("sent_p50_ms", "response_p50_ms", "response_p99_ms", "transfer_p99_ms", "server_cpu_ms",
                        "swift_cpu_ms", "generator_cpu"),
            "backend": "swift", "prepare": "prepare", "needs": ("eventlet", "swiftclient", "locust"),
            **fields,
        },
    )  # fmt: skip


def _sizes() -> Iterator[Case]:
    for size, total in SIZES.items():
        shown = f"{size // MIB}MiB" if size % MIB == 0 else f"{size // 10**6}MB"
        yield _case(
            f"size-{shown}", f"one client, objects of {shown.replace('M', ' M')}", objects=2 if size < LARGE else 1,
            size=size, parameters={"total": total}, rounds=3 if size >= 10**8 else 5, long=size > LARGE,
        )  # fmt: skip


CASES = [
    _case("one-same", "one client, the same log again and again"),
    _case("one-recent", "one client, one log after the other", objects=RECENT),
    _case("five-same", "5 clients, the same log again and again", users=5),
    _case("five-recent", "5 clients, one log after the other", users=5, objects=RECENT),
    *_sizes(),
    _case("five-random", "5 clients, any of 200 logs", users=5, objects=200, parameters={"selection": "random"}),
    _case("five-repeated", "5 clients, any of 5 logs", users=5, objects=5, parameters={"selection": "random"}),
    _case(
        "expired", "5 clients while tokens are good for 2 seconds", users=5, objects=RECENT,
        parameters={"total": 0, "seconds": 8}, backend_parameters={"token_life": 2}, rounds=3,
    ),
]  # fmt: skip


def judgement(result: Result) -> list[Table]:
    # It reads what the rows here are called.
    from benchmarks import disk_swift_tables

    shown = [*disk_swift_tables.published(result), disk_swift_tables.losses(result), disk_swift_tables.targets(result)]
    return [table for table in shown if table.rows]


def plot(result: Result, directory: Path, name: str) -> list[Path]:
    from benchmarks import disk_swift_plots

    return disk_swift_plots.plot(result, directory, name)


def test_disk_swift(recorded):
    recorded()
