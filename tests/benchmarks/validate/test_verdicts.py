"""The verdict as other programs read it: JUnit XML, SARIF and GitHub's annotations say what the exit status says."""

import json
import re
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from benchmarks.tools.pythons import Python
from benchmarks.tools.upstream.compare import Comparison, differences
from benchmarks.tools.upstream.runner import Outcome as Became
from benchmarks.tools.upstream.runner import Run
from benchmarks.tools.upstream.suites import Suite
from benchmarks.validate import annotations, findings, junit, measurements, projects, sarif
from benchmarks.validate.environments import Environment
from benchmarks.validate.isolation import Isolation
from benchmarks.validate.outcome import Outcome, PythonOutcome
from benchmarks.validate.suites import Compared
from benchmarks.validate.variants import Variant
from tests.benchmarks import samples
from tests.benchmarks.validate.test_measurements import SPREAD, times

PYTHON = Python("/usr/bin/python3.13", "3.13.1", "/usr")
CHANGED = "eventlet/green/my module.py"

#: A test: what became of it in stock and in the candidate, and in runs alone.
TESTS = {
    "tests.some_test.Some.test_passes": ("pass", "pass"),
    "tests.some_test.Some.test_breaks": ("pass", "fail"),
    "tests.some_test.Some.test_hangs": ("pass", "hang"),
    "tests.some_test.Some.test_is_skipped": ("skip", "skip"),
    "tests.some_test.Some.test_fails_in_stock": ("fail", "fail"),
    "tests.some_test.Some.test_is_put_right": ("fail", "pass"),
    "tests.some_test.Some.test_is_gone": ("pass", "missing"),
    "tests.some_test.Some.test_is_flaky[a.b]": ("pass", "error"),
    "setUpClass (tests.some_test.Other)": ("pass", "pass"),
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
    comparison = Comparison(Suite("eventlet", ()), "candidate", stock, patched, differences(stock, patched))
    for each in comparison.differences:
        if each.test == FLAKY:
            each.stock_alone = each.patched_alone = [Became("pass")] * 5
    broken = Comparison(Suite("oslo-green", ()), "candidate", faults=["candidate cannot be run to its end: exit 1\nno"])
    absent = Comparison(Suite("cpython-green", ()), "candidate", unavailable="this Python has no test.support")
    rows = {
        name: {"eventlet-stock": SPREAD, "eventlet-candidate": candidate}
        for name, candidate in {
            "input/slow": times(2), "input/slower": times(1.15), "input/same": SPREAD,
            "input/wrong": samples.variant(SPREAD, verified=False), "input/absent": samples.variant([], skipped="why"),
        }.items()
    }  # fmt: skip
    # So that a difference of 15 % is none by chance.
    rows["input/slower"]["eventlet-stock"] = [0.5 + number / 10_000 for number in range(7)]
    rows["input/slower"]["eventlet-candidate"] = [0.575 + number / 10_000 for number in range(7)]
    result = samples.result(*(samples.case(variants, name=name) for name, variants in rows.items()))
    made = PythonOutcome(PYTHON, variants, list(map(Compared, (comparison, broken, absent))), result)
    made.rows = measurements.rows(result)
    command = ["eventlet", "--candidate", "my change.diff"]
    return Outcome(
        projects.EVENTLET, None, command, dict(samples.MACHINE), "2026-11-23T20:17:15+01:00", Isolation("none"), [made]
    )  # fmt: skip


def errors(outcome):
    return [str(each) for each in findings.of(outcome) if each.rule.level == findings.ERROR]


def test_the_errors_are_what_the_validation_fails_for(outcome):
    assert errors(outcome) == outcome.failures()
    assert len(outcome.failures()) == 5
    assert {each.rule for each in findings.of(outcome)} == set(findings.RULES) - {findings.NOT_MEASURED}


def test_a_validation_that_measured_nothing_fails(outcome):
    (each,) = outcome.pythons
    absent = samples.case({"eventlet-stock": SPREAD, "eventlet-candidate": samples.variant([], skipped="why")})
    each.benchmarks = samples.result(absent)
    each.rows = measurements.rows(each.benchmarks)
    assert errors(outcome) == outcome.failures()
    assert findings.NOT_MEASURED in {found.rule for found in findings.of(outcome)}


def places(outcome):
    return {each.subject.rpartition(".")[2]: (each.file, each.line) for each in findings.of(outcome)}


def test_a_finding_is_shown_where_the_change_is(outcome):
    found = places(outcome)
    assert found["test_breaks"] == (CHANGED, 34)
    assert found["test_hangs"] == ("eventlet/hubs/hub.py", 90)
    assert found["input/slow"] == (CHANGED, 1)
    outcome.pythons[0].variants[1].changed.clear()
    found = places(outcome)
    assert found["test_breaks"] == ("eventlet/hubs/hub.py", 56)
    assert found["input/slow"] == ("eventlet/__init__.py", 1)


def test_a_module_of_the_standard_library_is_below_lib(outcome):
    outcome.project = projects.CPYTHON
    outcome.pythons[0].variants[1].changed[:] = ["cpython-candidate/subprocess.py"]
    assert places(outcome)["input/slow"] == ("Lib/subprocess.py", 1)


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
    assert found[some, "test_is_put_right"] is None
    assert found[some, "test_breaks"] == ("failure", "pass -> fail")
    assert found[some, "test_hangs"] == ("error", "pass -> hang")
    assert found[some, "test_is_skipped"] == ("skipped", "no such program")
    assert found[some, "test_fails_in_stock"] == ("skipped", "fail, as in stock")
    assert found[some, "test_is_gone"] == ("skipped", "changed: pass -> missing")
    assert found[some, "test_is_flaky[a.b]"] == ("skipped", "flaky: pass -> error")
    assert found["eventlet", "setUpClass (tests.some_test.Other)"] is None
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


def sarif_of(outcome):
    document = json.loads(sarif.log(outcome))
    assert document["version"] == "2.1.0" and document["$schema"].endswith("/sarif-schema-2.1.0.json")
    (run,) = document["runs"]
    return run


def test_sarif_has_what_its_standard_requires(outcome):
    run = sarif_of(outcome)
    driver = run["tool"]["driver"]
    assert driver["name"] == "fastio validate" and driver["version"]
    levels = {rule["id"]: rule["defaultConfiguration"]["level"] for rule in driver["rules"]}
    assert len(levels) == len(driver["rules"]) and set(levels.values()) == {"error", "warning", "note"}
    assert all(rule["shortDescription"]["text"].endswith(".") for rule in driver["rules"])
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is True and invocation["exitCode"] == 1
    assert invocation["startTimeUtc"] == "2026-11-23T19:17:15Z"
    assert invocation["commandLine"] == "fastio validate eventlet --candidate 'my change.diff'"
    assert run["automationDetails"]["id"] == "fastio-validate/eventlet/"
    for each in run["results"]:
        assert driver["rules"][each["ruleIndex"]]["id"] == each["ruleId"]
        assert each["level"] == levels[each["ruleId"]]
        assert each["message"]["text"]
        # GitHub refuses results without a place, and places outside of the repository.
        (location,) = each["locations"]
        artifact = location["physicalLocation"]["artifactLocation"]
        assert artifact["uriBaseId"] in run["originalUriBaseIds"]
        assert re.fullmatch(r"[A-Za-z0-9_%./-]+", artifact["uri"]) and not artifact["uri"].startswith("/")
        assert location["physicalLocation"]["region"]["startLine"] >= 1
    assert unquote(run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]) == CHANGED
    # What shares a line is not the same.
    fingerprints = [each["partialFingerprints"]["primaryLocationLineHash"] for each in run["results"]]
    assert len(set(fingerprints)) == len(fingerprints)


