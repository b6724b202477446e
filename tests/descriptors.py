"""The descriptors of a process: whether any stays open, and who gets the number of one that was closed."""

import contextlib
import fcntl
import gc
import os
import posix
import struct
import termios
from collections.abc import Callable, Iterator
from typing import Any


def descriptors() -> set[tuple[int, int, int]]:
    """Number, device and inode of every descriptor.

    A descriptor that is there afterwards and was not before was left open. The reverse means nothing: the garbage
    collector may close what an earlier test, or the hub of a thread that has ended, had left, at any time.
    """
    found = set()
    for name in os.listdir("/proc/self/fd"):
        # The descriptor of the listing itself is closed by now.
        with contextlib.suppress(OSError):
            status = os.fstat(int(name))
            found.add((int(name), status.st_dev, status.st_ino))
    return found


def unread(fd: int) -> int:
    """How many bytes wait in a pipe or a socket."""
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]


@contextlib.contextmanager
def forgotten(opens: Callable[[], int]) -> Iterator[Any]:
    """A greenlet that waits for a file which was closed without the hub's knowledge, and returns the hub's answer.

    :param opens: opens something, closes it again, and returns the number that it had: the file's was the same
    """
    import eventlet
    from eventlet import hubs

    def wait(fd: int) -> Any:
        try:
            return hubs.trampoline(fd, read=True)
        except hubs.IOClosed as error:
            return type(error)

    # The next open file gets the lowest number: files left by earlier tests may not be closed from here on.
    eventlet.sleep(0)
    gc.collect()
    collects = gc.isenabled()
    gc.disable()
    reader, writer = os.pipe()
    number = opens()
    os.dup2(reader, number)
    # epoll knows files: this must have been the file's only descriptor, and its number may not become free.
    os.dup2(writer, reader)
    waiting = eventlet.spawn(wait, number)
    eventlet.sleep(0)
    posix.close(number)
    try:
        yield waiting
    finally:
        if collects:
            gc.enable()
        waiting.kill()
        posix.close(reader)
        posix.close(writer)


def recycled(fd: int, end: int = 0) -> tuple[int, int]:
    """A pipe of which one end, 0 or 1, has the number ``fd``, which is closed; eventlet's hub knows of both.

    The system gives the lowest numbers that are free, and there may be lower ones.
    """
    from eventlet import hubs

    ends = list(os.pipe())
    if ends[end] != fd:
        if fd in ends:
            # The other end has it and makes way.
            ends[1 - end] = os.dup(fd)
        os.dup2(ends[end], fd, inheritable=False)
        os.close(ends[end])
        ends[end] = fd
    for each in ends:
        hubs.notify_opened(each)
    return ends[0], ends[1]
