"""Where a system call is forbidden that upstream does not make, everything comes out as it does with upstream.

Small programs in a process each, once per call and error.
"""

import contextlib
import functools
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
from tests import filters
from tests.conftest import MONKEY_PATCHED, needs_eventlet

pytestmark = [
    pytest.mark.skipif(not filters.supported(), reason="the numbers of the system calls are not known here"),
    pytest.mark.skipif(
        MONKEY_PATCHED or bool(os.environ.get("TEST_DISABLED")), reason="the processes are the same without it"
    ),
]

WORLDS = ["native", pytest.param("green", marks=needs_eventlet)]

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """``ask(world, patched, denial)``: what each program showed."""
    root = pathlib.Path(fastio.__file__).parent.parent
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "COV_"))}
    directory = tmp_path_factory.mktemp("denied")
    with contextlib.ExitStack() as stack:

        @functools.cache
        def worker(world: str, patched: str) -> Any:
            started = stack.enter_context(subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "tests.denied_worker", world, patched], cwd=directory,
                env={**environ, "PYTHONPATH": str(root)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            ))  # fmt: skip
            assert started.stdin is not None
            stack.callback(started.stdin.close)
            return started

        @functools.cache
        def asked(world: str, patched: str, denial: str) -> dict[str, Any]:
            process = worker(world, patched)
            print(denial, file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())

        yield asked


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("denial", filters.DENIALS)
def test_it_comes_out_as_with_upstream(ask: Ask, world: str, denial: str) -> None:
    stock = ask(world, "stock", "nothing")
    # Programs that only fastio can run behave like those where nothing is forbidden.
    expected = {**ask(world, "patched", "nothing"), **stock}
    assert not [said for said in expected.values() if "raises" in str(said)]
    assert ask(world, "patched", denial) == expected
