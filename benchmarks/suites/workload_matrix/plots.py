"""The workload matrix: bandwidth and CPU by workload number.

Below each other on the same axis, as in the study: where the bandwidth stops to rise, the second panel says whether the
processors do not. A third one has the servers with fewer processors.
"""

from collections.abc import Sequence

from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.harness import plots
from benchmarks.harness.plots import Drawing
from benchmarks.harness.results import Result
from benchmarks.suites.workload_matrix import tables as matrix
from benchmarks.suites.workload_matrix.bench_workload_matrix import FINDING, PROCESSORS, ratio, shown
from benchmarks.suites.workload_matrix.tables import Workload

#: Inches, of all and of each workload and panel.
WIDTH, EACH, HEIGHT = 4.0, 0.09, 2.6

#: Reads -> colour and marker: they are to be told apart without colours, too.
MIXES = {100: ("#2a7f62", "o"), 80: ("#5f83b0", "s"), 50: ("#b8860b", "^"), 0: ("#8b3a62", "x")}
CPU = {
    "machine_cpu": ("whole machine", "#c4c4c4", "-"),
    "servers_cpu": ("all servers", "#5f83b0", "-"),
    "busiest_cpu": ("busiest server", "#2a7f62", "--"),
    "generator_cpu": ("load generator", "#8b3a62", ":"),
}
LEVELS = ("#2a7f62", "#5f83b0", "#b8860b")


def workloads(result: Result) -> Figure | None:
    found = matrix.workloads(result)
    cases = [case for case in result.cases if case.name in FINDING and case.measured()]
    if not found and not cases:
        return None
    panels = 2 * bool(found) + bool(cases)
    width = WIDTH + max(EACH * len(found), 1.6 * len(cases))
    figure, axes = pyplot.subplots(panels, 1, figsize=(width, HEIGHT * panels), squeeze=False, layout="constrained")
    rest = list(axes[:, 0])
    if found:
        _bandwidth(rest.pop(0), found)
        _cpu(rest.pop(0), found)
    if cases:
        _finding(rest.pop(0), cases)
    return figure


def _bandwidth(panel, found: Sequence[Workload]) -> None:
    for reads, (colour, marker) in MIXES.items():
        own = [each for each in found if each.reads == reads]
        if own:
            numbers, figures = zip(*((each.number, each.bandwidth) for each in own), strict=True)
            panel.plot(numbers, figures, marker, color=colour, markersize=4, label=f"{ratio(reads)} reads:writes")
    panel.set_yscale("log")
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter("{x:.3g}")
    panel.set_title("Bandwidth by workload number", loc="left", size=10)
    _finish(panel, "MiB/s", found)
    _sizes(panel, found)


def _cpu(panel, found: Sequence[Workload]) -> None:
    for name, (label, colour, style) in CPU.items():
        points = [(each.number, each.figures[name]) for each in found if each.figures[name] is not None]
        if points:
            panel.plot(*zip(*points, strict=True), style, color=colour, linewidth=1.2, label=label)
    panel.set_ylim(bottom=0)
    panel.set_title("CPU by workload number", loc="left", size=10)
    _finish(panel, "processors", found)
    panel.set_xlabel("workload number", size=8)


def _finish(panel, unit: str, found: Sequence[Workload]) -> None:
    panel.set_ylabel(unit, size=8)
    panel.set_xlim(found[0].number - 1, found[-1].number + 1)
    _plain(panel)
    for before, after in zip(found, found[1:], strict=False):
        if (before.backend, before.size) != (after.backend, after.size):
            panel.axvline((before.number + after.number) / 2, color="#d0d0d0", linewidth=0.8, zorder=0)


def _sizes(panel, found: Sequence[Workload]) -> None:
    """What lies between two lines: the object size of a backend."""
    groups: dict[tuple[str, int], list[int]] = {}
    for each in found:
        groups.setdefault((each.backend, each.size), []).append(each.number)
    for (backend, size), numbers in groups.items():
        middle = (numbers[0] + numbers[-1]) / 2
        text = f"{backend}\n{shown(size)}"
        panel.annotate(text, (middle, 1), xycoords=("data", "axes fraction"), ha="center", va="top", size=6)


def _finding(panel, cases) -> None:
    for level, (title, colour) in enumerate(zip(PROCESSORS, LEVELS, strict=True)):
        for position, case in enumerate(cases):
            figures = case.figures(title)
            base = case.figures(case.baseline)
            if figures and base:
                at = position + (level - 1) * 0.25
                middle = case.median(case.baseline)
                label = title if position == 0 else None
                panel.bar(at, case.median(title) / middle, 0.22, color=colour, label=label)
                panel.plot([at] * len(figures), [each / middle for each in figures], "o", markersize=3, color="black",
                           alpha=0.5)  # fmt: skip
    panel.set_xticks(range(len(cases)), [case.name.removeprefix("cpu-") for case in cases], size=8)
    panel.set_ylabel("bandwidth, all cores = 1", size=8)
    panel.set_title("The same servers with fewer processors", loc="left", size=10)
    _plain(panel)


def _plain(panel) -> None:
    plots.plain(panel)
    panel.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


PLOTS = {
    "workloads": Drawing("Bandwidth and CPU by workload number, and the same servers with fewer processors", workloads)
}
