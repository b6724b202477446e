"""Look for programs that see a difference between stock and patched code::

    python -m benchmarks.tools.fuzz --seconds 60
    python -m benchmarks.tools.fuzz --seconds 3600 --seed 7 --hub native,epolls
    python -m benchmarks.tools.fuzz --replay fuzz-failures/strict-epolls-monkey-7-12.json

Random programs over Popen and GreenPipe run stock, patched without the ``fix_`` patches, and patched as by default:
natively and under each hub of eventlet. The programs of ``benchmarks/tools/fuzz/seeds``, and those that failed before
(``fuzz-failures``), come first. A difference that no fix is there for is run again, made small by Hypothesis, written
to ``fuzz-failures`` and printed; the exit status is then 1.
"""

import argparse
import pathlib
import sys
from collections.abc import Sequence

from benchmarks.tools.fuzz.search import Search
from benchmarks.tools.fuzz.sides import GROUPS, HERE, HUBS
from fastio import terminal
from fastio.arguments import Parser

KEEP = pathlib.Path("fuzz-failures")


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 1 if there are failures."""
    parser = Parser(
        prog="python -m benchmarks.tools.fuzz",
        description="Look for programs that see a difference between stock and patched code.",
    )
    add = parser.add_argument
    add("--seconds", type=float, default=60, help="how long to search (%(default)g)")
    add("--seed", type=int, default=1, help="the same seed makes the same programs (%(default)s)")
    add("--hub", type=_hubs, default=("native", *HUBS), metavar="LIST",
        help="native, and hubs of eventlet: epolls, poll, selects, asyncio (all)")  # fmt: skip
    add("--replay", type=pathlib.Path, nargs="+", metavar="FILE", help="run only these programs")
    options = parser.parse_args(arguments)
    search = Search([group for group in GROUPS if group.hub in options.hub], options.seed, KEEP)
    if options.replay:
        search.replay(options.replay)
    else:
        search.replay([*sorted((HERE / "seeds").glob("*.json")), *sorted(KEEP.glob("*.json"))])
        search.search(options.seconds)
    for name, number in sorted(search.tally.items()):
        print(f"{number:6}  {name}")
    print(f"{len(search.failures) or 'no'} failures")
    return 1 if search.failures else 0


def _hubs(text: str) -> tuple[str, ...]:
    for name in text.split(","):
        if name not in ("native", *HUBS):
            raise argparse.ArgumentTypeError(f"{name!r} is none of native, {', '.join(HUBS)}")
    return tuple(text.split(","))


if __name__ == "__main__":
    sys.exit(main())
