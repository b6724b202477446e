"""Applying, taking back and looking at patches.

What is true is read from the live objects: a patch is applied if the attribute leads to our
function and our function is switched on, whatever was called before.
"""

import contextlib
import functools
import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fastio import config, log
from fastio.errors import PatchError, SettingError, meant
from fastio.patching import distributions, holders, hooks, known_code, modules, registry, state
from fastio.patching.exclusive import Exclusive
from fastio.patching.hooks import Hook, UnknownCodeError
from fastio.patching.registry import Patch, Target
from fastio.report import Entry, Outcome, Report, Versions
from fastio.version import VERSION

#: The records, the hooks and the settings in force change by one thread at a time.
_turns = Exclusive()
_STATE = state.STATE


class _Call(NamedTuple):
    """The arguments of :func:`fastio.patch`."""

    names: str | Sequence[str] | None
    strict: bool
    arguments: Mapping[str, object]
    #: those of the service, by default the ones given last
    options: config.Options | None

    def resolve(self) -> tuple[config.Settings, list[str]]:
        """The settings that the call asks for, and the names of its patches."""
        settings = _resolve(self.arguments, options=self.options)
        return settings, _choose(self.names, settings)


class _Change(NamedTuple):
    """What a call did."""

    entries: list[Entry]
    settings: config.Settings
    #: names of the patches that were not wanted before
    added: frozenset[str]
    settings_before: config.Settings | None
    options_before: config.Options
    #: it was strict, and something was left alone: all is as before
    refused: bool


def apply(
    names: str | Sequence[str] | None,
    strict: bool,
    arguments: Mapping[str, object],
    options: config.Options | None = None,
) -> Report:
    """See :func:`fastio.patch`; ``options`` are those of the service, by default the ones given last."""
    report, _ = _apply(_Call(names, strict, arguments, options))
    return report


@contextlib.contextmanager
def applied(
    names: str | Sequence[str] | None,
    strict: bool,
    arguments: Mapping[str, object],
    options: config.Options | None = None,
) -> Iterator[Report]:
    """See :func:`fastio.patched`."""
    report, change = _apply(_Call(names, strict, arguments, options))
    try:
        yield report
    finally:
        if change is not None:
            _turns.change(functools.partial(_take_back, change))


def check(environ: Mapping[str, str]) -> None:
    """Raise what :func:`apply` would for the settings in these variables; nothing is done."""
    _resolve({}, environ)


def stand_back(why: str) -> None:
    """Have nothing patched, whatever the settings are; reports give ``why`` as the source of that."""
    settings = config.resolve({"enabled": False}, {}, {})
    settings = settings._replace(sources={**settings.sources, "enabled": why})

    def change() -> None:
        config.put_in_force(settings)
        _switch_off([*_STATE.wanted])
        _end_those_without_patches()

    _turns.change(change)


def revert(names: str | Sequence[str] | None) -> Report:
    """See :func:`fastio.unpatch`."""
    chosen = _select_known(names)
    _look_for_modules(chosen)
    entries = _turns.change(lambda: _revert_alone(chosen))
    return _report(_look_at(chosen) if entries is None else entries)


def busy() -> bool:
    """Return whether a thread is changing patches, so that :func:`status` would wait for it."""
    return _turns.busy


def status() -> Report:
    """See :func:`fastio.status`."""
    known = _known()
    _look_for_modules(known)
    # Who is interrupted while something changes sees it as it is then.
    entries = _look_at(known) if _turns.inside else _turns.change(lambda: _look_at(known))
    return _report(entries or [])


def _apply(call: _Call) -> tuple[Report, _Change | None]:
    # What imports, reads files or refuses comes first. Nothing of others runs while the lock is held.
    settings, chosen = call.resolve()
    config.warn_of_unknown()
    _prepare(chosen)
    change = _turns.change(lambda: _apply_alone(call))
    if change is None:
        return _report([Entry(name, "", Outcome.WAITING, _LATER) for name in chosen], settings), None
    report = _report(change.entries, change.settings)
    if change.refused:
        raise PatchError(report)
    for entry in report.problems():
        _log(log.WARNING, entry)
    if change.settings.enabled:
        log.log(log.INFO, "%s", report.summary())
    else:
        log.log(log.INFO, "fastio: switched off by %s", change.settings.sources["enabled"])
    return report, change


