"""Where upstream's function is referred to, so that ours can take its place and give it back.

Usually that is an attribute of a class or module. Where another tool has wrapped the attribute
already, it is what the wrapper keeps: a cell of its closure (some keep it in several), or the
``__wrapped__`` of a wrapt proxy. Going in beneath the wrapper keeps both in force.
"""

from collections.abc import Callable, Iterator
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple, Protocol

#: Wrappers around wrappers that are followed; more is taken for a loop.
_DEPTH = 8


class Place(Protocol):
    """One reference to a function."""

    def get(self) -> Any: ...

    def put(self, value: Any) -> None: ...

    def restore(self, value: Any) -> None:
        """Make it as if ``put`` had never been called; ``value`` is what ``get`` gave then."""
        ...


def static(owner: Any, name: str) -> Any:
    """The attribute itself, whatever a descriptor would make of it; None if there is none."""
    if type(owner) is ModuleType and name in vars(owner):
        return vars(owner)[name]
    if type(owner) is type:
        for each in owner.__mro__:
            if name in vars(each):
                return vars(each)[name]
    # Imported here because what is usual needs no more, and it takes a tenth of the time of fastio.patch().
    import inspect

    return inspect.getattr_static(owner, name, None)


class AttributePlace:
    """An attribute; one that is only inherited is deleted again on ``restore``."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner = owner
        self.name = name
        self._own = name in vars(owner)

    def get(self) -> Any:
        return static(self.owner, self.name)

    def put(self, value: Any) -> None:
        setattr(self.owner, self.name, value)

    def restore(self, value: Any) -> None:
        if self._own:
            setattr(self.owner, self.name, value)
        else:
            delattr(self.owner, self.name)


class CellPlace:
    """A closure cell of a wrapping function, and the ``__wrapped__`` that tells of it."""

    def __init__(self, wrapper: FunctionType, cell: CellType) -> None:
        self.wrapper = wrapper
        self.cell = cell

    def get(self) -> Any:
        return self.cell.cell_contents

    def put(self, value: Any) -> None:
        before = self.cell.cell_contents
        self.cell.cell_contents = value
        if vars(self.wrapper).get("__wrapped__") is before:
            self.wrapper.__wrapped__ = value  # type: ignore[attr-defined]

    restore = put


class ProxyPlace:
    """The wrapped object of a wrapt proxy."""

    def __init__(self, proxy: Any) -> None:
        self.proxy = proxy

    def get(self) -> Any:
        return self.proxy.__wrapped__

    def put(self, value: Any) -> None:
        self.proxy.__wrapped__ = value

    restore = put


class Found(NamedTuple):
    """A function that was looked for, at an attribute or in the wrappers there."""

    #: everywhere that refers to it
    places: tuple[Place, ...]
    #: the wrappers on the way to it, outermost first
    above: tuple[Any, ...]


def find(place: Place, accept: Callable[[Any], bool]) -> Found | None:
    """The function that ``accept`` takes, at ``place`` or in the wrappers there; None if it is not found."""
    found: list[Place] = []
    above: list[Any] = []
    seen: set[int] = set()

    def look(place: Place, depth: int) -> bool:
        value = place.get()
        if accept(value):
            found.append(place)
            return True
        if depth == 0 or id(value) in seen:
            return False
        seen.add(id(value))
        position = len(above)
        leads_there = False
        for inner in _inside(value):
            # All of them are looked at: a wrapper may call one reference or another.
            leads_there |= look(inner, depth - 1)
        if leads_there:
            above.insert(position, value)
        return leads_there

    return Found(tuple(found), tuple(above)) if look(place, _DEPTH) else None


def _inside(value: Any) -> Iterator[Place]:
    # type() and not isinstance(): a proxy claims to be of the class of what it wraps.
    if type(value) is FunctionType:
        for cell in value.__closure__ or ():
            try:
                is_callable = callable(cell.cell_contents)
            except ValueError:
                continue
            if is_callable:
                yield CellPlace(value, cell)
    elif not isinstance(value, type) and "__wrapped__" in dir(type(value)):
        yield ProxyPlace(value)


def describe(value: Any) -> str:
    """A wrapper by the module and name that people can search for."""
    if type(value) is FunctionType:
        # functools.wraps copies the names of what is wrapped; the code keeps its own.
        code = value.__code__
        return f"{value.__globals__.get('__name__', '?')}.{getattr(code, 'co_qualname', code.co_name)}"
    wrapper = getattr(value, "_self_wrapper", None)
    if type(wrapper) is FunctionType:
        return describe(wrapper)
    return f"{type(value).__module__}.{type(value).__qualname__}"
