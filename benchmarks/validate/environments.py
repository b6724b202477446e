"""Virtual environments that are made once and kept.

The first of a project is installed; the others are copies of it in which one thing is changed, so that nothing else
differs, and no network is needed for them.
"""

import contextlib
import fcntl
import importlib.metadata
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from benchmarks.tools.pythons import Python

from .errors import ValidateError

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
        """What was installed when it was made: distribution to version."""
        return json.loads((self.directory / _MARKER).read_text())

    def version(self, name: str) -> str:
        """That of one distribution, whichever way its name is written."""
        versions = {canonicalize_name(each): version for each, version in self.versions().items()}
        return versions[canonicalize_name(name)]


def make(directory: Path, fill: Callable[[Environment], None], python: Python) -> Environment:
    """The environment in ``directory``, made and filled unless that was done before, to its end."""
    environment = Environment(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _locked(directory):
        if not (directory / _MARKER).exists():
            shutil.rmtree(directory, ignore_errors=True)
            _step([python.path, "-m", "venv", "--without-pip", str(directory)])
            fill(environment)
            versions = _installed(environment)
            (directory / _MARKER).write_text(json.dumps(dict(sorted(versions.items())), indent=1) + "\n")
    return environment


def compile_modules(python: Python, modules: Sequence[Path]) -> None:
    """Compile modules of an environment, as an installer does, without running them: where they run, nothing may be
    able to write beside them.
    """
    names = [str(module) for module in modules if module.suffix == ".py" and module.is_file()]
    if not names:
        return
    command = [python.path, "-I", "-S", "-m", "compileall", "-q", *names]
    # Its exit status would tell of a module with wrong syntax, which is for the tests to find.
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)


def _installed(environment: Environment) -> dict[str, str]:
    """What is installed there, read and not run: the start of its Python may run what a candidate has brought."""
    found = importlib.metadata.distributions(path=[str(environment.site_packages)])
    return {each.metadata["Name"]: each.version for each in found}


def copy_packages(source: Environment, to: Environment) -> None:
    """Give ``to`` all that ``source`` has installed, in files of its own."""
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


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Another validation may want the same environment at the same time."""
    with open(directory.with_name(directory.name + ".lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _step(command: list[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise ValidateError(f"{' '.join(command)} failed with exit status {done.returncode}")
    return done.stdout
