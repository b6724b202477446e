"""False alarms: a release is judged against itself again and again, so whatever is said of it is wrong (A against A).

``python -m benchmarks.validate.repeat PROJECT --runs 50``, or ``tox -e validate-repeat``, has the candidate ``stock``
validated that often. Each run is kept as soon as it is over, with what was said of it, and the same command goes on
where it was interrupted. By default a run takes about a minute: one suite, and a few benchmarks.
``python -m benchmarks.documentation`` keeps the result for the documentation.

Exit status: 0, 1 if there are more false alarms than allowed, 2 if it cannot be run as asked, 130 if interrupted.
"""

import argparse
import contextlib
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fastio
from benchmarks.harness import compare, machine, results, statistics
from benchmarks.harness.engine import ROOT
from benchmarks.harness.goals import MET, NOT_MET
from benchmarks.harness.results import CaseResult, Result, ResultError, VariantResult
from benchmarks.tools.upstream.__main__ import count
from benchmarks.tools.upstream.sources import Unavailable
from benchmarks.tools.upstream.terminal import Screen
from fastio import terminal
from fastio.arguments import Parser
from fastio.tables import Table, number

from . import __main__ as command
from . import candidates, findings, isolation, projects, state
from .errors import ValidateError
from .outcome import Outcome
from .projects import Project
from .suites import WORDS

#: What a result says that it is of, see :data:`benchmarks.harness.suites.OTHERS`.
SUITE = "repeat"
#: So many false alarms at most, in so many runs.
MOST, RUNS = 1, 50
#: Benchmarks of a quick run, each of another suite.
FEW = 3
#: Rounds of each row. With fewer than five the rank test never says that two rows differ.
ROUNDS = 7
#: Lines of what was said that a table shows.
MOST_SAID = 20

#: The row of a case, which is a project.
ROW = "stock against stock"
#: What is counted beside the false alarms: name in a run, and heading.
COUNTED = {"slower": "slower", "faster": "faster", "flaky": "flaky tests", "changed": "other tests"}


def quick(project: Project) -> tuple[list[str], list[str]]:
    """The suite and the benchmarks of a quick run."""
    first: dict[str, str] = {}
    for case in project.cases:
        first.setdefault(case.partition("/")[0], case)
    return list(project.suites[:1]), list(first.values())[:FEW]


