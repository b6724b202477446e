"""The grid of the sweep: what each pipe and chunk reaches."""

from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.harness import plots, statistics
from benchmarks.harness.plots import Drawing
from benchmarks.harness.results import Result
from benchmarks.harness.tables import number
from benchmarks.suites.sweep.tables import cells_of
from fastio.config import format_size

COLOURS = ("#8b3a62", "#b8860b", "#5f83b0", "#2a7f62", "#444444", "#c0392b", "#7f9fc4")
MARKERS = "os^Dxv+"


def grid(result: Result) -> Figure | None:
    cells = cells_of(result)
    pipes, chunks = (sorted({getattr(cell, name) for cell in cells}) for name in ("pipe_size", "chunk_size"))
    if len(pipes) < 2:
        return None
    figure, panel = pyplot.subplots(figsize=(plots.WIDTH, 3.2), layout="constrained")
    for number_, chunk in enumerate(chunks):
        points = []
        for position, pipe in enumerate(pipes):
            own = [cell.output_mb_s for cell in cells if (cell.pipe_size, cell.chunk_size) == (pipe, chunk)]
            if own:
                # Side by side, so that none hides another's error bar.
                at = position + 0.07 * (number_ - (len(chunks) - 1) / 2)
                points.append((at, statistics.median(own)))
                plots.spread(panel, at, points[-1][1], own, upright=True)
        panel.plot(
            *zip(*points, strict=True), marker=MARKERS[number_ % len(MARKERS)], markersize=4, linewidth=1,
            color=COLOURS[number_ % len(COLOURS)], label=f"chunk {format_size(chunk)}",
        )  # fmt: skip
    panel.set_ylim(bottom=0)
    panel.set_xticks(range(len(pipes)), [format_size(pipe) for pipe in pipes])
    panel.set_xlabel("pipe_size; medians over yield_bytes, lines: from the lowest to the highest", size=plots.SIZE)
    panel.set_ylabel("MB/s of a child's output", size=plots.SIZE)
    plots.plain(panel)
    figure.legend(loc="outside right center", fontsize=plots.SIZE, frameon=False)
    best = max(cells, key=lambda cell: cell.output_mb_s)
    settings = "/".join(format_size(size) for size in (best.chunk_size, best.pipe_size, best.yield_bytes))
    smallest = max(cell.output_mb_s for cell in cells if cell.pipe_size == pipes[0])
    finding = (
        f"The most is {number(best.output_mb_s)} MB/s (chunk/pipe/yield {settings}); "
        f"a pipe of {format_size(pipes[0])} reaches {number(smallest)} MB/s at best"
    )
    plots.head(figure, finding, "Output of one child under eventlet, by the capacity of the pipe")
    return figure


PLOTS = {"pipes": Drawing("Output by the settings", grid)}
