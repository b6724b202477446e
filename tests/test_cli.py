"""The command line: ``fastio status`` in separate processes."""

import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

import fastio
from fastio import cli
from fastio.config import SETTINGS
from fastio.patching import registry
from fastio.patching.registry import Patch, Target
from fastio.report import Outcome
from tests.conftest import HAS_EVENTLET
from tests.targets import import_targets, missing

ROOT = pathlib.Path(fastio.__file__).parent.parent
PATCHES = re.compile("patch +targets")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: pathlib.Path) -> Run:
    """``run("status", FASTIO="0")`` runs the command with these arguments and this environment."""

    def run(
        *arguments: str, path: str = "", command: tuple[str, ...] = (), **env: str
    ) -> subprocess.CompletedProcess[str]:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FASTIO", "PYTHONWARN"))}
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, [path, str(ROOT)]))
        return subprocess.run(
            [*(command or (sys.executable, "-m", "fastio")), *arguments],
            env={**environ, **env}, cwd=tmp_path, capture_output=True, text=True, timeout=100,
        )  # fmt: skip

    return run


def test_status_lists_every_setting_and_patch(run: Run) -> None:
    result = run("status", "--all")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"fastio {fastio.__version__}, CPython ")
    assert "eventlet" in "".join(lines[:2])
    for setting in SETTINGS:
        assert [line for line in lines if line.startswith(setting.name + " ") and "default" in line]
    for name in fastio.names():
        assert [line for line in lines if line.startswith(name + " ")]
    (communicate,) = [line for line in lines if line.startswith("communicate ")]
    assert "applied" in communicate
    waiting = [line for line in lines if Outcome.WAITING.value in line]
    assert waiting == []


def test_status_as_json(run: Run) -> None:
    result = run("status", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    data = json.loads(result.stdout)
    outcomes = {(entry["name"], entry["target"]): entry["outcome"] for entry in data["patches"]}
    import_targets()

    def expected(patch: Patch, target: Target) -> str:
        if not target.needed_under():
            return "off"
        reason = missing(patch, target)
        return "applied" if not reason else "off" if reason.startswith("not needed") else "absent"

    assert outcomes == {
        (patch.name, target.key): expected(patch, target) for patch in registry.patches() for target in patch.targets
    }
    assert data["versions"]["fastio"] == fastio.__version__
    assert data["versions"]["eventlet"] == (importlib.metadata.version("eventlet") if HAS_EVENTLET else "absent")
    assert data["late_holders"] == []


def test_the_installed_command(run: Run) -> None:
    command = shutil.which("fastio", path=str(pathlib.Path(sys.executable).parent))
    if command is None:
        pytest.skip("fastio is not installed")
    assert run("status", "--json", command=(command,)).stdout == run("status", "--json").stdout


def test_the_environment_is_heeded_and_named(run: Run) -> None:
    result = run("status", FASTIO_CHUNK_SIZE="64k", FASTIO_DISABLED="wait, green_wait")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    table = lines.index(next(line for line in lines if line.startswith("setting ")))
    assert [line.split() for line in lines[table + 2 : table + 4]] == [
        ["chunk_size", "64", "KiB", "environment", "FASTIO_CHUNK_SIZE"],
        ["disabled", "wait,", "green_wait", "environment", "FASTIO_DISABLED"],
    ]
    assert lines[table + 4] == ""
    one = run("status", "--patch", "wait", FASTIO_DISABLED="wait").stdout
    assert "disabled by environment FASTIO_DISABLED" in one
    assert "communicate" not in one
    data = json.loads(run("status", "--json", "--patch", "wait", FASTIO_DISABLED="wait").stdout)
    (wait,) = data["patches"]
    assert wait["outcome"] == "off"


@pytest.mark.skipif(not HAS_EVENTLET, reason="eventlet is not installed")
def test_something_is_left_alone(run: Run, tmp_path: pathlib.Path) -> None:
    info = tmp_path / "fake" / "eventlet-99.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: eventlet\nVersion: 99.0\n")
    result = run("status", path=str(info.parent))
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    # Problems come before the patches.
    assert lines.index("Problems:") < lines.index("What to do:") < lines.index(next(filter(PATCHES.match, lines)))
    assert "unsupported version" in result.stdout
    assert "disable green_communicate" in result.stdout
    result = run("status", "--json", path=str(info.parent))
    assert result.returncode == 1
    left = [entry for entry in json.loads(result.stdout)["patches"] if entry["outcome"] == "unsupported version"]
    assert left
    for entry in left:
        assert entry["found"].startswith("99.0")
        assert entry["advice"]


