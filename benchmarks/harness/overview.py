"""fastio's gains and losses, for everything that it patches: ``python -m benchmarks.harness.overview``.

All runs that are kept on one axis, a row for each store and each kind of work, natively and under eventlet. The command
writes ``doc/source/_static/overview.svg``. :func:`tables` has the same figures for the documentation.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from benchmarks.harness import gains, keep
from benchmarks.harness.gains import BETTER, FEW, WORSE, Gain
from benchmarks.harness.results import ROOT, Result
from fastio.tables import EMPTY, Table, number

PICTURE = ROOT / "doc" / "source" / "_static" / "overview.svg"
_UPLOADS = "glance* *-upload, deployments* *-upload"
_SLOW = "slow_clients* *[0-9], glance* *shipped-[0-9], glance* *shipped-[0-9]00, deployments* *-4, deployments* *-200"
#: Of each row, patterns of the runs and of the cases that it has, and of their rows if these are not all with fastio.
ROWS = {
    "a child's output": "sheepdog* cat, sheepdog* read-*, peers* *output*, processes output-*",
    "a child's input": "input* *, sheepdog* write-*, peers* *input*, processes input-*",
    "a short command, a start": "commands* true*, processes true*, starts* *, processes start-*",
    "the end of a child is noticed": "commands* late-exit, commands* wait, processes late-exit, processes wait",
    "GreenPipe: reads": "green_pipe* *read*, green_pipe* *lines*, processes pipe-read*, processes pipe-lines*",
    "GreenPipe: writes": "green_pipe* *write*, green_pipe* *echo, processes pipe-write*, processes pipe-echo",
    "others' wait beside children's output": "fairness* *, processes transfers-*",
    **{
        f"{store}: {task}": f"stores* {store}-{task}-*, stores* {store}-1MiB-{task}-*"
        for store in ("filesystem", "http", "swift", "s3", "rbd", "cinder", "vmware")
        for task in ("get", "add")
        if (store, task) != ("http", "add")
    },
    "distant stores: get": "stores* *-far-get-*",
    "s3: many small or a single part": "stores* s3-100-*, stores* s3-single-*",
    "sheepdog: get, add": "sheepdog_driver *-*, sheepdog driver-*",
    "others' wait beside a get": "stores* *-get-*",
    "others' wait beside an add": "stores* *-add-*",
    "glance-api: download": "glance* *-download, deployments* *-download",
    "glance-api: upload, import": f"{_UPLOADS}, disk_uploads *, imports *, glance* *-disk, glance* *-import",
    "glance-api: many downloads": "concurrency* glance-*, concurrency* offered-glance-*, concurrency* network-*, "
    f"offered_load* glance-*, network* *, {_SLOW}, slow_uploads* *, glance* *-uploads*",
    "other requests' p99 beside downloads": f"glance* *-download, {_SLOW}",
    "other requests' p99 beside uploads": f"{_UPLOADS}, slow_clients* *-uploads*, slow_uploads* *, glance* *-uploads*",
    "clients: download, upload": "glance_client* *, client_* *, uploads* *, clients* *",
    "WSGI server: with Content-Length": "wsgi* *length-*, processes wsgi-length-*",
    "WSGI server: chunked": "wsgi* *chunked-*, processes wsgi-chunked-*",
    "WSGI server: sendall() of large buffers": "wsgi* sendall-*, processes sendall-*",
    "log server, from disk": "disk_swift* * disk-fastio, offered_load* logs-disk, concurrency* *logs-disk",
    "log server, from Swift": "disk_swift* * swift-*fastio, offered_load* logs-swift, concurrency* *logs-swift",
}
#: Rows that compare how long others wait.
OTHERS, WAIT = ("others' wait beside a get", "others' wait beside an add", "other requests'"), "p99_ms"


def found(label: str, runs: Mapping[str, Result]) -> Iterator[tuple[str, Gain]]:
    """Describe a row, with the name of the run."""
    picks = [[*pick.split(), "*"][:3] for pick in ROWS[label].split(", ")]
    for name, run in runs.items():
        usual = "eventlet" if name.startswith("disk_swift") else "native"
        for case in run.cases:
            titles = [title for own, cases, title in picks if fnmatchcase(name, own) and fnmatchcase(case.name, cases)]
            for each in gains.gains(case, WAIT * label.startswith(OTHERS)) if titles else ():
                if any(fnmatchcase(each.title, title) for title in titles) and "traced" not in each.title:
                    yield name, replace(each, mode=each.mode or usual)


def rows(runs: Mapping[str, Result]) -> dict[str, list[Gain]]:
    """The rows that there are figures of."""
    made = {label: [each for _, each in found(label, runs)] for label in ROWS}
    return {label: points for label, points in made.items() if points}


def finding(runs: Mapping[str, Result]) -> str:
    """Summarise all of them in a sentence."""
    points = [each for points in rows(runs).values() for each in points]
    counts = {verdict: sum(each.verdict == verdict for each in points) for verdict in gains.VERDICTS}
    most = max(each.times.ratio for each in points if each.verdict == BETTER)
    losses = [each.times.ratio for each in points if each.verdict == WORSE]
    down = f", down to {number(min(losses))} x" if losses else ""
    return (
        f"With fastio, {counts[BETTER]} of {len(points)} measurements are better, by up to {number(most)} x, "
        f"and {counts[WORSE]} are worse{down}; {counts[gains.UNCLEAR]} show no clear difference, "
        f"{counts[FEW]} have too few rounds"
    )


def svg(runs: Mapping[str, Result]) -> str:
    from benchmarks.harness import plots

    return plots.svg(plots.gains_figure(rows(runs), finding(runs)))


def tables(runs: Mapping[str, Result]) -> list[Table]:
    """Return a table of all rows, and one of those whose median is worse."""
    made = Table("Gains and losses", ["", "mode", "times better", *gains.VERDICTS, "measured"], [])
    head = ["", "measured", "row", "mode", "times better (95 %)", "rounds", "verdict", "run"]
    losses = Table("Whose median is worse with fastio", head, [])
    for label in ROWS:
        points = [*found(label, runs)]
        for mode in dict.fromkeys(each.mode for _, each in points):
            own = [(name, each) for name, each in points if each.mode == mode]
            ends = [number(choose(each.times.ratio for _, each in own)) for choose in (min, max)]
            counts = [sum(each.verdict == verdict for _, each in own) for verdict in gains.VERDICTS]
            days = sorted({runs[name].started[:10] for name, _ in own})
            cells = [" to ".join(dict.fromkeys(ends)), *(str(count) if count else EMPTY for count in counts)]
            made.rows.append([label, mode, *cells, " to ".join(dict.fromkeys([days[0], days[-1]]))])
        for name, each in points:
            if each.times.ratio < 1:
                times = number(each.times.ratio) if each.verdict == FEW else str(each.times)
                cells = [each.case.title or each.case.name, each.title, each.mode, times]
                losses.rows.append([label, *cells, str(each.rounds), each.verdict, name])
    return [made, losses]


def main(arguments: Sequence[str] | None = None) -> int:
    PICTURE.write_text(svg(keep.runs()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
