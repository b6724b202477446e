"""The environments that glance-api runs in: glance 32, the last with the eventlet server, and glance 33 on threads.

``python -m benchmarks.backends.glance_environments DIRECTORY [NAME ...]`` makes them beneath a directory. Their users
read the interpreter of each from an environment variable: ``BENCHMARK_GLANCE32`` and ``BENCHMARK_GLANCE33``.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.backends.base import ROOT
from benchmarks.harness.environments import SetupError, make, run
from fastio import terminal
from fastio.arguments import Parser

# Requirements of glance's own functional and unit tests besides glance's, and their runner.
_UPSTREAM_TESTS = (
    "ddt", "fixtures", "glance_store[cinder]", "oslotest", "pytest", "requests-mock", "testscenarios", "testtools",
)  # fmt: skip


@dataclass(frozen=True)
class Environment:
    """One release of glance and what serves it."""

    name: str
    #: names its interpreter
    variable: str
    #: of glance
    release: str
    #: installed beside it
    beside: tuple[str, ...]
    #: of this checkout
    extras: str
    #: older releases of uWSGI, each in a separate directory
    uwsgi: tuple[str, ...] = ()

    @property
    def requirements(self) -> tuple[str, ...]:
        return (f"glance=={self.release}", *self.beside)

    def python(self) -> str:
        """The interpreter that the environment variable names; empty if there is none."""
        return os.environ.get(self.variable, "")

    def missing(self) -> str:
        """Why there is no such environment here, and how to make one; empty if there is one."""
        python = self.python()
        if shutil.which(python):
            return ""
        found = f"is {python!r}: there is no such program" if python else f"names no Python with {self.requirements[0]}"
        make = f"python -m benchmarks.backends.glance_environments DIRECTORY {self.name}"
        return f"{self.variable} {found} ({make}, {self.variable}=DIRECTORY/{self.name}/bin/python)"


ENVIRONMENTS = {
    environment.name: environment
    for environment in (
        # With oslo.policy 6 its API tests fail: it took away options that glance 32 sets.
        Environment(
            "glance32",
            "BENCHMARK_GLANCE32",
            "32.0.0",
            (
                "oslo.policy<6", "python-glanceclient", "python-openstackclient", "python-swiftclient", "boto3",
                *_UPSTREAM_TESTS,
            ),
            "bench,eventlet,oslo,test",
        ),
        # eventlet is installed here as well, since oslo.service requires it, but nothing of glance imports it.
        Environment(
            "glance33",
            "BENCHMARK_GLANCE33",
            "33.0.0",
            (
                "uwsgi", "gunicorn", "psutil", "python-glanceclient", "python-swiftclient", "boto3", *_UPSTREAM_TESTS,
            ),
            "test",
            # Of Debian 12 and of Ubuntu 24.04.
            uwsgi=("2.0.21", "2.0.24"),
        ),
    )
}  # fmt: skip


def uwsgi(python: Path, release: str) -> Path:
    """The program of an older release of uWSGI in the environment of an interpreter."""
    return python.parent.parent / f"uwsgi-{release}" / "bin" / "uwsgi"


def set_up(environment: Environment, directory: Path) -> Path:
    """Make the environment in ``directory`` unless it is there; returns its interpreter.

    :raises SetupError: if it cannot be made here
    """
    python = directory / "bin" / "python"
    if not _works(python, environment):
        make(sys.executable, directory, [*environment.requirements, "-e", f"{ROOT}[{environment.extras}]"])
        if not _works(python, environment):
            raise SetupError(f"{python} cannot import what it was given")
    for release in environment.uwsgi:
        program = uwsgi(python, release)
        if not program.exists():
            install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
            try:
                run([*install, "--target", str(program.parent.parent), f"uwsgi=={release}"])
            except SetupError as error:
                print(f"uWSGI {release} cannot be built for this Python, its tests are skipped: {error}")
    return python


def _works(python: Path, environment: Environment) -> bool:
    if not python.exists():
        return False
    code = (
        "import importlib.metadata, sys, fastio, pytest\n"
        f"ours = fastio.__file__.startswith({str(ROOT)!r})\n"
        f"sys.exit(not ours or importlib.metadata.version('glance') != {environment.release!r})"
    )
    return subprocess.run([str(python), "-c", code], stderr=subprocess.DEVNULL).returncode == 0


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(
        prog="python -m benchmarks.backends.glance_environments",
        description="Make the environments that glance-api runs in.",
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("name", nargs="*", choices=[[], *ENVIRONMENTS], default=[], help="all by default")
    chosen = parser.parse_args(arguments)
    try:
        for name in chosen.name or ENVIRONMENTS:
            print(f"{ENVIRONMENTS[name].variable}={set_up(ENVIRONMENTS[name], chosen.directory / name)}")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
