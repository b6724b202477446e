"""The table of patches: complete, documented, and in step with the fingerprints."""

import importlib
import importlib.metadata
import importlib.util
import inspect
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement as PEP508
from packaging.version import Version

import fastio
from fastio.errors import UnknownPatchError
from fastio.patching import hooks, known_code, registry
from fastio.patching.known_code import KNOWN, Uses
from fastio.patching.registry import Requirement, Target
from tests.conftest import HAS_EVENTLET, HAS_OSLO
from tests.targets import import_targets, missing, not_installed

TARGETS = [(patch, target) for patch in registry.all_patches() for target in patch.targets]


def identify(value: Any) -> str:
    return value.key if isinstance(value, Target) else value.name


def test_the_table_has_each_module_and_says_what_it_says() -> None:
    """Those that share a module's name would hide each other."""
    root = pathlib.Path(registry.__file__).parents[1]
    modules = [(path.stem, path.parent.name) for path in root.glob("patches/*/[!_]*.py")]
    assert len(set(fastio.names())) == len(modules)
    assert sorted((each.name, each.library) for each in registry.TABLE) == sorted(modules)
    traced = [path.stem for path in root.glob("trace/instrumentation/[!_]*.py")]
    assert sorted(registry.TRACE_NAMES) == sorted(traced)
    assert fastio.names() == registry.names() == tuple(patch.name for patch in registry.patches())
    for each, patch in zip(registry.TABLE, registry.patches(), strict=True):
        assert each.changes == bool(patch.changes), each.name


def test_a_patch_is_imported_once_its_library_is(run_python: Callable[..., Any]) -> None:
    code = """
        import sys, fastio
        from fastio.patching import registry
        report = fastio.patch()
        assert registry.loaded() == []
        assert {entry.name for entry in report.entries} == set(fastio.names())
        import urllib3
        assert "urllib3_blocks" in [patch.name for patch in registry.loaded()]
        entries = {entry.name: entry for entry in fastio.status().entries}
        assert entries["urllib3_blocks"].in_effect, entries["urllib3_blocks"]
        assert entries["green_pipe"].target == "eventlet" and not entries["green_pipe"].in_effect
        assert "eventlet" not in sys.modules
        fastio.unpatch()
        import eventlet
        assert not any(entry.in_effect for entry in fastio.status().entries)
        """
    pytest.importorskip("urllib3")
    run_python(code, options=("-W", "ignore"))


@pytest.mark.parametrize("patch", registry.all_patches(), ids=identify)
def test_every_patch_is_a_documented_unit(patch: registry.Patch) -> None:
    module = importlib.import_module(patch.module)
    assert module.PATCH is patch
    assert module.__doc__.startswith(f"``{patch.name}``: ")
    assert len(module.__doc__.splitlines()) > 1
    assert patch.summary
    assert "\n" not in patch.summary
    assert len(patch.summary) <= 120
    assert patch.targets
    assert patch.name in registry.all_names()


@pytest.mark.parametrize(("patch", "target"), TARGETS, ids=identify)
def test_every_target_is_guarded(patch: registry.Patch, target: Target) -> None:
    assert target.make.__doc__
    assert re.fullmatch(r"[\w.]+:[\w.]+", target.key)
    attributes = list(target.beside)
    if not target.needed_under():
        assert not attributes
    elif target.stock is None:
        assert attributes[0] == target.name
    else:
        # Of a value those who read it are known.
        assert attributes
        assert target.name not in attributes
    for attribute, key in target.beside.items():
        assert re.fullmatch(r"[\w.]+:[\w.]+", key)
        assert key.rpartition(".")[2].rpartition(":")[2] in (attribute, "open")
    for key, uses in target.functions(None).items():
        assert uses.parameters is not None or known_code.table()[key], f"no release of {key} is known"


def test_targets_of_some_pythons() -> None:
    """All of it is declared, and each Python's is looked up there."""
    relies_on = {
        "old": Uses("self", python="< 3.12"), "always": KNOWN, "new": Uses(python=">= 3.12"),
        "other:newer": Uses(python=">= 3.14"),
    }  # fmt: skip
    target = Target("module:Class.attribute", lambda wrapped, hook: wrapped, KNOWN, relies_on, python=">= 3.11")
    first, old, always, new, newer = (
        "module:Class.attribute", "module:Class.old", "module:Class.always", "module:Class.new", "other:newer",
    )  # fmt: skip
    for python, keys in {
        "3.9": [], "3.11": [first, old, always], "3.12": [first, always, new], "3.14": [first, always, new, newer],
    }.items():  # fmt: skip
        assert target.needed_under(python) is bool(keys)
        assert list(target.functions(python)) == keys
    assert list(target.functions(None)) == [first, old, always, new, newer]
    assert [*target.beside.values(), *target.elsewhere] == list(target.functions())