_LATER = "called while this thread is at another call of fastio's: done when that ends"


def _apply_alone(call: _Call) -> _Change:
    # Another thread may have changed the options since they were looked at first.
    settings, chosen = call.resolve()
    settings_before, options_before = config.in_force(), config.options()
    wanted_before = {*_STATE.wanted}
    for setting in _asking(settings):
        # Before anything is changed: it may refuse.
        _STATE.asked.add(setting)
        if not config.only_reporting:
            registry.demanded(setting).begin(settings)

    config.put_in_force(settings)
    config.put_options(options_before if call.options is None else call.options)
    _take_back_what_is_not_accepted()
    disabled = [name for name in _STATE.wanted if name not in chosen and not _allowed(settings, name)]
    _switch_off(disabled)
    _end_those_without_patches(_asking(settings))
    entries = _look_at([name for name in disabled if name in _loaded()])
    for name in chosen:
        named = call.names is not None and name not in settings.also
        _STATE.wanted[name] = named or _STATE.wanted.get(name, False)
        entries += _apply_patch(name)

    added = frozenset(chosen).difference(wanted_before)
    change = _Change(entries, settings, added, settings_before, options_before, refused=False)
    if call.strict and any(entry.left_alone for entry in entries):
        _take_back(change)
        return change._replace(refused=True)
    return change


def _take_back(change: _Change) -> None:
    """Have everything as it was before that call."""
    _switch_off(change.added)
    _end_those_without_patches()
    config.put_in_force(change.settings_before)
    config.put_options(change.options_before)
    _take_back_what_is_not_accepted()


def _take_back_what_is_not_accepted() -> None:
    """Take back what is at code that only an earlier ``accept_code`` has accepted."""
    for patch in registry.loaded():
        for target in patch.targets:
            hook = hooks.get(target)
            if hook is not None and patch.name in hook.layers and not hook.upstream[patch.name].is_accepted:
                _remove(patch, target, hook)


def _revert_alone(chosen: Sequence[str]) -> list[Entry]:
    _switch_off(chosen)
    _end_those_without_patches()
    return _look_at(chosen)


# Which patches


def _choose(names: str | Sequence[str] | None, settings: config.Settings) -> list[str]:
    """The names of the patches that are to be applied."""
    chosen = registry.choose(names, settings.disabled, settings.also, settings.profile)
    if not settings.enabled:
        return []
    on_demand = (patch.name for setting in _asking(settings) for patch in registry.on_demand(setting))
    return chosen + [name for name in on_demand if _allowed(settings, name)]


def _asking(settings: config.Settings) -> list[str]:
    """Those of the settings that ask for patches."""
    return [setting for setting in registry.ON_DEMAND if settings.enabled and getattr(settings, setting)]


def _allowed(settings: config.Settings, name: str) -> bool:
    """Whether the settings let the patch be in force."""
    listed = registry.listed().get(name)
    if listed is None:
        patch = registry.load(name)
        return patch.setting in _asking(settings) and name not in settings.disabled
    asked_for = listed.in_profile(settings.profile) or name in settings.also or _STATE.wanted.get(name, False)
    return settings.enabled and asked_for and not {name, registry.ALL} & set(settings.disabled)


def _known() -> list[str]:
    """The names of all patches, those on demand only if they have been asked for in this process."""
    on_demand = (setting for setting in registry.ON_DEMAND if setting in _STATE.asked)
    return [*registry.names(), *(patch.name for setting in on_demand for patch in registry.on_demand(setting))]


def _loaded(names: Iterable[str] | None = None) -> dict[str, Patch]:
    """The patches of these names (None: all) that are imported, by name, in the order of application."""
    return {patch.name: patch for patch in registry.loaded() if names is None or patch.name in names}


