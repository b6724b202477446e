"""``fastio.io.mapped``: a socket gets the content of the file, and bytes that cannot be sent are reported."""

import errno
import mmap
import os
import posix
import random
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastio.io import mapped
from tests.descriptors import descriptors
from tests.io.conftest import connection

PAGE = mmap.PAGESIZE
DATA = random.Random(7).randbytes(40 * PAGE + 123)

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    path = tmp_path_factory.mktemp("mapped") / "file"
    path.write_bytes(DATA)
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@pytest.fixture(scope="module")
def ends() -> Iterator[Ends]:
    """A TCP connection on loopback whose first end does not block."""
    near, far = connection()
    with near, far:
        near.setblocking(False)
        far.settimeout(20)
        yield near, far


def send(near: socket.socket, file: int, position: int, count: int) -> int:
    """``mapped.send()`` once there is room: what was received may not have been acknowledged yet."""
    poll = select.poll()
    poll.register(near, select.POLLOUT)
    assert poll.poll(20_000)
    return mapped.send(near.fileno(), file, position, count)


def received(sock: socket.socket, count: int) -> bytes:
    with sock.makefile("rb", buffering=0) as file:
        data = b""
        while len(data) < count and (more := file.read(count - len(data))):
            data += more
    return data


@given(st.integers(0, len(DATA) - 1), st.data())
def test_any_part_of_a_file(file: int, ends: Ends, position: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(DATA) - position))
    near, far = ends
    sent = send(near, file, position, count)
    assert 0 < sent <= count
    assert received(far, sent) == DATA[position : position + sent]


@pytest.mark.parametrize("position", [0, 1, PAGE, len(DATA), len(DATA) + PAGE])
def test_more_than_there_is(file: int, ends: Ends, position: int) -> None:
    with pytest.raises(mapped.NotMapped):
        mapped.send(ends[0].fileno(), file, position, len(DATA) - min(position, len(DATA)) + 1)


def test_files_that_cannot_be_mapped(ends: Ends, tmp_path: Path) -> None:
    near, _ = ends
    directory = os.open(tmp_path, os.O_RDONLY)
    reader, writer = os.pipe()
    only_written = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    os.write(only_written, DATA)
    for descriptor in (directory, reader, only_written):
        with pytest.raises(mapped.NotMapped):
            mapped.send(near.fileno(), descriptor, 0, PAGE)
    for descriptor in (directory, reader, writer, only_written):
        os.close(descriptor)


@pytest.mark.parametrize("left", [0, PAGE, 20 * PAGE])
def test_truncated_once_it_is_mapped(ends: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
    """No signal: some of the remaining bytes are sent, and if none can be, that is reported."""
    near, far = ends
    path = tmp_path / "file"
    path.write_bytes(DATA)

    def write(out: int, data: memoryview) -> int:
        os.truncate(path, left)
        return posix.write(out, data)

    monkeypatch.setattr(mapped, "posix", SimpleNamespace(write=write))
    with path.open("rb") as file:
        try:
            sent = send(near, file.fileno(), 0, len(DATA))
        except mapped.NotMapped as error:
            assert isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EFAULT
            # The kernel copies up to 32 KiB at a time, and what it could not copy whole it does not send.
            assert left < 8 * PAGE
        else:
            assert 0 < sent <= left
            assert received(far, sent) == DATA[:sent]


def test_nothing_stays_open(file: int, ends: Ends) -> None:
    near, far = ends

    def maps() -> int:
        return Path("/proc/self/maps").read_text().count("/mapped0/")

    before = descriptors()
    assert not maps()
    for _ in range(3):
        received(far, send(near, file, 5, PAGE))
    with pytest.raises(mapped.NotMapped):
        mapped.send(near.fileno(), file, len(DATA), 1)
    assert not descriptors() - before and not maps()
