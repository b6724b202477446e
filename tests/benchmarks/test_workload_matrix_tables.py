"""The tables and plots of the workload matrix, of results that are made up."""

from typing import Any

import pytest

from benchmarks.harness import results
from benchmarks.harness.results import CaseResult, Result
from benchmarks.suites.workload_matrix import bench_workload_matrix as matrix
from benchmarks.suites.workload_matrix import tables
from tests.benchmarks import samples

MIB = 1 << 20


def row(mib_s: list[float], **parameters: Any) -> results.VariantResult:
    """A row whose runs moved so much in a second."""
    made = samples.variant([1.0] * len(mib_s), parameters={"size": MIB, "workers": 8, "reads": 80, **parameters})
    for run, figure in zip(made.runs, [1.0, *mib_s], strict=True):
        run |= dict.fromkeys(matrix.CASES[0].columns, 0.5) | {"seconds": 1.0, "bytes": int(figure * MIB)}
        run |= {"success_ratio": 1.0, "bottleneck": "thread of swift-object-server: one thread used 0.97"}
    shares = [["thread", "swift-object-server", 0.97, "one thread used 0.97"], ["cores", "box", 0.8, "1.60 of 2 cores"]]
    made.details = {"shares": {"resource": "thread", "text": "", "shares": shares}, "usage": {}}
    return made


def made(one_core: float = 60.0, path_one_core: float = 20.0) -> Result:
    whole: list[CaseResult] = []
    for size in (64 << 10, MIB):
        rows = {f"{workers}w-{matrix.ratio(reads)}": row([100.0 + workers], size=size, workers=workers, reads=reads)
                for workers in (1, 8) for reads in (100, 0)}  # fmt: skip
        whole.append(_case(f"swift-{matrix.shown(size)}", rows))
    for name, figures in {"cpu-reads": (100.0, one_core, 40.0), "cpu-path": (20.0, path_one_core, 19.9)}.items():
        rows = {title: row([figure] * 3) for title, figure in zip(matrix.PROCESSORS, figures, strict=True)}
        whole.append(_case(name, rows))
    return samples.result(*whole, suite="workload_matrix")


def _case(name: str, rows: dict[str, results.VariantResult]) -> CaseResult:
    return samples.case(rows, name=name, title=f"about {name}", workload="workload_matrix", unit="MiB/s")


def test_the_workloads_have_numbers() -> None:
    found = [(each.number, tables._name(each), each.bandwidth) for each in tables.workloads(made())]
    assert found == [
        (1, "64KiB, 1 worker, 100:0", 101), (2, "64KiB, 1 worker, 0:100", 101),
        (3, "64KiB, 8 workers, 100:0", 108), (4, "64KiB, 8 workers, 0:100", 108),
        (5, "1MiB, 1 worker, 100:0", 101), (6, "1MiB, 1 worker, 0:100", 101),
        (7, "1MiB, 8 workers, 100:0", 108), (8, "1MiB, 8 workers, 0:100", 108),
    ]  # fmt: skip


def test_a_number_stays_that_of_its_workload_if_another_one_failed() -> None:
    result = made()
    failed = result.case("swift-64KiB").variants["1w-0:100"]
    failed.runs, failed.failure = [], {"reason": "x", "stderr": "", "status": 1}
    assert [each.number for each in tables.workloads(result)] == [1, 3, 4, 5, 6, 7, 8]


def test_the_bottlenecks_have_their_evidence() -> None:
    lines = tables.judgement(made())[0].rows
    words = ["thread", "swift-object-server", "one thread used 0.97", "cores of box"]
    assert lines[0] == ["1: 64KiB, 1 worker, 100:0", *words]
    result = made()
    nothing = {"resource": "none", "shares": [["cores", "box", 0.5, "1.00 of 2 cores"]]}
    result.cases[0].variants["1w-100:0"].details["shares"] = nothing
    assert tables.judgement(result)[0].rows[0][1:] == ["none", "–", "–", "cores of box"]


@pytest.mark.parametrize(("figures", "met"), [((60.0, 20.0), "yes"), ((91.0, 18.9), "no")])
def test_bandwidth_is_lost_only_where_processors_are_the_limit(figures: tuple[float, float], met: str) -> None:
    bottlenecks, goals = tables.judgement(made(*figures))
    assert [row[-1] for row in goals.rows] == [met, "yes", met, "yes"]
    assert bottlenecks.rows[-1][:2] == ["cpu-path, quota-0.75", "thread"]


def test_the_plot_names_axes_and_bottlenecks() -> None:
    pytest.importorskip("matplotlib", reason="plots need the extra 'plot'")
    from benchmarks.harness.plots import svg
    from benchmarks.suites.workload_matrix import plots

    result = made()
    drawn = "".join(svg(drawing.figure(result)) for drawing in plots.PLOTS.values())
    for words in ("MiB/s, log scale", "busiest server", "the bottleneck is"):
        assert words in drawn
    # A part of the suite has a part of the figures.
    of_parts = [samples.result(*some) for some in (result.cases[:1], result.cases[2:])]
    figures = [[name for name, each in plots.PLOTS.items() if each.figure(part)] for part in of_parts]
    assert figures == [["bandwidth", "cpu"], []]
    assert set(plots.MIXES) == set(matrix.READS)
