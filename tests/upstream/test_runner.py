"""The runner itself, on small suites that do everything a test can do to it."""

import json
import pathlib
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.tools.upstream import __main__ as command
from benchmarks.tools.upstream import compare, environment, report, runner, terminal
from benchmarks.tools.upstream.runner import Outcome, Run, Runner, Runners, SuiteError
from benchmarks.tools.upstream.sources import Unavailable
from benchmarks.tools.upstream.suites import SUITES, Suite, needing

#: Seconds for a test, many times what one takes that starts a Python.
LIMIT = 60.0

#: The same where tests hang: this is what each of them costs.
SHORT = 4.0

#: Each test's name ends with what has to become of it.
OUTCOMES = """
    import os, subprocess, sys, threading, unittest

    class Outcomes(unittest.TestCase):
        def test_0__pass(self):
            pass

        def test_1__fail(self):
            self.fail("as asked")

        def test_cleanup__error(self):
            self.addCleanup(lambda: 1 / 0)

        def test_and_then_a_failing_cleanup__error(self):
            self.addCleanup(self.fail)
            raise RuntimeError("as asked")

        def test__skip(self):
            self.skipTest("no reason")

        @unittest.skip("by decorator")
        def test_decorator__skip(self):
            pass

        @unittest.expectedFailure
        def test__xfail(self):
            self.fail()

        @unittest.expectedFailure
        def test__xpass(self):
            pass

        def test_subtests__fail(self):
            for number in range(3):
                with self.subTest(number=number):
                    self.assertNotEqual(number, 1)

        def test_skipped_subtest__pass(self):
            with self.subTest():
                self.skipTest("this one only")

        def test_a__hang(self):
            threading.Event().wait()

        def test_busy__hang(self):
            while True:
                pass

        def test__crash(self):
            os._exit(3)

        def test_forked_child__pass(self):
            pid = os.fork()
            if pid == 0:
                raise AssertionError("must not be recorded")
            os.waitpid(pid, 0)

        def test_no_python_settings__pass(self):
            self.assertEqual({"PYTHONWARNINGS", "HTTPS_PROXY", "http_proxy"} & set(os.environ), set())

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
"""

#: As above, of tests that only pytest can run.
FOR_PYTEST = """
    import os, threading, pytest

    @pytest.fixture
    def broken():
        raise RuntimeError("as asked")

    @pytest.fixture
    def broken_at_the_end():
        yield
        raise RuntimeError("as asked")

    @pytest.fixture
    def skipping():
        pytest.skip("no reason")

    @pytest.mark.parametrize("number", [1, 2])
    def test_numbers__pass(number, tmp_path):
        assert number

    def test_0__fail():
        assert False, "as asked"

    def test_0__error(broken):
        pass

    def test_and_then__error(broken_at_the_end):
        assert False

    def test_0__skip(skipping):
        pass

    @pytest.mark.xfail
    def test_0__xfail():
        assert False

    @pytest.mark.xfail
    def test_0__xpass():
        pass

    @pytest.mark.xfail(strict=True)
    def test_strict__fail():
        pass

    class TestMethods:
        def test_a__hang(self):
            threading.Event().wait()

        def test_busy__hang(self):
            while True:
                pass

        def test_0__crash(self):
            os._exit(3)

        def test_forked_child__pass(self):
            pid = os.fork()
            if pid == 0:
                raise AssertionError("must not be recorded")
            os.waitpid(pid, 0)
"""

