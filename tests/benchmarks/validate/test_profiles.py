"""Where the time goes of what got slower."""

import dataclasses
import html
import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from benchmarks.harness import engine, profiled, stacks
from benchmarks.harness.engine import Case, Options
from benchmarks.harness.engine import Variant as CaseRow
from benchmarks.harness.results import ROOT, Result
from benchmarks.harness.stacks import Function
from benchmarks.harness.worker import SURROUNDINGS_VARIABLE
from benchmarks.tools import pythons
from benchmarks.validate import flames, measurements, profiling, projects
from benchmarks.validate.errors import ValidateError
from benchmarks.validate.isolation import measuring
from benchmarks.validate.profiling import Asked, Profile
from benchmarks.validate.state import State
from fastio import page
from tests.benchmarks import samples
from tests.benchmarks.validate import test_flow
from tests.benchmarks.validate.test_flow import installer, validate  # noqa: F401
from tests.benchmarks.validate.test_isolation import environments, sandboxes
from tests.benchmarks.validate.test_measurements import SPREAD, times, variant
from tests.test_page import Read

#: Collapsed, of two runs each: "read" takes longer, "join" is new, "spin" calls itself, "gone" is no more.
STOCK = "main (m.py);read (r.py) 10\nmain (m.py);spin (s.py);spin (s.py) 4\nmain (m.py);gone (g.py) 6\n"
CANDIDATE = "main (m.py);read (r.py) 30\nmain (m.py);spin (s.py);spin (s.py) 4\nmain (m.py);read (r.py);join (j.py) 8\n"


def profile(**fields: Any) -> Profile:
    given = {"runs": 2, "before": stacks.parse(STOCK), "after": stacks.parse(CANDIDATE), **fields}
    return Profile("communicate/cat", "native", "candidate", False, **given)


def test_the_functions_by_their_growth():
    assert stacks.difference(stacks.parse(STOCK), stacks.parse(CANDIDATE)) == [
        Function("read (r.py)", (10, 30), (10, 38)),
        Function("join (j.py)", (0, 8), (0, 8)),
        Function("main (m.py)", (0, 0), (20, 42)),
        # Once in each sample, although it calls itself.
        Function("spin (s.py)", (4, 4), (4, 4)),
        Function("gone (g.py)", (6, 0), (6, 0)),
    ]


def test_the_collapsed_form():
    assert stacks.parse(stacks.text(stacks.parse(STOCK))) == stacks.parse(STOCK)
    assert stacks.add([{"a;b": 1, "c": 2}, {"a;b": 3}]) == {"a;b": 4, "c": 2}
    for wrong in ("a;b", "a;b x", " 3"):
        with pytest.raises(ValueError, match="line 2 is no stack"):
            stacks.parse(f"a 1\n{wrong}\n")


def test_what_py_spy_has_sampled():
    """Of all processes together, without the machinery of imports, and on one line whatever a name is."""
    library = "/environments/stock/lib/python3.11"
    names = [
        ("main", f"{ROOT}/benchmarks/m.py"),
        ("_load_unlocked", "<frozen importlib._bootstrap>"),
        ("a;b\nc", f"{library}/site-packages/eventlet/greenio/py3.py"),
        ('process 7:"python -c a;\nb"', ""),
        ("run", f"{library}/subprocess.py"),
    ]
    frames = [{"name": name, "file": file, "line": None} for name, file in names]
    data = {
        "shared": {"frames": frames},
        "profiles": [{"samples": [[3, 0, 1, 2], [0], [3], []]}, {"samples": [[0, 2], [1], [3, 4]]}],
    }
    main = "main (benchmarks/m.py)"
    assert stacks.of_speedscope(data) == {
        f"{main};a:b c (eventlet/greenio/py3.py)": 2,
        main: 1,
        "run (subprocess.py)": 1,
    }


