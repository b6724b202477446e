"""Scratch buffers for reads, from which the bytes are added to a result.

A reused buffer stays in the processor's cache, and its pages exist already. A new buffer of 1 MiB for each read would
cost 256 page faults. A buffer is lent for one read only, and never while other greenlets run: one buffer for each
native thread is enough.
"""

#: Buffers kept for the next borrower. More than this many threads reading at the same instant allocate their own.
KEPT = 2

_spare: list[memoryview] = []


def borrow(size: int) -> memoryview:
    """A writable buffer of at least ``size`` bytes that is exclusive until it is given back."""
    try:
        # list.pop() and append() are atomic, which is all the locking that threads need here.
        buffer = _spare.pop()
    except IndexError:
        return memoryview(bytearray(size))
    return buffer if len(buffer) >= size else memoryview(bytearray(size))


def give_back(buffer: memoryview) -> None:
    """The borrower is done with ``buffer``."""
    if len(_spare) < KEPT:
        _spare.append(buffer)
