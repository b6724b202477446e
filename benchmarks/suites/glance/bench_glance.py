"""A real glance-api, stock and with fastio: downloads, uploads, and how long other requests wait in the meantime.

Release 33 runs under uWSGI, first as shipped (4 processes, one thread each) and then as one process with threads,
and release 32 with its eventlet server. All have a filesystem store with its default configuration. The reference is
nginx with the same file. The goals are shown with the figures that were reached.

Uploads also go to a store on a disk. The floor is one process that does only what an upload needs: it copies the image
once, computes md5 and sha512, and writes the image. No upload is faster than the slower hash.

Imports go into three stores: from the staging area, from nginx (``web-download``), or from one of the stores
(``copy-image``). Stock hashes what it writes to the staging area, and each store's copy again.

Slow clients read or send at a limited rate: how long other requests wait, and what rate the clients get, as shipped.
Slow uploads hold the workers with fastio, too. The known remedies are measured with stock: ``post-buffering`` of
uWSGI, and nginx in front, which takes the whole body before it asks glance. The slow clients, a download and an upload
are also measured with the options of deployments (``-k kolla``): "advised" is fastio with nginx in front.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.backends.glance import AS_SHIPPED, DEPLOYMENTS
from benchmarks.harness import servers
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.goals import Asked, alone, longer
from benchmarks.harness.modes import GIB, MIB
from benchmarks.suites.stores.references import why_not
from fastio.config import format_size

RELEASES = ("glance-32", "glance-33")
SHIPPED = "glance-33-shipped"
#: How others serve glance 33.
DEPLOYED = [name for name in DEPLOYMENTS if name != "glance"]
#: Service -> the backend and its parameters.
SERVICES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    SHIPPED: ("glance-33", AS_SHIPPED), **{release: (release, {}) for release in RELEASES}
}  # fmt: skip
#: The patch without which a download is copied through Python, and where it applies: elsewhere all are copied.
SENDFILE = "glance_sendfile"
WITH_SENDFILE = ("glance-32",)
#: The patch with which a download that its client cannot keep up with holds no worker.
SLOW_CLIENTS = "glance_slow_clients"
#: The server with that patch, where a worker serves one request after another; "fastio" is without it there.
APART = "fastio-slow-clients"
#: A client with another address than the server's, for which it sends with sendfile() as to another host.
ELSEWHERE = "127.0.0.2"
#: The servers of a row and their parameters, if that is not just the server of its name.
ROWS: Mapping[str, Mapping[str, str]] = {
    "stock": {"server": ""},
    "fastio-sendfile": {"server": "fastio", "source": ELSEWHERE},
    "reference-nginx": {"server": "nginx"},
}

#: Parts that need no server: all parts of an upload one after the other, and each hash alone.
PARTS, HASHES = "reference-parts", ("reference-md5", "reference-sha512")
#: Suffix of a server's name in rows whose client does not announce the image's size.
CHUNKED = ", chunked"

#: Concurrent transfers while other requests are sent.
CLIENTS_AT_ONCE = (1, 5, 20)
#: Bytes of an image that so many clients upload concurrently: twenty times a GiB would take a minute, and the memory.
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


def _plain_uploads() -> Iterator[Variant]:
    """The rows of a client that says how long the image is, and of one that does not, and the floor."""
    for more, chunked in (("", 0), (CHUNKED, 1)):
        for server in ("stock", "fastio"):
            parameters = {"server": "" if server == "stock" else server, "chunked": chunked}
            yield Variant("transfer", f"{server}{more}", parameters, against=f"stock{more}")
    for name in (PARTS, *HASHES):
        yield Variant(name, rounds=3)


def _uploads() -> Iterator[Variant]:
    yield from _plain_uploads()
    yield _row("reference-nginx", 0, 3)
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
        fastio[APART] = fastio["fastio"]
        fastio["fastio"] = (release, {**parameters, "fastio": "on", "disabled": SLOW_CLIENTS})
    return {**fastio, "nginx": ("http", {})}


def _case(service: str, task: str) -> Case:
    release, parameters = SERVICES[service]
    shipped = ", as shipped" if service == SHIPPED else ""
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
        long=service == "glance-33",
    )


def _on_disk(service: str) -> Case:
    release, parameters = SERVICES[service]
    return Case(
        name=f"{service}-upload-disk", title=f"{service}: upload of 1 GiB, its store on a disk", workload="glance",
        variants=list(_plain_uploads()), parameters={"task": "upload", "size": GIB, "settled": 1},
        quick={"size": MIB}, rounds=5, baseline="stock", backend=release, backend_parameters=parameters, on_disk=True,
        beside={"fastio": (release, {**parameters, "fastio": "on"})}, prepare="prepare", long=service == SHIPPED,
    )  # fmt: skip


#: How an image is imported, and into how many stores; a service has up to four files of it concurrently.
METHODS, STORES = ("glance-direct", "web-download", "copy-image"), 3


def _import(release: str, method: str) -> Case:
    parameters = {"stores": STORES, "flavor": "identity"}
    return Case(
        name=f"{release}-{method}-import", title=f"{release}: {method} of 512 MiB into {STORES} stores",
        workload="glance",
        variants=[
            Variant("transfer", server, {"server": "" if server == "stock" else server}, against="stock")
            for server in ("stock", "fastio")
        ],
        parameters={"task": "import", "method": method, "size": 512 * MIB}, rounds=5, warmup=1, baseline="stock",
        unit="s", columns=("server_cpu_seconds",), backend=release, backend_parameters=parameters,
        beside={"fastio": (release, {**parameters, "fastio": "on"}), "nginx": ("http", {})},
        long=(release, method) != ("glance-33", "web-download"),
    )  # fmt: skip


#: Concurrent slow clients -> bytes a second of each, and bytes of an image.
LOADS = {4: (20 * 10**6, 128 * MIB), 200: (10**6, 32 * MIB)}
#: Seconds in which the clients start one after the other, and seconds that are measured then.
RAMP, SECONDS = 4, 10
#: Slow uploads, of which there are as many as workers: what is done about them, and what their clients send: their
#: length, or chunks as glance's own clients do.
SLOW_UPLOADS, KINDS = 4, {"uploads": 0, "uploads-chunked": 1}
WAYS = {"stock": "", "fastio": "fastio", "stock, post-buffering": "post-buffering", "stock, nginx": "proxied"}


def slow_name(clients: int, kind: str = "", deployment: str = SHIPPED) -> str:
    """Of the case with so many slow clients, or with those uploads."""
    return "-".join([deployment, str(clients), *([kind] if kind else [])])


def _deployed(deployment: str, task: str) -> Case:
    release, own = SERVICES[SHIPPED][0], {**AS_SHIPPED, "deployment": deployment}
    return Case(
        name=f"{deployment}-{task}", title=f"{release}, as {deployment} has it: {task} of 1 GiB", workload="glance",
        variants=[_row(server, 0, 5) for server in ("stock", "fastio")], parameters={"task": task, "size": GIB},
        quick={"size": MIB}, baseline="stock", warmup=0, backend=release, backend_parameters=own,
        beside={"fastio": (release, {**own, "fastio": "on"})}, prepare="prepare", long=True,
    )  # fmt: skip


def _slow(clients: int, kind: str = "", deployment: str = "glance") -> Case:
    (release, own), (rate, size), chunked = SERVICES[SHIPPED], LOADS[clients], KINDS.get(kind, 0)
    shipped = deployment == "glance"
    own, served = (own, "it is shipped") if shipped else ({**own, "deployment": deployment}, f"{deployment} has it")
    rows, others = {"stock": "", "fastio": "fastio"}, {"fastio": (release, {**own, "fastio": "on"})}
    if kind and shipped:
        rows = WAYS
        others["post-buffering"] = (release, {**own, "post_buffering": MIB})
        others["proxied"] = (release, {**own, "proxied": 1})
    elif kind:
        rows["advised"] = "proxied"
        others["proxied"] = (release, {**own, "proxied": 1, "fastio": "on"})
    elif shipped:
        rows["reference-nginx"] = "nginx"
        others["nginx"] = ("http", {})
    why_not = servers.why_not("http")
    words = f"{clients} {'chunked ' * chunked}uploads" if kind else f"{clients} clients"
    return Case(
        name=slow_name(clients, kind, *([] if shipped else [deployment])),
        title=f"{release}, as {served}: {words}, each at {rate / 1e6:g} MB/s",
        workload="glance",
        variants=[
            Variant("transfer", title, {"server": server}, skip=why_not if server in ("nginx", "proxied") else "")
            for title, server in rows.items()
        ],
        parameters={
            "clients": clients, "rate": rate, "size": size, "ramp": RAMP, "seconds": SECONDS,
            "task": "upload" if kind else "download", "source": ELSEWHERE, "chunked": chunked,
        },
        quick={"clients": 5, "rate": 4 * MIB, "size": MIB, "ramp": 0, "seconds": 0}, rounds=3, warmup=0,
        baseline="stock", columns=("p50_ms", "p99_ms", "worst_ms", "served", "rss_mib"),
        backend=release, backend_parameters=own,
        beside=others, prepare="prepare",
        long=clients != min(LOADS) or bool(chunked) or deployment not in ("glance", "kolla-ansible"),
    )  # fmt: skip


CPU, CPU_GIB = "server_cpu_seconds", "server_cpu_seconds_per_gib"
#: Service -> times stock's throughput that a download has to reach, the share of stock's CPU time it may take, and
#: times the throughput of stock that an upload has to reach.
TRANSFERS = {SHIPPED: (1.4, 0.7, 1.8), "glance-32": (1.9, 0.5, 1.8), "glance-33": (1.4, 0.7, 2.2)}
#: Concurrent downloads -> milliseconds that half of the other requests may take, and that 99 % of them may take where
#: no worker waits for a client.
P50_DOWNLOADS, P99_APART = {1: 15.0, 5: 20.0, 20: 40.0}, {1: 50.0, 5: 100.0, 20: 200.0}
#: Concurrent slow clients -> milliseconds that 99 % of the other requests may take.
P99_SLOW = {4: 50.0, 200: 150.0}


def _transfers(service: str) -> Iterator[Asked]:
    faster, share, upload = TRANSFERS[service]
    down, up = f"{service}-download", f"{service}-upload"
    for row, named in (("fastio", ""), (APART, f", {APART}")):
        yield Asked(f"{service} download{named}, MB/s", "≥", faster, fastio=row, cases=down)
    for row in ("fastio", "fastio-sendfile", "fastio-copying", APART):
        what = f"{service} download, {row}, server CPU s/GiB"
        yield Asked(what, "≤", share, fastio=row, key=CPU_GIB, cases=down)
        if service in WITH_SENDFILE and row in ("fastio", "fastio-sendfile"):
            what = f"{what}, nginx for stock"
            yield Asked(what, "≤", 1.0, "reference-nginx", row, CPU_GIB, "x nginx", down)
    for clients in CLIENTS_AT_ONCE:
        during = f"{service}, other requests during {clients} {{}}{'s' * (clients > 1)}"
        rows: dict[str, Any] = {"stock": title("stock", clients), "fastio": title("fastio", clients)}
        loads = during.format("download"), during.format("upload")
        if service == SHIPPED:
            # Where every thread has a transfer, the others wait for its end: with fastio no longer than without.
            for what, case in zip(loads, (down, up), strict=True):
                yield Asked(f"{what}, p99 ms", "≤", 1.0, **rows, key="p99_ms", cases=case)
            apart = {**rows, "fastio": title(APART, clients), "key": "p99_ms", "unit": "ms", "of": alone}
            yield Asked(f"{loads[0]}, {APART}, p99 ms", "≤", P99_APART[clients], cases=down, **apart)
            continue
        for name, bound in (("p50", P50_DOWNLOADS[clients]), ("p99", 150.0)):
            own = {**rows, "key": f"{name}_ms", "unit": "ms", "of": alone}
            yield Asked(f"{loads[0]}, {name} ms", "≤", bound, cases=down, **own)
        yield Asked(f"{loads[0]}, MB/s of the downloads", "≥", faster, **rows, cases=down)
        yield Asked(f"{loads[1]}, p50 ms", "≤", 5.0, **rows, key="p50_ms", unit="ms more", cases=up, of=longer)
    yield Asked(f"{service} upload, MB/s", "≥", upload, cases=up)


def _slow_goals(clients: int, deployment: str = SHIPPED) -> Iterator[Asked]:
    case, all_of_it = slow_name(clients, deployment=deployment), clients * LOADS[clients][0] / 1e6
    downloads, bound = f"{clients} slow downloads", P99_SLOW[clients]
    downloads += "" if deployment == SHIPPED else f", {deployment}"
    yield Asked(f"other requests during {downloads}, p99 ms", "≤", bound, key="p99_ms", unit="ms", cases=case, of=alone)
    yield Asked(
        f"{downloads}, MB/s", "≥", 0.95, unit="of what they ask for", cases=case,
        of=lambda stock, fastio: fastio / all_of_it,
    )  # fmt: skip


def _disk() -> Iterator[Asked]:
    """Of uploads to a store on a disk; also against the processor time of their parts, and the rate of a hash."""
    for more in ("", CHUNKED):
        rows: dict[str, Any] = {"stock": f"stock{more}", "fastio": f"fastio{more}", "cases": "*-disk"}
        yield Asked(f"{{case}}{more}, MB/s", "≥", 1.6, **rows)
        yield Asked(f"{{case}}{more}, server CPU s", "≤", 1.0, **rows, key=CPU)
    what = "{case}, server CPU s, the parts for stock"
    yield Asked(what, "≤", 1.15, PARTS, key=CPU, unit="x parts", cases="*-disk")
    yield Asked("{case}, MB/s, the slower hash for stock", "≥", 1.0, HASHES, unit="x hash", cases="*-disk")


def _imports(method: str) -> Iterator[Asked]:
    yield Asked("{case}, s", "≤", 0.5, cases=f"*-{method}*")
    yield Asked("{case}, server CPU s", "≤", 0.4, key=CPU, cases=f"*-{method}*")


GOALS = [
    *(goal for service in SERVICES for goal in _transfers(service)),
    *(goal for deployment in (SHIPPED, *DEPLOYED) for clients in LOADS for goal in _slow_goals(clients, deployment)),
    *_disk(),
    *(goal for method in METHODS for goal in _imports(method)),
]

CASES = [
    *(_case(service, task) for service in SERVICES for task in ("download", "upload")),
    *map(_on_disk, (SHIPPED, "glance-32")),
    *(_import(release, method) for release in RELEASES for method in METHODS),
    *map(_slow, LOADS),
    *(_slow(clients, deployment=deployment) for deployment in DEPLOYED for clients in LOADS),
    *(_deployed(deployment, task) for deployment in DEPLOYED for task in ("download", "upload")),
    *(_slow(SLOW_UPLOADS, kind) for kind in KINDS),
    *(_slow(SLOW_UPLOADS, "uploads", deployment) for deployment in DEPLOYED),
]


def test_glance(recorded):
    recorded()
