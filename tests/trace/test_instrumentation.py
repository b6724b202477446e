"""The instrumentation as a whole: off unless asked for, there once it is, gone again, and not to be had by name."""

import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

import fastio
from fastio import config
from fastio.errors import SettingError, UnknownPatchError
from fastio.patching import registry
from fastio.report import Outcome
from fastio.trace import recorder
from tests.conftest import MONKEY_PATCHED, RunPython
from tests.targets import attributes
from tests.trace import traces

ROOT = pathlib.Path(fastio.__file__).parent.parent
NAMES = set(registry.TRACE_NAMES)


@pytest.fixture(autouse=True)
def ends() -> Any:
    yield
    fastio.unpatch()
    assert recorder.active is None


def test_each_patch_is_in_the_documentation() -> None:
    page = ROOT / "doc" / "source" / "operators" / "trace.rst"
    if not page.exists():
        pytest.skip("not a checkout")
    for name in NAMES:
        assert f"``{name}``" in page.read_text(encoding="utf-8")


def test_nothing_is_there_unless_asked_for(run_python: RunPython) -> None:
    run_python("""
        import fastio, sys
        fastio.patch(), fastio.status(), fastio.unpatch()
        found = [name for name in sys.modules if name.startswith("fastio.trace")]
        assert not found, found
        """)
    with fastio.patched():
        assert not {entry.name for entry in fastio.status().entries} & NAMES


def test_tracing_alone_patches_nothing_else_and_can_be_undone(tmp_path: pathlib.Path) -> None:
    directory = tmp_path / "made" / "for it"
    before = attributes()
    fastio.patch([], trace=str(directory))
    # Nothing of fastio's own.
    assert {entry.name for entry in fastio.status().entries if entry.in_effect} <= NAMES
    assert fastio.status().outcome("trace_subprocess") in (Outcome.APPLIED, Outcome.ABSENT)
    subprocess.run(["echo", "a"], capture_output=True, check=True)
    (note,) = fastio.status().notes
    assert str(directory) in note
    assert str(directory) in str(fastio.status())
    fastio.patch([])
    assert recorder.active is None
    assert fastio.status().notes == []
    assert {entry.name for entry in fastio.status().entries if entry.in_effect} == set()
    after = attributes()
    assert all(after[key] is value for key, value in before.items())
    assert [span.name for span in traces.spans(directory)] == ["subprocess.command"]


def test_with_the_patches_that_replace_what_it_calls(tmp_path: pathlib.Path) -> None:
    for order in ((False, True), (True, False)):
        directory = tmp_path / str(order[0])
        for own in order:
            if own:
                fastio.patch(trace=str(directory))
            else:
                fastio.patch([], trace=str(directory))
        data = os.urandom(1 << 20)
        done = subprocess.run(["cat"], input=data, capture_output=True, check=True)
        assert done.stdout == data
        fastio.unpatch()
        (end,) = traces.ends(directory, "subprocess.command")
        assert end["bytes"] == 2 << 20
        assert end["program"] == "cat"
        assert (end["code"], end["outcome"]) == (0, "ok")
        if MONKEY_PATCHED:
            assert end["waits"] >= 1
            assert end["wait_ns"] > 0


def test_one_patch_may_be_disabled(tmp_path: pathlib.Path) -> None:
    fastio.patch([], trace=str(tmp_path), disabled="trace_subprocess")
    assert not any(entry.in_effect for entry in fastio.status().entries if entry.name == "trace_subprocess")
    subprocess.run(["true"], capture_output=True, check=True)
    fastio.unpatch()
    assert traces.spans(tmp_path) == []


def test_all_disabled_leaves_the_trace(tmp_path: pathlib.Path) -> None:
    report = fastio.patch(trace=str(tmp_path), disabled="all")
    assert {entry.name for entry in report.entries} == NAMES
    assert not any(entry.in_effect for entry in fastio.status().entries if entry.name not in NAMES)


def test_the_kill_switch(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTIO", "0")
    fastio.patch(trace=str(tmp_path / "trace"))
    assert recorder.active is None
    assert not (tmp_path / "trace").exists()


def test_the_environment_switches_tracing_on(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTIO_TRACE", str(tmp_path))
    with fastio.patched([]):
        assert recorder.active is not None
        assert recorder.active.directory == str(tmp_path)
        assert fastio.settings().sources["trace"] == "environment FASTIO_TRACE"


@pytest.mark.parametrize("bad", ["", "/dev/null", "/dev/null/below", "/proc/nothing/here", "a\0b", 7])
def test_a_bad_directory_names_itself_and_changes_nothing(bad: Any) -> None:
    before = attributes()
    with pytest.raises(SettingError) as caught:
        fastio.patch(trace=bad)
    assert caught.value.setting == "trace"
    assert caught.value.value == bad
    assert "a directory that can be written to" in str(caught.value)
    assert recorder.active is None
    after = attributes()
    assert all(after[key] is value for key, value in before.items())


def test_its_patches_are_none_to_ask_for_by_name() -> None:
    with pytest.raises(UnknownPatchError):
        fastio.patch("trace_subprocess")


def test_fastio_run(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import subprocess; subprocess.run(['echo', 'a'], capture_output=True, check=True)\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FASTIO")}
    directory = tmp_path / "trace"
    command = [sys.executable, "-m", "fastio", "run", "--trace", str(directory), "--", str(script)]
    subprocess.run(command, check=True, cwd=ROOT, env=environment, timeout=60)
    (end,) = traces.ends(directory, "subprocess.command")
    assert (end["program"], end["outcome"]) == ("echo", "ok")
    resource = traces.spans(directory)[0].resource
    assert resource["process.executable.name"] == resource["service.name"] == "script.py"
    elsewhere = "import os, subprocess; os.chdir('/'); "
    script.write_text(elsewhere + "subprocess.run(['true'], capture_output=True, check=True)\n")
    environment["PYTHONPATH"] = str(ROOT)
    command[5] = "relative"
    subprocess.run(command, check=True, cwd=tmp_path, env=environment, timeout=60)
    assert traces.ends(tmp_path / "relative", "subprocess.command")


def test_settings_read_before_anything_is_patched_make_nothing(tmp_path: pathlib.Path) -> None:
    config.resolve({"trace": str(tmp_path / "not yet")})
    assert not (tmp_path / "not yet").exists()