def test_the_flame_graph():
    """Boxes below their callers, as wide as their time in the candidate, coloured by the difference."""
    made = flames.plot("communicate/cat", profile())
    text = page.html("Report", [page.Section("Where", [made])])
    found = Read(text)
    titles = [each for each in found.texts if " → " in each and each.endswith(" s") and ": " in each]
    boxes = {title.partition(" ")[0]: rect for title, rect in zip(_titles(text), found.tags("rect"), strict=True)}
    assert set(boxes) == {"all:", "main", "read", "join", "spin"} and titles
    wide = {name: float(each["width"]) for name, each in boxes.items() if name != "spin"}
    assert wide["read"] == pytest.approx(1100 * 38 / 42, abs=1) and wide["join"] == pytest.approx(1100 * 8 / 42, abs=1)
    assert float(boxes["read"]["y"]) > float(boxes["main"]["y"]) > float(boxes["all:"]["y"])
    assert boxes["read"]["fill"] == "var(--bad-edge)" and boxes["spin"]["fill"] == "var(--series-6)"
    less = flames.plot("x", profile(before=stacks.parse(CANDIDATE), after=stacks.parse(STOCK)))
    assert 'fill="var(--series-2)"' in less.svg and "gone" in less.svg
    strange = flames.plot("x", profile(after={"<b> & (m.py)": 5}))
    assert "<b> & (m.py)" in Read(page.html("Report", [page.Section("Where", [strange])])).texts


def test_a_function_that_calls_itself_very_often():
    deep = flames.plot("x", profile(after={";".join(["down (d.py)"] * 5000): 5}))
    assert deep.svg.count("<rect") == 5001


def _titles(text: str) -> list[str]:
    return [html.unescape(part.partition("</title>")[0]) for part in text.split("<g><title>")[1:]]


CASES = [("communicate", Case("cat", "communicate", ("native-stock", "native-fastio"), baseline="native-stock"))]


NAMED = Asked(False, frozenset({"communicate/cat"}))


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ([], Asked(False)),
        (["none"], Asked(False)),
        (["slower"], Asked(True)),
        (["communicate"], NAMED),
        (["slower", "communicate/cat"], Asked(True, frozenset({"communicate/cat"}))),
    ],
)
def test_what_can_be_asked_for(names, wanted):
    assert profiling.asked(names, CASES) == wanted
    assert bool(wanted) == (names not in ([], ["none"]))


@pytest.mark.parametrize("names", [["slow"], ["slower", "none"], ["communicate/dog"]])
def test_what_cannot_be_asked_for(names):
    with pytest.raises(ValidateError) as raised:
        profiling.asked(names, CASES)
    assert f"--profile '{names[-1]}': allowed are slower, none alone, and what --benchmarks runs: " in str(raised.value)
    assert "communicate, communicate/cat" in str(raised.value)
    with pytest.raises(ValidateError, match="--profile slower with --benchmarks none has nothing to profile"):
        profiling.asked(["slower"], [])


def result_of(**rows: Any) -> Result:
    return samples.result(samples.case({f"native-{name}": row for name, row in rows.items()}, name="communicate/cat"))


def sampled(seconds: list[float], found: str) -> Any:
    """A variant whose runs have these stacks, each; those of the warm-up do not count."""
    made = samples.variant(seconds)
    for run in made.runs:
        run["stacks"] = {"warm-up (w.py)": 99} if run["warmup"] else stacks.parse(found)
    return made


VARIANTS = [variant(name) for name in ("stock", "candidate", "fastio")]


def run(wanted: Asked, rows: Result, measured: Result | Exception) -> tuple[list[Profile], list[Any]]:
    """The profiles, and what was measured for them."""
    asked: list[Any] = []

    def measure(case, variants, mode, options):
        asked.append(([each.name for each in variants], mode, options.rounds, list(options.under)))
        if isinstance(measured, Exception):
            raise measured
        return measured

    return profiling.run(wanted, measurements.rows(rows), CASES, VARIANTS, Options(rounds=9), measure), asked


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(profiled, "find", lambda: "/bin/py-spy")


def test_only_what_is_slower_is_run_again(installed):
    rows = result_of(stock=SPREAD, candidate=times(2), fastio=times(0.5))
    measured = result_of(stock=sampled([0.5, 0.5], STOCK), candidate=sampled([1, 1], CANDIDATE))
    (found,), asked = run(Asked(True), rows, measured)
    assert asked == [(["stock", "candidate"], "native", profiling.ROUNDS, profiled.command(False))]
    assert (found.variant, found.reason, found.runs) == ("candidate", "", 2)
    assert found.before == {stack: 2 * count for stack, count in stacks.parse(STOCK).items()}
    # 60 samples of two runs, at 100 a second.
    assert found.functions()[0].own == (20, 60) and found.seconds(60) == pytest.approx(0.3)
    assert run(Asked(True), result_of(stock=SPREAD, candidate=SPREAD, fastio=times(0.5)), measured) == ([], [])
    assert run(Asked(False), rows, measured) == ([], [])


