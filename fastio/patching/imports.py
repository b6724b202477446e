"""Calls that wait until a module is imported.

wrapt has such hooks as well, but importing it takes longer than all of fastio. Each child of a patched program imports
this module, and so it imports nothing that Python has not imported at its start.
"""

from __future__ import annotations

import sys

from fastio.proxy import Proxy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_bootstrap: Any = sys.modules["_frozen_importlib"]
#: callbacks, by the module that they wait for
_waiting: dict[str, list[Callable[[Any], object]]] = {}
#: modules among them that are being imported
_loading: set[str] = set()
#: callbacks for when none is being imported
_put_off: list[Callable[[], object]] = []


def when_imported(name: str, call: Callable[[Any], object]) -> None:
    """Call ``call(module)`` once the module is imported, with its import lock held; at once if it is there already."""
    if name in sys.modules and name not in _loading:
        call(sys.modules[name])
        return
    waiting = _waiting.setdefault(name, [])
    waiting.append(call)
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
    # It may have asked the finders before.
    wait_for_another_thread(name)
    if name in sys.modules and name not in _loading:
        # Another thread may have taken the list out before the call was in it.
        _waiting.pop(name, None)
        _call_each(waiting, sys.modules[name])


def _call_each(waiting: list[Callable[[Any], object]], module: ModuleType) -> None:
    """Call those in the list, each once, also where another thread does the same or adds to it."""
    while waiting:
        try:
            call = waiting.pop(0)
        except IndexError:
            return
        call(module)


def wait_for_another_thread(name: str) -> None:
    """If another thread is importing the module, wait until it has, as an import statement does.

    Where that would be for ever, it gives up: two threads wait for each other, or the other one is in the process that
    this one was forked from.
    """
    lock = _bootstrap._module_locks.get(name, lambda: None)()
    if lock is not None and lock.owner in sys._current_frames():
        _bootstrap._lock_unlock_module(name)


def when_none_is_halfway(call: Callable[[], object]) -> None:
    """Call ``call()`` as soon as none of the modules that are waited for is being imported."""
    if _loading:
        _put_off.append(call)
    else:
        call()


class _Finder:
    """Import hook for modules with pending patches."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        for finder in [finder for finder in sys.meta_path if finder is not _Finder]:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
                return spec
        return None


def _as_importlib(function: Any) -> Any:
    """``function`` with a file name by which ``warnings`` takes its frames for the import system's own.

    A warning at import then points at the import statement, as without fastio.
    """
    function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
    return function


class _Loader(Proxy):
    """The loader of a module that is waited for; nothing of it is left in the module."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        # As its own loader, also to those who only look for the module.
        return type(self.__wrapped__)

    @_as_importlib
    def exec_module(self, module: ModuleType) -> None:
        module.__spec__.loader = module.__loader__ = self.__wrapped__  # type: ignore[union-attr]
        name = module.__spec__.name  # type: ignore[union-attr]
        _loading.add(name)
        try:
            self.__wrapped__.exec_module(module)
            _loading.discard(name)
            _call_each(_waiting.pop(name, []), module)
        finally:
            _loading.discard(name)
            while _put_off and not _loading:
                _put_off.pop(0)()
