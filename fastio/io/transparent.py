"""Objects that stand for others. The original does what they do not do, and ``isinstance()`` sees the original."""

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from fastio.proxy import Proxy

#: Special methods that are looked up on the class, so a stand-in has them where the original does.
SPECIAL = ("__len__", "__bool__", "__getitem__", "__enter__", "__exit__")


class Transparent(Proxy):
    """Stands for ``__wrapped__``. Slots of subclasses are set with ``object.__setattr__``."""

    __slots__ = ("__weakref__", "__wrapped__")
    #: methods that a stand-in has where the original does, see :func:`class_for`
    METHODS: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __init__(self, wrapped: Any) -> None:
        object.__setattr__(self, "__wrapped__", wrapped)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self.__wrapped__.__class__

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__wrapped__, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__wrapped__, name)

    def __eq__(self, other: Any) -> bool:
        return self.__wrapped__ == (other.__wrapped__ if issubclass(type(other), Transparent) else other)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


def special(name: str) -> Callable[..., Any]:
    """The special method ``name`` of a stand-in."""

    def method(self: Any, *args: Any) -> Any:
        result = getattr(type(self.__wrapped__), name)(self.__wrapped__, *args)
        return self if result is self.__wrapped__ else result

    return method


def class_for(base: type[Transparent], data: Any) -> Any:
    """The subclass of ``base`` that has those of its ``METHODS`` that ``data`` has, and that it has not itself."""
    kind = type(data)
    # Of a class whose metaclass compares in its own way, nothing is remembered.
    find: Any = _found if type(kind).__hash__ is type.__hash__ else _found.__wrapped__
    # Methods with plain names may be the instance's own.
    return find(base, kind, hasattr(data, "read"), hasattr(data, "close"))


@functools.lru_cache(maxsize=64)
def _found(base: type[Transparent], kind: type, read: bool, close: bool) -> type[Transparent]:
    own = {"read": read, "close": close}
    has = [name for name in base.METHODS if own.get(name, hasattr(kind, name))]
    return _class(base, tuple(name for name in has if name not in vars(base)))  # type: ignore[arg-type]


@functools.cache
def _class(base: type[Transparent], names: tuple[str, ...]) -> type[Transparent]:
    # By names, because some drivers make a new class for every image.
    return type(base.__name__, (base,), {"__slots__": (), **{name: base.METHODS[name] for name in names}})
