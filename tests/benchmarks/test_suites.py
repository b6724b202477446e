"""The contract of all suites: what one declares fits together, and pytest collects it.

The runs of a suite are tested beside its workload.
"""

import importlib
import subprocess
import sys

import pytest

from benchmarks import __main__ as command
from benchmarks.backends import BACKENDS, SERVICES
from benchmarks.harness import results
from benchmarks.harness.engine import ROOT, Options
from benchmarks.harness.suites import OTHERS, Suite, known

SUITES = sorted(set(known()) - set(OTHERS))


def cases(suite):
    return importlib.import_module(f"benchmarks.suites.{suite}.bench_{suite}").CASES


@pytest.mark.parametrize("suite", SUITES)
def test_the_declarations_of_a_suite_fit_together(suite):
    names = [case.name for case in cases(suite)]
    assert names and len(set(names)) == len(names)
    quick = Options(quick=True)
    for case in cases(suite):
        known_variants = importlib.import_module(f"benchmarks.suites.{case.workload}.workload").VARIANTS
        assert {case.prepare, case.finish} <= {"", *known_variants}
        assert {case.backend, *(name for name, _ in case.beside.values())} <= {"", *BACKENDS, *SERVICES}
        variants = case.all_variants()
        for variant in variants:
            assert variant.name in known_variants
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


def test_the_command_lists_the_suites(capsys):
    assert command.main([]) == 0
    assert f"Suites: {', '.join(command.names())}\n" in capsys.readouterr().out
    assert command.main(["sheepdgo"]) == 2
    assert capsys.readouterr().err.endswith("; did you mean 'sheepdog'?\n")
