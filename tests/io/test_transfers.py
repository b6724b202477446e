"""Transfers in the background: every byte, to fast and slow clients, and the reasons for an early end."""

import contextlib
import errno
import gc
import os
import random
import socket
import threading
import time
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fastio.io import file_sending, transfers
from fastio.io.transfers import ChunkTransfer, FileTransfer, Sender, Transfer
from tests import fuse
from tests.conftest import needs_eventlet
from tests.eventually import until
from tests.forked import told_by_a_fork
from tests.outcome import raising

MIB = 1 << 20
DATA = random.Random(3).randbytes(9 * MIB + 4321)
PATIENCE = 60.0


class Connected:
    """One end of a connection, whose other end is given away."""

    transfer: Any

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.sock = socket.create_connection(listener.getsockname(), timeout=60)
            connection, _ = listener.accept()
        connection.setblocking(False)
        self.connection = connection.detach()
        self.ended: list[Any] = []

    def read(self) -> bytes:
        return b"".join(iter(lambda: self.sock.recv(MIB), b""))

    def end(self) -> Any:
        until(lambda: self.ended, "the end of the transfer")
        (transfer,) = self.ended
        return transfer


class Client(Connected):
    """A client that gets a file."""

    def __init__(
        self,
        file: int,
        begin: int = 0,
        end: int = len(DATA),
        patience: float = PATIENCE,
        disk_patience: float | None = None,
    ) -> None:
        super().__init__()
        ended = self.ended.append
        self.transfer = FileTransfer(self.connection, file, begin, end, patience, ended, disk_patience)


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
            client = Client(**{"file": file, **options})
            stack.enter_context(client.sock)
            return client

        yield connect


def test_many_concurrent_transfers(client: Callable[..., Client]) -> None:
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


def test_no_more_transfers_than_the_limit(client: Callable[..., Client]) -> None:
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


def test_a_file_that_becomes_shorter(client: Callable[..., Client], file: int) -> None:
    sender = Sender()
    reader = client()
    assert sender.take(reader.transfer, 1)
    cut = len(DATA) - 4321 - 5
    os.truncate(file, cut)
    assert reader.read() == DATA[:cut]
    assert (reader.end().sent, reader.end().error) == (cut, None)


def test_a_file_that_cannot_be_sent_is_read(client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_sending, "send", raising(OSError(errno.EINVAL, "as some file systems")))
    sender = Sender()
    reader = client(begin=5)
    assert sender.take(reader.transfer, 1)
    assert reader.read() == DATA[5:]
    assert reader.end().error is None


