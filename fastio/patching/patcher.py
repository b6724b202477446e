"""Applying, taking back and looking at patches.

The state is read from the live objects: a patch is applied if the attribute leads to our
function and our function is switched on, whatever was called before.
"""

import importlib
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from fastio import config, log
from fastio.errors import PatchError
from fastio.patching import distributions, holders, hooks, imports, known_code, modules, registry, state
from fastio.patching.exclusive import Exclusive
from fastio.patching.hooks import Hook, UnknownCodeError
from fastio.patching.registry import Patch, Target
from fastio.report import Entry, Outcome, Report
from fastio.version import VERSION

#: Serializes changes of the records, the hooks and the settings in force.
_turns = Exclusive()
_STATE = state.STATE


def apply(
    names: str | Sequence[str] | None,
    strict: bool,
    arguments: Mapping[str, object],
    options: config.Options | None = None,
) -> tuple[Report, Callable[[], object]]:
    """See :func:`fastio.patch`; ``options`` are those of the service, by default the ones given last.

    :returns: the report, and a function that takes back what was done
    """
    # Imports, reading of files and refusals come first. No foreign code runs while the lock is held.
    named = registry.named(names, registry.names())
    settings = registry.resolve(arguments, options=options)
    chosen = _choose(named, settings)
    config.warn_of_unknown()
    _prepare(chosen)
    done = _turns.change(lambda: _apply_alone(named, strict, arguments, options))
    if done is None:
        return _report([Entry(name, "", Outcome.WAITING, _LATER) for name in chosen], settings), lambda: None
    entries, settings, undo = done
    report = _report(entries, settings)
    if undo is None:
        raise PatchError(report)
    for entry in report.problems():
        _log(log.WARNING, entry)
    if settings.enabled:
        log.log(log.INFO, "%s", report.summary())
    else:
        log.log(log.INFO, "fastio: switched off by %s", settings.sources["enabled"])
    return report, lambda: _turns.change(undo)


def stand_back(why: str) -> None:
    """Have nothing patched, whatever the settings are; reports give ``why`` as the source of that."""
    settings = config.resolve({"enabled": False}, {}, {})
    settings = settings._replace(sources={**settings.sources, "enabled": why})

    def change() -> None:
        config.put_in_force(settings)
        _switch_off([*_STATE.wanted])
        _end_trace()

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
    # A call that comes in the middle of a change sees the state of that moment.
    entries = _look_at(known) if _turns.inside else _turns.change(lambda: _look_at(known))
    return _report(entries or [])


_LATER = "called while this thread is at another call of fastio's: done when that ends"


def _apply_alone(
    named: Sequence[str] | None, strict: bool, arguments: Mapping[str, object], options: config.Options | None
) -> tuple[list[Entry], config.Settings, Callable[[], None] | None]:
    """The entries, the settings, and what takes it back; None if it was strict, something was left alone, and it is."""
    # Another thread may have changed the options since they were looked at first.
    settings = registry.resolve(arguments, options=options)
    chosen = _choose(named, settings)
    settings_before, options_before = config.in_force(), config.options()
    wanted_before = dict(_STATE.wanted)
    traced = settings.enabled and settings.trace is not None
    if traced:
        # Before anything is changed: it may refuse.
        _begin_trace(settings)

    config.put_in_force(settings)
    config.put_options(options_before if options is None else options)
    _take_back_what_is_not_accepted()
    disabled = [
        name
        for name, by_name in _STATE.wanted.items()
        if name not in chosen and not _is_wanted(settings, name, by_name)
    ]
    _switch_off(disabled)
    if not traced:
        _end_trace()
    entries = _look_at([name for name in disabled if registry.get(name)])
    for name in chosen:
        by_name = named is not None and name not in settings.also
        _STATE.wanted[name] = by_name or _STATE.wanted.get(name, False)
        entries += _each(name, _apply_target)

    def undo() -> None:
        _switch_off(frozenset(chosen).difference(wanted_before))
        config.put_in_force(settings_before)
        config.put_options(options_before)
        _take_back_what_is_not_accepted()
        for name, by_name in wanted_before.items():
            # A patch that was taken back since then stays off.
            if name in disabled or name in _STATE.wanted:
                _STATE.wanted[name] = by_name
                if name in disabled:
                    _each(name, _apply_target)
        _end_trace()
        if settings_before is not None and _records():
            _begin_trace(settings_before)

    if strict and any(entry.left_alone for entry in entries):
        undo()
        return entries, settings, None
    return entries, settings, undo