PATCHED = """
    import subprocess, sys, unittest

    def communicate(code="pass"):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, input=b"x", check=True).stdout

    class Patched(unittest.TestCase):
        def test_runs(self):
            communicate()

        def test_stock_only(self):
            communicate()
            self.assertEqual(sys.modules.get("fastio"), None)

        def test_patched_only(self):
            self.assertIsNotNone(sys.modules.get("fastio"))

        def test_child_patched(self):
            self.assertEqual(communicate("import sys; print('fastio' in sys.modules)"), b"True\\n")
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return environment.create(tmp_path_factory.mktemp("upstream") / "env")


@pytest.fixture
def make_suite(tmp_path: pathlib.Path) -> Callable[..., Suite]:
    def make(source: str, **options: Any) -> Suite:
        (tmp_path / "made_up.py").write_text(textwrap.dedent(source))
        return Suite("made-up", ("made_up",), find=lambda: tmp_path, **options)

    return make


def outcomes(run: Run) -> dict[str, str]:
    return {test.removeprefix("made_up."): outcome.outcome for test, outcome in run.tests.items()}


def test_every_outcome_is_told(python, make_suite, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    for name in ("HTTPS_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    run = Runner(python, SHORT).run(make_suite(OUTCOMES), patched=False)
    found = outcomes(run)
    assert found.pop("setUpClass (made_up.Fixture)") == "error"
    assert found == {test: test.rpartition("__")[2] for test in found} and len(found) == 17
    for test, said in {"1__fail": "as asked", "busy__hang": "in test_busy", "_crash": "exit status 3"}.items():
        assert said in run.tests[f"made_up.Outcomes.test_{test}"].detail
    assert "number=1" in run.tests["made_up.Outcomes.test_subtests__fail"].detail


def test_what_tests_write_where_they_run(python, make_suite, tmp_path) -> None:
    """It does not stay beside their data, which they find all the same."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "data").write_text("data")
    source = """
        import pathlib, unittest

        class Here(unittest.TestCase):
            def test_log(self):
                pathlib.Path("run_tests.log").write_text(pathlib.Path("etc/data").read_text())
    """
    run = Runner(python, SHORT).run(make_suite(source), patched=False)
    assert outcomes(run) == {"Here.test_log": "pass"}
    assert not (tmp_path / "run_tests.log").exists()


def test_a_hang_under_eventlet_shows_where_every_greenlet_stands(python, make_suite, monkeypatch) -> None:
    pytest.importorskip("eventlet")
    # It has half of the time to say it.
    monkeypatch.setattr(runner, "LEAD", SHORT / 2)
    source = """
        import unittest

        class Green(unittest.TestCase):
            def test_hang(self):
                import eventlet
                never = eventlet.Event()
                def someone_else_who_waits():
                    never.wait()
                eventlet.spawn(someone_else_who_waits)
                never.wait()

            def test_patched_time(self):
                import eventlet.patcher
                self.assertTrue(eventlet.patcher.is_monkey_patched("subprocess"))
    """
    run = Runner(python, SHORT).run(make_suite(source, prelude="monkey_patch"), patched=False)
    assert outcomes(run) == {"Green.test_hang": "hang", "Green.test_patched_time": "pass"}
    assert "someone_else_who_waits" in run.tests["made_up.Green.test_hang"].detail


def by_pytest(directory: pathlib.Path, *modules: str) -> Suite:
    return Suite("made-up", (), pytest=("-c", "/dev/null", "--rootdir", ".", *modules), find=lambda: directory)


def test_a_test_named_after_its_file_has_the_same_name_in_each_run(python, tmp_path) -> None:
    (tmp_path / "made_up.py").write_text(
        "import pytest\n@pytest.mark.parametrize('path', [__file__])\ndef test_file(path):\n    pass\n"
    )
    runs = [Runner(python, SHORT).run(by_pytest(tmp_path, "made_up.py"), patched=False) for _ in range(2)]
    assert [list(run.tests) for run in runs] == [[f"made_up.py::test_file[{tmp_path}/made_up.py]"]] * 2


def test_every_outcome_that_pytest_tells(python, tmp_path) -> None:
    """Also of what is collected with a module that cannot be."""
    (tmp_path / "made_up.py").write_text(textwrap.dedent(FOR_PYTEST))
    (tmp_path / "broken.py").write_text("import no_such_module_anywhere")
    run = Runner(python, SHORT).run(by_pytest(tmp_path, "made_up.py", "broken.py"), patched=False)
    found = {test.partition("[")[0]: outcome.outcome for test, outcome in run.tests.items()}
    assert found.pop("collecting (broken.py)") == "error"
    assert found == {test: test.rpartition("__")[2] for test in found} and len(run.tests) == 14
    said = {"test_0__fail": "as asked", "test_0__skip": "no reason", "TestMethods::test_busy__hang": "in test_busy"}
    for test, text in said.items():
        assert text in run.tests[f"made_up.py::{test}"].detail
    only = ["made_up.py::test_numbers__pass[2]", "made_up.py::test_that_is_not_there"]
    run = Runner(python, LIMIT).run(by_pytest(tmp_path, "made_up.py"), patched=False, only=only)
    assert [outcome.outcome for outcome in run.tests.values()] == ["pass", "missing"]


