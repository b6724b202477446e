"""The outcome of every patch: as a human-readable table and as JSON for programs."""

import json
import re

import pytest

import fastio
from fastio.config import SETTINGS, Settings, resolve
from fastio.report import Entry, Outcome, Report
from tests.targets import import_targets

LEFT_ALONE = {Outcome.UNSUPPORTED, Outcome.CHANGED, Outcome.FAILED}


def settings() -> Settings:
    return resolve({"chunk_size": "64KiB", "disabled": ["wait", "green_wait"]}, {"FASTIO_PIPE_SIZE": "100000"})


def report(*entries: Entry, late_holders: tuple[str, ...] = ()) -> Report:
    return Report(list(entries), settings(), lambda: {"fastio": "1.2.3", "CPython": "3.11.7"}, late_holders)


APPLIED = Entry("communicate", "subprocess:Popen._communicate", Outcome.APPLIED, "code of CPython")
CHANGED = Entry("wait", "subprocess:Popen._wait", Outcome.CHANGED, "_wait has unknown code", "report the versions")
SEEN_THROUGH = Entry("green_wait", "m:Popen.wait", Outcome.APPLIED, "in effect, called through tool.f")
HIDDEN = Entry("green_wait", "m:Popen.wait", Outcome.CHANGED, "tool.f stands there", "call fastio.patch() after it")


UNUSED = {"communicate": "no such store is configured", "wait": "the server is not uWSGI"}


def test_the_outcomes_are_a_closed_set_of_words() -> None:
    assert {outcome.value for outcome in Outcome} == {
        "applied", "waiting for import", "absent", "unsupported version", "changed upstream code", "failed", "off",
    }  # fmt: skip
    assert [str(outcome) for outcome in Outcome] == [outcome.value for outcome in Outcome]
    assert json.dumps(Outcome.APPLIED) == '"applied"'


@pytest.mark.parametrize("outcome", Outcome)
def test_outcomes_that_strict_does_not_accept(outcome: Outcome) -> None:
    entry = Entry("wait", "m:a", outcome, "found")
    expected = outcome in LEFT_ALONE
    assert entry.left_alone is expected
    assert report(APPLIED, entry).problems() == ([entry] if expected else [])


def test_outcome_by_name() -> None:
    other = Entry("communicate", "other:Popen._communicate", Outcome.WAITING, "not imported yet")
    both = report(APPLIED, other)
    assert both.outcome("communicate") is Outcome.APPLIED
    assert both.outcome("communicate", "other:Popen._communicate") is Outcome.WAITING
    for arguments in (("wait",), ("communicate", "nothing:there")):
        with pytest.raises(KeyError, match=arguments[-1]):
            both.outcome(*arguments)


def test_the_summary_counts_outcomes() -> None:
    waiting = Entry("communicate", "other:Popen._communicate", Outcome.WAITING, "")
    absent = Entry("communicate", "third:Popen._communicate", Outcome.ABSENT, "")
    assert report(APPLIED, CHANGED, APPLIED).summary() == "fastio: 1 in effect, 1 left alone"
    assert report(APPLIED, absent).summary() == "fastio: 1 in effect"
    assert report(APPLIED, waiting).summary() == "fastio: 1 in effect"
    assert report(absent, waiting).summary() == "fastio: 1 waiting for import"
    assert report(APPLIED, CHANGED)._replace(unused=UNUSED).summary() == "fastio: 1 not used here, 1 left alone"
    assert report(absent)._replace(unused=UNUSED).summary() == "fastio: 1 absent"
    assert report().summary() == "fastio: nothing asked for"


def test_json_round_trip() -> None:
    one = report(APPLIED, CHANGED, SEEN_THROUGH, late_holders=("m.Popen is the native Popen",))._replace(unused=UNUSED)
    data = json.loads(one.to_json())
    assert data == one.to_dict()
    assert data["versions"] == {"fastio": "1.2.3", "CPython": "3.11.7"}
    assert data["late_holders"] == ["m.Popen is the native Popen"]
    assert data["settings"]["chunk_size"] == {"value": 65536, "source": "keyword argument"}
    assert data["settings"]["pipe_size"] == {"value": 100000, "source": "environment FASTIO_PIPE_SIZE"}
    assert set(data["settings"]) == {setting.name for setting in SETTINGS}
    assert data["patches"][1] == {
        "name": "wait", "target": "subprocess:Popen._wait", "outcome": "changed upstream code",
        "found": "_wait has unknown code", "advice": "report the versions", "known_by": "",
    }  # fmt: skip
    again = [Entry(**{**entry, "outcome": Outcome(entry["outcome"])}) for entry in data["patches"]]
    assert again == list(one.entries)
    assert Report.from_dict(data).to_dict() == data
    assert Report.from_dict(data).patches() == one.patches()


