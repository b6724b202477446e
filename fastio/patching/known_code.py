"""Which of upstream's code fastio knows, and what a wrapper relies on in code that it need not know.

The private code that fastio replaces changes without notice, so its source is hashed and looked up in
``fingerprints.json``, which ``python -m benchmarks.tools.fingerprints`` writes from upstream's releases. A hash that is
not there means unread code: the target is then left alone, unless the setting ``accept_code`` has it.
Of a function that goes on running, a patch declares the parameters and the names that it relies on, see :class:`Uses`.

Only :mod:`fastio.patching.hooks` looks code up, for the functions that a target declares.
"""

# The nodes of syntax trees alone: ast, as hashlib and linecache, takes longer to import than what is done here.
import _ast as ast
import importlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, TypeGuard

from fastio import config
from fastio.patching import distributions

#: In the name of a Python whose threads run without the global interpreter lock, as in ``python3.14t``.
FREE_THREADED = "t"
#: Minor version of the running Python.
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}{FREE_THREADED if FREE_THREADED in sys.abiflags else ''}"
#: The name of the standard library in the table.
CPYTHON = "CPython"
#: How code is recognised: by its hash, by an entry of the setting, by the parameters and names that are used.
SOURCE, ACCEPTED, USES = "source", "accept_code", "uses"

Function = ast.FunctionDef | ast.AsyncFunctionDef
#: The defaults of positional arguments, and of keyword-only ones by name, each as :func:`plain` has it.
Defaults = tuple[Sequence[str], dict[str, str]]
#: Flags of code: variable positional and keyword arguments, generators, and all that is called or iterated otherwise.
_VARARGS, _VARKEYWORDS, _GENERATOR, _KIND = 0x4, 0x8, 0x20, 0x20 | 0x80 | 0x200
#: Those that an import from ``__future__`` sets.
_FUTURE = 0x1FE0000
#: Fields of nodes that do not change what a function does, or that only some versions of Python have.
_IGNORED = frozenset({"annotation", "returns", "type_comment", "type_params", "kind", "ctx"})
#: Stands for a default that is not a plain value.
NOT_PLAIN = "<object>"


class Uses(NamedTuple):
    """The parts of a function that a target relies on while it goes on running; that of a bare one has to be known."""

    #: its parameters as in a ``def`` without annotations, ``*_`` for any further ones; None: the code has to be known
    parameters: str | None = None
    #: names that its code has, separated by spaces: variables, attributes, arguments by keyword. It is a generator
    #: exactly if ``yield`` is one of them
    names: str = ""
    #: the Pythons in which upstream has the function, such as ``>= 3.15``
    python: str = ""


#: The code has to be known.
KNOWN = Uses()


class Known(NamedTuple):
    """Code that is known, or has what is used."""

    #: how it was recognised: one of ``SOURCE``, ``ACCEPTED`` and ``USES``
    by: str
    #: upstream's releases that have it, such as ``eventlet 0.37.0 0.38.2``; empty if it only has what is used
    releases: str = ""
    #: the entry of ``accept_code``, if that has it
    accepted: str = ""


@cache
def table() -> dict[str, dict[str, str]]:
    """``{"module:qualified.name": {hash: releases}}``, as generated; releases are ``eventlet 0.37.0 0.38.2``."""
    # Imported when it is wanted, for code that is replaced.
    import json

    # It may be in an archive.
    loader: Any = sys.modules[__name__].__loader__
    return json.loads(loader.get_data(os.path.join(os.path.dirname(__file__), "fingerprints.json")))


@cache
def known_pythons() -> set[str]:
    """The minor versions of Python of which a release is in the table."""
    known = (text.split(" ") for of_key in table().values() for text in of_key.values())
    return {version.rpartition(".")[0] for name, *versions in known if name == CPYTHON for version in versions}


def releases(key: str) -> dict[str, list[str]]:
    """``{distribution: versions}`` of which the code of ``key`` is known, the oldest first."""
    found: dict[str, set[str]] = {}
    for text in table().get(key, {}).values():
        name, *versions = text.split(" ")
        found.setdefault(name, set()).update(versions)
    return {name: ordered(versions) for name, versions in found.items()}


def recognise(key: str, function: FunctionType) -> Known | None:
    """How the function is known as ``key``; None if it is not."""
    hashed = hash_of(function)
    known = table().get(key, {}).get(hashed or "")
    if known is not None:
        return Known(SOURCE, known)
    entry = f"{key}@{hashed}"
    return Known(ACCEPTED, _nearest(key), entry) if entry in accepted() else None


def accepted() -> tuple[str, ...]:
    """The entries of ``accept_code`` in force, each ``key@hash``."""
    settings = config.in_force()
    return settings.accept_code if settings is not None and settings.enabled else ()


