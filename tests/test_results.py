"""The figures in the documentation and in README.rst are those of the results that stand beside them."""

from pathlib import Path

import pytest

pytest.importorskip("scipy")

from benchmarks.harness import results, tables  # noqa: E402
from benchmarks.suites.store_chunks import tables as chunks  # noqa: E402
from benchmarks.validate import figures  # noqa: E402

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "doc" / "source" / "results").glob("*.json"))


def test_there_are_results():
    assert RESULTS


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_the_table_is_that_of_the_result(path):
    table = path.with_suffix(".rst").read_text(encoding="utf-8")
    command = f"python -m benchmarks.harness.tables {path} --rst > {path.stem}.rst"
    assert table == tables.rst(results.read(path)), command


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_the_table_is_in_the_documentation(path):
    pages = (page.read_text(encoding="utf-8") for page in (ROOT / "doc/source").glob("*.rst"))
    assert any(f".. include:: results/{path.stem}.rst" in page for page in pages)


def test_what_the_chunk_sizes_are_judged_by_is_that_of_the_result():
    path = ROOT / "doc/source/results/store_chunks.json"
    judged = path.with_name("store_chunks-best.rst").read_text(encoding="utf-8")
    assert judged.rstrip("\n") == tables.table_rst(chunks.table(results.read(path))).rstrip("\n")
    page = (ROOT / "doc/source/benchmarks.rst").read_text(encoding="utf-8")
    assert ".. include:: results/store_chunks-best.rst" in page


def test_the_candidates_tables_are_those_of_their_results():
    table = (ROOT / "doc/source/results/candidates.rst").read_text(encoding="utf-8")
    assert table == figures.page(), "python -m benchmarks.validate.figures"
    assert ".. include:: results/candidates.rst" in (ROOT / "doc/source/candidates.rst").read_text(encoding="utf-8")
    patches = {path.stem for path in (ROOT / "doc/source/candidates").glob("*.patch")}
    kept = {path.stem for path in (ROOT / "doc/source/results/candidates").iterdir()}
    assert patches == set(figures.MEASURED) == kept


def readme_rows():
    """The rows of README's table of results: cells by the name of the row."""
    section = (ROOT / "README.rst").read_text(encoding="utf-8").partition("Results\n=======\n")[2]
    section = section.partition("Use it\n======")[0]
    rows = [line.split("  ") for line in section.splitlines() if line[:1] not in ("", " ", "=")]
    return {cells[0]: [cell.strip() for cell in cells[1:] if cell.strip()] for cells in rows if len(cells) > 1}


def test_the_figures_in_readme_are_those_of_the_result():
    case = results.read(ROOT / "doc/source/results/sheepdog.json").cases[0]
    table = tables.table(case)
    columns = [table.head.index(name) for name in ("MB/s", "CPU s/GiB", "waits/MiB", "peak memory/payload")]
    rows = readme_rows()
    for cells in table.rows:
        if cells[0] in rows:
            assert rows.pop(cells[0]) == [cells[column] for column in columns]
    assert set(rows) <= {"row"}
