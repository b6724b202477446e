"""``green_pipe``: eventlet's GreenPipe."""

import array
import contextlib
import copy
import errno
import fcntl
import functools
import io
import itertools
import operator
import os
import pathlib
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
from fastio import counters
from fastio.concurrency import budget
from fastio.io import pipes
from tests.child import BIG, MIB, command, data, dump
from tests.conftest import MONKEY_PATCHED
from tests.descriptors import recycled, unread
from tests.outcome import as_upstream, outcome
from tests.patches.test_green_sendall import STRANGE
from tests.stores.images import Ticker, TimeIsOver

eventlet = pytest.importorskip("eventlet")

from eventlet import hubs  # noqa: E402
from eventlet.greenio import GreenPipe  # noqa: E402
from eventlet.greenio.py3 import GreenFileIO  # noqa: E402

pytestmark = pytest.mark.fast_path("bytes_in")


@pytest.fixture
def pipe() -> Iterator[Callable[..., tuple[Any, Any]]]:
    """``pipe(read_mode, write_mode, **options)``: the two ends of a pipe as GreenPipes."""
    opened: list[Any] = []

    def make(read_mode: str = "rb", write_mode: str = "wb", bufsize: int = -1, **options: Any) -> tuple[Any, Any]:
        reader, writer = os.pipe()
        pair = GreenPipe(reader, read_mode, bufsize, **options), GreenPipe(writer, write_mode, bufsize, **options)
        opened.extend(pair)
        return pair

    yield make
    for stream in opened:
        with contextlib.suppress(OSError, ValueError):
            stream.close()


def raw(stream: Any) -> Any:
    """The GreenFileIO below the buffers."""
    stream = getattr(stream, "buffer", stream)
    return getattr(stream, "raw", stream)


@pytest.mark.parametrize("text", ["a\r\nb\rc\n\nlast" * 30_000, "€ä\U0001f600\n" * 50_001], ids=["newlines", "utf-8"])
@pytest.mark.parametrize("style", ["read()", "iteration", "read(1000)"])
def test_text_is_read_like_upstream(pipe: Any, text: str, style: str) -> None:
    styles: dict[str, Callable[[Any], Any]] = {
        "read()": lambda stream: stream.read(),
        "iteration": list,
        "read(1000)": lambda stream: list(iter(lambda: stream.read(1000), "")),
    }

    def go() -> Any:
        reader, writer = pipe("r", "wb", encoding=None)
        sender = eventlet.spawn(lambda: (writer.write(text.encode()), writer.close()))
        found = styles[style](reader)
        sender.wait()
        return found, reader.newlines

    as_upstream(go, counts={"bytes_in": len(text.encode())})


@pytest.mark.parametrize("kind", STRANGE)
def test_unusual_writes_are_like_upstreams(pipe: Any, kind: str) -> None:
    def go() -> Any:
        reader, writer = pipe(bufsize=0)
        result = outcome(lambda: writer.write(STRANGE[kind]()))
        writer.close()
        return result, reader.read()

    as_upstream(go)


@pytest.mark.parametrize("bufsize", [0, -1])
def test_a_write_fails_without_a_reader(pipe: Any, bufsize: int) -> None:
    if MONKEY_PATCHED:
        pytest.skip("upstream spins for ever; see test_fix_green_epipe.py")

    def go() -> Any:
        reader, writer = pipe(bufsize=bufsize)
        reader.close()
        with pytest.raises(OSError) as caught:
            writer.write(data(1, BIG))
        return type(caught.value), caught.value.args

    assert as_upstream(go) == (BrokenPipeError, (errno.EPIPE, "Broken pipe"))


def test_a_writer_that_can_not_write(hub: Any) -> None:
    """Only EAGAIN is waited for; any other error is what it is."""

    def go() -> Any:
        full = GreenPipe(os.open("/dev/full", os.O_WRONLY), "wb", 0)
        with pytest.raises(OSError) as caught:
            full.write(b"x" * 100)
        full.close()
        return type(caught.value), caught.value.args

    expected = (OSError, (errno.ENOSPC, "No space left on device"))
    if not MONKEY_PATCHED:
        # Upstream's os.write() would wait for it in the hub there, which epoll refuses.
        assert go() == expected
    with fastio.patched():
        assert go() == expected


