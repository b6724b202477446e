"""Recognising upstream code by its source.

Two compilers can make different bytecode of the same source. Python 3.13.0 and 3.13.1 differ in comprehensions, for
example. So a function whose bytecode is not in the table is looked up by its syntax tree, which is the same for all
compilers.

The file may have been replaced since it was imported. It counts only if the running Python compiles it to exactly the
code that the function has.
"""

import ast
import hashlib
import linecache
import operator
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from fastio.patching.fingerprint import NOT_PLAIN, Defaults, digest, spell, with_defaults
from fastio.patching.fingerprint import defaults as current_defaults

Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Fields of nodes that do not change what a function does, or that only some versions of Python have.
_IGNORED = frozenset({"annotation", "returns", "type_comment", "type_params", "kind", "ctx"})
#: Arithmetic that the defaults of arguments are written with.
_ARITHMETIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.USub: operator.neg, ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Div: operator.truediv, ast.LShift: operator.lshift, ast.Pow: operator.pow,
}  # fmt: skip


class Source(NamedTuple):
    """A function in a source file."""

    #: of its syntax tree, without the defaults of its arguments
    tree: str
    defaults: Defaults
    code: CodeType
    node: Function


def fingerprint(tree: str, defaults: Defaults) -> str:
    """Sixteen hexadecimal digits that stand for what a function with this source and these defaults does."""
    return with_defaults(hashlib.sha256(tree.encode()), defaults)


def of_function(function: FunctionType, names: Collection[str]) -> str | None:
    """The fingerprint of the function's source, with the defaults that its arguments have now; None as :func:`find`."""
    found = find(function, names)
    return None if found is None else fingerprint(found.tree, current_defaults(function))


def find(function: FunctionType, names: Collection[str]) -> Source | None:
    """The function's source; None where there is none, or it does not compile to the function's code.

    :param names: names of functions that may be looked up: no others are read from a file
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    found = _read("".join(lines), code.co_filename, frozenset(names)).get((code.co_name, code.co_firstlineno))
    if found is None or digest(found.code, Defaults()) != digest(code, Defaults()):
        return None
    return found


@lru_cache(maxsize=64)
def _read(text: str, path: str, names: frozenset[str]) -> dict[tuple[str, int], Source]:
    try:
        return {(source.code.co_name, source.code.co_firstlineno): source for _, source in functions(text, path, names)}
    except (SyntaxError, ValueError):
        return {}


def functions(text: str, path: str, names: Collection[str], optimize: int = -1) -> Iterator[tuple[str, Source]]:
    """The functions of a module with one of these names, each with its qualified name.

    :raises SyntaxError: if the running Python cannot compile the module
    """
    tree = ast.parse(text)
    nodes = {(node.name, _first_line(node)): node for node in ast.walk(tree) if isinstance(node, Function)}
    for name, code in _codes(compile(tree, path, "exec", optimize=optimize, dont_inherit=True)):
        node = nodes.get((code.co_name, code.co_firstlineno))
        if code.co_name in names and node is not None:
            yield name, Source(_function(node), _defaults(node.args), code, node)


def _codes(code: CodeType, prefix: str = "") -> Iterator[tuple[str, CodeType]]:
    """All code of a module, with qualified names; a later definition follows an earlier one."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            name = prefix + constant.co_name
            yield name, constant
            yield from _codes(constant, name + ".")


def _first_line(node: Function) -> int:
    """The line on which the compiler has the function begin."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _defaults(arguments: ast.arguments) -> Defaults:
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return Defaults(
        tuple(map(_default, arguments.defaults)),
        {argument.arg: _default(value) for argument, value in keyword if value is not None},
    )


def _default(expression: ast.expr) -> str:
    """What :func:`fastio.patching.fingerprint.spell` makes of the value, if literals and their arithmetic tell it."""
    try:
        return spell(_value(expression))
    except (ValueError, TypeError, ArithmeticError, RecursionError):
        return NOT_PLAIN


def _value(expression: ast.expr) -> Any:
    """The value of an expression that is no more than that. Nothing of a source that is only read is evaluated.

    :raises ValueError: for anything else, and for large numbers
    """
    if isinstance(expression, ast.Constant):
        return expression.value
    if isinstance(expression, ast.Tuple):
        return tuple(map(_value, expression.elts))
    if isinstance(expression, ast.UnaryOp):
        calculate, numbers = _ARITHMETIC.get(type(expression.op)), [_value(expression.operand)]
    elif isinstance(expression, ast.BinOp):
        calculate, numbers = _ARITHMETIC.get(type(expression.op)), [_value(expression.left), _value(expression.right)]
    else:
        raise ValueError(ast.dump(expression))
    if calculate is None or any(type(number) not in (int, float) or abs(number) > 1 << 64 for number in numbers):
        raise ValueError(ast.dump(expression))
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, (ast.LShift, ast.Pow)) and numbers[1] > 64:
        raise ValueError(ast.dump(expression))
    return calculate(*numbers)


def _function(node: Function) -> str:
    """The function as text: its arguments without their defaults, and its body without the docstring."""
    arguments = ast.arguments(**{**dict(ast.iter_fields(node.args)), "defaults": [], "kw_defaults": []})
    return f"{type(node).__name__}({_spell(arguments)},{_spell(_without_docstring(node.body))})"


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
    fields = {name: getattr(value, name) for name in meaningful(value)}
    if isinstance(value, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        fields["body"] = _without_docstring(value.body)
    elif isinstance(value, ast.JoinedStr):
        fields["values"] = _merged(value.values)
    spelled = [f"{name}={_spell(field)}" for name, field in fields.items() if field is not None and field != []]
    return f"{type(value).__name__}({','.join(spelled)})"


def meaningful(node: ast.AST) -> list[str]:
    """The fields of a syntax tree's node that say what the code does, in any version of Python."""
    names = [name for name, _ in ast.iter_fields(node) if name not in _IGNORED]
    # Only Python 3.15 and later say of an import that it is not lazy.
    return names if getattr(node, "is_lazy", False) else [name for name in names if name != "is_lazy"]


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