@pytest.mark.parametrize("error", ["ImportError", "AttributeError", "RuntimeError"])
def test_a_library_that_can_not_be_imported(run: Run, tmp_path: pathlib.Path, error: str) -> None:
    """An old eventlet on a new Python raises whatever it stumbles over; that is when the status is asked for."""
    package = tmp_path / "broken" / "eventlet"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"raise {error}('made for another Python')\n")
    result = run("status", path=str(package.parent))
    assert "Traceback" not in result.stderr
    assert "communicate " in result.stdout
    assert result.returncode in (0, 1)


def test_main_returns_the_exit_status(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As an entry point calls it, in this process."""
    monkeypatch.setenv("FASTIO_CHUNK_SIZE", "12 parsecs")
    assert cli.main(["status", "--json"]) == 2
    printed, (line,) = (text.splitlines() for text in capsys.readouterr())
    assert printed == []
    assert line.startswith("fastio: chunk_size: '12 parsecs' (from environment FASTIO_CHUNK_SIZE)")
    monkeypatch.setenv("FASTIO_CHUNK_SIZE", "1M")
    try:
        assert cli.main(["status", "--json"]) == 0
    finally:
        fastio.unpatch()
    assert json.loads(capsys.readouterr().out)["settings"]["chunk_size"]["value"] == 1 << 20


@pytest.mark.parametrize("command", ["validate", "report"])
def test_a_command_that_needs_a_checkout(run: Run, tmp_path: pathlib.Path, command: str) -> None:
    shutil.copytree(ROOT / "fastio", tmp_path / "fastio", ignore=shutil.ignore_patterns("__pycache__"))
    result = run(command, path=str(tmp_path))
    assert (result.returncode, result.stdout) == (2, "")
    assert f"{command} needs a checkout of fastio" in result.stderr and "pip install -e" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["validate", "nonsense"], "fastio validate: project 'nonsense' is not one of eventlet, oslo.concurrency, "
                                   "glance_store"),
        (["report", "nothing.json"], "fastio report: nothing.json: No such file or directory\n"),
    ],
)  # fmt: skip
def test_a_command_of_the_checkout(run: Run, tmp_path: pathlib.Path, arguments: list[str], said: str) -> None:
    """It imports nothing from the current directory."""
    for name in ("scipy", "psutil"):
        pytest.importorskip(name, reason="it comes with the extra 'bench'")
    for name in ("json", "runpy", "shlex", "textwrap", "benchmarks"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('of the current directory')")
    result = run(*arguments, command=(sys.executable, str(ROOT / "fastio" / "__main__.py")))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(said)


@pytest.mark.parametrize("command", ["", "status", "check", "run", "trace", "trace report", "validate", "report"])
def test_the_help_of_a_command_fits_a_screen(run: Run, command: str) -> None:
    if command in ("validate", "report"):
        pytest.importorskip("scipy", reason="it comes with the extra 'bench'")
    lines = run(*command.split(), "--help", COLUMNS="80").stdout.splitlines()
    assert lines[0].startswith(f"usage: fastio {command}".rstrip())
    assert len(lines) <= 40 and max(map(len, lines)) <= 80


def test_the_help_of_run_has_the_settings(run: Run) -> None:
    text = run("run", "--help", COLUMNS="80").stdout
    for setting in SETTINGS:
        assert setting.name == "enabled" or f"--{setting.name.replace('_', '-')}" in text
