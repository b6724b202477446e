"""Every order of {import, patch, patch, unpatch, unpatch, monkey_patch}, each in a fresh process.

After every step everything that is imported by then is asked: patched, or not patched, and not doubly
patched? The answers come from the attributes and from what really happens to a child's input and output.
"""

import itertools
import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import fastio
from fastio.patching import registry
from fastio.report import Outcome
from tests.conftest import MONKEY_PATCHED, needs_eventlet
from tests.targets import not_installed, not_needed

Case = tuple[str, tuple[str, ...]]

#: Modules that can be imported explicitly; the question is asked of everything that is imported, whichever of these it
#: was.
TARGETS = (
    "subprocess",
    "oslo_concurrency.processutils",
    "eventlet.green.subprocess",
    "eventlet.greenio",
)
STEPS = ("import", "patch", "patch", "unpatch", "unpatch", "monkey_patch")


#: Each distinct order is with one target, in rotation.
CASES = [
    (TARGETS[number % len(TARGETS)], order) for number, order in enumerate(dict.fromkeys(itertools.permutations(STEPS)))
]

WORKER = pathlib.Path(__file__).with_name("worker.py")
WORKERS = 2

#: Seconds for all the processes that one worker starts; the first test of a run waits for them.
WORKER_LIMIT = 1800

pytestmark = [
    needs_eventlet,
    pytest.mark.skipif(MONKEY_PATCHED, reason="the processes are fresh ones, the same as without TEST_EVENTLET"),
    pytest.mark.limit(WORKER_LIMIT + 200),
]

#: Modules that a process may have before the first step. A case with more would not match its name.
PATCHED_LIBRARIES = {
    "subprocess", "eventlet", "greenlet", "threading", "select", "selectors", "socket", "logging", "wrapt",
}  # fmt: skip

#: Targets that are patched only where something is installed that is not.
LACKING = {
    (patch.name, target.key) for patch in registry.patches() for target in patch.targets if not_installed(patch, target)
}


def identify(case: Case) -> str:
    target, order = case
    return "-".join([target, *order])


def run_worker(cases: list[Case], cache: pathlib.Path) -> list[Any]:
    root = str(pathlib.Path(fastio.__file__).parent.parent)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "COV_"))}
    # greendns has nothing to do with pipes, and takes most of the time of importing eventlet.
    environ.update(PYTHONPATH=root, PYTHONWARNINGS="ignore", EVENTLET_NO_GREENDNS="yes")
    if environ.pop("PYTHONDONTWRITEBYTECODE", None):
        # Hundreds of processes need not compile the same modules each.
        environ["PYTHONPYCACHEPREFIX"] = str(cache)
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    result = subprocess.run(
        [sys.executable, str(WORKER)], input=lines, env=environ, capture_output=True, text=True, timeout=WORKER_LIMIT
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[Case, Any]:
    """The findings of the workers, for the cases of the selected tests."""
    here: list[Any] = [item for item in request.session.items if item.path == pathlib.Path(__file__)]
    cases = [item.callspec.params["case"] for item in here if "results" in item.fixturenames]
    cache = tmp_path_factory.mktemp("pycache")
    with ThreadPoolExecutor(WORKERS) as pool:
        parts = pool.map(run_worker, [cases[n::WORKERS] for n in range(WORKERS)], [cache] * WORKERS)
        found = list(itertools.chain.from_iterable(parts))
    return {(target, tuple(order)): result for target, order, result in found}


@pytest.mark.parametrize("case", CASES, ids=identify)
def test_imports_and_patches_work_in_this_order(case: Case, results: dict[Case, Any]) -> None:
    target, order = case
    result = results[case]
    assert result["exit"] == 0, result["stderr"]
    assert not PATCHED_LIBRARIES.intersection(result["modules"])
    assert not [name for name in result["modules"] if name.startswith(("fastio", "eventlet"))]
    assert len(result["steps"]) == len(order)
    # Neither a warning of ours nor one more of eventlet's ("RLock(s) were not greened").
    assert result["stderr"] == ""

    patched = False
    taken: list[str] = []
    for step, found in zip(order, result["steps"], strict=True):
        taken.append(step)
        if step in ("patch", "unpatch"):
            patched = step == "patch"
        check_imported(taken, target, found["imported"])
        for name, answers in found["imported"].items():
            check(patched, answers, f"{name} after {', '.join(taken)}: {answers}")
        if "outcomes" in found:
            check_outcomes(patched, found)


def check_imported(taken: list[str], target: str, imported: dict[str, Any]) -> None:
    """Check that the modules expected after the steps have really been asked."""
    expected = set()
    if "import" in taken:
        # Its caller is asked through the classes it uses.
        expected |= {"subprocess"} if target.startswith("oslo_concurrency.") else {target}
    if "monkey_patch" in taken:
        expected |= {"subprocess", "eventlet.green.subprocess", "eventlet.greenio", "eventlet.greenio.base"}
        expected |= {"eventlet.green.os", "os"}
    assert expected <= set(imported)


def check(patched: bool, answers: dict[str, Any], where: str) -> None:
    """The attributes, and what one round trip of ``bytes`` bytes did, are those of a patched or unpatched process."""
    known = {"counts", "right", "bytes", "hub", "oslo"}
    assert {answers[name] for name in answers if name not in known} == {"ours" if patched else "original"}, where
    assert answers.get("right", True), where
    if "counts" in answers:
        # In a thread with a hub the native Popen's communicate() is upstream's, so that it does not stop the hub.
        by_us = patched and not ("_wait" in answers and answers["hub"])
        moved = answers["bytes"] if by_us else 0
        assert answers["counts"]["bytes_in"] == answers["counts"]["bytes_out"] == moved, where
        assert answers["counts"]["exchanges"] == (1 if by_us and "_communicate" in answers else 0), where


def check_outcomes(patched: bool, found: dict[str, Any]) -> None:
    """The report says the same as the attributes."""
    imported = found["imported"]
    early = "early" in imported
    for entry, outcome in found["outcomes"].items():
        if outcome == Outcome.OFF.value and not_needed(entry.partition(" ")[0]):
            continue
        name, key = entry.split()
        module = key.partition(":")[0].removesuffix(".py3")
        if (name, key) in LACKING:
            assert outcome == Outcome.ABSENT.value, entry
            continue
        if module == "subprocess" and not early:
            # Nothing refers to the native class any more; it is gone as soon as the garbage collector has been there.
            continue
        if not module.startswith(("subprocess", "eventlet.")):
            # The cases are none of its; it may not even be installed.
            assert module not in imported
            assert outcome in {Outcome.WAITING, Outcome.ABSENT, Outcome.UNSUPPORTED, Outcome.OFF}, entry
            assert not (patched and outcome == Outcome.OFF.value), entry
            continue
        there = module in imported
        if name == "oslo_spawn":
            there = there and imported["subprocess"]["oslo"]
        if patched:
            assert outcome == (Outcome.APPLIED if there else Outcome.WAITING).value, entry
        else:
            assert outcome == Outcome.OFF.value, entry
    if early and "os" in imported:
        assert [line for line in found["late_holders"] if line.startswith("__main__.early_popen ")]
    elif not early:
        assert found["late_holders"] == []
