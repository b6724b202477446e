"""Tests of every patch: applied, in effect, taken back, reported, wrapped by others, switched off, forked.

A new patch gets these tests, and needs tests of its effects only.
"""

import functools
import inspect
import pathlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
from fastio.errors import PatchError
from fastio.patching import hooks, places, registry
from fastio.patching.registry import Patch, Target
from fastio.report import Entry, Outcome, Report
from tests.conftest import MONKEY_PATCHED
from tests.outcome import raising
from tests.targets import attributes, can_be_applied, exchange, import_targets, in_effect

#: outcomes of a target once a patch is in force
IN_FORCE = {Outcome.APPLIED, Outcome.ABSENT}


class Case:
    """One patch, alone."""

    def __init__(self, patch: Patch, directory: pathlib.Path) -> None:
        self.patch = patch
        self.name = patch.name
        self.here = [target for target in patch.targets if can_be_applied(patch, target)]
        self.keys = [target.key for target in self.here]
        self._directory = directory

    def apply(self, strict: bool = True, disabled: tuple[str, ...] = (), **settings: Any) -> Report:
        """Apply it as an operator would: by its name, or by the setting that asks for it."""
        if self.name not in registry.TRACE_NAMES:
            return fastio.patch(self.name, strict=strict, also=(), disabled=disabled, **settings)
        disabled += tuple(name for name in registry.TRACE_NAMES if name != self.name)
        settings["trace"] = str(self._directory)
        return fastio.patch([], strict=strict, also=(), disabled=disabled, **settings)

    def entries(self, report: Report | None = None) -> list[Entry]:
        """Return the reports on those of its targets that are here."""
        entries = (report or fastio.status()).entries
        return [entry for entry in entries if entry.name == self.name and entry.target in self.keys]

    def outcomes(self, report: Report | None = None) -> set[Outcome]:
        return {entry.outcome for entry in self.entries(report)}

    def each(self) -> Iterator[tuple[Target, Any, str]]:
        """The targets that are here, their owners, and the names of the attributes."""
        for target in self.here:
            yield target, target.owner(), target.name


@pytest.fixture(params=registry.all_patches(), ids=lambda patch: patch.name)
def case(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Case]:
    import_targets()
    case = Case(request.param, tmp_path / "trace")
    if not case.here:
        pytest.skip(f"nothing that {case.name} works on is here")
    if MONKEY_PATCHED and not any(target.module.startswith(("eventlet", "subprocess")) for target in case.here):
        pytest.skip("it is the same module without TEST_EVENTLET")
    originals = attributes()
    yield case
    fastio.unpatch()
    assert attributes() == originals


def test_it_is_applied_and_taken_back(case: Case) -> None:
    originals = attributes()
    report = case.apply()
    assert {entry.name for entry in report.entries} == {case.name}
    assert {entry.outcome for entry in report.entries} <= IN_FORCE
    assert case.outcomes(report) == {Outcome.APPLIED}
    assert case.entries(report) == case.entries()
    assert in_effect() == {case.name}
    # Nothing else is touched.
    now = attributes()
    changed = {key.partition(" ")[0] for key, value in now.items() if value is not originals[key]}
    assert set(case.keys) <= changed <= {*case.keys, *(place for target in case.here for place in target.also)}
    # Twice is once.
    assert case.outcomes(case.apply()) == {Outcome.APPLIED}
    assert attributes() == now
    report = fastio.unpatch(None if case.name in registry.TRACE_NAMES else case.name)
    assert case.outcomes(report) == {Outcome.OFF}
    assert {entry.found for entry in case.entries(report)} == {"the original is in place"}
    assert case.entries(report) == case.entries()
    assert attributes() == originals
    assert in_effect() == set()


def test_a_replacement_looks_like_the_original(case: Case) -> None:
    """Tools and people look at names, documentation and signatures."""
    before = attributes()
    case.apply()
    now = attributes()
    for target, owner, name in case.each():
        if target.stock is not None:
            assert type(getattr(owner, name)) is int
            continue
        for key in (target.key, target.key + " beneath"):
            ours, original = now[key], before[key]
            if ours is original:
                continue
            assert isinstance(ours, types.FunctionType)
            for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
                assert getattr(ours, attribute) == getattr(original, attribute), (key, attribute)
            assert inspect.signature(ours) == inspect.signature(original), key
            assert vars(ours)["__wrapped__"] is original, key