def test_pytest_that_does_not_come_to_its_end_is_an_error(python, tmp_path) -> None:
    with pytest.raises(SuiteError, match="pytest ends with"):
        Runner(python, LIMIT).run(by_pytest(tmp_path, "no_such_file.py"), patched=False)


def test_only_the_tests_asked_for(python, make_suite) -> None:
    suite = make_suite(OUTCOMES)
    asked = ["made_up.Outcomes.test_0__pass", "made_up.Outcomes.test_that_is_not_there"]
    run = Runner(python, LIMIT).run(suite, patched=False, only=asked)
    assert outcomes(run) == {"Outcomes.test_0__pass": "pass", "Outcomes.test_that_is_not_there": "missing"}
    matching = Runner(python, LIMIT, match="Outcomes.test_0").run(suite, patched=False)
    assert set(outcomes(matching)) == {"Outcomes.test_0__pass"}


def test_a_module_that_cannot_be_loaded_is_an_error_whatever_is_asked_for(python, make_suite, tmp_path) -> None:
    run = Runner(python, LIMIT, match="Outcomes.test_0").run(make_suite("import no_such_module"), patched=False)
    assert outcomes(run) == {"unittest.loader._FailedTest.made_up": "error"}
    suite = by_pytest(tmp_path, "made_up.py")
    run = Runner(python, LIMIT, match="Outcomes.test_0").run(suite, patched=False)
    assert outcomes(run) == {"collecting (made_up.py)": "error"}


def test_a_module_that_ends_the_process_is_an_error(python, make_suite) -> None:
    with pytest.raises(SuiteError, match="last words"):
        Runner(python, LIMIT).run(make_suite("import os\nos.write(2, b'last words')\nos._exit(0)"), patched=False)


FORGES = """
    import json, os, unittest

    class Forges(unittest.TestCase):
        def test_fails(self):
            for fd in map(int, os.listdir("/proc/self/fd")):
                if fd >= 100:
                    try:
                        {write}
                    except OSError:
                        pass
            self.fail()
"""
END = {"event": "end", "id": "x", "outcome": "pass", "seconds": 0, "detail": "", "exchanges": 0, "taken": {}}


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (f"os.write(fd, json.dumps({END}).encode() + b'\\n')", "no event: ValueError: not by the worker"),
        ("os.write(fd, b'[]\\n')", "no event"),
        ("os.write(fd, b'x' * 3000)", "more than 2000 characters"),
        ("[os.write(fd, b'\\n') for _ in range(10_000)]", "no event"),
    ],
)
def test_what_a_test_writes_is_no_event(python, make_suite, monkeypatch, write, message):
    monkeypatch.setattr(runner, "LONGEST_EVENT", 2000)
    with pytest.raises(SuiteError, match=message):
        Runner(python, LIMIT).run(make_suite(FORGES.format(write=write)), patched=False)


LOADED = {"event": "loaded", "chosen": ["a", "b"]}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {**(END if kind == "end" else {"event": kind}), **fields}


