"""What stands for an object of upstream's and does a few things otherwise."""

from typing import Any


class Proxy:
    """Has every attribute of the object that it stands for; a subclass defines what it has of its own.

    A plain class, since wrapt's takes longer to import than all of fastio, and most programs never need it.
    """

    def __init__(self, wrapped: Any) -> None:
        self.__wrapped__ = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)
