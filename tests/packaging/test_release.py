"""The wheel and the source distribution, built from this tree and installed where nothing else is: tox -e package."""

import json
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest

import fastio
from benchmarks.harness.environments import make
from benchmarks.tools import debian, pythons
from benchmarks.tools.pythons import Unavailable
from tests.packaging.test_metadata import METADATA

for needed in ("build", "check_wheel_contents", "twine"):
    pytest.importorskip(needed, reason=f"{needed} is not installed: it comes with tox -e package")

pytestmark = pytest.mark.limit(600)

#: Tests of the source distribution that run there: quick ones, of each kind.
TESTS = ("tests/io/test_pipes.py", "tests/test_config.py", "tests/test_ranges.py", "tests/packaging")


def versions() -> list[str]:
    """The Pythons of the classifiers."""
    lines = METADATA["classifiers"].splitlines()
    return [line.rpartition(" ")[2] for line in lines if line.startswith("Programming Language :: Python :: 3.")]


def ends() -> list[str]:
    """The oldest Python and the newest; if that is not here, the newest that is, as well."""
    return list(dict.fromkeys([versions()[0], *list(pythons.here(versions()))[-1:], versions()[-1]]))


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@dataclass(frozen=True)
class Built:
    """The files that a release uploads, and the tree that it was built from."""

    tree: Path
    wheel: Path
    sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    directory = tmp_path_factory.mktemp("release")
    tree = directory / "tree"
    debian.copy_project(tree)
    files = set(tree.rglob("*"))
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory / "dist"), ".", cwd=tree)
    for made in sorted(set(tree.rglob("*")) - files, reverse=True):
        made.rmdir() if made.is_dir() else made.unlink()
    (wheel,), (sdist,) = (list((directory / "dist").glob(f"*.{suffix}")) for suffix in ("whl", "tar.gz"))
    return Built(tree, wheel, sdist)


@pytest.fixture(params=ends())
def python(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of an interpreter; pip is run elsewhere than in the checkout, where it would find fastio installed."""
    monkeypatch.chdir(tmp_path)
    try:
        return pythons.find(request.param).path
    except Unavailable as error:
        pytest.skip(str(error))


def test_an_index_accepts_both(built: Built) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", str(built.wheel), str(built.sdist), cwd=built.tree)
    run(sys.executable, "-m", "check_wheel_contents", str(built.wheel), cwd=built.tree)


def test_the_metadata(built: Built) -> None:
    name = f"fastio-{fastio.__version__}"
    with zipfile.ZipFile(built.wheel) as wheel:
        text = wheel.read(f"{name}.dist-info/METADATA").decode()
        assert f"{name}.dist-info/licenses/LICENSE" in wheel.namelist()
        assert {path.partition("/")[0] for path in wheel.namelist()} == {"fastio", f"{name}.dist-info"}
    found = Parser().parsestr(text)
    assert found["Version"] == fastio.__version__
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Requires-Python"] == f">={versions()[0]}"
    assert found["Home-page"] and len(found.get_all("Project-URL") or []) == 4
    assert found["Keywords"]


def test_the_source_distribution_has_what_a_checkout_has(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames() if not sdist.getmember(name).isdir()}
    kept = {path.relative_to(built.tree).as_posix() for path in built.tree.rglob("*") if path.is_file()}
    # Reports that are not to be published.
    kept = {name for name in kept if not name.startswith("private/")}
    assert kept - names == set()
    # Files that setuptools adds.
    assert {name for name in names - kept if not name.startswith("fastio.egg-info/")} == {"PKG-INFO"}


def test_the_wheel_in_an_empty_environment(built: Built, python: str, tmp_path: Path) -> None:
    make(python, tmp_path / "empty", [str(built.wheel)])
    own, command = (str(tmp_path / "empty" / "bin" / name) for name in ("python", "fastio"))
    status = json.loads(run(command, "status", "--json", cwd=tmp_path))
    assert status["versions"]["fastio"] == fastio.__version__
    assert [patch["outcome"] for patch in status["patches"] if patch["name"] == "communicate"] == ["applied"]
    assert "applied" in run(own, "-W", "error", "-c", "import fastio, subprocess; print(fastio.patch())", cwd=tmp_path)
    assert run(command, "run", "-m", "calendar", "2026", "11", cwd=tmp_path).split()[:2] == ["November", "2026"]


def test_the_source_distribution_in_an_empty_environment(built: Built, python: str, tmp_path: Path) -> None:
    """It is installed with what its tests need, and some of each kind pass."""
    with tarfile.open(built.sdist) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    make(python, tmp_path / "empty", [f"{built.sdist}[test]"])
    own = str(tmp_path / "empty" / "bin" / "python")
    assert " passed" in run(own, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, cwd=unpacked).splitlines()[-1]
