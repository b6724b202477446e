"""Finding the reference to a function beneath wrappers, replacing it, and giving it back."""

import contextlib
import functools
import types
from collections.abc import Callable
from typing import Any

import pytest

from fastio.patching.places import AttributePlace, find, foreign

wrapt = pytest.importorskip("wrapt")


def original() -> str:
    return "original"


def replacement() -> str:
    return "replacement"


def is_original(value: Any) -> bool:
    return value is original


def wrap(function: Callable[..., Any], told: bool = True) -> Any:
    def wrapper() -> Any:
        return "wrapped " + function()

    return functools.wraps(function)(wrapper) if told else wrapper


def proxy(function: Callable[..., Any]) -> Any:
    def seen(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        return "seen " + wrapped()

    return wrapt.FunctionWrapper(function, seen)


def module(**attributes: Any) -> types.ModuleType:
    made = types.ModuleType("made")
    vars(made).update(attributes)
    return made


def test_a_wrapped_attribute_of_something_else_stays() -> None:
    wrapper = wrap(original)
    wrapper.__wrapped__ = other = object()
    found = find(AttributePlace(module(function=wrapper), "function"), is_original)
    assert found is not None
    found.place.put(replacement)
    assert wrapper.__wrapped__ is other


def test_an_empty_cell() -> None:
    def early() -> Any:
        return late()

    if not early:
        late = original
    assert find(AttributePlace(module(function=early), "function"), is_original) is None


def test_a_deep_stack_ends() -> None:
    value: Any = original
    for _ in range(10_000):
        value = wrap(value, told=False)
    # Whether it is found does not matter; that many wrappers are taken for a loop.
    find(AttributePlace(module(function=value), "function"), is_original)


def test_foreign() -> None:
    managed: Any = contextlib.contextmanager(lambda: iter(()))  # type: ignore[misc]
    wrapper, other = wrap(original), proxy(original)
    assert foreign((managed, wrapper), {"tests"}) == ()
    for libraries in ({"glance_store"}, set[str]()):
        found = foreign((managed, other, wrapper), libraries)
        assert len(found) == 2 and found[0] is other and found[1] is wrapper