@pytest.mark.parametrize(
    "events",
    [
        [[]], [{}], [{"event": "nothing"}], [{"event": ["end"]}], ["end"], [END], [LOADED, {"event": "start"}],
        [LOADED, event("start", id="c")], [LOADED, event("start", id="a"), event("start", id="b")],
        [event("loaded", chosen=[1])], [event("loaded", chosen=["a\n::stop-commands::x"])],
        [LOADED, event("end", id=None)], [LOADED, event("end", id="a\33[2J")], [LOADED, event("end", outcome="great")],
        [LOADED, event("end", id="a"), event("end", id="a")], [LOADED, event("end", taken={"wait": "many"})],
        [LOADED, event("finish", status=None)], [LOADED, LOADED, *[event("end", id="f (x)")] * 3000],
    ],
    ids=str,
)  # fmt: skip
def test_events_that_no_worker_writes(tmp_path, events) -> None:
    path = tmp_path / "events"
    path.write_text("".join(f"word {json.dumps(each)}\n" for each in events))
    read, run = runner._Events("word", 0), Run(False)
    with pytest.raises(SuiteError, match="no event"), open(path) as file:
        while read.read(file, run):
            pass
    assert not read.finished


def test_what_tests_say_gives_no_orders() -> None:
    text = "a::b\n  ::stop-commands::x\n##[group]\n##vso[task]\n\33[31mred\r\0"
    assert terminal.harmless(text) == ("a::b\n\\  ::stop-commands::x\n##\\[group]\n##\\vso[task]\n\\x1b[31mred\\r\\x00")


def test_stock_is_stock_and_patched_is_patched(python, make_suite) -> None:
    suite = make_suite(PATCHED)
    stock = Runner(python, LIMIT).run(suite, patched=False)
    assert outcomes(stock) == {
        "Patched.test_child_patched": "fail", "Patched.test_patched_only": "fail", "Patched.test_runs": "pass",
        "Patched.test_stock_only": "pass",
    }  # fmt: skip
    assert stock.status is None and not stock.exchanges
    patched = Runner(python, LIMIT).run(suite, patched=True)
    assert outcomes(patched) == {
        "Patched.test_child_patched": "pass", "Patched.test_patched_only": "pass", "Patched.test_runs": "pass",
        "Patched.test_stock_only": "fail",
    }  # fmt: skip
    assert patched.status is not None and patched.exchanges >= 3


def test_a_patched_run_tells_what_patches_took_with_other_constants(python, make_suite) -> None:
    """Also if it needs another worker for what comes after a crash."""
    source = """
        import os, subprocess, sys, unittest

        class Taken(unittest.TestCase):
            def test_0(self):
                subprocess.run([sys.executable, "-c", ""], capture_output=True)

            def test_1(self):
                os._exit(1)

            def test_2(self):
                subprocess.run([sys.executable, "-c", ""], capture_output=True)
                self.assertEqual(sys.modules["fastio.patches.urllib3._requests"].LEAST, 3)
    """
    suite = make_suite(
        source, taken=("communicate", "green_wait"), constants={"fastio.patches.urllib3._requests:LEAST": 3}
    )
    run = Runner(python, LIMIT).run(suite, patched=True)
    assert outcomes(run) == {"Taken.test_0": "pass", "Taken.test_1": "crash", "Taken.test_2": "pass"}
    assert run.taken == {"communicate": 2, "green_wait": 0}
    assert compare.faults(suite, run) == ["patch green_wait took no call: the patched run tested the stock code"]


class Screen(terminal.Screen):
    def say(self, text: str) -> None: ...

    def progress(self, run: str, done: int, total: int) -> None: ...


def test_a_worse_test_fails_the_comparison_after_it_was_run_alone(python, make_suite) -> None:
    suite = make_suite(PATCHED, applied=("communicate", "wait"))
    (comparison,) = command.run_all(Runner(python, LIMIT), [suite], jobs=2, screen=Screen())
    assert {(found.test.rpartition(".")[2], found.verdict) for found in comparison.differences} == {
        ("test_stock_only", "worse"),
        ("test_child_patched", "newly passing"),
        ("test_patched_only", "newly passing"),
    }
    assert comparison.failures() == ["made_up.Patched.test_stock_only: pass -> fail"]
    worse = next(found for found in comparison.differences if found.verdict == "worse")
    assert [outcome.outcome for outcome in worse.stock_alone] == ["pass"] * compare.BELIEVED
    assert [outcome.outcome for outcome in worse.patched_alone] == ["fail"] * compare.BELIEVED


