"""Recognising upstream code.

The private code that fastio replaces changes without notice. Its bytecode and the defaults of its
arguments are hashed and looked up in ``fingerprints.json``, which ``python -m benchmarks.tools.fingerprints``
writes from upstream's releases. A hash that is not there means code that nobody has read: the
target is then left alone.

Only :mod:`fastio.patching.hooks` looks code up, for the functions that a target declares.
"""

import importlib
import sys
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from types import CodeType, FunctionType
from typing import Any, NamedTuple


class Defaults(NamedTuple):
    """The defaults of a function's arguments, as :func:`spell` has each of them."""

    positional: Sequence[str] = ()
    #: of keyword-only arguments, by name
    keyword: Mapping[str, str] = {}


#: Stands for a default that is not a plain value. The writer of the table reads sources and cannot know it.
NOT_PLAIN = "<object>"

#: The hash of code that was asked for. Code does not change, and every look at the patches asks for the same.
_hashed: weakref.WeakKeyDictionary[CodeType, Any] = weakref.WeakKeyDictionary()


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
    return digest(function.__code__, defaults(function))


def defaults(function: FunctionType) -> Defaults:
    """The defaults that the function has now."""
    keyword = {name: spell(value) for name, value in (function.__kwdefaults__ or {}).items()}
    return Defaults(tuple(map(spell, function.__defaults__ or ())), keyword)


@cache
def _sha256() -> Any:
    """As of hashlib, which loads OpenSSL, and takes longer to import than all that is hashed here."""
    try:
        return importlib.import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:
        # A Python that was built without it has OpenSSL's.
        return importlib.import_module("hashlib").sha256


def digest(code: CodeType, defaults: Defaults) -> str:
    """The fingerprint of a function with this code and these defaults."""
    hashed = _hashed.get(code)
    if hashed is None:
        hashed = _sha256()()
        _feed(hashed, code)
        _hashed[code] = hashed
    return with_defaults(hashed.copy(), defaults)


def with_defaults(hashed: Any, defaults: Defaults) -> str:
    """The fingerprint of what has been hashed of a function, with the defaults of its arguments."""
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
    import dis

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
