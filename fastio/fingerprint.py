"""Recognising upstream code.

The private code that fastio replaces changes without notice. Its bytecode is hashed and looked up
in ``fingerprints.json``, which ``python -m tests.fingerprints`` writes from upstream's releases. A
hash that is not there means code that nobody has read: the target is then left alone.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

#: Minor version of the running Python, the second key of the table: bytecode differs from one to the next.
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def fingerprint(code: CodeType) -> str:
    """Sixteen hexadecimal digits that stand for what ``code`` does; names of files and line numbers do not count."""
    digest = hashlib.sha256()
    _feed(digest, code)
    return digest.hexdigest()[:16]


def _feed(digest: Any, code: CodeType) -> None:
    digest.update(code.co_code + getattr(code, "co_exceptiontable", b""))
    digest.update(repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)).encode())
    for part in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
        digest.update(repr(part).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _feed(digest, constant)
        elif isinstance(constant, frozenset):
            digest.update(repr(sorted(map(repr, constant))).encode())
        else:
            digest.update(repr(constant).encode())


@lru_cache(maxsize=1)
def table() -> dict[str, dict[str, dict[str, str]]]:
    """``{"module:qualified.name": {python minor: {fingerprint: releases}}}``, as generated."""
    from importlib.resources import files

    return json.loads(files("fastio").joinpath("fingerprints.json").read_text(encoding="utf-8"))


def known_python(key: str) -> bool:
    """Whether the table has anything for ``key`` under the running Python."""
    return PYTHON in table().get(key, {})


def recognise(key: str, function: Any) -> str | None:
    """The upstream releases in which ``key`` has exactly this code, or None."""
    # type() and not isinstance(): a proxy around a function claims to be one.
    if type(function) is not FunctionType:
        return None
    return table().get(key, {}).get(PYTHON, {}).get(fingerprint(function.__code__))


def ordered(versions: Iterable[str]) -> list[str]:
    """Versions such as ``4.10.1``, the oldest first."""
    return sorted(versions, key=lambda version: [int(number) for number in version.split(".")])


def span(releases: str) -> str:
    """A list of releases as people read it: ``eventlet 0.34.3 to 0.41.3``."""
    listed = [release.rpartition(" ") for release in releases.split(", ")]
    name = listed[0][0]
    versions = ordered(version for _, _, version in listed)
    return f"{name} {versions[0]}" if len(versions) == 1 else f"{name} {versions[0]} to {versions[-1]}"
