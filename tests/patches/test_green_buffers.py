"""``green_buffers``: what reads with the default buffering has a larger buffer; and what each patch of buffers does."""

import io
import os
import pathlib
from typing import Any

import pytest

import fastio
from fastio import counters
from fastio.io import pipes
from tests.child import BIG, Gate, command, data, out
from tests.descriptors import unread
from tests.outcome import as_upstream
from tests.targets import not_needed

eventlet = pytest.importorskip("eventlet")

from eventlet.green import subprocess as green  # noqa: E402
from eventlet.greenio import GreenPipe  # noqa: E402

pytestmark = pytest.mark.fast_path("bytes_in")

LINE = b"123456789\n"


@pytest.mark.also("green_buffers")
def test_the_buffer_holds_what_a_default_pipe_holds(patched: Any, hub: Any) -> None:
    popen = green.Popen(command(out(1, 60_000)), stdout=-1, bufsize=-1)
    os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOWAIT)
    assert popen.stdout.peek(1) == data(1, 60_000)
    assert popen.stdout.read() == data(1, 60_000)
    popen.wait()


#: Both patches, and how a program comes by a buffer of theirs.
buffered = pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.also("fix_green_buffering"), id="fix_green_buffering"),
        pytest.param({"bufsize": -1}, marks=pytest.mark.also("green_buffers"), id="green_buffers"),
    ],
)


@buffered
def test_reads_come_back_whole(patched: Any, hub: Any, options: dict[str, Any]) -> None:
    popen = green.Popen(command(out(1, BIG, 1000)), stdout=-1, **options)
    assert popen.stdout.read(200_000) == data(1, BIG)[:200_000]
    assert popen.stdout.readline() == data(1, BIG)[200_000:].split(b"\n")[0] + b"\n"
    assert len(popen.stdout.read()) > 1_000_000
    popen.wait()


@buffered
@pytest.mark.parametrize("text", [{}, {"encoding": "ascii"}], ids=["bytes", "text"])
def test_lines_cost_few_reads(patched: Any, hub: Any, options: dict[str, Any], text: dict[str, Any]) -> None:
    if text and not options:
        pytest.skip("a program that asks for text has a buffer of upstream's")
    popen = green.Popen(command(f"out:{10 * 30_000}:65536:{LINE.hex()}"), stdout=-1, **options, **text)
    counters.reset()
    assert list(popen.stdout) == [LINE.decode() if text else LINE] * 30_000
    # 300,000 bytes, as few as 5,000 of them at a time on average; upstream's 4 KiB take more.
    assert counters.reads <= 60
    popen.wait()


@buffered
def test_a_reader_that_waits_for_little_gets_it(patched: Any, hub: Any, gate: Gate, options: dict[str, Any]) -> None:
    popen = green.Popen(command(out(1, 10), gate.wait, out(2, 10)), stdout=-1, pass_fds=gate.fds, **options)
    assert popen.stdout.read(10) == data(1, 10)
    gate.open()
    assert popen.stdout.read(100) == data(2, 10)
    popen.wait()


def sizes(path: pathlib.Path) -> dict[str, int | str]:
    """How much each kind of GreenPipe has in its buffer after the first byte, of 60,000."""
    found: dict[str, int | str] = {}
    path.write_bytes(data(1, 60_000))

    def look(name: str, file: Any, *rest: Any) -> None:
        with GreenPipe(file, *rest) as stream:
            if isinstance(stream, io.BufferedReader):
                stream.read(1)
                found[name] = len(stream.peek())
            else:
                found[name] = type(stream).__name__

    kinds: dict[str, list[Any]] = {"default": ["rb"], "none": ["rb", 0], "5000": ["rb", 5000], "text": ["r"]}
    for name, rest in kinds.items():
        reader, writer = os.pipe()
        os.write(writer, data(1, 60_000))
        look(name, reader, *rest)
        os.close(writer)
    look("regular", os.open(path, os.O_RDONLY), "rb")
    look("path", str(path), "rb")
    reader, writer = os.pipe()
    look("writer", writer, "wb")
    os.close(reader)
    return found


upstream_reads_less = pytest.mark.skipif(not_needed("green_buffers"), reason="upstream's buffers are as large")


@upstream_reads_less
@pytest.mark.no_fast_path(reason="half of it is upstream")
def test_only_pipes_that_read_with_the_default(tmp_path: pathlib.Path) -> None:
    upstream = sizes(tmp_path / "file")
    with fastio.patched("green_buffers", strict=True):
        found = sizes(tmp_path / "file")
    assert found.pop("default") == 60_000 - 1 < pipes.DEFAULT_CAPACITY
    assert upstream.pop("default") == 4096 - 1
    assert found == upstream


def arrivals(mode: str) -> list[int]:
    """How many bytes have come to the other side of a pipe after each of sixty writes of 1,000.

    They are taken out each time: pieces that are no whole pages fill a pipe before it has the bytes that it can hold.
    """
    reader, writer = os.pipe()
    found = []
    arrived = 0
    with GreenPipe(writer, mode) as stream:
        for _ in range(60):
            stream.write("x" * 1000 if mode == "w" else b"x" * 1000)
            if waiting := unread(reader):
                arrived += len(os.read(reader, waiting))
            found.append(arrived)
    os.close(reader)
    return found


@upstream_reads_less
@pytest.mark.no_fast_path(reason="half of it is upstream")
@pytest.mark.parametrize("mode", ["wb", "w"])
def test_a_writer_keeps_back_no_more_than_upstream(mode: str) -> None:
    assert 0 < as_upstream(lambda: arrivals(mode), "green_buffers", strict=True)[-1] < 60_000
