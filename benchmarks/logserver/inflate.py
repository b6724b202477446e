"""Inflate gzip as it comes."""

import zlib
from collections.abc import Iterable, Iterator

_GZIP = 16 + zlib.MAX_WBITS
#: Bytes that an inflater is given at once. It copies those that it leaves, which with members of a few bytes are nearly
#: all of them, again and again.
WINDOW = 1 << 10


class BadGzip(Exception):
    """The data is not gzip, or its end is missing."""


def inflate(chunks: Iterable[bytes], most: int) -> Iterator[bytes]:
    """What the chunks hold, in pieces of ``most`` bytes or fewer: a small one may hold a thousand times as much.

    After each window that was read there is a piece, an empty one if nothing has come out, so the work from one piece
    to the next is bounded. As with gzip(1) several members follow each other, and zeros after the last one do not
    count.

    :raises BadGzip: as soon as it is seen
    """
    inflater = zlib.decompressobj(_GZIP)
    #: nothing has come of the next member
    between = True
    members = 0
    for data in _windows(chunks):
        made = b""
        while True:
            if between:
                data = data.lstrip(b"\0") if members else data
                if not data:
                    break
                between = False
            try:
                plain = inflater.decompress(data, most)
            except zlib.error as error:
                raise BadGzip(str(error)) from error
            if len(made) + len(plain) > most:
                yield made
                made = b""
            made += plain
            data = inflater.unconsumed_tail
            if inflater.eof:
                data = inflater.unused_data
                inflater = zlib.decompressobj(_GZIP)
                between = True
                members += 1
            elif not data:
                # If it holds something back, the next window brings it out: a member ends after all of its data.
                break
        yield made
    if not between or not members:
        raise BadGzip("the end is missing")


def _windows(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), WINDOW):
            yield chunk[start : start + WINDOW]
