"""Says what is new in upstream's code, and takes over what is equal in what matters.

    python -m benchmarks.tools.newest [--debian trixie sid …] [--accept [FUNCTION …]]

looks at the standard library of this Python and at all that is patched of the libraries installed here; with
``--debian`` at what these suites of Debian package today. It prints a table of the functions whose code nobody has
read, and how each differs from the known code that it is nearest to.

``--accept`` adds to the fingerprints what nobody has to read: releases without new code, other bytecode of known
source, and functions that keep to the contracts of all patches that rely on them. It refuses the others and says why. A
function that is given by its name is added as well: somebody has read it.

The exit status is 1 if a function is new or gone, or if a patch is not made for a release as new as this one; ``tox -e
newest`` installs the newest releases first.
"""

import importlib.metadata
import os
import pathlib
import platform
import sys
import sysconfig
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.version import Version

from benchmarks.tools import debian, fingerprints, known
from fastio import terminal
from fastio.arguments import Parser
from fastio.patching import catalogue, contracts, registry, syntax
from fastio.patching.catalogue import CPYTHON, PYTHON, SOURCE
from fastio.tables import Table

#: Lines of a difference that are shown.
LONGEST = 40


@dataclass(frozen=True)
class New:
    """A function whose code nobody has read."""

    key: str
    release: str
    #: a known release whose code differs in the fewest lines, and a unified diff
    nearest: str
    difference: Sequence[str]
    #: why it has to be read; empty if it keeps to all contracts
    reason: str


@dataclass(frozen=True)
class Finding:
    """What became of a release in comparison with those that are known."""

    distribution: str
    version: str
    #: whether the table names this very release
    listed: bool
    #: functions whose code is known
    known: Sequence[str] = ()
    #: those of them that this Python makes other bytecode of
    recompiled: Sequence[str] = ()
    new: Sequence[New] = ()
    #: functions that the release known before this one has and this one has not
    gone: Sequence[str] = ()
    #: requirements of patches that the version does not meet
    refused: Sequence[str] = ()
    #: by key, its ``(PYTHON or SOURCE, fingerprint)`` and its texts
    prints: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: of a distribution, whose revisions of a known release are no news
    packaged: str = ""

    @property
    def release(self) -> str:
        return f"{self.distribution} {self.version}"

    @property
    def unknown(self) -> bool:
        """Whether there is something to read or to decide."""
        return bool(self.new or self.gone or self.refused)

    def __str__(self) -> str:
        where = f" ({self.packaged})" if self.packaged else ""
        lines = [f"{self.release}{where}: functions that are known: {len(self.known)}, new: {len(self.new)}"]
        lines += [f"  gone: {key}" for key in self.gone]
        lines += [f"  not for this version: {text}" for text in self.refused]
        if self.recompiled:
            lines.append(f"  known by their source, but not the bytecode of this Python: {len(self.recompiled)}")
        if not self.listed and not self.unknown and not self.packaged and self.known:
            lines.append("  nothing is new, but the table does not have this release")
        return "\n".join(lines)


def examine(
    distribution: str,
    version: str,
    root: pathlib.Path,
    wanted: Mapping[str, Sequence[str]],
    refused: Sequence[str] = (),
    packaged: str = "",
) -> Finding:
    """Compare the functions ``wanted`` of the modules below ``root`` with the table.

    :raises SyntaxError: if a module is not for the running Python
    """
    release = f"{distribution} {version}"
    prints: dict[str, list[tuple[str, str]]] = {}
    for key, kind, value in fingerprints.hashes(root, wanted):
        # Of another Python's standard library the bytecode is nothing that anyone has.
        if kind == SOURCE or distribution != CPYTHON or version.startswith(f"{PYTHON}."):
            prints.setdefault(key, []).append((kind, value))
    functions: dict[str, list[fingerprints.Function]] = {}
    for function in fingerprints.functions(root, wanted):
        functions.setdefault(function.key, []).append(function)
    keys = [f"{module}:{name}" for module, names in wanted.items() for name in names]
    tables = {key: catalogue.table().get(key, {}) for key in keys}

    def has(key: str, kind: str) -> bool:
        return all(value in tables[key].get(kind, {}) for each, value in prints[key] if each == kind)

    new = [key for key in keys if key in prints and not has(key, SOURCE)]
    return Finding(
        distribution,
        version,
        listed=any(release in _releases(table.get(SOURCE, {})) for table in tables.values()),
        known=[key for key in keys if key in prints and key not in new],
        recompiled=[key for key in keys if key in prints and key not in new and not has(key, PYTHON)],
        new=[_new(release, [each for each in functions[key] if not _is_known(each)]) for key in new],
        gone=[key for key in keys if key in _before(distribution, version, tables) and key not in prints],
        refused=refused,
        prints=prints,
        texts={key: [each.text for each in found] for key, found in functions.items()},
        packaged=packaged,
    )


