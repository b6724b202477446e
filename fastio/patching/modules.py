"""The modules of targets: which are imported, which cannot be, and what is done once one is."""

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from fastio.patching import imports
from fastio.patching.registry import Target

#: why a module cannot be imported, where that is so
_absent: dict[str, str] = {}
#: modules that are waited for
_awaited: set[str] = set()


def missing(target: Target) -> list[str]:
    """The modules that the target needs and that are not imported yet."""
    return [module for module in target.modules if module not in sys.modules]


def why_absent(module: str) -> str | None:
    """Why the module cannot be imported, as far as :func:`look_for` has found; None if it can."""
    return _absent.get(module)


def look_for(targets: Iterable[Target], libraries: Iterable[str] = ()) -> None:
    """Note of libraries, and of targets' modules, that are not imported why they cannot be, if so."""
    specs: dict[str, ModuleSpec | None] = {}
    wanted = (*libraries, *(module for target in targets for module in missing(target)))
    for module in dict.fromkeys(module for module in wanted if module not in sys.modules):
        top = module.partition(".")[0]
        try:
            if top not in specs:
                specs[top] = _find(top)
            if specs[top] is None:
                _absent[module] = f"{module} is not installed"
            elif not _in_package(module, specs):
                _absent[module] = f"{module} is not part of this release"
            else:
                _absent.pop(module, None)
        except Exception as error:
            # A finder of the program's raises it. The module may still be imported later.
            _absent[module] = f"{module} cannot be looked up: {type(error).__name__}: {error}"


def _find(package: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(package)
    except ValueError:
        # A stub without a spec stands in sys.modules.
        return None


def _in_package(module: str, specs: dict[str, ModuleSpec | None]) -> bool:
    """Whether the packages of ``module`` have it; they are not imported for that.

    :param specs: found specs, by name; the first package of ``module`` has
    """
    top, *rest = module.split(".")
    name, spec = top, specs[top]
    for part in rest:
        loaded = sys.modules.get(name)
        path = _peek(loaded, "__path__") or (spec.submodule_search_locations if spec else None)
        if path is None:
            # A module that is there has no others in it; of a stub in sys.modules nothing is known.
            return spec is None
        name = f"{name}.{part}"
        if name not in specs:
            specs[name] = importlib.machinery.PathFinder.find_spec(name, path)
        spec = specs[name]
        if spec is None and name not in sys.modules:
            return False
    return True


def import_all(targets: Iterable[Target]) -> list[str]:
    """Import what the targets need and is installed; returns what is not fit for this Python or this machine."""
    unfit = []
    for module in dict.fromkeys(module for target in targets for module in target.modules):
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            pass
        except Exception as error:
            unfit.append(f"{module} cannot be imported: {type(error).__name__}: {error}")
    return unfit


def wait_for_imports(target: Target) -> None:
    """If another thread is importing a module, wait until it has: half of it is no known code."""
    for module in target.modules:
        spec = _peek(sys.modules.get(module), "__spec__")
        if getattr(spec, "_initializing", False):
            imports.wait_for_another_thread(module)


def _peek(module: Any, name: str) -> Any:
    """The attribute of a module, or None; does not load a module that is loaded when it is first used."""
    if issubclass(type(module), ModuleType):
        return ModuleType.__getattribute__(module, "__dict__").get(name)
    return getattr(module, name, None)


def await_import(module: str, imported: Callable[[str], None]) -> None:
    """Call ``imported(module)`` once, as soon as the module is imported, with its import lock held."""
    if module in _awaited:
        return
    _awaited.add(module)

    def arrived(_: object) -> None:
        _awaited.discard(module)
        imported(module)

    imports.when_imported(module, arrived)
