"""The diffs under ``doc/source/candidates`` apply to the releases they name, and do what the tests say that they bring.

``tests/benchmarks/validate/test_real_candidates.py`` runs the projects' own suites with each, in the newest releases.
A project that this Python does not have is taken from the one that an environment variable names (``ELSEWHERE``).
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest

from benchmarks.backends.glance_environments import ENVIRONMENTS
from benchmarks.tools.upstream.suites import CACHE
from benchmarks.validate import diffs, projects

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "doc" / "source"
#: Reports that are not public yet; source distributions have none.
PRIVATE = SOURCE.parents[1] / "private"
PUBLIC = sorted((SOURCE / "candidates").glob("*.patch"))
PATCHES = [*PUBLIC, *sorted(PRIVATE.glob("*.patch"))]
#: Scripts that show the fault which the diff of the same name corrects.
PUBLIC_REPRODUCERS = sorted((SOURCE / "candidates" / "reproduce").glob("*.py"))
REPRODUCERS = [*PUBLIC_REPRODUCERS, *sorted((PRIVATE / "reproduce").glob("*.py"))]
#: Those that take no note of reno's: eventlet has none, swiftclient's are written at a release, urllib3 has towncrier.
WITHOUT_NOTES = ("eventlet", "python-swiftclient", "urllib3")
#: Variables that name a Python which has the release of a project, and what its tests import.
ELSEWHERE = {"glance": ENVIRONMENTS["glance33"].variable, "nova": "CANDIDATES_NOVA", "ironic": "CANDIDATES_IRONIC"}
#: Imports of the tests of those that are tested in this Python.
NEEDED = {
    "eventlet": (),
    "oslo.concurrency": ("oslotest", "fixtures", "testtools"),
    "glance_store": (
        "oslotest", "fixtures", "testtools", "ddt", "requests_mock", "boto3", "swiftclient", "cinderclient", "os_brick",
    ),
    "openstacksdk": ("oslotest", "fixtures", "testtools", "ddt", "requests_mock", "testscenarios"),
    "python-swiftclient": ("keystoneauth1", "requests_mock"),
    "keystoneauth1": ("fixtures", "testtools", "requests_mock"),
    "urllib3": ("hypercorn", "quart_trio", "pytest_timeout", "trustme"),
}  # fmt: skip
#: The image of 4 GiB is for those who have the change: MiB that are enough to show that all of it is in memory.
SMALL = {"glance-verify-in-chunks": "256", "nova-verify-in-chunks": "256"}

each_patch = pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)


def release_of(patch: pathlib.Path) -> tuple[str, str]:
    """Distribution and version that the diff was made for."""
    found = re.search(r"^Release: (\S+) (\S+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, f"{patch.name} does not name its release"
    return found[1], found[2]


def files_of(patch: pathlib.Path) -> list[str]:
    return re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)


@dataclass(frozen=True)
class Installed:
    """A package, and the Python that has it and all that it needs."""

    package: pathlib.Path
    python: str
    #: the directory of the source that has the package, empty if it is at the top
    root: str

    def copy(self, tree: pathlib.Path) -> str:
        """Copy the package to where it is in the source; returns the first part of its path there."""
        shutil.copytree(self.package, tree / self.root / self.package.name)
        return self.root or self.package.name

    def run(self, tree: pathlib.Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """This Python, with what is in ``tree`` instead of what is installed."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FASTIO"))}
        return subprocess.run(
            [self.python, *arguments], cwd=tree, env={**environ, "PYTHONPATH": f"{tree / self.root}:{tree}"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100,
        )  # fmt: skip


@functools.cache
def found(python: str, distribution: str, needed: tuple[str, ...]) -> list[str]:
    """Version and directory of what a Python has installed, or what it lacks."""
    code = (
        "import importlib.metadata as m, importlib.util as u, sys\n"
        "name, package, *needed = sys.argv[1:]\n"
        "have = {each.metadata['Name']: each for each in m.distributions()}\n"
        "missing = [each for each in needed if u.find_spec(each) is None]\n"
        "if name in have and not missing: print(have[name].version, have[name].locate_file(package), sep='\\n')\n"
        "else: print(', '.join(missing) or name)"
    )
    command = [python, "-c", code, distribution, projects.find(distribution).package, *needed]
    output = subprocess.check_output(command, stdin=subprocess.DEVNULL, timeout=60, text=True, cwd="/")
    return output.splitlines()


def installed(patch: pathlib.Path) -> Installed:
    """Where the package of the very release is installed; skips the test if it is not, or if there is no git."""
    distribution, version = release_of(patch)
    python = sys.executable
    if distribution in ELSEWHERE:
        python = os.environ.get(ELSEWHERE[distribution], "")
        if not python:
            pytest.skip(f"{ELSEWHERE[distribution]} names no Python with {distribution} {version}")
    got = found(python, distribution, NEEDED.get(distribution, ()))
    if got[0] != version or len(got) == 1:
        pytest.skip(f"{python} has not all that is needed of {distribution} {version}: {got[0]}")
    if shutil.which("git") is None:
        pytest.skip("git, which applies the diffs, is not installed")
    return Installed(pathlib.Path(got[1]), python, projects.find(distribution).root)


def test_every_diff_is_documented() -> None:
    page = (SOURCE / "upstream" / "candidates.rst").read_text(encoding="utf-8")
    for patch in PUBLIC:
        assert f"candidates/{patch.name}" in page and " ".join(release_of(patch)) in page


def test_every_fault_has_a_report_that_can_be_filed() -> None:
    page = (SOURCE / "upstream" / "bugs.rst").read_text(encoding="utf-8")
    for script in PUBLIC_REPRODUCERS:
        assert script.stem in {patch.stem for patch in PUBLIC}
        assert f"candidates/reproduce/{script.name}" in page and f"{script.stem}\n---" in page


def test_no_page_and_no_release_has_a_private_report() -> None:
    names = [script.stem for script in REPRODUCERS if script not in PUBLIC_REPRODUCERS]
    pages = "".join(page.read_text(encoding="utf-8") for page in SOURCE.rglob("*.rst"))
    assert not [name for name in names if name in pages]
    assert "private" not in (SOURCE.parents[1] / "MANIFEST.in").read_text(encoding="utf-8")
    report = (PRIVATE / "README.rst").read_text(encoding="utf-8") if names else ""
    assert all(f"``{name}.patch``, ``reproduce/{name}.py``" in report for name in names)


@each_patch
def test_it_is_a_patch_as_git_makes_them(patch: pathlib.Path) -> None:
    head, _, rest = patch.read_text(encoding="utf-8").partition("\n---\n")
    assert re.match(r"From 0{40} .*\nFrom: .+\nDate: .+\nSubject: \[PATCH\] ", head)
    message = head.partition("\n\n")[2]
    assert message and max(map(len, message.splitlines())) <= 72
    # Of its review, which Gerrit asks for.
    review = re.search(r"\n(\n|[A-Z][\w-]+: .*\n)Change-Id: I[0-9a-f]{40}$", message)
    assert (review is None) == (release_of(patch)[0] in ("eventlet", "urllib3"))
    said = rest.partition("\ndiff --git ")[0]
    assert "\nCPython 3.15: " in said
    assert re.search(r"^Main: [0-9a-f]{12} of 20\d\d-\d\d-\d\d; (applies|does not apply, for .+)$", said, re.MULTILINE)
    files = files_of(patch)
    assert [name for name in files if "test" in name], "it has no tests"
    if release_of(patch)[0] not in WITHOUT_NOTES:
        assert [name for name in files if re.fullmatch(r"releasenotes/notes/[\w-]+-[0-9a-f]{16}\.yaml", name)]


def changed_by(patch: pathlib.Path, *parts: str) -> list[str]:
    """The files in these directories that a patch leaves changed or new."""
    return [name for name in files_of(patch) if name.partition("/")[0] in parts]


@each_patch
def test_it_applies(patch: pathlib.Path, tmp_path: pathlib.Path) -> None:
    part = installed(patch).copy(tmp_path)
    diffs.apply(patch, tmp_path, [part], " ".join(release_of(patch)))
    for name in changed_by(patch, part):
        compile((tmp_path / name).read_bytes(), name, "exec")


@each_patch
def test_the_tests_that_it_brings_pass_with_it_and_fail_without(patch: pathlib.Path, tmp_path: pathlib.Path) -> None:
    stock = installed(patch)
    package = stock.package
    parts = [stock.copy(tmp_path)]
    distribution, version = release_of(patch)
    part = projects.find(distribution).tests
    if part:
        parts.append(part)
        tests = CACHE / f"{distribution}-{version}-{part}"
        if not tests.is_dir():
            pytest.skip(f"the tests of {distribution}'s sdist are not here: benchmarks.tools.upstream fetches them")
        shutil.copytree(tests, tmp_path, dirs_exist_ok=True)
    diffs.apply(patch, tmp_path, parts, f"{distribution} {version}")
    changed = changed_by(patch, *parts)
    names = re.findall(r"^\+ *def (test_\w+)", patch.read_text(encoding="utf-8"), re.MULTILINE)
    tests_of_it = [name for name in changed if "test" in name]

    def status() -> "subprocess.CompletedProcess[str]":
        if package.name in ELSEWHERE:
            # As upstream runs them: pytest takes it for an error that test cases of nova and ironic forget a test.
            modules = [name.removesuffix(".py").replace("/", ".") for name in tests_of_it]
            return stock.run(tmp_path, "-m", "unittest", *modules, *(f"-k{name}" for name in names))
        command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *tests_of_it]
        return stock.run(tmp_path, *command, "-k", " or ".join(names))

    with_it = status()
    assert with_it.returncode == pytest.ExitCode.OK and "Ran 0 tests" not in with_it.stdout, with_it.stdout
    for name in set(changed) - set(tests_of_it):
        own = package.parent / pathlib.PurePath(name).relative_to(stock.root)
        if own.exists():
            shutil.copyfile(own, tmp_path / name)
        else:
            (tmp_path / name).unlink()
    without = status()
    assert without.returncode == pytest.ExitCode.TESTS_FAILED, without.stdout


@pytest.mark.parametrize("script", REPRODUCERS, ids=lambda script: script.stem)
def test_the_fault_is_there_without_it_and_gone_with_it(script: pathlib.Path, tmp_path: pathlib.Path) -> None:
    patch = script.parents[1] / f"{script.stem}.patch"
    stock = installed(patch)
    part = stock.copy(tmp_path)
    small = SMALL.get(script.stem)
    without = stock.run(tmp_path, "-W", "ignore", str(script), *([small] if small else []))
    assert without.returncode == 1 and "Traceback" not in without.stdout, without.stdout
    diffs.apply(patch, tmp_path, [part], " ".join(release_of(patch)))
    with_it = stock.run(tmp_path, "-W", "ignore", str(script))
    assert with_it.returncode == 0, with_it.stdout
