"""The environments that are compared: made once, and kept.

Stock's is installed. The others are copies of it in which one thing is changed, so that nothing else differs, and no
network is needed for them. A candidate for CPython lies in a directory of its environment, which comes before the
standard library on the path. That works for what Python does not import before it looks at site-packages, and in its
children.
"""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.utils import canonicalize_name

from benchmarks.harness.engine import ROOT
from benchmarks.tools.pythons import Python
from benchmarks.tools.upstream import environment as hook
from benchmarks.tools.upstream import sources
from benchmarks.tools.upstream.runner import clean_environment

from . import diffs
from .candidates import Candidate
from .errors import ValidateError
from .projects import Project, at_release

STOCK, CANDIDATE, FASTIO = "stock", "candidate", "fastio"
#: Seconds for installing all of an environment.
LIMIT = 1800
_MARKER = "complete.json"
#: Where distributions put files that belong to no package, in an environment.
_DATA = ("etc",)


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    directory: Path

    @property
    def python(self) -> Path:
        return self.directory / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        return next(self.directory.glob("lib/python*/site-packages"))

    def versions(self) -> dict[str, str]:
        """The releases installed when it was made: distribution to version."""
        return json.loads((self.directory / _MARKER).read_text())

    def version(self, name: str) -> str:
        """The version of one distribution, in any spelling of its name."""
        versions = {canonicalize_name(each): version for each, version in self.versions().items()}
        return versions[canonicalize_name(name)]


@dataclass(frozen=True)
class Variant:
    """One of the things compared: the release, the candidate, or the release with fastio."""

    #: ``stock``, ``candidate`` or ``fastio``
    name: str
    environment: Environment
    #: of the project
    version: str
    #: directory with the tests that the project does not install; None if it installs them
    tests: Path | None
    #: files of the project's package that are not stock's
    changed: list[str] = field(default_factory=list)

    @property
    def patched(self) -> bool:
        """Whether fastio patches the processes that run in it."""
        return self.name == FASTIO


class Builder:
    """Makes the variants of one project for one Python, or finds them in the cache."""

    def __init__(self, project: Project, release: str, python: Python, cache: Path, say: Callable[[str], None]) -> None:
        """
        :param release: of the project, that stock is and that a diff is applied to; empty for the newest
        :param cache: where environments and sdists are kept
        """
        self._project = at_release(project, release)
        self._python = python
        self._cache = cache
        self._say = say
        what = json.dumps([self._project.requirements, python.version, python.prefix])
        key = hashlib.sha256(what.encode()).hexdigest()[:8]
        self._home = cache / "environments" / f"{project.name}-py{python.version}-{key}"

    def forget(self) -> None:
        """Drop all environments, so that the newest release is asked for anew."""
        shutil.rmtree(self._home, ignore_errors=True)

    def stock(self) -> Variant:
        """The release.

        :raises ValidateError: if it cannot be installed
        """
        made = make(self._home / STOCK, lambda made: self._install(made, self._project.requirements), self._python)
        version = self._version(made)
        return Variant(STOCK, made, version, self._tests(made, self._source(version)))

    def fastio(self, stock: Variant) -> Variant:
        """The release with fastio of this checkout, in child processes too."""
        made = make(self._home / FASTIO, lambda made: copy_packages(stock.environment, made), self._python)
        # Each time: another checkout may share the cache.
        hook.install(made.site_packages)
        return Variant(FASTIO, made, stock.version, stock.tests)

    def candidate(self, stock: Variant, candidate: Candidate) -> Variant:
        """The candidate.

        :raises ValidateError: if it cannot be applied or installed
        """

        def fill(made: Environment) -> None:
            copy_packages(stock.environment, made)
            if candidate.kind == "version":
                self._install(made, at_release(self._project, candidate.text).requirements[:1])
            elif candidate.kind == "diff":
                (self._apply if self._project.installed else self._place)(made, stock, candidate)

        made = make(self._home / f"{CANDIDATE}-{candidate.kind}-{candidate.digest[:12]}", fill, self._python)
        changed = diffs.changed(stock.environment.site_packages, made.site_packages, self._project.package)
        version = self._version(made)
        source = made.directory / "source"  # of a diff
        tests = self._tests(made, source if source.is_dir() else self._source(version))
        return Variant(CANDIDATE, made, version, tests, changed)

    def _apply(self, made: Environment, stock: Variant, candidate: Candidate) -> None:
        """Change what is installed as a diff changes the source of the release."""
        before = self._source(stock.version)
        assert before is not None
        after = made.directory / "source"
        shutil.copytree(before, after, symlinks=True)
        name = f"{self._project.name} {stock.version}"
        root = self._project.root
        parts = [part for part in (root or self._project.package, self._project.tests) if part]
        diffs.apply(candidate.path, after, parts, name, called=candidate.text)
        files = diffs.changed(before / root, after / root, self._project.package)
        diffs.overlay(files, before / root, after / root, made.site_packages)
        self._compile([made.site_packages / name for name in files])

    def _place(self, made: Environment, stock: Variant, candidate: Candidate) -> None:
        """Put the modules of the standard library that a diff of ``Lib/`` changes first on the path."""
        library = Path(_run([self._python.path, "-I", "-c", "import os; print(os.__file__)"]).strip()).parent
        before, after = made.directory / "before", made.directory / "source"
        for tree in (before, after):
            (tree / "Lib").mkdir(parents=True)
            for module in library.glob("*.py"):
                shutil.copyfile(module, tree / "Lib" / module.name)
        # The tests are not what is installed, and every Python has its own.
        without, called = ("Lib/test/*",), candidate.text
        diffs.apply(candidate.path, after, ["Lib"], f"Python {stock.version}", without=without, called=called)
        changed = diffs.changed(before, after, "Lib")
        diffs.check_no_links(changed, after)
        directory = made.site_packages / self._project.package
        directory.mkdir()
        modules = [directory / Path(name).name for name in changed]
        for module in modules:
            shutil.copyfile(after / "Lib" / module.name, module)
        self._compile(modules)
        line = f"import sys; sys.path.insert(0, {str(directory)!r})\n"
        (made.site_packages / f"{self._project.package}.pth").write_text(line)

    def _install(self, made: Environment, requirements: Sequence[str]) -> None:
        self._say(f"installing {', '.join(requirements)} for Python {self._python.version}")
        install(made, requirements)

    def _compile(self, modules: Sequence[Path]) -> None:
        """Compile modules as an installer does, without running them: where they run, nothing may be written."""
        names = [str(module) for module in modules if module.suffix == ".py" and module.is_file()]
        if names:
            # Its exit status would tell of a module with wrong syntax, which is for the tests to find.
            command = [self._python.path, "-I", "-S", "-m", "compileall", "-q", *names]
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)

    def _version(self, made: Environment) -> str:
        return made.version(self._project.name) if self._project.installed else self._python.version

    def _source(self, version: str) -> Path | None:
        """The source of a release, kept; None for the standard library."""
        return sources.fetch(self._project.name, version, self._cache) if self._project.installed else None

    def _tests(self, made: Environment, source: Path | None) -> Path | None:
        """A directory that has a copy of a source tree's tests and of what they need, to be the first on the path.

        Links stay links, which lead to nothing that the sandbox does not show.

        :raises ValidateError: if the candidate leaves no directory with tests
        """
        part = self._project.tests
        if not part or source is None:
            return None
        if (source / part).is_symlink() or not (source / part).is_dir():
            raise ValidateError(f"the candidate leaves no directory {part}/, which has the tests")
        copy = made.directory / "upstream"
        with _locked(made.directory):
            if not copy.is_dir():
                shutil.rmtree(copy.with_suffix(".part"), ignore_errors=True)
                for name in (part, *self._project.beside_tests):
                    if (source / name).is_dir():
                        shutil.copytree(source / name, copy.with_suffix(".part") / name, symlinks=True)
                    else:
                        shutil.copyfile(source / name, copy.with_suffix(".part") / name, follow_symlinks=False)
                copy.with_suffix(".part").rename(copy)
        return copy


