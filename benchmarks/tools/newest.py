"""Compares the code of what is installed here with what fastio knows, and says what is new.

``python -m benchmarks.tools.newest`` looks at the standard library of this Python and at all distributions
that are patched. The exit status is 1 if a function is not known or not there any more, or if a
patch is not made for the version that is installed; ``tox -e newest`` installs the newest releases first.
"""

from __future__ import annotations

import importlib.metadata
import pathlib
import platform
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.version import Version

from benchmarks.tools import fingerprints
from fastio.patching import catalogue, registry


@dataclass(frozen=True)
class Finding:
    """What became of a release in comparison with those that are known."""

    distribution: str
    version: str
    #: whether the table names this very release
    listed: bool
    #: functions whose code is known
    known: Sequence[str]
    #: functions whose code nobody has read
    new: Sequence[str]
    #: functions that the newest known release has and this one has not
    gone: Sequence[str]
    #: requirements of patches that the version does not meet
    refused: Sequence[str]

    @property
    def unknown(self) -> bool:
        """Whether there is something to read or to decide."""
        return bool(self.new or self.gone or self.refused)

    def __str__(self) -> str:
        lines = [f"{self.distribution} {self.version}: functions that are known: {len(self.known)}"]
        lines += [f"  new: {key}" for key in self.new]
        lines += [f"  gone: {key}" for key in self.gone]
        lines += [f"  not for this version: {text}" for text in self.refused]
        if not self.listed and not self.unknown:
            lines.append("  nothing is new, but the table does not have this release")
        return "\n".join(lines)


def examine(
    distribution: str,
    version: str,
    root: pathlib.Path,
    wanted: Mapping[str, Sequence[str]],
    refused: Sequence[str] = (),
) -> Finding:
    """Compare the sources of the functions ``wanted`` of the modules below ``root`` with the table."""
    found: dict[str, set[str]] = {}
    for key, kind, value in fingerprints.hashes(root, wanted):
        if kind == catalogue.SOURCE:
            found.setdefault(key, set()).add(value)
    keys = [f"{module}:{name}" for module, names in wanted.items() for name in names]
    tables = {key: catalogue.table().get(key, {}).get(catalogue.SOURCE, {}) for key in keys}
    known = [key for key in keys if key in found and found[key] <= set(tables[key])]
    expected = _keys_of_newest(distribution, tables)
    return Finding(
        distribution=distribution,
        version=version,
        listed=any(f"{distribution} {version}" in _releases(table) for table in tables.values()),
        known=known,
        new=[key for key in keys if key in found and key not in known],
        gone=[key for key in keys if key in expected and key not in found],
        refused=refused,
    )


def _releases(table: Mapping[str, str]) -> set[str]:
    return {release for releases in table.values() for release in releases.split(", ")}


def _keys_of_newest(distribution: str, tables: Mapping[str, Mapping[str, str]]) -> set[str]:
    """The functions that the newest known release of ``distribution`` has."""
    releases = {release for table in tables.values() for release in _releases(table)}
    names = [release for release in releases if release.startswith(distribution + " ")]
    if not names:
        return set()
    newest = max(names, key=lambda release: Version(release.rpartition(" ")[2]))
    return {key for key, table in tables.items() if newest in _releases(table)}


def refusals(distribution: str, version: str) -> list[str]:
    """The requirements on ``distribution`` that ``version`` does not meet, with the patches that have them."""
    patches: dict[str, list[str]] = {}
    for patch in registry.all_patches():
        for requirement in {each for target in patch.targets for each in patch.requirements(target)}:
            if requirement.distribution == distribution and not requirement.accepts(version):
                patches.setdefault(str(requirement), []).append(patch.name)
    return [f"{requirement} ({', '.join(names)})" for requirement, names in patches.items()]


def findings() -> Iterable[Finding]:
    """What became of all that is installed."""
    stdlib = pathlib.Path(sysconfig.get_path("stdlib"))
    version = platform.python_version()
    yield examine(fingerprints.CPYTHON, version, stdlib, fingerprints.wanted_of(fingerprints.CPYTHON, version))
    for name in fingerprints.distributions().values():
        try:
            installed = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            print(f"{name}: not installed")
            continue
        # A release candidate has the functions of its release.
        wanted = fingerprints.wanted_of(name, Version(installed.version).base_version)
        root = pathlib.Path(str(installed.locate_file("")))
        yield examine(name, installed.version, root, wanted, refusals(name, installed.version))


def main() -> int:
    unknown = []
    for finding in findings():
        print(finding)
        if finding.unknown:
            unknown.append(finding)
    if unknown:
        releases = ", ".join(f"{finding.distribution} {finding.version}" for finding in unknown)
        print(f"to be read: {releases}; doc/source/contributor.rst says what to do then")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
