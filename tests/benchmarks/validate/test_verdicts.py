"""The verdict as JUnit XML: it says what the exit status says."""

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.tools.pythons import Python
from benchmarks.tools.upstream.compare import Comparison, differences
from benchmarks.tools.upstream.runner import Outcome as Became
from benchmarks.tools.upstream.runner import Run
from benchmarks.tools.upstream.suites import Suite
from benchmarks.validate import junit, measurements, projects
from benchmarks.validate.environments import Environment, Variant
from benchmarks.validate.outcome import Outcome
from benchmarks.validate.sandbox import Isolation
from tests.benchmarks import samples
from tests.benchmarks.samples import SPREAD, times

PYTHON = Python("/usr/bin/python3.13", "3.13.1", "/usr")
CHANGED = "eventlet/green/my module.py"

#: A test: what became of it in stock and in the candidate, and in runs alone.
TESTS = {
    "tests.some_test.Some.test_passes": ("pass", "pass"),
    "tests.some_test.Some.test_breaks": ("pass", "fail"),
    "tests.some_test.Some.test_hangs": ("pass", "hang"),
    "tests.some_test.Some.test_is_skipped": ("skip", "skip"),
    "tests.a_test.test_without_class[x::y.z]": ("pass", "pass"),
    "tests.some_test.Some.test_fails_in_stock": ("fail", "fail"),
    "tests.some_test.Some.test_is_put_right": ("fail", "pass"),
    "tests.some_test.Some.test_is_gone": ("pass", "missing"),
    "tests.some_test.Some.test_is_flaky[a.b]": ("pass", "error"),
    "collecting (tests/other_test.py)": ("error", "error"),
}
FLAKY = "tests.some_test.Some.test_is_flaky[a.b]"


@pytest.fixture
def outcome(tmp_path):
    """Of a candidate with each kind of finding, and of nothing else."""
    environment = Environment(tmp_path / "candidate")
    site_packages = environment.directory / "lib" / "python3.13" / "site-packages"
    site_packages.mkdir(parents=True)
    variants = [
        Variant("stock", Environment(tmp_path / "stock"), "0.41.3", None),
        Variant("candidate", environment, "0.41.3", None, [CHANGED]),
    ]
    for variant in variants:
        variant.environment.directory.mkdir(exist_ok=True)
        (variant.environment.directory / "complete.json").write_text('{"eventlet": "0.41.3", "greenlet": "3.1"}')
    details = {
        "tests.some_test.Some.test_breaks": "Traceback (most recent call last):\n"
        f'  File "{environment.directory}/upstream/tests/some_test.py", line 12, in test_breaks\n'
        f'  File "{site_packages}/{CHANGED}", line 34, in read\n'
        f'  File "{site_packages}/eventlet/hubs/hub.py", line 56, in switch\n'
        '  File "/usr/lib/python3.13/os.py", line 78, in read\n'
        "AssertionError: <b>\x1b[31m\x00\ud800 & 100%, [::1]\n",
        "tests.some_test.Some.test_hangs": "Thread 0x1 (most recent call first):\n"
        f'  File "{site_packages}/eventlet/hubs/hub.py", line 90 in wait\n'
        f'  File "{environment.directory}/upstream/tests/some_test.py", line 21 in test_hangs\n',
        "tests.some_test.Some.test_is_skipped": "no such program",
    }
    stock, patched = Run(False), Run(False)
    for test, outcomes in TESTS.items():
        for run, word in zip((stock, patched), outcomes, strict=True):
            if word != "missing":
                run.tests[test] = Became(word, 0.25, details.get(test, ""))
    comparison = Comparison(
        Suite("eventlet", ()), "candidate", stock, patched, differences(stock, patched), own_tests=True
    )
    for each in comparison.differences:
        if each.test == FLAKY:
            each.stock_alone = each.patched_alone = [Became("pass")] * 5
    broken = Comparison(Suite("oslo-green", ()), "candidate", faults=["candidate cannot be run to its end: exit 1\nno"])
    absent = Comparison(Suite("cpython-green", ()), "candidate", unavailable="this Python has no test.support")
    rows: dict[str, dict[str, Any]] = {
        name: {"eventlet-stock": SPREAD, "eventlet-candidate": candidate}
        for name, candidate in {
            "input/slow": times(2), "input/slower": times(1.15), "input/same": SPREAD,
            "input/wrong": samples.variant(SPREAD, verified=False), "input/absent": samples.variant([], skipped="why"),
        }.items()
    }  # fmt: skip
    # Enough rounds that a difference of 15 % is none by chance.
    rows["input/slower"]["eventlet-stock"] = [0.5 + number / 10_000 for number in range(7)]
    rows["input/slower"]["eventlet-candidate"] = [0.575 + number / 10_000 for number in range(7)]
    result = samples.result(*(samples.case(variants, name=name) for name, variants in rows.items()))
    command = ["eventlet", "--candidate", "my change.diff"]
    return Outcome(
        projects.EVENTLET, None, command, dict(samples.MACHINE), "2026-11-23T20:17:15+01:00", Isolation(), PYTHON,
        variants, [comparison, broken, absent], result, measurements.rows(result),
    )  # fmt: skip