def test_the_live_report_is_plain_json() -> None:
    import_targets()
    with fastio.patched():
        status = fastio.status()
        assert json.loads(status.to_json()) == status.to_dict()
        assert status.to_dict()["versions"]["fastio"] == fastio.__version__


def test_the_summary_has_a_line_for_each_patch() -> None:
    absent = Entry("green_pipe", "m:a", Outcome.ABSENT, "eventlet is not installed")
    waiting = Entry("oslo_spawn", "m:b", Outcome.WAITING, "m is not imported yet")
    some = report(APPLIED, APPLIED, CHANGED, SEEN_THROUGH, absent, waiting)._replace(unused=UNUSED)
    lines = str(some).splitlines()
    assert lines[:2] == [
        "fastio 1.2.3, CPython 3.11.7",
        "patches: 1 not used here, 1 left alone, 1 in effect, 1 absent, 1 waiting for import",
    ]
    assert (
        lines[lines.index("Problems:") + 1]
        == "  wait (subprocess:Popen._wait): changed upstream code: _wait has unknown code"
    )
    head = next(index for index, line in enumerate(lines) if line.startswith("patch "))
    assert [re.split("  +", line) for line in lines[head + 2 : head + 7]] == [
        ["communicate", "not used here", "no such store is configured"],
        ["wait", "left alone", "changed upstream code"],
        ["green_wait", "in effect", "applied"],
        ["oslo_spawn", "waiting for import", "m is not imported yet"],
        [""],
    ]
    assert [line.split() for line in lines if line.startswith(("chunk_size", "pipe_size", "disabled", "enabled"))] == [
        ["chunk_size", "64", "KiB", "keyword", "argument"],
        ["pipe_size", "100000", "environment", "FASTIO_PIPE_SIZE"],
        ["disabled", "wait,", "green_wait", "keyword", "argument"],
    ]


def test_the_output_of_an_interactive_python() -> None:
    assert repr(report(APPLIED, CHANGED)) == "<Report: 1 in effect, 1 left alone; print() shows more>"
    assert repr(report()) == "<Report: no patches; print() shows more>"


def test_only_one_patch() -> None:
    one = report(APPLIED, CHANGED, APPLIED).only("communicate")
    assert [entry.name for entry in one.entries] == ["communicate", "communicate"]
    assert one.problems() == []


def test_the_whole_table_has_all_entries_in_aligned_columns() -> None:
    lines = report(APPLIED, CHANGED, SEEN_THROUGH).text(everything=True).splitlines()
    assert max(len(line) for line in lines) < 160
    assert not [line for line in lines if line != line.rstrip()]
    (head,) = [line for line in lines if line.startswith("patch ")]
    columns = [head.index(word) for word in ("patch", "target", "outcome", "found")]
    for entry in (APPLIED, CHANGED, SEEN_THROUGH):
        (line,) = [line for line in lines if line.startswith(entry.name + " ") and ":Popen" in line and "(" not in line]
        cells = [line[a:b].strip() for a, b in zip(columns, [*columns[1:], None], strict=True)]
        assert cells == [entry.name, entry.target, entry.outcome.value, entry.found]
    assert {line.split()[0] for line in lines if line} >= {setting.name for setting in SETTINGS}


def test_the_whole_table_has_what_is_not_used() -> None:
    lines = report(APPLIED, CHANGED)._replace(unused=UNUSED).text(everything=True).splitlines()
    found = [line for line in lines if line.endswith("code of CPython; not used here: no such store is configured")]
    assert len(found) == 1 and sum("not used here" in line for line in lines) == 2


def test_the_table_says_what_to_do_once() -> None:
    text = str(report(APPLIED, CHANGED, CHANGED, HIDDEN, late_holders=("m.Popen is native",)))
    assert text.count("wait: report the versions") == 1
    assert "green_wait: call fastio.patch() after it" in text
    assert text.index("What to do:") < text.index("Late holders:") < text.index("m.Popen is native")
    quiet = str(report(APPLIED))
    assert "What to do" not in quiet
    assert "Late holders" not in quiet