@pytest.mark.parametrize(
    "make",
    [
        *(lambda size=size: bytearray(size) for size in (5, 500, 0)),
        lambda: array.array("I", [0] * 20),
        lambda: memoryview(bytearray(20))[::2],
        lambda: memoryview(bytearray(20))[::-1],
        lambda: memoryview(bytearray(20)).cast("B", (4, 5)),
        lambda: memoryview(bytearray(20))[2:6],
    ],
    ids=["5 bytes", "500 bytes", "nothing", "ints", "gaps", "backwards", "rows", "part"],
)
def test_readinto_any_buffer(pipe: Any, make: Callable[[], Any]) -> None:
    def go() -> Any:
        into = make()
        reader, writer = pipe(bufsize=0)
        writer.write(bytes(range(1, 101)))
        return outcome(lambda: reader.readinto(into)), bytes(getattr(into, "obj", into))

    as_upstream(go)


def disturb(victim: Any) -> int:
    """Throw TimeIsOver into the greenlet at every moment at which it yields; returns how often."""
    hub = hubs.get_hub()
    thrown, seen = 0, counters.yields
    while not victim.dead:
        eventlet.sleep(0)
        if counters.yields != seen and not victim.dead:
            seen = counters.yields
            thrown += 1
            hub.schedule_call_global(0, eventlet.getcurrent().switch)
            victim.throw(TimeIsOver)
    return thrown