def test_a_validation_that_measured_nothing_fails(outcome):
    absent = samples.case({"eventlet-stock": SPREAD, "eventlet-candidate": samples.variant([], skipped="why")})
    outcome.benchmarks = samples.result(absent)
    outcome.rows = measurements.rows(outcome.benchmarks)
    assert any("skipped: why, as was every benchmark, which shows nothing" in line for line in outcome.failures())


def junit_of(outcome):
    text = junit.xml(outcome)
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n')
    return ElementTree.fromstring(text.encode())


def test_junit_has_its_well_known_structure(outcome):
    root = junit_of(outcome)
    assert root.tag == "testsuites" and set(root.attrib) == {"name", "tests", "failures", "errors", "time"}
    suites = list(root)
    assert [each.get("name") for each in suites] == [
        "eventlet.candidate.py3.13.1", "oslo-green.candidate.py3.13.1", "cpython-green.candidate.py3.13.1",
        "benchmarks.candidate.py3.13.1",
    ]  # fmt: skip
    for suite in suites:
        assert suite.tag == "testsuite"
        assert set(suite.attrib) == {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"}
        assert suite.get("timestamp") == "2026-11-23T20:17:15"
        assert re.fullmatch(r"\d+\.\d{3}", suite.attrib["time"])
        properties, *cases = suite
        assert properties.tag == "properties"
        assert all(set(each.attrib) == {"name", "value"} for each in properties.findall("property"))
        for case in cases:
            assert case.tag == "testcase" and set(case.attrib) == {"classname", "name", "time"}
            assert all(case.attrib.values())
            assert {each.tag for each in case} <= {"failure", "error", "skipped", "system-out"}
            assert len(case.findall("failure") + case.findall("error") + case.findall("skipped")) <= 1
        assert int(suite.attrib["tests"]) == len(cases)
        for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[kind]) == len(suite.findall(f"testcase/{tag}"))
    for kind in ("tests", "failures", "errors"):
        assert int(root.attrib[kind]) == sum(int(suite.attrib[kind]) for suite in suites)
    assert int(root.attrib["failures"]) + int(root.attrib["errors"]) == len(outcome.failures())


def test_junit_says_of_each_test_what_became_of_it(outcome):
    found = {}
    for case in junit_of(outcome).iter("testcase"):
        said = [(each.tag, each.get("message")) for each in case if each.tag != "system-out"]
        found[case.get("classname"), case.get("name")] = said[0] if said else None
    some = "tests.some_test.Some"
    assert found[some, "test_passes"] is None
    assert found["tests.a_test", "test_without_class[x::y.z]"] is None
    assert found[some, "test_is_put_right"] is None
    assert found[some, "test_breaks"] == ("failure", "pass -> fail")
    assert found[some, "test_hangs"] == ("error", "pass -> hang")
    assert found[some, "test_is_skipped"] == ("skipped", "no such program")
    assert found[some, "test_fails_in_stock"] == ("skipped", "fail, as in stock")
    assert found[some, "test_is_gone"] == ("skipped", "changed: pass -> missing")
    assert found[some, "test_is_flaky[a.b]"] == ("skipped", "flaky: pass -> error")
    assert found["eventlet", "collecting (tests/other_test.py)"] == ("skipped", "error, as in stock")
    end = "candidate cannot be run to its end: exit 1"
    assert found["oslo-green", end] == ("error", end)
    assert found["cpython-green", "the suite"] == ("skipped", "not run: this Python has no test.support")
    assert found["input/slow", "eventlet"][0] == "failure" and "slower" in found["input/slow", "eventlet"][1]
    assert found["input/wrong", "eventlet"][0] == "error"
    assert found["input/slower", "eventlet"] is found["input/same", "eventlet"] is None
    assert found["input/absent", "eventlet"] == ("skipped", "skipped: why")


def test_junit_has_what_a_test_says_although_xml_cannot_hold_it(outcome):
    (failure,) = junit_of(outcome).findall("testsuite/testcase[@name='test_breaks']/failure")
    assert failure.text is not None
    assert failure.text.endswith("AssertionError: <b>\\x1b[31m\\x00\\ud800 & 100%, [::1]\n")
