"""Makes releases of Debian in directories, and runs fastio and its tests there with what they package.

    python -m benchmarks.tools.debian [--suites trixie …] [--write] [tests/io …]

Only root can: debootstrap makes each directory, once, and what runs in it has a mount namespace. A copy of the checkout
goes into it, and an environment that sees the packages; what the tests need besides comes from PyPI. There the tool
prints which code of the packages is new (:mod:`benchmarks.tools.fingerprints`) and what is in effect (``--write`` keeps
it for the documentation), and runs the tests, natively and with ``eventlet.monkey_patch()``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.tools import platforms
from fastio import terminal
from fastio.arguments import Parser

ROOT = Path(__file__).resolve().parents[2]
MIRROR = "http://deb.debian.org/debian"
#: The platform of the documentation that each suite is.
SUITES = {"bookworm": "Debian 12", "trixie": "Debian 13", "sid": "Debian sid"}
#: glance with its drivers and clients.
PACKAGES = (
    "glance-api", "python3-boto3", "python3-cinderclient", "python3-glanceclient", "python3-openstackclient",
    "python3-os-brick", "python3-oslo.vmware", "python3-swiftclient", "python3-pip", "python3-venv", "openssl",
)  # fmt: skip
#: Tests of the patches, on real processes, sockets and stores; each separately, since some import patches of others.
TESTS = ("tests/io", "tests/concurrency", "tests/patches", "tests/stores")
EXTRAS = "eventlet,oslo,test,bench"
#: Where the copy of the project, and the environment that the tests run in, are within a directory.
PROJECT, ENVIRONMENT = "opt/fastio", "opt/environment"
#: Files of the machine that pip and apt need to reach what it reaches.
NETWORK = ("etc/resolv.conf", "etc/hosts", "etc/pip.conf", "etc/ssl/certs/ca-certificates.crt")
#: The mounts end with the namespace.
INSIDE = 'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" && exec chroot "$0" "$@"'
#: The lists of sid may be older than they say that they stay right.
APT = ("apt-get", "-q", "-o", "Acquire::Check-Valid-Until=false", "-o", "Acquire::Retries=5")


class DebianError(Exception):
    """A suite cannot be had here; the message says why."""


def why_not() -> str:
    """Why no suite can be had here; empty where it can."""
    if os.geteuid() != 0:
        return "only root can make a distribution in a directory"
    missing = [command for command in ("debootstrap", "unshare") if shutil.which(command) is None]
    return f"not here: {', '.join(missing)} (apt-get install --no-install-recommends debootstrap)" if missing else ""


def copy_project(project: Path) -> None:
    """Copy this checkout without what git ignores; git itself may not be here, or refuse another user's files."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines()]
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(ROOT, project, ignore=shutil.ignore_patterns(".git", *ignored))
    for path in ignored:
        shutil.rmtree(project / path.lstrip("/"), ignore_errors=True)


