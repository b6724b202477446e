"""The suites as pytest files: their options, the engine behind their tests, and what is left at the end.

pytest-benchmark neither interleaves what it compares nor uses fresh processes. The first test of a case therefore lets
the engine run the whole case, and each test replays its variant's recorded durations into the ``benchmark`` fixture, on
a clock that only the replay moves; comparing, storing and exporting work as with any other benchmark.

A suite has ``CASES``, a list of :class:`benchmarks.harness.engine.Case`, and one test that takes ``recorded`` and calls
it. The findings (:class:`benchmarks.harness.suites.Suite`) are shown below the figures unless the run was a quick one.
"""

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from benchmarks.harness import engine, machine, tables, values
from benchmarks.harness.results import Result, VariantResult
from benchmarks.harness.suites import OTHERS, Suite, known
from fastio import terminal

#: The engine limits each run; what is around the runs must end, too.
pytest_plugins = ["benchmarks.tools.limits"]


#: Seconds of the clock that only the replay moves.
_clock = [0.0]


def _replayed(seconds: float) -> None:
    _clock[0] += seconds


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fastio benchmarks")
    group.addoption("--rounds", type=values.count(1), help="measured runs of each variant (the suite's own)")
    group.addoption("--size", type=values.size, help="payload where a case has a size, such as 200MiB")
    group.addoption("--result", type=Path, metavar="FILE", help="the JSON result; default: results/SUITE.json")
    group.addoption(
        "--quick", action="store_true",
        help="run each variant once, with little data, to see that it works (so does --benchmark-disable)",
    )  # fmt: skip


class Session:
    """The results of this pytest session, by suite."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        quick = config.getoption("quick") or config.getoption("benchmark_disable", False)
        self.options = engine.Options(config.getoption("rounds"), config.getoption("size"), quick)
        self.results: dict[str, Result] = {}
        #: titles of the variants that are to be run, by suite and case
        self.selected: dict[tuple[str, str], list[str]] = {}

    def select(self, items: list[pytest.Item]) -> None:
        """Note what pytest has collected, less what ``-k`` has left out."""
        for item in items:
            parameters = getattr(getattr(item, "callspec", None), "params", {})
            if "recorded" in parameters:
                suite, case, title = parameters["recorded"]
                self.selected.setdefault((suite, case.name), []).append(title)
                if suite not in known():
                    # One outside of this checkout: what it shows is in its own module.
                    OTHERS[suite] = item.module.__name__  # type: ignore[attr-defined]
        suites = {suite for suite, _ in self.selected}
        if self._config.getoption("result") and len(suites) > 1:
            raise pytest.UsageError(
                f"--result names one file, but there are several suites: {', '.join(sorted(suites))}"
            )

    def path(self, suite: str) -> Path:
        """Where the result of a suite goes. A quick run must not replace the usual one."""
        name = f"{'quick-' * self.options.quick}{suite}.json"
        return self._config.getoption("result") or engine.ROOT / "results" / name

    def variant(self, suite: str, case: engine.Case, title: str) -> VariantResult:
        """The recorded runs of a variant; runs the case if it has not been run yet."""
        if suite not in self.results:
            self.results[suite] = Result(suite, machine.describe(), machine.packages())
        result = self.results[suite]
        if case.name not in [each.name for each in result.cases]:
            reporter = self._config.pluginmanager.getplugin("terminalreporter")
            reporter.write("\n", flush=True)
            with self.uncaptured():
                engine.run([self._selection(suite, case)], result, self.options, path=self.path(suite))
        return result.case(case.name).variants[title]

    def uncaptured(self) -> AbstractContextManager[None]:
        """Within it what is printed is seen at once."""
        return self._config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled()

    def _selection(self, suite: str, case: engine.Case) -> engine.Case:
        titles = self.selected[suite, case.name]
        variants = [variant for variant in case.all_variants() if variant.title in titles]
        return dataclasses.replace(case, variants=variants, baseline=case.baseline if case.baseline in titles else "")


_SESSION = pytest.StashKey[Session]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SESSION] = Session(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "recorded" not in metafunc.fixturenames:
        return
    suite = metafunc.module.__name__.rpartition(".")[2].removeprefix("bench_")
    options = metafunc.config.stash[_SESSION].options
    parameters = []
    for case in metafunc.module.CASES:
        if case.long and options.quick:
            continue
        missing = case.why_not()
        for variant in case.all_variants():
            # The first variant's test runs all of them.
            marks = [pytest.mark.benchmark(timer=lambda: _clock[0]), pytest.mark.limit(options.most_seconds(case))]
            if missing or variant.skip:
                marks.append(pytest.mark.skip(reason=missing or variant.skip))
            parameters.append(
                pytest.param((suite, case, variant.title), id=f"{case.name}-{variant.title}", marks=marks)
            )
    metafunc.parametrize("recorded", parameters, indirect=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[_SESSION].select(session.items)


@pytest.fixture
def recorded(request: pytest.FixtureRequest, benchmark) -> Callable[[], None]:
    """The recorded runs of one variant of one of the suite's ``CASES``; calling it is the test."""
    suite, case, title = request.param
    variant = request.config.stash[_SESSION].variant(suite, case, title)
    benchmark.group = case.name
    # pytest-benchmark refuses to store what JSON has no form for.
    benchmark.params = None

    def check() -> None:
        """Replay the durations into ``benchmark``, and fail unless every run succeeded with the right data."""
        if variant.failure:
            pytest.fail(f"{variant.failure['reason']}\n{variant.failure['stderr']}", pytrace=False)
        durations = [run["seconds"] for run in variant.measured()]
        left = iter(durations)
        benchmark.pedantic(lambda: _replayed(next(left)), rounds=len(durations))
        assert variant.verified(), "the payload of a run did not have the expected SHA-256"

    return check


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    session = config.stash[_SESSION]
    for suite, result in session.results.items():
        path = session.path(suite)
        terminalreporter.section(f"{suite}: {path}")
        terminalreporter.write_line("")
        terminalreporter.flush()
        # A quick run shows that they can be made.
        judged = Suite(suite).judgement(result)
        with session.uncaptured():
            terminal.show([*tables.tables(result), *([] if session.options.quick else judged)], tables.summary(result))
        if session.options.quick:
            terminalreporter.write_line("A quick run only shows that the suite works: its figures are not judged.")
        try:
            from benchmarks.harness import plots
        except ImportError as error:
            terminalreporter.write_line(f"no plot: {error} (it comes with the extra 'plot')")
        else:
            for made in plots.draw(result, path.parent, path.stem):
                terminalreporter.write_line(f"plot: {made}")
