"""Makes releases of Debian in directories of their own, and runs what is tested there with what they package.

    python -m benchmarks.tools.distributions [--suites trixie …] [--soak SECONDS] [--write]
    python -m benchmarks.tools.distributions [--suites trixie …] [--python python3.15 …] [--packages …] tests/io …

Only root can: debootstrap makes each directory, once, and the tests run in it with a mount namespace of their own. A
copy of the checkout, without what git ignores, goes into it; the machine itself stays as it is. ``--packages`` names
what the distribution is to install; what the tests need and it does not have comes from PyPI.

Without tests it is Debian 12, 13 and sid with all that they package of glance: what is in effect (kept in the
documentation's table with ``--write``), the tests of the patches and of the stores, and the packaged glance-api
(:mod:`benchmarks.tools.packaged`) with fastio as the documentation has it got in. With tests it is sid alone: first
comes the summary of ``fastio status``, then these tests, the sheepdog case, and the install of wheel and source
distribution. Of several Pythons, the first runs all
of the tests, and each further one those of what differs between releases of CPython. Tests run natively and with
``eventlet.monkey_patch()``.
"""

from __future__ import annotations

import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.tools import platforms
from fastio import terminal
from fastio.arguments import Parser

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIRROR = "http://deb.debian.org/debian"
#: What the patches do, on real processes, sockets and stores; each on its own, since some import what patches others.
TESTS = ("tests/io", "tests/concurrency", "tests/patches", "tests/stores")
#: Releases of Debian, and their OpenStack.
SUITES = {
    "bookworm": ("Debian 12", "2022.2 Zed"),
    "trixie": ("Debian 13", "2025.1 Epoxy"),
    "sid": ("Debian sid", "2026.2 Hibiscus"),
}
#: glance with its drivers, and what the tests and the documented way of getting fastio in need.
PACKAGES = (
    "glance-api", "python3-boto3", "python3-cinderclient", "python3-glanceclient", "python3-os-brick",
    "python3-oslo.vmware", "python3-swiftclient", "python3-pip", "nginx-light", "openssl",
)  # fmt: skip
#: The drop-in of the documentation, and where an operator puts it.
DROP_IN = "doc/source/examples/glance-api.service.d/debian.conf"
DROP_INS = "etc/systemd/system/glance-api.service.d"
#: What runs the tests in a suite that has more than one Python.
PYTHONS = {"sid": ("python3.14", "python3.15")}
#: Of the tests, for further Pythons: what the releases of CPython do differently.
FURTHER = "communicate or exchange or fix_ or green_pipe or wait"
#: The sheepdog case with little data, and what of fastio it needs.
SHEEPDOG = ("-q", "--benchmark-quiet", "benchmarks/suites/sheepdog/bench_sheepdog.py", "--quick")
#: Wheel and source distribution, each built and installed in an empty environment.
RELEASE = ("-q", "-rfE", "tests/packaging/test_release.py")
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
        # glance's own user has to get in, also where nobody but its owner gets into this checkout.
        project.chmod(0o755)

    def make_environment(self, python: str, extras: str) -> None:
        """An environment that sees the distribution's packages; pip adds what of ``extras`` they do not have.

        :raises DistributionError: if there is no such Python, or pip fails
        """
        self._checked(self.inside([python, "-m", "venv", "--clear", "--system-site-packages", f"/{ENVIRONMENT}"]))
        pip = [f"/{ENVIRONMENT}/bin/python", "-m", "pip", "install", "-q", "-e", f"/{PROJECT}[{extras}]"]
        self._checked(self.inside(pip))

    def get_fastio_in(self) -> None:
        """Install it as the documentation says: beside the distribution's Python, with a drop-in for glance-api.

        :raises DistributionError: if pip fails
        """
        pip = ["python3", "-m", "pip", "install", "-q", "--break-system-packages", "--no-deps", "--force-reinstall"]
        self._checked(self.inside([*pip, f"/{PROJECT}"]))
        (self.root / DROP_INS).mkdir(parents=True, exist_ok=True)
        shutil.copy(self.root / PROJECT / DROP_IN, self.root / DROP_INS / "fastio.conf")

    def inside(self, command: Sequence[str], own_network: bool = False) -> list[str]:
        """``command`` as it is run in the distribution."""
        namespaces = ["--mount", *(["--net"] if own_network else [])]
        return ["unshare", *namespaces, "sh", "-c", INSIDE, str(self.root), *command]

    def run(self, command: Sequence[str], own_network: bool = False, **env: str) -> int:
        """The exit status of ``command``, run in the project's copy with the environment's Python."""
        return subprocess.run(self._in_project(command, own_network, env)).returncode

    def ask(self, command: Sequence[str]) -> str:
        """What ``command``, run in the same way, prints."""
        return subprocess.run(self._in_project(command, False, {}), stdout=subprocess.PIPE, text=True).stdout

    def _in_project(self, command: Sequence[str], own_network: bool, env: Mapping[str, str]) -> list[str]:
        told = [f"{name}={value}" for name, value in env.items()]
        python = f"/{ENVIRONMENT}/bin/python"
        words = ["env", "--chdir", f"/{PROJECT}", "PYTHONDONTWRITEBYTECODE=1", *told, python, *command]
        return self.inside(words, own_network)

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