def make(directory: Path, fill: Callable[[Environment], None], python: Python) -> Environment:
    """The environment in ``directory``, made and filled unless that was done before, to its end."""
    made = Environment(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _locked(directory):
        if not (directory / _MARKER).exists():
            shutil.rmtree(directory, ignore_errors=True)
            _run([python.path, "-I", "-m", "venv", "--without-pip", str(directory)])
            fill(made)
            # Read and not run: the start of its Python may run what a candidate has brought.
            found = importlib.metadata.distributions(path=[str(made.site_packages)])
            versions = sorted((each.metadata["Name"], each.version) for each in found)
            (directory / _MARKER).write_text(json.dumps(dict(versions), indent=1) + "\n")
    return made


def copy_packages(source: Environment, to: Environment) -> None:
    """Give ``to`` copies of all that ``source`` has installed."""
    shutil.copytree(source.site_packages, to.site_packages, symlinks=True, dirs_exist_ok=True)
    for script in (source.directory / "bin").iterdir():
        own = to.directory / "bin" / script.name
        if script.is_file() and not own.exists():
            content = script.read_bytes()
            if content.startswith(b"#!"):
                # It names the interpreter.
                content = content.replace(bytes(source.directory), bytes(to.directory))
            own.write_bytes(content)
            own.chmod(script.stat().st_mode)
    for name in _DATA:
        if (source.directory / name).is_dir():
            shutil.copytree(source.directory / name, to.directory / name, symlinks=True)


def install(made: Environment, requirements: Sequence[str]) -> None:
    """Have pip install these.

    :raises ValidateError: with pip's last words, if that fails
    """
    python = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(made.python)]
    _run([*python, "install", "--quiet", *requirements], LIMIT)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Another validation may want the same environment at the same time."""
    with open(directory.with_name(directory.name + ".lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(command: Sequence[str], limit: float = 300) -> str:
    """The output of a command that runs in this checkout: Python imports from where it is, which may be the candidate.

    :raises ValidateError: if it fails
    """
    try:
        done = subprocess.run(
            command, env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit,
            cwd=ROOT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ValidateError(f"no end after {limit} s: {' '.join(command)}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-3000:]
        raise ValidateError(f"{' '.join(command)}\nfailed with exit status {done.returncode}:\n{said}")
    return done.stdout