def _is_known(function: fingerprints.Function) -> bool:
    digest = syntax.fingerprint(function.source.tree, function.defaults)
    return digest in catalogue.table().get(function.key, {}).get(SOURCE, {})


def _new(release: str, functions: Sequence[fingerprints.Function]) -> New:
    """The function that differs the most from known code, of several new ones with the same name."""
    found = [(each, *known.nearest(each.key, each.text, release)) for each in functions]
    function, nearest, difference = max(found, key=lambda each: known.changed(each[2]))
    reasons = dict.fromkeys(filter(None, map(why_to_read, functions)))
    return New(function.key, release, nearest, difference, "; ".join(reasons))


def why_to_read(function: fingerprints.Function) -> str:
    """Why somebody has to read a function that is not known; empty if it keeps to the contracts of all patches."""
    source = function.source._replace(defaults=function.defaults)
    reasons: dict[str, list[str]] = {}
    for patch in registry.all_patches():
        for target in patch.targets:
            if function.key not in target.keys_for(None):
                continue
            stub = contracts.stubs(target.contract).get(registry.last_name(function.key))
            reason = contracts.violation_of_source(stub, source) if stub else "its code has to be known"
            if reason and patch.name not in reasons.setdefault(reason, []):
                reasons[reason].append(patch.name)
    return "; ".join(f"{reason} ({', '.join(names)})" for reason, names in reasons.items())


def _releases(table: Mapping[str, str]) -> set[str]:
    return {release for releases in table.values() for release in releases.split(", ")}


def _before(distribution: str, version: str, tables: Mapping[str, Mapping[str, Mapping[str, str]]]) -> set[str]:
    """The functions of the release of ``distribution`` that is known last before ``version``, or of that one itself."""
    of_key = {key: _releases(table.get(SOURCE, {})) for key, table in tables.items()}
    versions = {
        found: release
        for releases in of_key.values()
        for release in releases
        if release.rpartition(" ")[0] == distribution
        and (found := Version(release.rpartition(" ")[2])) <= Version(version)
    }
    return {key for key, releases in of_key.items() if versions and versions[max(versions)] in releases}


def refusals(distribution: str, version: str) -> list[str]:
    """The requirements on ``distribution`` that ``version`` does not meet, with the patches that have them.

    Not those for later releases only: an old release is no news.
    """
    patches: dict[str, list[str]] = {}
    for patch in registry.all_patches():
        for requirement in {each for target in patch.targets for each in patch.requirements(target)}:
            outside = requirement.distribution == distribution and not requirement.accepts(version)
            if outside and fingerprints.reaches(requirement, version):
                patches.setdefault(str(requirement), []).append(patch.name)
    return [f"{requirement} ({', '.join(names)})" for requirement, names in patches.items()]


def installed() -> Iterator[Finding]:
    """What became of all that is installed here."""
    stdlib = pathlib.Path(sysconfig.get_path("stdlib"))
    version = platform.python_version()
    yield examine(CPYTHON, version, stdlib, fingerprints.wanted_of(CPYTHON, version))
    for name in fingerprints.distributions().values():
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            print(f"{name}: not installed")
            continue
        yield _library(name, found.version, pathlib.Path(str(found.locate_file(""))))


def of_suites(names: Sequence[str]) -> Iterator[Finding]:
    """What became of the Pythons and the libraries that these suites of Debian have.

    :raises debian.DebianError: if their packages cannot be had
    """
    for name in names:
        with tempfile.TemporaryDirectory() as directory:
            yield from packaged(debian.Suite(name, pathlib.Path(directory)))


