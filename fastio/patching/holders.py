"""Code that bypasses the patches: holders of a class that ``eventlet.monkey_patch()`` has since replaced."""

# As of weakref, which takes longer to import.
import _weakref
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

#: The ``subprocess`` that was asked for last, and a reference to its class. Every target of the class asks, and a look
#: through all classes of a process takes part of a millisecond. A class that is gone does not come back.
_last: tuple[ModuleType | None, Callable[[], Any]] = None, lambda: None


def native_popen() -> Any:
    """The standard library's own ``Popen``, also after eventlet has put its green one into ``subprocess``.

    eventlet keeps private copies of the module; ours is the one whose methods live in ``sys.modules["subprocess"]``.
    """
    global _last
    module = sys.modules["subprocess"]
    # It has none yet while eventlet, in another thread, imports a copy of the module in its place.
    popen = getattr(module, "Popen", None)
    if popen is None or not _is_native(popen, module):
        of, get = _last
        popen = get()
        if of is module and (popen is None or _is_native(popen, module)):
            return popen
        popen = _look_for(module)
    _last = module, (lambda: None) if popen is None else _weakref.ref(popen)
    return popen


def _look_for(module: ModuleType) -> Any:
    return next((cls for cls in object.__subclasses__() if cls.__name__ == "Popen" and _is_native(cls, module)), None)


def _is_native(cls: Any, module: ModuleType) -> bool:
    method = vars(cls).get("_get_handles")
    return getattr(method, "__globals__", None) is vars(module)


def late_holders() -> list[str]:
    """Modules that still use the blocking ``Popen`` although ``subprocess.Popen`` is eventlet's."""
    module = sys.modules.get("subprocess")
    green = sys.modules.get("eventlet.green.subprocess")
    popen = getattr(green, "Popen", None)
    if popen is None or getattr(module, "Popen", None) is not popen:
        return []
    native = native_popen()
    if native is None:
        return []
    found = []
    for name, other in list(sys.modules.items()):
        # The modules that eventlet keeps for itself are meant to be native.
        if not issubclass(type(other), ModuleType) or name.startswith(("__original_module_", "__patched_module_")):
            continue
        # Not vars(), which would import a module that is loaded when it is first used (importlib.util.LazyLoader).
        for attribute, value in list(ModuleType.__getattribute__(other, "__dict__").items()):
            if value is native or _is_subclass(value, native):
                found.append(f"{name}.{attribute} is the native Popen, from before monkey_patch(): it blocks the hub")
    return sorted(found)


def _is_subclass(value: Any, cls: type) -> bool:
    """Whether ``value`` is a class that inherits ``cls``; runs no code of a foreign metaclass."""
    return issubclass(type(value), type) and any(base is cls for base in type.__dict__["__mro__"].__get__(value))
