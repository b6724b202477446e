"""The hash of a function's source, by which its code is known.

Two compilers can make different bytecode of the same source, so the syntax tree is hashed, which all compilers share.
"""

# The nodes of syntax trees alone: ast, as hashlib and linecache, takes longer to import than what is done here.
import _ast as ast
import importlib
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, islice
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeGuard

#: The defaults of positional arguments, and of keyword-only ones by name, each as :func:`plain` has it.
Defaults = tuple[Sequence[str], dict[str, str]]
#: Stands for a default that is not a plain value.
NOT_PLAIN = "<object>"
Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Fields of nodes that do not change what a function does, or that only some versions of Python have.
_IGNORED = frozenset({"annotation", "returns", "type_comment", "type_params", "kind", "ctx"})
#: Those that an import from ``__future__`` sets.
_FUTURE = 0x1FE0000

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