def _nearest(key: str) -> str:
    """The newest known release that is not newer than the installed one; if there is none, the oldest."""
    ((name, versions),) = releases(key).items()
    installed = sys.version.partition(" ")[0] if name == CPYTHON else distributions.version(name) or ""
    older = [version for version in versions if ordered([version, installed])[0] == version]
    return f"{name} {(older or versions[:1])[-1]}"


def ordered(versions: Iterable[str]) -> list[str]:
    """Versions such as ``4.10.1`` or ``4.10.1+2.deb13u1``, the oldest first."""
    return sorted(versions, key=lambda version: [int(number) for number in re.findall(r"\d+", version)])


def span(releases: str) -> str:
    """Releases as people read them: ``eventlet 0.34.3 to 0.41.3``."""
    name, *versions = releases.split(" ")
    return f"{name} {versions[0]}" if len(versions) == 1 else f"{name} {versions[0]} to {versions[-1]}"


# The hash of a source. Two compilers can make different bytecode of the same source, so the syntax tree is hashed,
# which all compilers share.


#: The texts of trees that were asked for. Code does not change, and every look at the patches asks for the same.
_spelled: dict[CodeType, str] = {}


def hash_of(function: FunctionType) -> str | None:
    """Sixteen hexadecimal digits that stand for what the function does; None without a source that it is made of."""
    spelled = _spelled.get(function.__code__)
    if spelled is None:
        node = source(function)
        if node is None:
            return None
        spelled = _spelled[function.__code__] = spell(node)
    return hash_tree(spelled, defaults(function))


def spell(node: Function) -> str:
    """A function's syntax tree as text, without the defaults of its arguments and without the docstring."""
    arguments = ast.arguments(**{**dict(_fields(node.args)), "defaults": [], "kw_defaults": []})
    return f"{type(node).__name__}({_spell(arguments)},{_spell(_without_docstring(node.body))})"


def hash_tree(spelled: str, defaults: Defaults) -> str:
    """The hash of a function with that syntax tree and these defaults."""
    positional, keyword = defaults
    return _sha256()((spelled + repr((tuple(positional), sorted(keyword.items())))).encode()).hexdigest()[:16]


@cache
def _sha256() -> Any:
    """As of hashlib, which loads OpenSSL."""
    try:
        return importlib.import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    except ImportError:
        # A Python that was built without it has OpenSSL's.
        return importlib.import_module("hashlib").sha256


def defaults(function: FunctionType) -> Defaults:
    """The defaults that the function's arguments have now; nothing foreign is called for that."""
    keyword = {name: plain(value) for name, value in (function.__kwdefaults__ or {}).items()}
    return [plain(value) for value in function.__defaults__ or ()], keyword


def plain(value: Any) -> str:
    """A plain value as source code has it, the same text for any other."""
    if value is None or value is Ellipsis or type(value) in (bool, int, float, complex, str, bytes):
        return repr(value)
    if type(value) is tuple:
        return f"({', '.join(map(plain, value))})"
    return NOT_PLAIN


def source(function: FunctionType) -> Function | None:
    """The syntax tree of the function.

    The file may have been replaced since it was imported. It counts only if the running Python compiles it to exactly
    the code that the function has.
    """
    code = function.__code__
    for text in _texts(function, _read(function)):
        made = {}
        for only_tree in (ast.PyCF_ONLY_AST, 0):
            flags = code.co_flags & _FUTURE | only_tree
            try:
                made[only_tree] = compile(text, code.co_filename, "exec", flags, dont_inherit=True)
            except (SyntaxError, ValueError):
                break
        else:
            if any(each == code for each in codes(made[0])):
                return next(node for node in _walk(made[ast.PyCF_ONLY_AST]) if _begins(node, code.co_firstlineno))
    return None


def _read(function: FunctionType) -> list[bytes]:
    """The lines of the file that the function is from, which may be in an archive."""
    path = function.__code__.co_filename
    try:
        with open(path, "rb") as file:
            return file.read().splitlines(keepends=True)
    except (OSError, ValueError):
        loader = function.__globals__.get("__loader__")
    try:
        return loader.get_data(path).splitlines(keepends=True)  # type: ignore[union-attr]
    except (AttributeError, OSError):
        return []