class Repeat:
    """The runs of one project, those included that were made before an interruption."""

    def __init__(self, given: argparse.Namespace, screen: Screen) -> None:
        """
        :param given: options of the command
        :raises ValidateError: if something that was asked for is not there, or is not what the kept runs were made of
        :raises ResultError: if the file with the kept runs is damaged
        """
        self._project = projects.find(given.project, given.stock)
        suites, cases = quick(self._project)
        #: of each run
        self._asked = {"suite": given.suite or ",".join(suites), "benchmarks": given.benchmarks or ",".join(cases)}
        self._asked = {name: text or "none" for name, text in self._asked.items()}
        self._project.choose_suites(self._asked["suite"].split(","))
        self._project.choose_cases(self._asked["benchmarks"].split(","))
        self._given = given
        self._screen = screen
        self._directory = given.results / f"repeat-{self._project.name}"
        self.path = given.results / f"validate_repeat_{self._project.name}.json"
        # Whatever is wrong with the file is said before anything is run.
        self._result = self._read()

    def run(self) -> Result:
        """Make the runs that are missing.

        :raises ValidateError: if an environment cannot be made
        """
        runs = self._given.runs
        # It makes the environments, which is no part of any run.
        made = self._judge(self._directory / "made", "--suite", "none", "--benchmarks", "none")
        case = self._case(made)
        row = case.variants[ROW]
        while len(row.runs) < runs:
            case.complete = False
            place = self._directory / f"run-{len(row.runs) + 1}"
            started, load = time.time(), machine.load()
            outcome = self._judge(place, *(f"--{name}={text}" for name, text in self._asked.items()))
            seconds = time.time() - started
            said = list(_said(outcome))
            row.runs.append({
                "round": len(row.runs) + 1, "warmup": False, "started": started, "verified": True, "seconds": seconds,
                "load": load, "false_alarm": int(bool(outcome.failures())), **_counts(outcome),
            })  # fmt: skip
            row.details["said"] += [{"run": len(row.runs), "line": line} for line in said]
            self._result.write(self.path)
            if not said:
                shutil.rmtree(place)
            self._screen.say(f"run {len(row.runs)} of {runs}: {seconds:.0f} s; {'; '.join(said) or 'nothing was said'}")
        case.complete = True
        case.load_after = machine.load()
        row.rounds = row.usual_rounds = len(row.runs)
        self._result.write(self.path)
        return self._result

    def _judge(self, place: Path, *options: str) -> Outcome:
        # One that was interrupted would be quicker than the others.
        shutil.rmtree(place, ignore_errors=True)
        given = self._given
        asked = [self._project.name, "--candidate", candidates.STOCK, "--no-fastio", "--plain", *options]
        asked += ["--rounds", str(given.rounds), "--isolation", given.isolation, "--jobs", str(given.jobs)]
        asked += ["--cache", str(given.cache), "--results", str(place)]
        asked += ["--stock", given.stock] if given.stock else []
        return command.judge(asked)

    def _read(self) -> Result:
        if not self._given.fresh:
            with contextlib.suppress(FileNotFoundError):
                kept = results.read(self.path)
                if kept.suite != SUITE:
                    raise ResultError(f"{self.path} is a result of {kept.suite}, and would be overwritten")
                return kept
        return Result(SUITE, machine.describe(), {"fastio": fastio.__version__})

    def _case(self, made: Outcome) -> CaseResult:
        """The project's, as far as it goes."""
        (python,) = made.pythons
        stock = python.variants[0]
        parameters = {"release": stock.version, **self._asked, "rounds": self._given.rounds}
        details = {
            "python": python.python.version, "packages": stock.environment.versions(),
            "isolation": made.isolation.name, "code": state.key({}),
        }  # fmt: skip
        for case in self._result.cases:
            self._check_same(case, parameters, details)
            self._screen.say(f"going on with the {len(case.variants[ROW].runs)} runs that {self.path} has")
            return case
        row = VariantResult(ROW, ["fastio", "validate"], {}, self._given.runs, self._given.runs)
        row.details = {**details, "said": []}
        title = f"{self._project.name} {stock.version} against itself"
        case = CaseResult(
            self._project.name, title, "validate", parameters, baseline=ROW, unit="s", value="seconds", columns=[],
            seed=0, variants={ROW: row},
        )  # fmt: skip
        case.load_before = machine.load()
        self._result.cases.append(case)
        return case

    def _check_same(self, case: CaseResult, parameters: dict[str, Any], details: dict[str, Any]) -> None:
        kept = case.variants[ROW].details
        machines = (
            {key: each.get(key) for key in machine.STABLE} for each in (self._result.machine, machine.describe())
        )
        other = compare.differing("", *machines) + compare.differing("", case.parameters, parameters)
        other += compare.differing("", kept["packages"], details.pop("packages"))
        other += compare.differing("", {name: kept[name] for name in details}, details)
        if other:
            raise ValidateError(
                f"the runs that {self.path} has were made otherwise: {', '.join(line.strip() for line in other)}; "
                "--fresh begins anew, another --results DIR leaves them as they are"
            )


def _counts(outcome: Outcome) -> dict[str, int]:
    rows = [row.verdict for each in outcome.pythons for row in each.rows]
    tests = {
        word: sum(len(compared.found(word)) for each in outcome.pythons for compared in each.suites)
        for word in WORDS.values()
    }
    return {
        "rows": len(rows), "slower": rows.count(compare.SLOWER), "faster": rows.count(compare.FASTER),
        "flaky": tests[WORDS["not reproduced"]], "changed": tests[WORDS["changed"]] + tests[WORDS["newly passing"]],
    }  # fmt: skip


def _said(outcome: Outcome) -> Iterator[str]:
    """Everything that is not so, a line each."""
    for each in findings.of(outcome):
        yield f"{each.rule.id}: {each.message.splitlines()[0]}"
    for python in outcome.pythons:
        yield from (str(row) for row in python.rows if row.verdict == compare.FASTER)
        for compared in python.suites:
            word = WORDS["newly passing"]
            yield from (f"{compared.variant}: {compared.name}: {each.test}: {word}" for each in compared.found(word))


