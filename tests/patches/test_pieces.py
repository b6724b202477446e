"""Pieces of a file stand for its bytes: whoever counts them counts what was sent, and nothing is lost or sent twice."""

import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies

from fastio.io.file_pieces import Piece, PieceFile
from tests.stores.images import ImageFile


def chunks(file: Any, size: int, limit: int | None) -> Iterator[Any]:
    """As glance_store and glance read a file: up to its end, or ``limit`` bytes of it."""
    while limit is None or limit > 0:
        chunk = file.read(size if limit is None else min(size, limit))
        if not chunk:
            return
        yield chunk
        if limit is not None:
            limit -= len(chunk)


def send(piece: Piece, fileno: int, most: int) -> bytes:
    """At most so much of it, as the kernel would."""
    data = os.pread(fileno, min(most, piece.left), piece.position)
    piece.sent += len(data)
    return data


@given(
    size=strategies.integers(0, 5000),
    offset=strategies.integers(0, 3000),
    chunk=strategies.integers(1, 700),
    limit=strategies.none() | strategies.integers(1, 5000),
    sends=strategies.lists(strategies.integers(0, 300), max_size=40),
)
def test_every_byte_once(size: int, offset: int, chunk: int, limit: int | None, sends: list[int]) -> None:
    content = bytes(index * 7 % 251 for index in range(size))
    with tempfile.NamedTemporaryFile() as stored:
        stored.write(content)
        stored.flush()
        with open(stored.name, "rb") as opened:
            opened.seek(offset)
            file = PieceFile(opened)
            assert file.start()
            got, counted, first = b"", 0, True
            for each in chunks(file, chunk, limit):
                if type(each) is bytes:
                    got += each
                else:
                    assert not first
                    while each.left and sends and sends[-1]:
                        got += send(each, opened.fileno(), sends.pop())
                    each.ended = True
                    if each.left:
                        # It could not be sent: the rest is read.
                        file.stop()
                first = False
                counted += len(each)
    expected = content[offset:] if limit is None else content[offset : offset + limit]
    assert got == expected
    assert counted == len(expected)


@pytest.fixture
def file() -> Iterator[PieceFile]:
    with tempfile.TemporaryFile() as opened:
        opened.write(b"0123456789" * 10)
        opened.seek(0)
        yield PieceFile(opened)


def test_truncated_in_between(file: PieceFile) -> None:
    file.start()
    file.read(10)
    piece = file.read(80)
    file.truncate(55)
    assert len(send(piece, file.fileno(), 80)) == 45
    piece.ended = True
    assert len(piece) == 45
    assert file.read(80) == b""


def test_grown_in_between(file: PieceFile) -> None:
    file.start()
    file.read(95)
    piece = file.read(95)
    send(piece, file.fileno(), 95)
    assert len(piece) == 5
    os.truncate(file.fileno(), 120)
    assert len(file.read(95)) == 20


def test_all_of_it_is_never_a_piece(file: PieceFile) -> None:
    file.start()
    file.read(10)
    send(file.read(10), file.fileno(), 10)
    assert file.read() == b"0123456789" * 8


def test_a_pipe_has_no_pieces() -> None:
    out, into = os.pipe()
    with open(out, "rb") as reader, open(into, "wb") as writer:
        writer.write(b"bytes")
        writer.flush()
        file = PieceFile(reader)
        assert not file.start()
        assert file.read(5) == b"bytes"


def test_only_a_file_has_pieces() -> None:
    file = PieceFile(ImageFile(b"bytes"))
    assert not file.start()
    assert file.read(2) == b"by"
