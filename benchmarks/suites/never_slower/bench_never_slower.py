"""Whether fastio's default is slower than stock anywhere: everything that it patches, by its smallest real work.

Each case is an operation in one mode. Its cells are small and large data, 1 and 20 concurrent calls, on an idle machine
and without a free core, for a local client and, from glance, for one over a link of 1 Gbit/s.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.backends.network import Network
from benchmarks.harness import servers
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import MIB
from benchmarks.suites.glance.bench_glance import AS_SHIPPED
from benchmarks.suites.stores.bench_stores import BACKENDS, READ_ONLY

NATIVE, EVENTLET = "native", "eventlet"
#: Seconds for the pairs of a cell that is not decided earlier, and the fewest pairs.
SECONDS, LEAST = 0.5, 6
#: Processes that compute beside in half of the cells: as many as the machine of these results has processors.
BUSY = 2
#: Bytes of a large payload.
LARGE = 64 * MIB
#: Where stock writes 512 bytes at a time.
SLOW = 4 * MIB
#: Of a smoke run: each cell once, on an idle machine.
QUICK = {"size": 100_003, "seconds": 0.0, "least": 1, "busy": 0, "many": 3}
#: Those that a smoke run has: one of each way to measure.
SHORT = ("child-output-native", "filesystem-get-eventlet", "wsgi-chunked-eventlet", "upload-file-native")
LINK = "1Gbit"
#: Drivers of glance_store whose servers come from pip, or are ours, and nginx. A call of cinder's takes seconds.
STORES = tuple(row for row in BACKENDS if row not in ("rbd", "cinder"))
#: Those that are not written to: what they cannot, what takes stock too long, or what a row of the same driver shows.
ONLY_GET = (*READ_ONLY, "s3", "swift-1MiB")
#: glance's releases, how they run, and the parameters of their backend.
GLANCE: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "glance-32": (EVENTLET, {}), "glance-33": (NATIVE, AS_SHIPPED)
}  # fmt: skip

#: Operation -> its title, the modes that it exists in, and packages that it needs.
PROCESSES: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "child-output": ("communicate() of a child's output", (NATIVE, EVENTLET), ()),
    "child-input": ("communicate(input)", (NATIVE, EVENTLET), ()),
    "oslo-execute": ("processutils.execute()", (NATIVE, EVENTLET), ()),
    "pipe-read": ("GreenPipe: read(64 KiB) to the end", (EVENTLET,), ()),
    "pipe-write": ("GreenPipe: write()", (EVENTLET,), ()),
    "wsgi-length": ("eventlet's WSGI server, with Content-Length", (EVENTLET,), ()),
    "wsgi-chunked": ("eventlet's WSGI server, chunked", (EVENTLET,), ()),
    "upload-file": ("requests.put() of a file", (NATIVE, EVENTLET), ("requests",)),
    "upload-memory": ("requests.put() of an io.BytesIO", (NATIVE, EVENTLET), ("requests",)),
    "swiftclient-put": ("swiftclient's put_object() of a file", (NATIVE, EVENTLET), ("swiftclient",)),
    "glanceclient": ("glanceclient's images.data()", (NATIVE, EVENTLET), ("glanceclient",)),
    "openstacksdk-image": ("openstacksdk's download_image()", (NATIVE, EVENTLET), ("openstack",)),
    "openstacksdk-object": ("openstacksdk's get_object()", (NATIVE, EVENTLET), ("openstack",)),
}
#: Cases whose large payload is smaller, since stock would take seconds for it.
SMALLER = {"child-input-eventlet": SLOW}


def _case(operation: str, mode: str, title: str, skip: str = "", **fields: Any) -> Case:
    name = fields.pop("name", f"{operation}-{mode}")
    parameters = {
        "operation": operation, "mode": mode, "size": SMALLER.get(name, LARGE), "seconds": SECONDS, "least": LEAST,
        "busy": BUSY, "many": 20, **fields.pop("parameters", {}),
    }  # fmt: skip
    return Case(
        name=name,
        title=f"{title}, {'under eventlet' if mode == EVENTLET else 'natively'}",
        workload="never_slower",
        variants=[Variant("pairs", skip=skip)],
        parameters=parameters,
        rounds=1,
        warmup=0,
        timeout=900,
        unit="slower",
        value="slower",
        columns=("cells", "faster", "lowest"),
        quick=QUICK,
        long=name not in SHORT,
        **fields,
    )


def _stores() -> Iterator[Case]:
    for driver in STORES:
        backend, own = BACKENDS[driver]
        for task in ("get",) if driver in ONLY_GET else ("get", "add"):
            for mode in (NATIVE, EVENTLET):
                yield _case(
                    f"store-{task}", mode, f"glance_store's {driver}: {task}", name=f"{driver}-{task}-{mode}",
                    backend=backend, backend_parameters=own, prepare="prepare", needs=("glance_store", "eventlet"),
                )  # fmt: skip


def _services() -> Iterator[Case]:
    for release, (mode, own) in GLANCE.items():
        for task in ("download", "upload"):
            yield _case(
                f"glance-{task}", mode, f"{release}: {task}", name=f"{release}-{task}", backend=release,
                backend_parameters=own, beside={"fastio": (release, {**own, "fastio": "on"})}, prepare="prepare",
            )  # fmt: skip
    for release, (mode, own) in GLANCE.items():
        yield _case(
            "glance-download", mode, f"{release}: download over {LINK}/s", name=f"{release}-download-{LINK}",
            parameters={"link": LINK, "release": release, "server": dict(own)},
            skip=Network(rate=LINK).why_not() or servers.why_not(release),
        )  # fmt: skip


CASES = [
    *(_case(name, mode, title, needs=needs) for name, (title, modes, needs) in PROCESSES.items() for mode in modes),
    *_stores(),
    *_services(),
]


def test_never_slower(recorded):
    recorded()