def judgement(result: Result) -> list[Table]:
    """How many of the runs were wrong."""
    head = [
        "project", "runs", "false alarms", "of all runs, at most (95 %)", *COUNTED.values(), "s", "longest", "goal",
        "met",
    ]  # fmt: skip
    made = Table("False alarms", head, [_line(case) for case in result.cases if case.measured()])
    said = [f"{case.name}, run {each['run']}: ``{each['line']}``"
            for case in result.cases for each in case.variants[ROW].details["said"]]  # fmt: skip
    made.notes = [
        "A false alarm is a run that fails. Benchmarks that are called slower or faster, flaky tests and others whose "
        "outcome is not the same are counted beside it: they make no run fail.",
        *said[:MOST_SAID],
        *([f"and {len(said) - MOST_SAID} more, in the result"] if len(said) > MOST_SAID else []),
    ]
    return [made]


def _line(case: CaseResult) -> list[str]:
    runs = case.variants[ROW].measured()
    alarms = sum(run["false_alarm"] for run in runs)
    seconds = case.figures(ROW)
    met = NOT_MET if missed(alarms, len(runs)) else MET if len(runs) >= RUNS else "too few runs to tell"
    return [
        f"{case.name} {case.parameters['release']}", str(len(runs)), str(alarms), f"{_at_most(alarms, len(runs)):.1%}",
        *(str(sum(run[name] for run in runs)) for name in COUNTED),
        number(statistics.median(seconds)), number(max(seconds)), f"≤ {MOST} in {RUNS}", met,
    ]  # fmt: skip


def missed(alarms: int, runs: int) -> bool:
    """Whether there are more false alarms than there may be in as many runs, begun fifties counted as whole."""
    return alarms > MOST * -(-runs // RUNS)


def _at_most(alarms: int, runs: int) -> float:
    """The share of runs with a false alarm that there may be at most, at 95 % (Clopper and Pearson, one-sided)."""
    from scipy.stats import binomtest

    return float(binomtest(alarms, runs, alternative="less").proportion_ci(0.95).high)


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    screen = Screen(plain=True)
    try:
        repeat = Repeat(options, screen)
        result = repeat.run()
    except (ValidateError, Unavailable, ResultError) as error:
        print(f"python -m benchmarks.validate.repeat: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130
    for table in judgement(result):
        screen.table(table)
    screen.say(str(repeat.path))
    runs = [case.variants[ROW].measured() for case in result.cases]
    return int(any(missed(sum(run["false_alarm"] for run in each), len(each)) for each in runs))


def _parser() -> Parser:
    parser = Parser(prog="python -m benchmarks.validate.repeat", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("project", metavar="PROJECT", help=f"one of {', '.join(projects.PROJECTS)}")
    parser.add_argument(
        "--runs", type=count, default=RUNS, metavar="N", help="those included that there are (%(default)s)"
    )
    parser.add_argument("--stock", default="", metavar="VERSION", help="the release (the newest)")
    parser.add_argument("--suite", default="", metavar="LIST", help="as for fastio validate (the project's first)")
    parser.add_argument("--benchmarks", default="", metavar="LIST",
                        help=f"as for fastio validate (the first of each suite, {FEW} at most)")  # fmt: skip
    parser.add_argument("--rounds", type=count, default=ROUNDS, metavar="N", help="of each row (%(default)s)")
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help="suites side by side (%(default)s)")
    parser.add_argument("--isolation", default=isolation.AUTO, choices=isolation.ALLOWED,
                        help="as for fastio validate (%(default)s)")  # fmt: skip
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "validate", metavar="DIR",
                        help="for environments and sdists (build/validate in the checkout)")  # fmt: skip
    parser.add_argument("--results", type=Path, default=ROOT / "results", metavar="DIR",
                        help="for validate_repeat_PROJECT.json, and the reports of runs of which something was said "
                        "(results in the checkout)")  # fmt: skip
    parser.add_argument("--fresh", action="store_true", help="forget the runs that there are")
    return parser


if __name__ == "__main__":
    sys.exit(main())
