"""The tables of what fastio's own candidates gain."""

import pytest

from benchmarks.harness import results
from benchmarks.harness.engine import ROOT
from benchmarks.validate import figures, measurements, projects
from tests.benchmarks import samples

#: Seconds of nine runs.
STOCK = [0.50, 0.51, 0.49, 0.52, 0.50, 0.55, 0.48, 0.50, 0.51]


@pytest.mark.parametrize("name", figures.MEASURED)
def test_what_is_measured_is_there(name):
    project, cases, _ = figures.MEASURED[name]
    assert projects.find(project).choose_cases(cases.split(","))
    assert (ROOT / figures.CANDIDATES / f"{name}.patch").is_file()


def test_what_is_offered_is_faster():
    """The page offers a change if all that was measured of it is, and withholds the others."""
    page = (ROOT / "doc" / "source" / "upstream" / "candidates.rst").read_text(encoding="utf-8")
    offered, _, rest = page.partition(".. list-table:: Withheld\n")
    withheld = rest.partition("\nWhat they gain\n")[0]
    assert withheld
    for name in figures.MEASURED:
        rows = measurements.rows(results.read(figures.RESULTS / "candidates" / f"{name}.json"))
        gains = {row.verdict for row in rows if row.variant == "candidate"} == {"faster"}
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


def test_what_is_kept_names_nothing_of_this_machine(tmp_path, monkeypatch):
    (name, (project, cases, _)), *_ = figures.MEASURED.items()
    for module in (figures, results):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "kept").mkdir()
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "kept")
    executable = f"{tmp_path}/.tox/bin/python3"

    def validate(arguments):
        path = tmp_path / f"results/candidates/validate-{project}-{name}.patch-1/state/3.11/benchmarks.json"
        row = samples.variant(STOCK, command=[executable, f"{tmp_path}/worker.py"])
        samples.result(samples.case({"stock": row}), machine={**samples.MACHINE, "executable": executable}).write(path)
        return 0

    monkeypatch.setattr(figures.command, "main", validate)
    figures.measure(name)
    kept = results.read(tmp_path / "kept" / "candidates" / f"{name}.json")
    assert kept.command[:3] == ["fastio", "validate", project] and cases in kept.command
    assert kept.machine["executable"] == "python"
    assert kept.cases[0].variants["stock"].command == ["python", "worker.py"]
