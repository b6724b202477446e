"""Environments are made once, to their end, and copies differ from their source in nothing but their place."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

from benchmarks.harness.engine import ROOT
from benchmarks.tools import pythons
from benchmarks.validate import candidates, environments, projects
from benchmarks.validate.environments import Environment
from benchmarks.validate.errors import ValidateError
from tests.benchmarks.validate.test_diffs import diff_of, write


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


def test_nothing_is_imported_from_where_the_command_is_started(tmp_path, monkeypatch):
    """It may be the candidate's tree, and an installer runs outside of the sandbox."""
    asked = []

    def run(command, **options):
        asked.append(options)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(environments.subprocess, "run", run)
    monkeypatch.chdir(tmp_path)
    environments.install(Environment(tmp_path), ["eventlet"])
    assert [each["cwd"] for each in asked] == [ROOT]


LIBRARY = Path(sysconfig.get_path("stdlib"))
SUBPROCESS = (LIBRARY / "subprocess.py").read_text()
MARKED = SUBPROCESS + "\nCANDIDATE = True\n"


@pytest.fixture
def builder(tmp_path, monkeypatch):
    """Of CPython: nothing is installed but what its suites import."""
    monkeypatch.setattr(environments, "install", lambda *_: None)
    return environments.Builder(projects.CPYTHON, "", pythons.find(""), tmp_path / "cache", print)


def has_candidate(variant, *options):
    command = [variant.environment.python, *options, "-c", "import subprocess; print(hasattr(subprocess, 'CANDIDATE'))"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"


def test_candidates_for_the_standard_library(builder, tmp_path):
    before = {"Lib/subprocess.py": SUBPROCESS, "Lib/test/test_subprocess.py": "not that one\n", "Misc/NEWS": "news\n"}
    after = {"Lib/subprocess.py": MARKED, "Lib/test/test_subprocess.py": "nor that\n", "Misc/NEWS": "newer\n"}
    write(tmp_path, {"my.diff": diff_of(before, after)})
    stock = builder.stock()
    assert not has_candidate(stock)
    candidate = builder.candidate(stock, candidates.parse(str(tmp_path / "my.diff")))
    assert candidate.changed == ["cpython-candidate/subprocess.py"]
    assert has_candidate(candidate) and has_candidate(candidate, "-I")
    with pytest.raises(ValidateError, match="--stock 3.12.1: what cpython is compared with is the Python of --python"):
        projects.at_release(projects.CPYTHON, "3.12.1")


def test_a_package_below_the_top_of_its_source(tmp_path, monkeypatch):
    """And tests that need more than their directory: urllib3 has both."""
    module, test, server = "src/urllib3/__init__.py", "test/test_it.py", "dummyserver/app.py"
    source = {module: "a = 1\n", test: "old\n", server: "served\n", "pyproject.toml": "[tool]\n", "README.md": "read\n"}
    write(tmp_path / "cache" / "sources" / "urllib3-2.0", source)
    installed = {"urllib3/__init__.py": "a = 1\n", "urllib3-2.0.dist-info/METADATA": "Name: urllib3\nVersion: 2.0\n"}
    monkeypatch.setattr(environments, "install", lambda made, _: write(made.site_packages, installed))
    builder = environments.Builder(projects.URLLIB3, "2.0", pythons.find(""), tmp_path / "cache", print)
    stock = builder.stock()
    write(tmp_path, {"my.diff": diff_of(source, {**source, module: "a = 2\n", test: "new\n"})})
    candidate = builder.candidate(stock, candidates.parse(str(tmp_path / "my.diff")))
    assert candidate.changed == ["urllib3/__init__.py"]
    for variant, value, tests in ((stock, 1, "old\n"), (candidate, 2, "new\n")):
        found = (variant.environment.site_packages / "urllib3" / "__init__.py").read_text()
        assert found == f"a = {value}\n"
        assert variant.tests is not None and (variant.tests / test).read_text() == tests
        assert sorted(path.name for path in variant.tests.iterdir()) == ["dummyserver", "pyproject.toml", "test"]
