"""Inflate gzip as it comes."""

import zlib
from collections.abc import Iterable, Iterator

_GZIP = 16 + zlib.MAX_WBITS


class BadGzip(Exception):
    """The data is not gzip, or its end is missing."""


def inflate(chunks: Iterable[bytes], most: int) -> Iterator[bytes]:
    """What the chunks hold, in chunks of ``most`` bytes or fewer: a small one may hold a thousand times as much.

    As with gzip(1) several members follow each other, and zeros after the last one do not count.

    :raises BadGzip: as soon as it is seen
    """
    inflater = zlib.decompressobj(_GZIP)
    #: nothing has come of the next member
    between = True
    members = 0
    for chunk in chunks:
        data = chunk
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
            if plain:
                yield plain
            data = inflater.unconsumed_tail
            if inflater.eof:
                data = inflater.unused_data
                inflater = zlib.decompressobj(_GZIP)
                between = True
                members += 1
            elif not data:
                # If it holds something back, the next chunk brings it out: a member ends after all of its data.
                break
    if not between or not members:
        raise BadGzip("the end is missing")