def packaged(suite: debian.Suite) -> Iterator[Finding]:
    """The same of one suite."""
    suite.update()
    libraries = {debian.library(name): name for name in fingerprints.distributions().values()}
    where = f"Debian {suite.name}"
    # All are unpacked first: a Python's modules are in two packages.
    for package in list(suite.unpack([*suite.pythons(), *libraries])):
        if package.name in libraries:
            yield _library(libraries[package.name], package.version, suite.root / debian.LIBRARIES, where)
        elif python := debian.STDLIB.fullmatch(package.name):
            root = suite.root / f"usr/lib/python{python[1]}"
            wanted = fingerprints.wanted_of(CPYTHON, package.version)
            try:
                yield examine(CPYTHON, package.version, root, wanted, packaged=where)
            except SyntaxError as error:
                told = f"Python {PYTHON} cannot read its modules: {error}"
                yield Finding(CPYTHON, package.version, listed=False, refused=[told], packaged=where)


def _library(name: str, version: str, root: pathlib.Path, where: str = "") -> Finding:
    # A release candidate has the functions of its release.
    wanted = fingerprints.wanted_of(name, Version(version).base_version)
    return examine(name, version, root, wanted, refusals(name, version), where)


def accept(findings: Sequence[Finding], read: Collection[str]) -> list[New]:
    """Write what is equal in what matters, and what was ``read``, into the tables; returns what is left to read."""
    entries: dict[str, list[tuple[str, str, str]]] = {}
    for finding in findings:
        taken = [each.key for each in finding.new if not each.reason or each.key in read]
        if finding.packaged and not taken:
            # A revision of what is known has its name in the table only where it has code of its own.
            continue
        for key in [*finding.known, *taken]:
            entries.setdefault(key, []).extend((*each, finding.release) for each in finding.prints[key])
            for text in finding.texts[key]:
                known.add(key, text, finding.release)
    fingerprints.merge(entries)
    return [each for finding in findings for each in finding.new if each.reason and each.key not in read]


def table(new: Sequence[New]) -> Table:
    """What is new, function by function."""
    head = ["function", "new in", "nearest known", "lines that differ", "taken over by --accept"]
    rows = []
    for each in new:
        taken = f"no: {each.reason}" if each.reason else "yes"
        rows.append([each.key, each.release, each.nearest, str(known.changed(each.difference)), taken])
    return Table("Functions whose code is new", head, rows)


def differences(new: Sequence[New]) -> str:
    """How each differs from what it is nearest to; long ones are cut."""
    shown = []
    for each in new:
        rest = len(each.difference) - LONGEST
        shown += [*each.difference[:LONGEST], *([f"… {rest} more lines"] if rest > 0 else []), ""]
    return "\n".join(shown)


@terminal.command
def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.tools.newest", description=__doc__.splitlines()[0])
    parser.add_argument("--debian", nargs="+", metavar="SUITE", help="what these suites package, not what is installed")
    parser.add_argument("--accept", nargs="*", metavar="FUNCTION", help="take over what is equal in what matters")
    arguments = parser.parse_args(argv)
    try:
        findings = list(of_suites(arguments.debian) if arguments.debian else installed())
    except debian.DebianError as error:
        print(error, file=sys.stderr)
        return 2
    for finding in findings:
        print(finding)
    new = [each for finding in findings for each in finding.new]
    unknown_names = set(arguments.accept or ()) - {each.key for each in new}
    if unknown_names:
        parser.error(f"--accept: not new: {', '.join(sorted(unknown_names))}")
    if new:
        overview, details = table(new), differences(new)
        print(f"\n{overview.text(terminal.width())}\n\n{details}")
        # The page of a run of GitHub Actions.
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with open(summary, "a", encoding="utf-8") as file:
                file.write(f"{overview.markdown()}\n\n```diff\n{details}\n```\n")
    if arguments.accept is not None:
        left = accept(findings, arguments.accept)
        print(f"taken over: {len(new) - len(left)} of {len(new)} functions")
        new = left
    unknown = new or any(finding.gone or finding.refused for finding in findings)
    if unknown:
        print('doc/source/contributor.rst, "A new upstream release", says what to do')
    return bool(unknown)


if __name__ == "__main__":
    sys.exit(main())