def _take_back_what_is_not_accepted() -> None:
    """Take back what is at code that only an earlier ``accept_code`` has accepted."""
    for patch, target in _targets():
        hook = hooks.get(target)
        if hook is not None and patch.name in hook.layers and not hook.upstream[patch.name].is_accepted:
            _remove(patch, target, hook)


def _revert_alone(chosen: Sequence[str]) -> list[Entry]:
    _switch_off(chosen)
    _end_trace()
    return _look_at(chosen)


# Which patches


def _choose(named: Collection[str] | None, settings: config.Settings) -> list[str]:
    """The names of the patches that are to be applied: those that were named (None: those of the profile), and more."""
    if settings.enabled and settings.trace is not None:
        for name in registry.TRACE_NAMES:
            registry.load(name)
    return [
        name
        for name in registry.all_names()
        if _is_wanted(settings, name, named is not None and name in named, by_default=named is None)
    ]


def _is_wanted(settings: config.Settings, name: str, named: bool, by_default: bool = True) -> bool:
    """Whether the settings let the patch be in force, one that was named or that is there ``by_default``."""
    if not settings.enabled or name in settings.disabled:
        return False
    listed = registry.listed().get(name)
    if listed is None:
        return settings.trace is not None
    asked_for = named or name in settings.also or by_default and listed.in_profile(settings.profile)
    return asked_for and registry.ALL not in settings.disabled


def _known() -> list[str]:
    """The names of all patches, those that record a trace only if one was asked for in this process."""
    return [*registry.names(), *(registry.TRACE_NAMES if _STATE.traced else ())]


def _select_known(names: str | Sequence[str] | None) -> list[str]:
    """Those names (None: all of them), among them of those that record a trace."""
    named = registry.named(names, registry.all_names())
    return [name for name in _known() if named is None or name in named]


def _targets(names: Collection[str] | None = None) -> list[tuple[Patch, Target]]:
    """The targets of the patches of these names (None: all) that are imported, in the order of application."""
    patches = (patch for patch in registry.loaded() if names is None or patch.name in names)
    return [(patch, target) for patch in patches for target in patch.targets]


def _instrumentation() -> Any:
    return importlib.import_module(registry.TRACE)


def _begin_trace(settings: config.Settings) -> None:
    _STATE.traced = True
    if not config.only_reporting:
        _instrumentation().begin(settings)


def _records() -> bool:
    """Whether a patch that records a trace is wanted."""
    return not _STATE.wanted.keys().isdisjoint(registry.TRACE_NAMES)


def _end_trace() -> None:
    """Record no more if none of the patches that do is wanted."""
    if _STATE.traced and not _records():
        _instrumentation().end()


# One target


def _each(name: str, say: Callable[[Patch, Target], Entry]) -> list[Entry]:
    """Return ``say``'s result for each target of the patch, or the one entry of a patch that is not imported."""
    patch = registry.get(name)
    return [state.unloaded(name)] if patch is None else [say(patch, target) for target in patch.targets]


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
        return Entry(patch.name, target.key, Outcome.CHANGED, error.found, error.advice)
    except Exception as error:
        # The service that imported us must go on, whatever upstream did to the attribute.
        _turns.log(log.DEBUG, "fastio: %s (%s) failed", patch.name, target.key, exc_info=sys.exc_info())
        record.failure = f"{type(error).__name__}: {error}"
        left = hooks.get(target)
        if left is not None and not left.layers and left.remove():
            hooks.drop(target)
        return state.look(patch, target)