def test_a_test_that_fails_now_and_then_is_none_that_is_worse(python, make_suite, tmp_path) -> None:
    """It fails in the patched suite, and the first time that it is run alone; then no more."""
    source = f"""
        import os, subprocess, sys, unittest

        class Chance(unittest.TestCase):
            def test_chance(self):
                subprocess.run([sys.executable, "-c", ""], capture_output=True)
                if "fastio" in sys.modules:
                    with open({str(tmp_path / "runs")!r}, "a+") as file:
                        file.write("x")
                        self.assertGreater(file.tell(), 2)
    """
    suite = make_suite(source, applied=("communicate", "wait"), at_most=0)
    (comparison,) = command.run_all(Runner(python, LIMIT), [suite], jobs=1, screen=Screen())
    (found,) = comparison.differences
    assert found.verdict == "not reproduced"
    assert [outcome.outcome for outcome in found.patched_alone] == ["fail", "pass", "pass"]
    assert comparison.failures() == []


def test_a_test_that_fails_in_both_by_chance_does_not_count(python, make_suite, tmp_path) -> None:
    """There is no difference, but more tests do not pass than may."""
    source = f"""
        import subprocess, sys, unittest

        class Chance(unittest.TestCase):
            def test_chance(self):
                subprocess.run([sys.executable, "-c", ""], capture_output=True)
                with open({str(tmp_path / "runs")!r}, "a+") as file:
                    file.write("x")
                    self.assertGreater(file.tell(), 2)

            def test_fails(self):
                self.fail()

            def test_passes(self):
                pass
    """
    for most, failures in ((1, []), (0, ["1 tests do not pass when patched, at most 0 may"])):
        (tmp_path / "runs").unlink(missing_ok=True)
        suite = make_suite(source, applied=("communicate", "wait"), at_most=most)
        (comparison,) = command.run_all(Runner(python, LIMIT), [suite], jobs=1, screen=Screen())
        assert comparison.differences == []
        assert comparison.failures() == failures


def test_a_suite_runs_with_the_python_of_its_environment(make_suite, tmp_path, monkeypatch) -> None:
    other = environment.create(tmp_path / "other")
    monkeypatch.setenv("BENCHMARK_GLANCE32", str(other))
    source = f"""
        import sys, unittest

        class Other(unittest.TestCase):
            def test_path(self):
                self.assertTrue(any(path.startswith({str(tmp_path / "other")!r}) for path in sys.path))

            def test_patched(self):
                self.assertIn("fastio", sys.modules)
    """
    runners = Runners(tmp_path / "environments", LIMIT)
    run = runners.run(make_suite(source, environment="glance32"), patched=True)
    assert outcomes(run) == {"Other.test_path": "pass", "Other.test_patched": "pass"}
    assert outcomes(runners.run(make_suite(source), patched=True))["Other.test_path"] == "fail"


def test_a_suite_that_can_not_run_says_why() -> None:
    suite = Suite("absent", ("x",), find=needing("no_such_module_anywhere"))
    (comparison,) = command.run_all(None, [suite], jobs=1, screen=Screen())
    assert "no_such_module_anywhere is not installed" in comparison.unavailable
    assert "not run: no_such_module_anywhere" in "\n".join(report.lines([comparison]))


@pytest.mark.parametrize(
    ("stock", "patched", "verdict"),
    [
        ("pass", "fail", "worse"), ("pass", "skip", "worse"), ("pass", "hang", "worse"), ("pass", "missing", "worse"),
        ("xfail", "xpass", "worse"), ("skip", "fail", "worse"), ("fail", "hang", "worse"), ("error", "crash", "worse"),
        ("skip", "pass", "newly passing"), ("fail", "pass", "newly passing"), ("hang", "pass", "newly passing"),
        ("hang", "fail", "changed"), ("error", "fail", "changed"), ("hang", "crash", "changed"),
        ("missing", "pass", "newly passing"), ("missing", "fail", "worse"), ("missing", "skip", "changed"),
    ],
)  # fmt: skip
def test_verdicts(stock: str, patched: str, verdict: str) -> None:
    assert compare.Difference("test", Outcome(stock), Outcome(patched)).verdict == verdict


