"""The definition of a patch, and the table of all of them.

A patch is a module in a library's folder in ``fastio.patches`` that declares a ``PATCH``, and a line in ``TABLE``. It
is imported once its library is. Modules whose names begin with an underscore are shared by those of their folder.
"""

import importlib
import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from fastio import config
from fastio.errors import SettingError, UnknownPatchError, meant
from fastio.patching import known_code
from fastio.patching.known_code import KNOWN, Uses

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet


#: Makes what is put at an attribute, from what is there and the hook; see :class:`Target`.
Make = Callable[[Callable[..., Any], Any], Callable[..., Any]]

#: The running Python's minor version.
RUNNING = ".".join(map(str, sys.version_info[:2]))

#: Where the folders of patches are.
PATCHES = "fastio.patches"

#: Where the patches that record a trace are, and their names in the order of application. They are in force while the
#: setting ``trace`` has a value; none is imported before.
TRACE = "fastio.trace.instrumentation"
TRACE_NAMES = ("trace_client", "trace_hub", "trace_requests", "trace_stores", "trace_subprocess")

#: Libraries that patches of others work on, besides those of the table.
_OTHERS = ("requests", "swiftclient")

#: In ``disabled``: all patches but those that record a trace.
ALL = "all"


class Requirement(str):
    """An installed distribution in a range of versions, as PEP 508 has it: ``eventlet >= 0.34.3, < 0.42``."""

    __slots__ = ()

    @property
    def distribution(self) -> str:
        """Its name, also where packaging is not installed: without libraries fastio needs none itself."""
        return self.partition(" ")[0]

    def accepts(self, version: str) -> bool:
        """Whether ``version`` is in the range, in the order of PEP 440: ``5.0.0rc1`` comes before ``5.0``.

        Release candidates and development versions between the bounds are in it, and local ones such as
        ``5.0.1+deb13u1``; what is no version is not.
        """
        if re.fullmatch(_PLAIN, version, re.ASCII) and (bounds := _plain_bounds(self)) is not None:
            return all(_HOLDS[sign](_trimmed(version), bound) for sign, bound in bounds)
        from packaging.version import InvalidVersion, Version

        try:
            return _specifier(self).contains(Version(version), prereleases=True)
        except InvalidVersion:
            return False


#: A version, and a bound, that are compared number by number; packaging, which knows all others, takes long to import.
_PLAIN = r"\d+(?:\.\d+)*"
_BOUND = rf"\s*(>=|<=|>|<)\s*({_PLAIN})\s*"
_HOLDS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


@cache
def _plain_bounds(text: str) -> list[tuple[str, tuple[int, ...]]] | None:
    """The bounds of a requirement such as ``eventlet >= 0.34.3, < 0.42``; None if it has anything else."""
    matches = [re.fullmatch(_BOUND, bound, re.ASCII) for bound in text.partition(" ")[2].split(",")]
    return [(match[1], _trimmed(match[2])) for match in matches if match] if all(matches) else None


def _trimmed(version: str) -> tuple[int, ...]:
    """``5.0`` and ``5`` are the same version."""
    return _version(re.sub(r"(?:\.0+)+$", "", version))


@cache
def _specifier(text: str) -> "SpecifierSet":
    # Imported when it is wanted: importing fastio need not cost that.
    from packaging.requirements import Requirement

    return Requirement(text).specifier


class _Declared(NamedTuple):
    """The declaration of a target."""

    #: the attribute, as ``module:qualified.name``; the module has to be imported before the target can be patched
    key: str
    make: Make
    #: use of the attribute's own code by the replacement, which has to be known unless that goes on running
    uses: Uses = KNOWN
    #: uses of other functions: a name alone is one beside the attribute, of the same class or module; those
    #: elsewhere are written as ``module:qualified.name``, see ``Hook.relied_on``
    relies_on: Mapping[str, Uses] = {}
    #: where upstream has the attribute from, as ``module:qualified.name``, if it inherits or copies it; the functions
    #: beside it come from beside that
    code: str = ""
    #: the object that has the attribute; found by walking the path in the module unless given
    find_owner: Callable[[], Any] | None = None
    #: other places (``module:name``) that hold the very same object once eventlet has monkey patched
    also: Sequence[str] = ()
    #: distributions for this target alone, besides its library: requirements of PEP 508
    requires: Sequence[str] = ()
    #: the replacement itself looks at ``hook.active``; saves one call where a call is all that the attribute costs
    direct: bool = False
    #: upstream's value there, if it is no function; the functions beside it are then those who
    #: read it, and nothing comes between them and the replacement
    stock: int | None = None
    #: the Pythons that need the target, such as ``>= 3.15``
    python: str = ""


