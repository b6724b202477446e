"""Guarantees to programs written for upstream: each scenario does something and returns what can be seen of it.

Nothing here depends on who is faster: a scenario waits until the objects that it looks at are there. A wait that may
take for ever is given so many rounds of the hub. Where upstream has a fault that fastio mends, the scenario goes round
it; the tests of the patches have the faults.
"""

import errno
import fcntl
import functools
import gc
import io
import os
import select
import subprocess
from collections.abc import Callable
from typing import Any

from tests.child import Gate, command
from tests.descriptors import unread

SCENARIOS: dict[str, tuple[bool, Callable[[], Any]]] = {}

#: 60,000 bytes of lines, which a default pipe holds: they are there before the first read
SIZE = 60_000
#: rounds of the hub, each of which asks the kernel once, until an event has no further effect
ROUNDS = 50
LINES = (b"0123456789 a line of a child's output, which is as long as it is\n" * 1000)[:SIZE]


def scenario(function: Callable[..., Any] | None = None, *, green: bool = False, **choices: Any) -> Any:
    """Register ``function``, once for each combination of ``choices``; ``green``: it is about eventlet."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        combinations: list[dict[str, Any]] = [{}]
        for name, values in choices.items():
            combinations = [{**one, name: value} for one in combinations for value in values]
        for one in combinations:
            suffix = "-".join(str(value) for value in one.values())
            name = function.__name__ + (f"[{suffix}]" if suffix else "")
            SCENARIOS[name] = green, functools.partial(function, **one)
        return function

    return register if function is None else register(function)


# Parts of scenarios


def outcome(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return its result, or the name of its exception."""
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return f"raises {type(error).__name__}"


def there(file: Any, count: int) -> None:
    """Wait until so many bytes are in the pipe."""
    while unread(file.fileno()) < count:
        nap()


def nap() -> None:
    """Let the others run, processes as well."""
    import time

    time.sleep(0.005)


def exited(popen: Any) -> None:
    """Wait until the child has exited, and leave it to be waited for."""
    while os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        nap()


def lines(**options: Any) -> Any:
    """A child that has written ``LINES`` to its stdout."""
    file = os.memfd_create("lines")
    os.pwrite(file, LINES, 0)
    popen = subprocess.Popen(["cat"], stdin=file, stdout=-1, **options)
    os.close(file)
    there(popen.stdout, SIZE)
    return popen


def options_of(bufsize: int | None, text: bool) -> dict[str, Any]:
    return {**({} if bufsize is None else {"bufsize": bufsize}), **({"text": True} if text else {})}


def ended(popen: Any) -> int:
    popen.kill()
    return popen.wait()


def told_of_closing(greenlet: Any) -> Any:
    """Return the outcome of one whose file was closed: most of them upstream's hub never wakes."""
    import eventlet

    for _ in range(ROUNDS):
        eventlet.sleep(0)
        if greenlet.dead:
            return greenlet.wait()
    return "waits"


def spawn(function: Callable[[], Any]) -> Any:
    """Run it in a greenlet until it waits; ``wait()`` of what is returned has its outcome."""
    import eventlet

    greenlet = eventlet.spawn(outcome, function)
    eventlet.sleep(0)
    return greenlet


# Reading a part, and something else then

PARTS: dict[str, Callable[[Any], Any]] = {
    "line": lambda stream: stream.readline(),
    "next": lambda stream: next(stream),
    "10": lambda stream: stream.read(10),
    "4096": lambda stream: stream.read(4096),
    "5000": lambda stream: stream.read(5000),
    "into": lambda stream: stream.readinto(bytearray(4096)),
    "peek": lambda stream: len(stream.peek(1)),
}


def _communicate(popen: Any) -> Any:
    return popen.communicate()


def _descriptor(popen: Any) -> Any:
    exited(popen)
    return os.read(popen.stdout.fileno(), SIZE)


def _another_child(popen: Any) -> Any:
    exited(popen)
    return subprocess.run(["cat"], stdin=popen.stdout, stdout=-1).stdout


def _number(popen: Any) -> Any:
    exited(popen)
    return subprocess.run(["cat"], stdin=popen.stdout.fileno(), stdout=-1).stdout