def _switch_off(names: Collection[str]) -> None:
    """Take the patches back, the last one first, and forget that they were asked for."""
    for patch, target in reversed(_targets(names)):
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


def _prepare(names: Collection[str]) -> None:
    """All that cannot be done with the lock held: what is imported, or looks for what can be."""
    _load(names)
    for _, target in _targets(names):
        modules.wait_for_imports(target)
    _look_for_modules(names)
    _await_modules(names)


def _load(names: Collection[str]) -> None:
    """Import the patches whose libraries are imported."""
    if "eventlet" in sys.modules:
        # Before it imports copies of it in its place.
        importlib.import_module("subprocess")
    for name, listed in registry.listed().items():
        if name in names and not sys.modules.keys().isdisjoint(listed.libraries):
            registry.load(name)


def _libraries(names: Iterable[str]) -> list[str]:
    """Those with which the patches that are not imported yet will be."""
    return [each for name in names if registry.get(name) is None for each in registry.listed()[name].libraries]


def _look_for_modules(names: Collection[str]) -> None:
    modules.look_for((target for _, target in _targets(names)), _libraries(names))


def _await_modules(names: Collection[str]) -> None:
    """Have what is missing applied once it is imported."""
    for library in _libraries(names):
        if modules.why_absent(library) is None:
            modules.await_import(library, _imported)
    for patch, target in _targets(names):
        blocked = state.blocked(patch, target)
        if blocked is not None and blocked.outcome is Outcome.WAITING:
            for module in modules.missing(target):
                modules.await_import(module, _imported)


def _imported(module: str) -> None:
    """The thread has the import lock of ``module``, so it must not wait for ours."""
    if module == "subprocess":
        # eventlet imports it before it is complete itself, and the patches look at eventlet.
        imports.when_none_is_halfway(lambda: _apply_to(module))
    else:
        _apply_to(module)


def _apply_to(module: str) -> None:
    of_library = [name for name, listed in registry.listed().items() if module in listed.libraries]
    if wanted := [name for name in of_library if name in _STATE.wanted]:
        _load(wanted)
    concerned = [each for each in _targets() if each[0].name in wanted or module in each[1].modules]
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


# Reports


def _look_at(names: Iterable[str]) -> list[Entry]:
    return [entry for name in names for entry in _each(name, state.look)]


def _report(entries: Sequence[Entry], settings: config.Settings | None = None) -> Report:
    """``settings`` are those that the entries are about, by default the ones in force."""
    wanted = [patch for patch in registry.loaded() if patch.name in _STATE.wanted]
    notes = _instrumentation().notes() if _STATE.traced else []
    notes += [*(note for patch in wanted for note in patch.notes()), *config.unknown()]
    return Report(entries, settings or config.effective(), _versions, holders.late_holders(), notes, _unused(wanted))


def _unused(wanted: Iterable[Patch]) -> dict[str, str]:
    """Why no call comes to a patch, by its name."""
    found = {patch.name: patch.unused() for patch in wanted}
    if stores := config.stores():
        absent = (each.name for each in registry.TABLE if each.store and each.store not in stores)
        found.update((name, "no such store is configured") for name in absent if name in found)
    return {name: why for name, why in found.items() if why}


def _versions() -> dict[str, str]:
    found = {"fastio": VERSION, known_code.CPYTHON: sys.version.partition(" ")[0]}
    for requirement in map(registry.Requirement, registry.libraries().values()):
        found[requirement.distribution] = distributions.version(requirement.distribution) or "absent"
    return found


def _log(level: int, entry: Entry) -> None:
    _turns.log(level, "fastio: %s (%s): %s: %s", entry.name, entry.target, entry.outcome.value, entry.found)
