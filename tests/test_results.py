"""The figures in the documentation and in README.rst are those of the results that are kept."""

import functools
import re
import shutil
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="results need the extra 'bench'")
pytest.importorskip("scipy", reason="results need the extra 'bench'")

from benchmarks import documentation
from benchmarks.harness import results, tables
from benchmarks.harness.suites import Suite
from benchmarks.validate import figures
from tests.quoted import GIVEN, QUOTED

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "doc" / "source"
KEPT = SOURCE / "results"
RESULTS = sorted(KEPT.glob("*.json"))
SHOWN = documentation.shown()
#: Bytes of all that is kept.
MOST = 3_000_000


def test_only_results_are_kept_and_they_are_small():
    kept = {path for path in KEPT.rglob("*") if path.is_file()}
    assert {path.suffix for path in kept} == {".json"}
    assert sum(path.stat().st_size for path in kept) <= MOST


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_the_table_of_a_result_is_in_the_documentation(path):
    assert f"{path.stem}.rst" in SHOWN


@pytest.mark.parametrize("name", [name for name in SHOWN if name.endswith(".rst")])
def test_what_the_pages_include_is_made_of_a_result(name, tmp_path):
    documentation.make(name, tmp_path)
    assert ".. list-table:: " in (tmp_path / name).read_text(encoding="utf-8")


def test_a_table_has_the_figures_of_the_result(tmp_path):
    path = Path(shutil.copy(KEPT / "fairness.json", tmp_path))
    documentation.make("fairness.rst", tmp_path, kept=tmp_path)
    before = (tmp_path / "fairness.rst").read_text(encoding="utf-8")
    result = results.read(path)
    case = result.cases[0]
    for run in next(iter(case.variants.values())).runs:
        run[case.value] *= 2
    result.write(path)
    documentation.make("fairness.rst", tmp_path, kept=tmp_path)
    assert (tmp_path / "fairness.rst").read_text(encoding="utf-8") != before


def test_what_there_is_no_result_of_is_an_error(tmp_path):
    shutil.copy(KEPT / "fairness.json", tmp_path)
    for name, message in (
        ("peers.rst", "there is no such result in .*, only fairness"),
        ("fairness-more.rst", "nothing of the kind"),
        ("fairness-judged.rst", "nothing of the kind"),
        ("fairness.txt", "nothing of the kind"),
    ):
        with pytest.raises(results.ResultError, match=f"^{name}: .*{message}"):
            documentation.make(name, tmp_path, kept=tmp_path)
        assert not (tmp_path / name).exists()


def test_a_result_may_have_the_name_of_another_and_more(tmp_path):
    shutil.copy(KEPT / "fairness.json", tmp_path / "fairness.json")
    shutil.copy(KEPT / "input.json", tmp_path / "fairness-judged.json")
    documentation.make("fairness-judged.rst", tmp_path, kept=tmp_path)
    made = (tmp_path / "fairness-judged.rst").read_text(encoding="utf-8")
    assert tables.rst(results.read(KEPT / "input.json")).splitlines()[0].strip() in made


