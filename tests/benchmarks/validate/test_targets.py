"""The targets, and what can be chosen for each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.tools.upstream.suites import SUITES
from benchmarks.validate import pythons, targets
from benchmarks.validate.errors import ValidateError
from benchmarks.validate.suites import CONDUCT

ALL = {**targets.TARGETS, "glance 32": targets.GLANCE.older[1]}


@pytest.mark.parametrize("target", ALL.values(), ids=ALL)
def test_all_that_a_target_names_is_there(target):
    assert set(target.suites) <= {*SUITES, *CONDUCT}
    names = [f"{suite}/{case.name}" for suite, case in target.choose_cases([])]
    assert names == list(target.cases)
    everything = target.choose_cases(["all"])
    assert len(everything) > len(names)
    for _, case in everything:
        ways = {variant.name for variant in case.all_variants()}
        own = target.service and case.backend == target.service
        assert own or any({f"{mode}-stock", f"{mode}-fastio"} <= ways for mode in target.modes)


@pytest.mark.parametrize("name", ["oslo.concurrency", "oslo_concurrency", "Oslo-Concurrency"])
def test_a_name_however_it_is_written(name):
    assert targets.find(name) is targets.OSLO_CONCURRENCY


def test_an_unknown_target():
    with pytest.raises(ValidateError, match="'evenlet' is not one of eventlet, oslo.concurrency, glance_store"):
        targets.find("evenlet")


def test_choosing():
    assert targets.EVENTLET.choose_suites(["none"]) == []
    assert targets.EVENTLET.choose_suites(["eventlet"]) == ["eventlet"]
    assert targets.EVENTLET.choose_suites([]) == targets.EVENTLET.choose_suites(["all"])
    assert targets.EVENTLET.choose_cases(["none"]) == []
    assert {suite for suite, _ in targets.EVENTLET.choose_cases(["wsgi"])} == {"wsgi"}
    ((suite, case),) = targets.EVENTLET.choose_cases(["wsgi/length-64KiB"])
    assert (suite, case.name) == ("wsgi", "length-64KiB")
    with pytest.raises(ValidateError, match="--suite 'glance_store-native': eventlet has conduct-green, eventlet"):
        targets.EVENTLET.choose_suites(["glance_store-native"])
    with pytest.raises(ValidateError, match="--benchmarks 'stores': eventlet has communicate, input"):
        targets.EVENTLET.choose_cases(["stores"])


def test_the_release_replaces_the_requirement_of_the_same_project():
    assert targets.at_release(targets.EVENTLET, "0.40").requirements[:2] == ("eventlet==0.40", "oslo.concurrency")
    assert targets.at_release(targets.OSLO_CONCURRENCY, "").requirements[:2] == ("oslo.concurrency", "eventlet")
    assert targets.at_release(targets.GLANCE_STORE, "5.7.0").requirements[0] == (
        "glance_store[cinder,s3,swift,vmware]==5.7.0"
    )


def test_pythons():
    here = pythons.find("")
    assert here.version == ".".join(map(str, sys.version_info[:3]))
    assert pythons.find(here.version) == here
    assert pythons.find(sys.executable) == here
    for path in Path(sys.base_prefix).parent.glob("3.1?.*/bin/python"):
        assert pythons.find(path.parents[1].name).version == path.parents[1].name
    for text in ("3.99", "/no/such/python"):
        with pytest.raises(ValidateError, match="no such Python"):
            pythons.find(text)
