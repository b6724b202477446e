"""Poly1305 of OpenSSL 3, which recognises data that went by before, at many times the rate of a digest.

With a secret key, two different messages of 4 MiB have the same tag with a probability below 2**-80,
whoever chose them. The key is this process's own, and neither it nor a tag ever leaves the process.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

_SIZE = 16
_KEY = os.urandom(32)

Authenticate = Callable[[Sequence[bytes]], bytes]


@functools.cache
def poly1305() -> Authenticate | None:
    """Return the function that tags data; None where OpenSSL lacks it: before release 3, or with FIPS only.

    Also None where Python has no ctypes. The function returns no bytes if OpenSSL fails.
    """
    try:
        import _hashlib
        import ctypes
        from ctypes import c_char_p, c_int, c_size_t, c_void_p

        # OpenSSL as hashlib has it: what a library depends on is searched, too.
        library = ctypes.CDLL(_hashlib.__file__)
        new, free, init, update, final = (
            _function(library, f"EVP_MAC_{name}", result, *arguments)
            for name, result, arguments in (
                ("CTX_new", c_void_p, (c_void_p,)),
                ("CTX_free", None, (c_void_p,)),
                ("init", c_int, (c_void_p, c_char_p, c_size_t, c_void_p)),
                ("update", c_int, (c_void_p, c_char_p, c_size_t)),
                ("final", c_int, (c_void_p, c_char_p, c_void_p, c_size_t)),
            )
        )
        algorithm = _function(library, "EVP_MAC_fetch", c_void_p, c_void_p, c_char_p, c_char_p)(None, b"POLY1305", None)
    except (ImportError, AttributeError, OSError):
        return None
    if not algorithm:
        return None

    def authenticate(pieces: Sequence[bytes]) -> bytes:
        tag = ctypes.create_string_buffer(_SIZE)
        context = new(algorithm)
        try:
            made = init(context, _KEY, len(_KEY), None)
            made = made and all(update(context, piece, len(piece)) for piece in pieces)
            return tag.raw if made and final(context, tag, None, _SIZE) else b""
        finally:
            free(context)

    return authenticate


def _function(library: Any, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function