@pytest.mark.parametrize(
    ("release", "since"),
    [
        ("CPython 3.10.13", ""), ("CPython 3.13.9", ""), ("CPython 3.13.10", "CPython 3.13.10"),
        ("CPython 3.13.18 3.14.2", "CPython 3.13.10"), ("CPython 3.14.0", ""),
        ("CPython 3.14.10", "CPython 3.14.1"), ("CPython 3.15.0", "CPython 3.14.1"), ("CPython 4.0", "CPython 3.14.1"),
    ],
)  # fmt: skip
def test_each_line_of_releases_has_its_own_first(release: str, since: str) -> None:
    assert registry.reached(release, ("3.13.10", "3.14.1")) == since
    assert registry.reached(release, ()) == ""


@pytest.mark.parametrize(("patch", "target"), TARGETS, ids=identify)
def test_installed_code_is_known(patch: registry.Patch, target: Target) -> None:
    """The Pythons and releases that the tests run with are recognised; otherwise they would test nothing."""
    import_targets()
    if target.module not in sys.modules or target.owner() is None:
        pytest.skip(f"{target.module} is not here")
    if not target.needed_under():
        pytest.skip(f"it may only be there in Python {target.python}")
    if reason := not_installed(patch, target):
        pytest.skip(reason)
    assert hooks.recognise(target).functions.keys() == target.functions().keys()
    if target.stock is not None:
        assert inspect.getattr_static(target.owner(), target.name) == target.stock
    if reason := missing(patch, target):
        pytest.skip(reason)
    for requirement in patch.requirements(target):
        assert requirement.accepts(importlib.metadata.version(requirement.distribution))


def test_targets_of_the_same_attribute_agree() -> None:
    """They share one place, so what one of them says of it holds for all."""
    for _, one in TARGETS:
        for _, other in TARGETS:
            if one.key == other.key:
                assert next(iter(one.functions(None))) == next(iter(other.functions(None)))
                for name in ("direct", "also", "code", "find_owner", "stock"):
                    assert getattr(one, name) == getattr(other, name)


def bounds(requirement: Requirement) -> tuple[Version, Version]:
    """The first version of the range, and the first above it."""
    parsed = PEP508(str(requirement))
    assert (parsed.name, parsed.marker, parsed.extras) == (requirement.distribution, None, set())
    minimum, below = sorted(parsed.specifier, key=lambda bound: bound.operator, reverse=True)
    assert (minimum.operator, below.operator) == (">=", "<")
    assert str(requirement) == f"{parsed.name} >= {minimum.version}, < {below.version}"
    return Version(minimum.version), Version(below.version)


def test_a_requirement_is_stated_once() -> None:
    """By the folder of the library, for all patches in it and for the targets of others that are in the library."""
    for patch, target in TARGETS:
        found = {requirement.distribution: str(requirement) for requirement in patch.requirements(target)}
        own = {Requirement(text).distribution: text for text in patch.requires}
        for folder in (patch.module.rpartition(".")[0], *map(registry.folder_of, target.modules)):
            # Of the standard library few modules have one.
            there = importlib.util.find_spec(folder)
            stated = getattr(importlib.import_module(folder), "REQUIRES", None) if there else None
            if stated is None:
                assert folder.rpartition(".")[2] in sys.stdlib_module_names or patch.name in registry.TRACE_NAMES
                continue
            distribution = Requirement(stated).distribution
            assert found[distribution] == own.get(distribution, stated)
            assert distribution not in [Requirement(text).distribution for text in target.requires]


def test_declared_ranges_are_those_of_the_known_code() -> None:
    """From a release in the table to the newest one, and the oldest one is in the range of some patch."""
    read: dict[str, list[Version]] = {}
    for key in known_code.table():
        for name, versions in known_code.releases(key).items():
            read.setdefault(name, []).extend(map(Version, versions))
    requirements = {requirement for patch, target in TARGETS for requirement in patch.requirements(target)}
    # Of these nothing is replaced.
    requirements = {each for each in requirements if each.distribution in read}
    assert requirements
    minimums: dict[str, list[Version]] = {}
    for requirement in requirements:
        found = read[requirement.distribution]
        minimum, below = bounds(requirement)
        minimums.setdefault(requirement.distribution, []).append(minimum)
        # Of the series that the range begins with a release has been read.
        assert min(version for version in found if version >= minimum).release[:2] == minimum.release[:2]
        assert max(found) < below
    assert min(minimums["eventlet"]) == min(read["eventlet"])
    for distribution, values in minimums.items():
        assert min(values) <= min(read[distribution])


