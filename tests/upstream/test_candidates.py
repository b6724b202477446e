"""The diffs under ``doc/source/candidates`` apply to the releases they name, and do what the tests say that they bring.

``tox -e validate-tests`` runs the projects' own suites with each, in the newest releases.
"""

import importlib.metadata
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from benchmarks.tools.upstream.suites import CACHE
from benchmarks.validate import diffs

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "doc" / "source"
PATCHES = sorted((SOURCE / "candidates").glob("*.patch"))
PACKAGES = {"eventlet": "eventlet", "oslo.concurrency": "oslo_concurrency", "glance_store": "glance_store"}
#: What the tests of the last two need.
NEEDED = ("oslotest", "fixtures", "testtools", "ddt", "requests_mock", "boto3", "swiftclient")

each_patch = pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)


def release_of(patch: pathlib.Path) -> tuple[str, str]:
    """Distribution and version that the diff was made for."""
    found = re.search(r"^Release: (\S+) (\S+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, f"{patch.name} does not name its release"
    return found[1], found[2]


def files_of(patch: pathlib.Path) -> list[str]:
    return re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)


def installed(patch: pathlib.Path) -> pathlib.Path:
    """Where the package of the very release is installed; skips the test if it is not, or if there is no git."""
    distribution, version = release_of(patch)
    found = {each.metadata["Name"]: each for each in importlib.metadata.distributions()}.get(distribution)
    if found is None or found.version != version:
        pytest.skip(f"{distribution} {version}, for which the diff is, is not installed")
    if shutil.which("git") is None:
        pytest.skip("git, which applies the diffs, is not installed")
    return pathlib.Path(str(found.locate_file(PACKAGES[distribution])))


def test_every_diff_is_documented() -> None:
    page = (SOURCE / "upstream" / "candidates.rst").read_text(encoding="utf-8")
    for patch in PATCHES:
        assert f"candidates/{patch.name}" in page and " ".join(release_of(patch)) in page


@each_patch
def test_it_is_a_patch_as_git_makes_them(patch: pathlib.Path) -> None:
    head, _, rest = patch.read_text(encoding="utf-8").partition("\n---\n")
    assert re.match(r"From 0{40} .*\nFrom: .+\nDate: .+\nSubject: \[PATCH\] ", head)
    message = head.partition("\n\n")[2]
    assert message and max(map(len, message.splitlines())) <= 79
    assert "\nCPython 3.15: " in rest.partition("\ndiff --git ")[0]
    files = files_of(patch)
    assert [name for name in files if "test" in name], "it has no tests"
    if release_of(patch)[0] != "eventlet":
        assert [name for name in files if re.fullmatch(r"releasenotes/notes/[\w-]+-[0-9a-f]{16}\.yaml", name)]


@each_patch
def test_it_applies(patch: pathlib.Path, tmp_path: pathlib.Path) -> None:
    package = installed(patch)
    shutil.copytree(package, tmp_path / package.name)
    for name in diffs.apply(patch, tmp_path, [package.name], " ".join(release_of(patch))):
        compile((tmp_path / name).read_bytes(), name, "exec")


@each_patch
def test_the_tests_that_it_brings_pass_with_it_and_fail_without(patch: pathlib.Path, tmp_path: pathlib.Path) -> None:
    package = installed(patch)
    shutil.copytree(package, tmp_path / package.name)
    if package.name == "eventlet":
        tests = CACHE / f"{'-'.join(release_of(patch))}-tests" / "tests"
        if not tests.is_dir():
            pytest.skip("the tests of eventlet's sdist are not here: python -m benchmarks.tools.upstream fetches them")
        shutil.copytree(tests, tmp_path / "tests")
    elif missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} not installed")
    changed = diffs.apply(patch, tmp_path, [package.name, "tests"], " ".join(release_of(patch)))
    names = re.findall(r"^\+ *def (test_\w+)", patch.read_text(encoding="utf-8"), re.MULTILINE)
    tests_of_it = [name for name in changed if "test" in name]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FASTIO"))}

    def status() -> int:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests_of_it]
        return subprocess.run(
            [*command, "-k", " or ".join(names)], cwd=tmp_path, env={**environ, "PYTHONPATH": str(tmp_path)},
            stdin=subprocess.DEVNULL, timeout=100,
        ).returncode  # fmt: skip

    assert status() == pytest.ExitCode.OK
    for name in set(changed) - set(tests_of_it):
        if (package.parent / name).exists():
            shutil.copyfile(package.parent / name, tmp_path / name)
        else:
            (tmp_path / name).unlink()
    assert status() == pytest.ExitCode.TESTS_FAILED
