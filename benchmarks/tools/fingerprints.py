"""Compares code of upstream's releases with what fastio knows, and adds what somebody has read to the table.

    python -m benchmarks.tools.fingerprints                             # this standard library, and what is installed
    python -m benchmarks.tools.fingerprints eventlet==0.41.4 glance     # releases from PyPI, without one the newest

Each prints a table of the functions whose code nobody has read, and how each differs from the known release before.
The exit status is 1 if there are any, if functions are gone, or if a patch is not made for a release as new as this.

``--accept`` adds to ``fastio/patching/fingerprints.json`` what nobody has to read: releases without new code, other
bytecode of known source, and functions that keep to the contracts of all patches that rely on them. It refuses the
others and says why. A function that is given by its name is added as well: somebody has read it. Each Python adds the
bytecode that it makes; ``--stdlib VERSION=DIRECTORY`` reads another standard library of its minor version. Foreign code
is compiled, and never run. :mod:`benchmarks.tools.debian` runs this inside of Debian's suites.
"""

import difflib
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import tokenize
import urllib.request
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from packaging.requirements import Requirement as PEP508
from packaging.version import Version

from benchmarks.harness import markup
from fastio import terminal
from fastio.arguments import Parser
from fastio.patching import catalogue, contracts, registry, syntax
from fastio.patching.catalogue import CPYTHON, PYTHON, SOURCE
from fastio.patching.fingerprint import Defaults, digest
from fastio.patching.registry import Requirement
from fastio.tables import Table

TABLE = pathlib.Path(__file__).resolve().parents[2] / "fastio" / "patching" / "fingerprints.json"
#: A module of a release of CPython.
UPSTREAM = "https://raw.githubusercontent.com/python/cpython/v{}/Lib/{}"
#: Lines of a difference that are shown.
LONGEST = 40


# What patches declare


class Wanted(NamedTuple):
    """A function that a patch declares."""

    #: as ``module:qualified.name``
    key: str
    #: the range of the patch; None of the standard library
    requirement: Requirement | None


@cache
def declared(python: tuple[int, ...] | None = None) -> list[Wanted]:
    """All that patches declare for that version of Python, or for any: what they replace and what they rely on."""
    of_folder = distributions()
    found = []
    for patch in registry.all_patches():
        for target in patch.targets:
            ranges = {requirement.distribution: requirement for requirement in patch.requirements(target)}
            for key in target.keys_for(python):
                distribution = of_folder.get(key.partition(":")[0].partition(".")[0], CPYTHON)
                found.append(Wanted(key, ranges.get(distribution)))
    return found


@cache
def distributions() -> dict[str, str]:
    """The distributions that are patched, by the name of their folder, which is that of the library."""
    return {folder: Requirement(stated).distribution for folder, stated in registry.libraries().items()}


def wanted_of(distribution: str, version: str) -> dict[str, list[str]]:
    """The functions that are wanted of a release, by module.

    Those of patches that are made for it or for earlier ones: of a release that comes after the range of a patch the
    functions tell whether the range can be wider.
    """
    found: dict[str, dict[str, None]] = {}
    python = tuple(map(int, version.split(".")[:2])) if distribution == CPYTHON else None
    for key, requirement in declared(python):
        if (requirement.distribution if requirement else CPYTHON) == distribution and reaches(requirement, version):
            module, _, name = key.partition(":")
            found.setdefault(module, {})[name] = None
    return {module: list(names) for module, names in found.items()}


@cache
def is_wanted(key: str, release: str) -> bool:
    """Whether a patch may meet the function ``key`` as ``release`` has it."""
    distribution, _, version = release.rpartition(" ")
    module, _, name = key.partition(":")
    return name in wanted_of(distribution, version).get(module, ())


def reaches(requirement: Requirement | None, version: str) -> bool:
    """Whether ``version`` is not older than what is required."""
    bounds = PEP508(str(requirement)).specifier if requirement else ()
    return all(bound.contains(version, prereleases=True) for bound in bounds if bound.operator == ">=")


def refusals(distribution: str, version: str) -> list[str]:
    """The requirements on ``distribution`` that ``version`` is too new for, with the patches that have them."""
    patches: dict[str, list[str]] = {}
    for patch in registry.all_patches():
        for requirement in {each for target in patch.targets for each in patch.requirements(target)}:
            outside = requirement.distribution == distribution and not requirement.accepts(version)
            if outside and reaches(requirement, version):
                patches.setdefault(str(requirement), []).append(patch.name)
    return [f"{requirement} ({', '.join(names)})" for requirement, names in patches.items()]


# Functions and their fingerprints


