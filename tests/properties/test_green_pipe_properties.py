"""Any way of reading and writing a GreenPipe gives the same bytes."""

import io
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastio
from tests.properties.strategies import SIZES, fastio_settings, patterns

eventlet = pytest.importorskip("eventlet")

from eventlet.greenio import GreenPipe  # noqa: E402

from tests.child import tile  # noqa: E402

READS = st.one_of(
    st.tuples(st.just("read"), st.sampled_from([*SIZES, -1])),
    st.tuples(st.just("readinto"), st.sampled_from(SIZES)),
    st.tuples(st.just("readline"), st.sampled_from([-1, 10, 5000])),
)
PIECES = st.lists(st.tuples(patterns, st.sampled_from(SIZES), st.booleans()), max_size=6)


def read(stream: Any, how: str, size: int) -> bytes:
    if how == "readinto":
        buffer = bytearray(size)
        return bytes(buffer[: stream.readinto(buffer)])
    return getattr(stream, how)(size)


@given(
    reads=st.lists(READS, max_size=12),
    pieces=PIECES,
    read_bufsize=st.sampled_from([-1, 512, 100_000]),
    write_bufsize=st.sampled_from([-1, 0, 700, 100_000]),
    sizes=fastio_settings,
)
def test_buffered_reads_are_those_of_a_file(
    reads: Any, pieces: Any, read_bufsize: int, write_bufsize: int, sizes: dict[str, Any]
) -> None:
    payload = b"".join(tile(pattern, size) for pattern, size, _ in pieces)
    model = io.BytesIO(payload)
    with fastio.patched(**sizes):
        source, target = os.pipe()
        reader, writer = GreenPipe(source, "rb", read_bufsize), GreenPipe(target, "wb", write_bufsize)

        def write() -> None:
            for pattern, size, flush in pieces:
                writer.write(tile(pattern, size))
                if flush:
                    writer.flush()
                    eventlet.sleep(0)
            writer.close()

        sender = eventlet.spawn(write)
        for how, size in [*reads, ("read", -1), ("read", 1)]:
            assert read(reader, how, size) == read(model, how, size)
        sender.wait()
        reader.close()


@given(
    reads=st.lists(READS.filter(lambda call: call[0] != "readline" and call[1] != 0), min_size=1, max_size=5),
    pieces=PIECES,
    sizes=fastio_settings,
)
def test_raw_reads_lose_nothing(reads: Any, pieces: Any, sizes: dict[str, Any]) -> None:
    payload = b"".join(tile(pattern, size) for pattern, size, _ in pieces)
    got = b""
    with fastio.patched(**sizes):
        source, target = os.pipe()
        reader, writer = GreenPipe(source, "rb", 0), GreenPipe(target, "wb", 0)

        def write() -> None:
            for pattern, size, pause in pieces:
                assert writer.write(tile(pattern, size)) == size
                if pause:
                    eventlet.sleep(0)
            writer.close()

        sender = eventlet.spawn(write)
        for how, size in reads:
            chunk = read(reader, how, size)
            assert size < 0 or len(chunk) <= size
            got += chunk
        got += reader.read()
        assert reader.read(1) == b""
        sender.wait()
        reader.close()
    assert got == payload
