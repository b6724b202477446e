"""The client's cost of a download from glance: curl, glanceclient, and glanceclient with fastio, over HTTP and HTTPS.

The suite repeats the table of 2013 with today's programs (a 2 GB image: curl 12 % of a processor over HTTP and 89 %
over HTTPS, glanceclient 66 % and 90 %). A plot shows the load over time. The goals are shown with the figures that
were reached.
"""

import os
import shutil
from pathlib import Path

from benchmarks.backends.glance_environments import ENVIRONMENTS
from benchmarks.harness import servers
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.modes import MIB
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
    if PYTHON and not os.access(Path(PYTHON).parent / "glance", os.X_OK):
        return f"beside {PYTHON} there is no command glance: pip install python-glanceclient"
    return ""


def _case(scheme: str) -> Case:
    missing = "" if scheme == "http" else servers.why_not("http")
    if scheme == "https" and not missing and shutil.which("openssl") is None:
        missing = "openssl is not installed: apt-get install openssl"
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


CASES = [_case("http"), _case("https")]


def test_glance_client(recorded):
    recorded()
