"""What a suite of Debian packages today, unpacked in a directory: apt does it with a state of its own, without root."""

import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from benchmarks.tools.distributions import MIRROR

KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
#: The rolling suite, which has no updates beside it.
UNSTABLE = "sid"
#: The packages of a Python's standard library: ``subprocess`` is in the first, ``_pyio`` in the second.
MINIMAL, STDLIB = (re.compile(rf"libpython(3\.\d+)-{part}") for part in ("minimal", "stdlib"))
#: Where Debian's Python finds the libraries.
LIBRARIES = "usr/lib/python3/dist-packages"

CONFIGURATION = """
Dir::Etc "{0}";
Dir::Etc::SourceList "sources.list";
Dir::Etc::SourceParts "-";
Dir::State "{0}/state";
Dir::State::status "{0}/status";
Dir::Cache "{0}/cache";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "5";
Acquire::Check-Valid-Until "false";
"""


class DebianError(Exception):
    """A suite's packages cannot be had here; the message says why."""


class Package(NamedTuple):
    """An unpacked package."""

    name: str
    #: see :func:`plain`
    version: str


class Suite:
    """The packages of a suite, such as ``trixie``, unpacked together in ``directory/root``."""

    def __init__(
        self, name: str, directory: pathlib.Path, mirror: str = MIRROR, trust: str = f"signed-by={KEYRING}"
    ) -> None:
        self.name = name
        self.root = directory / "root"
        self._directory = directory
        self._mirror = mirror
        self._trust = trust

    def update(self) -> None:
        """Fetch the lists of packages.

        :raises DebianError: if there is no apt here, or no such suite
        """
        missing = [command for command in ("apt-get", "dpkg-deb") if shutil.which(command) is None]
        missing += [] if KEYRING.exists() else [f"{KEYRING} (apt-get install debian-archive-keyring)"]
        if missing:
            raise DebianError(f"Debian {self.name}: not here: {', '.join(missing)}")
        for name in ("state/lists/partial", "cache/archives/partial", "root"):
            (self._directory / name).mkdir(parents=True, exist_ok=True)
        (self._directory / "status").touch()
        (self._directory / "apt.conf").write_text(CONFIGURATION.format(self._directory))
        archives = [(self._mirror, self.name)]
        if self.name != UNSTABLE:
            archives += [(self._mirror, f"{self.name}-updates"), (f"{self._mirror}-security", f"{self.name}-security")]
        lines = [f"deb [{self._trust}] {mirror} {suite} main\n" for mirror, suite in archives]
        (self._directory / "sources.list").write_text("".join(lines))
        self._run("apt-get", "-q", "update")

    def pythons(self) -> list[str]:
        """The packages that have the standard libraries of the suite's Pythons."""
        names = self._run("apt-cache", "pkgnames", "libpython3.").split()
        return sorted(name for name in names if MINIMAL.fullmatch(name) or STDLIB.fullmatch(name))

    def unpack(self, names: Iterable[str]) -> Iterator[Package]:
        """Download those of the packages that the suite has, and unpack them.

        :raises DebianError: if one of them cannot be had
        """
        there = set(self._run("apt-cache", "pkgnames").split())
        if wanted := [name for name in names if name in there]:
            self._run("apt-get", "-q", "download", *wanted)
        for path in sorted(self._directory.glob("*.deb")):
            fields = self._run("dpkg-deb", "-f", path.name, "Package", "Version")
            name, version = re.findall(r"^\w+: *(.*)$", fields, re.MULTILINE)
            self._run("dpkg-deb", "-x", path.name, str(self.root))
            path.unlink()
            yield Package(name, plain(version))

    def _run(self, *command: str) -> str:
        given = ["-c", str(self._directory / "apt.conf")] if command[0].startswith("apt") else []
        words = [command[0], *given, *command[1:]]
        done = subprocess.run(words, cwd=self._directory, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            told = "\n".join(done.stderr.splitlines()[-5:])
            raise DebianError(f"Debian {self.name}: {' '.join(command[:3])}: exit status {done.returncode}\n{told}")
        return done.stdout


def library(distribution: str) -> str:
    """The package that has a distribution of PyPI."""
    return f"python3-{distribution.removeprefix('python-').replace('_', '-').lower()}"


def plain(version: str) -> str:
    """Debian's version as PEP 440 has it, the revision as a local one: ``0.39.1+2.deb13u1`` of ``0.39.1-2+deb13u1``."""
    upstream, rest = re.findall(r"^(?:\d+:)?([^-+]+)(.*)$", version)[0]
    return f"{upstream.replace('~', '')}+{'.'.join(re.findall(r'[a-z0-9]+', rest.lower()))}".removesuffix("+")
