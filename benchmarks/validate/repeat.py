"""False alarms: a release is judged against itself again and again, and whatever fails is one.

``python -m benchmarks.validate.repeat PROJECT --runs 50 [OPTIONS of fastio validate]``, or ``tox -e validate-repeat``.
Exit status: 0, 1 if more than one run of fifty fails, 2 if it cannot be run as asked.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.tools.upstream.__main__ import count
from benchmarks.tools.upstream.sources import Unavailable
from fastio import terminal
from fastio.arguments import Parser

from . import __main__ as command
from . import candidates
from .errors import ValidateError

#: So many false alarms at most, in so many runs.
MOST, RUNS = 1, 50


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.validate.repeat", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("project", metavar="PROJECT", help="as for fastio validate, and so are all other options")
    parser.add_argument("--runs", type=count, default=RUNS, metavar="N", help="how often (%(default)s)")
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="DIR", help="for the reports")
    given, others = parser.parse_known_args(arguments)
    asked = [given.project, "--candidate", candidates.STOCK, "--no-fastio", "--fresh", *others]
    alarms = 0
    for run in range(1, given.runs + 1):
        try:
            outcome = command.judge(
                [*asked, "--results", str(given.results / f"repeat-{given.project}" / f"run-{run}")]
            )
        except (ValidateError, Unavailable) as error:
            print(f"python -m benchmarks.validate.repeat: {error}", file=sys.stderr)
            return 2
        alarms += bool(outcome.failures())
        print(f"run {run} of {given.runs}: {alarms} false alarms; at most {MOST} in {RUNS} is allowed", flush=True)
    return int(alarms > MOST * -(-given.runs // RUNS))


if __name__ == "__main__":
    sys.exit(main())
