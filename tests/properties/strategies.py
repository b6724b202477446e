"""Settings of fastio and what children do, for Hypothesis."""

import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import strategies as st

from tests.child import command, tile

#: Sizes around those of pipes, of PIPE_BUF and of upstream's reads, and odd ones.
SIZES = [0, 1, 10, 511, 512, 4095, 4096, 4097, 32768, 65535, 65536, 65537, 100_003, 300_007]
PIECES = [1000, 4096, 8191, 65536, 300_000]
SETTING = st.sampled_from([4096, 4097, 65536, 100_003, 1 << 20, 4 << 20])

fastio_settings = st.fixed_dictionaries({"chunk_size": SETTING, "pipe_size": SETTING, "yield_bytes": SETTING})

patterns = st.one_of(
    st.binary(min_size=1, max_size=50),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).map(str.encode),
    st.sampled_from([b"\r\n", b"\r", b"a\r\nb\n\r", b"\xff\xfe", bytes(range(256))]),
)
ends = st.sampled_from([("exit:0", 0), ("exit:1", 1), ("exit:255", 255), ("kill:9", -9), ("kill:15", -15)])


@dataclass
class Child:
    """A child's acts, and their expected results."""

    steps: list[str]
    stdout: bytes
    stderr: bytes
    #: both, in the order in which they were written
    merged: bytes
    returncode: int
    #: all of its input is read
    reads_all: bool

    def __repr__(self) -> str:
        return f"Child({' '.join(step[:60] for step in self.steps)})"

    def command(self) -> list[str]:
        return command(*self.steps)


@st.composite
def children(draw: st.DrawFn, reads: bool = True, streams: tuple[str, ...] = ("out", "err")) -> Child:
    """A child that writes and reads in any order, closes what it has and ends somehow."""
    steps: list[str] = []
    written: dict[str, list[bytes]] = {"out": [], "err": []}
    merged: list[bytes] = []
    open_streams = list(streams)
    for _ in range(draw(st.integers(0, 6))):
        kinds = [*open_streams, *(["in"] if reads else []), *(["close"] if open_streams else [])]
        if not kinds:
            break
        kind = draw(st.sampled_from(kinds))
        if kind == "close":
            stream = draw(st.sampled_from(open_streams))
            open_streams.remove(stream)
            steps.append("close:1" if stream == "out" else "close:2")
        elif kind == "in":
            steps.append(f"in:{draw(st.sampled_from(SIZES))}")
        else:
            size, piece, pattern = draw(st.sampled_from(SIZES)), draw(st.sampled_from(PIECES)), draw(patterns)
            steps.append(f"{kind}:{size}:{piece}:{pattern.hex()}")
            written[kind].append(tile(pattern, size))
            merged.append(tile(pattern, size))
    reads_all = reads and draw(st.booleans())
    if reads_all:
        steps.append("in:-1")
    end, returncode = draw(ends)
    steps.append(end)
    return Child(steps, b"".join(written["out"]), b"".join(written["err"]), b"".join(merged), returncode, reads_all)


@st.composite
def inputs(draw: st.DrawFn) -> Any:
    """An input of bytes, in any of the types that hold some, or none."""
    payload = tile(draw(patterns), draw(st.sampled_from(SIZES)))
    kinds: list[Callable[[bytes], Any]] = [
        lambda data: None, bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data)),
        lambda data: memoryview(b"x" + data + b"y")[1:-1], lambda data: memoryview(data).cast("c"),
        partial(array.array, "B"), partial(array.array, "b"),
    ]  # fmt: skip
    return draw(st.sampled_from(kinds))(payload)
