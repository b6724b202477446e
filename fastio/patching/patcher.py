"""Applying, taking back and looking at patches.

What is true is read from the live objects: a patch is applied if the attribute leads to our
function and our function is switched on, whatever was called before.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import logging
import platform
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from fastio import config
from fastio.errors import PatchError, SettingError
from fastio.patching import fingerprint, holders, hooks, places, registry
from fastio.patching.exclusive import Exclusive
from fastio.patching.hooks import Hook, UnknownCodeError
from fastio.patching.registry import Patch, Target
from fastio.report import Entry, Outcome, Report
from fastio.version import VERSION

LOG = logging.getLogger("fastio")
_T = TypeVar("_T")

#: patches asked for and not taken back; also for targets that are imported later
_wanted: dict[str, Patch] = {}
#: those of them that a call named: they stay when ``also`` does not ask for them any more
_named: set[str] = set()
_failures: dict[tuple[str, str], str] = {}
#: patches that were applied once and taken back
_past: set[tuple[str, str]] = set()
_awaited: set[str] = set()
#: why a module can not be imported, where that is so
_absent: dict[str, str] = {}
#: packages of wings that have been asked for in this process
_begun: set[str] = set()
#: All of the above, the hooks and the settings in force change by one thread at a time.
_turns = Exclusive()
#: What is to be logged: level, message, its arguments, exception.
_messages: deque[tuple[int, str, tuple[str, ...], Any]] = deque()


class _Change(NamedTuple):
    """What a call to :func:`apply` did."""

    entries: list[Entry]
    settings: config.Settings
    #: names of the patches that were not wanted before
    added: frozenset[str]
    settings_before: config.Settings | None
    options_before: config.Options
    #: it was strict, and something was left alone: all is as before
    refused: bool


def apply(
    names: str | Sequence[str] | None, strict: bool, arguments: dict[str, Any], options: config.Options | None = None
) -> Report:
    """See :func:`fastio.patch`; ``options`` are those of the service, by default the ones given last."""
    report, _ = _apply(names, strict, arguments, options)
    return report


@contextlib.contextmanager
def applied(
    names: str | Sequence[str] | None, strict: bool, arguments: dict[str, Any], options: config.Options | None = None
) -> Iterator[Report]:
    """See :func:`fastio.patched`."""
    report, change = _apply(names, strict, arguments, options)
    try:
        yield report
    finally:
        if change is not None:
            taken_back: _Change = change
            _change(lambda: _take_back(taken_back))


def _apply(
    names: str | Sequence[str] | None, strict: bool, arguments: dict[str, Any], options: config.Options | None
) -> tuple[Report, _Change | None]:
    # What imports, reads files or refuses comes first. Nothing of others runs while the lock is held.
    settings = _resolve(arguments, options)
    chosen = _choose(names, settings)
    for patch in chosen:
        _prepare(patch)
    change = _change(lambda: _apply_alone(names, strict, arguments, options))
    if change is None:
        entries = [_entry(patch, target, Outcome.WAITING, _LATER) for patch in chosen for target in patch.targets]
        return _report(entries, settings), None
    report = _report(change.entries, change.settings)
    if change.refused:
        raise PatchError(report)
    for entry in report.problems():
        _log(logging.WARNING, entry)
    if change.settings.enabled:
        LOG.info("%s", report.summary())
    else:
        LOG.info("fastio: switched off by %s", change.settings.sources["enabled"])
    return report, change


_LATER = "called while this thread is at another call of fastio's: done when that ends"


def _change(work: Callable[[], _T]) -> _T | None:
    """What ``work()`` returns, with nobody else at it; None where it is only done once this thread is done with that.

    Nothing is logged while the lock is held: handlers of logging take locks of their own.
    """
    if _turns.inside:
        _turns.leave(lambda: _quietly(work))
        return None
    try:
        return _turns.run(work)
    finally:
        _say()


def _quietly(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:
        _messages.append((logging.ERROR, "fastio: a call was not done", (), sys.exc_info()))


def _say() -> None:
    """Log what there was to tell meanwhile."""
    while _messages and not _turns.inside:
        try:
            level, message, arguments, exc_info = _messages.popleft()
        except IndexError:
            return
        LOG.log(level, message, *arguments, exc_info=exc_info)


def _resolve(arguments: dict[str, Any], options: config.Options | None) -> config.Settings:
    settings = config.resolve(arguments, options=options)
    _check_names(settings)
    return settings


def _choose(names: str | Sequence[str] | None, settings: config.Settings) -> list[Patch]:
    """The patches that are to be applied; their modules are imported."""
    chosen = registry.select(names, settings.disabled, settings.also)
    if not settings.enabled:
        return []
    for wing in registry.WINGS:
        if getattr(settings, wing.setting):
            importlib.import_module(wing.package)
            chosen += [patch for patch in wing.patches() if patch.name not in settings.disabled]
    return chosen


def _apply_alone(
    names: str | Sequence[str] | None, strict: bool, arguments: dict[str, Any], options: config.Options | None
) -> _Change:
    settings_before, options_before, wanted_before = config.in_force(), config.options(), frozenset(_wanted)
    # Another thread may have changed the options since they were looked at first.
    settings = _resolve(arguments, options)
    chosen = _choose(names, settings)
    asked_for = [wing for wing in registry.WINGS if _asks_for(settings, wing)]
    for wing in asked_for:
        # Before anything is changed: it may refuse.
        importlib.import_module(wing.package).begin(settings)
    config.put_in_force(settings)
    config.put_options(options_before if options is None else options)
    if names is not None:
        _named.update(patch.name for patch in chosen if patch.name not in settings.also)
    disabled = [patch for patch in _known() if patch.name in _wanted and not _allowed(settings, patch)]
    for patch in reversed(disabled):
        _revert_patch(patch)
    _end_wings(asked_for)
    entries = [_look(patch, target) for patch in disabled for target in patch.targets]
    for patch in chosen:
        _wanted[patch.name] = patch
        entries += [_apply_target(patch, target) for target in patch.targets]
    added = frozenset(_wanted) - wanted_before
    change = _Change(entries, settings, added, settings_before, options_before, refused=False)
    if strict and any(entry.left_alone for entry in entries):
        _take_back(change)
        return change._replace(refused=True)
    return change


def _take_back(change: _Change) -> None:
    """Have everything as it was before that call."""
    for patch in reversed(_known()):
        if patch.name in change.added:
            _revert_patch(patch)
    _end_wings()
    config.put_in_force(change.settings_before)
    config.put_options(change.options_before)


def revert(names: str | Sequence[str] | None) -> Report:
    """See :func:`fastio.unpatch`."""
    chosen = _select_known(names)
    for patch in chosen:
        _look_for_modules(patch)
    entries = _change(lambda: _revert_alone(chosen))
    return _report(_look_at(chosen) if entries is None else entries)


def _revert_alone(chosen: Sequence[Patch]) -> list[Entry]:
    for patch in reversed(chosen):
        _revert_patch(patch)
    _end_wings()
    return _look_at(chosen)


def status() -> Report:
    """See :func:`fastio.status`."""
    known = _known()
    for patch in known:
        _look_for_modules(patch)
    # Who is interrupted while something changes sees it as it is then.
    entries = _look_at(known) if _turns.inside else _change(lambda: _look_at(known))
    return _report(entries or [])


def _look_at(patches: Sequence[Patch]) -> list[Entry]:
    return [_look(patch, target) for patch in patches for target in patch.targets]


def _known() -> list[Patch]:
    """All patches, with those of wings that have been asked for in this process."""
    wings = [wing for wing in registry.WINGS if wing.package in _begun]
    return [*registry.patches(), *(patch for wing in wings for patch in wing.patches())]


def _select_known(names: str | Sequence[str] | None) -> list[Patch]:
    """The patches of those names (None: all), those of wings that have been asked for among them."""
    known = _known()
    own = [name for wing in registry.WINGS for name in wing.modules]
    if names is None:
        return known
    asked = [names] if isinstance(names, str) else names
    chosen = registry.select([name for name in asked if name not in own])
    return [patch for patch in known if patch in chosen or patch.name in asked]


def _asks_for(settings: config.Settings, wing: registry.Wing) -> bool:
    if not settings.enabled or not getattr(settings, wing.setting):
        return False
    _begun.add(wing.package)
    return True


def _allowed(settings: config.Settings, patch: Patch) -> bool:
    """Whether the settings let the patch be in force."""
    for wing in registry.WINGS:
        if patch.name in wing.modules:
            return _asks_for(settings, wing) and patch.name not in settings.disabled
    asked_for = patch.default or patch.name in settings.also or patch.name in _named
    return settings.enabled and asked_for and not {patch.name, registry.ALL} & set(settings.disabled)


def _end_wings(asked_for: Sequence[registry.Wing] = ()) -> None:
    """Have those wings end, except ``asked_for``, of which no patch is wanted any more."""
    for wing in registry.WINGS:
        if wing not in asked_for and wing.package in _begun and not any(name in _wanted for name in wing.modules):
            importlib.import_module(wing.package).end()


def _check_names(settings: config.Settings) -> None:
    for name in settings.disabled:
        if name not in (registry.ALL, *registry.all_names()):
            source = settings.sources["disabled"]
            known = ", ".join(registry.all_names())
            raise SettingError("disabled", name, source, f"{registry.ALL}, or names of patches: {known}")
    for name in settings.also:
        if name not in registry.names():
            known = ", ".join(registry.names())
            outside = ", ".join(registry.outside_the_default())
            allowed = f"names of patches: {known}; outside of the default: {outside}"
            raise SettingError("also", name, settings.sources["also"], allowed)


def _report(entries: Sequence[Entry], settings: config.Settings | None = None) -> Report:
    """``settings`` are those that the entries are about, by default the ones in force."""
    versions = {"fastio": VERSION, platform.python_implementation(): platform.python_version()}
    for distribution in ("eventlet", "oslo.concurrency", "glance_store"):
        versions[distribution] = _version(distribution) or "absent"
    notes = [note for wing in registry.WINGS if wing.package in _begun for note in _notes(wing)]
    return Report(entries, settings or config.effective(), versions, holders.late_holders(), notes)


def _notes(wing: registry.Wing) -> list[str]:
    return importlib.import_module(wing.package).notes()


@functools.cache
def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _log(level: int, entry: Entry) -> None:
    """Log what became of a target once that does no harm."""
    told = (entry.name, entry.target, entry.outcome.value, entry.found)
    _messages.append((level, "fastio: %s (%s): %s: %s", told, None))
    _say()


def _entry(
    patch: Patch, target: Target, outcome: Outcome, found: str, advice: str = "", in_effect: bool = False
) -> Entry:
    return Entry(patch.name, target.key, outcome, found, advice, in_effect)


def _apply_target(patch: Patch, target: Target) -> Entry:
    _failures.pop((patch.name, target.key), None)
    try:
        blocked = _blocked(patch, target)
        if blocked is not None:
            return blocked
        left = hooks.get(target)
        if left is not None and patch.name in left.layers and left.outdated(target):
            _switch_off(patch, target, left)
        hook = hooks.open_hook(patch, target)
        if patch.name not in hook.layers:
            hook.switch_on(patch, target)
            _past.discard((patch.name, target.key))
            return _look(patch, target)
        entry = _look(patch, target)
        if entry.outcome is Outcome.APPLIED:
            return _entry(patch, target, Outcome.ALREADY, entry.found, in_effect=True)
        return entry
    except UnknownCodeError as error:
        return _entry(patch, target, Outcome.CHANGED, error.found, error.advice)
    except Exception as error:
        # The service that imported us must go on, whatever upstream did to the attribute.
        _messages.append((logging.DEBUG, "fastio: %s (%s) failed", (patch.name, target.key), sys.exc_info()))
        _failures[patch.name, target.key] = f"{type(error).__name__}: {error}"
        left = hooks.get(target)
        if left is not None and not left.layers and left.remove():
            hooks.drop(target)
        return _look(patch, target)


def _revert_patch(patch: Patch) -> None:
    _wanted.pop(patch.name, None)
    _named.discard(patch.name)
    for target in reversed(patch.targets):
        _failures.pop((patch.name, target.key), None)
        hook = hooks.get(target)
        if hook is None:
            continue
        if patch.name in hook.layers:
            _past.add((patch.name, target.key))
        _switch_off(patch, target, hook)


def _switch_off(patch: Patch, target: Target, hook: Hook) -> None:
    if patch.name in hook.layers:
        hook.switch_off(patch)
    # Also where a wrapper that sat on top last time has gone since.
    if not hook.layers and hook.remove():
        hooks.drop(target)


def _blocked(patch: Patch, target: Target) -> Entry | None:
    """Why the target can not even be looked at, or None."""
    versions = [(each, _version(each.distribution)) for each in patch.requirements(target)]
    for requirement, version in versions:
        if version is None:
            return _entry(patch, target, Outcome.ABSENT, f"{requirement.distribution} is not installed")
    for requirement, version in versions:
        if version is not None and not requirement.accepts(version):
            advice = f"use a version in the range, or disable {patch.name}"
            return _entry(patch, target, Outcome.UNSUPPORTED, f"{version}; known: {requirement}", advice)
    if not fingerprint.known_python(target.keys[0]):
        found = f"Python {fingerprint.PYTHON}: no fingerprints"
        return _entry(patch, target, Outcome.UNSUPPORTED, found, f"use a known Python, or disable {patch.name}")
    for module in _missing(target):
        absent = _absent.get(module)
        if absent is not None:
            return _entry(patch, target, Outcome.ABSENT, absent)
        return _entry(patch, target, Outcome.WAITING, f"{module} is not imported yet")
    if target.owner() is None:
        found = "eventlet has replaced the native class, and nobody uses it any more"
        if target.find_owner is None:
            found = f"this release has no {target.attribute.rpartition('.')[0]}"
        return _entry(patch, target, Outcome.ABSENT, found)
    return None


def _missing(target: Target) -> list[str]:
    """The modules that the target needs and that are not imported yet."""
    return [module for module in target.modules if module not in sys.modules]


def _prepare(patch: Patch) -> None:
    """All for ``patch`` that can not be done with the lock held: what is imported, or looks for what can be."""
    for target in patch.targets:
        for module in target.modules:
            _wait_for_import(module)
    _look_for_modules(patch)
    for target in patch.targets:
        blocked = _blocked(patch, target)
        if blocked is not None and blocked.outcome is Outcome.WAITING:
            for module in _missing(target):
                _await_import(module)


def _wait_for_import(module: str) -> None:
    """If another thread is importing ``module``, wait until it has: half of it is no code that anybody knows."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    if getattr(spec, "_initializing", False):
        # What an import statement does; it gives up where that would be for ever.
        importlib._bootstrap._lock_unlock_module(module)  # type: ignore[attr-defined]


