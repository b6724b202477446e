"""fastio's hook at each attribute: the original, a function in its place, and which patches are on."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, NamedTuple

from fastio.patching import known_code, places, registry
from fastio.patching.known_code import Known, Uses
from fastio.patching.registry import Patch, Target


class Hook:
    """One attribute.

    All patches of an attribute share one function there, the hook function, which calls through those that are switched
    on; so they come and go in any order, and where another tool has wrapped it, it passes everything through once the
    last of them is gone.
    """

    def __init__(self, target: Target, attribute: places.AttributePlace, upstream: Upstream) -> None:
        #: the attribute itself
        self.attribute = attribute
        found = upstream.found
        #: how each patch here has recognised what it relies on, by the patch's name
        self.upstream: dict[str, Upstream] = {}
        self.original = found.function
        #: the releases whose code this is, empty if it only has what is used
        self.release = upstream.release
        #: functions elsewhere that patches rely on, by key; see ``Target.relies_on``
        self.relied_on = dict(upstream.relied_on)
        self._libraries = target.libraries
        self._place = found.place
        self.layers: dict[str, Target] = {}
        self.call: Callable[..., Any] = self.original
        #: False once the last patch is gone but another wrapper still calls us
        self.active = False
        self.function = target.make(self.original, self) if target.plain else self._make_function()
        if target.stock is None:
            functools.update_wrapper(self.function, self.original)
        also = (place.partition(":")[::2] for place in target.also)
        self.copies = [
            places.AttributePlace(sys.modules[module], name) for module, name in also if module in sys.modules
        ]

    def _make_function(self) -> Callable[..., Any]:
        def hook_function(*args: Any, **kwargs: Any) -> Any:
            return self.call(*args, **kwargs)

        return hook_function

    def switch_on(self, patch: Patch, target: Target) -> None:
        """Have ``patch`` in effect, with the others that are."""
        self._put({**self.layers, patch.name: target})
        self.active = True
        for place in self.copies if self.on_top() is not None else [self._place, *self.copies]:
            if place.get() is self.original:
                place.put(self.function)

    def switch_off(self, patch: Patch) -> None:
        """Have ``patch`` out of effect; with the last one the original comes back."""
        self._put({name: target for name, target in self.layers.items() if name != patch.name})
        if not self.layers:
            self.active = False
            self.remove()

    def remove(self) -> bool:
        """Put the original wherever the hook function is ours to take away; True if the attribute leads to it again."""
        found = self._find_function()
        if found is not None and not self.on_top():
            found.place.restore(self.original)
        for place in self.copies:
            if place.get() is self.function:
                place.put(self.original)
        # A wrapper that does not show what it calls may yet put the hook function back.
        return self.on_top() is None and places.find(self.attribute, lambda value: value is self.original) is not None

    def outdated(self, target: Target) -> str | None:
        """The function that ``target`` relies on and that is another one by now, by its key; else None."""
        return next((key for key in target.elsewhere if _function_at(key) is not self.relied_on.get(key)), None)

    def on_top(self) -> tuple[Any, ...] | None:
        """Other tools' wrappers above the hook function; None if the attribute does not lead to it."""
        found = self._find_function()
        return None if found is None else places.foreign(found.above, self._libraries)

    def _find_function(self) -> places.Found | None:
        return places.find(self.attribute, lambda value: value is self.function)

    def _put(self, layers: dict[str, Target]) -> None:
        """Have these patches in effect, or, if one cannot be made, those of before."""
        call = self.original
        for name in registry.all_names():
            if name in layers and not layers[name].plain:
                call = layers[name].make(call, self)
        self.call, self.layers = call, layers


class UnknownCodeError(Exception):
    """The attribute does not hold, or lead to, code that fastio knows."""

    def __init__(self, found: str, advice: str) -> None:
        super().__init__(found, advice)
        self.found = found
        self.advice = advice


_REPORT_IT = "report the versions shown, so that this code can be read and its fingerprint added"
_hooks: dict[str, Hook] = {}


def get(target: Target) -> Hook | None:
    """The hook at the target's attribute, if fastio has put something there."""
    hook = _hooks.get(target.key)
    if hook is not None and (target.module not in sys.modules or hook.attribute.owner is not target.owner()):
        # The module was taken away or loaded anew: what it has now is something else.
        drop(target)
        return None
    return hook


def drop(target: Target) -> None:
    """Forget the hook: nothing of ours is at the attribute any more."""
    _hooks.pop(target.key, None)


def open_hook(patch: Patch, target: Target) -> Hook:
    """The hook for ``patch`` at the target's attribute, new if need be.

    :raises UnknownCodeError: if the code is not known
    """
    hook = get(target)
    in_place = hook is not None and hook.on_top() is not None
    if hook is not None and in_place and patch.name in hook.layers:
        return hook
    # Also where another patch has opened the hook: it need not rely on the same functions.
    upstream = recognise(target)
    if hook is not None and in_place:
        hook.relied_on.update(upstream.relied_on)
    else:
        if hook is not None:
            # Another value was put at the attribute, and none at its copies.
            hook.remove()
        hook = _hooks[target.key] = Hook(target, places.AttributePlace(target.owner(), target.name), upstream)
    hook.upstream[patch.name] = upstream
    return hook


