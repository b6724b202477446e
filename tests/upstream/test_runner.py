"""The runner itself, on small suites that do everything a test can do to it."""

import dataclasses
import json
import pathlib
import textwrap
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.tools.pythons import Unavailable
from benchmarks.tools.upstream import __main__ as command
from benchmarks.tools.upstream import compare, environment, report, runner, terminal
from benchmarks.tools.upstream.compare import BETTER, CHANGED, FLAKY, WORSE
from benchmarks.tools.upstream.runner import Outcome, Run, Runner, SuiteError
from benchmarks.tools.upstream.suites import SUITES, Suite

#: Seconds for a test, many times what one takes that starts a Python.
LIMIT = 60.0

#: The same where tests hang: this is what each of them costs.
SHORT = 4.0

#: Methods of a test case, by names that end with the expected outcome.
METHODS = {
    "0__pass": "pass",
    "1__fail": "self.fail('as asked')",
    "cleanup__fail": "self.addCleanup(lambda: 1 / 0)",
    "1__skip": "self.skipTest('no reason')",
    "subtests__fail": "[self.check(number, 1) for number in range(3)]",
    "skipped_subtest__pass": "with self.subTest(): self.skipTest('this one only')",
    "a__hang": "threading.Event().wait()",
    "busy__hang": "while True: pass",
    "1__crash": "os._exit(3)",
    "forked_child__pass": "assert os.fork() and os.wait()",
    "no_python_settings__pass": "assert not {'PYTHONWARNINGS', 'HTTPS_PROXY', 'http_proxy'} & set(os.environ)",
    # It is not left beside the suite's data, which a test finds all the same.
    "writes_where_it_runs__pass": "pathlib.Path('run_tests.log').write_text(pathlib.Path('etc/data').read_text())",
    # As nova's test cases do.
    "deletes_all__pass": "[delattr(self, name) for name in list(self.__dict__) if name[0] != '_']",
}
OUTCOMES = (
    """
    import os, pathlib, threading, unittest

    class Outcomes(unittest.TestCase):
        def check(self, number, other):
            with self.subTest(number=number):
                self.assertNotEqual(number, other)

        @unittest.skip("by decorator")
        def test_decorator__skip(self):
            pass

        @unittest.expectedFailure
        def test__xfail(self):
            self.fail()

        @unittest.expectedFailure
        def test_unexpected_success__fail(self):
            pass
"""
    + "".join(
        f"""
        def test_{name}(self):
            {body}
"""
        for name, body in METHODS.items()
    )
    + """
    class Fixture(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            raise RuntimeError("as asked")

        def test_never_started__error(self):
            pass

    class SkippedFixture(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            raise unittest.SkipTest("the whole class")

        def test_never_started__skip(self):
            pass

    class TestMixin:
        def test_is_none(self):
            pass

    class Helper(unittest.TestCase):
        def __init__(self, needed):
            raise RuntimeError("nothing makes one")

    def test_is_none(self):
        pass
"""
)

#: As above, of what only pytest runs.
FOR_PYTEST = """
    import pytest

    @pytest.fixture(params=["start", "end"])
    def broken(request):
        if request.param == "end":
            yield
        raise RuntimeError("as asked")

    def test_fixture__error(broken):
        assert False

    @pytest.mark.xfail
    def test_expected__xfail():
        assert False

    @pytest.mark.xfail
    def test_expected__xpass():
        pass

    class TestFile:
        @pytest.mark.parametrize("path", [__file__])
        def test_file__pass(self, path):
            pass
"""

PATCHED = """
    import os, subprocess, sys, unittest

    def communicate(code="pass"):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, input=b"x", check=True).stdout

    class Patched(unittest.TestCase):
        def test_child_patched(self):
            self.assertEqual(communicate("import sys; print('fastio' in sys.modules)"), b"True\\n")

        def test_constant(self):
            self.assertEqual(sys.modules["fastio.patches.urllib3._requests"].LEAST, 3)

        def test_crashes(self):
            os._exit(1)

        def test_runs(self):
            communicate()

        def test_stock_only(self):
            communicate()
            self.assertEqual(sys.modules.get("fastio"), None)
"""
CONSTANTS = {"fastio.patches.urllib3._requests:LEAST": 3}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return environment.create(tmp_path_factory.mktemp("upstream") / "env")


@pytest.fixture
def make_suite(tmp_path: pathlib.Path) -> Callable[..., Suite]:
    def make(source: str, **options: Any) -> Suite:
        (tmp_path / "made_up.py").write_text(textwrap.dedent(source))
        return Suite("made-up", ("made_up",), place=lambda: tmp_path, **options)

    return make


def outcomes(run: Run) -> dict[str, str]:
    return {test.removeprefix("made_up."): outcome.outcome for test, outcome in run.tests.items()}


