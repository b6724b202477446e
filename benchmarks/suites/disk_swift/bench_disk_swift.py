"""Disk against Swift: a log server that has its logs on disk or in a real Swift, stock and with fastio.

The suite repeats the study of the OpenStack infra team's log server, and answers what the study left open. Each
request has three times in milliseconds: sent, response and transfer. Further rows show where the time goes.
``swift-1MiB`` is a log server that reads 1 MiB at a time instead of 64 KiB, as a service with fastio would. (The
patches themselves do not change a size that a program has chosen.) In ``swift-wide``, Swift's servers also move 1 MiB
at a time, and with fastio all of them run with it. ``swift-direct`` has no log server at all. It shows what
a log server costs.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import KIB, MIB
from benchmarks.suites.disk_swift import records

#: Bytes of a log: that of the study's on average.
LOG = 1_220_000
RECENT = 50
LARGE = 256 * MIB

#: Stock and fastio, side by side in each source.
SERVERS = ("stock", "fastio")
#: Rows: source -> what it is to the workload. The study's server is a program of 64 KiB or less.
SOURCES: dict[str, dict[str, Any]] = {
    "disk": {"source": "disk", "chunk": 64 * KIB},
    "swift": {"source": "swift", "chunk": 64 * KIB},
    "swift-1MiB": {"source": "swift", "chunk": MIB},
    "swift-wide": {"source": "swift", "chunk": MIB},
}
#: The row without a log server.
DIRECT = "swift-direct"
#: Sizes of the study, a service's, and all.
STUDY = ("disk", "swift")
SERVICE = (*STUDY, "swift-1MiB")

_SIZES = ("disk_chunk_size", "network_chunk_size", "object_chunk_size", "client_chunk_size")
#: Swift as the rows ``swift-wide`` have it, beside the other one: its servers move 1 MiB at a time.
WIDE: dict[str, tuple[str, dict[str, Any]]] = {
    f"swift-wide-{server}": ("swift", {**dict.fromkeys(_SIZES, MIB), "fastio": "on" if server == "fastio" else "off"})
    for server in SERVERS
}

QUICK = {"total": 8, "seconds": 0, "objects": 3, "size": 150_000, "records": ""}


def _variants(case: str, sources: Sequence[str], direct: bool) -> Iterator[Variant]:
    for source in sources:
        for server in SERVERS:
            title = f"{source}-{server}"
            parameters = {
                **SOURCES[source], "fastio": "on" if server == "fastio" else "off",
                "records": f"disk_swift/{case}/{title}",
            }  # fmt: skip
            if title in WIDE:
                parameters["swift"] = title
            yield Variant("run", label=title, parameters=parameters, against=f"{source}-stock")
    if direct:
        parameters = {"source": "direct", "fastio": "off", "records": f"disk_swift/{case}/{DIRECT}"}
        yield Variant("run", label=DIRECT, parameters=parameters, against="swift-stock")


def _case(
    name: str, title: str, *, users: int = 1, objects: int = 1, size: int = LOG, sources: Sequence[str] = SERVICE,
    direct: bool = False, **fields: Any,
) -> Case:  # fmt: skip
    parameters = {"users": users, "objects": objects, "size": size, "total": {1: 60, 5: 150}[users]}
    parameters |= fields.pop("parameters", {})
    return Case(
        name=name, title=title, workload="disk_swift", variants=tuple(_variants(name, sources, direct)),
        beside=WIDE if "swift-wide" in sources else {},
        **{
            "parameters": parameters, "rounds": 3, "warmup": 0, "baseline": f"{sources[0]}-stock", "unit": "ms",
            "value": "transfer_p50_ms", "quick": QUICK, "summary": records.summary,
            "columns": ("sent_p50_ms", "response_p50_ms", "response_p99_ms", "transfer_p99_ms", "whole_p50_ms",
                        "server_cpu_ms", "swift_cpu_ms", "generator_cpu"),
            "backend": "swift", "prepare": "prepare", "needs": ("eventlet", "swiftclient", "locust"),
            **fields,
        },
    )  # fmt: skip


def _size(size: int, total: int, **fields: Any) -> Case:
    """One client, and objects of another size; the more rounds, the longer it takes."""
    shown = f"{size // MIB}MiB" if size % MIB == 0 else f"{size // 10**6}MB"
    title = f"one client, objects of {shown.replace('M', ' M')}"
    return _case(f"size-{shown}", title, size=size, parameters={"total": total}, **fields)


CASES = [
    _case("one-same", "one client, the same log again and again", direct=True),
    _case("one-recent", "one client, one log after the other", objects=RECENT, long=True),
    _case("five-same", "5 clients, the same log again and again", users=5, long=True),
    _case("five-recent", "5 clients, one log after the other", users=5, objects=RECENT, long=True),
    _size(10**6, 60, objects=2, sources=STUDY, long=True),
    _size(10**7, 20, objects=2, sources=STUDY, long=True),
    _size(10**8, 6, objects=2, sources=STUDY, long=True),
    _size(LARGE, 4, sources=tuple(SOURCES), direct=True),
    _size(2 * 10**9, 3, sources=STUDY, rounds=1, long=True),
    _case("five-random", "5 clients, any of 200 logs", users=5, objects=200, sources=STUDY,
          parameters={"selection": "random"}),
    _case("five-repeated", "5 clients, any of 5 logs", users=5, objects=5, sources=STUDY, long=True,
          parameters={"selection": "random"}),
    _case("expired", "5 clients while tokens are good for 2 seconds", users=5, objects=RECENT, sources=("swift",),
          parameters={"total": 0, "seconds": 6}, backend_parameters={"token_life": 2}),
]  # fmt: skip


def test_disk_swift(recorded):
    recorded()