def run_tests(distribution: Distribution, tests: Sequence[str], disabled: str = "") -> list[str]:
    """What of ``tests``, which run in both modes, did not pass.

    :param disabled: patches that are switched off, with commas between them
    """
    failed = []
    env = {"TEST_DISABLED": disabled} if disabled else {}
    for green in "01":
        if distribution.run(["-m", "pytest", "-q", "-rfE", *tests], own_network=False, TEST_EVENTLET=green, **env):
            failed.append(f"{' '.join(tests)} (TEST_EVENTLET={green})")
    return failed


def run_some(distribution: Distribution, tests: Sequence[str]) -> list[str]:
    """The summary, ``tests``, the sheepdog case and a release's install; returns what did not pass."""
    distribution.run(["-W", "ignore", "-c", STATUS])
    failed = run_tests(distribution, tests)
    once = {"sheepdog": SHEEPDOG, "release": RELEASE}
    return [*failed, *(name for name, words in once.items() if distribution.run(["-m", "pytest", *words]))]


def run_all(distribution: Distribution, soak: float, write: bool) -> list[str]:
    """What is in effect, the tests and glance-api; returns what did not pass."""
    platform, openstack = SUITES[distribution.suite]
    status = json.loads(distribution.ask(["-W", "ignore", "-m", "fastio", "status", "--json"]))
    found = platforms.Platform.of_status(platform, openstack, "packages", status)
    print(found.text(), flush=True)
    failed = [each for folder in TESTS for each in run_tests(distribution, [folder], ",".join(found.unsupported()))]
    distribution.get_fastio_in()
    result = distribution.root / PROJECT / "packaged.json"
    command = ["-m", "benchmarks.tools.packaged", "--json", f"/{PROJECT}/{result.name}", "--soak", f"{soak:g}"]
    if distribution.run(command, own_network=True):
        failed.append("glance-api")
    if write and result.exists():
        platforms.keep(replace(found, glance=json.loads(result.read_text())))
    return failed


@terminal.command
def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.tools.distributions", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--suites", nargs="+", metavar="SUITE", help="of Debian (with tests: sid, else all that it knows)"
    )
    parser.add_argument("--directory", type=pathlib.Path, default=ROOT / ".tox" / "distributions")
    parser.add_argument("--python", nargs="+", help="commands in the distribution (sid: 3.14 and 3.15, else python3)")
    parser.add_argument("--packages", nargs="*", help="what the distribution is to install (with tests: nothing)")
    parser.add_argument("--extras", default="eventlet,oslo,test,bench,package", help="of fastio, by pip (%(default)s)")
    parser.add_argument(
        "--soak", type=float, default=30.0, metavar="SECONDS", help="of load on glance-api (%(default)s)"
    )
    parser.add_argument("--write", action="store_true", help=f"keep what is in effect in {platforms.FILE.name}")
    parser.add_argument("--if-possible", action="store_true", help="what cannot be made is said, and is no failure")
    parser.add_argument("tests", nargs="*", help="nothing but these, in sid unless --suites says otherwise")
    arguments = parser.parse_args(argv)
    suites = arguments.suites or (["sid"] if arguments.tests else list(SUITES))
    unknown = [suite for suite in suites if suite not in SUITES]
    if unknown and not arguments.tests:
        parser.error(f"--suites {unknown[0]}: without tests one of {', '.join(SUITES)}")
    packages = arguments.packages if arguments.packages is not None else () if arguments.tests else PACKAGES
    if reason := why_not():
        print(f"distributions: skipped: {reason}")
        return 0
    failed = []
    for suite in suites:
        distribution = Distribution(suite, arguments.directory.resolve())
        print(f"{suite}: made in {distribution.root}", flush=True)
        default = PYTHONS.get(suite, ("python3",)) if arguments.tests else ("python3",)
        for number, python in enumerate(arguments.python or default):
            try:
                distribution.make()
                distribution.install([*packages, *([] if python == "python3" else [f"{python}-venv"])])
                distribution.copy_project()
                distribution.make_environment(python, arguments.extras)
                print(f"{suite}: {python}", flush=True)
                if arguments.tests:
                    found = run_some(distribution, [*arguments.tests, *(["-k", FURTHER] if number else [])])
                else:
                    found = run_all(distribution, arguments.soak, arguments.write)
            except DistributionError as error:
                print(error, file=sys.stderr)
                found = [] if arguments.if_possible else ["cannot be made"]
            failed += [f"{suite} ({python}): {each}" for each in found]
    if failed:
        print("distributions: not passed: " + "; ".join(failed), file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
