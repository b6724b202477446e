"""``requests.put()`` of 1 GiB, to a server that throws it away: of a file, and of what is in memory already."""

from benchmarks.harness.engine import Case
from benchmarks.harness.goals import Ratio
from benchmarks.harness.modes import GIB, MIB
from benchmarks.suites.uploads.workload import VARIANTS

#: Shares of stock's time and CPU time that a file may take.
GOALS = [
    Ratio(f"requests.put() of a file, {mode}, {what}", "≤", most, f"{mode}-stock", f"{mode}-fastio", key, cases="file")
    for mode in ("native", "eventlet")
    for what, key, most in (("seconds", "seconds", 0.333), ("CPU s", "cpu_seconds", 0.4))
]

TITLES = {"file": "requests.put() of a file of 1 GiB", "memory": "requests.put() of an io.BytesIO of 1 GiB"}

CASES = [
    Case(
        name=body,
        title=title,
        workload="uploads",
        variants=tuple(VARIANTS),
        parameters={"size": GIB, "body": body},
        baseline="native-stock",
        quick={"size": MIB},
    )
    for body, title in TITLES.items()
]


def test_uploads(recorded):
    recorded()
