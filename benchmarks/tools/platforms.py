"""Patches in effect with the distributions' releases of glance: the table of the documentation.

    python -m benchmarks.tools.platforms [--directory DIRECTORY] [--write] [OPENSTACK …]

``doc/source/platforms.json`` names the platforms. :mod:`benchmarks.tools.debian` looks at those with packages. The
others are approximated by the releases on PyPI that their ``requirements`` name, each in an environment of the same
minor version of Python. ``sources`` says where the versions are from, and ``--write`` keeps what is in effect.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.harness.environments import SetupError, make
from benchmarks.tools import pythons
from benchmarks.tools.pythons import Unavailable
from fastio import terminal
from fastio.arguments import Parser
from fastio.report import Outcome
from fastio.tables import EMPTY, Table

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "doc" / "source" / "platforms.json"
#: Targets of patches that are not in effect.
LEFT_ALONE = {each.value for each in (Outcome.UNSUPPORTED, Outcome.CHANGED, Outcome.FAILED, Outcome.WAITING)}


@dataclass(frozen=True)
class Platform:
    """The outcome of each target on one platform."""

    name: str
    openstack: str
    #: ``packages`` or ``PyPI``
    of: str
    #: distribution: version; CPython is among them
    versions: Mapping[str, str]
    #: how many targets are in effect
    applied: int = 0
    #: the other targets: patch, target, outcome, what was found
    others: Sequence[Sequence[str]] = ()
    sources: Sequence[str] = ()
    #: requirements for pip
    requirements: Sequence[str] = ()

    def with_status(self, status: Mapping[str, Any]) -> Platform:
        """Return it with the output of ``fastio status --json`` there."""
        others = [
            [each[key] for key in ("name", "target", "outcome", "found")]
            for each in status["patches"]
            if each["outcome"] not in (Outcome.APPLIED, Outcome.OFF)
        ]
        versions = {name: version for name, version in status["versions"].items() if version != "absent"}
        applied = sum(each["outcome"] == Outcome.APPLIED for each in status["patches"])
        return replace(self, versions=versions, applied=applied, others=others)

    def outcomes(self, left_alone: bool) -> Iterator[Sequence[str]]:
        """Of the targets that are left alone, or of those without a place there or not needed."""
        return (each for each in self.others if (each[2] in LEFT_ALONE) is left_alone)

    def in_effect(self) -> str:
        return f"{self.applied} of {self.applied + len(list(self.outcomes(True)))}"

    def text(self) -> str:
        lines = [f"{self.name}, {self.openstack}: {self.in_effect()} in effect"]
        lines += [f"  {name} {version}" for name, version in self.versions.items()]
        return "\n".join([*lines, *("  " + ": ".join(each) for each in self.others)])


def kept() -> list[Platform]:
    """All platforms, the oldest OpenStack first."""
    return [Platform(**each) for each in json.loads(FILE.read_text(encoding="utf-8"))]


def keep(platform: Platform) -> None:
    """Write it in the place of what was kept of the same platform."""
    found = [
        platform if each.name == platform.name and each.openstack == platform.openstack else each for each in kept()
    ]
    text = json.dumps([asdict(each) for each in found], indent=1, ensure_ascii=False)
    FILE.write_text(text + "\n", encoding="utf-8")


def tables(platforms: Sequence[Platform]) -> list[Table]:
    """Return a table of what is in effect where, and the reasons where it is not."""
    columns = ("CPython", "glance", "glance_store", "eventlet")
    effect = [
        [each.openstack, each.name, each.of, *(each.versions.get(name, EMPTY) for name in columns), each.in_effect()]
        for each in platforms
    ]
    reasons = []
    for each in platforms:
        why = dict.fromkeys(f"{patch} ({outcome}: {found})" for patch, _, outcome, found in each.outcomes(True))
        without = sorted({patch for patch, *_ in each.outcomes(False)})
        reasons.append([each.openstack, each.name, "; ".join(why) or EMPTY, ", ".join(without) or EMPTY])
    head = ["OpenStack", "platform"]
    return [
        Table("", [*head, "versions of", "Python", *columns[1:], "in effect"], effect),
        Table("", [*head, "not in effect, and why", "without a place there, or not needed"], reasons),
    ]


def examine(version: str, directory: Path, requirements: Sequence[str]) -> dict[str, Any]:
    """Make an environment in ``directory``, unless it is there; returns what ``fastio status --json`` prints in it.

    :param version: of Python; its minor version is what counts
    :raises Unavailable: if there is no such Python here
    :raises SetupError: if pip fails
    """
    done = directory / "complete"
    if not done.exists():
        make(pythons.find(pythons.minor(version)).path, directory, [*requirements, "-e", f"{ROOT}[test]"])
        done.touch()
    # Its exit status is 1 if something is left alone.
    command = [str(directory / "bin" / "python"), "-W", "ignore", "-m", "fastio", "status", "--json"]
    status = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True, timeout=300).stdout
    found: dict[str, Any] = json.loads(status)
    return found


def environment(**variables: str) -> dict[str, str]:
    """The variables of this process without what steers fastio and Python, and these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "PYTHON"))}
    return {**kept, **variables}


def unsupported(status: Mapping[str, Any]) -> str:
    """The patches that are not for the releases there, for ``TEST_DISABLED``: tests patch strictly."""
    names = {each["name"] for each in status["patches"] if each["outcome"] == Outcome.UNSUPPORTED.value}
    return ",".join(sorted(names))


@terminal.command
def main(argv: Sequence[str] | None = None) -> int:
    about = (__doc__ or "").splitlines()[0]
    known = {each.openstack.split()[0]: each for each in kept() if each.requirements}
    parser = Parser(prog="python -m benchmarks.tools.platforms", description=about)
    parser.add_argument("--directory", type=Path, default=ROOT / ".tox" / "platforms", help="for the environments")
    parser.add_argument("--write", action="store_true", help=f"keep what is in effect in {FILE.name}")
    parser.add_argument("openstack", nargs="*", choices=[[], *known], default=[], help="all by default")
    arguments = parser.parse_args(argv)
    failed = False
    for name in arguments.openstack or known:
        try:
            status = examine(known[name].versions["CPython"], arguments.directory / name, known[name].requirements)
        except (Unavailable, SetupError) as error:
            print(f"{known[name].name}: {error}", file=sys.stderr)
            # That a Python is not here is no failure.
            failed |= isinstance(error, SetupError)
            continue
        platform = known[name].with_status(status)
        print(platform.text(), flush=True)
        if arguments.write:
            keep(platform)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
