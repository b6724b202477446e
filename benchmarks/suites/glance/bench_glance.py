"""A real glance-api, stock and with fastio: downloads, uploads, and how long other requests wait in the meantime.

Release 33 runs under uWSGI, first as it is shipped (4 processes, one thread each) and then as one process with threads,
and release 32 with its eventlet server. All have a filesystem store with its default configuration. The reference is
nginx with the same file. The goals are shown with the figures that were reached.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.backends.glance import AS_SHIPPED
from benchmarks.harness import servers
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import GIB, MIB
from benchmarks.suites.stores.references import why_not
from fastio.config import format_size

RELEASES = ("glance-32", "glance-33")
SHIPPED = "glance-33-shipped"
#: What is measured -> the backend and its parameters.
SERVICES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    SHIPPED: ("glance-33", AS_SHIPPED), **{release: (release, {}) for release in RELEASES}
}  # fmt: skip
#: The patch without which a download is copied through Python, and where it applies: elsewhere all are copied.
SENDFILE = "glance_sendfile"
WITH_SENDFILE = ("glance-32",)
#: A patch that is not in the default: a download that its client cannot keep up with holds no worker.
SLOW_CLIENTS = "glance_slow_clients"
#: The server with that patch, where a worker serves one request at a time.
APART = "fastio-slow-clients"
#: A client with another address than the server's, for which it sends with sendfile() as to another host.
ELSEWHERE = "127.0.0.2"
#: The servers of a row and their parameters, if that is not just the server of its name.
ROWS: Mapping[str, Mapping[str, str]] = {
    "stock": {"server": ""},
    "fastio-sendfile": {"server": "fastio", "source": ELSEWHERE},
    "reference-nginx": {"server": "nginx"},
}

#: Transfers at a time while other requests are sent.
CLIENTS_AT_ONCE = (1, 5, 20)
#: Bytes of an image that so many clients upload at a time: twenty times a GiB would take a minute, and the memory.
UPLOAD_SIZES = {1: GIB, 5: 256 * MIB, 20: 128 * MIB}


def title(server: str, clients: int = 0) -> str:
    """Of the row of a server; with ``clients`` of that one in which other requests are sent meanwhile."""
    return f"{server}, {clients} + requests" if clients else server


def _row(server: str, clients: int, rounds: int, **parameters: Any) -> Variant:
    reference = server.startswith("reference")
    return Variant(
        "transfer",
        label=title(server, clients),
        parameters={
            **ROWS.get(server, {"server": server}),
            "clients": clients or 1,
            "requests": int(clients > 0),
            **parameters,
        },
        rounds=rounds,
        against=title("stock", clients),
        skip=(servers.why_not("http") or why_not("http")) if reference else "",
    )


def _downloads(service: str) -> Iterator[Variant]:
    kinds = ["fastio-sendfile", "fastio-copying"] if service in WITH_SENDFILE else [APART] if service == SHIPPED else []
    rows = ["stock", "fastio", *kinds, "reference-nginx"]
    for server in rows:
        yield _row(server, 0, 5, seconds=1.5)
    for clients in CLIENTS_AT_ONCE:
        for server in rows:
            few = clients == max(CLIENTS_AT_ONCE) or server not in ("stock", "fastio")
            yield _row(server, clients, 3 if few else 5, seconds=3)


def _uploads() -> Iterator[Variant]:
    for server in ("stock", "fastio", "reference-nginx"):
        yield _row(server, 0, 3 if server == "reference-nginx" else 5)
    yield Variant("limit-sha512", rounds=3, skip=why_not("http"))
    for server in ("stock", "fastio"):
        yield Variant(
            "transfer", label=f"{server}, chunked", rounds=3, against="stock, chunked",
            parameters={"server": "" if server == "stock" else server, "chunked": 1},
        )  # fmt: skip
    for clients in CLIENTS_AT_ONCE:
        for server in ("stock", "fastio"):
            rounds = 3 if clients == max(CLIENTS_AT_ONCE) else 5
            yield _row(server, clients, rounds, size=UPLOAD_SIZES[clients])


def _beside(service: str, task: str) -> Mapping[str, tuple[str, Mapping[str, Any]]]:
    release, parameters = SERVICES[service]
    fastio: dict[str, tuple[str, Mapping[str, Any]]] = {"fastio": (release, {**parameters, "fastio": "on"})}
    if task == "upload":
        return {**fastio, "nginx": ("http", {"writable": 1})}
    if service in WITH_SENDFILE:
        fastio["fastio-copying"] = (release, {**parameters, "fastio": "on", "disabled": SENDFILE})
    if service == SHIPPED:
        fastio[APART] = (release, {**parameters, "fastio": "on", "also": SLOW_CLIENTS})
    return {**fastio, "nginx": ("http", {})}


def _case(service: str, task: str) -> Case:
    release, parameters = SERVICES[service]
    shipped = ", as it is shipped" if service == SHIPPED else ""
    return Case(
        name=f"{service}-{task}",
        title=f"{release}{shipped}: {task} of {format_size(GIB)}",
        workload="glance",
        variants=list(_downloads(service) if task == "download" else _uploads()),
        parameters={"task": task, "size": GIB},
        quick={"size": MIB, "seconds": 0},
        baseline="stock",
        columns=("p50_ms", "p99_ms"),
        warmup=0,
        backend=release,
        backend_parameters=parameters,
        beside=_beside(service, task),
        prepare="prepare",
    )


CASES = [_case(service, task) for service in SERVICES for task in ("download", "upload")]


def test_glance(recorded):
    recorded()