def test_a_module_of_the_standard_library_has_the_name_of_stocks(installed):
    rows = result_of(stock=SPREAD, candidate=times(2))
    own = sampled([1], "run (cpython-candidate/subprocess.py) 3\n")
    ((found,), _) = run(Asked(True), rows, result_of(stock=sampled([1], "run (subprocess.py) 1\n"), candidate=own))
    assert found.functions() == [Function("run (subprocess.py)", (1, 3), (1, 3))]


def test_what_is_named_is_run_again_whatever_its_verdict(installed):
    rows = result_of(stock=SPREAD, candidate=SPREAD, fastio=times(0.5))
    each = [sampled([1], STOCK) for _ in range(3)]
    found, asked = run(NAMED, rows, result_of(stock=each[0], candidate=each[1], fastio=each[2]))
    assert [one.variant for one in found] == ["candidate", "fastio"] and asked[0][0] == ["stock", "candidate", "fastio"]


def test_why_there_is_no_profile(installed, monkeypatch):
    rows = result_of(stock=SPREAD, candidate=times(2))
    denied = {"reason": "exit status 1", "status": 1, "stderr": "…\npy-spy: Permission Denied\n"}
    measured = result_of(stock=sampled([1], STOCK), candidate=samples.variant([], failure=denied))
    ((found,), _) = run(Asked(True), rows, measured)
    assert found.reason == "candidate: FAILED: exit status 1: py-spy: Permission Denied" and found.files("py3.11") == {}
    ((found,), _) = run(Asked(True), rows, ValidateError("the sandbox has ended"))
    assert found.reason == "the sandbox has ended"
    ((found,), _) = run(Asked(True), rows, result_of(stock=sampled([1], ""), candidate=sampled([1], STOCK)))
    assert found.reason == "no sample: the runs are too short"
    skipped = result_of(stock=SPREAD, candidate=samples.variant([], skipped="no nginx"))
    (found,), asked = run(NAMED, skipped, measured)
    assert (found.reason, asked) == ("skipped: no nginx", [])
    monkeypatch.setattr(profiled, "find", lambda: None)
    (found,), asked = run(Asked(True), rows, measured)
    assert found.reason == "py-spy is not installed (pip install py-spy, or fastio's extra profile)" and asked == []


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "Permission Denied: Try again\n",
            "py-spy: Permission Denied: Try again (the kernel does not let it look into",
        ),
        (
            "Error: Failed to find python version from target process\n\nStack:\n",
            "(it knows only some versions of Python)",
        ),
        ("", "py-spy: it has written no profile"),
    ],
)
def test_what_py_spy_says(said, reason):
    assert reason in profiled._reason(said)


def test_the_first_of_a_servers_processes():
    """The others are its children, which are sampled with it."""
    assert profiled.first([os.getpid(), os.getppid()]) == [os.getppid()]
    assert profiled.first([os.getpid()]) == [os.getpid()]


#: A benchmark of the made-up project: what ``total`` says, and how long it took.
SCRIPT = """\
import json, sys, time
from madeup import counting

started = time.perf_counter()
right = counting.total([1, 2, 3]) == 6
taken = time.perf_counter() - started
parameters = json.loads(sys.argv[2])
print(json.dumps({"seconds": max(taken, parameters["least"]), "bytes": 1 << 20, "verified": right}))
"""
SLOW = """\
    pause()
    return sum(numbers)


def pause():
    import time

    time.sleep(0.5)
"""


@pytest.fixture
def judge(validate, tmp_path, monkeypatch):  # noqa: F811
    """That of the flow, with a benchmark."""
    script = tmp_path / "cache" / "script.py"
    script.write_text(SCRIPT)
    row = CaseRow("native-stock", script=str(script))
    # So that stock's figures are alike, and the candidate's are not.
    case = Case("total", "made", (row,), {"least": 0.02}, title="total()", warmup=0)
    project = projects.PROJECTS["madeup"]
    with_case = dataclasses.replace(project, benchmarks=("made",), cases=("made/total",))
    monkeypatch.setitem(projects.PROJECTS, "madeup", with_case)
    monkeypatch.setattr(projects, "cases_of", lambda suite: [case])

    def run(after, *options):
        return validate(after, "--suite", "none", "--isolation", "none", *options)

    return run


