"""The patches of the default change nothing that programs written for upstream can rely on.

``tests/guarantees/scenarios.py`` has what that is. All scenarios are run stock and patched, in separate processes, and
must show the same, natively and under eventlet: with all of the default in every run of the tests, with each patch
alone in ``tox -e tests-benchmarks``.

The scenarios are about ``subprocess`` and eventlet. The patches of glance_store's drivers, of glance and of its client
stay out of it, their ``fix_`` patches too: those need servers, and separate tests.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

import fastio
from fastio.patching import registry
from tests.conftest import MONKEY_PATCHED, needs_eventlet

pytestmark = [
    pytest.mark.skipif(
        MONKEY_PATCHED or bool(os.environ.get("TEST_DISABLED")), reason="the processes are the same without it"
    ),
    pytest.mark.limit(600),
]
each_alone = pytest.mark.skipif(not os.environ.get("GUARANTEES"), reason="only in tox -e tests-benchmarks")

WORKER = pathlib.Path(__file__).parent / "guarantees" / "worker.py"
WORLDS = ["native", pytest.param("green", marks=needs_eventlet)]

#: The patches of what the scenarios use.
PATCHES = [
    patch
    for patch in registry.patches()
    if all(target.module.partition(".")[0] in ("subprocess", "eventlet") for target in patch.targets)
]
#: Those that may change nothing, each alone: natively those that have something to replace there.
ALONE = [
    *(
        pytest.param("native", patch.name, id=f"native-{patch.name}")
        for patch in PATCHES
        if any(target.module == "subprocess" for target in patch.targets)
    ),
    *(pytest.param("green", patch.name, id=f"green-{patch.name}", marks=needs_eventlet) for patch in PATCHES),
]


@functools.cache
def seen(world: str, *names: str) -> dict[str, Any]:
    """Return the findings of each scenario with those patches, which may be ``default``."""
    root = pathlib.Path(fastio.__file__).parent.parent
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "COV_"))}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", str(WORKER), world, *names],
        env={**environ, "PYTHONPATH": str(root)}, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return json.loads(result.stdout)


def differences(world: str, *names: str) -> dict[str, Any]:
    stock, found = seen(world), seen(world, *names)
    assert stock.keys() == found.keys()
    assert not [name for name, value in stock.items() if str(value).startswith("ends with")], "stock hangs or crashes"
    return {name: (value, found[name]) for name, value in stock.items() if found[name] != value}


@pytest.mark.parametrize("world", WORLDS)
def test_the_guarantees_hold(world: str) -> None:
    assert differences(world, "default") == {}


@each_alone
@pytest.mark.parametrize("world, name", ALONE)
def test_it_holds_with_each_patch_alone(world: str, name: str) -> None:
    assert differences(world, name) == {}
