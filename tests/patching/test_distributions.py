"""The versions of what is installed: as importlib.metadata tells them, which is asked about what is unusual."""

import importlib.metadata
import pathlib
import subprocess
import sys
import zipfile
from collections.abc import Callable

import pytest

from fastio.patching import distributions

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]
METADATA = "Metadata-Version: 2.1\nName: Made.Up\nVersion: {}\n\nVersion: 9\n"


def told(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def test_all_that_is_installed_here() -> None:
    names = {each.metadata["Name"] for each in importlib.metadata.distributions()} - {None}
    assert len(names) > 5
    assert {name: distributions.version.__wrapped__(name) for name in names} == {name: told(name) for name in names}


@pytest.mark.parametrize("name", ["made.up", "Made_Up", "made-up", "made", "up"])
@pytest.mark.parametrize(
    "files",
    [
        {"Made_Up-1.2.dist-info/METADATA": METADATA.format("1.2")},
        {"made.up-1.2rc1+deb13u1.dist-info/METADATA": METADATA.format("1.2rc1+deb13u1")},
        {"made_up-1.3-py3.11.egg-info/PKG-INFO": METADATA.format("1.3")},
        {"made_up-1.4.egg-info": METADATA.format("1.4")},
        {"made_up.egg-info/PKG-INFO": METADATA.format("1.5")},
        {"made_up-1.6.egg/EGG-INFO/PKG-INFO": METADATA.format("1.6")},
        {"made_up-1.7.dist-info/RECORD": ""},
        {"made_up-1.8.dist-info/METADATA": METADATA.format("1.8"), "made_up-1.7.dist-info/RECORD": ""},
        {},
    ],
)
def test_what_a_directory_may_have(
    files: dict[str, str], name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "none"), *map(str, tmp_path.glob("*.egg")), str(tmp_path)])
    try:
        expected: object = told(name)
    except Exception as error:
        expected = type(error)
    try:
        found: object = distributions.version.__wrapped__(name)
    except Exception as error:
        found = type(error)
    assert found == expected


def test_an_archive(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "made.zip", "w") as archive:
        archive.writestr("made_up-2.0.dist-info/METADATA", METADATA.format("2.0"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "made.zip")])
    assert distributions.version.__wrapped__("made-up") == "2.0"


def test_a_finder_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        """Has distributions of its own, as importlib.metadata's documentation says."""

        @staticmethod
        def find_spec(*_: object) -> None:
            return None

        @staticmethod
        def find_distributions(context: importlib.metadata.DistributionFinder.Context) -> list[object]:
            return [Made()] if context.name == "made-up" else []

    class Made(importlib.metadata.Distribution):
        def read_text(self, filename: str) -> str | None:
            return METADATA.format("3.0") if filename == "METADATA" else None

        def locate_file(self, path: object) -> pathlib.Path:
            raise FileNotFoundError(path)

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    assert distributions.version.__wrapped__("made-up") == "3.0"


def test_a_new_installation_is_found(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert distributions.version.__wrapped__("made-up") is None
    info = tmp_path / "made_up-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA.format("1.0"))
    assert distributions.version.__wrapped__("made-up") == "1.0"


def test_the_usual_needs_no_importlib_metadata(run_python: RunPython) -> None:
    code = """
        import sys
        from fastio.patching import distributions
        distributions.version("pytest"), distributions.version("no-such-distribution")
        print("importlib.metadata" in sys.modules)
        """
    assert run_python(code).stdout == "False\n"