def _stream(popen: Any) -> Any:
    return popen.stdout.read()


def _select(popen: Any) -> Any:
    return [stream is popen.stdout for stream in select.select([popen.stdout], [], [], 0)[0]]


AFTERWARDS = {
    "communicate": _communicate, "descriptor": _descriptor, "another child": _another_child, "number": _number,
    "stream": _stream, "select": _select,
}  # fmt: skip


@scenario(bufsize=[None, -1, 0], text=[False, True], then=AFTERWARDS)
def part(bufsize: int | None, text: bool, then: str) -> Any:
    found = {}
    for name, read in PARTS.items():
        popen = lines(**options_of(bufsize, text))
        found[name] = [outcome(read, popen.stdout), outcome(AFTERWARDS[then], popen)]
        popen.stdout.close()
        popen.wait()
    return found


@scenario(bufsize=[None, -1, 0])
def select_before_every_line(bufsize: int | None) -> Any:
    with Gate() as gate:
        popen = subprocess.Popen(
            command(f"out:6:6:{b'a%b%c%'.replace(b'%', bytes([10])).hex()}", gate.wait),
            stdout=-1, pass_fds=gate.fds, **options_of(bufsize, False),
        )  # fmt: skip
        there(popen.stdout, 6)
        found: list[Any] = []
        while len(found) < 3 and select.select([popen.stdout], [], [], 0)[0]:
            found.append(popen.stdout.readline())
        gate.open()
        return found, popen.communicate()


@scenario(bufsize=[None, -1, 0], text=[False, True])
def a_dialogue(bufsize: int | None, text: bool) -> Any:
    popen = subprocess.Popen(["cat"], stdin=-1, stdout=-1, **options_of(bufsize, text))
    found = []
    for line in ("one\n", "two\n", "three\n"):
        popen.stdin.write(line if text else line.encode())
        popen.stdin.flush()
        found.append(popen.stdout.readline())
    popen.stdin.write("rest" if text else b"rest")
    return found, popen.communicate(), popen.returncode


@scenario
def what_is_written_without_a_buffer_is_there_at_once() -> Any:
    popen = subprocess.Popen(["cat"], stdin=-1, stdout=-1, bufsize=0)
    found = [popen.stdin.write(b"abc\n"), popen.stdout.readline()]
    popen.stdin.close()
    return found, popen.wait(), popen.stdout.read()


@scenario(green=True)
def without_a_buffer_reads_are_short() -> Any:
    with Gate() as gate:
        popen = subprocess.Popen(command("out:10:10:61", gate.wait, "out:10:10:62"), stdout=-1, pass_fds=gate.fds)
        found = [popen.stdout.read(100)]
        gate.open()
        return found, popen.stdout.read(100), popen.stdout.read(100), popen.wait()


@scenario(bufsize=[None, -1, 0], text=[False, True])
def what_the_streams_are(bufsize: int | None, text: bool) -> Any:
    popen = subprocess.Popen(["cat"], stdin=-1, stdout=-1, stderr=-1, **options_of(bufsize, text))
    found: dict[str, Any] = {"popen": sorted(vars(popen))}
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(popen, name)
        layers = [stream, getattr(stream, "buffer", None), getattr(getattr(stream, "buffer", stream), "raw", None)]
        found[name] = [type(layer).__name__ for layer in layers]
        for attribute in ("mode", "closed", "line_buffering", "encoding", "errors", "newlines"):
            found[f"{name}.{attribute}"] = outcome(getattr, stream, attribute)
        for method in ("readable", "writable", "seekable", "isatty", "tell"):
            found[f"{name}.{method}"] = outcome(lambda stream=stream, method=method: getattr(stream, method)())
        found[f"{name} blocks"] = os.get_blocking(stream.fileno())
        found[f"{name}'s flags"] = fcntl.fcntl(stream.fileno(), fcntl.F_GETFL)
    found["communicate"] = popen.communicate()
    found["popen then"] = sorted(vars(popen))
    found["closed"] = [stream.closed for stream in (popen.stdin, popen.stdout, popen.stderr)]
    found["read then"] = outcome(popen.stdout.read)
    return found


