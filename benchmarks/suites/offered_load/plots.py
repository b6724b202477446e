"""The 99th percentile over the offered load: a panel for each service."""

from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.harness import plots, statistics
from benchmarks.harness.plots import Drawing
from benchmarks.harness.results import Result
from benchmarks.harness.tables import number
from benchmarks.suites.concurrency.plots import lines
from benchmarks.suites.offered_load.tables import SERVERS, points

#: Inches of a row of two panels.
HEIGHT = 2.6
#: Inches for the title.
HEAD = 0.8
CAPTION = "99th percentile by offered load"


def _figure(result: Result) -> Figure | None:
    cases = [case for case in result.cases if all(list(points(case, server)) for server in SERVERS)]
    if not cases:
        return None
    rows = (len(cases) + 1) // 2
    made, axes = pyplot.subplots(
        rows, min(2, len(cases)), figsize=(plots.WIDTH, HEAD + HEIGHT * rows), squeeze=False, layout="constrained"
    )
    for panel in list(axes.flat)[len(cases) :]:
        panel.remove()
    for panel, case in zip(axes.flat, cases, strict=False):
        limit = case.parameters["limit"]
        lines(panel, {server: list(points(case, server)) for server in SERVERS}, 0.01)
        panel.axhline(limit, color="#8a8a8a", linewidth=0.8, linestyle=":")
        panel.set_yscale("log")
        panel.grid(alpha=0.3)
        panel.set_xlabel(f"{case.name}: offered downloads/s", size=plots.SIZE)
        plots.plain(panel)
    axes[0][0].set_ylabel("p99 from when due, ms", size=plots.SIZE)
    axes[0][0].legend(frameon=False, fontsize=plots.SIZE)
    ratios = [statistics.median(case.figures("fastio")) / statistics.median(case.figures("stock")) for case in cases]
    finding = (
        f"Before p99 passes {number(cases[0].parameters['limit'])} ms, fastio carries "
        + ", ".join(f"{number(ratio)} times ({case.name})" for ratio, case in zip(ratios, cases, strict=True))
        + " the load of stock"
    )
    rounds = min(case.rounds(server) for case in cases for server in SERVERS)
    plots.head(made, finding, f"Medians of {rounds} rounds; lines: from the lowest to the highest; dotted: the limit")
    return made


PLOTS = {"p99": Drawing(CAPTION, _figure)}