def _select_known(names: str | Sequence[str] | None) -> list[str]:
    """Those names (None: all of them), among them of those on demand that have been asked for."""
    known = _known()
    if names is None:
        return known
    asked = [names] if isinstance(names, str) else names
    on_demand = set(registry.all_names()) - set(registry.names())
    chosen = registry.choose([name for name in asked if name not in on_demand])
    return [name for name in known if name in chosen or name in asked]


def _resolve(
    arguments: Mapping[str, object],
    environ: Mapping[str, str] | None = None,
    options: config.Options | None = None,
) -> config.Settings:
    """The settings, with names of patches that there are."""
    settings = config.resolve(arguments, environ, options)
    if config.is_off(environ):
        # As for other settings: a bad name is not in the way of the kill switch.
        return settings._replace(disabled=(), also=(), accept_code=())
    _check_names(settings)
    return settings


def _check_names(settings: config.Settings) -> None:
    for name in settings.disabled:
        if name not in (registry.ALL, *registry.all_names()):
            source = settings.sources["disabled"]
            known = registry.all_names()
            allowed = f"{registry.ALL}, or names of patches: {', '.join(known)}"
            raise SettingError("disabled", name, source, allowed, meant(name, known))
    for name in settings.also:
        if name not in registry.names():
            known = registry.names()
            outside = ", ".join(registry.outside_the_default())
            allowed = f"names of patches: {', '.join(known)}; outside of the default: {outside}"
            raise SettingError("also", name, settings.sources["also"], allowed, meant(name, known))
    for entry in settings.accept_code:
        code, _, release = entry.partition("=")
        key, source = code.partition("@")[0], settings.sources["accept_code"]
        if key not in known_code.table():
            allowed, known_keys = "functions that patches replace", known_code.table()
            raise SettingError("accept_code", entry, source, allowed, meant(key, known_keys))
        known_releases = [f"{name} {version}" for name, of in known_code.releases(key).items() for version in of]
        if release and release not in known_releases:
            allowed = f"known releases of {key}: {', '.join(known_releases)}"
            raise SettingError("accept_code", entry, source, allowed)


def _end_those_without_patches(asking: Sequence[str] = ()) -> None:
    """End what was begun for settings of which no patch is wanted any more, but not for those that are ``asking``."""
    for setting in _STATE.asked.difference(asking):
        if not any(patch.name in _STATE.wanted for patch in registry.on_demand(setting)):
            registry.demanded(setting).end()


# One target


def _apply_patch(name: str) -> list[Entry]:
    patch = _loaded([name]).get(name)
    return [state.unloaded(name)] if patch is None else [_apply_target(patch, target) for target in patch.targets]


def _apply_target(patch: Patch, target: Target) -> Entry:
    record = state.record(patch, target)
    record.failure = ""
    try:
        blocked = state.blocked(patch, target)
        if blocked is not None:
            return blocked
        left = hooks.get(target)
        if left is not None and patch.name in left.layers and left.outdated(target):
            _remove(patch, target, left)
        hook = hooks.open_hook(patch, target)
        if patch.name not in hook.layers:
            hook.switch_on(patch, target)
            record.taken_back = False
        return state.look(patch, target)
    except UnknownCodeError as error:
        return state.entry(patch, target, Outcome.CHANGED, error.found, error.advice)
    except Exception as error:
        # The service that imported us must go on, whatever upstream did to the attribute.
        _turns.log(log.DEBUG, "fastio: %s (%s) failed", patch.name, target.key, exc_info=sys.exc_info())
        record.failure = f"{type(error).__name__}: {error}"
        left = hooks.get(target)
        if left is not None and not left.layers and left.remove():
            hooks.drop(target)
        return state.look(patch, target)


def _switch_off(names: Iterable[str]) -> None:
    """Take the patches back, the last one first, and forget that they were asked for."""
    for patch in reversed(_loaded(names).values()):
        for target in reversed(patch.targets):
            record = state.record(patch, target)
            record.failure = ""
            hook = hooks.get(target)
            if hook is not None:
                record.taken_back |= patch.name in hook.layers
                _remove(patch, target, hook)
    for name in names:
        _STATE.wanted.pop(name, None)


