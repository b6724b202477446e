"""The workload matrix: a figure each for bandwidth and for CPU.

Bandwidth and CPU are by workload number, as in the study: where the bandwidth stops to rise, the CPU says whether the
processors are the reason.
"""

from collections.abc import Sequence

from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.harness import plots
from benchmarks.harness.plots import Drawing
from benchmarks.harness.results import Result
from benchmarks.harness.tables import number
from benchmarks.suites.workload_matrix import tables as matrix
from benchmarks.suites.workload_matrix.bench_workload_matrix import ratio, shown
from benchmarks.suites.workload_matrix.tables import Workload

HEIGHT = 3.6

#: Reads -> colour and marker: they are to be distinguishable without colours, too.
MIXES = {100: ("#2a7f62", "o"), 80: ("#5f83b0", "s"), 50: ("#b8860b", "^"), 0: ("#8b3a62", "x")}
CPU = {
    "machine_cpu": ("whole machine", "#8a8a8a", "-"),
    "servers_cpu": ("all servers", "#5f83b0", "-"),
    "busiest_cpu": ("busiest server", "#2a7f62", "--"),
    "generator_cpu": ("load generator", "#8b3a62", ":"),
}


def bandwidth(result: Result) -> Figure | None:
    found = matrix.workloads(result)
    if not found:
        return None
    figure, panel = _panel()
    for reads, (colour, marker) in MIXES.items():
        own = [each for each in found if each.reads == reads]
        if own:
            points = zip(*((each.number, each.bandwidth) for each in own), strict=True)
            panel.plot(*points, marker, color=colour, markersize=4, label=f"{ratio(reads)} reads:writes")
    panel.set_yscale("log")
    low, high = (choose(each.bandwidth for each in found) for choose in (min, max))
    panel.set_yticks([mark for mark in (0.01, 0.1, 1, 10, 100, 1000, 10000) if low / 2 < mark < high * 2])
    panel.yaxis.set_major_formatter("{x:g}")
    panel.minorticks_off()
    panel.set_ylabel("MiB/s, log scale", size=plots.SIZE)
    best = max(found, key=lambda each: each.bandwidth)
    _finish(
        figure,
        panel,
        found,
        f"The most is {number(best.bandwidth)} MiB/s, with objects of {shown(best.size)}",
    )
    return figure


def cpu(result: Result) -> Figure | None:
    found = matrix.workloads(result)
    if not any(each.row.median(name) is not None for name in CPU for each in found):
        return None
    figure, panel = _panel()
    for name, (label, colour, style) in CPU.items():
        points = [(each.number, used) for each in found if (used := each.row.median(name)) is not None]
        if points:
            panel.plot(*zip(*points, strict=True), style, color=colour, linewidth=1.2, label=label)
    panel.set_ylim(bottom=0)
    panel.set_ylabel("processors", size=plots.SIZE)
    bottlenecks = [each.bottleneck.get("resource", "") for each in found]
    most = max(set(bottlenecks), key=bottlenecks.count)
    finding = (
        f"Most often, in {bottlenecks.count(most)} of {len(found)} workloads, the bottleneck is: {most or 'not known'}"
    )
    _finish(figure, panel, found, finding)
    return figure


def _panel():
    return pyplot.subplots(figsize=(plots.WIDTH, HEIGHT), layout="constrained")


def _finish(figure: Figure, panel, found: Sequence[Workload], finding: str) -> None:
    """The object sizes on the axis, with a line between them."""
    panel.set_xlim(found[0].number - 1, found[-1].number + 1)
    for before, after in zip(found, found[1:], strict=False):
        if before.size != after.size:
            panel.axvline((before.number + after.number) / 2, color="#d0d0d0", linewidth=0.8, zorder=0)
    groups: dict[str, list[int]] = {}
    for each in found:
        groups.setdefault(shown(each.size), []).append(each.number)
    panel.set_xticks([sum(numbers) / len(numbers) for numbers in groups.values()], list(groups), rotation=90)
    panel.tick_params(axis="x", length=0)
    plots.plain(panel)
    plots.below(figure, "workloads in the order of their numbers, by object size")
    figure.legend(loc="outside right center", fontsize=plots.SIZE, frameon=False)
    plots.head(figure, finding, "1, 8 and 64 workers, each with 4 shares of reads")


PLOTS = {
    "bandwidth": Drawing("Bandwidth by workload number", bandwidth),
    "cpu": Drawing("CPU by workload number", cpu),
}