class Function(NamedTuple):
    """A function of a release."""

    key: str
    #: what counts of the defaults of its arguments
    defaults: Defaults
    source: syntax.Source
    #: without the indentation of its class
    text: str


def functions(root: pathlib.Path, wanted: Mapping[str, Sequence[str]], optimize: int = 0) -> Iterator[Function]:
    """The wanted functions below ``root``; several of a name that is defined more than once.

    :raises SyntaxError: if a module is not for the running Python
    """
    for module, names in wanted.items():
        place = root.joinpath(*module.split("."))
        # What is a package now was one module in earlier releases.
        paths = (place / "__init__.py", place.with_suffix(".py"), place.parent.with_suffix(".py"))
        path = next((path for path in paths if path.exists()), None)
        if path is None:
            continue
        with tokenize.open(path) as file:
            text = file.read()
        last = {name.rpartition(".")[2] for name in names}
        for name, source in syntax.functions(text, str(path), last, optimize):
            if name in names:
                key = f"{module}:{name}"
                lines = text.splitlines(keepends=True)[source.code.co_firstlineno - 1 : source.node.end_lineno]
                yield Function(key, source.defaults, source, textwrap.dedent("".join(lines)))


def hashes(root: pathlib.Path, wanted: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    """``(key, PYTHON or SOURCE, fingerprint)`` of the wanted functions below ``root``.

    The bytecode is what the running Python makes of it at each level of optimisation.
    """
    for level in (0, 1, 2):
        for key, defaults, source, _ in functions(root, wanted, level):
            yield key, PYTHON, digest(source.code, defaults)
            yield key, SOURCE, syntax.fingerprint(source.tree, defaults)


def why_to_read(function: Function) -> str:
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


# A release beside the table


@dataclass(frozen=True)
class New:
    """A function whose code nobody has read."""

    key: str
    release: str
    #: the known release that it is compared with, and a unified diff
    before: str
    difference: Sequence[str]
    #: why it has to be read; empty if it keeps to all contracts
    reason: str

    @property
    def changed(self) -> int:
        """How many lines were taken away or are new."""
        return sum(line[0] in "+-" for line in self.difference[2:])


@dataclass(frozen=True)
class Finding:
    """What became of a release in comparison with those that are known."""

    release: str
    #: whether the table names this very release
    listed: bool = False
    #: functions whose code is known
    known: Sequence[str] = ()
    new: Sequence[New] = ()
    #: functions that the release known before this one has and this one has not
    gone: Sequence[str] = ()
    #: requirements of patches that the version does not meet
    refused: Sequence[str] = ()
    #: ``{key: (PYTHON or SOURCE, fingerprint)}``
    prints: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)

    @property
    def packaged(self) -> bool:
        """Whether it is a revision of a distribution, which is no news without code of its own."""
        return "+" in self.release

    @property
    def unknown(self) -> bool:
        """Whether there is something to read or to decide."""
        return bool(self.new or self.gone or self.refused)

    def __str__(self) -> str:
        lines = [f"{self.release}: functions that are known: {len(self.known)}, new: {len(self.new)}"]
        lines += [f"  gone: {key}" for key in self.gone]
        lines += [f"  not for this version: {text}" for text in self.refused]
        if not self.listed and not self.unknown and not self.packaged and self.known:
            lines.append("  nothing is new, but the table does not have this release")
        return "\n".join(lines)


def examine(
    distribution: str, version: str, root: pathlib.Path, wanted: Mapping[str, Sequence[str]] | None = None
) -> Finding:
    """Compare the functions of the modules below ``root`` with the table.

    :param wanted: by module; what patches declare by default
    :raises SyntaxError: if a module is not for the running Python
    """
    if wanted is None:
        # A release candidate has the functions of its release.
        wanted = wanted_of(distribution, version if distribution == CPYTHON else Version(version).base_version)
    release = f"{distribution} {version}"
    prints: dict[str, list[tuple[str, str]]] = {}
    for key, kind, value in hashes(root, wanted):
        # Of another Python's standard library the bytecode is nothing that anyone has.
        if kind == SOURCE or distribution != CPYTHON or version.startswith(f"{PYTHON}."):
            prints.setdefault(key, []).append((kind, value))
    sources = {key: catalogue.table().get(key, {}).get(SOURCE, {}) for key in _keys(wanted)}
    unknown: dict[str, list[Function]] = {}
    for function in functions(root, wanted):
        if syntax.fingerprint(function.source.tree, function.defaults) not in sources[function.key]:
            unknown.setdefault(function.key, []).append(function)
    before = _before(distribution, version, sources)
    return Finding(
        release,
        listed=any(release in releases(text) for hashes in sources.values() for text in hashes.values()),
        known=[key for key in prints if key not in unknown],
        new=[_new(release, found, before.get(key, "")) for key, found in unknown.items()],
        gone=[key for key, known in before.items() if known == max(before.values(), key=_number) and key not in prints],
        refused=[] if distribution == CPYTHON else refusals(distribution, version),
        prints=prints,
    )