def _remove(patch: Patch, target: Target, hook: Hook) -> None:
    if patch.name in hook.layers:
        hook.switch_off(patch)
    # Also where a wrapper that sat on top last time has gone since.
    if not hook.layers and hook.remove():
        hooks.drop(target)


# Modules


def _prepare(names: Sequence[str]) -> None:
    """All that cannot be done with the lock held: what is imported, or looks for what can be."""
    _load(names)
    for patch in _loaded(names).values():
        for target in patch.targets:
            modules.wait_for_imports(target)
    _look_for_modules(names)
    _await_modules(names)


def _load(names: Iterable[str]) -> None:
    """Import the patches whose libraries are imported."""
    importlib.import_module("subprocess")
    for name, listed in registry.listed().items():
        if name in names and not sys.modules.keys().isdisjoint(listed.libraries):
            registry.load(name)


def _look_for_modules(names: Iterable[str]) -> None:
    loaded = _loaded(names)
    libraries = (library for name in names if name not in loaded for library in registry.listed()[name].libraries)
    modules.look_for((target for patch in loaded.values() for target in patch.targets), libraries)


def _await_modules(names: Iterable[str]) -> None:
    """Have what is missing applied once it is imported."""
    loaded = _loaded(names)
    for name in names:
        for library in () if name in loaded else registry.listed()[name].libraries:
            if modules.why_absent(library) is None:
                modules.await_import(library, _imported)
    for patch in loaded.values():
        for target in patch.targets:
            blocked = state.blocked(patch, target)
            if blocked is not None and blocked.outcome is Outcome.WAITING:
                for module in modules.missing(target):
                    modules.await_import(module, _imported)


def _imported(module: str) -> None:
    """The thread has the import lock of ``module``, so it must not wait for ours."""
    of_library = [name for name, listed in registry.listed().items() if module in listed.libraries]
    if wanted := [name for name in of_library if name in _STATE.wanted]:
        _load(wanted)
    concerned = [
        (patch, target)
        for patch in registry.loaded()
        for target in patch.targets
        if patch.name in wanted or module in target.modules
    ]
    # They may need other modules besides.
    names = {patch.name for patch, _ in concerned if patch.name in _STATE.wanted}
    _look_for_modules(names)
    _await_modules(names)
    _turns.leave(lambda: _apply_imported(concerned))


def _apply_imported(concerned: Sequence[tuple[Patch, Target]]) -> None:
    for patch, target in concerned:
        if patch.name in _STATE.wanted:
            entry = _apply_target(patch, target)
            _log(log.WARNING if entry.left_alone else log.DEBUG, entry)


# What is told


def _look_at(names: Iterable[str]) -> list[Entry]:
    loaded = _loaded()
    return [
        entry
        for name in names
        for entry in (
            [state.look(loaded[name], target) for target in loaded[name].targets]
            if name in loaded
            else [state.unloaded(name)]
        )
    ]


def _report(entries: Sequence[Entry], settings: config.Settings | None = None) -> Report:
    """``settings`` are those that the entries are about, by default the ones in force."""
    notes = [
        note for setting in registry.ON_DEMAND if setting in _STATE.asked for note in registry.demanded(setting).notes()
    ]
    notes += [note for patch in registry.loaded() if patch.name in _STATE.wanted for note in patch.notes()]
    notes += config.unknown()
    return Report(entries, settings or config.effective(), Versions(_versions), holders.late_holders(), notes)


def _versions() -> dict[str, str]:
    found = {"fastio": VERSION, known_code.CPYTHON: sys.version.partition(" ")[0]}
    for requirement in map(registry.Requirement, registry.libraries().values()):
        found[requirement.distribution] = distributions.version(requirement.distribution) or "absent"
    return found


def _log(level: int, entry: Entry) -> None:
    _turns.log(level, "fastio: %s (%s): %s: %s", entry.name, entry.target, entry.outcome.value, entry.found)
