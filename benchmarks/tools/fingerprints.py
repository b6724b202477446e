"""Compares code of upstream's releases with the known code, and adds reviewed code to the table.

    python -m benchmarks.tools.fingerprints                             # this standard library, and what is installed
    python -m benchmarks.tools.fingerprints eventlet==0.41.4 glance     # releases from PyPI, without one the newest
    python -m benchmarks.tools.fingerprints CPython==3.14.1             # the standard library of a release

Each prints the functions whose code is not reviewed, with the difference to the known release before, and those that
are gone or lack a part that a patch uses. The exit status is 1 if there are any, or if a patch is not made for a
release as new as this.

``--accept`` adds releases without new code to ``fastio/patching/fingerprints.json``, and functions that it names as
reviewed. Foreign code is compiled, and never run. :mod:`benchmarks.tools.debian` runs this inside of Debian's suites.
"""

import ast
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

from fastio import terminal
from fastio.arguments import Parser
from fastio.patching import known_code, registry, sources
from fastio.patching.known_code import CPYTHON, PYTHON, Uses
from fastio.patching.registry import Patch, Requirement

TABLE = pathlib.Path(__file__).resolve().parents[2] / "fastio" / "patching" / "fingerprints.json"
#: A module of a release of CPython.
UPSTREAM = "https://raw.githubusercontent.com/python/cpython/v{}/Lib/{}"


def declared(python: str | None = None) -> Iterator[tuple[str, Uses, Requirement | None, Patch]]:
    """Return the code that patches rely on under that Python, or under any: function, use, range of versions, patch.

    The standard library has no range.
    """
    of_folder = distributions()
    for patch in registry.all_patches():
        for target in patch.targets:
            ranges = {requirement.distribution: requirement for requirement in patch.requirements(target)}
            for key, uses in target.functions(python).items():
                distribution = of_folder.get(key.partition(":")[0].partition(".")[0], CPYTHON)
                yield key, uses, ranges.get(distribution), patch


@cache
def distributions() -> dict[str, str]:
    """The distributions that are patched, by the name of their folder, which is that of the library."""
    return {folder: Requirement(stated).distribution for folder, stated in registry.libraries().items()}


@cache
def wanted_of(distribution: str, version: str) -> dict[str, dict[Uses, list[str]]]:
    """Return the code of a release that is relied on: function, use, patches.

    It is the code of patches that are made for it or for earlier ones: of a release that comes after the range of a
    patch the functions show whether the range can be wider.
    """
    found: dict[str, dict[Uses, list[str]]] = {}
    python = ".".join(version.split(".")[:2]) if distribution == CPYTHON else None
    for key, uses, requirement, patch in declared(python):
        of_this = (requirement.distribution if requirement else CPYTHON) == distribution
        needed = not patch.not_needed_here(lambda name: version if name == distribution else None)
        if of_this and needed and reaches(requirement, version):
            patches = found.setdefault(key, {}).setdefault(uses, [])
            patches += [patch.name] * (patch.name not in patches)
    return found


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


class Function(NamedTuple):
    """A function of a release."""

    key: str
    hashed: str
    #: used parts that are missing, with the patches that use them
    lacking: str
    #: without the indentation of its class
    text: str


def functions(root: pathlib.Path, wanted: Mapping[str, Mapping[Uses, Sequence[str]]]) -> Iterator[Function]:
    """The wanted functions below ``root``; several of a name that is defined more than once.

    :raises SyntaxError: if a module is not for the running Python
    """
    for module in dict.fromkeys(key.partition(":")[0] for key in wanted):
        place = root.joinpath(*module.split("."))
        # A package may have been one module in earlier releases.
        paths = (place / "__init__.py", place.with_suffix(".py"), place.parent.with_suffix(".py"))
        path = next((path for path in paths if path.exists()), None)
        if path is None:
            continue
        with tokenize.open(path) as file:
            text = file.read()
        compiled = compile(text, str(path), "exec", dont_inherit=True)
        codes = {(code.co_name, code.co_firstlineno): code for code in sources.codes(compiled)}
        named = list(_named(ast.parse(text)))
        # Of a class or a module that a release has not got, nothing is missed.
        there = {name for name, _ in named} | {""}
        for key in wanted.keys() - {f"{module}:{name}" for name, _ in named}:
            if key.startswith(f"{module}:") and key.partition(":")[2].rpartition(".")[0] in there:
                yield Function(key, "", "is gone", "")
        for name, node in named:
            if (key := f"{module}:{name}") in wanted and not isinstance(node, ast.ClassDef):
                first = min(each.lineno for each in (node, *node.decorator_list))
                defaults = _defaults(node.args)
                lacking = {
                    f"{reason} ({', '.join(patches)})"
                    for uses, patches in wanted[key].items()
                    if uses.parameters is not None
                    and (reason := known_code.lacks(uses, codes[node.name, first], defaults))
                }
                lines = text.splitlines(keepends=True)[first - 1 : node.end_lineno]
                hashed = sources.hash_tree(sources.spell(node), defaults)
                yield Function(key, hashed, "; ".join(sorted(lacking)), textwrap.dedent("".join(lines)))