def large_pipe() -> tuple[int, int]:
    """The descriptors of a pipe that holds 1 MiB."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, MIB)
    return reader, writer


def again(function: Callable[[], Any]) -> Any:
    """Call until no time-out comes."""
    while True:
        try:
            return function()
        except TimeIsOver:
            pass


@pytest.mark.parametrize("fastio_settings", [{"yield_bytes": "64KiB"}, {"yield_bytes": "4KiB"}], ids=str)
@pytest.mark.parametrize("bufsize", [0, -1])
@pytest.mark.parametrize("style", ["read", "readinto"])
def test_no_byte_is_lost_where_an_exception_arrives(patched: Any, hub: Any, style: str, bufsize: int) -> None:
    # The pipe has all of it at once: a reader that never waits yields.
    descriptor, writer = large_pipe()
    os.write(writer, data(1, MIB))
    os.close(writer)
    got = []

    def read() -> None:
        buffer = bytearray(50_000)
        with GreenPipe(descriptor, "rb", bufsize) as stream:
            while True:
                if style == "read":
                    chunk = again(lambda: stream.read(50_000))
                else:
                    chunk = bytes(buffer[: again(lambda: stream.readinto(buffer))])
                if not chunk:
                    return
                got.append(chunk)

    # From Python 3.14 on, a buffered reader asks for 128 KiB each time.
    assert disturb(eventlet.spawn(read)) >= (8 if bufsize and io.DEFAULT_BUFFER_SIZE > 50_000 else 10)
    if bufsize == 0:
        assert b"".join(got) == data(1, MIB)
    else:
        # A buffer that is being filled is thrown away by io itself, also by an exception that arrives upstream.
        assert sum(map(len, got)) <= MIB


@pytest.mark.fast_path("bytes_out")
@pytest.mark.parametrize("fastio_settings", [{"yield_bytes": "64KiB"}], ids=str)
@pytest.mark.parametrize("bufsize", [0, -1, 3_000])
def test_no_byte_is_sent_twice_where_an_exception_arrives(patched: Any, hub: Any, bufsize: int) -> None:
    # The pipe takes all of each write at once: no write can be half done when a time-out arrives.
    reader, descriptor = large_pipe()
    chunks = [data(number, 4_000) for number in range(250)]

    def write() -> None:
        with GreenPipe(descriptor, "wb", bufsize) as stream:
            for chunk in chunks:
                again(functools.partial(stream.write, chunk))
                again(stream.flush)

    assert disturb(eventlet.spawn(write)) > 10
    with open(reader, "rb") as stream:
        assert stream.read() == b"".join(chunks)


def let_it_yield(victim: Any) -> None:
    """Return while ``victim`` yields."""
    seen = counters.yields
    while counters.yields == seen:
        eventlet.sleep(0)
        assert not victim.dead


#: Methods called again and again until the stream is closed; the child writes, or reads.
BUSY: dict[str, Callable[[Any], bytes]] = {
    "readall": lambda stream: stream.readall(),
    "read": lambda stream: stream.read(MIB),
    "readinto": lambda stream: into(stream),
    "write": lambda stream: b"" * stream.write(bytes(16 * MIB)),
}


@pytest.mark.fast_path("yields")
@pytest.mark.parametrize("how", BUSY)
@pytest.mark.parametrize("fastio_settings", [{"yield_bytes": "64KiB"}], ids=str)
def test_closed_while_it_yields(patched: Any, hub: Any, green: Any, how: str) -> None:
    end = int(how == "write")
    # Each write of the child's is more than a share.
    child, options = (command("in:-1"), {"stdin": -1}) if end else (dump(pathlib.Path("/dev/zero")), {"stdout": -1})
    popen = green.Popen(child, bufsize=0, **options)
    stream = popen.stdin if end else popen.stdout
    fd = stream.fileno()
    got: list[bytes] = []

    def move() -> Any:
        try:
            while True:
                got.append(BUSY[how](stream))
        except hubs.IOClosed:
            return "closed"

    mover = eventlet.spawn(move)
    let_it_yield(mover)
    stream.close()
    ends = recycled(fd, end)
    if not end:
        os.write(ends[1], b"secret")
    assert mover.wait() == "closed"
    assert not any(b"secret" in chunk for chunk in got)
    assert unread(ends[0]) == (0 if end else len(b"secret"))
    for each in ends:
        os.close(each)
    popen.kill()
    popen.wait()


@pytest.mark.parametrize("how", ["read", "readall", "readinto", "write"])
def test_closed_and_recycled_while_it_waits(pipe: Any, hub: Any, how: str) -> None:
    def go() -> Any:
        reader, writer = pipe(bufsize=0)
        stream = writer if how == "write" else reader
        fd = stream.fileno()
        calls = {
            "read": lambda: reader.read(10),
            "readall": reader.readall,
            "readinto": lambda: reader.readinto(bytearray(10)),
            "write": lambda: writer.write(bytes(BIG)),
        }

        waiter = eventlet.spawn(outcome, calls[how])
        eventlet.sleep(0)
        eventlet.sleep(0)
        os.close(fd)
        ends = recycled(fd, end=1 if how == "write" else 0)
        eventlet.sleep(0.01)
        result, closed = waiter.wait(), raw(stream).closed
        # A file that upstream leaves open would close the number that is another's now.
        raw(stream)._closed = True
        for end in ends:
            os.close(end)
        return *result, closed

    # Upstream marks a reader's file as closed, and not that of a writer.
    expected = hubs.IOClosed, "[Errno 107] Operation on closed file", how != "write"
    # Monkey patched, upstream's os.read() returns '' instead, which readall() adds to its list for ever.
    if not MONKEY_PATCHED:
        assert go() == expected
    with fastio.patched():
        assert go() == expected


#: Calls on a pipe, closed or not.
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    **{name: operator.attrgetter(name) for name in ("mode", "closed", "unknown")},
    **{name: operator.methodcaller(name) for name in (
        "tell", "seekable", "readable", "writable", "isatty", "fileno", "flush", "close", "readline", "__enter__",
    )},
    **{f"read({size!r})": operator.methodcaller("read", size) for size in (1, -1, -2, 0, None, "1")},
    "seek": lambda f: f.seek(0),
    "truncate": lambda f: f.truncate(0),
    "pickle": lambda f: type(pickle.dumps(f)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "type": lambda f: (type(f), type(raw(f))),
    "nonblocking": lambda f: os.get_blocking(f.fileno()),
    "iteration": lambda f: next(iter(f)),
    "readinto": lambda f: f.readinto(bytearray(1)),
    "readinto(None)": lambda f: f.readinto(None),
    "read1": lambda f: f.read1(2),
    "peek": lambda f: f.peek(2),
    # The content of a buffer would be written by the pipe's close, whose reader is closed by then: upstream would spin.
    "write": lambda f: (f.write(b"x"), f.flush()),
    "detach": operator.methodcaller("detach"),
}  # fmt: skip
#: Calls that never end in upstream, monkey patched, with a reader and a writer that are open.
ENDLESS = (("write", "read(-1)", "readline", "iteration"), ("read(", "read1", "readinto", "readline", "peek", "iter"))


@pytest.mark.parametrize("closed", [False, True])
def test_everything_else_about_a_pipe_is_like_upstream(pipe: Any, closed: bool) -> None:
    def go() -> Any:
        found = {}
        # A copy closes the descriptor that it shares when it is thrown away, and the next pipe would get its number.
        kept = []
        for bufsize, end, name in itertools.product((0, -1), (0, 1), OPERATIONS):
            if name.startswith(ENDLESS[end]) and not closed:
                continue
            reader, writer = ends = pipe(bufsize=bufsize)
            writer.write(b"abcdef")
            writer.flush()
            if end == 0:
                writer.close()
            if closed:
                ends[end].close()
            try:
                result = OPERATIONS[name](ends[end])
            except Exception as error:
                result = type(error), closed and str(error)
            kept.append(result)
            known = name == "fileno" and not closed or isinstance(result, io.IOBase)
            found[bufsize, end, name] = type(result) if known else result
        return found

    as_upstream(go)


@pytest.mark.parametrize("bufsize", [0, -1, 5000])
def test_regular_files(tmp_path: pathlib.Path, bufsize: int) -> None:
    path = tmp_path / "file"

    def go() -> Any:
        path.write_bytes(data(1, 300_000))
        found: list[Any] = []
        with GreenPipe(str(path), "rb", bufsize) as stream:
            found += [stream.read(10), stream.seek(100_000), stream.tell(), stream.read(200), stream.seekable()]
            found += [stream.seek(-5, 2), stream.read(), stream.read(), stream.seek(0), len(stream.read())]
            buffer = bytearray(1000)
            found += [stream.seek(50), stream.readinto(buffer), bytes(buffer), stream.readline(), stream.name]
        with GreenPipe(str(path), "r+b", bufsize) as stream:
            found += [stream.write(b"12345"), stream.tell(), stream.seek(3), stream.read(5)]
            found += [stream.seek(20), stream.truncate(), stream.tell()]
        found.append(path.read_bytes())
        with GreenPipe(str(path), "ab", bufsize) as stream:
            found += [stream.write(data(2, 200_000)), stream.tell()]
        found.append(path.read_bytes())
        with GreenPipe(str(path), "r", encoding="latin-1") as stream:
            found.append(stream.read())
        with open(path, "rb") as file, GreenPipe(file, "rb", bufsize) as stream:
            found.append(stream.read(1000))
        return found

    as_upstream(lambda: outcome(go))


def test_a_subclass_that_defines_read(patched: Any) -> None:
    class Upper(GreenFileIO):
        def read(self, size: int = -1) -> bytes:
            return super().read(size).upper()

    reader, writer = os.pipe()
    os.write(writer, b"abcdef")
    stream = Upper(reader, "rb")
    buffer = bytearray(3)
    assert stream.readinto(buffer) == 3 and buffer == b"ABC"
    assert stream.read(2) == b"DE"
    assert io.BufferedReader(stream).read(1) == b"F"
    stream.close()
    os.close(writer)


@pytest.mark.skipif(MONKEY_PATCHED, reason="after monkey_patch() upstream asks the hub before it moves anything")
@pytest.mark.parametrize("how", ["write", "read", "readinto", "readall", "lines"])
def test_in_the_hub_itself_nothing_yields(hub: Any, pipe: Any, how: str) -> None:
    """A timer's callback may move what there is, or what there is room for; to wait is an error, like upstream's."""
    step, total = 32 * 1024, MIB

    def go() -> Any:
        reader, writer = pipe(bufsize=-1 if how == "lines" else 0)
        fcntl.fcntl(writer.fileno(), fcntl.F_SETPIPE_SZ, total)
        done = eventlet.event.Event()
        if how != "write":
            for start in range(0, total, step):
                os.write(writer.fileno(), data(1, total)[start : start + step])
        if how in ("readall", "lines"):
            writer.close()
        buffer = bytearray(step)

        def move() -> Any:
            if how == "write":
                return [writer.write(data(1, total)[start : start + step]) for start in range(0, total, step)]
            if how == "read":
                return [reader.read(step) for _ in range(total // step)]
            if how == "readinto":
                return [(reader.readinto(buffer), bytes(buffer)) for _ in range(total // step)]
            return list(reader) if how == "lines" else reader.read()

        def in_the_hub() -> None:
            found = []
            for call in (move, *([lambda: writer.write(b"x"), lambda: reader.read(MIB)] if how == "write" else [])):
                found.append(outcome(call))
            done.send(found)

        hub.schedule_call_global(0, in_the_hub)
        return done.wait()

    as_upstream(go, "green_pipe", counts={"yields": 0}, strict=True, yield_bytes=64 * 1024)
    assert counters.bytes_in + counters.bytes_out >= total


def into(stream: Any) -> bytes:
    buffer = bytearray(MIB)
    return bytes(buffer[: stream.readinto(buffer)])


STYLES: dict[str, Callable[[Any], bytes]] = {
    "read(64 KiB)": lambda stream: b"".join(iter(lambda: stream.read(65536), b"")),
    "read(1 MiB)": lambda stream: b"".join(iter(lambda: stream.read(MIB), b"")),
    "read()": lambda stream: stream.read(),
    "readinto(1 MiB)": lambda stream: b"".join(iter(lambda: into(stream), b"")),
    "iteration": lambda stream: b"".join(stream),
}


@pytest.mark.parametrize("bufsize", [0, -1])
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("fastio_settings", [{"yield_bytes": "256KiB"}], ids=str)
def test_the_hub_lives_while_a_busy_writer_is_read(
    patched: Any, hub: Any, tmp_path: pathlib.Path, style: str, bufsize: int
) -> None:
    size = MIB // 8 if style == "iteration" and bufsize == 0 else 16 * MIB
    path = tmp_path / "file"
    path.write_bytes(data(1, size))
    reader, writer = os.pipe()
    child = os.posix_spawn("/bin/cat", ["cat", str(path)], {}, file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)])
    os.close(writer)
    with GreenPipe(reader, "rb", bufsize) as stream, Ticker() as ticker:
        assert STYLES[style](stream) == data(1, size)
    os.waitpid(child, 0)
    # One read may be larger than a share.
    assert ticker.ticks >= size // MIB - 1


def test_a_file_that_is_always_ready_lets_others_run(patched: Any, hub: Any) -> None:
    """Its reader never waits: without yielding no other greenlet would ever run."""
    with GreenPipe("/dev/zero", "rb", 0) as stream, Ticker() as ticker:
        for _ in range(64):
            assert len(stream.read(MIB)) == MIB
    assert ticker.ticks >= 32


@pytest.mark.fast_path("bytes_out")
@pytest.mark.parametrize("chunk", [1000, 65536, 16 * MIB])
def test_the_hub_lives_while_a_fast_reader_is_written_to(patched: Any, hub: Any, chunk: int) -> None:
    with GreenPipe("/dev/null", "wb", 0) as stream, Ticker() as ticker:
        for _ in range(16 * MIB // chunk):
            assert stream.write(bytes(chunk)) == chunk
    assert ticker.ticks >= 8


@pytest.mark.fast_path("bytes_in", "bytes_out")
def test_the_budget_is_empty_afterwards(patched: Any, hub: Any, green: Any) -> None:
    for _ in range(3):
        popen = green.Popen(["cat"], stdin=-1, stdout=-1, bufsize=0)
        reader = eventlet.spawn(popen.stdout.read)
        popen.stdin.write(data(1, BIG))
        popen.stdin.close()
        assert reader.wait() == data(1, BIG)
        popen.wait()
        waiter = eventlet.spawn(GreenPipe(os.pipe()[0], "rb", 0).readall)
        eventlet.sleep(0)
        waiter.kill()
    assert budget.shared.active() == 0


def test_large_pipes_only_for_those_who_carry_much(patched: Any, pipe: Any) -> None:
    reader, writer = pipe(bufsize=0)
    for _ in range(100):
        writer.write(b"x" * 1000)
        reader.read(1000)
    assert pipes.capacity(reader.fileno()) == pipes.DEFAULT_CAPACITY
    sender = eventlet.spawn(lambda: (writer.write(data(1, BIG)), writer.close()))
    assert reader.read() == data(1, BIG)
    sender.wait()
    assert pipes.capacity(reader.fileno()) == MIB


def test_few_reads_per_mib(patched: Any, hub: Any, tmp_path: pathlib.Path, green: Any) -> None:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(MIB) * 32)
    popen = green.Popen(dump(path), stdout=-1)
    assert popen.stdout.read() == path.read_bytes()
    # Stock reads 8 KiB at a time: 128.
    assert counters.reads / 32 <= 8 and counters.waits / 32 <= 8
    popen.wait()


def test_a_pipe_that_is_older_than_the_patch(pipe: Any) -> None:
    reader, writer = pipe(bufsize=0)
    waiter = eventlet.spawn(reader.read, 100)
    eventlet.sleep(0)
    with fastio.patched():
        writer.write(b"abc")
        assert waiter.wait() == b"abc"
        counters.reset()
        writer.write(b"def")
        assert reader.read(10) == b"def"
        assert counters.bytes_in == 3
        waiter = eventlet.spawn(reader.read, 100)
        eventlet.sleep(0)
        younger, other_end = pipe(bufsize=-1)
        other_end.write(data(1, 10_000))
        other_end.flush()
        assert younger.read(10) == data(1, 10)
    # And one that is younger than its end.
    writer.write(b"ghi")
    assert waiter.wait() == b"ghi"
    other_end.close()
    assert younger.read() == data(1, 10_000)[10:]
    writer.close()
    assert reader.readall() == b""


@pytest.mark.parametrize("fastio_settings", [{"yield_bytes": "4KiB"}], ids=str)
@pytest.mark.no_fast_path("a regular file is upstream's")
def test_nothing_else_runs_while_a_regular_file_is_read_or_written(patched: Any, hub: Any, tmp_path: Any) -> None:
    """Such as the holder of a lock of the system's, another writer of the same buffer, or one that seeks."""
    path = tmp_path / "file"
    path.write_bytes(bytes(2 * MIB))
    with GreenPipe(os.open(path, os.O_RDWR), "r+b", 0) as file, Ticker() as ticker:
        assert len(file.read()) == 2 * MIB
        file.seek(0)
        assert len(file.read(MIB)) == MIB
        file.seek(0)
        assert file.readinto(bytearray(2 * MIB)) == 2 * MIB
        file.write(bytes(3 * MIB))
        assert ticker.ticks == 0


