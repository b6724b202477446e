"""What fastio gains and loses, of everything that it patches: ``python -m benchmarks.harness.overview``.

All kept results on one axis, a row for each store and each kind of work, natively and under eventlet. The command
writes ``doc/source/_static/overview.svg``. :func:`page` has the same figures as tables for the documentation.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from benchmarks.harness import gains, keep
from benchmarks.harness.engine import ROOT
from benchmarks.harness.gains import BETTER, FEW, UNCLEAR, WORSE, Gain
from benchmarks.harness.results import Result
from benchmarks.harness.tables import number
from fastio import terminal
from fastio.arguments import Parser
from fastio.patching import registry
from fastio.tables import EMPTY, Table

PICTURE = ROOT / "doc" / "source" / "_static" / "overview.svg"


@dataclass(frozen=True)
class Row:
    """A row of the overview.

    :param picks: ``RESULT | CASE`` and, where it is not each row with fastio, ``| TITLE``; ``*`` stands for anything
    :param patches: those at work
    :param key: of another figure of the runs than the case's, of which less is better
    """

    label: str
    picks: tuple[str, ...]
    patches: tuple[str, ...] = ()
    key: str = ""


_STORE = ("image_hashing",)
_DOWNLOADS = ("glance | *-download", "glance_33 | *-download", "glance_shipped* | *-download")
_UPLOADS = ("glance | *-upload", "glance_shipped* | *-upload")


def _store(name: str) -> list[Row]:
    """A store's two rows; its cases have its name, or more."""
    patches = (f"store_{name}", *_STORE)
    results_ = ("stores | {0}-{1}-*", "stores | {0}-1MiB-{1}-*", "stores_* | {0}-{1}-*", "stores_* | {0}-1MiB-{1}-*")
    return [
        Row(f"{name}: {task}", tuple(each.format(name, task) for each in results_), patches) for task in ("get", "add")
    ]


#: Of each area, the rows.
AREAS: Mapping[str, Sequence[Row]] = {
    "Child processes": [
        Row(
            "a child's output",
            ("sheepdog | cat", "sheepdog | read-*", "peers | output"),
            ("communicate", "green_communicate", "oslo_spawn"),
        ),
        Row(
            "a child's input",
            ("input | *", "sheepdog | write-*", "peers | input"),
            ("communicate", "green_communicate", "oslo_spawn"),
        ),
        Row("a short command", ("commands | true*",), ("oslo_spawn",)),
        Row("the end of a child is noticed", ("commands | late-exit", "commands | wait"), ("wait", "green_wait")),
        Row("GreenPipe: reads", ("green_pipe | read*", "green_pipe | lines*"), ("green_pipe",)),
        Row("GreenPipe: writes", ("green_pipe | write*", "green_pipe | echo"), ("green_pipe",)),
        Row("others' wait beside children's output", ("fairness | *",), ("green_communicate",)),
    ],
    "glance_store": [
        *_store("filesystem"),
        _store("http")[0],
        *_store("swift"),
        *_store("s3"),
        Row(
            "s3: many small or a single part",
            ("stores* | s3-100-*", "stores* | s3-single-*"),
            ("s3_client", "s3_singlepart"),
        ),
        *_store("rbd"),
        *_store("cinder"),
        *_store("vmware"),
        Row("sheepdog: get", ("sheepdog_driver | get-*",), ()),
        Row("sheepdog: add", ("sheepdog_driver | add-*",), ()),
        Row("others' wait beside a get", ("stores | *-get-*", "stores_* | *-get-*"), ("image_fairness",), "p99_ms"),
        Row("others' wait beside an add", ("stores | *-add-*", "stores_* | *-add-*"), ("image_fairness",), "p99_ms"),
    ],
    "glance": [
        Row("glance-api: download", _DOWNLOADS, ("glance_sendfile", *_STORE)),
        Row(
            "glance-api: upload, import",
            (*_UPLOADS, "disk_uploads | *", "imports | *"),
            ("glance_uploads", "glance_imports", "image_hashing"),
        ),
        Row(
            "glance-api: many downloads",
            (
                "concurrency* | *",
                "offered_load* | glance-*",
                "network* | *",
                "slow_clients* | *[0-9]",
                "slow_uploads | *",
            ),
            ("glance_sendfile", "glance_slow_clients", *_STORE),
        ),
        Row(
            "other requests' p99 beside downloads",
            (*_DOWNLOADS, "slow_clients* | *[0-9]"),
            ("image_fairness", "glance_slow_clients"),
            "p99_ms",
        ),
        Row(
            "other requests' p99 beside uploads",
            (*_UPLOADS, "slow_clients* | *-uploads*", "slow_uploads | *"),
            ("image_fairness",),
            "p99_ms",
        ),
        Row(
            "clients: download, upload",
            ("glance_client* | *", "client_* | *", "uploads | *"),
            ("glanceclient_hashing", "urllib3_blocks", "urllib3_sendfile"),
        ),
    ],
    "eventlet's WSGI server": [
        Row("with Content-Length", ("wsgi | length-*",), ("green_sendall",)),
        Row("chunked", ("wsgi | chunked-*",), ("green_wsgi_chunked",)),
        Row("sendall() of large buffers", ("wsgi | sendall-*",), ("green_sendall",)),
        Row("log server, from disk", ("disk_swift | * | disk-fastio", "offered_load* | logs-disk"), ("green_sendall",)),
        Row(
            "log server, from Swift",
            ("disk_swift | * | swift-*fastio", "offered_load* | logs-swift"),
            ("green_sendall",),
        ),
    ],
}