def slow():
    return test_flow.changed("madeup/counting.py", "    return sum(numbers)\n", SLOW)


@pytest.fixture
def recorded(monkeypatch):
    """Let this be what the profiler has seen; returns the commands that were run under it."""
    found: list[list[str]] = []
    execute = engine._execute

    def run(command, timeout, told):
        under = profiled.command(False)
        if command[: len(under)] != under:
            return execute(command, timeout, told)
        found.append(command[len(under) :])
        candidate = "candidate" in command[len(under)]
        result = {"seconds": 0.1, "verified": True, "stacks": stacks.parse(CANDIDATE if candidate else STOCK)}
        return 0, json.dumps(result).encode(), b""

    monkeypatch.setattr(engine, "_execute", run)
    monkeypatch.setattr(profiled, "find", lambda: "/bin/py-spy")
    return found


def test_everything_that_is_written_says_where_the_time_goes(judge, recorded, tmp_path, capsys):
    assert judge(slow(), "--profile", "slower", "--rounds", "7") == 1
    said = capsys.readouterr().out
    version = pythons.find("").version
    grew = "read (r.py) grew most by itself, 0.100 → 0.300 s"
    line = f"profile: candidate: made/total (native) with Python {version}: {grew}"
    assert line in said
    directory = test_flow.results(tmp_path)
    summary = (directory / "summary.md").read_text()
    assert line in " ".join(summary.split())
    rows = [row.split(" | ") for row in summary.splitlines() if row.startswith("| read (r.py)")]
    assert rows == [["| read (r.py)", "0.100 → 0.300", "50.0% → 71.4%", "0.100 → 0.380", "50.0% → 90.5%", "+0.200 |"]]
    assert "gone (g.py)" not in summary
    found = Read((directory / "report.html").read_text())
    outside = [each for each in [*found.all("href"), *found.all("src")] if not each.startswith(("#", "data:"))]
    assert not outside and not found.tags("script")
    assert any(text.startswith("Differential flame graph: candidate: made/total") for text in found.texts)
    files = [f"profile-py{version}-made-total-native-{name}.txt" for name in ("stock", "candidate")]
    five = [{stack: 5 * count for stack, count in stacks.parse(each).items()} for each in (STOCK, CANDIDATE)]
    assert [stacks.parse((directory / name).read_text()) for name in files] == five
    raw = json.loads((directory / "raw.json").read_text())["pythons"][0]
    (kept,) = raw["profiles"]
    assert (kept["case"], kept["variant"], kept["reason"], kept["files"]) == ("made/total", "candidate", "", files)
    assert kept["functions"][0] == {
        "name": "read (r.py)", "self_seconds": [0.1, 0.3], "total_seconds": [0.1, 0.38]
    }  # fmt: skip
    # The verdict is that of the runs without a profiler.
    assert raw["rows"][0]["verdict"] == "slower" and raw["rows"][0]["figure"] < 10
    assert len(recorded) == 2 * profiling.ROUNDS


def test_without_being_asked_nothing_is_profiled(judge, recorded, tmp_path, capsys):
    assert judge(slow(), "--rounds", "1") == 0
    assert "profile" not in capsys.readouterr().out and recorded == []
    # What an earlier validation has left would pass for this one's.
    directory = test_flow.results(tmp_path)
    (directory / "profile-old.txt").write_text("a 1\n")
    assert judge(slow(), "--rounds", "1") == 0
    assert {each.name for each in directory.iterdir()} == {*test_flow.WRITTEN, "state"}


def test_what_is_not_slower_is_not_profiled(judge, recorded, tmp_path, capsys):
    assert judge(test_flow.COMMENT, "--profile", "slower", "--rounds", "1") == 0
    test_flow.said_everywhere(tmp_path, capsys, "profile: there is none: no benchmark is slower")
    assert recorded == []


