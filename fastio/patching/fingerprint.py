"""Recognising upstream code.

The private code that fastio replaces changes without notice. Its bytecode and the defaults of its
arguments are hashed and looked up in ``fingerprints.json``, which ``python -m benchmarks.tools.fingerprints``
writes from upstream's releases. A hash that is not there means code that nobody has read: the
target is then left alone.

Only :mod:`fastio.patching.hooks` looks code up, for the functions that a target declares.
"""

from __future__ import annotations

import dis
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, NamedTuple

#: Minor version of the running Python, the second key of the table: bytecode differs from one to the next.
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


class Defaults(NamedTuple):
    """The defaults of a function's arguments, as :func:`spell` has each of them."""

    positional: Sequence[str] = ()
    #: of keyword-only arguments, by name
    keyword: Mapping[str, str] = {}


#: Stands for a default that is not a plain value. The writer of the table reads sources and can not know it.
NOT_PLAIN = "<object>"


def spell(value: Any) -> str:
    """A plain value as source code has it, ``NOT_PLAIN`` for any other; nothing foreign is called for that."""
    if value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str, bytes):
        return repr(value)
    if type(value) is tuple:
        return f"({', '.join(map(spell, value))})"
    return NOT_PLAIN


def fingerprint(function: FunctionType) -> str:
    """Sixteen hexadecimal digits that stand for what ``function`` does.

    Names of files and line numbers do not count.
    """
    keyword = {name: spell(value) for name, value in (function.__kwdefaults__ or {}).items()}
    return digest(function.__code__, Defaults(tuple(map(spell, function.__defaults__ or ())), keyword))


def digest(code: CodeType, defaults: Defaults) -> str:
    """The fingerprint of a function with this code and these defaults."""
    hashed = hashlib.sha256()
    _feed(hashed, code)
    hashed.update(repr((tuple(defaults.positional), sorted(defaults.keyword.items()))).encode())
    return hashed.hexdigest()[:16]


def _feed(hashed: Any, code: CodeType) -> None:
    has_line = "__firstlineno__" in code.co_names
    hashed.update((b"" if has_line else code.co_code) + getattr(code, "co_exceptiontable", b""))
    hashed.update(repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)).encode())
    for part in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
        hashed.update(repr(part).encode())
    if has_line:
        _feed_class_body(hashed, code)
        return
    for constant in code.co_consts:
        _feed_constant(hashed, constant)


def _feed_class_body(hashed: Any, code: CodeType) -> None:
    """The instructions of a class body from Python 3.13 on.

    It stores the line on which it starts, as a constant that it may use for something else as well, and the names of
    attributes that its methods set, in any order.
    """
    instructions = list(dis.get_instructions(code))
    for instruction, following in zip(instructions, [*instructions[1:], None], strict=True):
        stored = following.argval if following is not None and following.opname == "STORE_NAME" else None
        if stored == "__firstlineno__":
            continue
        hashed.update(instruction.opname.encode())
        value = instruction.argval
        _feed_constant(hashed, sorted(value) if stored == "__static_attributes__" else value)


def _feed_constant(hashed: Any, constant: Any) -> None:
    if isinstance(constant, CodeType):
        _feed(hashed, constant)
    elif isinstance(constant, frozenset):
        hashed.update(repr(sorted(map(repr, constant))).encode())
    else:
        hashed.update(repr(constant).encode())


@lru_cache(maxsize=1)
def table() -> dict[str, dict[str, dict[str, str]]]:
    """``{"module:qualified.name": {python minor: {fingerprint: releases}}}``, as generated."""
    from importlib.resources import files

    return json.loads(files("fastio.patching").joinpath("fingerprints.json").read_text(encoding="utf-8"))


def known_python(key: str) -> bool:
    """Whether the table has anything for ``key`` under the running Python."""
    return PYTHON in table().get(key, {})


def recognise(key: str, function: Any) -> str | None:
    """The upstream releases in which ``key`` has exactly this code, or None."""
    # type() and not isinstance(): a proxy around a function claims to be one.
    if type(function) is not FunctionType:
        return None
    return table().get(key, {}).get(PYTHON, {}).get(fingerprint(function))


def ordered(versions: Iterable[str]) -> list[str]:
    """Versions such as ``4.10.1``, the oldest first."""
    return sorted(versions, key=lambda version: [int(number) for number in version.split(".")])


def span(releases: str) -> str:
    """A list of releases as people read it: ``eventlet 0.34.3 to 0.41.3``."""
    listed = [release.rpartition(" ") for release in releases.split(", ")]
    name = listed[0][0]
    versions = ordered(version for _, _, version in listed)
    return f"{name} {versions[0]}" if len(versions) == 1 else f"{name} {versions[0]} to {versions[-1]}"
