"""The client's cost of an image: curl, ``glance`` and ``openstack``, stock and with fastio, over HTTP and HTTPS.

The first cases repeat the table of 2013 with today's programs (a 2 GB image: curl 12 % of a processor over HTTP and
89 % over HTTPS, glanceclient 66 % and 90 %). The others are of commands as users run them: an image is saved, an image
is created from a file, and an object of Swift's is saved. A plot shows the load over time. The goals are shown with the
figures that were reached.
"""

import os
import shutil
from pathlib import Path

from benchmarks.backends.glance_environments import ENVIRONMENTS
from benchmarks.harness import servers
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import GIB, MIB
from benchmarks.suites.glance_client.commands import COMMANDS
from benchmarks.suites.glance_client.workload import CLIENTS
from benchmarks.suites.stores.references import why_not

#: Bytes of the image of 2013.
SIZE = 2_000_000_000
#: What glance reads of a file at a time: its default is slower than the clients.
SERVER_CHUNK = MIB

PYTHON = ENVIRONMENTS["glance32"].python()


def _why_not(name: str) -> str:
    """Why a row cannot be run here; empty if it can."""
    if name == "curl":
        return why_not("http")
    return _lacking("glance")


def _lacking(program: str) -> str:
    if PYTHON and not os.access(Path(PYTHON).parent / program, os.X_OK):
        return f"beside {PYTHON} there is no command {program}: pip install python-{program}client"
    return ""


def _not_over(scheme: str) -> str:
    """Why there is no such scheme here."""
    missing = "" if scheme == "http" else servers.why_not("http")
    if scheme == "https" and not missing and shutil.which("openssl") is None:
        missing = "openssl is not installed: apt-get install openssl"
    return missing


def _case(scheme: str) -> Case:
    missing = _not_over(scheme)
    return Case(
        name=f"client-{scheme}",
        title=f"Download of 2 GB over {scheme.upper()}",
        workload="glance_client",
        variants=[
            Variant(name, against=_stock(name), skip=missing or _why_not(name))
            for name in ("curl", *CLIENTS, "limit-sha512")
        ],
        parameters={"size": SIZE, "scheme": scheme, "python": PYTHON},
        rounds=5,
        warmup=1,
        baseline="curl",
        unit="s",
        columns=("load_percent", "user_seconds", "system_seconds", "transfer_seconds", "transfer_cpu_seconds"),
        backend="glance-32",
        backend_parameters={"chunk_size": SERVER_CHUNK, "tls": int(scheme == "https" and not missing)},
        prepare="prepare",
    )


def _stock(name: str) -> str:
    """The row that one of fastio is compared with; all others with curl."""
    return name.replace("fastio", "stock") if "fastio" in name else ""


#: Of each task: what the tables call it, its server, and the programs that it is for.
TASKS = {
    "image-save": ("save of an image of 1 GiB", "glance-32", ("glance", "openstack")),
    "image-create": ("create of an image of 1 GiB", "glance-32", ("glance", "openstack")),
    "object-save": ("save of an object of 1 GiB", "swift", ("openstack",)),
}


def _commands(task: str, scheme: str) -> Case:
    title, backend, programs = TASKS[task]
    missing = _not_over(scheme) or _lacking("glance") or _lacking("openstack")
    if not missing and not PYTHON:
        missing = ENVIRONMENTS["glance32"].missing()
    rows = [name for name, command in COMMANDS.items() if command.program in ("curl", *programs)]
    variants = [Variant(f"command-{name}", name, against=_stock(name), skip=missing or _why_not(name)) for name in rows]
    if task == "image-save":
        variants.append(Variant("limit-sha512", skip=missing))
    chunk = {"chunk_size": SERVER_CHUNK} if backend == "glance-32" else {}
    return Case(
        name=f"{task}-{scheme}",
        title=f"Commands: {title} over {scheme.upper()}",
        workload="glance_client",
        variants=variants,
        parameters={"size": GIB, "task": task, "scheme": scheme, "python": PYTHON},
        rounds=5,
        warmup=1,
        baseline="curl",
        unit="s",
        columns=(
            "load_percent", "start_seconds", "start_cpu_seconds", "transfer_seconds", "transfer_cpu_seconds",
        ),
        backend=backend,
        backend_parameters={**chunk, "tls": int(scheme == "https" and not missing)},
        prepare="prepare-commands",
    )  # fmt: skip


CASES = [
    _case("http"),
    _case("https"),
    *(_commands(task, scheme) for task in TASKS for scheme in ("http", "https")),
]


def test_glance_client(recorded):
    recorded()
