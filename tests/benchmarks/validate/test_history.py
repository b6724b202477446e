"""The kept history of verdicts: what has changed is found, and what is damaged is named and lost to nobody."""

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.harness.statistics import Interval
from benchmarks.validate import annotations, history, projects
from benchmarks.validate.candidates import Candidate
from benchmarks.validate.clones import Change
from benchmarks.validate.errors import ValidateError
from benchmarks.validate.history import History
from benchmarks.validate.isolation import Isolation
from benchmarks.validate.measurements import Row
from benchmarks.validate.outcome import Outcome, PythonOutcome
from benchmarks.validate.variants import Variant
from tests.benchmarks import samples

WHERE = "Python 3.13.1: candidate: eventlet: "


def row(case, ratio, low, high, **fields):
    return Row("candidate", case, "eventlet", "ms", better=Interval(ratio, low, high), verdict="noise", **fields)


def outcome(*rows, name="my.diff", base="0.41.3", project=projects.EVENTLET, change=None, **machine):
    candidate = Candidate(name, "diff", "0" * 64, change=change)
    python: Any = SimpleNamespace(version="3.13.1", path="python")
    environment: Any = None
    variants = [Variant(each, environment, base, None) for each in ("stock", "candidate")]
    made = Outcome(
        project, candidate, [], {**samples.MACHINE, **machine}, "2026-11-24T03:00:00+00:00", Isolation("none")
    )
    made.pythons = [PythonOutcome(python, variants, rows=list(rows))]
    return made


@pytest.fixture
def path(tmp_path):
    return tmp_path / "history.jsonl"


def since(path, earlier, now):
    """What is said of ``now`` after ``earlier``."""
    if path.exists():
        path.unlink()
    kept = History(path)
    kept.add(earlier)
    return kept.changes(now)


SAME = row("commands/true", 1.0, 0.9, 1.1)
FAILS = row("commands/true", 0.5, 0.45, 0.55, failure=True)


def test_the_first_verdict(path):
    made = History(path).changes(outcome(SAME))
    assert made.lines() == ["history: the first verdict of its kind"]
    assert not path.exists(), "it is kept when the reports are written"


def test_nothing_has_changed(path):
    made = since(path, outcome(SAME, load=1.0), outcome(SAME, load=2.0))
    assert made.lines() == ["since the last verdict (2026-11-24T03:00:00+00:00): nothing has changed"]


def test_a_verdict_that_is_another_one(path):
    made = since(path, outcome(SAME), outcome(FAILS))
    moved = f"{WHERE}commands/true: 1 (0.9–1.1) -> 0.5 (0.45–0.55) times as good as stock"
    assert made.worse == ["passed -> failed", f"newly fails: {WHERE}commands/true", moved] and not made.better
    made = since(path, outcome(FAILS), outcome(SAME))
    assert made.better[:2] == ["failed -> passed", f"no longer fails: {WHERE}commands/true"] and not made.worse


@pytest.mark.parametrize(
    ("now", "moved"),
    [
        (row("commands/true", 1.05, 1.0, 1.1), ""), (row("commands/true", 1.2, 0.95, 1.4), ""),
        (row("commands/true", 1.2, 1.15, 1.3), "better"), (row("commands/true", 0.85, 0.8, 0.9), "worse"),
        (row("commands/wait", 0.5, 0.4, 0.6), ""),
    ],
    ids=["within", "its own interval has the old one", "faster", "slower", "not measured before"],
)  # fmt: skip
def test_a_ratio_that_has_left_the_interval(path, now, moved):
    made = since(path, outcome(SAME), outcome(now))
    assert bool(made.better) == (moved == "better") and bool(made.worse) == (moved == "worse")


def test_what_was_not_run_both_times_is_not_compared(path):
    made = since(path, outcome(FAILS), outcome(row("commands/wait", 1, 0.9, 1.1)))
    assert made.better == ["failed -> passed"]
    made = since(path, outcome(SAME), outcome(SAME, row("commands/wait", 0.5, 0.4, 0.6, failure=True)))
    assert made.worse == ["passed -> failed"]


def test_what_is_compared_may_be_another_one(path):
    made = since(path, outcome(SAME), outcome(SAME, base="0.42.0", kernel="6.2"))
    assert made.differs == ["Python, and the release 3.13.1: 0.41.3 -> 0.42.0", "machine kernel: 6.1 -> 6.2"]
    assert made.lines()[0].endswith(f": differs: {made.differs[0]}")


