"""The targets of fastio's patches: whether they are here, and their objects. Needs nothing but fastio."""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import platform
import sys
from functools import cache
from typing import Any

import fastio
from fastio.patches.subprocess._dialects import ResumesInput
from fastio.patching import distributions, hooks, places, registry
from fastio.patching.registry import Patch, Target

#: The running Python as the table of fingerprints names it.
THIS_PYTHON = f"CPython {platform.python_version()}"
#: Whether ``communicate()`` after a time-out sends the rest of the input, and goes on where stdin is closed.
SENDS_REST = bool(registry.reached(THIS_PYTHON, ResumesInput.since))


def import_targets() -> None:
    """Import everything that fastio patches and that is installed."""
    targets = [target for patch in registry.all_patches() for target in patch.targets]
    for module in {module for target in targets for module in target.modules} - sys.modules.keys():
        if _is_installed(module.partition(".")[0]):
            # A driver may not be part of the installed release.
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(module)


@cache
def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def not_installed(patch: Patch, target: Target) -> str:
    """Return the target's missing requirements, empty if it has all."""
    for requirement in patch.requirements(target):
        try:
            importlib.metadata.version(requirement.distribution)
        except importlib.metadata.PackageNotFoundError:
            return f"{requirement.distribution} is not installed"
    return ""


def missing(patch: Patch, target: Target) -> str:
    """Why the target cannot be here, empty if it is; call ``import_targets()`` first."""
    if reason := not_installed(patch, target):
        return reason
    if without := patch.not_needed_here(distributions.version):
        return f"not needed: {without} is without it"
    if not target.needed_under():
        return f"not needed: it is for Python {target.python}"
    if target.module not in sys.modules:
        return f"{target.module} is not part of this release"
    if target.find_owner is None and target.owner() is None:
        return f"this release has no {target.attribute.rpartition('.')[0]}"
    return ""


def can_be_applied(patch: Patch, target: Target) -> bool:
    """Whether the target is here, and needed; call ``import_targets()`` first."""
    return not missing(patch, target) and target.owner() is not None


def not_needed(name: str) -> bool:
    """Whether upstream does here by itself what the patch ``name`` is for."""
    return not any(target.needed_under() for target in registry.load(name).targets)


def in_effect() -> set[str]:
    """The names of the patches that are."""
    return {entry.name for entry in fastio.status().entries if entry.in_effect}


def exchange(patch: Patch, other: Patch, monkeypatch: Any) -> None:
    """Have the registry say ``other`` where it says ``patch``."""
    monkeypatch.setitem(registry._loaded, patch.name, other)


def function_at(target: Target, attribute: str, key: str) -> Any:
    """Upstream's function, or ours in its place, also beneath decorators; None if it is not found."""
    place = places.AttributePlace(target.owner(), attribute)
    modules = (target.module, key.partition(":")[0])
    found = places.find(place, lambda value: hooks.is_upstreams(modules, attribute, value))
    return None if found is None else found.function


def attributes() -> dict[str, Any]:
    """Return the object at every attribute that fastio may replace in an imported module, by the target's key."""
    found: dict[str, Any] = {}
    for patch in registry.all_patches():
        for target in patch.targets:
            if target.module not in sys.modules:
                continue
            owner = target.owner()
            if owner is not None:
                found[target.key] = inspect.getattr_static(owner, target.name, None)
                # The difference between an own attribute and an inherited one has to come back too.
                found[target.key + " itself"] = vars(owner).get(target.name)
                for attribute, key in target.beside.items():
                    function = function_at(target, attribute, key) if attribute == target.name else None
                    if function is not None:
                        found[target.key + " beneath"] = function
            for place in target.also:
                module, _, name = place.partition(":")
                found[place] = getattr(sys.modules.get(module), name, None)
    return found