def _look_for_modules(patch: Patch) -> None:
    """Note of the modules that are not imported why they can not be, if so."""
    for target in patch.targets:
        for module in _missing(target):
            if module == "subprocess":
                importlib.import_module(module)
            elif not _importable(module.partition(".")[0]):
                _absent[module] = f"{module} is not installed"
            elif not _in_package(module):
                _absent[module] = f"{module} is not part of this release"
            else:
                _absent.pop(module, None)


def _importable(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:
        # A stub without a spec stands in sys.modules.
        return False


def _in_package(module: str) -> bool:
    """Whether the packages of ``module``, the first of which is installed, have it; they are not imported for that."""
    top, *rest = module.split(".")
    name, spec = top, importlib.util.find_spec(top)
    for part in rest:
        loaded = sys.modules.get(name)
        path = getattr(loaded, "__path__", None) or (spec.submodule_search_locations if spec else None)
        if path is None:
            return True
        name = f"{name}.{part}"
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None and name not in sys.modules:
            return False
    return True


def _look(patch: Patch, target: Target) -> Entry:
    """The state of one attribute of one patch, from the live objects."""
    if (patch.name, target.key) in _failures:
        found = _failures[patch.name, target.key]
        return _entry(patch, target, Outcome.FAILED, found, "report it; upstream's code is called as before")
    hook = hooks.get(target)
    if hook is None:
        return _look_without_hook(patch, target)
    if patch.name not in hook.layers:
        if patch.name in _wanted:
            return _look_without_hook(patch, target)
        if (patch.name, target.key) in _past:
            return _reverted(patch, target, hook)
        return _blocked(patch, target) or _entry(patch, target, Outcome.OFF, _why_off(patch))
    outdated = hook.outdated(target)
    if outdated is not None:
        return _entry(patch, target, Outcome.REVERTED, f"{outdated} was given another value since", _AGAIN)
    on_top = hook.on_top()
    if on_top is None:
        value = hook.attribute.get()
        if value is hook.original:
            return _entry(patch, target, Outcome.REVERTED, "somebody put the original back", _AGAIN)
        found = f"{places.describe(value)} stands there, and does not show whether it calls us"
        return _entry(patch, target, Outcome.SHADOWED, found, "call fastio.patch() after it was put there")
    if on_top:
        found = "in effect, called through " + ", ".join(places.describe(value) for value in on_top)
        return _entry(patch, target, Outcome.SHADOWED, found, in_effect=True)
    found = f"code of {fingerprint.span(hook.release)}"
    beneath = hook.beneath()
    if beneath:
        found += ", beneath " + ", ".join(places.describe(value) for value in beneath)
    return _entry(patch, target, Outcome.APPLIED, found, in_effect=True)


_AGAIN = "call fastio.patch() again"


def _look_without_hook(patch: Patch, target: Target) -> Entry:
    asked_for = patch.name in _wanted
    blocked = _blocked(patch, target)
    if blocked is not None and (asked_for or blocked.outcome is not Outcome.WAITING):
        return blocked
    if not asked_for and (patch.name, target.key) in _past:
        return _entry(patch, target, Outcome.REVERTED, _what_is_there(target))
    if not asked_for:
        return _entry(patch, target, Outcome.OFF, _why_off(patch))
    try:
        hooks.recognise(target)
    except UnknownCodeError as error:
        return _entry(patch, target, Outcome.CHANGED, error.found, error.advice)
    return _entry(patch, target, Outcome.REVERTED, "the attribute was given another value since", _AGAIN)


def _what_is_there(target: Target) -> str:
    if missing := _missing(target):
        return f"{missing[0]} is not imported"
    try:
        hooks.recognise(target)
    except UnknownCodeError as error:
        return error.found
    return "the original is in place"


def _why_off(patch: Patch) -> str:
    settings = config.effective()
    if not settings.enabled:
        return f"switched off as a whole by {settings.sources['enabled']}"
    if patch.name in settings.disabled or registry.ALL in settings.disabled and patch in registry.patches():
        return f"disabled by {settings.sources['disabled']}"
    if not patch.default:
        return f"not in the default; ask for it with also={patch.name}"
    return "not asked for"


def _reverted(patch: Patch, target: Target, hook: Hook) -> Entry:
    if hook.layers:
        found = "no longer called; still there: " + ", ".join(hook.layers)
        return _entry(patch, target, Outcome.REVERTED, found)
    on_top = hook.on_top()
    if on_top is None and places.find(hook.attribute, lambda value: value is hook.original) is not None:
        return _entry(patch, target, Outcome.REVERTED, "the original is in place")
    if on_top == ():
        advice = "call fastio.unpatch() again"
        return _entry(patch, target, Outcome.REVERTED, "ours is still there and passes everything through", advice)
    who = ", ".join(places.describe(wrapper) for wrapper in on_top or (hook.attribute.get(),))
    return _entry(patch, target, Outcome.REVERTED, f"ours passes everything through; {who} sits on top")


def _await_import(module: str) -> None:
    """Have the patches of ``module`` applied as soon as it is imported."""
    if module in _awaited:
        return
    _awaited.add(module)
    # Imported here because it takes longer than the rest of fastio, and only waiting targets need it.
    import wrapt

    wrapt.register_post_import_hook(lambda _: _imported(module), module)


def _imported(module: str) -> None:
    """After the import; the thread has the import lock of ``module``, so it must not wait for ours."""
    _awaited.discard(module)
    concerned = [(patch, target) for patch in _known() for target in patch.targets if module in target.modules]
    for patch, _ in concerned:
        if patch.name in _wanted:
            # It may need other modules besides.
            _look_for_modules(patch)
    _turns.leave(lambda: _quietly(lambda: _apply_imported(concerned)))
    _say()


def _apply_imported(concerned: Sequence[tuple[Patch, Target]]) -> None:
    for patch, target in concerned:
        if patch.name in _wanted:
            entry = _apply_target(patch, target)
            _log(logging.WARNING if entry.left_alone else logging.DEBUG, entry)
