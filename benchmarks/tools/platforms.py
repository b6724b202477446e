"""What of fastio is in effect with the releases that distributions have of glance: the table of the documentation.

    python -m benchmarks.tools.platforms [--directory DIRECTORY] [--write] [NAME …]

:mod:`benchmarks.tools.distributions` looks at packages. Here the platforms are approximated: each in an environment of
its own, of the same minor version of Python, with PyPI's releases of the same versions. :data:`APPROXIMATED` has them,
with where they are from. What is printed is kept with ``--write``, and the documentation shows what is kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness.environments import SetupError, make
from benchmarks.tools import pythons
from benchmarks.tools.upstream.sources import Unavailable
from fastio import terminal
from fastio.arguments import Parser
from fastio.report import Outcome
from fastio.tables import EMPTY, Table

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "doc" / "source" / "platforms.json"

#: What patches are for, and is not in effect.
LEFT_ALONE = {
    each.value for each in (Outcome.UNSUPPORTED, Outcome.CHANGED, Outcome.FAILED, Outcome.WAITING, Outcome.SHADOWED)
}
PACKAGES, APPROXIMATION = "packages", "PyPI"

_CONSTRAINTS = "https://opendev.org/openstack/requirements/raw/{}/upper-constraints.txt"
_UBUNTU = "https://launchpad.net/ubuntu/{}/+source/python-eventlet"
_RDO = "https://github.com/redhat-openstack/rdoinfo/blob/master/rdo.yml"
#: The distributions in the order of a release's tuple.
_NAMES = ("glance", "glance_store", "eventlet", "oslo.concurrency", "python-glanceclient", "python-swiftclient")
#: Clients of the drivers, without which these are not set up.
_DRIVERS = ("boto3", "python-cinderclient", "os-brick", "oslo.vmware")


@dataclass(frozen=True)
class Approximation:
    """A platform of which PyPI has the same releases."""

    name: str
    openstack: str
    #: its minor version
    python: str
    #: of the distributions in ``_NAMES``
    releases: tuple[str, ...]
    #: where the versions are from
    sources: tuple[str, ...]
    #: what else pip is told: today's releases of these are not what glance of that time imports
    besides: tuple[str, ...] = ()

    def requirements(self) -> list[str]:
        pinned = [f"{name}=={version}" for name, version in zip(_NAMES, self.releases, strict=True)]
        return [*pinned, *_DRIVERS, *self.besides]


#: pkg_resources went with setuptools 82; the others took away what glance and the drivers then imported.
_OLD = (
    "setuptools<81",
    "SQLAlchemy<2",
    "oslo.db<15",
    "oslo.utils<8",
    "oslo.policy<4.3",
    "os-brick<6.10",
    "oslo.service<4",
    "dnspython<2.3",
)
_OLDER = ("setuptools<81", "oslo.utils<8", "oslo.policy<6")

#: Ubuntu 22.04 has eventlet 0.30.2 with a fix for Python 3.10, which came upstream with 0.33.
APPROXIMATED = (
    Approximation(
        "Ubuntu 22.04", "2022.1 Yoga", "3.10", ("24.2.1", "3.0.1", "0.33.0", "4.5.0", "3.6.0", "3.13.1"),
        (_UBUNTU.format("jammy"), _CONSTRAINTS.format("branch/unmaintained/yoga")), _OLD,
    ),
    Approximation(
        "Ubuntu 22.04 with its Cloud Archive", "2023.1 Antelope", "3.10",
        ("26.1.0", "4.3.3", "0.33.1", "5.1.1", "4.3.2", "4.2.0"), (_CONSTRAINTS.format("branch/unmaintained/2023.1"),),
        _OLD,
    ),
    Approximation(
        "Ubuntu 22.04 with its Cloud Archive", "2023.2 Bobcat", "3.10",
        ("27.1.1", "4.6.2", "0.33.3", "5.2.0", "4.4.1", "4.4.0"), (_CONSTRAINTS.format("tag/2023.2-eol"),), _OLD,
    ),
    Approximation(
        "Ubuntu 24.04", "2024.1 Caracal", "3.12", ("28.1.0", "4.7.1", "0.35.2", "6.0.0", "4.5.0", "4.5.0"),
        (_UBUNTU.format("noble"), _CONSTRAINTS.format("branch/unmaintained/2024.1")), _OLDER,
    ),
    Approximation(
        "Ubuntu 24.04 with its Cloud Archive", "2024.2 Dalmatian", "3.12",
        ("29.2.1", "4.8.2", "0.36.1", "6.1.0", "4.7.0", "4.6.0"), (_CONSTRAINTS.format("tag/2024.2-eol"),), _OLDER,
    ),
    Approximation(
        "RDO on CentOS Stream 10; Ubuntu 24.04 with its Cloud Archive", "2025.1 Epoxy", "3.12",
        ("30.2.0", "4.9.1", "0.39.0", "7.1.0", "4.8.0", "4.7.1"), (_CONSTRAINTS.format("branch/stable/2025.1"), _RDO),
        _OLDER,
    ),
    Approximation(
        "RDO on CentOS Stream 10; Ubuntu 24.04 with its Cloud Archive", "2025.2 Flamingo", "3.12",
        ("31.1.0", "5.2.0", "0.40.2", "7.2.0", "4.10.0", "4.8.0"), (_CONSTRAINTS.format("branch/stable/2025.2"), _RDO),
        _OLDER,
    ),
    Approximation(
        "Ubuntu 26.04", "2026.1 Gazpacho", "3.14", ("32.0.0", "5.4.0", "0.40.4", "7.4.1", "4.11.0", "4.10.0"),
        (_CONSTRAINTS.format("branch/stable/2026.1"),), ("oslo.policy<6",),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Platform:
    """What became of each target on one platform."""

    name: str
    openstack: str
    #: ``PACKAGES`` or ``APPROXIMATION``
    of: str
    #: distribution: version; CPython is among them
    versions: Mapping[str, str]
    #: how many targets are in effect
    applied: int
    #: the other targets: patch, target, outcome, what was found
    others: Sequence[Sequence[str]]
    #: what :mod:`benchmarks.tools.packaged` has found of the packaged glance-api
    glance: Mapping[str, Any] = field(default_factory=dict)
    sources: Sequence[str] = ()

    @classmethod
    def of_status(
        cls, name: str, openstack: str, of: str, status: Mapping[str, Any], sources: Sequence[str] = ()
    ) -> Platform:
        """From what ``fastio status --json`` says."""
        entries = status["patches"]
        others = [
            [each[key] for key in ("name", "target", "outcome", "found")]
            for each in entries
            if not each["in_effect"] and each["outcome"] != Outcome.OFF.value
        ]
        versions = {name: version for name, version in status["versions"].items() if version != "absent"}
        applied = sum(each["in_effect"] for each in entries)
        return cls(name, openstack, of, versions, applied, others, sources=sources)

    def left_alone(self) -> list[Sequence[str]]:
        return [each for each in self.others if each[2] in LEFT_ALONE]

    def unsupported(self) -> list[str]:
        """The patches that are not for the platform's releases: tests, which patch strictly, switch them off."""
        return sorted({each[0] for each in self.others if each[2] == Outcome.UNSUPPORTED.value})

    def reasons(self) -> str:
        """What is not in effect, and why; what upstream does not have, or does by itself, is not among it."""
        found: dict[tuple[str, str], int] = {}
        for patch, _, outcome, why in self.left_alone():
            found[patch, f"{outcome}: {why}"] = found.get((patch, f"{outcome}: {why}"), 0) + 1
        return "; ".join(f"{patch} ({why})" for patch, why in found) or EMPTY

    def not_needed(self) -> str:
        names = sorted({each[0] for each in self.others if each[2] not in LEFT_ALONE})
        return ", ".join(names) or EMPTY

    def served(self) -> str:
        """What became of the packaged glance-api."""
        if not self.glance:
            return EMPTY
        wrong = len(self.glance["wrong"])
        return f"{self.glance['server']}: " + (f"{wrong} faults" if wrong else "right")

    def text(self) -> str:
        lines = [f"{self.name}, {self.openstack}: {self.applied} of {self.applied + len(self.left_alone())} in effect"]
        lines += [f"  {name} {version}" for name, version in self.versions.items()]
        return "\n".join([*lines, *("  " + ": ".join(each) for each in self.others)])