@scenario(green=True, wrapper=["buffer", "text", "fdopen"])
def a_programs_own_buffer(wrapper: str) -> Any:
    popen = lines()
    if wrapper == "buffer":
        stream: Any = io.BufferedReader(popen.stdout, 8192)
    elif wrapper == "text":
        stream = io.TextIOWrapper(io.BufferedReader(popen.stdout, 8192))
    else:
        stream = os.fdopen(os.dup(popen.stdout.fileno()), "rb", 8192)
    exited(popen)
    found = [stream.readline(), os.read(popen.stdout.fileno(), SIZE)]
    return found, outcome(stream.read), popen.wait()


# Closing from elsewhere

BLOCKED: dict[str, Callable[[Any], Any]] = {
    "read": lambda popen: popen.stdout.read(),
    "10": lambda popen: popen.stdout.read(10),
    "into": lambda popen: popen.stdout.readinto(bytearray(10)),
    "line": lambda popen: popen.stdout.readline(),
    "iteration": lambda popen: list(popen.stdout),
    "communicate": lambda popen: popen.communicate(),
}


@scenario(green=True, bufsize=[None, -1], how=["close", "kill and close", "kill"], name=BLOCKED)
def closing_while_another_reads(bufsize: int | None, how: str, name: str) -> Any:
    popen = subprocess.Popen(["cat"], stdin=-1, stdout=-1, **options_of(bufsize, False))
    reader = spawn(lambda: BLOCKED[name](popen))
    if "kill" in how:
        popen.kill()
    closed = outcome(popen.stdout.close) if "close" in how else None
    # A buffer refuses to be closed by another while it reads. Then it reads to the end, if the child's end has come.
    told = reader.wait() if "kill" in how and not popen.stdout.closed else told_of_closing(reader)
    # Whether it is the signal that ends it, or the end of its input, is a race of upstream's.
    return closed, told, popen.stdout.closed, outcome(popen.stdin.close), ended(popen) in (0, -9)


@scenario(green=True)
def closing_while_another_writes() -> Any:
    popen = subprocess.Popen(["sleep", "60"], stdin=-1, pipesize=4096)
    # With fastio a large write yields in between, and learns it then: limits.rst has it.
    writer = spawn(lambda: popen.stdin.write(bytes(20_000)))
    closed = outcome(popen.stdin.close)
    return closed, told_of_closing(writer), popen.stdin.closed, ended(popen)


@scenario(green=True)
def two_read_at_a_time() -> Any:
    with Gate() as gate:
        popen = subprocess.Popen(command(gate.wait, "out:10:10:61"), stdout=-1, pass_fds=gate.fds)
        first = spawn(lambda: popen.stdout.read(10))
        second = spawn(lambda: popen.stdout.read(10))
        gate.open()
        return first.wait(), second.wait(), popen.wait()


@scenario(green=True, bufsize=[None, -1])
def a_time_out_while_reading_loses_nothing(bufsize: int | None) -> Any:
    import eventlet

    with Gate() as gate:
        popen = subprocess.Popen(
            command(gate.wait, "out:100:100:61"), stdout=-1, pass_fds=gate.fds, **options_of(bufsize, False)
        )
        found = []
        for read in (popen.stdout.read, lambda: popen.stdout.read(10), popen.stdout.readline):
            with eventlet.Timeout(0.01, False):
                found.append(read())
        gate.open()
        return found, popen.stdout.read(10), popen.communicate()


@scenario(green=True)
def a_kill_while_reading_loses_nothing() -> Any:
    with Gate() as gate:
        popen = subprocess.Popen(command(gate.wait, "out:100:100:61"), stdout=-1, pass_fds=gate.fds)
        for read in (popen.stdout.read, lambda: popen.stdout.read(10), popen.communicate):
            spawn(read).kill()
        gate.open()
        return outcome(popen.communicate), popen.returncode


# Input, time-outs and ends


