"""Uploads to a real glance-api whose store is on a disk, and in memory, stock and with fastio; and what they must cost.

The floor is one process that does only what an upload needs: it copies the image once, computes md5 and sha512, and
writes the image. Its processor time is what an upload costs at least. No upload is faster than the slower hash.
"""

from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.goals import Ratio
from benchmarks.harness.modes import GIB, MIB
from benchmarks.suites.glance.bench_glance import SERVICES, SHIPPED

#: What goes without a server: all parts of an upload one after the other, and each hash alone.
PARTS, HASHES = "reference-parts", ("reference-md5", "reference-sha512")
#: Name of a place -> whether it has to be a disk.
PLACES = {"disk": True, "memory": False}
#: The second is compared with the first.
SERVERS = ("stock", "fastio")
#: What follows the name of a server in rows whose client does not say how long the image is.
CHUNKED = ", chunked"


CPU = "server_cpu_seconds"
#: Of stock's rate and processor time, of the processor time of an upload's parts, and of the rate of the slower hash.
GOALS = [
    goal
    for more in ("", CHUNKED)
    for goal in (
        *(
            Ratio(f"{{case}}{more}, MB/s", "≥", times, f"stock{more}", f"fastio{more}", cases=f"*-{place}")
            for place, times in {"disk": 1.6, "memory": 1.8}.items()
        ),
        Ratio(f"{{case}}{more}, server CPU s", "≤", 1.0, f"stock{more}", f"fastio{more}", CPU),
    )
]
GOALS += [
    Ratio("{case}, server CPU s, the parts for stock", "≤", 1.15, PARTS, key=CPU, unit="x parts"),
    Ratio("{case}, MB/s, the slower hash for stock", "≥", 1.0, HASHES, unit="x hash"),
]


def _row(server: str, chunked: bool) -> Variant:
    more = CHUNKED if chunked else ""
    parameters = {"server": "" if server == "stock" else server, "chunked": int(chunked)}
    return Variant("transfer", f"{server}{more}", parameters, against=f"stock{more}")


def _case(service: str, place: str) -> Case:
    release, parameters = SERVICES[service]
    on_disk = PLACES[place]
    return Case(
        name=f"{service}-{place}",
        title=f"{service}: upload of 1 GiB, its store {'on a' if on_disk else 'in'} {place}",
        workload="disk_uploads",
        variants=[
            *(_row(server, chunked) for chunked in (False, True) for server in SERVERS),
            *(Variant(name, rounds=3) for name in (PARTS, *HASHES)),
        ],
        parameters={"task": "upload", "size": GIB, "settled": int(on_disk)},
        quick={"size": MIB},
        rounds=5,
        baseline="stock",
        backend=release,
        backend_parameters=parameters,
        on_disk=on_disk,
        beside={"fastio": (release, {**parameters, "fastio": "on"})},
        prepare="prepare",
        long=not on_disk,
    )


CASES = [_case(service, place) for service in (SHIPPED, "glance-32") for place in PLACES]


def test_disk_uploads(recorded):
    recorded()
