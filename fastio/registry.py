"""What a patch is, and the table of all of them.

Whoever adds a target adds one module to ``fastio.patches`` that declares a ``PATCH``, and its name
to ``MODULES`` below.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from fastio.errors import UnknownPatchError

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

#: The patches, in the order in which they are applied. Where several work on the same attribute the later ones sit on
#: top, so a replacement comes before the fixes that wrap it.
MODULES = (
    "communicate",
    "green_communicate",
    "wait",
    "green_wait",
    "green_pipe",
    "oslo_spawn",
    "fix_green_epipe",
    "fix_green_exceptions",
    "fix_green_pipelines",
    "fix_green_encoding",
    "fix_green_buffering",
    "green_buffers",
    "fix_green_sendall",
    "fix_green_wsgi_chunked",
    "fix_input_items",
    "fix_input_resume",
    "fix_closed_stdin",
    "store_filesystem",
    "store_rbd",
    "store_cinder",
    "fix_cinder_read_errors",
    "store_s3",
    "fix_s3_singlepart",
    "fix_s3_client",
    "store_http",
    "store_swift",
    "store_vmware",
    "store_chunks",
    "store_sheepdog",
    "fix_sheepdog_binary",
    "fix_swift_last_segment",
    "store_fairness",
    "store_hashing",
    "glance_cache",
    "glance_uploads",
    "glance_sendfile",
    "glanceclient_download",
    "glanceclient_hashing",
)

#: In ``disabled``: all patches, but not those of wings.
ALL = "all"


@dataclass(frozen=True)
class Wing:
    """Patches that are in force only while a setting asks for them; until then nothing of them is imported.

    ``package`` has a module for each of them, and ``begin(settings)``, ``end()`` and ``notes()``, which are called
    before the first is applied, after the last was taken back, and for a report.
    """

    setting: str
    package: str
    modules: tuple[str, ...]

    def patches(self) -> tuple[Patch, ...]:
        return tuple(importlib.import_module(f"{self.package}.{name}").PATCH for name in self.modules)


#: They sit on top of all other patches.
WINGS = (
    Wing(
        "trace",
        "fastio.trace.boundaries",
        ("trace_hub", "trace_subprocess", "trace_stores", "trace_requests", "trace_client"),
    ),
)


@dataclass(frozen=True)
class Requirement:
    """An installed distribution, in a range of versions: from ``minimum``, and lower than ``below``."""

    distribution: str
    minimum: str
    below: str

    def __str__(self) -> str:
        return f"{self.distribution} >= {self.minimum}, < {self.below}"

    def accepts(self, version: str) -> bool:
        """Whether ``version`` is in the range, in the order of PEP 440: ``5.0.0rc1`` comes before ``5.0``.

        Release candidates and development versions between the bounds are in it, and local ones such as
        ``5.0.1+deb13u1``; what is no version is not.
        """
        from packaging.version import InvalidVersion, Version

        try:
            return self._range.contains(Version(version), prereleases=True)
        except InvalidVersion:
            return False

    @cached_property
    def _range(self) -> SpecifierSet:
        # Imported when it is wanted: importing fastio need not cost that.
        from packaging.specifiers import SpecifierSet

        return SpecifierSet(f">={self.minimum},<{self.below}")


@dataclass(frozen=True)
class Target:
    """One attribute that a patch replaces.

    ``make(below, slot)`` returns the replacement; ``below`` is what would be called without it.
    ``slot.active`` is False once the patch has been taken back but another wrapper still calls us.
    """

    #: module that has to be imported before the target can be patched
    module: str
    #: dotted path of the attribute in the module
    attribute: str
    make: Callable[[Callable[..., Any], Any], Callable[..., Any]]
    #: keys of ``fingerprints.json`` by attribute path; the first is the attribute itself
    fingerprints: Sequence[tuple[str, str]]
    #: the object that has the attribute; found by walking the path in the module unless given
    find_owner: Callable[[], Any] | None = None
    #: other ``(module, name)`` places that hold the very same object once eventlet has monkey patched
    also: Sequence[tuple[str, str]] = ()
    #: what only this target needs to be installed
    requires: Sequence[Requirement] = ()
    #: the replacement itself looks at ``slot.active``; saves one call where a call is all that the attribute costs
    direct: bool = False
    #: functions elsewhere whose code ``make`` has to know, as ``module:qualified.name``; see ``Slot.relied_on``
    relies_on: Sequence[str] = ()
    #: what upstream has there, if it is a value rather than a function; ``fingerprints`` are then those who read it
    stock: int | None = None

    @property
    def key(self) -> str:
        return f"{self.module}:{self.attribute}"

    @property
    def keys(self) -> tuple[str, ...]:
        """Of all functions whose code has to be known, their keys in ``fingerprints.json``."""
        return (*(key for _, key in self.fingerprints), *self.relies_on)

    @property
    def modules(self) -> tuple[str, ...]:
        """All modules that have to be imported before the target can be patched."""
        return tuple(dict.fromkeys((self.module, *(key.partition(":")[0] for key in self.relies_on))))

    def owner(self) -> Any:
        """The object that has the attribute, None if it is gone; the module has been imported."""
        if self.find_owner is not None:
            return self.find_owner()
        owner: Any = sys.modules[self.module]
        for name in self.attribute.split(".")[:-1]:
            owner = getattr(owner, name, None)
        return owner

    @property
    def name(self) -> str:
        return self.attribute.rpartition(".")[2]


@dataclass(frozen=True)
class Patch:
    """A named unit that is applied, taken back and reported as a whole."""

    name: str
    #: one sentence for people
    summary: str
    targets: Sequence[Target]
    requires: Sequence[Requirement] = ()
    #: whether ``patch()`` without names applies it. A patch that changes what programs written for upstream rely on
    #: is applied only where it is named, or the setting ``also`` asks for it
    default: bool = True


@lru_cache(maxsize=1)
def patches() -> tuple[Patch, ...]:
    """All patches in the order of application, those of wings left out."""
    return tuple(importlib.import_module(f"fastio.patches.{name}").PATCH for name in MODULES)


def names() -> tuple[str, ...]:
    """The names of all patches in the order of application, those of wings left out."""
    return MODULES


def all_names() -> tuple[str, ...]:
    """The names of all patches, and of those of wings, in the order of application."""
    return (*MODULES, *(name for wing in WINGS for name in wing.modules))


def outside_the_default() -> tuple[str, ...]:
    """The names of the patches that ``patch()`` without names leaves out."""
    return tuple(patch.name for patch in patches() if not patch.default)


def select(
    wanted: str | Sequence[str] | None, disabled: Sequence[str] = (), also: Sequence[str] = ()
) -> list[Patch]:
    """The patches named in ``wanted`` (None: those of the default) and in ``also``, without the disabled ones.

    :raises UnknownPatchError: for a name that does not exist, in any of them
    """
    if isinstance(wanted, str):
        wanted = [wanted]
    if isinstance(wanted, bytes) or wanted is not None and not isinstance(wanted, Iterable):
        raise TypeError(f"names: a name of a patch or several of them, not {wanted!r}")
    for name in (*(wanted or ()), *also):
        if name not in MODULES:
            raise UnknownPatchError(name, MODULES)
    for name in disabled:
        if name not in (ALL, *all_names()):
            raise UnknownPatchError(name, all_names())
    if ALL in disabled:
        return []
    chosen = {*(wanted or ()), *also}
    return [
        patch
        for patch in patches()
        if (patch.name in chosen or wanted is None and patch.default) and patch.name not in disabled
    ]
