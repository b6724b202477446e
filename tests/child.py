"""The child process of the tests: it does what its arguments say, one after the other.

``command("out:100000:4096:6162", "in:10", "exit:3")`` is a command line that writes 100,000 bytes of ``ababab…`` to
stdout, 4,096 at a time, reads 10 bytes of stdin and exits with 3. Data are a pattern, given in hexadecimal, repeated to
the size wanted; :func:`pattern` makes one whose length is a prime, so that a lost or doubled chunk shows.

It is started without site-packages and imports next to nothing, for there are thousands of them.
"""

from __future__ import annotations

import os
import posix
import signal
import sys

if False:  # typing.TYPE_CHECKING, without the time that importing typing takes
    from collections.abc import Callable
    from typing import Any

#: Options of a Popen: all its streams are pipes, or its outputs are.
PIPES: dict[str, Any] = {"stdin": -1, "stdout": -1, "stderr": -1}
OUTPUTS: dict[str, Any] = {"stdout": -1, "stderr": -1}
MIB = 1 << 20
#: More than any pipe holds without being enlarged, and odd.
BIG = 3_000_001

#: The exit status where the written data has no reader any more.
BROKEN_PIPE = 90
_PATTERN = 997


def dump(path: os.PathLike[str]) -> list[str]:
    """A command that writes the file to its stdout, 1 MiB at a time.

    A write is in the pipe as a whole before a read can see it, as far as there is room: how many reads it takes at most
    does not depend on who is faster, as it does with cat, which writes 128 KiB at a time.
    """
    return ["dd", f"if={os.fspath(path)}", "bs=1M", "status=none"]


def command(*steps: str) -> list[str]:
    """The command line of a child that does ``steps``."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), *steps]


def pattern(seed: int) -> bytes:
    """997 bytes that differ from those of any other seed."""
    import random

    return random.Random(seed).randbytes(_PATTERN)


def data(seed: int, size: int) -> bytes:
    """The output of ``out(seed, size)``."""
    return tile(pattern(seed), size)


def out(seed: int, size: int, piece: int = 65536, to: str = "out") -> str:
    """The step that writes ``data(seed, size)``, to stdout or with ``to="err"`` to stderr."""
    return f"{to}:{size}:{piece}:{pattern(seed).hex()}"


def err(seed: int, size: int, piece: int = 65536) -> str:
    """The step that writes ``data(seed, size)`` to stderr."""
    return out(seed, size, piece, "err")


def digest(payload: bytes) -> bytes:
    """The output of the step ``digest`` on ``payload``."""
    import hashlib

    return f"{len(payload)} {hashlib.sha256(payload).hexdigest()}".encode()


def tile(pattern: bytes, size: int) -> bytes:
    """``pattern`` repeated to ``size`` bytes."""
    return (pattern * (size // len(pattern) + 1))[:size] if size else b""


def _write(fd: int, view: memoryview, piece: int) -> None:
    start = 0
    while start < len(view):
        try:
            start += os.write(fd, view[start : start + piece])
        except BrokenPipeError:
            os._exit(BROKEN_PIPE)


def _read(size: int) -> bytes:
    """``size`` bytes of stdin, or what there is until its end; all of it if negative."""
    chunks = []
    while size != 0:
        chunk = os.read(0, 65536 if size < 0 else min(size, 65536))
        if not chunk:
            break
        chunks.append(chunk)
        size -= len(chunk) if size > 0 else 0
    return b"".join(chunks)


def _grandchild(gate: int) -> None:
    """Another process that keeps every pipe of ours open until the gate opens."""
    if os.fork() == 0:
        os.read(gate, 1)
        os._exit(0)


def _settled(pid: int) -> None:
    """Return when the process has slept whenever it was looked at for a while: it waits, and is not just held up."""
    import time

    sleeping = 0
    while sleeping < 20:
        time.sleep(0.02)
        with open(f"/proc/{pid}/stat") as file:
            state = file.read().rpartition(") ")[2][0]
        sleeping = sleeping + 1 if state == "S" else 0


def _do(step: str) -> None:
    name, *words = step.split(":")
    if name in ("out", "err"):
        size, piece, text = words
        _write({"out": 1, "err": 2}[name], memoryview(tile(bytes.fromhex(text), int(size))), int(piece))
    elif name == "in":
        _read(int(words[0]))
    elif name == "echo":
        while chunk := os.read(0, 65536):
            _write(1, memoryview(chunk), 65536)
    elif name == "digest":
        _write(1, memoryview(digest(_read(-1))), 1000)
    elif name == "close":
        os.close(int(words[0]))
    elif name == "sleep":
        import time

        time.sleep(float(words[0]))
    elif name == "gate":
        os.read(int(words[0]), 1)
    elif name == "tell":
        os.write(int(words[0]), b"!")
    elif name == "grandchild":
        _grandchild(int(words[0]))
    elif name == "blocking":
        _write(1, memoryview(str(os.get_blocking(int(words[0]))).encode()), 100)
    elif name == "settled":
        _settled(os.getppid())
    elif name == "interrupt":
        os.kill(os.getppid(), signal.SIGINT)
    elif name == "kill":
        if int(words[0]) != signal.SIGKILL:
            signal.signal(int(words[0]), signal.SIG_DFL)
        os.kill(os.getpid(), int(words[0]))
    elif name == "exit":
        os._exit(int(words[0]))
    else:
        raise ValueError(step)


class Gate:
    """Two pipes by which a test and its child tell each other how far they are.

    Popen needs ``pass_fds=gate.fds``; the child's steps are :attr:`wait` and :attr:`tell`.
    """

    def __init__(self) -> None:
        self._wait, self._open = os.pipe()
        self._told, self._tell = os.pipe()
        self.fds = (self._wait, self._tell)
        #: the step that waits until the test calls :meth:`open`
        self.wait = f"gate:{self._wait}"
        #: the step after which :meth:`reached` returns
        self.tell = f"tell:{self._tell}"
        #: the step that leaves a process behind which holds the child's pipes until :meth:`open`
        self.grandchild = f"grandchild:{self._wait}"

    def reached(self, yield_: Callable[[], object] | None = None) -> None:
        """Wait until the child has done the step :attr:`tell`; ``yield_`` lets others run meanwhile."""
        os.set_blocking(self._told, yield_ is None)
        while True:
            try:
                assert posix.read(self._told, 1) == b"!"
            except BlockingIOError:
                yield_()  # type: ignore[misc]
            else:
                return

    def open(self) -> None:
        """Let one child go on that waits."""
        os.write(self._open, b"!")

    def close(self) -> None:
        """Let all of them go on."""
        for fd in (self._wait, self._open, self._told, self._tell):
            os.close(fd)

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        _do(argument)
