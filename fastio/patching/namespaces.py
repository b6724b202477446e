"""Upstream's own function with another meaning for one of the names that it uses.

A long function that calls ``open()`` or a library somewhere in its middle need not be copied to change what that call
does: the same code runs in a namespace in which the name stands for something else. All other names are looked up in
the module at every use, as before.
"""

import builtins
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any


class _Namespace(dict):  # type: ignore[type-arg]
    """The globals of a module, with some of them passed through a function when they are looked up."""

    def __init__(self, module: dict[str, Any], changes: Mapping[str, Callable[[Any], Any]]) -> None:
        # Names that are not looked up one by one.
        super().__init__(__name__=module["__name__"], __builtins__=module["__builtins__"])
        self._module = module
        self._changes = changes

    def __missing__(self, name: str) -> Any:
        change = self._changes.get(name)
        if change is None:
            return self._module[name]
        value = self._module[name] if name in self._module else getattr(builtins, name)
        return change(value)


def replaced(function: Any, **changes: Callable[[Any], Any]) -> Callable[..., Any]:
    """``function`` to whose code each name is what its change makes of the module's object of that name.

    :raises TypeError: for anything but a function of Python code, such as a wrapper of another tool
    """
    if type(function) is not FunctionType:
        raise TypeError(f"{function!r} is no function of Python code")
    namespace = _Namespace(function.__globals__, changes)
    copy = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    return copy