@pytest.mark.parametrize(
    ("stock", "patched", "stock_alone", "patched_alone", "verdict"),
    [
        ("pass", "fail", "pass pass", "pass pass", "not reproduced"),
        ("pass", "fail", "pass pass pass pass", "fail fail fail fail", "worse"),
        ("pass", "fail", "pass pass pass pass pass", "fail pass fail fail fail", "worse"),
        ("pass", "fail", "pass pass pass pass", "fail pass fail pass", "not reproduced"),
        ("pass", "fail", "fail pass", "fail fail", "not reproduced"),
        ("pass", "fail", "fail pass pass pass", "hang hang hang hang", "worse"),
        ("fail", "pass", "fail fail", "pass pass", "newly passing"),
        ("fail", "pass", "pass pass", "pass pass", "not reproduced"),
        ("fail", "pass", "fail pass", "pass pass", "not reproduced"),
    ],
)
def test_what_differs_is_believed_only_if_it_does_alone(stock, patched, stock_alone, patched_alone, verdict) -> None:
    alone = ([Outcome(outcome) for outcome in outcomes.split()] for outcomes in (stock_alone, patched_alone))
    assert compare.Difference("test", Outcome(stock), Outcome(patched), *alone).verdict == verdict


def test_tests_that_only_one_run_knows_are_missing_in_the_other() -> None:
    stock = Run(False, {"gone": Outcome("pass"), "same": Outcome("pass")})
    patched = Run(True, {"same": Outcome("pass"), "new": Outcome("pass")})
    found = [(each.test, each.stock.outcome, each.patched.outcome) for each in compare.differences(stock, patched)]
    assert found == [("gone", "pass", "missing"), ("new", "missing", "pass")]


def test_goals_of_a_suite() -> None:
    run = Run(True, {}, {"patches": []})
    assert compare.faults(Suite("goals", (), applied=("communicate", "wait")), run) == [
        "patch communicate is not applied at the end",
        "patch wait is not applied at the end",
        "no exchange went through fastio: the patched run tested the stock code",
    ]
    suite = Suite("goals", (), at_most=1, never_hang=("communicate",))
    status: dict[str, Any] = {"patches": []}
    run = Run(True, {"a.test_communicate_epipe": Outcome("hang"), "b": Outcome("skip")}, status, exchanges=1)
    assert compare.faults(suite, run) == ["a.test_communicate_epipe hangs when patched"]
    assert compare.faults(suite, run, {"a.test_communicate_epipe"}) == []
    few = Suite("goals", (), at_least=2)
    assert compare.faults(few, run) == ["0 tests pass when patched, at least 2 must"]
    run.tests = {"a": Outcome("fail"), "b": Outcome("error")}
    assert compare.faults(suite, run) == ["2 tests do not pass when patched, at most 1 may"]


def test_what_is_reported() -> None:
    stock = Run(False, {"m.C.test_a": Outcome("pass"), "m.C.test_b": Outcome("fail", detail="1\nAssertionError: b|c")})
    patched = Run(True, {"m.C.test_a": Outcome("hang", detail="a stack"), "m.C.test_b": Outcome("pass")}, None, 1)
    suite, found = SUITES["cpython-green"], compare.differences(stock, patched)
    comparison = compare.Comparison(suite, "patched", stock, patched, found)
    text = "\n".join(report.lines([comparison]))
    assert all(each in text for each in ("a stack", "m.C.test_a: pass -> hang", "FAILED", "newly passing"))
    (_, remaining) = report.tables([compare.Comparison(suite, "patched", stock)])[::-1]
    assert remaining.rows == [["cpython-green", "m.C.test_b", "fail", "AssertionError: b|c"]]


def test_one_real_suite_end_to_end(capsys) -> None:
    try:
        SUITES["cpython-native"].find()
    except Unavailable as error:
        pytest.skip(str(error))
    match = "ProcessTestCase.test_communicate_pipe_buf"
    assert command.main(["--suite", "cpython-native", "--match", match]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "patched" in line.split()]
    assert rows[-1][:4] == ["cpython-native", "patched", "1", "1"] and rows[-1][-1] == "passed"
