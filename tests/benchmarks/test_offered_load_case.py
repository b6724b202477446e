"""How the offered load at the limit is found, its tables and its figure; smoke runs where there are the servers."""

import importlib.util
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="results need the extra 'bench'")
pytest.importorskip("psutil", reason="suites need the extra 'bench'")

from benchmarks.backends.glance import Glance32
from benchmarks.harness import results, servers
from benchmarks.harness.results import CaseResult, Result
from benchmarks.load import analysis
from benchmarks.load.plan import Operation, Plan
from benchmarks.suites.offered_load import bench_offered_load as offered_load
from benchmarks.suites.offered_load import tables, workload
from benchmarks.suites.offered_load.workload import Trial, reached, search
from tests.benchmarks import samples
from tests.conftest import MONKEY_PATCHED, with_services

pytestmark = with_services

ROOT = Path(__file__).resolve().parent.parent.parent
LADDER = {"lowest": 10, "factor": 2, "highest": 100, "limit": 500}


def trial(rate: float, p99: float) -> Trial:
    return Trial(rate, p99 / 2, p99, 0.5, True)


def offering(*times: float) -> Any:
    """An offer that has these 99th percentiles, one after the other."""
    left = list(times)
    return lambda rate: trial(rate, left.pop(0))


@pytest.mark.parametrize(
    ("times", "found"),
    [
        # It ends at the first rate that is too much twice; the better one of the two counts.
        ((20, 40, 700, 600), [(10, 20), (20, 40), (40, 600)]),
        # One hiccup does not end it, nor does it go beyond the highest rate.
        ((20, 9000, 40, 60, 80), [(10, 20), (20, 40), (40, 60), (80, 80)]),
    ],
)
def test_a_search(times: tuple[float, ...], found: list[tuple[float, float]]) -> None:
    assert [(each.rate, each.p99) for each in search(offering(*times), LADDER)] == found


@pytest.mark.parametrize(
    ("trials", "rate"),
    [
        # Of the way from 125 to 2,000 in logarithms, 500 is the half; so is the square root of 800 from 20 to 40.
        ([(10, 20), (20, 125), (40, 2000)], math.sqrt(800)),
        ([(20, 125), (40, 500.001)], 40),
        # Where much has failed there is no time.
        ([(20, 125), (40, math.inf)], 20),
        ([(10, 20), (20, 30)], 20),
        ([(10, 900)], 10),
    ],
)
def test_the_limit_is_between_the_last_two_rates(trials: list[tuple[float, float]], rate: float) -> None:
    assert reached([trial(*each) for each in trials], 500) == pytest.approx(rate)


def test_a_load_may_have_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("locust") is None or MONKEY_PATCHED:
        pytest.skip("needs the extra 'load', and a process that eventlet has not patched")
    found: list[analysis.Run] = []

    def read(directory: Path) -> analysis.Run:
        found.append(original(directory))
        return found[-1]

    original = analysis.read
    monkeypatch.setattr(analysis, "read", read)
    plan = Plan(protocol="mock", server={}, operations=(Operation("read"),), total=1)
    parameters = {"seconds": 0.5, "patience": 60, "users": 4, "processes": 2}
    assert workload._offer(plan, 40, parameters).verified
    assert len(found[0].workers) == 2 and not found[0].errors


def row(rate: float, *p99: float) -> results.VariantResult:
    """A row that reached so many downloads a second."""
    made = samples.variant([1.0, 1.0])
    for run in made.runs[1:]:
        run |= {"seconds": 1.0, "bytes": int(rate * 16 * results.MIB), "operations_per_second": rate, "p50_ms": 40.0}
        run |= {f"p99_ms_{number}": each for number, each in enumerate(p99)}
    return made


def case(name: str, stock: results.VariantResult, fastio: results.VariantResult, kind: str = "glance") -> CaseResult:
    return samples.case(
        {"stock": stock, "fastio": fastio}, name=name, workload="offered_load", unit="MiB/s",
        parameters={**LADDER, "kind": kind, "size": 16 * results.MIB},
    )  # fmt: skip


def made(*cases: CaseResult) -> Result:
    return samples.result(*cases, suite="offered_load")


FOUND = made(
    case("glance-32", row(20, 90, 480, 2000), row(30, 80, 100, 700)),
    case("logs-disk", row(20, 90, 480), row(22, 80, 100), kind="logs"),
)


def test_the_tables() -> None:
    first = tables.overview(FOUND).rows[0]
    assert first[:6] == ["glance-32", "500", "20", "30", "320", "480"] and first[6].startswith("1.5")
    rows = tables.curves(FOUND).rows
    assert rows[0] == ["glance-32", "10", "90", "80"]
    assert rows[2] == ["glance-32", "40", "2000", "700"] and len(rows) == 5
    # Nothing is asked of the log server.
    assert [line[0] for line in tables.goals(FOUND).rows] == ["glance-32: downloads/s at the limit"]


def test_a_row_that_has_failed_is_left_out() -> None:
    failed = case("glance-32", row(20, 90), row(25, 90))
    failed.variants["fastio"].runs = []
    assert not tables.overview(made(failed)).rows and not tables.goals(made(failed)).rows


def test_the_figure_says_what_is_carried() -> None:
    pytest.importorskip("matplotlib", reason="plots need the extra 'plot'")
    from benchmarks.suites.offered_load.plots import PLOTS

    figure = PLOTS["p99"].figure(FOUND)
    assert figure is not None and len(figure.axes) == 2
    title = " ".join(figure.get_suptitle().split())
    assert "1.5 times (glance-32), 1.1 times (logs-disk)" in title
    assert [panel.get_xlabel() for panel in figure.axes] == [
        "glance-32: offered downloads/s", "logs-disk: offered downloads/s",
    ]  # fmt: skip
    assert PLOTS["p99"].figure(made(case("glance-32", row(20), row(30)))) is None


@pytest.mark.parametrize("name", ["glance-32", "logs-disk"])
def test_a_smoke_run(name: str, tmp_path: Path) -> None:
    # Not imported: Locust patches the process that imports it.
    if importlib.util.find_spec("locust") is None:
        pytest.skip("needs the extra 'load'")
    reason = Glance32.available() if name == "glance-32" else servers.why_not("swift")
    if reason:
        pytest.skip(f"{name}: {reason}")
    command = [sys.executable, "-m", "pytest", "-q", "--benchmark-quiet", "--quick", "-p", "no:cacheprovider"]
    command += [offered_load.__file__, "-k", name, "--result", str(tmp_path / "result.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
    found = results.read(tmp_path / "result.json")
    assert [case.name for case in found.cases] == [name]
    for server in offered_load.SERVERS:
        (run,) = found.cases[0].variants[server].measured()
        assert run["verified"] and 5 <= run["operations_per_second"] <= 6