class Target(_Declared):
    """One attribute that a patch replaces, and the functions of upstream's that the replacement relies on.

    ``make(wrapped, hook)`` returns the replacement; ``wrapped`` is what would be called without it.
    ``hook.active`` is False once the patch has been taken back but another wrapper still calls us.
    """

    @property
    def module(self) -> str:
        return self.key.partition(":")[0]

    @property
    def attribute(self) -> str:
        """The dotted path of the attribute in the module."""
        return self.key.partition(":")[2]

    @property
    def name(self) -> str:
        return last_name(self.key)

    @cached_property
    def beside(self) -> dict[str, str]:
        """The functions that the attribute's owner has to have, by name, with their keys in ``fingerprints.json``.

        The attribute is the first of them, unless it is a value.
        """
        return {last_name(key): key for key in self.functions() if key not in self.relies_on}

    @cached_property
    def elsewhere(self) -> tuple[str, ...]:
        """The keys of the functions that it relies on in other classes and modules."""
        return tuple(key for key in self.functions() if key in self.relies_on)

    def functions(self, python: str | None = RUNNING) -> dict[str, Uses]:
        """Return how each function of the target is used, by its key in ``fingerprints.json``.

        The first decides the release: it is the attribute's, or that of a function that reads it.

        :param python: the minor version that has the functions, such as ``3.15``; None: any
        """
        if python is not None and not self.needed_under(python):
            return {}
        code = self.code or self.key
        prefix = code.removesuffix(last_name(code))
        found = {} if self.stock is not None else {code: self.uses}
        for name, uses in self.relies_on.items():
            if python is None or _has(uses.python, python):
                found[name if ":" in name else prefix + name] = uses
        return found

    def needed_under(self, python: str = RUNNING) -> bool:
        """Whether that minor version of Python needs the target."""
        return _has(self.python, python)

    @property
    def plain(self) -> bool:
        """Whether the replacement itself stands at the attribute, with no hook function in between."""
        return self.direct or self.stock is not None

    @property
    def modules(self) -> tuple[str, ...]:
        """All modules that have to be imported before the target can be patched."""
        return tuple(dict.fromkeys((self.module, *(key.partition(":")[0] for key in self.elsewhere))))

    @property
    def libraries(self) -> set[str]:
        """The top packages of the attribute and of its code."""
        return {key.partition(":")[0].partition(".")[0] for key in (self.key, self.code or self.key)}

    def owner(self) -> Any:
        """The object that has the attribute, None if it is gone; the module has been imported."""
        if self.find_owner is not None:
            return self.find_owner()
        owner: Any = sys.modules[self.module]
        for name in self.attribute.split(".")[:-1]:
            owner = getattr(owner, name, None)
        return owner


def _has(pythons: str, python: str) -> bool:
    return not pythons or Requirement(f"Python {pythons}").accepts(python)


def reached(releases: str, firsts: Sequence[str]) -> str:
    """Return the entry of ``firsts`` (first release of each line with some code) that ``releases`` come at or after.

    Empty if they come before. Releases with the same code agree in this, so the first of ``releases`` decides for all.

    :param releases: such as ``CPython 3.13.10 3.13.18``
    :param firsts: such as ``("3.13.10", "3.14.1")``: later lines have it from their beginning, earlier ones never
    """
    name, number = releases.split(" ")[:2]
    version = _version(number)
    of_line = [first for first in firsts if _version(first)[:2] == version[:2]]
    return next((f"{name} {first}" for first in of_line or firsts[-1:] if version >= _version(first)), "")


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def last_name(key: str) -> str:
    """``add`` of ``module:Store.add``."""
    return key.partition(":")[2].rpartition(".")[2]


