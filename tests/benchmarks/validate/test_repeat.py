"""False alarms: what is counted of a release that is judged against itself, and when the count is too high.

``test_flow.py`` has it judged in earnest.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import documentation
from benchmarks.harness import results
from benchmarks.harness.suites import Suite
from benchmarks.validate import measurements, projects, repeat
from benchmarks.validate.isolation import Isolation
from benchmarks.validate.measurements import Row
from benchmarks.validate.outcome import Outcome, PythonOutcome
from benchmarks.validate.variants import Variant
from tests.benchmarks import samples

STOCK: Any = SimpleNamespace(directory=None, versions=lambda: {"eventlet": "0.41.3", "greenlet": "3.1"})
SLOWER = Row("candidate", "commands/true", "eventlet", "ms", verdict="slower")
FASTER = Row("candidate", "commands/wait", "eventlet", "ms", verdict="faster")
NOISE = Row("candidate", "commands/true", "eventlet", "ms", verdict="noise (within 3%)")
FAILS = Row("candidate", "commands/true", "eventlet", "ms", verdict="FAILED", failure=True)


@pytest.fixture
def judged(monkeypatch):
    """``judged(*runs)``: what each run finds, in rows of benchmarks. Returns a list of the arguments they are given."""
    found: list[list[Row]] = []
    asked: list[list[str]] = []

    def judge(given):
        variants = [Variant(name, STOCK, "0.41.3", None) for name in ("stock", "candidate")]
        python: Any = SimpleNamespace(version="3.13.1", path="python")
        made = PythonOutcome(python, variants)
        if "--suite=none" in given:
            asked.append(given)
            (repeat.Path(given[given.index("--results") + 1])).mkdir(parents=True)
            made.rows = found.pop(0)
        return Outcome(projects.EVENTLET, None, given, {}, "", Isolation("none"), [made])

    def prepare(*runs):
        found.extend(runs)
        return asked

    monkeypatch.setattr(repeat.command, "judge", judge)
    return prepare


@pytest.fixture
def run(tmp_path, capsys):
    """``run(*options)``: status and what was said."""

    def run(*options):
        status = repeat.main(["eventlet", "--suite", "none", "--results", str(tmp_path), *options])
        said = capsys.readouterr()
        return status, said.out + said.err

    return run


def kept(tmp_path):
    return results.read(tmp_path / "validate_repeat_eventlet.json")


def test_what_is_run():
    """The quick form has a benchmark each of a few suites, and enough rounds for the rank test."""
    assert repeat.quick(projects.EVENTLET) == (
        ["conformance-green"],
        ["communicate/popen-16MiB-stdout-binary", "input/popen-16MiB", "commands/true"],
    )
    for project in projects.PROJECTS.values():
        suites, cases = repeat.quick(project)
        assert project.choose_suites(suites) and project.choose_cases(cases or ["none"]) is not None
    figures = [1.0 + number / 1000 for number in range(repeat.ROUNDS)]
    rows = {"native-stock": figures, "native-candidate": [2 * each for each in figures]}
    (row,) = measurements.rows(samples.result(samples.case(rows)))
    assert row.verdict == "slower" and row.failure


def test_what_is_asked_for(judged, run):
    asked = judged([NOISE])
    assert run("--runs", "1", "--stock", "0.41.3")[0] == 0
    (given,) = asked
    assert given[:4] == ["eventlet", "--candidate", "stock", "--no-fastio"]
    options = repeat.command._parser().parse_args(given)
    assert (options.suite, options.rounds, options.stock) == ("none", repeat.ROUNDS, "0.41.3")
    assert options.benchmarks == ",".join(repeat.quick(projects.EVENTLET)[1])


def test_what_is_counted(judged, run, tmp_path):
    judged([NOISE, SLOWER], [FASTER, FAILS], [NOISE])
    status, said = run("--runs", "3")
    assert status == 0
    (row,) = kept(tmp_path).cases[0].variants.values()
    counted = ("false_alarm", "rows", "slower", "faster", "flaky", "changed")
    assert [tuple(each[name] for name in counted) for each in row.runs] == [
        (0, 2, 1, 0, 0, 0), (1, 2, 0, 1, 0, 0), (0, 1, 0, 0, 0, 0)
    ]  # fmt: skip
    assert [each["run"] for each in row.details["said"]] == [1, 2, 2]
    assert "eventlet, run 2: ``benchmark-fails: candidate: commands/true (eventlet): FAILED``" in said
    # Nothing is left of the run of which nothing was said.
    assert {each.name for each in (tmp_path / "repeat-eventlet").iterdir()} == {"run-1", "run-2"}


@pytest.mark.parametrize(
    ("runs", "alarms", "met"),
    [
        (2, 1, "too few runs to tell"), (2, 2, "no"), (50, 0, "yes"), (50, 1, "yes"), (50, 2, "no"), (51, 2, "yes"),
        (100, 2, "yes"), (100, 3, "no"),
    ],
)  # fmt: skip
def test_the_goal(judged, run, tmp_path, runs, alarms, met):
    judged([NOISE])
    run("--runs", "1")
    result = kept(tmp_path)
    (row,) = result.cases[0].variants.values()
    row.runs = [{**row.runs[0], "round": number + 1, "false_alarm": int(number < alarms)} for number in range(runs)]
    result.write(tmp_path / "validate_repeat_eventlet.json")
    (table,) = Suite(result.suite).judgement(result)
    (line,) = table.rows
    assert line[:3] == ["eventlet 0.41.3", str(runs), str(alarms)] and line[-1] == met
    assert run("--runs", str(runs))[0] == (met == "no")


def test_the_share_that_there_may_be_at_most():
    # That of none in n is 1 - 0.05 ** (1 / n).
    assert repeat._at_most(0, 50) == pytest.approx(1 - 0.05 ** (1 / 50))
    assert repeat._at_most(1, 50) == pytest.approx(0.0914, abs=1e-4)


def test_more_runs_than_there_are(judged, run, tmp_path):
    asked = judged([NOISE], [FAILS], [NOISE])
    run("--runs", "1")
    run("--runs", "3")
    assert len(asked) == len(kept(tmp_path).cases[0].variants[repeat.ROW].runs) == 3
    # They are there.
    assert run("--runs", "3")[0] == run("--runs", "2")[0] == 0
    assert len(asked) == 3
    judged([NOISE])
    run("--runs", "1", "--fresh")
    (row,) = kept(tmp_path).cases[0].variants.values()
    assert [each["false_alarm"] for each in row.runs] == [0] and row.details["said"] == []


def test_runs_that_were_made_otherwise_are_not_mixed(judged, run, tmp_path, monkeypatch):
    asked = judged([NOISE], [NOISE])
    run("--runs", "1")
    before = (tmp_path / "validate_repeat_eventlet.json").read_text()
    status, said = run("--runs", "2", "--rounds", "9")
    assert status == 2 and "were made otherwise: rounds: 7 -> 9; --fresh begins anew" in said
    monkeypatch.setattr(STOCK, "versions", lambda: {"eventlet": "0.41.3", "greenlet": "3.2"})
    assert "otherwise: greenlet: 3.1 -> 3.2;" in run("--runs", "2")[1]
    monkeypatch.undo()
    assert len(asked) == 1 and (tmp_path / "validate_repeat_eventlet.json").read_text() == before


def test_what_can_not_be_asked_for(judged, run, tmp_path):
    judged()
    assert run("--suite", "nonsense") == (
        2,
        "python -m benchmarks.validate.repeat: --suite 'nonsense': eventlet has "
        f"{', '.join(projects.EVENTLET.suites)}; or say all or none\n",
    )
    assert "--benchmarks 'nonsense'" in run("--benchmarks", "nonsense")[1]
    path = tmp_path / "validate_repeat_eventlet.json"
    path.write_text('{"format": "fastio-bench')
    status, said = run()
    assert status == 2 and f"{path}: not JSON" in said
    samples.result(samples.case({"stock": [1.0]})).write(path)
    status, said = run()
    assert status == 2 and f"{path} is a result of sample, and would be overwritten" in said
    assert results.read(path).suite == "sample"
    for runs in ("0", "many"):
        with pytest.raises(SystemExit):
            run("--runs", runs)


def test_it_can_be_kept_for_the_documentation(judged, run, tmp_path, monkeypatch):
    judged([NOISE], [FAILS])
    run("--runs", "2")
    monkeypatch.setattr(documentation, "KEPT", tmp_path / "kept")
    documentation.KEPT.mkdir()
    assert documentation.main([str(tmp_path / "validate_repeat_eventlet.json")]) == 0
    assert str(tmp_path) not in (documentation.KEPT / "validate_repeat_eventlet.json").read_text()
    for name, text in (("", "eventlet 0.41.3 against itself"), ("-judged", "of all runs, at most")):
        documentation.make(f"validate_repeat_eventlet{name}.rst", tmp_path, documentation.KEPT)
        assert text in (tmp_path / f"validate_repeat_eventlet{name}.rst").read_text()
