"""Old names of patches go on working wherever the name of a patch can be given, and say once that they are old."""

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import fastio
from fastio import config, renames
from fastio.errors import SettingError, UnknownPatchError
from fastio.patching import registry
from fastio.renames import RENAMED

RunPython = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.filterwarnings("ignore:fastio. the patch:DeprecationWarning")

both = pytest.mark.parametrize(("old", "new"), RENAMED.items(), ids=list(RENAMED))


@pytest.fixture(autouse=True)
def nobody_was_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renames, "_warned", set())


def test_old_names_are_no_names_of_today() -> None:
    assert not set(RENAMED) & set(registry.all_names())
    assert set(RENAMED.values()) <= set(registry.all_names())


@both
def test_an_old_name_as_an_argument(old: str, new: str) -> None:
    with fastio.patched(old) as report:
        assert {entry.name for entry in report.entries} == {new}
        assert report.outcome(old) is report.outcome(new)
    fastio.patch([old, "wait"])
    assert {entry.name for entry in fastio.unpatch(old).entries} == {new}
    assert {entry.name for entry in fastio.unpatch(["wait", old]).entries} == {new, "wait"}


@both
def test_an_old_name_in_a_setting(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with fastio.patched(disabled=[old]) as report:
        assert fastio.settings().disabled == (new,)
        assert new not in {entry.name for entry in report.entries}
    with fastio.patched([], also=f"wait,{old}") as report:
        assert fastio.settings().also == ("wait", new)
        assert {entry.name for entry in report.entries} == {new, "wait"}
    monkeypatch.setenv("FASTIO_DISABLED", f"wait, {old}")
    monkeypatch.setenv("FASTIO_ALSO", old)
    with fastio.patched():
        assert fastio.settings().disabled == ("wait", new)
        assert fastio.settings().also == (new,)
        status = fastio.status()
    assert not any(entry.in_effect for entry in status.entries if entry.name in (new, "wait"))


@both
def test_an_old_name_in_a_configuration_file(old: str, new: str, tmp_path: Path) -> None:
    cfg = pytest.importorskip("oslo_config.cfg")
    file = tmp_path / "service.conf"
    file.write_text(f"[fastio]\ndisabled = {old}\nalso = {old}\n")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(file)])
    with fastio.patched(conf=conf):
        assert fastio.settings().disabled == fastio.settings().also == (new,)


@pytest.mark.parametrize("option", ["--disabled", "--also"])
def test_old_names_for_the_command(option: str, tmp_path: Path) -> None:
    """The script and the Python that it starts have the names of today."""
    program = tmp_path / "program.py"
    program.write_text(
        "import subprocess, sys, fastio\n"
        f"names = fastio.settings().{option[2:]}\n"
        "print(*names, flush=True)\n"
        "if len(sys.argv) == 1: subprocess.run([sys.executable, __file__, 'again'], check=True)\n"
    )
    command = [sys.executable, "-m", "fastio", "run", option, ",".join(RENAMED), "--children", str(program)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == [" ".join(RENAMED.values())] * 2


def test_status_of_the_command_warns(run_python: RunPython) -> None:
    code = "import fastio.cli; print(fastio.settings().disabled); fastio.cli.main(['status'])"
    result = run_python(code, env={"FASTIO_DISABLED": "store_hashing"}, check=False)
    assert "is now called 'image_hashing'" in result.stderr
    assert result.stdout.startswith("('image_hashing',)\n")


def test_an_old_name_warns_once_and_tells_where_it_was_given() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            with fastio.patched("store_hashing", disabled="s3_client"):
                fastio.unpatch("store_hashing")
        with fastio.patched([], disabled="store_chunks"):
            pass
    found = [warning for warning in caught if str(warning.message).startswith("fastio: ")]
    assert [str(warning.message) for warning in found] == [
        f"fastio: the patch {old!r} is now called {new!r}; the old name is deprecated"
        for old, new in (("store_hashing", "image_hashing"), ("store_chunks", "image_chunks"))
    ]
    assert {warning.category for warning in found} == {DeprecationWarning}
    assert {warning.filename for warning in found} == {__file__}


def test_what_was_never_a_name_is_none() -> None:
    with pytest.raises(UnknownPatchError):
        fastio.patch("fix_s3")
    with pytest.raises(SettingError):
        fastio.patch(disabled="store_fast")
    assert config.resolve({"disabled": "all"}).disabled == ("all",)
