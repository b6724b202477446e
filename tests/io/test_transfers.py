"""Transfers that nobody waits for: every byte of the file, to fast and slow clients, and what ends one early."""

import contextlib
import errno
import os
import random
import select
import socket
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastio.io import file_sending, transfers
from fastio.io.transfers import Sender, Transfer
from tests.conftest import MONKEY_PATCHED
from tests.eventually import until

pytestmark = pytest.mark.skipif(MONKEY_PATCHED, reason="only natively")

MIB = 1 << 20
DATA = random.Random(3).randbytes(9 * MIB + 4321)
PATIENCE = 60.0


class Client:
    """One end of a connection, whose other end is given away."""

    def __init__(self, file: int, begin: int = 0, end: int = len(DATA), patience: float = PATIENCE) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.sock = socket.create_connection(listener.getsockname(), timeout=60)
            connection, _ = listener.accept()
        connection.setblocking(False)
        self.ended: list[Transfer] = []
        self.transfer = Transfer(connection.detach(), file, begin, end, patience, self.ended.append)

    def read(self) -> bytes:
        return b"".join(iter(lambda: self.sock.recv(MIB), b""))

    def end(self) -> Transfer:
        until(lambda: self.ended, "the end of the transfer")
        (transfer,) = self.ended
        return transfer


@pytest.fixture(params=["mapping", "sendfile"])
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    if request.param == "sendfile":
        monkeypatch.setattr(file_sending, "is_local", lambda connection: False)
    (tmp_path / "image").write_bytes(DATA)
    descriptor = os.open(tmp_path / "image", os.O_RDWR)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def client(file: int) -> Iterator[Callable[..., Client]]:
    with contextlib.ExitStack() as stack:

        def connect(**options: Any) -> Client:
            client = Client(file, **options)
            stack.enter_context(client.sock)
            return client

        yield connect


def test_many_at_a_time(client: Callable[..., Client]) -> None:
    sender = Sender()
    clients = [client(begin=at, end=len(DATA) - at) for at in range(0, 5 * 4096, 4096)]
    # It reads when all others have got theirs.
    slow = client()
    for each in (slow, *clients):
        assert sender.take(each.transfer, 6)
    for at, each in zip(range(0, 5 * 4096, 4096), clients, strict=True):
        assert each.read() == DATA[at : len(DATA) - at]
        assert (each.end().sent, each.end().error) == (len(DATA) - 2 * at, None)
    assert len(sender) == 1 and not slow.ended
    assert slow.read() == DATA
    sender.wait()
    assert len(sender) == 0


def test_no_more_than_that(client: Callable[..., Client]) -> None:
    sender = Sender()
    first, second = client(), client()
    assert sender.take(first.transfer, 1)
    assert not sender.take(second.transfer, 1)
    assert first.read() == DATA
    sender.wait()
    assert sender.take(second.transfer, 1)
    assert second.read() == DATA


def test_a_client_that_goes_away(client: Callable[..., Client]) -> None:
    sender = Sender()
    gone = client()
    assert sender.take(gone.transfer, 1)
    gone.sock.recv(5)
    gone.sock.close()
    assert gone.end().client_is_gone
    assert gone.end().sent < len(DATA)


def test_a_client_that_does_not_read(client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "TICK", 0.05)
    sender = Sender()
    idle = client(patience=0.2)
    assert sender.take(idle.transfer, 1)
    error = idle.end().error
    assert error is not None and error.errno == errno.ETIMEDOUT
    assert idle.end().client_is_gone
    got = idle.read()
    assert got == DATA[: idle.end().sent] != DATA


def test_a_disk_that_keeps_all_waiting_ends_nobody(
    client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    passed, got = [0.0], bytearray()
    monkeypatch.setattr(transfers, "TICK", 0.05)
    monkeypatch.setattr(transfers, "time", types.SimpleNamespace(monotonic=lambda: passed[0], sleep=time.sleep))
    reader, other = client(), client()
    send = file_sending.send

    def slowly(out: int, *arguments: Any, **options: Any) -> int:
        if out == other.transfer.connection and not passed[0]:
            # Meanwhile the reader makes room.
            reader.sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    got.extend(reader.sock.recv(MIB))
            reader.sock.settimeout(60)
            select.select([], [reader.transfer.connection], [], 60)
            passed[0] = 2 * PATIENCE
        return send(out, *arguments, **options)

    monkeypatch.setattr(file_sending, "send", slowly)
    sender = Sender()
    assert sender.take(reader.transfer, 2)
    until(lambda: not select.select([], [reader.transfer.connection], [], 0)[1], "no room")
    assert sender.take(other.transfer, 2)
    assert other.read() == DATA
    assert bytes(got) + reader.read() == DATA
    assert reader.end().error is None


def test_a_file_that_becomes_shorter(client: Callable[..., Client], file: int) -> None:
    sender = Sender()
    reader = client()
    assert sender.take(reader.transfer, 1)
    cut = len(DATA) - 4321 - 5
    os.truncate(file, cut)
    assert reader.read() == DATA[:cut]
    assert (reader.end().sent, reader.end().error) == (cut, None)


def test_a_file_that_cannot_be_sent_is_read(client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EINVAL, "as some file systems")

    monkeypatch.setattr(file_sending, "send", refuse)
    sender = Sender()
    reader = client(begin=5)
    assert sender.take(reader.transfer, 1)
    assert reader.read() == DATA[5:]
    assert reader.end().error is None


def test_a_file_that_cannot_be_read(client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> int:
        raise OSError(errno.EIO, "a broken disk")

    monkeypatch.setattr(file_sending, "send", fail)
    monkeypatch.setattr(os, "pread", fail)
    sender = Sender()
    reader, other = client(), client()
    assert sender.take(reader.transfer, 2)
    error = reader.end().error
    assert error is not None and error.errno == errno.EIO and not reader.end().client_is_gone
    assert reader.read() == b""
    monkeypatch.undo()
    assert sender.take(other.transfer, 2)
    assert other.read() == DATA


def test_an_end_that_waits_keeps_nobody(client: Callable[..., Client]) -> None:
    sender = Sender()
    reader, other = client(), client()
    goes_on = threading.Event()

    def ended(transfer: Transfer) -> None:
        goes_on.wait(60)
        reader.ended.append(transfer)

    reader.transfer.ended = ended
    assert sender.take(reader.transfer, 2)
    with reader.sock.makefile("rb") as received:
        assert received.read(len(DATA)) == DATA
    assert sender.take(other.transfer, 2)
    assert other.read() == DATA
    assert not reader.ended
    goes_on.set()
    assert reader.read() == b""
    assert reader.end().error is None


def test_without_descriptors(client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    sender = Sender()
    reader = client()
    with monkeypatch.context() as context:
        context.setattr(os, "eventfd", refuse)
        assert not sender.take(reader.transfer, 1)
    assert sender.take(reader.transfer, 1)
    assert reader.read() == DATA


def test_a_forked_child_holds_no_connection(client: Callable[..., Client]) -> None:
    sender = Sender()
    reader = client()
    assert sender.take(reader.transfer, 1)
    reader.sock.recv(5)
    asks, told = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.write(told, b"%d" % len(sender))
            threading.Event().wait(60)
        os._exit(0)
    try:
        os.close(told)
        assert os.read(asks, 1) == b"0"
        # It ends although the child lives.
        assert reader.read() == DATA[5:]
    finally:
        os.close(asks)
        os.kill(child, 9)
        os.waitpid(child, 0)