def test_a_result_is_kept_without_the_paths_of_the_machine(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(documentation, "KEPT", tmp_path / "kept")
    (tmp_path / "kept").mkdir()
    pythons = [f"{ROOT}/.tox/{name}/bin/python" for name in ("one", "two", "two3")]
    result = results.read(KEPT / "fairness.json")
    same = result.text()
    result.machine["executable"] = pythons[0]
    rows = list(result.cases[0].variants.values())
    for number, row in enumerate(rows):
        row.command[0] = pythons[number % 3]
        row.command.append(f"{ROOT}/benchmarks/worker.py")
    (tmp_path / "fairness.json").write_text(result.text(), encoding="utf-8")
    assert documentation.main([str(tmp_path / "fairness.json")]) == 0
    kept = results.read(tmp_path / "kept" / "fairness.json")
    for row in kept.cases[0].variants.values():
        assert row.command.pop() == "benchmarks/worker.py"
    assert kept.text() == same
    assert documentation.main([str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err


def test_the_candidates_results_are_those_of_the_candidates():
    assert documentation.CANDIDATES in SHOWN
    patches = {path.stem for path in (SOURCE / "candidates").glob("*.patch")}
    kept = {path.stem for path in (KEPT / "candidates").iterdir()}
    # Those that correct a fault need none.
    corrections = {path.stem for path in (SOURCE / "candidates" / "reproduce").glob("*.py")}
    assert patches - corrections == set(figures.MEASURED) == kept


#: Rows that do not compute the hash that is the limit of the others.
UNHASHED = re.compile("reference|no-hashing|unverified|curl")


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_no_row_is_better_than_what_is_called_a_limit(path):
    for case in results.read(path).cases:
        figures = {title: case.median(title) for title in case.variants if case.figures(title)}
        limited = [value for title, value in figures.items() if not UNHASHED.search(title)]
        for limit in (value for title, value in figures.items() if title.startswith("limit")):
            assert limit == (max if case.more_is_better else min)(limited), case.name


# --- what is said of the figures

_HEADING = re.compile(r"^(\S.*)\n(?:=+|-+)$", re.MULTILINE)
_LITERAL = re.compile(r"``[^`]*``")
#: Numbers as they are written in a sentence, with a point or with commas: no versions, no names.
_QUOTED = re.compile(r"(?<![\w.,-])(?:\d{1,3}(?:,\d{3})+|\d+\.\d+)(?![\w]|[.,-]\d)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]\d+)?")


def sections():
    """Each section that shows results, or quotes them in README: its page, heading, and the text."""
    for page in (ROOT / "README.rst", *documentation.pages()):
        _, *parts = _HEADING.split(page.read_text(encoding="utf-8"))
        for heading, text in zip(parts[::2], parts[1::2], strict=True):
            # The releases in it are those of tests/test_ranges.py.
            if documentation.included(text) or page.parent == ROOT and heading != "Install, run, switch off":
                yield pytest.param(heading, text, id=f"{page.stem}: {heading}")


@functools.cache
def shown(name):
    """A kept result, and its tables."""
    result = results.read(KEPT / f"{name}.json")
    return result, [*tables.tables(result), *Suite(result.suite).judgement(result)]


def cells(source):
    """The figures that a source names, of all rows that fit."""
    name, title, row, column = source.split(" | ")
    result, made = shown(name)
    for case in result.cases:
        if case.name == title:
            yield case.median(row, column)
    for table in made:
        for line in table.rows if fnmatchcase(table.title, title) else ():
            if any(fnmatchcase(text, row) for text in (line[0], ", ".join(line[:2]))):
                found = [_NUMBER.search(cell) for head, cell in zip(table.head, line, strict=True)
                         if fnmatchcase(head, column)]  # fmt: skip
                yield from (float(each.group()) for each in found[:1] if each)


def figure(source):
    """The figure that a source of :data:`tests.quoted.QUOTED` names."""
    if " : " in source:
        above, below = source.split(" : ")
        return figure(above) / (figure(below) if "|" in below else float(below))
    for word, choose in (("min ", min), ("max ", max)):
        if source.startswith(word):
            return choose(cells(source.removeprefix(word)))
    (found,) = cells(source)
    return found


@pytest.mark.parametrize(("heading", "text"), [*sections()])
def test_a_figure_in_a_sentence_is_that_of_its_result(heading, text):
    paragraphs = [each for each in text.split("\n\n") if not each.startswith(("..", "    "))]
    found = Counter(_QUOTED.findall(_LITERAL.sub("", "\n\n".join(paragraphs))))
    sources = QUOTED.get(heading, {})
    known = {quoted: len(each) for quoted, each in sources.items()}
    told = {quoted: count for quoted, count in found.items() if quoted not in GIVEN.get(heading, ())}
    assert told == known, "tests/quoted.py has to say which result a number comes from"
    for quoted in told:
        half = 10.0 ** -len(quoted.partition(".")[2]) / 2
        for source in " = ".join(sources[quoted]).split(" = "):
            assert float(quoted.replace(",", "")) == pytest.approx(figure(source), abs=half * (1 + 1e-6)), source


def test_every_section_that_quotes_a_figure_exists():
    assert {*QUOTED, *GIVEN} <= {each.values[0] for each in sections()}