class Suite:
    """A suite of Debian in a directory below ``parent``."""

    def __init__(self, name: str, parent: Path) -> None:
        self.name = name
        self.root = parent / name

    def make(self) -> None:
        """Have the directory with the packages, the project and the environment.

        :raises DebianError: if debootstrap, apt or pip fails
        """
        policy = self.root / "usr/sbin/policy-rc.d"
        if not policy.exists():
            shutil.rmtree(self.root, ignore_errors=True)
            self.root.parent.mkdir(parents=True, exist_ok=True)
            include = "--include=python3,ca-certificates"
            self._check(["debootstrap", "--variant=minbase", include, self.name, str(self.root), MIRROR])
            # Nothing has to survive a loss of power.
            (self.root / "etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n")
            # No package starts a service here.
            policy.write_text("#!/bin/sh\nexit 101\n")
            policy.chmod(0o755)
        for name in NETWORK:
            if os.path.exists(f"/{name}"):
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(f"/{name}", self.root / name)
        archives = [f"{MIRROR} {self.name}"]
        if self.name != "sid":
            archives += [f"{MIRROR} {self.name}-updates", f"{MIRROR}-security {self.name}-security"]
        (self.root / "etc/apt/sources.list").write_text("".join(f"deb {archive} main\n" for archive in archives))
        quietly = ["env", "DEBIAN_FRONTEND=noninteractive"]
        self._check(self.inside([*APT, "update"]))
        self._check(self.inside([*quietly, *APT, "upgrade", "-y"]))
        # Most modules of the packages are never imported.
        compiler = self.root / "usr/bin/py3compile"
        compiler.unlink()
        compiler.symlink_to("true")
        self._check(self.inside([*quietly, *APT, "install", "-y", "--no-install-recommends", *PACKAGES]))
        copy_project(self.root / PROJECT)
        self._check(self.inside(["python3", "-m", "venv", "--clear", "--system-site-packages", f"/{ENVIRONMENT}"]))
        install = [self.python, "-m", "pip", "install", "-q", "--no-compile"]
        self._check(self.inside([*install, "-e", f"/{PROJECT}[{EXTRAS}]"]))

    @property
    def python(self) -> str:
        return f"/{ENVIRONMENT}/bin/python"

    def inside(self, command: Sequence[str]) -> list[str]:
        """Run ``command`` in the directory."""
        return ["unshare", "--mount", "sh", "-c", INSIDE, str(self.root), *command]

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the environment's Python in the project; the output with ``--json`` is kept."""
        given = [f"{name}={value}" for name, value in env.items()]
        command = ["env", "--chdir", f"/{PROJECT}", *given, self.python, *words]
        stdout = subprocess.PIPE if "--json" in words else None
        return subprocess.run(self.inside(command), stdout=stdout, text=True)

    def _check(self, command: Sequence[str]) -> None:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        if result.returncode:
            last = "\n".join(result.stdout.splitlines()[-10:])
            raise DebianError(f"{self.name}: {' '.join(command)}: exit status {result.returncode}\n{last}")


def examine(suite: Suite, asked: Sequence[str], write: bool) -> Iterator[str]:
    """Look at the code, at what is in effect, and run the tests; yields what did not pass.

    :param asked: tests to run instead of all; new code is no failure then
    """
    if suite.run("-m", "benchmarks.tools.fingerprints").returncode and not asked:
        yield "new code"
    status = json.loads(suite.run("-W", "ignore", "-m", "fastio", "status", "--json").stdout)
    (platform,) = (each for each in platforms.kept() if each.name == SUITES[suite.name])
    found = platform.with_status(status)
    print(found.text(), flush=True)
    if write:
        platforms.keep(found)
    for test in asked or TESTS:
        for green in "01":
            words = ["-m", "pytest", "-q", "-rfE", *test.split()]
            if suite.run(*words, TEST_EVENTLET=green, TEST_DISABLED=platforms.unsupported(status)).returncode:
                yield f"{test} (TEST_EVENTLET={green})"


@terminal.command
def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.tools.debian", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suites", nargs="+", choices=list(SUITES), help="all by default, and sid for given tests")
    parser.add_argument("--directory", type=Path, default=ROOT / ".tox" / "debian", help="for the suites")
    parser.add_argument("--write", action="store_true", help=f"keep what is in effect in {platforms.FILE.name}")
    parser.add_argument("--if-possible", action="store_true", help="a suite that cannot be had is no failure")
    parser.add_argument("tests", nargs="*", help=f"of pytest ({' '.join(TESTS)})")
    arguments = parser.parse_args(argv)
    if reason := why_not():
        print(f"debian: skipped: {reason}")
        return 0
    failed = []
    for name in arguments.suites or (["sid"] if arguments.tests else list(SUITES)):
        suite = Suite(name, arguments.directory.resolve())
        print(f"{name}: made in {suite.root}", flush=True)
        try:
            suite.make()
            failed += [f"{name}: {each}" for each in examine(suite, arguments.tests, arguments.write)]
        except DebianError as error:
            print(error, file=sys.stderr)
            failed += [] if arguments.if_possible else [f"{name}: cannot be made"]
    if failed:
        print("debian: not passed: " + "; ".join(failed), file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
