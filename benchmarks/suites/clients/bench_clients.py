"""The client's cost of an image or an object that it gets or puts, stock and with fastio.

Commands as users run them are curl, ``glance`` and ``openstack``, over HTTP and HTTPS: an image is saved, and an image
is created from a file. The save of 2 GB repeats the table of 2013 with today's programs (curl had 12 % of a processor
over HTTP and 89 % over HTTPS, glanceclient 66 % and 90 %).

``get_object()`` of openstacksdk, ``put_object()`` of python-swiftclient, and ``requests.put()`` of a file and of what
is in memory already have a server on the same host that only counts. The reference of a file is ``socket.sendfile()``.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.backends.glance_environments import ENVIRONMENTS
from benchmarks.harness import servers
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.goals import Asked
from benchmarks.harness.modes import GIB, KIB, MIB, MODES
from benchmarks.suites.clients.workload import APIS, COMMANDS
from benchmarks.suites.stores.references import why_not

#: Bytes of the image of 2013.
SIZE = 2_000_000_000
#: Size of glance's reads of a file: its default is slower than the clients.
SERVER_CHUNK = MIB
PYTHON = ENVIRONMENTS["glance32"].python()

#: Each operation: its title, bytes, and what it imports.
OPERATIONS = {
    "openstacksdk-object": ("openstacksdk's get_object() of 256 MiB", 256 * MIB, "openstack"),
    "swiftclient-put": ("swiftclient's put_object() of a file of 256 MiB", 256 * MIB, "swiftclient"),
    "upload-file": ("requests.put() of a file of 1 GiB", GIB, "requests"),
    "upload-memory": ("requests.put() of an io.BytesIO of 1 GiB", GIB, "requests"),
}
REFERENCE = Variant("native-stock", "reference-sendfile", {"operation": "upload-sendfile"})


def _missing(scheme: str) -> str:
    """Why the commands cannot be run here; empty if they can."""
    if not PYTHON:
        return ENVIRONMENTS["glance32"].missing()
    for program in ("glance", "openstack"):
        if not os.access(Path(PYTHON).parent / program, os.X_OK):
            return f"beside {PYTHON} there is no command {program}: pip install python-{program}client"
    if scheme == "https" and shutil.which("openssl") is None:
        return "openssl is not installed: apt-get install openssl"
    return why_not("http") or (servers.why_not("http") if scheme == "https" else "")


#: Of each task: what the tables call it, and its bytes.
TASKS = {
    "image-save": ("save of an image of 2 GB", SIZE),
    "image-create": ("create of an image of 1 GiB", GIB),
}


def _commands(task: str, scheme: str) -> Case:
    title, size = TASKS[task]
    missing = _missing(scheme)
    rows = [*COMMANDS, *([*APIS, "limit-sha512"] if task == "image-save" else [])]
    return Case(
        name=f"{task}-{scheme}",
        title=f"Commands: {title} over {scheme.upper()}",
        workload="clients",
        # A row of fastio is compared with that of stock, all others with curl.
        variants=[
            Variant(name, against=name.replace("fastio", "stock") if "fastio" in name else "",
                    skip=missing)
            for name in rows
        ],
        parameters={"size": size, "task": task, "scheme": scheme, "python": PYTHON},
        rounds=5,
        baseline="curl",
        unit="s",
        columns=(
            "load_percent", "user_seconds", "system_seconds", "start_seconds", "start_cpu_seconds", "transfer_seconds",
            "transfer_cpu_seconds",
        ),
        backend="glance-32",
        backend_parameters={"chunk_size": SERVER_CHUNK, "tls": int(scheme == "https" and not missing)},
        prepare="prepare",
        long=scheme == "https" and task != "image-create",
    )  # fmt: skip


CASES = [
    *(_commands(task, scheme) for task in TASKS for scheme in ("http", "https")),
    *(
        Case(
            name=operation,
            title=title,
            workload="processes",
            variants=(*MODES, *[REFERENCE] * (operation == "upload-file")),
            # A small object comes first, so that imports and the connection are not measured.
            parameters={"size": size, "operation": operation, "first": 64 * KIB, "url": "plain"},
            baseline="native-stock",
            needs=(needed,),
        )
        for operation, (title, size, needed) in OPERATIONS.items()
    ),
]


CPU = "transfer_cpu_seconds"


def _over(scheme: str) -> Iterator[Asked]:
    """The goals of a scheme."""
    over = f"over {scheme.upper()}"
    for task in TASKS:
        what = f"openstack {task.replace('-', ' ')} {over}"
        own: dict[str, Any] = {"fastio": "openstack-fastio", "cases": f"{task}-{scheme}"}
        if task.endswith("save"):
            # Without the start of the command.
            yield Asked(f"{what}, s without the start", "≤", 0.2, "openstack-stock", key="transfer_seconds", **own)
        hashing = "limit-sha512" if task == "image-save" else ""
        without = " without the hashing" if hashing else ""
        yield Asked(
            f"{what}, CPU s{without}, curl for stock", "≤", 1.3, "curl", key=CPU, unit="x curl", less=hashing, **own
        )
    for row in ("api-fastio", "api-eventlet-fastio"):
        for more, words, less in (("", " without the hashing", "limit-sha512"), ("-unverified", "", "")):
            what = f"glanceclient {over}, {row}{more}, CPU s{words}, curl for stock"
            yield Asked(
                what, "≤", 1.2, "curl", f"{row}{more}", CPU, "x curl", f"*-{scheme}", stock_key="cpu_seconds", less=less
            )
    if scheme == "http":
        what = f"glanceclient {over}, verified, seconds"
        yield Asked(what, "≤", 0.87, "api-stock", "api-fastio", "transfer_seconds", cases="*-http")


#: Of a file, shares of stock's time and CPU time that it may take; of commands, and of glanceclient's API, shares of
#: stock's time, and times the CPU time that curl takes for all but the hashing.
GOALS = [
    *(
        Asked(f"{{case}}, {mode}, {what}", "≤", most, f"{mode}-stock", f"{mode}-fastio", key, cases="upload-file")
        for mode in ("native", "eventlet")
        for what, key, most in (("seconds", "seconds", 0.333), ("CPU s", "cpu_seconds", 0.4))
    ),
    *(goal for scheme in ("http", "https") for goal in _over(scheme)),
]


def test_clients(recorded):
    recorded()