@pytest.mark.parametrize("fastio_settings", [{"chunk_size": "64KiB"}], ids=str)
@pytest.mark.no_fast_path("a regular file is upstream's")
def test_a_large_record_is_appended_by_one_write(patched: Any, tmp_path: pathlib.Path) -> None:
    """Other processes that append to the same file never see their records in the middle of it."""
    with GreenPipe(os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab", 0) as stream:
        writes = counters.io.writes
        assert stream.write(bytes(3 * MIB)) == 3 * MIB
    assert counters.io.writes - writes == 1


@pytest.mark.parametrize("fastio_settings", [{"yield_bytes": "4KiB", "chunk_size": "4KiB"}, {}], ids=str)
def test_no_part_of_a_packet_is_discarded(patched: Any, hub: Any) -> None:
    """The kernel drops what a read leaves of a packet, so no read asks for less than upstream's."""
    reader, writer = os.pipe2(os.O_DIRECT)
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, MIB)
    packets = [data(number, 4_000) for number in range(250)]
    for packet in packets:
        os.write(writer, packet)
    os.close(writer)
    with GreenPipe(reader, "rb", 0) as stream:
        assert stream.read() == b"".join(packets)


def test_a_second_reader_takes_nothing_from_the_first(in_hub: Any) -> None:
    code = """
    import os, posix
    import fastio
    from eventlet.greenio import GreenPipe
    fastio.patch(strict=True)
    reader, writer = os.pipe()
    with GreenPipe(reader, "rb", 0) as file:
        first = eventlet.spawn(os.read, file.fileno(), 100)
        eventlet.sleep(0)
        for read in (file.read, file.readall, lambda: file.read(10), lambda: file.readinto(bytearray(10))):
            posix.write(writer, b"x")
            try:
                read()
            except RuntimeError as error:
                print(str(error)[:24])
        print(first.wait())
    os.close(writer)
    """
    assert in_hub(code) == "Second simultaneous read\n" * 4 + "b'xxxx'"