@pytest.mark.parametrize(
    ("version", "accepted"),
    [
        ("0.34.3", True), ("0.34.2", False), ("0.34", False), ("0.35", True), ("0.41.3", True), ("0.41.99", True),
        ("0.42", False), ("0.42.0", False), ("1.0", False), ("0.41.3.dev5", True), ("0.41.3+local.7", True),
        ("0.42.0a1", False), ("0.0.0", False), ("0.35.0rc1", True), ("", False), ("unknown", False),
        # In the order of PEP 440: what comes before a bound is before it.
        ("0.34.3rc1", False), ("0.34.3.dev7", False), ("0.34.3.post1", True), ("0.39.1.post2", True),
        ("0.35.0.dev3", True), ("0.34.3+deb12u1", True), ("0.41.2+deb13u1", True), ("0.39.1-2", True),
        ("0.42.dev1", False), ("0.42rc1", False), ("0.41.3-2ubuntu1", False),
        ("1!0.35", False), ("v0.35", True), ("0.35.0.0.1", True),
    ],
)  # fmt: skip
def test_ranges(version: str, accepted: bool) -> None:
    requirement = Requirement("eventlet >= 0.34.3, < 0.42")
    assert requirement.accepts(version) is accepted
    assert str(requirement) == "eventlet >= 0.34.3, < 0.42"


NUMBERS = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


@given(NUMBERS, st.sampled_from([">=", "<=", ">", "<"]), NUMBERS)
def test_plain_versions_are_compared_as_packaging_does(version: str, sign: str, bound: str) -> None:
    """packaging itself takes long to import, and is only asked about what else a version can be."""
    expected = PEP508(f"eventlet {sign} {bound}").specifier.contains(version, prereleases=True)
    assert Requirement(f"eventlet {sign} {bound}").accepts(version) is expected
    assert not re.fullmatch(registry._PLAIN, "5.0.0rc1") and registry._plain_bounds("eventlet == 5.*") is None


DEFAULT = [*fastio.names()]
SAFE = [each.name for each in registry.TABLE if not each.changes]


@pytest.mark.parametrize(
    ("names", "settings", "chosen"),
    [
        (None, {}, DEFAULT), ([], {}, []), ("wait", {}, ["wait"]), (["wait"], {}, ["wait"]),
        (fastio.names()[::-1], {}, DEFAULT), (None, {"also": fastio.names()}, DEFAULT),
        ([], {"also": "wait"}, ["wait"]), ("wait", {"also": "oslo_spawn"}, ["oslo_spawn", "wait"]),
        (None, {"disabled": DEFAULT[1:]}, DEFAULT[:1]), ("wait", {"also": "wait", "disabled": "wait"}, []),
        (fastio.names(), {"also": "wait", "disabled": "all"}, []), (None, {"enabled": False}, []),
        (("wait", "fix_wait_poll"), {"profile": "safe"}, ["wait", "fix_wait_poll"]),
        (None, {"profile": "safe"}, SAFE), ([], {"profile": "safe", "also": "oslo_spawn"}, ["oslo_spawn"]),
        (None, {"profile": "safe", "also": "fix_wait_poll", "disabled": "fix_wait_poll"}, SAFE),
    ],
)  # fmt: skip
def test_which_patches_are_chosen(names: Any, settings: dict[str, Any], chosen: list[str]) -> None:
    """In the order of the table, whatever the order of the names."""
    with fastio.patched(names, **settings) as report:
        assert list(dict.fromkeys(entry.name for entry in report.entries)) == chosen


@pytest.mark.parametrize("wanted", ["nothing", ["communicate", "nothing"], "", [""], ["Communicate"]])
def test_a_name_that_does_not_exist(wanted: Any) -> None:
    for call in (fastio.patch, fastio.unpatch):
        with pytest.raises(UnknownPatchError):
            call(wanted)


@pytest.mark.parametrize("names", [5, b"wait", 1.5])
def test_names_of_a_wrong_type(names: Any) -> None:
    with pytest.raises(TypeError, match="names"):
        fastio.patch(names)


@pytest.mark.skipif(not (HAS_EVENTLET and HAS_OSLO), reason="not everything is installed")
def test_all_targets_can_be_had_at_once() -> None:
    import_targets()
    with fastio.patched(strict=True) as report:
        assert {entry.target for entry in report.entries} == {
            target.key for patch, target in TARGETS if patch.name not in registry.TRACE_NAMES
        }
