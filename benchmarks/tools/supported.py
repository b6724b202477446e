"""The releases that fastio knows, and the releases that were tested together.

Nothing here is written by hand. The ranges come from the registry, the known releases from ``fingerprints.json``, and
the tested ones from ``tested.json``, which ``python -m benchmarks.tools.matrix`` writes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from fastio.patching import catalogue, registry
from fastio.patching.registry import Requirement, Target
from fastio.tables import Table

TESTED = Path(__file__).with_name("tested.json")
#: What the environments differ in, besides Python.
DISTRIBUTIONS = ("eventlet", "oslo.concurrency", "glance_store")


@dataclass(frozen=True)
class Row:
    """One attribute that a patch replaces."""

    patch: str
    #: ``module:qualified.attribute``
    target: str
    #: the ranges of versions that the patch is for; empty where only Python counts
    requires: Sequence[str]
    #: distribution: those of its releases in which all the code is known that the target relies on
    known: dict[str, list[str]]
    #: whether ``patch()`` without names applies it
    default: bool = True

    def spans(self) -> str:
        """The known releases as people read them: ``eventlet 0.34.3 to 0.41.3``."""
        return ", ".join(_span(name, versions) for name, versions in self.known.items())


@dataclass(frozen=True)
class Environment:
    """Releases that were installed together, and the tests that passed there; none has failed."""

    python: str
    #: distribution: version
    versions: dict[str, str]
    #: how many tests passed and were skipped, natively and with ``eventlet.monkey_patch()`` before everything
    native: dict[str, int]
    monkey_patched: dict[str, int] = field(default_factory=dict)
    #: what pip installs, and tests that are left out
    requirements: Sequence[str] = ()
    without: Sequence[str] = ()


def rows() -> list[Row]:
    """A row for each target, in the order of application."""
    found = []
    for patch in registry.patches():
        for target in patch.targets:
            requires = patch.requirements(target)
            known = known_releases(target, requires)
            required = [str(requirement) for requirement in requires]
            found.append(Row(patch.name, target.key, required, known, patch.default))
    return found


def known_releases(target: Target, requires: Sequence[Requirement]) -> dict[str, list[str]]:
    """``{distribution: versions}`` within ``requires`` in which all is known that ``target`` relies on.

    On some Python: a release need not be known on each of them.
    """
    known: dict[str, set[str]] = {}
    for key in target.keys_for(None):
        for name, versions in _releases(key).items():
            if name == catalogue.CPYTHON:
                versions = versions | {each for each in _pythons() if key not in target.keys_for(_minor(each))}
            known[name] = known[name] & versions if name in known else set(versions)
    for requirement in requires:
        if requirement.distribution in known:
            known[requirement.distribution] = set(filter(requirement.accepts, known[requirement.distribution]))
    return {name: catalogue.ordered(versions) for name, versions in known.items()}


def all_releases() -> dict[str, list[str]]:
    """``{distribution: versions}`` of which some code is known."""
    known: dict[str, set[str]] = {}
    for key in catalogue.table():
        for name, versions in _releases(key).items():
            known.setdefault(name, set()).update(versions)
    return {name: catalogue.ordered(known[name]) for name in sorted(known, key=str.lower)}


@lru_cache(maxsize=1)
def tested() -> list[Environment]:
    """The environments in which the tests have passed, as committed."""
    entries = json.loads(TESTED.read_text(encoding="utf-8"))
    return [Environment(**entry) for entry in entries]


def patches_table() -> Table:
    """The patches; the targets of a patch of which the same holds share a row."""
    alike: dict[tuple[str, str, str, str], int] = {}
    for row in rows():
        cells = (row.patch, "yes" if row.default else "no", row.spans(), ", ".join(row.requires) or "-")
        alike[cells] = alike.get(cells, 0) + 1
    head = ["patch", "targets", "in the default", "known releases", "applied to"]
    return Table("", head, [[patch, str(count), *others] for (patch, *others), count in alike.items()])


def tested_table() -> Table:
    """The environments."""
    title = "Tested together (tests that passed + that were skipped; none has failed):"
    head = ["Python", *DISTRIBUTIONS, "native", "monkey patched"]
    rows = [
        [
            environment.python,
            *(environment.versions.get(name, "-") for name in DISTRIBUTIONS),
            _counts(environment.native),
            _counts(environment.monkey_patched),
        ]
        for environment in tested()
    ]
    return Table(title, head, rows)


def _releases(key: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for hashes in catalogue.table().get(key, {}).values():
        for releases in hashes.values():
            for release in releases.split(", "):
                name, _, version = release.rpartition(" ")
                found.setdefault(name, set()).add(version)
    return found


@lru_cache(maxsize=1)
def _pythons() -> list[str]:
    return all_releases()[catalogue.CPYTHON]


def _minor(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def _span(name: str, versions: Sequence[str]) -> str:
    return catalogue.span(", ".join(f"{name} {version}" for version in versions)) if versions else f"{name}: none"


def _counts(run: dict[str, int]) -> str:
    return f"{run['passed']} + {run['skipped']}" if run else "-"
