"""Environments are made once, to their end, and copies differ from their source in nothing but their place."""

import subprocess

import pytest

from benchmarks.tools import pythons
from benchmarks.validate import environments, installers
from benchmarks.validate.errors import ValidateError
from tests.benchmarks.validate.test_diffs import write


def fill(made):
    write(made.site_packages, {"package/__init__.py": "a = 1\n", "package-2.0.dist-info/METADATA": METADATA})
    script = made.directory / "bin" / "command"
    script.write_text(f"#!{made.python}\nimport sys; print(sys.prefix)\n")
    script.chmod(0o755)
    (made.directory / "bin" / "program").write_bytes(PROGRAM + bytes(made.directory))
    write(made.directory / "etc" / "service", {"paste.ini": "[app]\n"})


#: No script, which may hold anything.
PROGRAM = b"\x7fELF"
METADATA = "Metadata-Version: 2.1\nName: Some.Package\nVersion: 2.0\n"


def test_one_that_was_not_made_to_its_end_is_made_again(tmp_path):
    def broken(made):
        fill(made)
        (made.site_packages / "left.py").write_text("")
        raise ValidateError("no network")

    with pytest.raises(ValidateError):
        environments.make(tmp_path / "one", broken, pythons.find(""))
    made = environments.make(tmp_path / "one", fill, pythons.find(""))
    assert not (made.site_packages / "left.py").exists()
    assert made.versions() == {"Some.Package": "2.0"}
    assert made.version("some-package") == "2.0"
    # And only once.
    assert environments.make(tmp_path / "one", broken, pythons.find("")) == made


def test_a_copy(tmp_path):
    source = environments.make(tmp_path / "source", fill, pythons.find(""))
    copy = environments.make(
        tmp_path / "copy", lambda made: environments.copy_packages(source, made), pythons.find("")
    )  # fmt: skip
    assert copy.versions() == source.versions()
    said = subprocess.run([str(copy.directory / "bin" / "command")], capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(copy.directory)
    assert (copy.directory / "bin" / "program").read_bytes() == PROGRAM + bytes(source.directory)
    assert (copy.directory / "etc" / "service" / "paste.ini").read_text() == "[app]\n"
    (copy.site_packages / "package" / "__init__.py").write_text("a = 2\n")
    assert (source.site_packages / "package" / "__init__.py").read_text() == "a = 1\n"


def test_an_installer_that_is_not_there(monkeypatch):
    monkeypatch.setattr(installers.shutil, "which", lambda name: None)
    with pytest.raises(ValidateError, match="uv is not installed here"):
        installers.choose("uv")
    monkeypatch.setattr(installers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValidateError, match="neither uv nor pip is installed here"):
        installers.choose("")
