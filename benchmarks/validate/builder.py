"""Makes the environments that are compared, or finds them in the cache."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.tools.pythons import Python
from benchmarks.tools.upstream import environment as hook
from benchmarks.tools.upstream import sources

from . import diffs, environments, trees
from .candidates import Candidate
from .environments import Environment
from .errors import UnusedError, ValidateError
from .installers import Pip, Uv
from .projects import Project, at_release
from .variants import CANDIDATE, FASTIO, STOCK, Variant


class Builder:
    """Makes the variants of one project for one Python, or finds them in the cache."""

    def __init__(
        self, project: Project, release: str, python: Python, cache: Path, installer: Uv | Pip,
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        """
        :param release: of the project, that stock is and that a diff is applied to; empty for the newest
        :param cache: where environments and sdists are kept
        """
        self._project = at_release(project, release)
        #: how the directory of a candidate is filled, by its kind
        self._fills = {
            "diff": self._fill_from_diff, "version": self._fill_from_release, "path": self._fill, "sdist": self._fill,
            "wheel": self._fill, "stock": self._leave,
        }  # fmt: skip
        self._python = python
        self._cache = cache
        self._installer = installer
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

        def fill(made: Environment) -> None:
            self._say(f"installing {', '.join(self._project.requirements)} for Python {self._python.version}")
            self._installer.install(made.python, self._project.requirements)

        made = environments.make(self._home / STOCK, fill, self._python)
        version = self._version(made)
        return Variant(STOCK, made, version, self._tests(made, self._source(version)))

    def fastio(self, stock: Variant) -> Variant:
        """The release with fastio of this checkout, in child processes too."""

        def fill(made: Environment) -> None:
            environments.copy_packages(stock.environment, made)

        made = environments.make(self._home / FASTIO, fill, self._python)
        # Each time: another checkout may share the cache.
        hook.install(made.site_packages)
        return Variant(FASTIO, made, stock.version, stock.tests)

    def candidate(self, stock: Variant, candidate: Candidate) -> Variant:
        """The candidate.

        :raises ValidateError: if it cannot be applied or installed
        """
        fill = self._fills[candidate.kind]

        def fill_copy(made: Environment) -> None:
            environments.copy_packages(stock.environment, made)
            fill(made, stock, candidate)

        directory = self._home / f"{CANDIDATE}-{candidate.kind}-{candidate.digest[:12]}"
        made = environments.make(directory, fill_copy, self._python)
        changed = trees.changed(stock.environment.site_packages, made.site_packages, self._project.package)
        tests = self._tests(made, self._candidate_source(made, stock, candidate))
        return Variant(CANDIDATE, made, self._version(made), tests, changed)

    def _fill_from_diff(self, made: Environment, stock: Variant, candidate: Candidate) -> None:
        before = self._source(stock.version)
        assert before is not None
        after = made.directory / "source"
        shutil.copytree(before, after, symlinks=True)
        name = f"{self._project.name} {stock.version}"
        parts = [part for part in (self._project.package, self._project.tests) if part]
        paths = diffs.apply(candidate.path, after, parts, name, called=candidate.text)
        files = trees.changed(before, after, self._project.package)
        if not files:
            raise UnusedError(
                f"{candidate.text} changes nothing that {name} installs, only {', '.join(paths)}: "
                "there is nothing to run"
            )
        trees.overlay(files, before, after, made.site_packages)
        environments.compile_modules(self._python, [made.site_packages / name for name in files])

    def _fill_from_release(self, made: Environment, stock: Variant, candidate: Candidate) -> None:
        extras = f"[{self._project.extras}]" if self._project.extras else ""
        self._replace(made, f"{self._project.name}{extras}=={candidate.text}")

    def _fill(self, made: Environment, stock: Variant, candidate: Candidate) -> None:
        if candidate.kind == "sdist":
            sources.unpack(candidate.path, made.directory / "unpacked").rename(made.directory / "source")
        self._replace(made, str(candidate.path))

    def _leave(self, made: Environment, stock: Variant, candidate: Candidate) -> None:
        """The release itself: a copy of stock's environment, and nothing else."""

    def _replace(self, made: Environment, requirement: str) -> None:
        self._say(f"installing {requirement} for Python {self._python.version}")
        self._installer.uninstall(made.python, self._project.name)
        self._installer.install(made.python, [requirement])
        if not (made.site_packages / self._project.package).is_dir():
            raise ValidateError(
                f"{requirement} does not install {self._project.package}: it is no {self._project.name}"
            )

    def _candidate_source(self, made: Environment, stock: Variant, candidate: Candidate) -> Path | None:
        """The source tree whose tests go with the candidate; None where it brings no source."""
        if candidate.kind == "version":
            return self._source(candidate.text)
        if candidate.kind == "path":
            return candidate.path
        own = made.directory / "source"
        return own if own.is_dir() else self._source(stock.version)

    def _version(self, made: Environment) -> str:
        return made.version(self._project.name)

    def _source(self, version: str) -> Path | None:
        """The source of a release, kept."""
        return sources.fetch(self._project.name, version, self._cache)

    def _tests(self, made: Environment, source: Path | None) -> Path | None:
        """A directory that has the tests of a source tree, and nothing else of it, to be the first on the path."""
        part = self._project.tests
        if not part or source is None:
            return None
        return sources.linked(made.directory / "upstream", {part: source / part})
