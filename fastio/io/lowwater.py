"""Reading a large chunk from a socket without being woken for each piece of it.

A peer sends what it has, often pieces of 64 KiB, and the reader wakes up for each piece. Natively this is a system
call, and under eventlet a trip through the hub. With a low-water mark (``SO_RCVLOWAT`` in socket(7)), the kernel
gathers as much as was asked for and wakes the reader once. It never waits for more than its buffer can take:
``tcp_set_rcvlowat`` enlarges the buffer, and a full buffer is readable whatever the mark is. An end or an error of the
connection wakes the reader at once. A mark beyond the last byte of a message would wait for ever, so none is set near
the end.
"""

import socket
from collections.abc import Callable
from typing import Any

#: Below it the two system calls that set the mark and take it back are not worth it, in bytes.
LEAST = 128 * 1024
#: In bytes, from a sweep of 256 KiB to 1 MiB: with more, what is gathered has left the processor's cache when it is
#: read, and the peer waits for room meanwhile.
MOST = 512 * 1024
#: Bytes that the reader's own buffers may have taken already or take beyond the chunk: io's 8 KiB twice, and room.
RESERVE = 64 * 1024


def mark(size: int, left: int) -> int:
    """The mark in bytes for a read of ``size`` of the ``left`` bytes of a message; 0 where there is to be none."""
    wanted = min(size, MOST)
    return wanted if wanted >= LEAST and left - size - RESERVE >= wanted else 0


def read(sock: Any, move: Callable[[int], bytes], size: int, left: int) -> bytes:
    """``move(size)``, which reads so many bytes from ``sock``, with as few wake-ups as the kernel can do with.

    :param sock: a connected socket without a time-out: one that runs from piece to piece would run out
    :param left: bytes of the message that ``move`` has not returned yet
    """
    wanted = mark(size, left)
    before = swap(sock, wanted) if wanted else None
    try:
        return move(size)
    finally:
        if before is not None:
            swap(sock, before)


def swap(sock: Any, wanted: int) -> int | None:
    """Set the mark; returns the one before, which whoever reads on must have again.

    None where the socket has no mark, or has been closed.
    """
    try:
        before = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)
    except OSError:
        return None
    return before
