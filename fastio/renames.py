"""Patches that have been renamed: their old names go on working wherever the name of a patch can be given."""

import sys
import warnings
from types import FrameType

#: The present name of each patch that had another one before.
RENAMED = {
    "fix_green_sendall": "green_sendall",
    "fix_green_wsgi_chunked": "green_wsgi_chunked",
    "fix_s3_client": "s3_client",
    "fix_s3_singlepart": "s3_singlepart",
    "store_chunks": "image_chunks",
    "store_fairness": "image_fairness",
    "store_hashing": "image_hashing",
}

_warned: set[str] = set()


def current(name: str) -> str:
    """The present name of the patch; ``name`` itself if it is not an old one. The first use of an old name warns."""
    new = RENAMED.get(name)
    if new is None:
        return name
    if name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"fastio: the patch {name!r} is now called {new!r}; the old name is deprecated",
            DeprecationWarning,
            stacklevel=_callers_level(),
        )
    return new


def _callers_level() -> int:
    """The ``stacklevel`` for :func:`current` that names the line of the program which called fastio."""
    level = 2
    frame = sys._getframe(level)
    # A with statement comes by way of contextlib.
    while frame.f_back is not None and _package(frame) in ("fastio", "contextlib"):
        level += 1
        frame = frame.f_back
    return level


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]
