"""What a patch relies on in a function of upstream's that goes on running.

Code that a patch replaces has to be known. Of a function that it only wraps, or calls, it relies on less, and a change
elsewhere in that function does no harm. A target states what it relies on as a stub of Python::

    def get_from_cache(self, image_id):
        yield _
        self.cache.open_for_read(image_id)
        utils.chunkiter(_)

The function keeps to this contract if all of the following holds:

* It has the stub's parameters: their names, kinds and defaults. ``*_`` stands for any further ones.
* It is a generator, or a coroutine, if the stub is one, and only then.
* Each of its own ``return`` and ``yield`` is like one of the stub's, if the stub has any.
* Each other statement of the stub is somewhere in it, or each expression that is a statement in the stub. If that is a
  call, every call of the same function is like one of the stub's.

``_`` stands for any expression, and ``*_`` and ``**_`` among the arguments of a call for any further ones.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from types import CodeType, FunctionType
from typing import Any

from fastio.patching import syntax
from fastio.patching.fingerprint import Defaults, defaults

_KIND = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@lru_cache
def stubs(contract: str) -> dict[str, syntax.Source]:
    """The stubs that a contract consists of, by the names of the functions."""
    text = textwrap.dedent(contract)
    names = {node.name for node in ast.parse(text).body if isinstance(node, syntax.Function)}
    return dict(syntax.functions(text, "<contract>", names))


def violation(stub: syntax.Source, function: FunctionType, node: syntax.Function) -> str:
    """What ``function``, whose source is ``node``, does otherwise than the contract says; empty if there is nothing."""
    return violation_of_source(stub, stub._replace(defaults=defaults(function), code=function.__code__, node=node))


def violation_of_source(stub: syntax.Source, source: syntax.Source) -> str:
    """The same of a function that is not loaded."""
    return next(_violations(stub, source), "")


def _violations(stub: syntax.Source, source: syntax.Source) -> Iterator[str]:
    wanted, found = _parameters(stub.code, stub.defaults), _parameters(source.code, source.defaults)
    end = len(wanted) - 1 if wanted[-1:] == ["*_"] else None
    if found[:end] != wanted[:end]:
        yield f"takes ({', '.join(found)}), not ({', '.join(wanted)})"
    if (stub.code.co_flags ^ source.code.co_flags) & _KIND:
        yield "is a generator or a coroutine now, or no longer one"
    fragments = [_fragment(statement) for statement in stub.node.body]
    for kind in (ast.Return, ast.Yield):
        like = [fragment for fragment in fragments if isinstance(fragment, kind)]
        given = list(_own(source.node, kind)) if like else []
        if like and not given:
            yield f"has no {_unparse(like)}"
        yield from _unlike(given, like)
    nodes = list(ast.walk(source.node))
    for fragment in fragments:
        anywhere = not isinstance(fragment, (ast.Return, ast.Yield, ast.Constant))
        if anywhere and not any(_match(fragment, each) for each in nodes):
            yield f"has no {_unparse([fragment])}"
        if isinstance(fragment, ast.Call):
            same = [each for each in nodes if isinstance(each, ast.Call) and _match(fragment.func, each.func)]
            yield from _unlike(same, [each for each in fragments if isinstance(each, ast.Call)])


def _unlike(nodes: Iterable[ast.AST], fragments: Sequence[ast.AST]) -> Iterator[str]:
    """What is like none of the fragments."""
    for node in nodes:
        if not any(_match(fragment, node) for fragment in fragments):
            yield f"has {_unparse([node])}, not {_unparse(fragments)}"


def _parameters(code: CodeType, defaults: Defaults) -> list[str]:
    """The parameters as they are spelled in a ``def``, without annotations."""
    names = iter(code.co_varnames)
    missing = code.co_argcount - len(defaults.positional)
    found = [_parameter(next(names), value) for value in (*[None] * missing, *defaults.positional)]
    if code.co_posonlyargcount:
        found.insert(code.co_posonlyargcount, "/")
    keyword = [_parameter(name, defaults.keyword.get(name)) for name in islice(names, code.co_kwonlyargcount)]
    if code.co_flags & inspect.CO_VARARGS:
        found.append(f"*{next(names)}")
    elif keyword:
        found.append("*")
    found += keyword
    if code.co_flags & inspect.CO_VARKEYWORDS:
        found.append(f"**{next(names)}")
    return found


def _parameter(name: str, default: str | None) -> str:
    return name if default is None else f"{name}={default}"


def _unparse(fragments: Iterable[ast.AST]) -> str:
    return " or ".join(repr(ast.unparse(fragment)) for fragment in fragments)


def _fragment(statement: ast.stmt) -> ast.AST:
    return statement.value if isinstance(statement, ast.Expr) else statement


def _own(node: ast.AST, kind: type[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of that kind in the function itself, not in those that are within it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, kind):
            yield child
        if not isinstance(child, _SCOPES):
            yield from _own(child, kind)


def _match(fragment: Any, node: Any) -> bool:
    """Whether ``node``, a part of a syntax tree, is like the fragment of a stub."""
    if _is_any(fragment):
        return isinstance(node, ast.expr)
    if isinstance(fragment, list):
        return isinstance(node, list) and len(fragment) == len(node) and all(map(_match, fragment, node))
    if type(fragment) is not type(node):
        return False
    if isinstance(fragment, ast.Call):
        return _match(fragment.func, node.func) and _match_arguments(fragment, node)
    if isinstance(fragment, ast.AST):
        return all(_match(getattr(fragment, name), getattr(node, name)) for name in syntax.meaningful(fragment))
    return bool(fragment == node)


def _match_arguments(fragment: ast.Call, call: ast.Call) -> bool:
    positional: Sequence[ast.expr] = fragment.args
    given: Sequence[ast.expr] = call.args
    if positional and isinstance(positional[-1], ast.Starred) and _is_any(positional[-1].value):
        positional = positional[:-1]
        given = given[: len(positional)]
    by_name = {keyword.arg: keyword.value for keyword in call.keywords}
    wanted = {keyword.arg: keyword.value for keyword in fragment.keywords}
    if None in wanted and _is_any(wanted[None]):
        del wanted[None]
        by_name = {name: value for name, value in by_name.items() if name in wanted}
    return (
        _match(list(positional), list(given))
        and by_name.keys() == wanted.keys()
        and all(_match(value, by_name[name]) for name, value in wanted.items())
    )


def _is_any(fragment: Any) -> bool:
    return isinstance(fragment, ast.Name) and fragment.id == "_"
