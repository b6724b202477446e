"""The installed versions of distributions, as importlib.metadata tells them.

importlib.metadata brings the package email with it, which takes longer to import than most of fastio. So the usual
places are looked at here, and it is asked where there is anything unusual.
"""

import os
import re
import sys
from functools import cache
from importlib.machinery import PathFinder


@cache
def version(distribution: str) -> str | None:
    """The installed version, None if there is none."""
    try:
        return _version(re.sub(r"[-_.]+", "_", distribution).lower())
    except _UnusualError:
        return _ask(distribution)


class _UnusualError(Exception):
    """Only importlib.metadata can tell."""


def _ask(distribution: str) -> str | None:
    import importlib.metadata

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _version(name: str) -> str | None:
    """The version of the distribution with that normalized name.

    :raises _UnusualError: if it takes more than reading a file in a directory of sys.path
    """
    if any(finder is not PathFinder and hasattr(finder, "find_distributions") for finder in sys.meta_path):
        raise _UnusualError
    for path in (path for path in sys.path if isinstance(path, str)):
        found = _directories(path or ".").get(name, ())
        if len(found) > 1:
            raise _UnusualError
        if found:
            return _read(os.path.join(path, found[0]))
    return None


def _directories(path: str) -> dict[str, list[str]]:
    """The directories of metadata in a directory of sys.path, by the normalized name of the distribution."""
    try:
        changed = os.stat(path).st_mtime_ns
    except OSError:
        return {}
    try:
        return _listed(path, changed)
    except OSError:
        raise _UnusualError from None


@cache
def _listed(path: str, _changed: int) -> dict[str, list[str]]:
    if path.lower().rstrip("/").endswith(".egg"):
        raise _UnusualError
    found: dict[str, list[str]] = {}
    for entry in os.listdir(path):
        stem, dot, ending = entry.lower().rpartition(".")
        if ending in ("dist-info", "egg-info"):
            found.setdefault(re.sub(r"[-_.]+", "_", stem.partition("-")[0]), []).append(entry)
    return found


def _read(path: str) -> str:
    """The version that the headers of the metadata in this directory have."""
    for name in ("METADATA", "PKG-INFO", ""):
        try:
            with open(os.path.join(path, name) if name else path, encoding="utf-8") as file:
                for line in file:
                    header, colon, value = line.partition(":")
                    if not colon or not line.strip():
                        break
                    if header.lower() == "version":
                        return value.strip()
            break
        except OSError:
            continue
    raise _UnusualError
