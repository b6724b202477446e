"""In a process with a hub nothing of fastio's waits in the kernel on the hub's thread."""

import json
import os
import pathlib
import subprocess
from collections.abc import Callable

import pytest

from tests import waits
from tests.conftest import MONKEY_PATCHED, needs_eventlet

LISTS = {"NOT_WAITING": waits.NOT_WAITING, "AT_ONCE": waits.AT_ONCE, "IN_THE_HUB": waits.IN_THE_HUB,
         "NATIVE": waits.NATIVE}  # fmt: skip


def test_every_call_that_may_wait_was_looked_at() -> None:
    """Of a new one: can it run on a thread that has a hub? Then it waits in the hub; see ``tests/waits.py``."""
    known = {entry for entries in LISTS.values() for entry in entries}
    assert sorted(set(waits.waits()) - known) == []


def test_the_lists_have_nothing_that_is_gone() -> None:
    found = set(waits.waits())
    for name, entries in LISTS.items():
        assert sorted(set(entries) - found) == [], name
        assert all(entries.values())
    assert sum(map(len, LISTS.values())) == len({entry for entries in LISTS.values() for entry in entries})


@needs_eventlet
@pytest.mark.skipif(MONKEY_PATCHED, reason="the process is a fresh one, the same as without TEST_EVENTLET")
@pytest.mark.parametrize("watched", [False, True], ids=["alone", "watched"])
def test_a_service_with_a_hub(
    run_python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: pathlib.Path, watched: bool
) -> None:
    """Every family of patches at work, native classes included: the profile sees no wait but the one made for it."""
    env = {"DIRECTORY": str(tmp_path)}
    if watched:
        env |= {"FASTIO_TRACE": str(tmp_path / "trace"), "FASTIO_RUN_DIR": str(tmp_path / "run")}
    root = str(pathlib.Path(__file__).parent.parent)
    result = run_python(
        "import runpy; from fastio import run_dir; run_dir.INTERVAL = 0.1; "
        "runpy.run_module('tests.hub_program', run_name='__main__')", env=env, path=(root,),
        options=("-W", "ignore"),
    )  # fmt: skip
    seen, counted, outcome = json.loads(result.stdout)
    assert outcome == "applied" or os.environ.get("TEST_DISABLED")
    assert counted > 0
    assert seen == ["control.py:waits calls poll.poll"]