def _named(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, sources.Function | ast.ClassDef]]:
    """The functions and classes of a module with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield prefix + child.name, child
            yield from _named(child, f"{prefix}{child.name}.")
        else:
            yield from _named(child, prefix)


def _defaults(arguments: ast.arguments) -> sources.Defaults:
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return (
        [_default(value) for value in arguments.defaults],
        {argument.arg: _default(value) for argument, value in keyword if value is not None},
    )


def _default(expression: ast.expr) -> str:
    """The value of a literal as :func:`fastio.patching.sources.plain` has it. Nothing is evaluated."""
    try:
        return sources.plain(ast.literal_eval(expression))
    except (ValueError, TypeError, RecursionError):
        return sources.NOT_PLAIN


@dataclass(frozen=True)
class New:
    """A function whose code is not reviewed."""

    key: str
    release: str
    hashed: str
    #: the known release that it is compared with, and a unified diff
    before: str
    difference: Sequence[str]


@dataclass(frozen=True)
class Finding:
    """The comparison of a release with the known ones."""

    release: str
    #: whether the table names this very release
    listed: bool = False
    #: hashes that are known, by function
    known: Mapping[str, Collection[str]] = field(default_factory=dict)
    new: Sequence[New] = ()
    #: used parts that are missing, by function
    lacking: Mapping[str, str] = field(default_factory=dict)
    #: requirements of patches that the version does not meet
    refused: Sequence[str] = ()

    @property
    def unknown(self) -> bool:
        """Whether there is something to read or to decide."""
        return bool(self.new or self.lacking or self.refused)

    def __str__(self) -> str:
        lines = [f"{self.release}: functions that are known: {len(self.known)}, new: {len(self.new)}"]
        lines += [f"  {key}: {reason}" for key, reason in self.lacking.items()]
        lines += [f"  not for this version: {text}" for text in self.refused]
        for new in self.new:
            changed = sum(line[0] in "+-" for line in new.difference[2:])
            lines.append(f"  new: {new.key}, compared with {new.before or 'nothing'}: {changed} lines differ")
            lines += new.difference
        if not self.listed and not self.unknown and "+" not in self.release and self.known:
            lines.append("  nothing is new, but the table does not have this release")
        return "\n".join(lines)


def examine(distribution: str, version: str, root: pathlib.Path) -> Finding:
    """Compare the functions of the modules below ``root`` with the table.

    :raises SyntaxError: if a module is not for the running Python
    """
    # A release candidate has the functions of its release.
    wanted = wanted_of(distribution, version if distribution == CPYTHON else Version(version).base_version)
    found = list(functions(root, wanted))
    table, known, new = known_code.table(), dict[str, list[str]](), list[New]()
    for function in found:
        if not function.hashed or all(use.parameters is not None for use in wanted[function.key]):
            continue
        if function.hashed in table.get(function.key, {}):
            known.setdefault(function.key, []).append(function.hashed)
        else:
            new.append(_compared(function, distribution, version))
    lacking = {key: [each.lacking for each in found if each.key == key] for key in wanted}
    return Finding(
        f"{distribution} {version}",
        any(version in known_code.releases(key).get(distribution, ()) for key in known),
        {key: hashes for key, hashes in known.items() if key not in {each.key for each in new}},
        new,
        # Some of the standard library's functions are there for two systems.
        {key: reasons[-1] for key, reasons in lacking.items() if reasons and all(reasons)},
        [] if distribution == CPYTHON else refusals(distribution, version),
    )


def _compared(function: Function, distribution: str, version: str) -> New:
    """The function beside the last known release up to this one that has it and can be had."""
    known = known_code.releases(function.key).get(distribution, [])
    earlier = [each for each in known if Version(each) <= Version(version)]
    before = f"{distribution} {max(earlier, key=Version)}" if earlier else ""
    release = f"{distribution} {version}"
    names = f"{function.key} ({before or 'nothing'})", f"{function.key} ({release})"
    ways = [
        list(difflib.unified_diff(text.splitlines(), function.text.splitlines(), *names, n=1, lineterm=""))
        for text in [each.text for each in of_release(function.key, before)] or [""]
    ]
    return New(function.key, release, function.hashed, before, min(ways, key=len))


def of_release(key: str, release: str) -> list[Function]:
    """The functions of this name as a release has them that may have to be fetched; empty where it cannot be had."""
    distribution, _, version = release.partition(" ")
    # A revision of a distribution is nothing that PyPI has.
    root = fetched(distribution, version.partition("+")[0], [key.partition(":")[0]]) if release else None
    return list(functions(root, {key: {}})) if root is not None else []


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def fetched(distribution: str, version: str, modules: Sequence[str]) -> pathlib.Path | None:
    """An unpacked wheel, or these modules of CPython; None where it cannot be had.

    Kept in ``FINGERPRINT_CACHE``, if that names a directory.
    """
    into = pathlib.Path(os.environ.get("FINGERPRINT_CACHE") or _directory().name, f"{distribution}-{version}")
    root = into / "unpacked"
    if distribution == CPYTHON:
        for path in (pathlib.Path(*module.split(".")).with_suffix(".py") for module in modules):
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


def installed() -> Iterator[Finding]:
    """Compare the standard library, and all that is installed here."""
    stdlib = pathlib.Path(sysconfig.get_path("stdlib"))
    version = revision(stdlib, f"libpython{PYTHON}-minimal", platform.python_version())
    yield examine(CPYTHON, version, stdlib)
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


def published(asked: Sequence[str]) -> Iterator[Finding]:
    """Compare these releases, such as ``eventlet==0.41.4``; the newest if no version is given."""
    for each in asked:
        name, _, version = each.partition("==")
        modules = {key.partition(":")[0] for key in wanted_of(name, version)} if name == CPYTHON else ()
        root = fetched(name, version, sorted(modules))
        if root is None:
            yield Finding(each, refused=["it cannot be had"])
            continue
        (found,) = importlib.metadata.distributions(path=[str(root)]) if not version else (None,)
        yield examine(name, found.version if found else version, root)


def accept(findings: Sequence[Finding], read: Collection[str]) -> None:
    """Write releases without new code, and what was ``read``, into the table."""
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for finding in findings:
        distribution, _, version = finding.release.partition(" ")
        taken = [(each.key, each.hashed) for each in finding.new if each.key in read]
        # A revision of what is known has its name in the table only where its code differs.
        known = finding.known if taken or "+" not in version else {}
        for key, hashed in [*((key, hashed) for key, of in known.items() for hashed in of), *taken]:
            of_hash = table.setdefault(key, {})
            versions = {*of_hash.get(hashed, distribution).split(" ")[1:], version}
            of_hash[hashed] = " ".join([distribution, *known_code.ordered(versions)])
    wanted = {key for key, uses, *_ in declared() if uses.parameters is None}
    kept = {key: of for key, of in table.items() if key in wanted}
    TABLE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


@terminal.command
def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.tools.fingerprints", description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="instead of what is installed")
    parser.add_argument(
        "--accept", nargs="*", metavar="FUNCTION", help="take over releases, and these functions as reviewed"
    )
    arguments = parser.parse_args(argv)
    found = list(published(arguments.releases) if arguments.releases else installed())
    shown = "\n".join(map(str, found))
    print(shown)
    new = {each.key for finding in found for each in finding.new}
    if names := set(arguments.accept or ()) - new:
        parser.error(f"--accept: not new: {', '.join(sorted(names))}")
    # The page of a run of GitHub Actions.
    if new and (summary := os.environ.get("GITHUB_STEP_SUMMARY")):
        with open(summary, "a", encoding="utf-8") as file:
            file.write(f"```diff\n{shown}\n```\n")
    if arguments.accept is not None:
        accept(found, arguments.accept)
        new -= set(arguments.accept)
    unknown = new or any(finding.lacking or finding.refused for finding in found)
    if unknown:
        print('doc/source/contributor.rst, "A new upstream release", says what to do')
    return bool(unknown)


if __name__ == "__main__":
    sys.exit(main())