class Patch(NamedTuple):
    """A named unit that is applied, taken back and reported as a whole."""

    #: the module that declares it, whose last part is its name
    module: str
    #: one sentence for people
    summary: str
    targets: Sequence[Target]
    #: distributions besides its folder's, or in another range: requirements of PEP 508
    requires: Sequence[str] = ()
    #: releases without the code that it fixes or speeds up: requirements of PEP 508, such as ``glance < 32``
    not_needed_in: Sequence[str] = ()
    #: effects on programs besides time, memory and threads, sizes of chunks and pipes, and when others run;
    #: one sentence. The profile ``safe`` leaves out a patch that has one
    changes: str = ""
    #: notes for a report, while the patch is wanted
    notes: Callable[[], list[str]] = list
    #: why no call comes to it in this process, wherever it is applied: no server that it is for; else empty
    unused: Callable[[], str] = str

    @property
    def folder(self) -> str:
        return self.module.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    def not_needed_here(self, version: Callable[[str], str | None]) -> Requirement | None:
        """Which of ``not_needed_in`` the installed releases meet.

        :param version: the installed version of a distribution, None if there is none
        """
        found = ((each, version(each.distribution)) for each in map(Requirement, self.not_needed_in))
        return next((each for each, installed in found if installed is not None and each.accepts(installed)), None)

    def requirements(self, target: Target) -> tuple[Requirement, ...]:
        """Return the distributions needed for ``target``, one of the patch's.

        Each distribution once, in the range that is said first: by the patch, its folder, the folders of the libraries
        that the target is about, the target.
        """
        folders = (self.folder, *map(folder_of, target.modules))
        texts = (*self.requires, *filter(None, map(_stated, folders)), *target.requires)
        found: dict[str, Requirement] = {}
        for requirement in map(Requirement, texts):
            found.setdefault(requirement.distribution, requirement)
        return tuple(found.values())


def folder_of(module: str) -> str:
    """The folder of patches of the library that ``module`` belongs to; of the standard library few modules have one."""
    return f"{PATCHES}.{module.partition('.')[0]}"


@cache
def _stated(folder: str) -> str:
    """The requirement that the folder states, empty if there is none."""
    try:
        return getattr(importlib.import_module(folder), "REQUIRES", "")
    except ModuleNotFoundError:
        return ""


class Listed(NamedTuple):
    """A patch in the table, which need not be imported to know of it."""

    name: str
    #: its folder, which has the name of the library
    library: str
    #: the driver of glance_store that it is for: without such a store no call comes to it
    store: str = ""
    #: whether the patch says what programs may notice of it
    changes: bool = False
    #: other libraries, in which the patch has targets that serve programs without the first
    besides: tuple[str, ...] = ()

    @property
    def libraries(self) -> tuple[str, ...]:
        """Modules of which any has the patch imported once it is imported itself."""
        return (self.library, *self.besides)

    def in_profile(self, profile: str) -> bool:
        """Whether ``patch()`` without names applies it in that profile."""
        return not (profile == config.SAFE and self.changes)


#: The patches but those that record a trace, in the order of application: each on top of the ones before it that work
#: on the same attribute.
TABLE = (
    # Make upstream's functions fast, in their place or around them.
    Listed("green_communicate", "eventlet"),
    Listed("green_pipe", "eventlet", changes=True),
    Listed("green_sendall", "eventlet"),
    Listed("green_wait", "eventlet"),
    Listed("store_filesystem", "glance_store"),
    Listed("glance_cache", "glance"),
    Listed("glance_imports", "glance"),
    Listed("glance_sendfile", "glance", changes=True),
    Listed("glance_slow_clients", "glance", changes=True),
    Listed("glance_uploads", "glance"),
    Listed("http_ranges", "glance_store", store="http", changes=True),
    Listed("image_hashing", "glance_store"),
    Listed("s3_client", "glance_store", store="s3", changes=True),
    Listed("s3_ranges", "glance_store", store="s3", changes=True),
    Listed("s3_singlepart", "glance_store", store="s3"),
    Listed("swift_ranges", "glance_store", store="swift", changes=True, besides=("swiftclient",)),
    Listed("store_cinder", "glance_store", store="cinder"),
    Listed("store_http", "glance_store", store="http"),
    Listed("store_rbd", "glance_store", store="rbd"),
    Listed("store_s3", "glance_store", store="s3"),
    Listed("store_swift", "glance_store", store="swift", besides=("swiftclient",)),
    Listed("store_vmware", "glance_store", store="vmware"),
    Listed("glanceclient_hashing", "glanceclient"),
    Listed("openstacksdk_download", "openstack"),
    Listed("openstacksdk_hashing", "openstack"),
    Listed("oslo_spawn", "oslo_concurrency", changes=True),
    # eventlet imports copies of subprocess in its place, so the original is patched before.
    Listed("communicate", "subprocess", besides=("eventlet",)),
    Listed("wait", "subprocess", besides=("eventlet",)),
    Listed("urllib3_blocks", "urllib3"),
    Listed("urllib3_sendfile", "urllib3", changes=True),
    # Correct what upstream does wrong, whichever function does the work beneath.
    Listed("fix_green_pipelines", "eventlet", changes=True),
    Listed("fix_green_encoding", "eventlet", changes=True),
    Listed("fix_green_epipe", "eventlet", changes=True),
    Listed("fix_green_exceptions", "eventlet", changes=True),
    Listed("fix_cinder_file_volumes", "glance_store", store="cinder", changes=True),
    Listed("fix_cinder_read_errors", "glance_store", store="cinder", changes=True),
    Listed("fix_swift_last_segment", "glance_store", store="swift", changes=True),
    Listed("fix_wait_poll", "subprocess", changes=True, besides=("eventlet",)),
    # Let other requests run.
    Listed("image_fairness", "glance_store"),
)

