"""Look for programs that see a difference between stock and patched code::

    python -m benchmarks.tools.fuzz --seconds 60
    python -m benchmarks.tools.fuzz --seconds 3600 --seed 7 --hub native,epolls --keep DIRECTORY
    python -m benchmarks.tools.fuzz --replay fuzz-failures/strict-epolls-monkey-7-1234.json

Random programs over Popen and GreenPipe run stock, patched without the ``fix_`` patches, and patched as by default:
natively and under each hub of eventlet. The committed programs of ``benchmarks/tools/fuzz/seeds`` come first. A
difference that no fix is there for is run again, made small, written to a file and printed; the exit status is then 1.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from benchmarks.tools.fuzz import search
from benchmarks.tools.fuzz.sides import (
    FLAVOURS,
    GROUPS,
    HERE,
    HUBS,
    ROOT,
    Group,
    Installation,
    Team,
)
from fastio import terminal
from fastio.arguments import Parser

SEEDS = HERE / "seeds"


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 1 if there are failures."""
    options = _parser().parse_args(arguments)
    groups = [
        group
        for group in GROUPS
        if group.hub in options.hub and (group.hub == "native" or group.flavour in options.flavour)
    ]
    with tempfile.TemporaryDirectory(prefix="fastio-fuzz-") as directory:
        installation = Installation(
            os.path.abspath(options.python) if os.sep in options.python else options.python,
            os.path.abspath(options.fastio_path),
            directory=directory,
        )
        finder = search.Search(
            installation, groups, options.seed, lambda line: print(line, flush=True), options.keep
        )  # fmt: skip
        if options.replay:
            if options.show:
                for name, program, group in read(options.replay):
                    _show(installation, name, program, group or groups[0])
            finder.replay(read(options.replay), options.jobs)
        else:
            finder.replay(read(sorted(SEEDS.glob("*.json"))), options.jobs)
            finder.search(options.seconds, options.programs, options.jobs)
    tally = finder.tally
    _print(tally)
    return 1 if tally.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m benchmarks.tools.fuzz",
        description="Look for programs that see a difference between stock and patched code.",
    )
    add = parser.add_argument
    add("--seconds", type=float, default=60, help="how long to search (%(default)g)")
    add("--programs", type=int, metavar="N", help="stop after N programs; by default only --seconds counts")
    add("--seed", type=int, default=1, help="the same seed makes the same programs (%(default)s)")
    add("--hub", type=_some(("native", *HUBS)), default=("native", *HUBS), metavar="LIST",
        help="native, and hubs of eventlet: epolls, poll, selects, asyncio (all)")  # fmt: skip
    add("--flavour", type=_some(FLAVOURS), default=FLAVOURS, metavar="LIST",
        help="how a program under a hub comes by Popen: monkey, explicit, taken (all)")  # fmt: skip
    add("--python", default=sys.executable, metavar="PYTHON", help="the Python that the programs run in (this one)")
    add("--fastio-path", default=str(ROOT), metavar="DIR", help="another checkout of fastio to search in")
    add("--replay", type=pathlib.Path, nargs="+", metavar="FILE", help="run only these programs")
    add("--show", action="store_true", help="with --replay: what each side sees of each operation")
    add("--keep", type=pathlib.Path, default=pathlib.Path("fuzz-failures"), metavar="DIR",
        help="where failures are written to (%(default)s)")  # fmt: skip
    add("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="programs at a time (%(default)s)")
    return parser


def _some(names: Sequence[str]) -> Any:
    def parse(text: str) -> tuple[str, ...]:
        given = tuple(text.split(","))
        for name in given:
            if name not in names:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(names)}")
        return given

    return parse


def read(paths: Sequence[pathlib.Path]) -> list[tuple[str, dict[str, Any], Group | None]]:
    """Programs of files, each with its name and the group that it is for."""
    found = []
    for path in paths:
        data = json.loads(path.read_text())
        group = Group(data["hub"], data["flavour"]) if "hub" in data else None
        found.append((path.stem, data["program"], group))
    return found


def _show(installation: Installation, name: str, program: dict[str, Any], group: Group) -> None:
    team = Team(group, installation)
    try:
        seen = team.run(program, ("stock", *search.SIDES))
        print(f"{name}, {group}")
        for child in program.get("children", []):
            print("  child", json.dumps(child))
        for index, operation in enumerate(program["ops"]):
            print("  " + json.dumps(operation))
            for side, outcome in seen.items():
                print(f"    {side:7}", json.dumps(outcome["ops"][index]) if "ops" in outcome else json.dumps(outcome))
        for side, outcome in seen.items():
            print(f"  {side:7} {json.dumps({key: outcome.get(key) for key in ('left', 'leaked')})}")
        for side in search.SIDES:
            print(f"  {side}: {search.judge(team, program, side)}")
    finally:
        team.stop()


def _print(tally: search.Tally) -> None:
    count = sum(tally.programs.values())
    pace = f", {count / tally.seconds:.1f} a second" if tally.seconds else ""
    print(f"{count} programs{pace}; {tally.stock_hangs} hang in stock; {tally.unstable} differences did not come again")
    for name, number in sorted(tally.programs.items()):
        print(f"  {number:6}  {name}")
    if tally.explained:
        print("differences that a fix is there for:")
        for name, number in tally.explained.most_common():
            print(f"  {number:6}  {name}")
    if tally.failures:
        print("failures:")
        for failure in tally.failures:
            more = tally.again[failure.kind]
            print(f"  {failure.kind}  ({failure.group}, after {failure.after:.0f} s; {more} more)")
    else:
        print("no failure")


if __name__ == "__main__":
    sys.exit(main())