def test_sarif_has_every_finding_and_what_the_test_says(outcome):
    results = sarif_of(outcome)["results"]
    assert len(results) == len(findings.of(outcome))
    texts = [each["message"]["text"] for each in results if each["level"] == "error"]
    for text, failure in zip(texts, outcome.failures(), strict=True):
        assert text.startswith(failure)
    assert "AssertionError" in texts[0]
    # The same again is the same alert.
    assert sarif_of(outcome)["results"] == results


def test_nothing_that_fails(outcome):
    outcome.pythons[0].suites.clear()
    outcome.pythons[0].rows.clear()
    run = sarif_of(outcome)
    assert run["results"] == [] and run["invocations"][0]["exitCode"] == 0
    assert junit_of(outcome).attrib["tests"] == "0"
    assert list(annotations.github(findings.of(outcome))) == []


_COMMAND = re.compile(r"::(error|warning|notice)(?: ([^:]*))?::(.*)")


def test_annotations(outcome):
    found = findings.of(outcome)
    lines = list(annotations.github(found))
    assert len(lines) == len(found)
    read = [_COMMAND.fullmatch(line) for line in lines]
    assert all(read), "a line is no workflow command, or is more than one line"
    words = [each[1] for each in read if each]
    assert words == sorted(words, key=["error", "warning", "notice"].index)
    place = dict(pair.split("=") for pair in re.findall(r"[^,]+", read[0][2] if read[0] else ""))
    assert place == {
        "file": CHANGED, "line": "34",
        "title": findings.NEWLY_FAILS.text.rstrip(".").replace(",", "%2C"),
    }  # fmt: skip
    (fault,) = [line for line in lines if "cannot be run to" in line]
    assert fault.endswith("cannot be run to its end: exit 1%0Ano")


def test_annotations_that_github_would_not_show(outcome):
    found = findings.of(outcome)[:1] * (annotations.MOST + 5)
    lines = list(annotations.github(found))
    assert len(lines) == annotations.MOST
    assert lines[-1] == "::error::and 6 more, in the report"
    assert len(list(annotations.github(found[: annotations.MOST]))) == annotations.MOST
    assert "more" not in list(annotations.github(found[: annotations.MOST]))[-1]
