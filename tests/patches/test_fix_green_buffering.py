"""``fix_green_buffering``: outputs of a green Popen are buffered by default, as natively."""

import io
from typing import Any

import pytest

import fastio
from tests.child import BIG, PIPES, command, data, err, out
from tests.outcome import as_upstream

eventlet = pytest.importorskip("eventlet")

from eventlet.green import subprocess as green  # noqa: E402
from eventlet.greenio.py3 import GreenFileIO  # noqa: E402

pytestmark = [pytest.mark.fast_path("bytes_in"), pytest.mark.also("fix_green_buffering")]


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_the_streams_are_those_of_native_children(patched: Any, hub: Any, native_subprocess: Any, name: str) -> None:
    steps = {"stdout": out, "stderr": err}[name](1, 10)
    popen, native = (module.Popen(command(steps), **{name: -1}) for module in (green, native_subprocess))
    stream = getattr(popen, name)
    assert type(stream) is type(getattr(native, name)) is io.BufferedReader
    assert type(stream.raw) is GreenFileIO
    native.communicate()
    assert stream.peek(1)[:1] == data(1, 1) and stream.read1(5) == data(1, 5)
    assert stream.read() == data(1, 10)[5:]
    popen.communicate()


@pytest.mark.no_fast_path(reason="nothing is read")
@pytest.mark.parametrize(
    "arguments, options",
    [((), {"bufsize": 0}), ((0,), {}), ((), {"bufsize": -1}), ((), {"bufsize": 4096}), ((4096,), {})],
    ids=str,
)
def test_a_size_that_the_caller_gives_holds(arguments: Any, options: Any) -> None:
    def types() -> list[type]:
        popen = green.Popen(command("exit:0"), *arguments, **PIPES, **options)
        found = [type(stream) for stream in (popen.stdin, popen.stdout, popen.stderr)]
        popen.communicate()
        return found

    as_upstream(types)


def test_what_is_written_needs_no_flush(patched: Any, hub: Any) -> None:
    popen = green.Popen(["cat"], **PIPES)
    popen.stdin.write(b"abc\n")
    assert popen.stdout.readline() == b"abc\n"
    popen.stdin.close()
    assert popen.communicate() == (b"", b"")


def test_without_green_pipe(hub: Any) -> None:
    """The fix stands on its own."""
    with fastio.patched("fix_green_buffering"):
        popen = green.Popen(command(out(1, BIG, 1000)), stdout=-1)
        assert popen.stdout.read(200_000) == data(1, BIG)[:200_000]
        assert popen.stdout.read() == data(1, BIG)[200_000:]
        popen.wait()