def test_a_file_that_cannot_be_read(client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((file_sending, "send"), (os, "pread")):
        monkeypatch.setattr(module, name, raising(OSError(errno.EIO, "a broken disk")))
    sender = Sender()
    reader, other = client(), client()
    assert sender.take(reader.transfer, 2)
    error = reader.end().error
    assert error is not None and error.errno == errno.EIO and not reader.end().client_is_gone
    assert reader.read() == b""
    monkeypatch.undo()
    assert sender.take(other.transfer, 2)
    assert other.read() == DATA


def test_an_end_that_waits_delays_no_other(client: Callable[..., Client]) -> None:
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


def test_nothing_is_taken_without_descriptors(client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    sender = Sender()
    reader = client()
    with monkeypatch.context() as context:
        context.setattr(os, "eventfd", raising(OSError(errno.EMFILE, os.strerror(errno.EMFILE))))
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


# --- Disks that do not answer


class Disk:
    """A file system with one file of :data:`DATA`, and clients that get it."""

    def __init__(self, system: fuse.FileSystem, connect: Callable[..., Client]) -> None:
        self.system = system
        path = system.directory / "image"
        path.write_bytes(DATA)
        self.file = os.open(path, os.O_RDONLY)
        self._connect = connect

    def client(self, **options: Any) -> Client:
        return self._connect(file=self.file, **options)


@pytest.fixture
def disk(tmp_path: Path, client: Callable[..., Client]) -> Iterator[Callable[[str], Disk]]:
    with contextlib.ExitStack() as stack:

        def mount(name: str) -> Disk:
            system = stack.enter_context(fuse.mounted(tmp_path / name))
            found = Disk(system, client)
            # No thread may hang on it when the test has ended.
            stack.callback(system.die)
            return found

        yield mount


def tasks() -> int:
    """Threads of this process."""
    return len(os.listdir("/proc/self/task"))


def test_no_file_system_keeps_the_others_waiting(
    disk: Callable[[str], Disk], client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "STUCK", 60)
    dead, healthy = disk("dead"), disk("healthy")
    sender = Sender()

    def others() -> None:
        for connect in (healthy.client, client):
            each = connect()
            assert sender.take(each.transfer, 100)
            assert each.read() == DATA
            each.end()

    others()
    before = tasks()
    dead.system.forget()
    dead.system.fault(read={"hang": True})
    held = [dead.client() for _ in range(2 * transfers.THREADS)]
    for each in held:
        assert sender.take(each.transfer, 100)
    others()
    # The threads of the file system, and one that ends a transfer now.
    assert tasks() <= before + transfers.THREADS + 1
    assert not any(each.ended for each in held)
    dead.system.fault()
    for each in held:
        assert each.read() == DATA
        assert each.end().error is None


def test_transfers_beyond_the_threads_are_not_taken(disk: Callable[[str], Disk], client: Callable[..., Client]) -> None:
    dead, other = disk("dead"), disk("other")
    sender = Sender()
    dead.system.forget()
    dead.system.fault(read={"hang": True})
    held = [dead.client() for _ in range(transfers.THREADS)]
    for each in held:
        assert sender.take(each.transfer, 100)
    until(lambda: held[0].transfer.disk.is_stuck(time.monotonic()), "the threads to be stuck")
    assert not sender.take(dead.client().transfer, 100)
    for connect in (other.client, client):
        each = connect()
        assert sender.take(each.transfer, 100)
        assert each.read() == DATA
    dead.system.fault()
    for each in held:
        assert each.read() == DATA
    until(lambda: len(sender) == 0, "the end of all")
    again = dead.client()
    assert sender.take(again.transfer, 100)
    assert again.read() == DATA


def test_no_more_file_systems_than_that(
    disk: Callable[[str], Disk], client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "DISKS", 2)
    sender = Sender()
    clients = [disk(name).client() for name in "abc"]
    assert [sender.take(each.transfer, 100) for each in clients] == [True, True, False]
    assert clients[0].read() == DATA
    clients[0].end()
    until(lambda: len(sender) == 1, "the end of the first")
    assert sender.take(clients[2].transfer, 100)
    for each in clients[1:]:
        assert each.read() == DATA


def test_a_disk_that_does_not_answer_for_too_long(disk: Callable[[str], Disk], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "TICK", 0.05)
    monkeypatch.setattr(transfers, "STUCK", 60)
    dead = disk("dead")
    dead.system.forget()
    dead.system.fault(read={"hang": True})
    sender = Sender()
    held = [dead.client(disk_patience=0.5) for _ in range(transfers.THREADS + 2)]
    for each in held:
        assert sender.take(each.transfer, 100)
    for each in held:
        assert each.read() == b""
    # Some are held by threads that cannot be ended, and a process that ends waits for none of them.
    sender.wait()
    until(lambda: sum(bool(each.ended) for each in held) == 2, "those that had no thread")
    dead.system.fault()
    for each in held:
        end = each.end()
        assert (end.client_is_gone, end.cause) == (True, "the file system does not answer")


def test_a_client_does_not_pay_for_the_time_of_a_disk(
    disk: Callable[[str], Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "TICK", 0.05)
    dead = disk("dead")
    dead.system.forget()
    dead.system.fault(read={"hang": True})
    sender = Sender()
    one = dead.client(patience=0.3)
    assert sender.take(one.transfer, 100)
    time.sleep(0.6)
    assert not one.transfer.over
    dead.system.fault()
    assert one.read() == DATA
    assert one.end().error is None


@pytest.mark.parametrize(
    "number", ["EIO", "ENOTCONN", "ESHUTDOWN", "ETIMEDOUT", "EPIPE", "ECONNRESET", "EBADF", "EAGAIN", "EINVAL"]
)
@pytest.mark.parametrize("first", [0, 3 * MIB])
def test_an_error_of_a_file_is_no_error_of_the_client(disk: Callable[[str], Disk], number: str, first: int) -> None:
    broken = disk("broken")
    sender = Sender()
    one = broken.client()
    if first:
        assert sender.take(one.transfer, 1)
        assert one.sock.recv(5) == DATA[:5]
        until(lambda: not one.transfer.asking, "a full connection")
    broken.system.forget()
    broken.system.fault(read={"errno": getattr(errno, number)})
    if not first:
        assert sender.take(one.transfer, 1)
    got = one.read()
    end = one.end()
    assert end.error is not None and not end.client_is_gone
    # Which one the kernel makes of it is for the read to tell.
    with pytest.raises(OSError) as caught:
        os.pread(broken.file, 1, end.position)
    assert end.error.errno in (caught.value.errno, errno.EIO)
    assert DATA[5 if first else 0 :].startswith(got) and len(got) < len(DATA) - 5


def test_ends_that_wait_for_a_disk(disk: Callable[[str], Disk], client: Callable[..., Client]) -> None:
    dead = disk("dead")
    goes_on = threading.Event()
    sender = Sender()
    before = tasks()
    held = [dead.client() for _ in range(transfers.THREADS + 3)]
    for each in held:
        each.transfer.ended = lambda transfer, each=each: (goes_on.wait(60), each.ended.append(transfer))
        assert sender.take(each.transfer, 100)
        assert each.sock.makefile("rb").read(len(DATA)) == DATA
    assert tasks() <= before + transfers.THREADS + 2
    other = client()
    assert sender.take(other.transfer, 100)
    assert other.read() == DATA
    assert not any(each.ended for each in held)
    goes_on.set()
    for each in held:
        assert each.end().error is None


CHUNK = 600_001


class Reader(Connected):
    """A client that gets chunks; ``wait()`` is called before each but the first, with the number of bytes so far."""

    def __init__(
        self, size: int = CHUNK, wait: Callable[[int], None] = lambda taken: None, patience: float = PATIENCE
    ) -> None:
        super().__init__()
        self.closed: list[int] = []
        self.beyond = 0
        self._wait = wait
        chunks = self._chunks(size)
        first = next(chunks)
        self.transfer = ChunkTransfer(
            self.connection, first, lambda: next(chunks), len(DATA), patience, self.ended.append
        )

    def _chunks(self, size: int) -> Iterator[bytes]:
        try:
            for at in range(0, len(DATA), size):
                if at:
                    self._wait(at)
                    # Unsent bytes, and the next ones.
                    self.beyond = max(self.beyond, at - self.transfer.sent + size - max(MIB, 2 * size))
                yield DATA[at : at + size]
        finally:
            self.closed.append(os.getpid())


@pytest.fixture
def reader() -> Iterator[Callable[..., Reader]]:
    with contextlib.ExitStack() as stack:

        def connect(*arguments: Any, **options: Any) -> Reader:
            reader = Reader(*arguments, **options)
            stack.enter_context(reader.sock)
            return reader

        yield connect


@pytest.mark.parametrize("size", [4099, 65536, CHUNK, 3 * MIB, len(DATA), 2 * len(DATA)])
def test_chunks_of_any_size(reader: Callable[..., Reader], size: int) -> None:
    sender = Sender()
    readers = [reader(size) for _ in range(3)]
    for each in readers:
        assert sender.take(each.transfer, 3, 1 << 30)
    for each in reversed(readers):
        assert each.read() == DATA
        end = each.end()
        assert (end.sent, end.taken, end.error, end.failure, end.cause) == (len(DATA), len(DATA), None, None, "")
        assert each.beyond <= 0
    sender.wait()
    assert len(sender) == 0


def test_no_more_memory_than_that(reader: Callable[..., Reader]) -> None:
    sender = Sender()
    first, second = reader(), reader()
    memory = first.transfer.memory
    assert memory == 3 * CHUNK
    assert not sender.take(first.transfer, 2, memory - 1)
    assert sender.take(first.transfer, 2, memory)
    assert not sender.take(second.transfer, 2, 2 * memory - 1)
    assert sender.take(second.transfer, 2, 2 * memory)
    assert sender.memory() == 2 * memory
    assert second.read() == DATA
    assert first.read() == DATA


def test_a_file_takes_no_memory(client: Callable[..., Client]) -> None:
    sender, one = Sender(), client()
    assert sender.take(one.transfer, 1, 0)
    assert one.read() == DATA


def test_chunks_before_a_store_failed_are_sent(reader: Callable[..., Reader]) -> None:
    def fail(taken: int) -> None:
        if taken == 5 * CHUNK:
            raise ConnectionResetError("of the store")

    sender = Sender()
    one = reader(wait=fail)
    assert sender.take(one.transfer, 1, 1 << 30)
    assert one.read() == DATA[: 5 * CHUNK]
    end = one.end()
    assert (end.sent, end.taken, end.error, end.cause) == (5 * CHUNK, 5 * CHUNK, None, "ConnectionResetError")
    assert not end.client_is_gone and isinstance(end.failure, ConnectionResetError)


def test_the_end_comes_after_the_last_chunk(reader: Callable[..., Reader], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(taken: int) -> None:
        if taken == 2 * 4099:
            raise ConnectionResetError("of the store")

    transfer = reader(4099, fail).transfer
    monkeypatch.setattr(transfers, "SHARE", 1000)
    assert not transfer.ask() and not transfer.ask()
    # As much as a connection takes at once, in shares.
    assert [transfer.step() for _ in range(9)] == [False] * 8 + [True]
    assert (transfer.sent, transfer.taken) == (2 * 4099, 2 * 4099)


def test_a_client_that_goes_away_while_the_store_is_asked(reader: Callable[..., Reader]) -> None:
    asked, goes_on = threading.Event(), threading.Event()

    def wait(taken: int) -> None:
        asked.set()
        goes_on.wait(60)

    sender = Sender()
    # More than the buffers of a connection take.
    gone, other = reader(len(DATA) - 5, wait), reader()
    assert sender.take(gone.transfer, 2, 1 << 30)
    assert asked.wait(60)
    gone.sock.close()
    until(lambda: gone.transfer.over, "the client to be missed")
    # The others go on, and nothing is ended that is being asked.
    assert sender.take(other.transfer, 2, 1 << 30)
    assert other.read() == DATA
    until(lambda: len(sender) == 1, "the end of the other")
    assert gone.ended == gone.closed == []
    goes_on.set()
    end = gone.end()
    assert end.client_is_gone and end.sent < len(DATA)
    sender.wait()
    assert gone.ended == [end]


def test_a_client_does_not_pay_for_the_time_of_a_store(
    reader: Callable[..., Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = [0.0]
    monkeypatch.setattr(transfers, "TICK", 0.05)
    monkeypatch.setattr(transfers, "time", types.SimpleNamespace(monotonic=lambda: passed[0], sleep=time.sleep))
    goes_on = threading.Event()
    sender = Sender()
    # As much as a connection takes at once.
    one = reader(4099, lambda taken: None if goes_on.wait(60) else None)
    looks: list[float] = []
    overdue = one.transfer.overdue

    def look(now: float) -> bool:
        looks.append(now)
        return overdue(now)

    one.transfer.overdue = look
    assert sender.take(one.transfer, 1, 1 << 30)
    until(lambda: one.transfer.sent == 4099 and not one.transfer.watched, "the store to be waited for")

    def looked_twice() -> bool:
        passed[0] += PATIENCE
        return sum(now > PATIENCE for now in looks) > 1

    until(looked_twice, "two looks after its time")
    assert not one.transfer.over
    goes_on.set()
    assert one.read() == DATA
    assert one.end().error is None


def test_without_a_thread_it_is_tried_again(reader: Callable[..., Reader], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "TICK", 0.05)
    start = transfers.native.start_new_thread()
    refused: list[Callable[..., Any]] = []

    def refusing(function: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
        if function.__name__ == "_ask_for" and len(refused) < 3:
            refused.append(function)
            raise RuntimeError("can't start new thread")
        return start(function, arguments)

    monkeypatch.setattr(transfers.native, "start_new_thread", lambda: refusing)
    sender = Sender()
    one = reader()
    assert sender.take(one.transfer, 1, 1 << 30)
    assert one.read() == DATA
    assert len(refused) == 3


def is_full(reader: Reader) -> bool:
    return not reader.transfer.asking and reader.transfer.taken - reader.transfer.sent > CHUNK


def test_a_forked_child_ends_nothing_that_is_asked(reader: Callable[..., Reader]) -> None:
    sender = Sender()
    # The thread that sends knows the one that it has had last.
    one, last = reader(), reader()
    for each in (one, last):
        assert sender.take(each.transfer, 2, 1 << 30)
        each.sock.recv(5)
        until(partial(is_full, each), "a full buffer")

    def child() -> list[int]:
        here = one.closed
        del one.transfer
        gc.collect()
        return [len(sender), here.count(os.getpid())]

    assert told_by_a_fork(child) == [0, 0]
    for each in (one, last):
        assert each.read() == DATA[5:]


LATER = """
import os, sys
import eventlet
from tests.io.test_transfers import DATA, Reader, Sender, is_full, until
sender = Sender()
stuck, other = Reader(), Reader()
assert sender.begin()
eventlet.monkey_patch()
assert sender.take(stuck.transfer, 2, 1 << 30)
until(lambda: is_full(stuck), "a full buffer")
assert sender.take(other.transfer, 2, 1 << 30)
other.sock.settimeout(20)
print(other.read() == DATA)
sys.stdout.flush()
os._exit(0)
"""


@needs_eventlet
def test_a_service_that_monkey_patches_meanwhile(run_python: Any) -> None:
    assert run_python(LATER, options=("-W", "ignore")).stdout == "True\n"