def kept(file: Path | None = None) -> list[Platform]:
    """What is kept, the oldest OpenStack first."""
    file = file or FILE
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    return [Platform(**each) for each in found]


def keep(platform: Platform, file: Path | None = None) -> None:
    """Keep it, in the place of what was kept of the same platform."""
    others = [each for each in kept(file) if (each.name, each.openstack) != (platform.name, platform.openstack)]
    found = sorted([*others, platform], key=lambda each: (each.openstack, each.name))
    text = json.dumps([asdict(each) for each in found], indent=1, ensure_ascii=False)
    (file or FILE).write_text(text + "\n", encoding="utf-8")


def tables(platforms: Sequence[Platform]) -> list[Table]:
    """What is in effect where, and why something is not."""
    effect = [
        [
            each.openstack, each.name, each.of, each.versions["CPython"], each.versions.get("glance", EMPTY),
            each.versions.get("glance_store", EMPTY), each.versions.get("eventlet", EMPTY),
            f"{each.applied} of {each.applied + len(each.left_alone())}", each.served(),
        ]
        for each in platforms
    ]  # fmt: skip
    reasons = [[each.openstack, each.name, each.reasons(), each.not_needed()] for each in platforms]
    return [
        Table(
            "",
            ["OpenStack", "platform", "versions of", "Python", "glance", "glance_store", "eventlet", "in effect",
             "packaged glance-api"],
            effect,
        ),
        Table("", ["OpenStack", "platform", "not in effect, and why", "without a place there, or not needed"], reasons),
    ]  # fmt: skip


