"""What others do with the methods of fastio's own drivers.

A patch changes upstream's code, which it has to know. The drivers are fastio's own, and ask here instead.
"""

import functools
from collections.abc import Callable
from typing import Any

#: Given the name of a driver, that of a method, and the method: what records it, or the method itself where nothing is
#: to be recorded. None until a trace is asked for.
recording: Callable[[str, str, Callable[..., Any]], Callable[..., Any]] | None = None


def recorded(driver: str, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of a driver's ``get``, ``add`` or ``delete``: a trace has them as those of glance_store's drivers.

    :param name: of the method, which glance_store's own decorators do not keep
    """

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            found = method if recording is None else recording(driver, name, method)
            return found(self, *args, **kwargs)

        return call

    return decorate