def found(row: Row, of: Mapping[str, Result]) -> Iterator[tuple[str, Gain]]:
    """What a row has, with the name of the result."""
    for name, result in of.items():
        for case in result.cases:
            titles = [title for pick in row.picks for title in _titles(pick, name, case.name)]
            # To resample a case for each row that has nothing of it would take minutes.
            for each in gains.gains(case, row.key) if titles else ():
                if any(fnmatchcase(each.title, title) for title in titles) and "traced" not in each.title:
                    yield name, replace(each, mode=each.mode or ("eventlet" if name == "disk_swift" else "native"))


def _titles(pick: str, name: str, case: str) -> list[str]:
    """The pattern of the titles that it picks of a case; empty if it picks none."""
    result, cases, *titles = pick.split(" | ")
    return (titles or ["*"]) if fnmatchcase(name, result) and fnmatchcase(case, cases) else []


def rows(of: Mapping[str, Result]) -> dict[str, list[Gain]]:
    """The rows that there are figures of."""
    made = {row.label: [each for _, each in found(row, of)] for own in AREAS.values() for row in own}
    return {label: points for label, points in made.items() if points}


def finding(of: Mapping[str, Result]) -> str:
    """What all of them say, in a sentence."""
    points = [each for points in rows(of).values() for each in points]
    counts = {verdict: sum(each.verdict == verdict for each in points) for verdict in gains.VERDICTS}
    ratios = [each.times.ratio for each in points if each.verdict == BETTER]
    losses = [each.times.ratio for each in points if each.verdict == WORSE]
    down = f", down to {number(min(losses))} x" if losses else ""
    return (
        f"With fastio, {counts[BETTER]} of {len(points)} measurements are better, by up to {number(max(ratios))} x, "
        f"and {counts[WORSE]} are worse{down}; {counts[UNCLEAR]} show no clear difference, "
        f"{counts[FEW]} have too few rounds"
    )


def svg(of: Mapping[str, Result]) -> str:
    """The picture."""
    from benchmarks.harness import plots

    return plots.svg(plots.gains_figure(rows(of), finding(of)))


def tables(of: Mapping[str, Result]) -> list[Table]:
    """The same as tables: what each row has, and all whose median is worse."""
    return [_summary(of), _losses(of)]


def _summary(of: Mapping[str, Result]) -> Table:
    head = ["", "mode", "times better", *gains.VERDICTS, "patches at work"]
    made = Table("Gains and losses", head, [])
    for row in (row for own in AREAS.values() for row in own):
        points = [each for _, each in found(row, of)]
        for mode in dict.fromkeys(each.mode for each in points):
            own = [each for each in points if each.mode == mode]
            ratios = [each.times.ratio for each in own]
            counts = [sum(each.verdict == verdict for each in own) for verdict in gains.VERDICTS]
            low, high = number(min(ratios)), number(max(ratios))
            made.rows.append([
                row.label, mode, low if low == high else f"{low} to {high}",
                *(str(count) if count else EMPTY for count in counts), _names(row.patches),
            ])  # fmt: skip
    measured = {patch for own in AREAS.values() for row in own for patch in row.patches}
    rest = [patch.name for patch in registry.patches() if patch.name not in measured]
    made.notes.append(f"what no row shows, since it corrects errors or is not measured: {_names(rest)}")
    return made


def _names(patches: Sequence[str]) -> str:
    return ", ".join(f"``{each}``" for each in patches)


def _losses(of: Mapping[str, Result]) -> Table:
    head = ["", "measured", "row", "mode", "times better (95 %)", "rounds", "verdict", "result"]
    made = Table("Whose median is worse with fastio", head, [])
    for row in (row for own in AREAS.values() for row in own):
        for name, each in found(row, of):
            if each.times.ratio < 1:
                times = number(each.times.ratio) if each.verdict == FEW else str(each.times)
                measured = each.case.title or each.case.name
                rounds = str(each.rounds)
                made.rows.append([row.label, measured, each.title, each.mode, times, rounds, each.verdict, name])
    return made


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(
        prog="python -m benchmarks.harness.overview",
        description="Draw what fastio gains and loses, of all kept results.",
    )
    parser.add_argument("-o", "--output", type=Path, default=PICTURE, metavar="FILE")
    chosen = parser.parse_args(arguments).output
    chosen.parent.mkdir(parents=True, exist_ok=True)
    chosen.write_text(svg(keep.runs()), encoding="utf-8")
    print(chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