def test_the_verdict_says_that_there_is_no_profiler(judge, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(profiled, "find", lambda: None)
    assert judge(test_flow.COMMENT, "--profile", "made/total", "--rounds", "1") == 0
    name = f"candidate: made/total (native) with Python {pythons.find('').version}"
    test_flow.said_everywhere(tmp_path, capsys, f"profile: there is none of {name}: py-spy is not installed (pip")


def test_an_interrupted_profile_goes_on(judge, recorded, monkeypatch, capsys):
    """With those of the runs that were over, and the verdict is not measured again."""
    run = profiling.run

    def interrupted(*arguments):
        run(*arguments)
        monkeypatch.setattr(profiling, "run", run)
        raise KeyboardInterrupt

    monkeypatch.setattr(profiling, "run", interrupted)
    options = ("--profile", "made", "--rounds", "1")
    assert judge(test_flow.COMMENT, *options) == 130
    assert len(recorded) == 2
    assert judge(test_flow.COMMENT, *options) == 0
    assert len(recorded) == 2 and "read (r.py) grew most" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--profile", "slow"], "--profile 'slow': allowed are slower, none alone, and what --benchmarks runs: made"),
        (["--profile", "slower", "--benchmarks", "none"], "--profile slower with --benchmarks none has nothing"),
    ],
)
def test_what_the_command_refuses(judge, capsys, options, said):
    assert judge(test_flow.COMMENT, *options) == 2
    shown = capsys.readouterr()
    assert said in shown.err and not shown.out


def under_profiler(server: bool, *command: str, **told: Any) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), SURROUNDINGS_VARIABLE: json.dumps(told)}
    whole = [*profiled.command(server), *command]
    return subprocess.run(whole, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)


@pytest.fixture
def py_spy():
    """Skips where the profiler cannot be run, and says why."""
    if not os.environ.get("VALIDATE_TESTS"):
        pytest.skip("runs in tox -e validate-tests: beside many other tests py-spy may come too late")
    if profiled.why_not():
        pytest.skip(profiled.why_not())
    done = under_profiler(False, sys.executable, "-c", "import time; time.sleep(0.5); print('{}')")
    if done.returncode:
        pytest.skip(done.stderr.strip().splitlines()[-1])


def test_a_real_profile_names_what_takes_longer(py_spy, judge, tmp_path, capsys):
    assert judge(slow(), "--profile", "made/total", "--rounds", "1") == 0
    assert "profile: candidate: made/total (native) with Python" in capsys.readouterr().out
    for name, there in (("stock", False), ("candidate", True)):
        (file,) = test_flow.results(tmp_path).glob(f"profile-*-{name}.txt")
        found = stacks.parse(file.read_text())
        assert any(stack.endswith("total (madeup/counting.py);pause (madeup/counting.py)") for stack in found) == there


def test_a_profile_in_a_sandbox(py_spy, tmp_path):
    made = sandboxes(tmp_path / "cache")
    variants = environments(tmp_path)
    cases = projects.EVENTLET.choose_cases(["input/popen-16MiB"])
    options = Options(rounds=1, size=1 << 16, under=profiled.command(False))
    result = measuring.run(made.launcher(*variants), cases, variants, ["native"], options, State(tmp_path / "s"), "py")
    for row in result.cases[0].variants.values():
        assert measurements.trouble(row) == ""
        assert any("main (benchmarks/harness/worker.py)" in stack for stack in row.measured()[0]["stacks"])


def test_a_run_that_fails_under_the_profiler(py_spy):
    done = under_profiler(False, sys.executable, "-c", "import time; time.sleep(0.3); raise OSError('no')")
    assert done.returncode == 1 and "OSError: no" in done.stderr
    assert done.stderr.splitlines()[-1] == "the run that was profiled has no result: see above"


def test_what_is_no_python_cannot_be_profiled(py_spy):
    done = under_profiler(False, "sleep", "1")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("(it knows only some versions of Python)")


def test_the_profile_of_a_server(py_spy, tmp_path):
    """What is profiled is the server that the run uses, not the run."""
    ready = tmp_path / "ready"
    server = f"def serve():\n    import time\n    open({str(ready)!r}, 'w').close()\n    time.sleep(60)\nserve()\n"
    client = "def ask():\n    import time\n    time.sleep(1)\nask()\nprint('{}')\n"
    with subprocess.Popen([sys.executable, "-c", server]) as process:
        try:
            while not ready.exists():
                assert process.poll() is None
                time.sleep(0.01)
            beside = {"candidate": {"pids": [process.pid]}}
            command = [sys.executable, "-c", client, json.dumps({"server": "candidate"})]
            done = under_profiler(True, *command, pids=[], beside=beside)
        finally:
            process.kill()
    if "Permission Denied" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    found = json.loads(done.stdout.splitlines()[-1])["stacks"]
    assert any(stack.endswith("serve (<string>)") for stack in found) and "ask" not in str(found)
