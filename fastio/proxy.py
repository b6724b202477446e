"""Proxy of an object of upstream's: forwards all attributes but a few."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Proxy:
    """Has every attribute of the object that it stands for; a subclass defines the others.

    A plain class, since wrapt's takes longer to import than all of fastio, and most programs never need it.
    """

    __slots__ = ()

    def __init__(self, wrapped: Any) -> None:
        self.__wrapped__ = wrapped  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)
