"""Applying, taking back, looking: guards, outcomes, order, forks, threads, and what happens when something fails."""

import contextlib
import importlib
import importlib.util
import json
import logging
import os
import pathlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import fastio
from fastio import config, counters
from fastio.errors import PatchError
from fastio.patching import distributions, holders, known_code, modules, registry, state
from fastio.patching.registry import Patch, Target
from fastio.report import Entry, Outcome
from tests.conftest import HAS_EVENTLET, HAS_OSLO, MONKEY_PATCHED, RunPython, needs_eventlet, needs_oslo
from tests.targets import attributes, exchange, function_at, import_targets, in_effect, missing, not_needed

#: the ``_communicate`` that ``subprocess.Popen`` has in this process, and the patch that replaces it
MODULE, COMMUNICATE = (
    ("eventlet.green.subprocess", "green_communicate") if MONKEY_PATCHED else ("subprocess", "communicate")
)


@pytest.fixture(autouse=True)
def imported() -> Iterator[None]:
    """All is imported, and taken back at the end; whether it is back is checked for every test."""
    import_targets()
    yield
    fastio.unpatch()


@contextlib.contextmanager
def other_code(function: Any) -> Iterator[None]:
    code = function.__code__
    function.__code__ = code.replace(co_consts=(*code.co_consts, "a release of tomorrow"))
    try:
        yield
    finally:
        function.__code__ = code


def round_trip(popen: Any = None) -> int:
    """Move bytes through a child and back; returns how often fastio did it."""
    before = counters.exchanges
    process = (popen or subprocess.Popen)(["cat"], stdin=-1, stdout=-1, stderr=-1)
    assert process.communicate(b"\x00fastio") == (b"\x00fastio", b"")
    assert process.returncode == 0
    return counters.exchanges - before


def entries(report: Any = None) -> dict[str, Entry]:
    """The entries of the report by name and target."""
    return {f"{entry.name} {entry.target}": entry for entry in (report or fastio.status()).entries}