def _fields(node: ast.AST) -> Iterator[tuple[str, Any]]:
    return ((name, getattr(node, name, None)) for name in node._fields)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a syntax tree, those above before those within."""
    nodes = [node]
    for each in nodes:
        yield each
        for _, value in _fields(each):
            nodes += (child for child in (value if type(value) is list else [value]) if isinstance(child, ast.AST))


def _begins(node: ast.AST, line: int) -> TypeGuard[Function]:
    """Whether the node is a function that begins at that line, where its first decorator is."""
    return isinstance(node, Function) and line == min(each.lineno for each in (node, *node.decorator_list))


def _texts(function: FunctionType, lines: list[bytes]) -> Iterator[bytes]:
    """Texts that have the function at its line: the function alone, which is compiled in a moment, then the module."""
    code = function.__code__
    first = code.co_firstlineno - 1
    if not lines[first:]:
        return
    margin = len(lines[first]) - len(lines[first].lstrip())
    # Compilers ask whether a name was imported.
    imported = [name for name in code.co_names if type(function.__globals__.get(name)) is ModuleType]
    above = [f"import {', '.join(imported)}\n".encode() if imported else b"\n", *[b"\n"] * (first - 1)]
    if margin:
        # A method has another meaning for private names, and for super(), than a function has.
        owner = getattr(code, "co_qualname", function.__qualname__).split(".")[-2:][0]
        above[-1] = f"class {owner}:\n".encode()
    last = max(line for each in codes(code) for _, _, line in each.co_lines() if line)
    if len(above) == first:
        ends = (end for end in range(last, len(lines)) if _is_outside(lines[end], margin))
        yield from (b"".join([*above, *lines[first:end]]) for end in islice(chain(ends, [len(lines)]), 3))
    yield b"".join(lines)


def _is_outside(line: bytes, margin: int) -> bool:
    text = line.lstrip()
    return bool(text) and not text.startswith(b"#") and len(line) - len(text) <= margin


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code with all code that is within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return body[1:]
    return body


def _spell(value: Any) -> str:
    """A syntax tree as text that is the same in every version of Python."""
    if isinstance(value, list):
        return f"[{','.join(map(_spell, value))}]"
    if not isinstance(value, ast.AST):
        return ascii(value)
    spelled = []
    for name in value._fields:
        field = None if name in _IGNORED else getattr(value, name, None)
        if name == "body" and isinstance(value, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            field = _without_docstring(value.body)
        elif name == "values" and isinstance(value, ast.JoinedStr):
            field = _merged(value.values)
        # Only Python 3.15 and later say of an import that it is not lazy.
        if field is not None and field != [] and (field or name != "is_lazy"):
            spelled.append(f"{name}={_spell(field)}")
    return f"{type(value).__name__}({','.join(spelled)})"


def _merged(parts: list[ast.expr]) -> list[Any]:
    """The parts of an f-string, of which Python 3.12 and later split the text in more places."""
    merged: list[Any] = []
    for part in parts:
        text = part.value if isinstance(part, ast.Constant) else None
        if isinstance(text, str) and merged and isinstance(merged[-1], str):
            merged[-1] += text
        else:
            merged.append(part if text is None else text)
    return [part for part in merged if part != ""]


# Parts used of code that goes on running.


def lacks(uses: Uses, code: CodeType, defaults: Defaults) -> str:
    """Return the used parts that the function lacks; empty if it has all."""
    wanted, found = f"{uses.parameters}, ", ", ".join(_parameters(code, *defaults)) + ", "
    if not (found.startswith(wanted[:-4]) if wanted.endswith("*_, ") else found == wanted):
        return f"takes ({found[:-2]}), not ({uses.parameters})"
    names = uses.names.split()
    if code.co_flags & _KIND != (_GENERATOR if "yield" in names else 0):
        return "is a generator or a coroutine now, or no longer one"
    missing = set(names) - {"yield"} - {name for each in codes(code) for name in _names(each)}
    return f"has no {', '.join(sorted(missing))}" if missing else ""


def _names(code: CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
    for constant in code.co_consts:
        # The names of arguments are a tuple.
        yield from (each for each in (constant if type(constant) is tuple else (constant,)) if type(each) is str)


def _parameters(code: CodeType, positional: Sequence[str], keyword: dict[str, str]) -> list[str]:
    """The parameters in the spelling of a ``def``, without annotations."""

    def spelled(name: str, default: str | None) -> str:
        return name if default is None else f"{name}={default}"

    names = iter(code.co_varnames)
    missing = code.co_argcount - len(positional)
    found = [spelled(next(names), value) for value in (*[None] * missing, *positional)]
    if code.co_posonlyargcount:
        found.insert(code.co_posonlyargcount, "/")
    only_keyword = [spelled(name, keyword.get(name)) for name in islice(names, code.co_kwonlyargcount)]
    if code.co_flags & _VARARGS:
        found.append(f"*{next(names)}")
    elif only_keyword:
        found.append("*")
    found += only_keyword
    if code.co_flags & _VARKEYWORDS:
        found.append(f"**{next(names)}")
    return found