def _keys(wanted: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{module}:{name}" for module, names in wanted.items() for name in names]


def releases(text: str) -> list[str]:
    """Those that a fingerprint in the table stands for."""
    return [release for release in text.split(", ") if release]


def _number(release: str) -> Version:
    return Version(release.rpartition(" ")[2])


def _before(distribution: str, version: str, sources: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The last release up to ``version`` that each function is known in; nothing of those that came later."""
    found = {}
    for key, prints in sources.items():
        known = {release for text in prints.values() for release in releases(text)}
        of_this = [each for each in known if each.rpartition(" ")[0] == distribution]
        if earlier := [each for each in of_this if _number(each) <= Version(version)]:
            found[key] = max(earlier, key=_number)
    return found


def _new(release: str, functions: Sequence[Function], before: str) -> New:
    """The function that differs the most from known code, of several new ones with the same name."""
    reasons = "; ".join(dict.fromkeys(filter(None, map(why_to_read, functions))))
    old = [each.text for each in of_release(functions[0].key, before)] or [""]
    found = []
    for function in functions:
        names = f"{function.key} ({before or 'nothing'})", f"{function.key} ({release})"
        ways = [
            difflib.unified_diff(text.splitlines(), function.text.splitlines(), *names, n=1, lineterm="")
            for text in old
        ]
        found.append(
            min((New(function.key, release, before, list(way), reasons) for way in ways), key=lambda new: new.changed)
        )
    return max(found, key=lambda new: new.changed)


def of_release(key: str, release: str) -> list[Function]:
    """The functions of this name as a release has them that may have to be fetched; empty where it cannot be had."""
    distribution, _, version = release.rpartition(" ")
    module, _, name = key.partition(":")
    # A revision of a distribution is nothing that PyPI has.
    root = fetched(distribution, version.partition("+")[0], module) if release else None
    return list(functions(root, {module: [name]})) if root is not None else []


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@cache
def fetched(distribution: str, version: str, module: str = "") -> pathlib.Path | None:
    """An unpacked wheel, or the module of CPython; None where it cannot be had.

    Kept in ``FINGERPRINT_CACHE``, if that names a directory.
    """
    into = pathlib.Path(os.environ.get("FINGERPRINT_CACHE") or _directory().name, f"{distribution}-{version}")
    root = into / "unpacked"
    if distribution == CPYTHON:
        path = pathlib.Path(*module.split(".")).with_suffix(".py")
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        try:
            with urllib.request.urlopen(UPSTREAM.format(version, path.as_posix()), timeout=60) as answer:
                (root / path).write_bytes(answer.read())
        except OSError as error:
            print(f"{distribution} {version}: {error}", file=sys.stderr)
            return None
    elif not root.exists():
        asked = f"{distribution}=={version}" if version else distribution
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d"]
        if subprocess.run([*command, str(into), asked]).returncode:
            return None
        (wheel,) = into.glob("*.whl")
        zipfile.ZipFile(wheel).extractall(root)
    return root


# What is looked at


def installed() -> Iterator[Finding]:
    """What became of the standard library, and of all that is installed here."""
    version = platform.python_version()
    stdlib = pathlib.Path(sysconfig.get_path("stdlib"))
    yield examine(CPYTHON, revision(stdlib, f"libpython{PYTHON}-minimal", version), stdlib)
    for name in distributions().values():
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            print(f"{name}: not installed")
            continue
        root = pathlib.Path(str(found.locate_file("")))
        package = f"python3-{name.removeprefix('python-').replace('_', '-').lower()}"
        yield examine(name, revision(root, package, found.version), root)


def revision(root: pathlib.Path, package: str, version: str) -> str:
    """Debian's version of what is in its own directories, else ``version``."""
    if not root.is_relative_to("/usr/lib"):
        return version
    command = ["dpkg-query", "--show", "--showformat=${Version}", package]
    try:
        found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    except FileNotFoundError:
        return version
    return plain(found) if found else version


def plain(version: str) -> str:
    """Debian's version as PEP 440 has it, the revision as a local one: ``0.39.1+2.deb13u1`` of ``0.39.1-2+deb13u1``."""
    upstream, rest = re.findall(r"^(?:\d+:)?([^-+]+)(.*)$", version)[0]
    return f"{upstream.replace('~', '')}+{'.'.join(re.findall(r'[a-z0-9]+', rest.lower()))}".removesuffix("+")


def on_pypi(asked: Sequence[str]) -> Iterator[Finding]:
    """What became of these releases, such as ``eventlet==0.41.4``; of the newest if no version is given."""
    for each in asked:
        name, _, version = each.partition("==")
        root = fetched(name, version)
        if root is None:
            yield Finding(each, refused=["PyPI does not have it"])
            continue
        (found,) = importlib.metadata.distributions(path=[str(root)]) if not version else (None,)
        yield examine(name, found.version if found else version, root)


def findings(asked: Sequence[str], stdlib: Sequence[str]) -> Iterator[Finding]:
    """What became of what the command line names."""
    for each in stdlib:
        version, _, directory = each.partition("=")
        if version.startswith(f"{PYTHON}."):
            yield examine(CPYTHON, version, pathlib.Path(directory))
    yield from on_pypi(asked)
    if not (asked or stdlib):
        yield from installed()


# The table


def accept(findings: Sequence[Finding], read: Collection[str]) -> list[New]:
    """Write what is equal in what matters, and what was ``read``, into the table; returns what is left to read."""
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for finding in findings:
        taken = [each.key for each in finding.new if not each.reason or each.key in read]
        if finding.packaged and not taken:
            # A revision of what is known has its name in the table only where it has code of its own.
            continue
        for key in [*finding.known, *taken]:
            for kind, value in finding.prints[key]:
                prints = table.setdefault(key, {}).setdefault(kind, {})
                names = releases(prints.get(value, ""))
                prints[value] = ", ".join(names if finding.release in names else [*names, finding.release])
    TABLE.write_text(json.dumps(looked_up(table), indent=1, sort_keys=True) + "\n")
    return [each for finding in findings for each in finding.new if each.reason and each.key not in read]


def looked_up(table: Mapping[str, Mapping[str, Mapping[str, str]]]) -> dict[str, dict[str, dict[str, str]]]:
    """``table`` without what no patch declares any more, and without releases from before a patch's range."""
    kept: dict[str, dict[str, dict[str, str]]] = {}
    for key, pythons in table.items():
        for python, prints in pythons.items():
            for value, text in prints.items():
                if names := [release for release in releases(text) if is_wanted(key, release)]:
                    kept.setdefault(key, {}).setdefault(python, {})[value] = ", ".join(names)
    return kept


def overview(new: Sequence[New]) -> Table:
    """What is new, function by function."""
    head = ["function", "new in", "compared with", "lines that differ", "taken over by --accept"]
    rows = []
    for each in new:
        taken = f"no: {each.reason}" if each.reason else "yes"
        rows.append([each.key, each.release, each.before, str(each.changed), taken])
    return Table("Functions whose code is new", head, rows)


def differences(new: Sequence[New]) -> str:
    """How each differs from what it is compared with; long ones are cut."""
    shown = []
    for each in new:
        rest = len(each.difference) - LONGEST
        shown += [*each.difference[:LONGEST], *([f"… {rest} more lines"] if rest > 0 else []), ""]
    return "\n".join(shown)


@terminal.command
def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.tools.fingerprints", description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="on PyPI, instead of what is installed")
    parser.add_argument("--stdlib", nargs="+", default=[], metavar="VERSION=DIRECTORY", help="of this Python's minor")
    parser.add_argument("--accept", nargs="*", metavar="FUNCTION", help="take over what is equal in what matters")
    arguments = parser.parse_args(argv)
    found = list(findings(arguments.releases, arguments.stdlib))
    print("\n".join(map(str, found)))
    new = [each for finding in found for each in finding.new]
    if names := set(arguments.accept or ()) - {each.key for each in new}:
        parser.error(f"--accept: not new: {', '.join(sorted(names))}")
    if new:
        table, details = overview(new), differences(new)
        print(f"\n{table.text(terminal.width())}\n\n{details}")
        # The page of a run of GitHub Actions.
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with open(summary, "a", encoding="utf-8") as file:
                file.write(f"{markup.markdown(table)}\n\n```diff\n{details}\n```\n")
    if arguments.accept is not None:
        left = accept(found, arguments.accept)
        print(f"taken over: {len(new) - len(left)} of {len(new)} functions")
        new = left
    unknown = new or any(finding.gone or finding.refused for finding in found)
    if unknown:
        print('doc/source/contributor.rst, "A new upstream release", says what to do')
    return bool(unknown)


if __name__ == "__main__":
    sys.exit(main())