def last_line(result: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(result.stdout.splitlines()[-1])


# Applying and taking back


# The context manager


def test_patched_takes_back_after_an_exception() -> None:
    originals = attributes()
    settings = config.in_force()
    with pytest.raises(ZeroDivisionError), fastio.patched(chunk_size="8KiB"):
        raise ZeroDivisionError
    assert attributes() == originals
    assert config.in_force() is settings


def test_nested_contexts() -> None:
    originals = attributes()
    with fastio.patched(COMMUNICATE, chunk_size="8KiB"):
        outer = attributes()
        with fastio.patched(chunk_size="16KiB"):
            assert fastio.settings().chunk_size == 16384
            with fastio.patched(chunk_size="32KiB"):
                assert fastio.settings().chunk_size == 32768
            assert fastio.settings().chunk_size == 16384
            assert in_effect() > {COMMUNICATE}
        assert fastio.settings().chunk_size == 8192
        assert attributes() == outer
        assert in_effect() == {COMMUNICATE}
        assert round_trip() == 1
    assert attributes() == originals


def test_a_context_within_patch_leaves_it_applied() -> None:
    fastio.patch(strict=True, chunk_size="8KiB")
    patched = attributes()
    with fastio.patched(strict=True, chunk_size="16KiB"):
        pass
    assert attributes() == patched
    assert fastio.settings().chunk_size == 8192
    fastio.unpatch()


def test_a_context_as_a_decorator() -> None:
    @fastio.patched(COMMUNICATE, strict=True)  # type: ignore[operator]
    def function() -> int:
        return round_trip()

    assert [function(), round_trip(), function()] == [1, 0, 1]


# Guards: code


def guards() -> dict[str, Any]:
    """Each function that has to be known and that is here: its key, and the target's attribute that has it."""
    found = {}
    for patch in registry.patches():
        for target in patch.targets:
            if not missing(patch, target) and target.owner() is not None:
                for attribute, key in target.beside.items():
                    if target.functions()[key].parameters is None:
                        found[f"{target.key} {attribute}"] = function_at(target, attribute, key)
    return found


def relying_on(function: Any) -> dict[str, str]:
    """The entries of targets that rely on the function, each with the attribute that leads to it."""
    return {
        f"{patch.name} {target.key}": attribute
        for patch in registry.patches()
        for target in patch.targets
        if not missing(patch, target) and target.owner() is not None
        for attribute, key in target.beside.items()
        if target.functions()[key].parameters is None and function_at(target, attribute, key) is function
    }


@pytest.mark.skipif(MONKEY_PATCHED, reason="eventlet's functions are the same without TEST_EVENTLET")
def test_unknown_code_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """By each patch that relies on it, whatever patch was applied at the attribute before, and by no other."""
    for function in {id(function): function for function in guards().values()}.values():
        relying = set(relying_on(function))
        assert relying
        with other_code(function):
            check_left_alone(relying, "unknown code", caplog)


VALUES = sorted({target.key for patch in registry.patches() for target in patch.targets if target.stock is not None})


@pytest.mark.parametrize("key", VALUES)
def test_an_unknown_value_is_left_alone(
    key: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be on purpose: an operator's, or that of an unknown release."""
    found = [(patch, target) for patch in registry.patches() for target in patch.targets if target.key == key]
    target = found[0][1]
    if target.module not in sys.modules or target.owner() is None or missing(*found[0]):
        pytest.skip(f"{key} is not here")
    relying = {f"{patch.name} {target.key}" for patch, target in found}
    with monkeypatch.context() as other:
        other.setattr(target.owner(), target.name, target.stock + 1)
        check_left_alone(relying, f"{target.stock + 1} stands at {target.name}, upstream has {target.stock}", caplog)
        assert vars(target.owner())[target.name] == target.stock + 1


def check_left_alone(relying: set[str], found_there: str, caplog: pytest.LogCaptureFixture) -> None:
    """The entries ``relying`` are left alone, by all ways to apply them, and all others applied."""
    originals = attributes()
    settings = config.in_force()
    with pytest.raises(PatchError) as raised:
        fastio.patch(strict=True, chunk_size="8KiB")
    assert attributes() == originals
    assert config.in_force() is settings
    assert not in_effect()
    for entry in relying:
        name, target = entry.split()
        assert raised.value.report.outcome(name, target) is Outcome.CHANGED
        assert f"{name} ({target}): changed upstream code: " in str(raised.value)

    caplog.clear()
    report = fastio.patch()
    found, later = entries(report), entries()
    assert {name for name, entry in found.items() if entry.left_alone} == relying
    for name in relying:
        assert found[name].outcome is Outcome.CHANGED
        assert found_there in found[name].found
        assert ("report" if found_there == "unknown code" else "on purpose") in found[name].advice
        # Once it has been said, status() says the same.
        assert later[name] == found[name]
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == len(relying)
    for name in relying:
        assert [line for line in warnings if name.split()[0] in line and name.split()[1] in line]
    now = attributes()
    for name in relying:
        target = name.split()[1]
        if not [entry for entry in found.values() if entry.target == target and entry.in_effect]:
            assert now[target] is originals[target]
            assert now.get(target + " beneath") is originals.get(target + " beneath")
    fastio.unpatch()
    assert attributes() == originals


@pytest.mark.parametrize("refused", [True, False], ids=["strict", "context"])
@pytest.mark.parametrize("call", [{}, {"trace": "there"}, {"disabled": COMMUNICATE}])
def test_changes_of_a_call_are_undone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, refused: bool, call: dict[str, Any]
) -> None:
    from fastio.trace import recorder

    fastio.patch(COMMUNICATE, strict=True, chunk_size="8KiB", trace=str(tmp_path / "here"))
    before, wanted = in_effect(), dict(state.STATE.wanted)
    call = {**call, "chunk_size": "16KiB"}
    if "trace" in call:
        call["trace"] = str(tmp_path / "there")
    if refused:
        original = subprocess.Popen._get_handles if MONKEY_PATCHED else subprocess.Popen._try_wait  # type: ignore[attr-defined]
        monkeypatch.setattr(original, "__defaults__", (1,))
        with pytest.raises(PatchError):
            fastio.patch(strict=True, **call)
    else:
        with fastio.patched(**call):
            assert in_effect() != before
    assert (in_effect(), state.STATE.wanted) == (before, wanted)
    assert fastio.settings().chunk_size == 8192
    assert recorder.active is not None and recorder.active.directory == str(tmp_path / "here")
    assert round_trip() == 1


def test_an_attribute_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A possible future release: the service that imports us goes on."""
    owner = next(base for base in subprocess.Popen.__mro__ if "_save_input" in vars(base))
    if MONKEY_PATCHED:
        # The copies that eventlet keeps have the same class body.
        for base in subprocess.Popen.__mro__[1:]:
            monkeypatch.delattr(base, "_save_input", raising=False)
    else:
        monkeypatch.delattr(owner, "_save_input")
    report = fastio.patch()
    entry = entries(report)[f"{COMMUNICATE} {MODULE}:Popen._communicate"]
    assert entry.outcome is Outcome.CHANGED
    assert "_save_input does not exist" in entry.found


# Guards: versions


def fake_distribution(folder: pathlib.Path, name: str, version: str) -> str:
    """A directory that says, put first on the path, that this version is installed."""
    info = folder / f"{name.replace('.', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return str(folder)


VERSIONS = """
    import json, logging, sys
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    logging.getLogger("fastio").addHandler(handler)
    import fastio, subprocess
    from tests.targets import import_targets
    import_targets()
    try:
        fastio.patch(strict=True)
        error = ""
    except fastio.errors.PatchError as raised:
        error = str(raised)
    left = [e.name for e in fastio.status().entries if e.in_effect]
    report = fastio.patch()
    print(json.dumps([error, left, messages, [[e.name, e.target, e.outcome.value, e.found, e.advice] for e in report.entries]]))
"""  # noqa: E501


@needs_eventlet
@needs_oslo
@pytest.mark.parametrize(("distribution", "version"), [("eventlet", "99.0"), ("eventlet", "0.20.0"),
                                                       ("oslo.concurrency", "99.0")])  # fmt: skip
def test_an_unsupported_version(distribution: str, version: str, tmp_path: pathlib.Path, run_python: RunPython) -> None:
    """Whatever needs the distribution is left alone, and nothing else."""
    path = fake_distribution(tmp_path / "fake", distribution, version)
    error, left, messages, found = last_line(run_python(VERSIONS, path=(path,), options=("-W", "ignore")))
    assert left == []
    assert "unsupported version" in error
    for name, target, outcome, what, advice in found:
        if absence := why_missing(name, target):
            assert outcome == without(absence).value
            assert what == absence or outcome != Outcome.ABSENT.value
        elif distribution in needed(name, target):
            assert outcome == Outcome.UNSUPPORTED.value
            assert what.startswith(version)
            assert f"{distribution} >=" in what
            assert f"disable {name}" in advice
            assert [line for line in messages if name in line and version in line]
        else:
            assert outcome == (Outcome.OFF if not_needed(name) else Outcome.APPLIED).value


def named(name: str, key: str) -> tuple[Patch, Target]:
    patch = registry.load(name)
    return patch, next(target for target in patch.targets if target.key == key)


def why_missing(name: str, key: str) -> str:
    return missing(*named(name, key))


def needed(name: str, key: str) -> set[str]:
    patch, target = named(name, key)
    return {each.distribution for each in patch.requirements(target)}


def without(absence: str) -> Outcome:
    return Outcome.OFF if absence.startswith("not needed") else Outcome.ABSENT


def test_an_unknown_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_code, "PYTHON", "3.99")
    originals = attributes()
    with pytest.raises(PatchError, match=r"3\.99"):
        fastio.patch(strict=True)
    report = fastio.patch()
    assert {entry.outcome for entry in report.entries} <= {Outcome.UNSUPPORTED, Outcome.ABSENT, Outcome.OFF}
    assert {entry.advice for entry in report.problems()} >= {f"use a known Python, or disable {COMMUNICATE}"}
    assert attributes() == originals


def test_a_free_threaded_python(run_python: RunPython) -> None:
    """This flag identifies its build. Nothing is patched there, whether or not the code is known."""
    code = """
        import json, subprocess, sys
        before = subprocess.Popen._communicate
        sys.abiflags = "t"
        import fastio
        entry = fastio.patch("communicate").entries[0]
        print(json.dumps([entry.outcome.value, entry.found, subprocess.Popen._communicate is before]))
        """
    outcome, found, untouched = last_line(run_python(code))
    assert (outcome, untouched) == (Outcome.UNSUPPORTED.value, True)
    assert found.startswith(f"Python {sys.version_info[0]}.{sys.version_info[1]}t: a free-threaded build")


def test_where_nothing_else_is_installed(bare: dict[str, Any], run_python: RunPython) -> None:
    error, left, messages, found = last_line(run_python(VERSIONS, **bare))
    assert (error, messages) == ("", [])
    assert "communicate" in left
    for name, target, outcome, what, advice in found:
        if name == "fix_wait_poll" and sys.version_info < (3, 15):
            assert outcome == Outcome.OFF.value
        elif not target.startswith("subprocess:") or name == "oslo_spawn":
            assert (outcome, advice) == (Outcome.ABSENT.value, "")
            assert what in {f"{distribution} is not installed" for distribution in needed(name, target)}
        else:
            assert outcome in (Outcome.APPLIED.value, Outcome.OFF.value)


def test_absence_is_quiet_also_when_a_hook_fires(run_python: RunPython) -> None:
    """oslo.concurrency is missing, eventlet comes later: nothing of that deserves a warning."""
    if not (HAS_EVENTLET and HAS_OSLO):
        pytest.skip("eventlet or oslo.concurrency is not installed")
    code = """
        import fastio
        from fastio.patching import distributions
        real = distributions.version
        distributions.version = lambda name: None if name == "oslo.concurrency" else real(name)
        fastio.patch(strict=True)
        import eventlet
        eventlet.monkey_patch()
        assert fastio.status().outcome("green_communicate").value == "applied"
        import oslo_concurrency.processutils
        assert fastio.status().outcome("oslo_spawn").value == "absent"
        """
    assert run_python(code, options=("-W", "ignore")).stderr == ""


@pytest.mark.parametrize(
    ("installed", "outcome"), [("4.9.1", Outcome.OFF), ("5.0.0", None), ("7.0", Outcome.UNSUPPORTED)]
)
def test_releases_that_have_not_got_what_a_patch_is_for(
    installed: str, outcome: Outcome | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are no problem, so that a strict patch() succeeds there."""
    patch = registry.load("fix_swift_last_segment")
    monkeypatch.setattr(distributions, "version", lambda name: installed if name == "glance_store" else "4.0")
    entry = state.blocked(patch, patch.targets[0])
    # glance_store need not be here.
    found = None if entry is None or entry.outcome in (Outcome.WAITING, Outcome.ABSENT) else entry.outcome
    assert found is outcome
    if entry is not None and outcome is Outcome.OFF:
        assert not entry.left_alone and entry.found == "glance_store 4.9.1: glance_store < 5 is without it"


def test_a_module_that_an_earlier_release_has_in_another(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module has no others in it: nothing is to be waited for."""
    package = tmp_path / "fastio_library"
    package.mkdir()
    for name in ("__init__.py", "driver.py"):
        (package / name).touch()
    monkeypatch.syspath_prepend(tmp_path)
    target = Target("fastio_library.driver.store:Store.get", lambda wrapped, hook: wrapped)
    modules.look_for([target])
    assert modules.why_absent(target.module) == "fastio_library.driver.store is not part of this release"
    (package / "driver.py").unlink()
    (package / "driver").mkdir()
    for name in ("__init__.py", "store.py"):
        (package / "driver" / name).touch()
    importlib.invalidate_caches()
    modules.look_for([target])
    assert modules.why_absent(target.module) is None


@pytest.mark.parametrize("stub", ["types.ModuleType('eventlet')", "unittest.mock.MagicMock()", "None"])
def test_a_stub_of_eventlet(stub: str, run_python: RunPython) -> None:
    """Unit tests of services put stubs into sys.modules."""
    code = f"""
        import sys, types, unittest.mock
        sys.modules["eventlet"] = {stub}
        import fastio
        fastio.status()
        report = fastio.patch(strict=True)
        assert report.outcome("communicate").value == "applied"
        found = {{e.outcome.value for e in report.entries if e.target.startswith("eventlet")}}
        assert found - {{"off"}} == {{"absent"}}
        fastio.unpatch()
        """
    assert run_python(code).stderr == ""


# Waiting for imports


@needs_eventlet
@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        # The code that green_wait relies on is unchanged.
        ("eventlet.sleep(check_interval)", "eventlet.sleep(check_interval / 2)", "applied"),
        ("check_interval=0.01", "check_interval=0.05", "changed upstream code"),
    ],
)
def test_a_hook_that_finds_unknown_code_warns_and_lets_the_import_go_on(
    old: str, new: str, outcome: str, tmp_path: pathlib.Path, run_python: RunPython
) -> None:
    """A copy of eventlet with another wait(), as a distribution might patch it."""
    package = pathlib.Path(importlib.import_module("eventlet").__file__).parent
    copy = tmp_path / "patched" / "eventlet"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    source = copy / "green" / "subprocess.py"
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))
    code = """
        import json, sys, fastio
        fastio.patch(strict=True)
        import eventlet.green.subprocess as green
        assert sys.argv[1] in green.__file__
        report = fastio.status()
        print(json.dumps([report.outcome("green_wait").value, report.outcome("green_communicate").value]))
        """
    result = run_python(code, str(copy), path=(str(copy.parent),), options=("-W", "ignore"))
    assert last_line(result) == [outcome, "applied"]
    lines = result.stderr.splitlines()
    assert len(lines) == (outcome != "applied")
    for line in lines:
        assert (
            "green_wait (eventlet.green.subprocess:Popen.wait): changed upstream code: "
            "wait takes (self, timeout=None, check_interval=0.05), not " in line
        )


@needs_eventlet
@pytest.mark.skipif(sys.version_info >= (3, 15), reason="eventlet's second module has not all that the loop calls")
def test_a_module_that_goes_away(run_python: RunPython) -> None:
    """Test suites take modules out of sys.modules to import them anew."""
    code = """
        import json, sys, fastio
        fastio.patch()
        import eventlet.green.subprocess as first
        fastio.patch(strict=True)
        del sys.modules["eventlet.green.subprocess"]
        without = fastio.status().outcome("green_communicate").value
        fastio.patch()
        import eventlet.green.subprocess
        second = sys.modules["eventlet.green.subprocess"]
        assert second is not first
        by_import = fastio.status().outcome("green_communicate").value
        # Not strict: eventlet fills its module only once, the second one has no run().
        fastio.patch()
        from fastio import counters
        counters.reset()
        process = second.Popen(["cat"], stdin=-1, stdout=-1)
        assert process.communicate(b"x") == (b"x", None)
        now = fastio.status().outcome("green_communicate").value
        print(json.dumps([without, by_import, counters.exchanges, now]))
        """
    assert last_line(run_python(code, options=("-W", "ignore"))) == ["waiting for import", "applied", 1, "applied"]


# Live status


def test_patching_again_after_a_reset_by_hand_brings_back_all_layers() -> None:
    fastio.patch(strict=True)
    before = in_effect()
    subprocess.Popen._communicate = subprocess.Popen._communicate.__wrapped__  # type: ignore[attr-defined]
    assert in_effect() != before
    fastio.patch(strict=True)
    assert in_effect() == before
    assert round_trip() == 1


def test_a_module_that_is_loaded_anew(run_python: RunPython) -> None:
    code = """
        import importlib, json, subprocess, fastio
        from fastio import counters
        def round_trip():
            before = counters.exchanges
            process = subprocess.Popen(["cat"], stdin=-1, stdout=-1)
            assert process.communicate(b"x") == (b"x", None)
            return counters.exchanges - before
        fastio.patch(strict=True)
        found = [round_trip()]
        importlib.reload(subprocess)
        found += [round_trip(), fastio.status().outcome("communicate").value != "applied"]
        fastio.patch(strict=True)
        found += [round_trip(), fastio.status().outcome("communicate").value]
        fastio.unpatch()
        found += [round_trip(), "fastio" in subprocess.Popen._communicate.__code__.co_filename]
        print(json.dumps(found))
        """
    assert last_line(run_python(code)) == [1, 0, True, 1, "applied", 0, False]


def declare(monkeypatch: pytest.MonkeyPatch, name: str, **declared: Any) -> None:
    """Have the targets of the patch say this of themselves."""

    patch = registry.load(name)
    exchange(patch, patch._replace(targets=tuple(each._replace(**declared) for each in patch.targets)), monkeypatch)


def test_needs_of_other_pythons_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is fine: strict accepts it, and the attribute need not even be there."""
    declare(monkeypatch, COMMUNICATE, python=">= 9.1", key="subprocess:Popen.no_such_function")
    report = fastio.patch(COMMUNICATE, strict=True)
    entry = report.entries[0]
    assert (entry.outcome, entry.in_effect, entry.advice) == (Outcome.OFF, False, "")
    assert entry.found == f"Python {known_code.PYTHON}: needed in Python >= 9.1"
    assert report.problems() == [] and "1 off" in report.summary()
    assert entry == next(each for each in fastio.status().entries if each.name == COMMUNICATE)


# Logging


def test_one_line_sums_it_up(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fastio")
    report = fastio.patch(strict=True)
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [report.summary()]
    assert messages[0].startswith("fastio: ")
    assert " in effect" in messages[0]


def test_the_kill_switch(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fastio")
    monkeypatch.setenv("FASTIO", "0")
    originals = attributes()
    for arguments in ({}, {"strict": True}, {"enabled": True}, {"names": COMMUNICATE}, {"names": fastio.names()}):
        report = fastio.patch(**arguments)
        assert list(report.entries) == []
    assert attributes() == originals
    assert round_trip() == 0
    assert {record.getMessage() for record in caplog.records} == {"fastio: switched off by environment FASTIO"}
    found = [entry for entry in fastio.status().entries if entry.outcome is not Outcome.ABSENT]
    assert found
    for entry in found:
        assert (entry.outcome, entry.found) == (Outcome.OFF, "switched off as a whole by environment FASTIO")
    config.put_in_force(None)


def test_an_inactive_patch_names_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTIO_DISABLED", COMMUNICATE)
    fastio.patch("oslo_spawn")
    found = entries()
    assert found[f"{COMMUNICATE} {MODULE}:Popen._communicate"].found == "disabled by environment FASTIO_DISABLED"
    other = found["wait subprocess:Popen._wait"]
    # After monkey_patch(), the native class may be gone.
    if not not_needed("wait") and not (MONKEY_PATCHED and holders.native_popen() is None):
        assert (other.outcome, other.found) == (Outcome.OFF, "not asked for")


# Processes, threads, subclasses


def test_patches_come_and_go_while_children_run() -> None:
    """Calls that are under way when a patch is taken back, or applied, end as they began."""
    data = os.urandom(300_000)
    errors: list[BaseException] = []
    moved: list[int] = []
    enough = threading.Event()

    def transfers() -> None:
        try:
            while not enough.is_set():
                process = subprocess.Popen(["cat"], stdin=-1, stdout=-1)
                assert process.communicate(data)[0] == data
                moved.append(process.pid)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=transfers) for _ in range(3)]
    for thread in threads:
        thread.start()
    flips = 0
    try:
        # However the threads are scheduled: many transfers, and many changes meanwhile. A change takes so much longer
        # than a turn of a hub that transfers would hardly go on if each had only one.
        while not errors and (len(moved) < 30 or flips < 10):
            fastio.patch(strict=True, chunk_size="8KiB" if flips % 2 else "1MiB")
            threading.Event().wait(0.02)
            fastio.unpatch()
            threading.Event().wait(0.02)
            flips += 1
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert errors == []


class Plain(subprocess.Popen):  # type: ignore[type-arg]
    pass


class Overrides(subprocess.Popen):  # type: ignore[type-arg]
    calls = 0

    def _communicate(self, *args: Any) -> Any:
        type(self).calls += 1
        return super()._communicate(*args)  # type: ignore[misc]


def test_a_subclass_keeps_its_own_method() -> None:
    assert (round_trip(Plain), round_trip(Overrides)) == (0, 0)
    with fastio.patched(strict=True):
        assert (round_trip(Plain), round_trip(Overrides)) == (1, 1)
        assert "_communicate" not in vars(Plain)
        assert Overrides._communicate.__module__ == __name__
    assert (round_trip(Plain), round_trip(Overrides)) == (0, 0)
    assert Overrides.calls == 3


def test_importing_a_patch_module_applies_nothing() -> None:
    originals = attributes()
    for patch in registry.patches():
        module = sys.modules[patch.module]
        names = dict(vars(module))
        importlib.reload(module)
        vars(module).update(names)
    assert attributes() == originals