def test_only_the_last_of_the_same_project_and_candidate_counts(path):
    def change(commit):
        return Change("clone", "topic", "main", "b" * 40, commit, 1)

    kept = History(path)
    kept.add(outcome(FAILS, name="other.diff"))
    kept.add(outcome(FAILS, project=projects.OSLO_CONCURRENCY))
    assert kept.changes(outcome(SAME)).since == ""
    kept.add(outcome(FAILS))
    kept.add(outcome(SAME))
    assert kept.changes(outcome(SAME)).lines()[0].endswith("nothing has changed")
    # A branch that has moved on is the same candidate.
    kept.add(outcome(FAILS, name="topic of clone", change=change("1" * 40)))
    assert kept.changes(outcome(SAME, name="topic of clone", change=change("2" * 40))).better[0] == "failed -> passed"
    assert [json.loads(line)["commit"][:1] for line in path.read_text().splitlines()] == ["", "", "", "", "1"]


def test_what_github_shows(path):
    assert (
        list(annotations.of_changes(None))
        == list(annotations.of_changes(since(path, outcome(SAME), outcome(SAME))))
        == []
    )
    (line,) = annotations.of_changes(since(path, outcome(SAME), outcome(FAILS)))
    assert line.startswith(
        "::warning title=Worse than at the last verdict::2026-11-24T03:00:00+00:00%0Apassed -> failed%0A"
    )
    (line,) = annotations.of_changes(since(path, outcome(FAILS), outcome(SAME)))
    assert line.startswith("::notice title=Other than at the last verdict::")


GOOD = json.dumps(history.record(outcome(SAME)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{GOOD}\n{GOOD[:-9]}", "line 2 cannot be read: it is cut off"),
        (f"{GOOD}\n{GOOD}", "line 2 cannot be read: it is cut off"),
        (f"{GOOD[:-9]}\n{GOOD}\n", "line 1 cannot be read: it is no JSON: "),
        (f"{GOOD}\n\n{GOOD}\n", "line 2 cannot be read: it is no JSON: "),
        ("\0" * 100 + "\n", "line 1 cannot be read: it is no JSON: "),
        ("[]\n", "line 1 cannot be read: it is no verdict (no format 'fastio-validation-history' in it)"),
        (GOOD.replace('"version": 1', '"version": 2') + "\n", "its version is 2, and this program reads 1"),
        (GOOD.replace('"ran"', '"run"') + "\n", "it has no ran, or of another form"),
        (GOOD.replace("0.9, 1.1]", '"0.9", 1.1]') + "\n", "it has no rows, or of another form"),
        (GOOD.replace(", 0.9, 1.1]", "]") + "\n", "it has no rows, or of another form"),
    ],
)  # fmt: skip
def test_a_damaged_history(path, text, said):
    """It is said before anything is run, and also if it is damaged in the meantime."""
    kept = History(path)
    path.write_text(text)
    for read in (lambda: History(path), lambda: kept.changes(outcome(SAME)), lambda: kept.add(outcome(SAME))):
        with pytest.raises(ValidateError) as caught:
            read()
        assert str(caught.value).startswith(f"--history {path}: ") and said in str(caught.value)
        assert "nothing was written: repair or remove that line, or give another file" in str(caught.value)
    assert path.read_text() == text
    assert {each.name for each in path.parent.iterdir()} <= {path.name, f"{path.name}.lock"}


def test_what_is_no_file(tmp_path):
    with pytest.raises(ValidateError, match="--history .* is a directory; allowed is a file"):
        History(tmp_path)
    History(tmp_path / "new" / "history").add(outcome(SAME))
    assert (tmp_path / "new" / "history").read_text() == GOOD.replace(", ", ",").replace(": ", ":") + "\n"


def test_validations_that_end_at_the_same_time(path):
    """Each of them is kept."""
    kept = History(path)
    threads = [threading.Thread(target=kept.add, args=(outcome(SAME, name=f"{number}.diff"),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = {json.loads(line)["candidate"] for line in path.read_text().splitlines()}
    assert names == {f"{number}.diff" for number in range(8)}
