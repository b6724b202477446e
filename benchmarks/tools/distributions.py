"""Makes a release of Debian in a directory of its own, and runs the tests there with what it packages.

    python -m benchmarks.tools.distributions [--suites trixie …] [--python python3.15 …] [--packages …] [tests]

Only root can: debootstrap makes each directory, once, and the tests run in it with a mount namespace of their own. A
copy of the checkout, without what git ignores, goes into it; the machine itself stays as it is. ``--packages`` names
what the distribution is to install; what the tests need and it does not have comes from PyPI. First comes the summary
of ``fastio status``, then the tests, natively and with ``eventlet.monkey_patch()``, and the sheepdog case. Of several
Pythons, the first runs all of the tests, and each further one those of what differs between releases of CPython.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIRROR = "http://deb.debian.org/debian"
#: What the patches do, on real processes and sockets.
TESTS = ("tests/io", "tests/concurrency", "tests/patches")
#: What runs the tests in a suite that has more than one Python.
PYTHONS = {"sid": ("python3.14", "python3.15")}
#: Of the tests, for further Pythons: what the releases of CPython do differently.
FURTHER = "communicate or exchange or fix_ or green_pipe or wait"
#: The sheepdog case with little data, and what of fastio it needs.
SHEEPDOG = ("-q", "--benchmark-quiet", "benchmarks/suites/sheepdog/bench_sheepdog.py", "--quick")
#: Where the copy of the project, and the environment that the tests run in, are within a distribution's directory.
PROJECT, ENVIRONMENT = "opt/fastio", "opt/environment"
#: Files of the machine that pip and apt need to reach what it reaches.
NETWORK = ("etc/resolv.conf", "etc/hosts", "etc/pip.conf", "etc/ssl/certs/ca-certificates.crt")
#: Python is run within namespaces of its own for mounts, which end with it.
INSIDE = 'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" && exec chroot "$0" "$@"'


class DistributionError(Exception):
    """A distribution cannot be made here; the message says why."""


def why_not() -> str | None:
    """Why no distribution can be made here; None where it can."""
    if os.geteuid() != 0:
        return "only root can make a distribution in a directory"
    missing = [command for command in ("debootstrap", "unshare") if shutil.which(command) is None]
    return f"not here: {', '.join(missing)} (apt-get install --no-install-recommends debootstrap)" if missing else None


class Distribution:
    """A suite of Debian in a directory below ``parent``."""

    def __init__(self, suite: str, parent: pathlib.Path) -> None:
        self.suite = suite
        self.root = parent / suite

    def make(self) -> None:
        """Have the directory there, if it is not.

        :raises DistributionError: if debootstrap fails
        """
        if not (self.root / "usr/sbin/policy-rc.d").exists():
            shutil.rmtree(self.root, ignore_errors=True)
            self.root.parent.mkdir(parents=True, exist_ok=True)
            include = "--include=python3,python3-venv,ca-certificates"
            self._checked(["debootstrap", "--variant=minbase", include, self.suite, str(self.root), MIRROR])
        for name in NETWORK:
            if os.path.exists(f"/{name}"):
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(f"/{name}", self.root / name)
        # No package starts a service here.
        policy = self.root / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)

    def install(self, packages: Sequence[str]) -> None:
        """Have the distribution install its ``packages``.

        :raises DistributionError: if one of them cannot be installed
        """
        if not packages:
            return
        # The lists of sid may be older than they say that they stay right.
        patiently = ["-o", "Acquire::Check-Valid-Until=false", "-o", "Acquire::Retries=5"]
        self._checked(self.inside(["apt-get", *patiently, "update"]))
        command = ["apt-get", *patiently, "install", "-y", "--no-install-recommends", *packages]
        self._checked(self.inside(["env", "DEBIAN_FRONTEND=noninteractive", *command]))

    def copy_project(self) -> None:
        """Copy this checkout without what git ignores; git itself may not be here, or refuse another user's files."""
        patterns = [".git", *(line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines())]

        def ignored(directory: str, names: list[str]) -> list[str]:
            def matches(name: str, pattern: str) -> bool:
                if "/" in pattern:
                    return pathlib.Path(directory, name) == ROOT / pattern.lstrip("/")
                return fnmatch.fnmatch(name, pattern)

            return [name for name in names if any(matches(name, pattern) for pattern in patterns)]

        project = self.root / PROJECT
        shutil.rmtree(project, ignore_errors=True)
        shutil.copytree(ROOT, project, ignore=ignored)

    def make_environment(self, python: str, extras: str) -> None:
        """An environment that sees the distribution's packages; pip adds what of ``extras`` they do not have.

        :raises DistributionError: if there is no such Python, or pip fails
        """
        self._checked(self.inside([python, "-m", "venv", "--clear", "--system-site-packages", f"/{ENVIRONMENT}"]))
        pip = [f"/{ENVIRONMENT}/bin/python", "-m", "pip", "install", "-q", "-e", f"/{PROJECT}[{extras}]"]
        self._checked(self.inside(pip))

    def inside(self, command: Sequence[str]) -> list[str]:
        """``command`` as it is run in the distribution."""
        return ["unshare", "--mount", "sh", "-c", INSIDE, str(self.root), *command]

    def run(self, command: Sequence[str], **env: str) -> int:
        """The exit status of ``command``, run in the project's copy with the environment's Python."""
        told = [f"{name}={value}" for name, value in env.items()]
        python = f"/{ENVIRONMENT}/bin/python"
        words = ["env", "--chdir", f"/{PROJECT}", "PYTHONDONTWRITEBYTECODE=1", *told, python, *command]
        return subprocess.run(self.inside(words)).returncode

    def _checked(self, command: Sequence[str]) -> None:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if result.returncode:
            told = "\n".join(result.stdout.splitlines()[-10:])
            raise DistributionError(f"{self.suite}: {' '.join(command)}: exit status {result.returncode}\n{told}")