class Upstream(NamedTuple):
    """The upstream code that a target is about."""

    #: the function or value at the attribute
    found: places.Found
    #: functions elsewhere, by key
    relied_on: dict[str, FunctionType]
    #: how each function is known, by key; the first decides the release
    functions: dict[str, Known]

    @property
    def release(self) -> str:
        """The releases whose code this is, empty if it only has what is used."""
        return next(iter(self.functions.values())).releases

    @property
    def by(self) -> str:
        """How the code was recognised: the least certain way among its functions."""
        found = {known.by for known in self.functions.values()}
        return next(way for way in (known_code.USES, known_code.ACCEPTED, known_code.SOURCE) if way in found)

    @property
    def is_accepted(self) -> bool:
        """Whether ``accept_code`` has all of the code that was recognised by it."""
        entries = (known.accepted for known in self.functions.values() if known.accepted)
        return all(entry in known_code.accepted() for entry in entries)

    def __str__(self) -> str:
        first, *_ = self.functions.values()
        if first.accepted:
            return f"code like {first.releases}, by accept_code"
        known = next((known.releases for known in self.functions.values() if known.releases), "")
        return f"code of {known_code.span(known)}" if known else "code that has what is used"


def recognise(target: Target) -> Upstream:
    """Look up all that ``target`` declares.

    :raises UnknownCodeError: if the attribute, or a function that the target relies on, is not known and has to be, or
        has not what is used
    """
    results: list[places.Found] = []
    functions: dict[str, Known] = {}
    uses = target.functions()
    for attribute, key in target.beside.items():
        place = places.AttributePlace(target.owner(), attribute)
        value = place.get()
        if value is None:
            raise UnknownCodeError(f"{attribute} does not exist", _REPORT_IT)
        modules = (target.module, key.partition(":")[0])
        found = places.find(place, functools.partial(is_upstreams, modules, attribute))
        if found is None:
            if places.find(place, functools.partial(_defined_in, modules)):
                raise UnknownCodeError(f"{attribute} has unknown code", _REPORT_IT)
            raise _in_the_way(value, attribute, "does not show what it calls, and stands")
        functions[key] = _known(key, attribute, uses[key], original(found.function))
        for wrapper in found.above:
            if type(wrapper) in (staticmethod, classmethod):
                raise UnknownCodeError(f"{attribute} is a {type(wrapper).__name__}", _REPORT_IT)
        others = places.foreign(found.above, target.libraries)
        if others and attribute == target.name and original(found.function) is found.function:
            raise _in_the_way(others[0], attribute, "stands")
        results.append(found)
    relied_on = {}
    for key in target.elsewhere:
        relied_on[key] = function = _function_at(key)
        functions[key] = _recognise_elsewhere(key, uses[key], function)
    return Upstream(results[0] if target.stock is None else _find_value(target), relied_on, functions)


def _in_the_way(wrapper: Any, where: str, stands: str) -> UnknownCodeError:
    who = places.describe(wrapper)
    return UnknownCodeError(
        f"{who} {stands} at {where}", f"call fastio.patch() before {who.partition('.')[0]} takes it"
    )


def _known(key: str, name: str, uses: Uses, function: FunctionType) -> Known:
    """How a function of upstream's is known.

    :raises UnknownCodeError: if it is not known and has to be, or has not what is used
    """
    from fastio.patching import sources

    if uses.parameters is None:
        known = known_code.recognise(key, function)
        if known is not None:
            return known
        hashed = sources.hash_of(function)
        accept = f"; or read it, and accept it with accept_code={key}@{hashed}" if hashed else ""
        raise UnknownCodeError(f"{name} has unknown code", _REPORT_IT + accept)
    if lacking := known_code.lacks(uses, function.__code__, sources.defaults(function)):
        raise UnknownCodeError(f"{name} {lacking}", _REPORT_IT)
    return Known(known_code.USES)


def _recognise_elsewhere(key: str, uses: Uses, function: Any) -> Known:
    if function is None:
        raise UnknownCodeError(f"{key} does not exist", _REPORT_IT)
    module = key.partition(":")[0]
    if is_upstreams((module,), registry.last_name(key), function):
        return _known(key, key, uses, original(function))
    if _defined_in((module,), function):
        raise UnknownCodeError(f"{key} has unknown code", _REPORT_IT)
    # Beneath a wrapper it would be known, but it is the wrapper that upstream calls.
    raise _in_the_way(function, key, "stands")


def _function_at(key: str) -> Any:
    """Return the object at ``module:qualified.name``, None if there is none."""
    module, _, path = key.partition(":")
    value: Any = sys.modules.get(module)
    for name in path.split("."):
        value = places.static(value, name)
    return value


def _defined_in(modules: Iterable[str], value: Any) -> bool:
    return places.describe(value).startswith(tuple(module + "." for module in modules))


def _find_value(target: Target) -> places.Found:
    place = places.AttributePlace(target.owner(), target.name)
    value = place.get()
    if value != target.stock and not any(value is hook.function for hook in list(_hooks.values())):
        found = f"{value!r} stands at {target.name}, upstream has {target.stock}"
        raise UnknownCodeError(found, "nothing to do if that is on purpose; else take it away and call fastio.patch()")
    return places.Found(place, value, ())


def original(value: Any) -> Any:
    """Upstream's function, where ``value`` may be ours in its place."""
    return next((hook.original for hook in list(_hooks.values()) if value is hook.function), value)


def is_upstreams(modules: Iterable[str], name: str, value: Any) -> bool:
    """Whether ``value`` is a function of that name in one of the modules, or ours in its place."""
    value = original(value)
    return type(value) is FunctionType and value.__code__.co_name == name and _defined_in(modules, value)
