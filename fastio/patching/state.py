"""The state of each target of each patch: what was asked of it, and what can be said of it now."""

import functools
from collections import defaultdict

from fastio import config
from fastio.patching import distributions, hooks, known_code, modules, places, registry
from fastio.patching.hooks import UnknownCodeError
from fastio.patching.registry import Patch, Target
from fastio.report import Entry, Outcome


class Record:
    """The outcome at a target of a patch. The attribute itself is read from the live objects."""

    def __init__(self) -> None:
        #: was applied once and taken back
        self.taken_back = False
        #: why it could not be put together, empty if it could
        self.failure = ""


class State:
    """The wanted state of the patches; only one thread changes it."""

    def __init__(self) -> None:
        #: patches that were asked for and not taken back, also if they are imported later; whether a call named them:
        #: such a patch stays when ``also`` does not ask for it any more
        self.wanted: dict[str, bool] = {}
        #: by the patch's name and the target's key
        self.records: defaultdict[tuple[str, str], Record] = defaultdict(Record)
        #: whether a trace was asked for
        self.traced = False


#: The state of this process.
STATE = State()


def record(patch: Patch, target: Target) -> Record:
    """The record of one of the patch's targets."""
    return STATE.records[patch.name, target.key]


_AGAIN = "call fastio.patch() again"


def unloaded(name: str) -> Entry:
    """Return the report of a patch whose library is not imported, and that is therefore not imported itself."""
    libraries = registry.listed()[name].libraries
    here = [library for library in libraries if modules.why_absent(library) is None]
    library = (here or libraries)[0]
    if not here:
        return Entry(name, library, Outcome.ABSENT, modules.why_absent(library) or "")
    if name in STATE.wanted:
        return Entry(name, library, Outcome.WAITING, f"{library} is not imported yet")
    return Entry(name, library, Outcome.OFF, _why_off(name))


def blocked(patch: Patch, target: Target) -> Entry | None:
    """Why the target cannot even be looked at, or None."""
    say = functools.partial(Entry, patch.name, target.key)
    missing = modules.missing(target)
    # No version is looked up before a library is imported, which then has what that takes.
    if missing and not target.needed_under():
        return _not_needed(patch, target)
    if missing and not any(map(modules.why_absent, missing)):
        return say(Outcome.WAITING, f"{missing[0]} is not imported yet")
    versions = [(each, distributions.version(each.distribution)) for each in patch.requirements(target)]
    for requirement, installed in versions:
        if installed is None:
            return say(Outcome.ABSENT, f"{requirement.distribution} is not installed")
    if without := patch.not_needed_here(distributions.version):
        return say(
            Outcome.OFF,
            f"{without.distribution} {distributions.version(without.distribution)}: {without} is without it",
        )
    if not target.needed_under():
        return _not_needed(patch, target)
    for requirement, installed in versions:
        if installed is not None and not requirement.accepts(installed):
            found = f"{installed}; known: {requirement}"
            return say(Outcome.UNSUPPORTED, found, f"use a version in the range, or disable {patch.name}")
    if known_code.PYTHON not in known_code.known_pythons():
        untested = known_code.PYTHON.endswith(known_code.FREE_THREADED)
        why = "a free-threaded build, with which fastio was never tested" if untested else "no fingerprints"
        found = f"Python {known_code.PYTHON}: {why}"
        return say(Outcome.UNSUPPORTED, found, f"use a known Python, or disable {patch.name}")
    for absent in filter(None, map(modules.why_absent, missing)):
        return say(Outcome.ABSENT, absent)
    if target.owner() is None:
        if target.find_owner is None:
            return say(Outcome.ABSENT, f"this release has no {target.attribute.rpartition('.')[0]}")
        return say(Outcome.ABSENT, "eventlet has replaced the native class, and no module uses it")
    return None


def _not_needed(patch: Patch, target: Target) -> Entry:
    return Entry(patch.name, target.key, Outcome.OFF, f"Python {known_code.PYTHON}: needed in Python {target.python}")


