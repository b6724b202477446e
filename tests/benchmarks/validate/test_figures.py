"""The tables of what fastio's own candidates gain."""

from types import SimpleNamespace

import pytest

from benchmarks.harness import keep, summaries
from benchmarks.harness.engine import ROOT
from benchmarks.validate import figures, projects
from tests.benchmarks import samples

#: Seconds of nine runs.
STOCK = [0.50, 0.51, 0.49, 0.52, 0.50, 0.55, 0.48, 0.50, 0.51]


@pytest.mark.parametrize("name", figures.MEASURED)
def test_the_measured_rows_exist(name):
    project, cases, _ = figures.MEASURED[name]
    assert projects.find(project).choose_cases(cases.split(","))
    assert (ROOT / figures.CANDIDATES / f"{name}.patch").is_file()


def test_offered_candidates_are_faster():
    """The page offers a change if all that was measured of it is, and withholds the others."""
    page = (ROOT / "doc" / "source" / "upstream" / "candidates.rst").read_text(encoding="utf-8")
    offered, _, rest = page.partition(".. list-table:: Withheld\n")
    withheld = rest.partition("\nGains\n")[0]
    assert withheld
    kept = summaries.read(keep.KEPT / f"{figures.FILE}.json")
    for name in figures.MEASURED:
        (table,) = kept[name].judged
        gains = {row[table.head.index("verdict")] for row in table.rows} == {"faster"}
        assert f"candidates/{name}.patch>" in (offered if gains else withheld), name
        assert f"candidates/{name}.patch>" not in (withheld if gains else offered), name


def test_a_table():
    rows = {
        "eventlet-stock": STOCK,
        "eventlet-candidate": [seconds / 2 for seconds in STOCK],
        "eventlet-fastio": [seconds / 4 for seconds in STOCK],
    }
    case = samples.case(rows, name="communicate/cat", title="communicate/cat: what it does")
    table = figures.table("a-candidate", samples.result(case))
    (line,) = table.rows
    assert line[:2] == ["what it does", "eventlet"]
    assert line[4].startswith("2 (") and line[5] == "faster" and line[7].startswith("4 (")
    before, _, after = line[6].partition(" → ")
    assert float(before) == pytest.approx(2 * float(after))
    assert "9 rounds" in table.notes[1]


def test_a_summary_is_kept(monkeypatch):
    (name, (project, cases, _)), *_ = figures.MEASURED.items()
    added = {}
    monkeypatch.setattr(keep, "add", lambda name, run, file: added.update({(file, name): run}))
    rows = {f"native-{each}": STOCK for each in ("stock", "candidate", "fastio")}
    outcome = SimpleNamespace(benchmarks=samples.result(samples.case(rows), suite="validate"))
    monkeypatch.setattr(figures, "validated", lambda arguments: outcome)
    figures.measure(name)
    (run,) = added.values()
    assert run.command[:3] == ["fastio", "validate", project] and cases in run.command
    assert [table.title for table in run.judged] == [name]
