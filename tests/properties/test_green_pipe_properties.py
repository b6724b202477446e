"""Any way of reading and writing a GreenPipe gives the same bytes."""

import array
import io
import os
from functools import partial
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
    st.tuples(st.sampled_from(["readline", "readlines", "next"]), st.sampled_from([-1, 10, 5000])),
)
LINES = ("readline", "readlines", "next")
#: In what form a piece is given to ``write()`` or, in a list, to ``writelines()``.
KINDS = st.sampled_from([bytes, bytearray, memoryview, partial(array.array, "B"), list])
PIECES = st.lists(st.tuples(patterns, st.sampled_from(SIZES), KINDS, st.booleans()), max_size=6)


def whole(pieces: Any) -> bytes:
    return b"".join(tile(pattern, size) for pattern, size, *_ in pieces)


def write(stream: Any, piece: bytes, kind: Any) -> None:
    if kind is list:
        stream.writelines([piece[:1000], piece[1000:]])
    else:
        assert stream.write(kind(piece)) == len(piece)


def read(stream: Any, how: str, size: int) -> Any:
    if how == "readinto":
        buffer = bytearray(size)
        return bytes(buffer[: stream.readinto(buffer)])
    return next(stream, b"") if how == "next" else getattr(stream, how)(size)


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
    model = io.BufferedReader(io.BytesIO(whole(pieces)))
    with fastio.patched(**sizes):
        source, target = os.pipe()
        reader, writer = GreenPipe(source, "rb", read_bufsize), GreenPipe(target, "wb", write_bufsize)

        def send() -> None:
            for pattern, size, kind, flush in pieces:
                write(writer, tile(pattern, size), kind)
                if flush:
                    writer.flush()
                    eventlet.sleep(0)
            writer.close()

        sender = eventlet.spawn(send)
        for how, size in [*reads, ("read", -1), ("read", 1)]:
            assert read(reader, how, size) == read(model, how, size)
        sender.wait()
        reader.close()


@given(
    reads=st.lists(READS.filter(lambda call: call[0] not in LINES and call[1] != 0), min_size=1, max_size=5),
    pieces=PIECES,
    sizes=fastio_settings,
)
def test_raw_reads_lose_nothing(reads: Any, pieces: Any, sizes: dict[str, Any]) -> None:
    got = b""
    with fastio.patched(**sizes):
        source, target = os.pipe()
        reader, writer = GreenPipe(source, "rb", 0), GreenPipe(target, "wb", 0)

        def send() -> None:
            for pattern, size, kind, pause in pieces:
                write(writer, tile(pattern, size), kind)
                if pause:
                    eventlet.sleep(0)
            writer.close()

        sender = eventlet.spawn(send)
        for how, size in reads:
            chunk = read(reader, how, size)
            assert size < 0 or len(chunk) <= size
            got += chunk
        got += reader.read()
        assert reader.read(1) == b""
        sender.wait()
        reader.close()
    assert got == whole(pieces)
