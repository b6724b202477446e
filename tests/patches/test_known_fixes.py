"""Fixes of upstream's in functions that a patch replaces: none of them is undone.

Most tests compare with the installed upstream. Differences of some releases of CPython are tested here under every
Python, with the dialect of the releases that have it.
"""

import ast
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import fastio
from fastio import counters
from fastio.patches.subprocess import _dialects, _popen
from tests.child import Gate, command, data, out
from tests.conftest import MONKEY_PATCHED, needs_eventlet
from tests.outcome import as_upstream

ROOT = pathlib.Path(fastio.__file__).parent.parent
#: Seconds that nothing here takes.
NEVER = 100
HERE = "tests/patches/test_known_fixes.py"
STDIN = "subprocess:Popen._communicate"


class Fix(NamedTuple):
    """A fix in a function that is replaced, or next to one."""

    function: str
    what: str
    #: the first releases that have it
    since: str
    #: a test that fails without it
    test: str


FIXES = [
    Fix(STDIN, "communicate() goes on where stdin was closed", "CPython 3.13.10, 3.14.1",
        f"{HERE}::test_stdin_that_the_caller_closed"),
    Fix(STDIN, "the rest of the input is sent after a time-out", "CPython 3.13.10, 3.14.1",
        f"{HERE}::test_the_rest_of_the_input_is_sent"),
    Fix(STDIN, "TimeoutExpired names the whole time-out", "CPython 3.13.5", f"{HERE}::test_the_whole_timeout_is_named"),
    Fix(STDIN, "a memoryview of larger items is sent as bytes", "CPython 3.13.10, 3.14.1",
        "tests/patches/test_communicate.py::test_inputs_that_can_not_be_sliced_by_bytes_go_to_upstream"),
    Fix(STDIN, "no time at all is a time-out", "CPython 3.13.10, 3.14.1",
        "tests/patches/test_communicate.py::test_a_time_out_of_zero_expires_at_once"),
    Fix("eventlet.green.os:write", "does not wait for a regular file, which epoll refuses", "eventlet 0.37",
        f"{HERE}::test_a_regular_file_is_written_without_waiting"),
    Fix("glance.common.wsgi:_UWSGIChunkFile.read", "a read returns no more than it is asked for", "glance 32",
        "tests/glance/test_glance_uploads.py::test_each_read_is_upstreams"),
    Fix("glance_store._drivers.s3:Store._add_singlepart", "an image of another size than announced is refused",
        "glance_store 5.0", "tests/stores/test_store_s3.py::test_an_image_of_another_size_than_announced"),
    Fix("glance_store._drivers.s3:Store._add_multipart", "an image of another size than announced is refused",
        "glance_store 5.0", "tests/stores/test_store_s3.py::test_an_image_of_another_size_than_announced"),
    Fix("glance_store._drivers.s3:Store._add_multipart", "an image without a byte is sent, though it has no parts",
        "glance_store 5.3", "tests/stores/test_store_s3.py::test_sizes_around_the_parts"),
    Fix("glance_store._drivers.s3:Store._create_s3_client", "the options for checksums are the client's",
        "glance_store 5.4",
        "tests/stores/test_s3_client.py::test_the_client_is_made_like_stocks"),
    Fix("glanceclient.common.utils:integrity_iter", "reports that md5 is not available", "glanceclient 2.9",
        "tests/patches/test_client_hashing.py::test_md5_may_be_forbidden"),
    Fix("oslo_concurrency.processutils:_subprocess_setup", "calls the caller's own preexec_fn", "oslo.concurrency 3.6",
        "tests/patches/test_oslo_spawn.py::test_a_preexec_fn_of_the_callers_is_called"),
]  # fmt: skip


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.what)
def test_each_fix_has_a_test(fix: Fix) -> None:
    path, _, name = fix.test.partition("::")
    tree = ast.parse(ROOT.joinpath(path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.fixture
def newest(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """``communicate`` alone, in the form for the newest release whose functions this Python has."""
    if MONKEY_PATCHED:
        pytest.skip("subprocess is the green one here")
    release = "CPython 3.15.2" if sys.version_info >= (3, 15) else "CPython 3.14.10"
    dialect = _dialects.dialect_of(release)
    monkeypatch.setattr(_popen, "dialect_of", lambda _: dialect)
    with fastio.patched("communicate", strict=True):
        yield
        assert counters.exchanges > 0


PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@pytest.mark.usefixtures("newest")
def test_stdin_that_the_caller_closed() -> None:
    with subprocess.Popen(command(out(1, 1000)), **PIPES) as popen:
        assert popen.stdin is not None
        popen.stdin.close()
        assert popen.communicate(timeout=NEVER) == (data(1, 1000), b"")


@pytest.mark.usefixtures("newest")
def test_the_rest_of_the_input_is_sent(gate: Gate) -> None:
    program = "import os, sys; os.read(int(sys.argv[1]), 1); print(len(sys.stdin.buffer.read()))"
    reader = gate.fds[0]
    with subprocess.Popen([sys.executable, "-c", program, str(reader)], pass_fds=gate.fds, **PIPES) as popen:
        with pytest.raises(subprocess.TimeoutExpired):
            popen.communicate(bytes(3_000_000), timeout=0.3)
        gate.open()
        assert popen.communicate(timeout=NEVER) == (b"3000000\n", b"")


@pytest.mark.usefixtures("newest")
def test_the_whole_timeout_is_named(gate: Gate) -> None:
    """Also where the outputs have ended, and what is left is to wait for the child."""
    with subprocess.Popen(command("close:1", "close:2", gate.wait), pass_fds=gate.fds, **PIPES) as popen:
        with pytest.raises(subprocess.TimeoutExpired) as raised:
            popen.communicate(timeout=0.3)
        gate.open()
    assert raised.value.timeout == 0.3


@needs_eventlet
def test_a_regular_file_is_written_without_waiting(hub: Any, tmp_path: pathlib.Path) -> None:
    from eventlet.green import os as green_os

    def written() -> int:
        with open(tmp_path / "file", "wb", buffering=0) as file:
            return green_os.write(file.fileno(), b"abc")

    assert as_upstream(written) == 3
