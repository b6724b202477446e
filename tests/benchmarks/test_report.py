"""Reports: one page of any results."""

import sys
import types
from collections import Counter
from typing import Any

import pytest

from benchmarks.harness import suites
from benchmarks.harness.tables import Table
from benchmarks.report import __main__ as command
from benchmarks.report import sections
from tests.benchmarks import samples
from tests.benchmarks.samples import FAILURE, SPREAD
from tests.benchmarks.test_page import Read


def sample(**fields):
    rows: dict[str, Any] = {
        "stock": SPREAD,
        "fastio": [each / 3 for each in SPREAD],
        "broken": samples.variant([], failure=FAILURE),
        "lying": samples.variant([2.0] * 7, verified=False),
    }
    cases = [
        samples.case(rows, title="200 MiB & more"),
        samples.case({"stock": SPREAD}, name="half", complete=False),
    ]
    return samples.result(*cases, **{"suite": "sheepdog", "command": ["pytest", "-k", "a b"], **fields})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "sheepdog.json"
    sample().write(path)
    return path


@pytest.fixture
def undrawn(monkeypatch):
    """Without plots, which take longer than all the rest."""
    monkeypatch.setattr(sections, "_drawing", lambda: None)


def report(*arguments):
    return command.main(list(map(str, arguments)))


def test_a_page(path, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="plots need the extra 'plot'")
    page = tmp_path / "page.html"
    assert report(path, "-o", page) == 0
    assert capsys.readouterr().out.split() == [str(page)]
    made = Read(page.read_text())
    text = " ".join(made.texts)
    for expected in (
        "fastio: sheepdog", "The sheepdog case, the main job: a service reads and writes images", "200 MiB & more",
        "419", "3 (2.", "half: interrupted: not all runs were made", "broken: failed: exit status 1",
        "lying: WRONG DATA: the payload did not have the expected SHA-256", "ValueError: <bad>", "pytest -k 'a b'",
        "EPYC", "eventlet 0.41.3",
        "fastio: 1258 MB/s, runs from 1144 to 1311; fastio against stock: 3 (2.",
    ):  # fmt: skip
        assert expected in text, expected
    assert len(made.tags("img")) == 1
    assert [name for name, count in Counter(made.all("id")).items() if count > 1] == []
    # The same results make the same page.
    first = page.read_bytes()
    assert report(path, "-o", page) == 0
    assert page.read_bytes() == first


def test_several_results(tmp_path, capsys, undrawn):
    paths = [tmp_path / name for name in ("a.json", "b.json")]
    (tmp_path / "other").mkdir()
    paths.append(tmp_path / "other" / "a.json")
    sample().write(paths[0])
    sample(machine={**samples.MACHINE, "kernel": "6.2"}).write(paths[1])
    samples.result(samples.case({"stock": SPREAD}), suite="processes").write(paths[2])
    page = tmp_path / "page.html"
    assert report(*paths, "-o", page) == 0
    made = Read(page.read_text())
    text = " ".join(made.texts)
    assert f"fastio: a, b, {paths[2]}" in text
    assert "There are no plots: matplotlib is not installed" in text
    assert "6.2" in text
    assert {"no: 3 notes", "yes"} <= set(made.texts)


def test_a_quick_run_is_not_judged(tmp_path, undrawn):
    for how, said in (["pytest", "--quick"], "A quick run"), (["pytest"], "Goals"):
        path, page = tmp_path / "quick.json", tmp_path / "page.html"
        rows = {"stock": SPREAD, "fastio": SPREAD}
        samples.result(samples.case(rows, name="glance-32-upload"), suite="glance", command=how).write(path)
        assert report(path, "-o", page) == 0
        assert [each for each in ("A quick run", "Goals") if each in page.read_text()] == [said]


def test_a_suite_says_what_it_shows(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="plots need the extra 'plot'")
    from matplotlib import pyplot

    from benchmarks.harness.plots import Drawing

    module: Any = types.ModuleType("made_up", "A ``made up`` suite.\n\nMore.")
    module.judgement = lambda result: [Table("Bottlenecks", ["", "what"], [["1", "CPU"]]), Table("No rows", [""], [])]
    module.PLOTS = {
        "cpu": Drawing("CPU by workload number", lambda result: pyplot.figure()),
        "none": Drawing("Not drawn", lambda result: None),
    }
    monkeypatch.setitem(sys.modules, "made_up", module)
    monkeypatch.setitem(suites.OTHERS, "matrix", "made_up")
    monkeypatch.setattr(suites, "find_spec", lambda name: True)
    path, page = tmp_path / "a.json", tmp_path / "page.html"
    sample(suite="matrix quick").write(path)
    assert report(path, "-o", page) == 0
    text = page.read_text()
    for expected in ("A made up suite.", "Bottlenecks", "CPU by workload number"):
        assert expected in text
    assert "No rows" not in text and "Not drawn" not in text
    assert len(Read(text).tags("img")) == 2


def lacking(path):
    sample(machine={}).write(path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.write_text("[]"), "not a result of these benchmarks"),
        (lacking, "incomplete: its machine or its versions lack 'processor'"),
        (lambda path: samples.result(suite="sheepdog").write(path), "there is no case in it"),
        (lambda path: sample(suite="made-up").write(path), "suite 'made-up' is none that a report knows: allowed are "),
    ],
)
def test_files_that_are_no_result(path, tmp_path, capsys, make, said):
    other = tmp_path / "other.json"
    make(other)
    page = tmp_path / "page.html"
    page.write_text("old")
    assert report(path, other, "-o", page) == 2
    error = capsys.readouterr().err
    assert error.startswith("fastio report: ")
    assert said in error
    assert str(other) in error
    assert page.read_text() == "old"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "{0}"], "--output {0}: that is a directory"),
        (["-o", "{0}/no/page.html"], "--output {0}/no/page.html: there is no directory {0}/no"),
        (["-o", "{0}/sheepdog.json"], "--output {0}/sheepdog.json: that is a RESULT as well"),
        (["{0}/sheepdog.json", "-o", "{0}/a"], "sheepdog.json: given twice"),
    ],
)
def test_unwritable_reports(path, tmp_path, capsys, arguments, said):
    before = path.read_bytes()
    assert report(path, *(each.format(tmp_path) for each in arguments)) == 2
    assert said.format(tmp_path) in capsys.readouterr().err
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["sheepdog.json"]