def remake(patch: Patch, make: Callable[[Target, Any, Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ``make(target, wrapped, hook)`` give what the patch puts in place."""
    targets = tuple(target._replace(make=functools.partial(make, target)) for target in patch.targets)
    exchange(patch, patch._replace(targets=targets), monkeypatch)


def is_called(target: Target, functions: list[Any]) -> bool:
    """Whether a call at the target's attribute comes through one of ``functions``."""
    hook = hooks.get(target)
    if hook is None:
        return False
    return (
        places.find(places.AttributePlace(hook, "call"), lambda value: any(value is f for f in functions)) is not None
    )


def test_it_is_taken_out_of_all_and_put_back(
    case: Case, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, list[Any]] = {}

    def make(target: Target, wrapped: Any, hook: Any) -> Any:
        function = target.make(wrapped, hook)
        if function is not wrapped:
            made.setdefault(target.key, []).append(function)
        return function

    remake(case.patch, make, monkeypatch)
    trace: dict[str, Any] = {"trace": str(tmp_path / "trace")} if case.name in registry.TRACE_NAMES else {}
    fastio.patch(strict=True, **trace)
    all_names = in_effect()
    assert case.name in all_names
    layered = [target for target in case.here if not target.plain and target.key in made]
    assert all(is_called(target, made[target.key]) for target in layered)
    report = fastio.unpatch(case.name)
    assert not any(is_called(target, made[target.key]) for target in layered)
    assert {entry.name for entry in report.entries} == {case.name}
    assert case.outcomes(report) == {Outcome.OFF}
    assert in_effect() == all_names - {case.name}
    fastio.patch(strict=True, **trace)
    assert in_effect() == all_names


def test_the_original_is_put_back(case: Case) -> None:
    before = {target.key: inspect.getattr_static(owner, name) for target, owner, name in case.each()}
    own = {target.key: name in vars(owner) for target, owner, name in case.each()}
    case.apply()
    # Beneath a decorator of upstream's there is nothing to put back.
    put_back = [
        (target.key, owner, name)
        for target, owner, name in case.each()
        if inspect.getattr_static(owner, name) is not before[target.key]
    ]
    for key, owner, name in put_back:
        if own[key]:
            setattr(owner, name, before[key])
        else:
            delattr(owner, name)
    keys = {key for key, _, _ in put_back}
    for entry in case.entries():
        if entry.target in keys:
            assert (entry.outcome, entry.in_effect) == (Outcome.CHANGED, False)
            assert (entry.found, entry.advice) == ("the original was put back", "call fastio.patch() again")
    assert case.outcomes(case.apply()) == case.outcomes() == {Outcome.APPLIED}
    for key, owner, name in put_back:
        assert inspect.getattr_static(owner, name) is not before[key]


def shown(function: Any) -> Callable[..., Any]:
    @functools.wraps(function)
    def tool(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return tool


def hidden(function: Any) -> Callable[..., Any]:
    def tool(*args: Any, _function: Any = function, **kwargs: Any) -> Any:
        return _function(*args, **kwargs)

    return tool


@pytest.mark.parametrize("wrap", [shown, hidden])
def test_another_tool_wraps_it(case: Case, wrap: Callable[[Any], Any]) -> None:
    """It is never thrown out; the report says whether ours is still called, and who sits on top."""
    ours: dict[str, Any] = {}
    case.apply()
    wrapped = [(target, owner, name) for target, owner, name in case.each() if target.stock is None]
    if not wrapped:
        pytest.skip("nothing wraps a value")
    for target, owner, name in wrapped:
        ours[target.key] = inspect.getattr_static(owner, name)
        setattr(owner, name, wrap(ours[target.key]))
    tools = {target.key: inspect.getattr_static(owner, name) for target, owner, name in wrapped}
    for entry in case.entries():
        if entry.target in ours:
            assert (entry.outcome, entry.in_effect) == (
                (Outcome.APPLIED, True) if wrap is shown else (Outcome.CHANGED, False)
            )
            assert entry.left_alone is (wrap is hidden)
            assert "tool" in entry.found
            assert bool(entry.advice) is (wrap is hidden)
    for entry in case.entries(case.apply(strict=wrap is shown)):
        if entry.target in ours:
            assert entry.left_alone is (wrap is hidden)
    report = fastio.unpatch()
    assert case.entries(report) == case.entries()
    for entry in case.entries():
        if entry.target in ours:
            assert entry.outcome is Outcome.OFF
            assert "ours passes everything through" in entry.found and "tool" in entry.found
    for target, owner, name in wrapped:
        assert inspect.getattr_static(owner, name) is tools[target.key]
        # The tool saved our function: it comes back with it.
        setattr(owner, name, ours[target.key])
    for entry in case.entries():
        if entry.target in ours:
            assert entry.advice == "call fastio.unpatch() again"
    fastio.unpatch()
    assert {entry.found for entry in case.entries()} == {"the original is in place"}


def test_settings_switch_it_off(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    originals = attributes()
    case.apply()
    report = case.apply(disabled=(case.name,))
    assert case.outcomes(report) == {Outcome.OFF}
    assert attributes() == originals
    case.apply()
    monkeypatch.setenv("FASTIO", "0")
    case.apply(enabled=True)
    assert attributes() == originals
    assert in_effect() == set()


def test_it_fails_and_takes_nothing_with_it(case: Case) -> None:
    """It fails while it is put together, as an unforeseen change of upstream would have it."""

    originals = attributes()
    with pytest.MonkeyPatch.context() as monkeypatch:
        remake(case.patch, raising(LookupError("no such thing any more")), monkeypatch)
        with pytest.raises(PatchError, match="LookupError: no such thing any more"):
            case.apply()
        assert attributes() == originals
        report = case.apply(strict=False)
        for entry in case.entries(report):
            assert (entry.outcome, entry.in_effect) == (Outcome.FAILED, False)
            assert entry.found == "LookupError: no such thing any more"
            assert entry.advice
        assert attributes() == originals
        fastio.unpatch()
    # Once the reason has gone it can be applied.
    assert case.outcomes(case.apply()) == {Outcome.APPLIED}
