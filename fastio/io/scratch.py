"""Scratch buffers for reads, from which the bytes are added to a result.

A reused buffer stays in the processor's cache, and its pages exist already. A new buffer of 1 MiB for each read would
cost 256 page faults. A buffer is lent for one read only, and never while other greenlets run: one buffer for each
native thread is enough.
"""

import contextlib
import functools
import mmap

#: Buffers kept for the next borrower. More than this many threads reading at the same instant allocate their own.
KEPT = 2

#: Where in its page a buffer begins. A large bytearray begins at 16: there, some processors with the flag ``fsrm`` take
#: up to ten times as long for a copy from the kernel's pages.
OFFSET = 64

_spare: list[memoryview] = []


def allocate(size: int) -> memoryview:
    """A writable buffer of ``size`` bytes to which the kernel copies fast; a forked child has its own copy of it."""
    try:
        pages = mmap.mmap(-1, OFFSET + size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        # The process may have as many mappings as the system allows. Without memory this raises MemoryError.
        return memoryview(bytearray(size))
    return memoryview(pages)[OFFSET:]


@functools.cache
def keep_freed(size: int) -> None:
    """Have the C library keep twice ``size`` bytes that were let go of, up to 64 MiB, for the next pieces of that data.

    glibc gives what is free at the end of its heap back to the system, once that is twice as much as the largest block
    that it has freed. The next pieces then cost a page fault for each 4 KiB. The block here is freed untouched.
    """
    with contextlib.suppress(MemoryError):
        bytes(size)


def borrow(size: int) -> memoryview:
    """A writable buffer of at least ``size`` bytes that is exclusive until it is given back."""
    try:
        # list.pop() and append() are atomic, which is all the locking that threads need here.
        buffer = _spare.pop()
    except IndexError:
        return allocate(size)
    return buffer if len(buffer) >= size else allocate(size)


def give_back(buffer: memoryview) -> None:
    """The borrower is done with ``buffer``."""
    if len(_spare) < KEPT:
        _spare.append(buffer)