@scenario
def what_fails() -> Any:
    def raised(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        before = set(os.listdir("/proc/self/fd"))
        try:
            return call(*args, **kwargs)
        except Exception as error:
            found = {name: value for name, value in vars(error).items() if not name.startswith("_")}
            attributes = [getattr(error, name, None) for name in ("errno", "filename", "returncode", "output")]
            said = [type(error).__name__, str(error), sorted(found), attributes]
        gc.collect()
        return said, len(set(os.listdir("/proc/self/fd")) - before)

    run = subprocess.run
    return [
        raised(run, ["/no such command"], capture_output=True),
        raised(run, ["true"], cwd="/no such directory", stdin=-1),
        raised(run, ["true"], stdout="nonsense"),
        raised(run, ["true"], stdin=10**6),
        raised(run, ["true", "a\0b"], stdin=-1),
        raised(run, [], stdin=-1),
        raised(run, ["false"], check=True),
        raised(run, ["sh", "-c", "echo out; echo err >&2; exit 5"], check=True, capture_output=True),
        raised(run, ["sleep", "60"], timeout=0.05, capture_output=True),
        raised(subprocess.check_output, ["sh", "-c", "echo out; exit 5"]),
        raised(run, ["true"], stdin=-1, input=b""),
        raised(run, ["cat"], input=b"abc", capture_output=True, encoding="ascii"),
        raised(run, ["printf", "\\303"], capture_output=True, encoding="utf-8"),
    ]


# Pipelines


@scenario(bufsize=[None, -1], number=[False, True])
def a_pipeline(bufsize: int | None, number: bool) -> Any:
    first = lines(**options_of(bufsize, False))
    exited(first)
    second = subprocess.Popen(
        command("in:1000", "echo"), stdin=first.stdout.fileno() if number else first.stdout, stdout=-1
    )
    blocks = os.get_blocking(first.stdout.fileno())
    first.stdout.close()
    return blocks, second.communicate(), second.returncode, first.wait()


@scenario
def the_parent_reads_what_the_child_left() -> Any:
    first = lines()
    exited(first)
    done = subprocess.run(command("in:1000"), stdin=first.stdout)
    return done.returncode, first.communicate()


@scenario
def the_writer_of_a_pipeline_is_told_of_its_end() -> Any:
    first = subprocess.Popen(["yes"], stdout=-1)
    there(first.stdout, 4096)
    second = subprocess.Popen(["head", "-n1"], stdin=first.stdout, stdout=-1)
    first.stdout.close()
    return second.communicate(), first.wait()


@scenario(number=[False, True])
def an_output_into_another_childs_input(number: bool) -> Any:
    reader = subprocess.Popen(command("digest"), stdin=-1, stdout=-1)
    writer = subprocess.Popen(command("out:1000:1000:61"), stdout=reader.stdin.fileno() if number else reader.stdin)
    reader.stdin.close()
    return writer.wait(), reader.stdout.read(), reader.wait()


# os.write, sockets


@scenario
def writing_to_a_descriptor() -> Any:
    reader, writer = os.pipe()
    found: list[Any] = [
        os.write(writer, b"abc"),
        os.write(writer, bytearray(b"de")),
        os.write(writer, memoryview(b"f")),
    ]
    found += [outcome(os.write, writer, "text"), outcome(os.write, writer, b"")]
    found.append(os.read(reader, 100))
    with open(os.memfd_create("file"), "wb", 0) as file:
        found += [os.write(file.fileno(), LINES), os.lseek(file.fileno(), 0, os.SEEK_CUR)]
    os.close(writer)
    try:
        os.write(writer, b"abc")
    except OSError as error:
        found.append(error.errno == errno.EBADF)
    return found


@scenario(green=True)
def writing_to_a_full_pipe_waits() -> Any:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    found = []
    while (count := outcome(_write, writer, bytes(1 << 16))) != "raises BlockingIOError":
        found.append(count)
    greenlet = spawn(lambda: os.write(writer, LINES[:4096]))
    return found, len(os.read(reader, 1 << 16)), greenlet.wait(), os.read(reader, 1 << 16)


def _write(fd: int, data: bytes) -> int:
    from eventlet.patcher import original

    return original("os").write(fd, data)


@scenario(green=True)
def small_messages_of_many_are_whole() -> Any:
    import socket

    import eventlet

    one, two = socket.socketpair()
    writers = [eventlet.spawn(one.sendall, name * 500) for name in (b"a", b"b", b"c")]
    for writer in writers:
        writer.wait()
    one.close()
    return two.recv(10_000)
