"""The child of a fuzzed program: ``child.py INDEX STEP…`` does its steps, one after the other.

It is started by path, without site-packages, and imports next to nothing: there are thousands of them. It keeps in step
with the worker through named pipes in its working directory, so that it inherits nothing but its standard streams:
``tell.I`` says that it has come to a ``sync`` step, ``gate.I`` lets it go on. Its input and findings go to the file
``report.I``.

========================  ==============================================================================================
``out:N:HEX``, ``err:…``  writes N bytes of the pattern to stdout or stderr
``in:N``                  reads N bytes of stdin, or until its end if N is -1, and reports how many and their checksum
``echo:N``                the same, and writes them to stdout
``sync``                  reports that it is here, and waits until it is let go on
``close:FD``              closes one of its standard streams
``grandchild:FDS``        leaves a process behind that holds these of its streams (digits) until it is released
``capacity:FD``           reports the size of a pipe
``packets:FD``            makes a pipe one of packets, as ``dd oflag=direct`` does
``exit:N``, ``kill:SIG``  ends
========================  ==============================================================================================

Each of its writes is one piece; nothing else is to be seen of it. A step that fails ends it
without a word, as a traceback comes in as many pieces as there are lines.
"""

import _signal
import binascii
import posix
import sys

#: Seconds after which a forgotten child ends.
_LIFE = 120
#: The exit status when the pipe has no reader any more.
_BROKEN_PIPE = 90
#: The exit status where a step fails, such as one that reads a stream that is closed.
_FAILED = 94
_F_GETPIPE_SZ, _F_SETFL = 1032, 4


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[posix.write(fd, view) :]
        except BrokenPipeError:
            posix._exit(_BROKEN_PIPE)
        except BlockingIOError:
            # As most programs do, it stops then.
            _report("EAGAIN on write")
            posix._exit(91)


def _read(size: int, echo: bool) -> None:
    length, checksum, kept = 0, 0, b""
    while size:
        try:
            data = posix.read(0, 65536 if size < 0 else min(size, 65536))
        except BlockingIOError:
            _report("EAGAIN on read")
            posix._exit(92)
        if not data:
            break
        length += len(data)
        checksum = binascii.crc32(data, checksum)
        if size > 0:
            size -= len(data)
        if echo and size < 0:
            _write(1, data)
        elif echo:
            kept += data
    if kept:
        _write(1, kept)
    _report(f"in {length} {checksum:08x}")


def _report(text: str) -> None:
    fd = posix.open(f"report.{sys.argv[1]}", posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o600)
    posix.write(fd, text.encode() + b"\n")
    posix.close(fd)


def _sync() -> None:
    try:
        told = posix.open(f"tell.{sys.argv[1]}", posix.O_WRONLY | posix.O_NONBLOCK)
    except OSError:
        # The worker is gone.
        posix._exit(93)
    posix.write(told, b"!")
    posix.close(told)
    _wait(f"gate.{sys.argv[1]}")


def _wait(name: str) -> None:
    # Without O_NONBLOCK it would wait for a writer for ever, if the worker has gone.
    fd = posix.open(name, posix.O_RDONLY | posix.O_NONBLOCK)
    posix.set_blocking(fd, True)
    posix.read(fd, 1)
    posix.close(fd)


def _grandchild(holds: str) -> None:
    if posix.fork():
        return
    _signal.alarm(_LIFE)
    for fd in (0, 1, 2):
        if str(fd) not in holds:
            _close(fd)
    _wait("hold")
    posix._exit(0)


def _fcntl(fd: int, command: int, *value: int) -> None:
    import fcntl

    try:
        answer: object = fcntl.fcntl(fd, command, *value)
    except OSError as error:
        answer = error
    _report(f"{'packets' if value else 'capacity'} {answer}")


def _close(fd: int) -> None:
    try:
        posix.close(fd)
    except OSError:
        pass


def _put(fd: int, size: int, pattern: bytes) -> None:
    _write(fd, (pattern * (size // len(pattern) + 1))[:size])


def _kill(number: int) -> None:
    if number != _signal.SIGKILL:
        _signal.signal(number, _signal.SIG_DFL)
    posix.kill(posix.getpid(), number)


_STEPS = {
    "out": lambda size, pattern: _put(1, int(size), bytes.fromhex(pattern)),
    "err": lambda size, pattern: _put(2, int(size), bytes.fromhex(pattern)),
    "in": lambda size: _read(int(size), False),
    "echo": lambda size: _read(int(size), True),
    "sync": _sync,
    "close": lambda fd: _close(int(fd)),
    "grandchild": _grandchild,
    "capacity": lambda fd: _fcntl(int(fd), _F_GETPIPE_SZ),
    "packets": lambda fd: _fcntl(int(fd), _F_SETFL, posix.O_WRONLY | posix.O_DIRECT),
    "exit": lambda status: posix._exit(int(status)),
    "kill": lambda number: _kill(int(number)),
}


def _main() -> None:
    _signal.alarm(_LIFE)
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    try:
        for argument in sys.argv[2:]:
            name, *words = argument.split(":")
            _STEPS[name](*words)  # type: ignore[operator]
    except BaseException:
        posix._exit(_FAILED)
    posix._exit(0)


if __name__ == "__main__":
    _main()
