"""The verdict as JUnit XML, for a CI system: a test of upstream's or a benchmark is a test case of a variant.

A case fails or has an error exactly if it is a reason for which the validation fails. A test that does not pass in
stock either, or is flaky, counts as skipped, with a message.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from benchmarks.tools.upstream.compare import SEVERITY, WORSE, Comparison
from benchmarks.tools.upstream.runner import Outcome as TestOutcome

from . import tables
from .measurements import Row
from .outcome import Outcome

#: Outcomes that JUnit calls an error and not a failure: the test has not come to its end.
_ERRORS = ("error", "hang", "crash")
_PASSING = [outcome for outcome, severity in SEVERITY.items() if severity == 0]
#: Characters that XML 1.0 cannot hold, in any spelling.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml(outcome: Outcome) -> str:
    """The document."""
    root = ElementTree.Element("testsuites", name=_clean(tables.title(outcome)))
    suites = [(f"{each.suite.name}.{each.variant}", list(_tests(each))) for each in outcome.suites]
    for variant in outcome.variants[1:]:
        rows = [_benchmark(outcome, row) for row in outcome.rows if row.variant == variant.name]
        suites += [(f"benchmarks.{variant.name}", rows)] * bool(rows)
    properties = {
        "verdict": tables.headline(outcome), "project": outcome.project.name, "python": outcome.python.version,
        "machine": tables.machine_line(outcome), "environments": "\n".join(tables.environments(outcome)),
        "command": " ".join(["fastio validate", *outcome.command]),
    }  # fmt: skip
    root.extend(
        _suite(f"{name}.py{outcome.python.version}", cases, outcome.started, properties) for name, cases in suites
    )
    root.attrib.update(_counts([case for _, cases in suites for case in cases]))
    del root.attrib["skipped"]  # Jenkins knows it in a suite only.
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _tests(comparison: Comparison) -> Iterator[ElementTree.Element]:
    suite = comparison.suite.name
    if comparison.unavailable:
        yield _case(suite, "the suite", kind="skipped", message=f"not run: {comparison.unavailable}")
    for fault in comparison.faults:
        first = fault.partition("\n")[0]
        yield _case(suite, first, kind="error", message=first, type="suite", detail=fault)
    judged = {each.test: each for each in comparison.differences}
    ran = comparison.patched.tests if comparison.patched is not None else {}
    for test in dict.fromkeys([*ran, *judged]):
        now = ran.get(test) or TestOutcome("missing")
        different = judged.get(test)
        verdict = comparison.verdict(different) if different else ""
        outcomes = f"{different.stock.outcome} -> {now.outcome}" if different else now.outcome
        kind = message = type = detail = ""
        if verdict == WORSE:
            kind = "error" if now.outcome in _ERRORS else "failure"
            message, type, detail = outcomes, now.outcome, now.detail
        elif now.outcome == "skip":
            kind, message = "skipped", now.detail
        elif now.outcome not in _PASSING:
            kind, message = "skipped", f"{verdict}: {outcomes}" if verdict else f"{outcomes}, as in stock"
        yield _case(*_named(test, suite), now.seconds, kind, message, type, detail)


def _named(test: str, suite: str) -> tuple[str, str]:
    """The class and the name of a test, whose parameters may have dots as well; a file has no class."""
    classname = re.split(r"[\[(]", test)[0].rpartition(".")[0]
    return (classname, test[len(classname) + 1 :]) if classname else (suite, test)


def _benchmark(outcome: Outcome, row: Row) -> ElementTree.Element:
    assert outcome.benchmarks is not None
    runs = outcome.benchmarks.case(row.case).variants[f"{row.mode}-{row.variant}"].runs
    seconds = sum(run.get("seconds", 0.0) for run in runs)
    figures = "" if row.figure is None else f"{row.stock:g} -> {row.figure:g} {row.unit}\n"
    out = f"{figures}{row}\n"
    if row.failure:
        kind, word = ("failure", "slower") if row.better else ("error", "skipped" if row.skipped else "fails")
        return _case(row.case, row.mode, seconds, kind, str(row), word, out)
    if row.figure is None:
        return _case(row.case, row.mode, seconds, "skipped", row.verdict, out=out)
    return _case(row.case, row.mode, seconds, out=out)


def _case(
    classname: str, name: str, seconds: float = 0.0, kind: str = "", message: str = "", type: str = "",
    detail: str = "", out: str = "",
) -> ElementTree.Element:  # fmt: skip
    """A test case.

    :param kind: ``failure``, ``error`` or ``skipped``; empty if it passes
    :param type: kind of the failure or error
    :param out: for people
    """
    case = ElementTree.Element("testcase", classname=_clean(classname), name=_clean(name), time=f"{seconds:.3f}")
    if kind:
        ended = ElementTree.SubElement(case, kind, {"message": _clean(message), **({"type": type} if type else {})})
        ended.text = _clean(detail) or None
    if out:
        ElementTree.SubElement(case, "system-out").text = _clean(out)
    return case


def _suite(
    name: str, cases: list[ElementTree.Element], started: str, properties: dict[str, str]
) -> ElementTree.Element:  # fmt: skip
    # JUnit's time has no zone.
    element = ElementTree.Element("testsuite", {"name": name, **_counts(cases), "timestamp": started[:19]})
    kept = ElementTree.SubElement(element, "properties")
    for key, value in properties.items():
        ElementTree.SubElement(kept, "property", name=key, value=_clean(value))
    element.extend(cases)
    return element


def _counts(cases: list[ElementTree.Element]) -> dict[str, str]:
    kinds = [each.tag for case in cases for each in case]
    return {
        "tests": str(len(cases)), "failures": str(kinds.count("failure")), "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")), "time": f"{sum(float(case.attrib['time']) for case in cases):.3f}",
    }  # fmt: skip


def _clean(text: str) -> str:
    return _NOT_XML.sub(lambda found: ascii(found[0])[1:-1], text)
