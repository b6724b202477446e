"""glance_store's drivers with real backends: ``get()`` and ``add()`` of images, natively and under eventlet.

Stock is compared with fastio at its defaults, and a get with a reference, the backend's own client.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import MIB, MODES
from benchmarks.suites.stores.references import why_not
from fastio.config import format_size

#: Bytes of an image; a few cases have smaller ones.
SIZE = 256 * MIB

#: Size of the pieces that Swift's servers hand on, by default 64 KiB.
SWIFT_1MIB = {f"{name}_chunk_size": MIB for name in ("disk", "network", "object", "client")}

#: How far away a service is: what one of Amazon's has for a connection.
AWAY = {"latency_ms": 5, "rate": 90_000_000}

#: name in cases -> backend, its parameters
BACKENDS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "filesystem": ("filesystem", {}),
    "http": ("http", {}),
    "swift": ("swift", {}),
    "swift-1MiB": ("swift", SWIFT_1MIB),
    "s3": ("s3", {}),
    "rbd": ("ceph", {}),
    "cinder": ("cinder", {}),
    "vmware": ("vmware", {}),
}
READ_ONLY = ("http",)
#: Those that are far away, which are read only.
REMOTE: dict[str, tuple[str, Mapping[str, Any]]] = {f"{name}-far": (name, AWAY) for name in ("s3", "swift", "http")}


def _variants(row: str, task: str) -> list[Variant]:
    """The four modes, each fast one beside its stock one, and what they are held against."""
    modes = [Variant(name, against=f"{name.partition('-')[0]}-stock") for name in MODES]
    if task == "get":
        return [*modes, Variant("reference", skip=why_not({**BACKENDS, **REMOTE}[row][0]))]
    # The hash rate of one core is the same for every driver.
    return [*modes, *[Variant("limit-sha512")] * (row == "filesystem")]


def _case(row: str, task: str, size: int, **fields: Any) -> Case:
    backend, parameters = {**BACKENDS, **REMOTE}[row]
    shown = format_size(size)
    defaults: dict[str, Any] = {
        "name": f"{row}-{task}-{shown.replace(' ', '')}",
        "title": f"{row}: {task} of {shown}",
        "rounds": 5,
        "long": row == "swift-1MiB",
        "parameters": {"task": task, "size": size},
    }
    return Case(
        **{**defaults, **fields},
        workload="stores",
        variants=_variants(row, task),
        baseline="native-stock",
        unit="MiB/s",
        columns=("chunks", "p99_ms", "worst_ms"),
        backend=backend,
        backend_parameters=parameters,
        needs=("glance_store", "eventlet"),
        prepare="prepare",
    )


def _cases() -> Iterator[Case]:
    for row in BACKENDS:
        yield _case(row, "get", SIZE)
        if row not in READ_ONLY:
            yield _case(row, "add", SIZE)


CASES = [
    *_cases(),
    *(_case(row, "get", SIZE) for row in REMOTE),
    _case(
        "s3", "get", MIB, name="s3-100-get-1MiB", title="s3: 100 gets of an image of 1 MiB",
        parameters={"task": "get", "size": MIB, "most": MIB, "images": 100}, quick={"size": MIB, "images": 3},
    ),
    _case(
        "s3", "add", 96 * MIB, name="s3-single-add-96MiB", title="s3: add of 96 MiB in a single part",
        parameters={"task": "add", "size": 96 * MIB, "most": 96 * MIB}, long=True,
    ),
]  # fmt: skip


def test_stores(recorded):
    recorded()