def examine(approximation: Approximation, directory: Path) -> Platform:
    """Make its environment in ``directory``, unless it is there, and ask for the status.

    :raises Unavailable: if there is no such Python here
    :raises SetupError: if pip fails
    """
    python = directory / "bin" / "python"
    done = directory / "complete"
    if not done.exists():
        base = pythons.find(approximation.python).path
        make(base, directory, [*approximation.requirements(), "-e", str(ROOT)])
        done.touch()
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "PYTHON"))}
    # Its exit status is 1 if something is left alone.
    command = [str(python), "-W", "ignore", "-m", "fastio", "status", "--json"]
    status = subprocess.run(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True, timeout=300).stdout
    return Platform.of_status(
        approximation.name, approximation.openstack, APPROXIMATION, json.loads(status), approximation.sources
    )


@terminal.command
def main(argv: Sequence[str] | None = None) -> int:
    about = (__doc__ or "").splitlines()[0]
    parser = Parser(prog="python -m benchmarks.tools.platforms", description=about)
    parser.add_argument("--directory", type=Path, default=ROOT / ".tox" / "platforms", help="for the environments")
    parser.add_argument("--write", action="store_true", help=f"keep what is in effect in {FILE.name}")
    parser.add_argument("openstack", nargs="*", help="releases of OpenStack, such as 2024.1 (all)")
    arguments = parser.parse_args(argv)
    known = {each.openstack.split()[0]: each for each in APPROXIMATED}
    for name in arguments.openstack:
        if name not in known:
            parser.error(f"{name}: one of {', '.join(known)}")
    failed = False
    for name in arguments.openstack or known:
        try:
            platform = examine(known[name], arguments.directory / name)
        except Unavailable as error:
            print(f"{known[name].name} is not run: {error}", flush=True)
            continue
        except SetupError as error:
            print(f"{known[name].name}: {error}", file=sys.stderr)
            failed = True
            continue
        print(platform.text(), flush=True)
        if arguments.write:
            keep(platform)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
