"""The contract of all suites: what one declares fits together, pytest collects it, and kept results show what they say.

What the runs of a suite do is tested beside its workload.
"""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")
pytest.importorskip("rich", reason="tables need the extra 'bench'")

from benchmarks.backends import BACKENDS, SERVICES
from benchmarks.harness import results, tables
from benchmarks.harness.engine import ROOT, Options
from benchmarks.harness.suites import OTHERS, Suite, known
from tests.benchmarks import samples

SUITES = sorted(set(known()) - set(OTHERS))
KEPT = sorted((ROOT / "doc" / "source" / "results").rglob("*.json"))


def cases(suite):
    return importlib.import_module(f"benchmarks.suites.{suite}.bench_{suite}").CASES


@pytest.mark.parametrize("suite", SUITES)
def test_what_a_suite_declares_fits_together(suite):
    names = [case.name for case in cases(suite)]
    assert names and len(set(names)) == len(names)
    quick = Options(quick=True)
    for case in cases(suite):
        known_variants = importlib.import_module(f"benchmarks.suites.{case.workload}.workload").VARIANTS
        assert {case.prepare, case.finish} <= {"", *known_variants}
        assert {case.backend, *(name for name, _ in case.beside.values())} <= {"", *BACKENDS, *SERVICES}
        variants = case.all_variants()
        for variant in variants:
            assert variant.script or variant.name in known_variants
            assert variant.against in ("", *(each.title for each in variants))
            assert variant.parameters.get("server", "") in ("", *case.beside)
            assert case.long or quick.parameters(case, variant).get("size", 0) <= results.MIB, "not quick"


def test_every_suite_is_collected():
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "--quick", "-o", "python_files=bench_*.py"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "benchmarks/suites"], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for suite in SUITES:
        for case in cases(suite):
            for variant in case.all_variants():
                collected = f"bench_{suite}.py::test_{suite}[{case.name}-{variant.title}]" in done.stdout
                assert collected != case.long, f"{suite}: {case.name}-{variant.title}"


@pytest.mark.parametrize("name", known())
def test_every_suite_says_what_it_is(name):
    assert len(Suite(name).about) > 20


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_result_is_printed_with_what_its_suite_says_of_it(path, capsys):
    result = results.read(path)
    shown = [*tables.tables(result), *Suite(result.suite).judgement(result)]
    for style in ((), ("--markdown",)):
        assert tables.main([str(path), *style]) == 0
        printed = "".join(capsys.readouterr().out.split())
        for table in shown:
            # A title is folded to the width of its table, and text of a page is escaped.
            assert "".join(table.title.split()) in printed.replace("&lt;", "<")


def test_the_suites_that_say_more_than_figures_do_so_of_what_is_kept():
    said = {result.suite for result in map(results.read, KEPT) if Suite(result.suite).judgement(result)}
    declared = {name for name in SUITES if (ROOT / "benchmarks" / "suites" / name / "tables.py").exists()}
    assert {name.split()[0] for name in said} == declared | {"validate"}


PLOTS = {"concurrency": "concurrency_glance32", "glance_client": "glance_client", "workload_matrix": "workload_matrix"}


@pytest.mark.parametrize("suite", PLOTS)
def test_what_only_a_suite_draws_is_drawn_of_what_is_kept(suite, tmp_path: Path):
    pytest.importorskip("matplotlib", reason="plots need the extra 'plot'")
    from benchmarks.harness import plots

    result = results.read(ROOT / "doc" / "source" / "results" / f"{PLOTS[suite]}.json")
    for name, drawing in Suite(suite).plots().items():
        figure = drawing.figure(result)
        assert figure is not None and figure.axes
        made = plots.write(figure, tmp_path, name)
        assert [path.name for path in made] == [f"{name}.png", f"{name}.svg"]
        assert all(len(line) > 10 for line in drawing.lines(result))
        assert drawing.caption
        assert drawing.figure(samples.result(samples.case({"x": [1.0]}))) is None