#: The patches that were imported, by name.
_loaded: dict[str, Patch] = {}


def listed() -> dict[str, Listed]:
    """The table, by the names of the patches."""
    return _by_name(tuple(TABLE))


@cache
def _by_name(table: tuple[Listed, ...]) -> dict[str, Listed]:
    return {each.name: each for each in table}


def load(name: str) -> Patch:
    """The patch of that name, which is imported."""
    if name not in _loaded:
        folder = TRACE if name in TRACE_NAMES else f"{PATCHES}.{listed()[name].library}"
        known_code.prepare()
        _loaded[name] = importlib.import_module(f"{folder}.{name}").PATCH
    return _loaded[name]


def get(name: str) -> Patch | None:
    """The patch of that name, if it was imported."""
    return _loaded.get(name)


def loaded() -> list[Patch]:
    """The patches that were imported, in the order of application."""
    return [_loaded[name] for name in all_names() if name in _loaded]


def patches() -> tuple[Patch, ...]:
    """All patches in the order of application, those left out that record a trace; they are imported."""
    return tuple(map(load, names()))


def all_patches() -> tuple[Patch, ...]:
    """All patches in the order of application, which are imported."""
    return tuple(map(load, all_names()))


@cache
def libraries() -> dict[str, str]:
    """Return the requirements of the libraries' folders, by the folder's name; the standard library has none."""
    found = sorted({*_OTHERS, *(each.library for each in TABLE)})
    stated = {library: _stated(f"{PATCHES}.{library}") for library in found}
    return {library: text for library, text in stated.items() if text}


def names() -> tuple[str, ...]:
    """The names of all patches in the order of application, those left out that record a trace."""
    return tuple(each.name for each in TABLE)


def all_names() -> tuple[str, ...]:
    """The names of all patches in the order of application."""
    return (*names(), *TRACE_NAMES)


def named(wanted: str | Sequence[str] | None, known: Sequence[str]) -> list[str] | None:
    """The names in ``wanted``, one or several; None for None.

    :raises UnknownPatchError: for a name that is not ``known``
    """
    if wanted is None:
        return None
    if isinstance(wanted, bytes) or not isinstance(wanted, Iterable):
        raise TypeError(f"names: a name of a patch or several of them, not {wanted!r}")
    found = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in found:
        if name not in known:
            raise UnknownPatchError(name, tuple(known))
    return found


def resolve(
    arguments: Mapping[str, object],
    environ: Mapping[str, str] | None = None,
    options: config.Options | None = None,
) -> config.Settings:
    """See :func:`fastio.config.resolve`; names of patches are checked as well."""
    settings = config.resolve(arguments, environ, options)
    if config.is_off(environ):
        # As for other settings: a bad name is not in the way of the kill switch.
        return settings._replace(disabled=(), also=(), accept_code=())
    _check_names(settings)
    return settings


def _check_names(settings: config.Settings) -> None:
    every, listed = all_names(), names()
    of_all = f"{ALL}, or names of patches: {', '.join(every)}"
    of_more = f"names of patches: {', '.join(listed)}"
    for setting, known, allowed in (("disabled", (*every, ALL), of_all), ("also", listed, of_more)):
        for name in getattr(settings, setting):
            if name not in known:
                raise SettingError(setting, name, settings.sources[setting], allowed, meant(name, known))
    for entry in settings.accept_code:
        key, source = entry.partition("@")[0], settings.sources["accept_code"]
        if key not in (table := known_code.table()):
            raise SettingError("accept_code", entry, source, "functions that patches replace", meant(key, table))