def test_every_outcome_is_reported(python, make_suite, tmp_path, monkeypatch) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "data").write_text("data")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    for name in ("HTTPS_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    run = Runner(python, SHORT).run(make_suite(OUTCOMES), patched=False)
    found = outcomes(run)
    assert found == {test: test.partition("[")[0].rpartition("__")[2] for test in found} and len(found) == 18
    assert not (tmp_path / "run_tests.log").exists()
    for test, said in {
        "1__fail": "as asked", "busy__hang": "in test_busy", "1__crash": "exit status 3", "subtests__fail": "number=1",
    }.items():  # fmt: skip
        assert said in run.tests[f"made_up.Outcomes.test_{test}"].detail


def test_a_case_runs_in_all_of_its_scenarios(python, make_suite, tmp_path) -> None:
    pytest.importorskip("testscenarios")
    source = f"""
        import unittest
        from testscenarios import load_tests_apply_scenarios as load_tests

        class Scenarios(unittest.TestCase):
            scenarios = [("one", {{"number": 1}}), ("two", {{"number": 2}})]

            def test_each(self):
                with open({str(tmp_path / "ran")!r}, "a") as file:
                    file.write(str(self.number))

            def test_one(self):
                self.assertEqual(self.number, 1)
    """
    run = Runner(python, LIMIT).run(make_suite(source), patched=False)
    assert outcomes(run) == {"Scenarios.test_each": "pass", "Scenarios.test_one": "fail"}
    assert (tmp_path / "ran").read_text() == "12"


def test_with_arguments_of_pytest(python, tmp_path) -> None:
    """A test has the same id in each run, also if its file is in it; a file that cannot be collected is an error."""
    (tmp_path / "made_up.py").write_text(textwrap.dedent(FOR_PYTEST))
    (tmp_path / "broken.py").write_text("import no_such_module_anywhere")
    arguments = ("-c/dev/null", "--rootdir=.", "broken.py", "made_up.py")
    suite = Suite("made-up", (), pytest=arguments, place=lambda: tmp_path)
    run = Runner(python, LIMIT).run(suite, patched=False)
    found, broken = outcomes(run), "collecting (broken.py)"
    assert "no_such_module_anywhere" in run.tests[broken].detail and found[broken] == "error" and len(found) == 6
    assert all(test.partition("[")[0].endswith(f"__{word}") for test, word in found.items() if test != broken)
    for test in (f"made_up.TestFile.test_file__pass[{tmp_path}/made_up.py]", broken):
        alone = Runner(python, LIMIT).run(suite, patched=False, only=[test])
        assert {each: outcome.outcome for each, outcome in alone.tests.items()} == {test: run.tests[test].outcome}


def test_only_the_tests_asked_for(python, make_suite) -> None:
    """But a module that is not there or cannot be loaded is an error whatever is asked for: they may be in it."""
    asked = ["made_up.Outcomes.test_0__pass", "made_up.Outcomes.test_that_is_not_there"]
    run = Runner(python, LIMIT).run(make_suite(OUTCOMES), patched=False, only=asked)
    assert outcomes(run) == {"Outcomes.test_0__pass": "pass", "Outcomes.test_that_is_not_there": "missing"}
    matching = Runner(python, LIMIT, match="Outcomes.test_0")
    assert set(outcomes(matching.run(make_suite(OUTCOMES), patched=False))) == {"Outcomes.test_0__pass"}
    suite = dataclasses.replace(make_suite("import no_such_module"), modules=("made_up", "no.such_module"))
    run = matching.run(suite, patched=False)
    assert outcomes(run) == {"collecting (no.such_module)": "error", "collecting (made_up.py)": "error"}


def test_the_end_of_the_run_is_an_error(python, make_suite) -> None:
    suite = make_suite("import os\nos.write(2, b'last words')\nos._exit(0)")
    with pytest.raises(SuiteError, match="last words"):
        Runner(python, LIMIT).run(suite, patched=False)
    absent = Suite("made-up", ("no_such_module_anywhere",))
    with pytest.raises(SuiteError, match=r"not found: no_such_module_anywhere(.|\n)*pytest ends with"):
        Runner(python, LIMIT).run(absent, patched=False)


LOADED, START, END = ["loaded", ["a", "b"]], ["start", "a"], ["end", "a", "pass", 0.0, "", {}]


@pytest.mark.parametrize(
    "events",
    [
        [[]], [{}], [["nothing"]], [[["end"]]], ["end"], [END], [LOADED, ["start"]], [LOADED, ["start", "c"]],
        [LOADED, ["start", ["a"]]], [LOADED, START, ["start", "b"]], [["loaded", [1]]],
        [["loaded", ["a\n::stop-commands::x"]]], [LOADED, ["end", None, *END[2:]]], [LOADED, END, END],
        [LOADED, START, ["end", "b", *END[2:]]], [LOADED, ["end", "a", "great", *END[3:]]],
        [LOADED, [*END[:-1], {"wait": "many"}]],
        [LOADED, ["finish", None, []]], [LOADED, START, END, ["end", "b", *END[2:]], ["finish", [], []]],
        [LOADED, LOADED],
        [LOADED, END, ["end", "b", *END[2:]], ["finish", None, []], ["finish", None, []]],
    ],
    ids=str,
)  # fmt: skip
def test_events_that_no_worker_writes(tmp_path, events) -> None:
    assert refused(tmp_path, "".join(f"word {json.dumps(each)}\n" for each in events)).startswith(
        "a worker wrote what is"
    )


def test_output_of_tests_on_the_stream_is_no_event(tmp_path, monkeypatch) -> None:
    assert "no event" in refused(tmp_path, json.dumps(LOADED) + "\n")
    assert "no event" in refused(tmp_path, "word nonsense\n")
    monkeypatch.setattr(runner, "LONGEST_EVENT", 2000)
    assert "more than 2000 characters" in refused(tmp_path, "x" * 3000)


def refused(directory: pathlib.Path, text: str) -> str:
    """Why this is no sequence of events."""
    (directory / "events").write_text(text)
    with pytest.raises(SuiteError) as error, open(directory / "events") as file:
        read = runner._Events(file, "word", Run(False))
        while read.read():
            pass
    return str(error.value)


def test_output_of_tests_gives_no_orders() -> None:
    text = "a::b\n  ::stop-commands::x\n##[group]\n##vso[task]\n\33[31mred\r\0"
    assert terminal.harmless(text) == ("a::b\n\\  ::stop-commands::x\n##\\[group]\n##\\vso[task]\n\\x1b[31mred\\r\\x00")


class Screen(terminal.Screen):
    def say(self, text: str) -> None: ...

    def progress(self, run: str, done: int, total: int) -> None: ...


@pytest.fixture
def compared(tmp_path) -> Callable[[Suite], compare.Comparison]:
    def compared(suite: Suite) -> compare.Comparison:
        (found,) = command.compared([suite], tmp_path / "environments", LIMIT, "", 2, Screen())
        return found

    return compared


def test_a_worse_test_fails_the_comparison_after_it_was_run_alone(compared, make_suite) -> None:
    """Calls are counted also if there has to be another worker for what comes after a crash."""
    comparison = compared(
        make_suite(PATCHED, applied=("communicate", "wait"), taken=("communicate",), constants=CONSTANTS)
    )
    stock, patched = comparison.stock, comparison.patched
    both = {test: (outcomes(stock)[test], outcome) for test, outcome in outcomes(patched).items()}
    assert both == {
        # Stock does not run tests that pass when patched; the first two would fail there.
        "Patched.test_child_patched": ("pass", "pass"), "Patched.test_constant": ("pass", "pass"),
        "Patched.test_crashes": ("crash", "crash"), "Patched.test_runs": ("pass", "pass"),
        "Patched.test_stock_only": ("pass", "fail"),
    }  # fmt: skip
    assert (stock.status, stock.taken) == (None, {}) and patched.status and patched.taken == {"communicate": 3}
    assert comparison.failures() == ["patched: made-up: made_up.Patched.test_stock_only: pass -> fail"]
    worse = next(found for found in comparison.differences if found.verdict == WORSE)
    assert [outcome.outcome for outcome in worse.stock_alone] == ["pass"] * compare.BELIEVED
    assert [outcome.outcome for outcome in worse.patched_alone] == ["fail"] * compare.BELIEVED


def test_a_test_that_fails_by_chance(compared, make_suite, tmp_path) -> None:
    """It fails on the patched side, in the suite and the first time that it is run alone."""
    source = f"""
        import sys, unittest

        class Chance(unittest.TestCase):
            def test_chance(self):
                if "fastio" in sys.modules:
                    with open({str(tmp_path / "runs")!r}, "a+") as file:
                        file.write("x")
                        self.assertGreater(file.tell(), 2)

            def test_fails(self):
                self.fail()

            def test_passes(self):
                pass
    """
    comparison = compared(make_suite(source, applied=("communicate", "wait")))
    (found,) = comparison.differences
    assert found.verdict == FLAKY and comparison.failures() == []
    assert [each.outcome for each in found.patched_alone] == ["fail", "pass", "pass"]


def test_a_suite_runs_with_the_python_of_its_environment(compared, make_suite, tmp_path, monkeypatch) -> None:
    other = environment.create(tmp_path / "other")
    monkeypatch.setenv("BENCHMARK_GLANCE32", str(other))
    source = f"""
        import sys, unittest

        class Other(unittest.TestCase):
            def test_path(self):
                self.assertTrue(any(path.startswith({str(tmp_path / "other")!r}) for path in sys.path))

            def test_passes(self):
                pass
    """
    found = compared(make_suite(source, environment="glance32"))
    assert outcomes(found.patched) == {"Other.test_path": "pass", "Other.test_passes": "pass"}
    assert found.patched.status is not None
    assert outcomes(compared(make_suite(source)).patched)["Other.test_path"] == "fail"


def test_a_suite_that_can_not_run_says_why(compared) -> None:
    comparison = compared(Suite("absent", ("x",), needs=("no_such_module_anywhere",)))
    assert "no_such_module_anywhere is not installed" in comparison.unavailable
    assert "not run: no_such_module_anywhere" in "\n".join(report.lines([comparison]))


@pytest.mark.parametrize(
    ("stock", "patched", "verdict"),
    [
        ("pass", "fail", WORSE), ("pass", "skip", WORSE), ("pass", "hang", WORSE), ("pass", "missing", WORSE),
        ("xfail", "xpass", WORSE), ("skip", "fail", WORSE), ("fail", "hang", WORSE), ("error", "crash", WORSE),
        ("skip", "pass", BETTER), ("fail", "pass", BETTER), ("hang", "pass", BETTER),
        ("hang", "fail", CHANGED), ("error", "fail", CHANGED), ("hang", "crash", CHANGED),
        ("missing", "pass", BETTER), ("missing", "fail", WORSE), ("missing", "skip", CHANGED),
        # Then each in runs alone.
        ("pass/pass pass", "fail/pass pass", FLAKY),
        ("pass/pass pass pass pass", "fail/fail fail fail fail", WORSE),
        ("pass/pass pass pass pass pass", "fail/fail pass fail fail fail", WORSE),
        ("pass/pass pass pass pass", "fail/fail pass fail pass", FLAKY),
        ("pass/fail pass", "fail/fail fail", FLAKY),
        ("pass/fail pass pass pass", "fail/hang hang hang hang", WORSE),
        ("fail/fail fail", "pass/pass pass", BETTER),
        ("fail/pass pass", "pass/pass pass", FLAKY),
        ("fail/fail pass", "pass/pass pass", FLAKY),
    ],
)  # fmt: skip
def test_runs_alone_decide_the_verdict(stock: str, patched: str, verdict: str) -> None:
    (before, _, before_alone), (after, _, after_alone) = (each.partition("/") for each in (stock, patched))
    alone = ([Outcome(each) for each in side.split()] for side in (before_alone, after_alone))
    assert compare.Difference("test", Outcome(before), Outcome(after), *alone).verdict == verdict


def test_tests_that_only_one_run_knows_are_missing_in_the_other() -> None:
    stock = Run(False, {"gone": Outcome("pass"), "same": Outcome("pass")})
    patched = Run(True, {"same": Outcome("pass"), "new": Outcome("pass")})
    found = [(each.test, each.stock.outcome, each.patched.outcome) for each in compare.differences(stock, patched)]
    assert found == [("gone", "pass", "missing"), ("new", "missing", "pass")]


@pytest.mark.parametrize(
    ("goals", "faults"),
    [
        ({"applied": ("communicate",)}, ["patch communicate is not applied at the end"]),
        ({"taken": ("wait",)}, ["patch wait took no call: the patched run tested the stock code"]),
        ({"taken": ("communicate",), "at_least": 1}, []),
        ({"at_least": 2}, ["1 tests pass when patched, at least 2 must"]),
    ],
)
def test_goals_of_a_suite(goals, faults) -> None:
    tests = {"a": Outcome("pass"), "b": Outcome("skip")}
    run = Run(True, tests, {"patches": []}, Counter(communicate=1))
    assert compare.faults(Suite("goals", (), **goals), run) == faults


def test_reported_outcomes() -> None:
    stock = Run(False, {"m.C.test_a": Outcome("pass"), "m.C.test_b": Outcome("fail", detail="1\nAssertionError: b|c")})
    patched = Run(True, {"m.C.test_a": Outcome("hang", detail="a stack"), "m.C.test_b": Outcome("pass")})
    suite, found = SUITES["cpython-green"], compare.differences(stock, patched)
    comparison = compare.Comparison(suite, "patched", stock, patched, found)
    text = "\n".join(report.lines([comparison]))
    assert all(each in text for each in ("a stack", "m.C.test_a: pass -> hang", "FAILED", "newly passes"))


def test_one_real_suite_end_to_end(capsys) -> None:
    try:
        SUITES["cpython-native"].find()
    except Unavailable as error:
        pytest.skip(str(error))
    match = "ProcessTestCase.test_communicate_pipe_buf"
    assert command.main(["--suite", "cpython-native", "--match", match]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "patched" in line.split()]
    assert rows[-1][:4] == ["cpython-native", "patched", "1", "1"] and rows[-1][-2:] == ["no", "worse"]