#: Prints what is in effect, with everything imported that can be.
STATUS = """
import contextlib, importlib, logging
import fastio
from fastio.patching import registry
logging.disable(logging.CRITICAL)
for module in sorted({module for patch in registry.patches() for target in patch.targets for module in target.modules}):
    with contextlib.suppress(Exception):
        importlib.import_module(module)
print(fastio.patch())
"""


def run_tests(distribution: Distribution, tests: Sequence[str]) -> bool:
    """Whether ``tests`` have passed in both modes, and the sheepdog case has."""
    found = [distribution.run(["-W", "ignore", "-c", STATUS])]
    for green in "01":
        found.append(distribution.run(["-m", "pytest", "-q", "-rfE", *tests], TEST_EVENTLET=green))
    found.append(distribution.run(["-m", "pytest", *SHEEPDOG]))
    return not any(found)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tools.distributions", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--suites", nargs="+", default=["sid"], metavar="SUITE", help="of Debian (%(default)s)")
    parser.add_argument("--directory", type=pathlib.Path, default=ROOT / ".tox" / "distributions")
    parser.add_argument("--python", nargs="+", help="commands in the distribution (sid: 3.14 and 3.15, else python3)")
    parser.add_argument("--packages", nargs="*", default=[], help="what the distribution is to install")
    parser.add_argument("--extras", default="eventlet,oslo,test,bench", help="of fastio, by pip (%(default)s)")
    parser.add_argument("--if-possible", action="store_true", help="what cannot be made is said, and is no failure")
    parser.add_argument("tests", nargs="*", default=list(TESTS))
    arguments = parser.parse_args(argv)
    if reason := why_not():
        print(f"distributions: skipped: {reason}")
        return 0
    failed = []
    for suite in arguments.suites:
        distribution = Distribution(suite, arguments.directory.resolve())
        print(f"{suite}: made in {distribution.root}", flush=True)
        for number, python in enumerate(arguments.python or PYTHONS.get(suite, ("python3",))):
            try:
                distribution.make()
                distribution.install([*arguments.packages, *([] if python == "python3" else [f"{python}-venv"])])
                distribution.copy_project()
                distribution.make_environment(python, arguments.extras)
            except DistributionError as error:
                print(error, file=sys.stderr)
                if not arguments.if_possible:
                    failed.append(f"{suite} ({python})")
                continue
            print(f"{suite}: {python}", flush=True)
            if not run_tests(distribution, [*arguments.tests, *(["-k", FURTHER] if number else [])]):
                failed.append(f"{suite} ({python})")
    if failed:
        print(f"distributions: not passed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