def look(patch: Patch, target: Target) -> Entry:
    """What is true of a target now. The first row that holds counts::

    failed                                                      failed
    on    a function that it relies on was exchanged            changed: patch again
    on    our function is not found, the original stands there  changed: patch again
    on    our function is not found, something else is there    changed, perhaps not called
    on                                                          applied, also through wrappers on top
    wanted, but cannot be looked at                            waiting, absent, unsupported, off: not needed
    wanted, but the code is unknown                             changed
    wanted                                                      changed: patch again
    off   taken back, and something of ours is left there       off, see _left_behind
    off   cannot be had                                        absent, unsupported
    off   taken back                                            off
    off                                                         off, see _why_off
    """
    say = functools.partial(Entry, patch.name, target.key)
    state, hook = record(patch, target), hooks.get(target)
    if state.failure:
        return say(Outcome.FAILED, state.failure, "report it; upstream's code is called as before")
    if hook is not None and patch.name in hook.layers:
        outdated, on_top, value = hook.outdated(target), hook.on_top(), hook.attribute.get()
        if outdated is not None:
            return say(Outcome.CHANGED, f"{outdated} was given another value since", _AGAIN)
        if on_top is None and value is hook.original:
            return say(Outcome.CHANGED, "the original was put back", _AGAIN)
        if on_top is None:
            found = f"{places.describe(value)} stands there, and does not show whether it calls us"
            return say(Outcome.CHANGED, found, "call fastio.patch() after it was put there")
        upstream = hook.upstream[patch.name]
        found = f"in effect, called through {_names(on_top)}" if on_top else str(upstream)
        return say(Outcome.APPLIED, found, known_by=upstream.by)
    obstacle = blocked(patch, target)
    if patch.name in STATE.wanted:
        if obstacle is not None:
            return obstacle
        try:
            hooks.recognise(target)
        except UnknownCodeError as error:
            return say(Outcome.CHANGED, error.found, error.advice)
        return say(Outcome.CHANGED, "the attribute was given another value since", _AGAIN)
    if state.taken_back and hook is not None:
        return say(Outcome.OFF, *_left_behind(hook))
    if obstacle is not None and obstacle.outcome in (Outcome.ABSENT, Outcome.UNSUPPORTED):
        return obstacle
    if state.taken_back:
        return say(Outcome.OFF, _what_is_there(target))
    return say(Outcome.OFF, _why_off(patch.name))


def _names(wrappers: tuple[object, ...]) -> str:
    return ", ".join(map(places.describe, wrappers))


def _left_behind(hook: hooks.Hook) -> tuple[str, str]:
    """Return which replacement is at an attribute although this patch is off, and what to do about it."""
    if hook.layers:
        return "no longer called; still there: " + ", ".join(hook.layers), ""
    on_top = hook.on_top()
    if on_top is None and places.find(hook.attribute, lambda value: value is hook.original) is not None:
        return "the original is in place", ""
    if on_top == ():
        return "ours is still there and passes everything through", "call fastio.unpatch() again"
    return f"ours passes everything through; {_names(on_top or (hook.attribute.get(),))} sits on top", ""


def _what_is_there(target: Target) -> str:
    if missing := modules.missing(target):
        return f"{missing[0]} is not imported"
    try:
        hooks.recognise(target)
    except UnknownCodeError as error:
        return error.found
    return "the original is in place"


def _why_off(name: str) -> str:
    settings, listed = config.effective(), registry.listed().get(name)
    if not settings.enabled:
        return f"switched off as a whole by {settings.sources['enabled']}"
    if name in settings.disabled or registry.ALL in settings.disabled and listed is not None:
        return f"disabled by {settings.sources['disabled']}"
    if listed is not None and not listed.in_profile(settings.profile):
        # It is not imported for that: the lock is held.
        patch = registry.get(name)
        why = patch.changes if patch is not None else "it changes more than speed"
        return f"not in the profile {settings.profile} of {settings.sources['profile']}: {why}"
    return "not asked for"
