"""Where upstream's function is referred to, so that ours can take its place and give it back.

Usually that is an attribute of a class or module. Where upstream's own decorators are around it, it is a cell of a
closure. Wrappers of other tools are only looked into.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple

#: Wrappers around wrappers that are followed; more counts as a loop.
_DEPTH = 8


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
    """A closure cell of a decorator, and the ``__wrapped__`` that shows what it wraps."""

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


class Found(NamedTuple):
    """A function that was looked for, at an attribute or in the wrappers there."""

    place: Any
    function: Any
    #: the wrappers on the way to it, outermost first
    above: tuple[Any, ...]


def find(place: AttributePlace, accept: Callable[[Any], bool]) -> Found | None:
    """The function that ``accept`` takes, at ``place`` or in the wrappers there; None if it is not found."""
    seen: set[int] = set()

    def look(place: Any, value: Any, depth: int) -> Found | None:
        if accept(value):
            return Found(place, value, ())
        if depth and id(value) not in seen:
            seen.add(id(value))
            for inner, wrapped in _inside(value):
                if found := look(inner, wrapped, depth - 1):
                    return found._replace(above=(value, *found.above))
        return None

    return look(place, place.get(), _DEPTH)


def _inside(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the values that a wrapper may call, each with its place; None for a place where nothing is put."""
    # type() and not isinstance(): a proxy claims to be of the class of what it wraps.
    if type(value) is FunctionType:
        for cell in value.__closure__ or ():
            try:
                inner = cell.cell_contents
            except ValueError:
                continue
            if callable(inner):
                yield CellPlace(value, cell), inner
    elif not isinstance(value, type) and "__wrapped__" in dir(type(value)):
        yield None, value.__wrapped__


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


def foreign(wrappers: Iterable[Any], libraries: Collection[str]) -> tuple[Any, ...]:
    """Return the wrappers that neither one of the libraries nor contextlib.contextmanager makes."""
    return tuple(each for each in wrappers if not _is_own(describe(each), libraries))


def _is_own(name: str, libraries: Collection[str]) -> bool:
    library = name.partition(".")[0]
    return library in libraries or library == "contextlib" and name.endswith("helper")
