"""Writes ``fastio/patching/fingerprints.json``: the code of upstream's releases that fastio knows.

    python -m benchmarks.tools.fingerprints --python python3.10 python3.11 --eventlet 0.40.4 0.41.3 --oslo 7.6.1 \\
        --glance-store 5.6.0 5.7.0

The functions are those that the patches declare. Each interpreter hashes its own standard library, the given releases
of the libraries that are patched (downloaded with pip; an option for each folder of ``fastio.patches``) and further
versions of the standard library of its minor version given by ``--stdlib VERSION=DIRECTORY``: the bytecode that it
makes of them, and their sources, which are the same whichever interpreter reads them. A new release is added
only after somebody has read what changed in it; the file is merged, never started anew, unless ``--fresh`` is given.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import tokenize
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from packaging.requirements import Requirement as PEP508

from benchmarks.tools import known
from fastio.arguments import Parser
from fastio.patching import registry, syntax
from fastio.patching.catalogue import CPYTHON, PYTHON, SOURCE
from fastio.patching.fingerprint import Defaults, digest
from fastio.patching.registry import Requirement

TABLE = pathlib.Path(__file__).resolve().parents[2] / "fastio" / "patching" / "fingerprints.json"
#: ``{key: {minor version of Python, or SOURCE: {fingerprint: releases}}}``
Table = dict[str, dict[str, dict[str, str]]]


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


@cache
def without_defaults() -> frozenset[str]:
    """The keys of functions whose code upstream has, but not their defaults."""
    targets = (target for patch in registry.all_patches() for target in patch.targets)
    return frozenset(target.keys[0] for target in targets if target.without_defaults)


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
        path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if not path.exists():
            # What is a package now was one module in earlier releases.
            path = place.parent.with_suffix(".py")
        if not path.exists():
            continue
        with tokenize.open(path) as file:
            text = file.read()
        last = {name.rpartition(".")[2] for name in names}
        for name, source in syntax.functions(text, str(path), last, optimize):
            if name in names:
                key = f"{module}:{name}"
                defaults = Defaults() if key in without_defaults() else source.defaults
                lines = text.splitlines(keepends=True)[source.code.co_firstlineno - 1 : source.node.end_lineno]
                yield Function(key, defaults, source, textwrap.dedent("".join(lines)))


def hashes(root: pathlib.Path, wanted: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    """``(key, PYTHON or SOURCE, fingerprint)`` of the wanted functions below ``root``.

    The bytecode is what the running Python makes of it at each level of optimisation.
    """
    for level in (0, 1, 2):
        for key, defaults, source, _ in functions(root, wanted, level):
            yield key, PYTHON, digest(source.code, defaults)
            yield key, SOURCE, syntax.fingerprint(source.tree, defaults)


def download(distribution: str, version: str, into: pathlib.Path) -> pathlib.Path | None:
    """An unpacked wheel, or None where pip has none; kept in ``FINGERPRINT_CACHE``, if that names a directory."""
    if cache := os.environ.get("FINGERPRINT_CACHE"):
        into = pathlib.Path(cache, f"{distribution}-{version}")
        if (into / "unpacked").exists():
            return into / "unpacked"
        into.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", str(into)]
    if subprocess.run([*command, f"{distribution}=={version}"]).returncode:
        return None
    (wheel,) = into.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(into / "unpacked")
    return into / "unpacked"


def collect(arguments: argparse.Namespace) -> dict[str, list[tuple[str, str, str]]]:
    """``{key: [(PYTHON or SOURCE, fingerprint, release)]}``, as the running interpreter has them."""
    found: dict[str, list[tuple[str, str, str]]] = {}

    def add(root: pathlib.Path, wanted: Mapping[str, Sequence[str]], release: str) -> None:
        for key, kind, value in hashes(root, wanted):
            found.setdefault(key, []).append((kind, value, release))
        for function in functions(root, wanted):
            known.add(function.key, function.text, release)

    def add_stdlib(root: pathlib.Path, version: str) -> None:
        add(root, wanted_of(CPYTHON, version), f"{CPYTHON} {version}")

    add_stdlib(pathlib.Path(sysconfig.get_path("stdlib")), platform.python_version())
    for spec in arguments.stdlib:
        version, _, directory = spec.partition("=")
        if version.rpartition(".")[0] == PYTHON:
            add_stdlib(pathlib.Path(directory), version)
    for folder, distribution in distributions().items():
        for version in getattr(arguments, folder):
            with tempfile.TemporaryDirectory() as directory:
                root = download(distribution, version, pathlib.Path(directory))
                if root is not None:
                    add(root, wanted_of(distribution, version), f"{distribution} {version}")
    return found


def releases(text: str) -> list[str]:
    return [release for release in text.split(", ") if release]


def option(name: str) -> str:
    return "--" + name.replace("_", "-")


def main() -> None:
    parser = Parser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", nargs="*", default=[], help="interpreters to run; by default only this one")
    parser.add_argument("--stdlib", nargs="*", default=[], metavar="VERSION=DIRECTORY")
    for folder in distributions():
        parser.add_argument(option(folder), nargs="*", default=[], metavar="VERSION")
    parser.add_argument("--fresh", action="store_true", help="forget what the table holds")
    arguments = parser.parse_args()
    if arguments.fresh:
        TABLE.write_text("{}\n")
    if arguments.python:
        rest = [word for name in ("stdlib", *distributions()) for word in (option(name), *getattr(arguments, name))]
        for python in arguments.python:
            subprocess.run([python, "-m", "benchmarks.tools.fingerprints", *rest], check=True)
        return
    merge(collect(arguments))


def merge(found: Mapping[str, Sequence[tuple[str, str, str]]]) -> None:
    """Write what :func:`collect` has found into the table, beside what is there, and the texts that go with it."""
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for key, entries in found.items():
        for kind, value, release in entries:
            prints = table.setdefault(key, {}).setdefault(kind, {})
            names = releases(prints.get(value, ""))
            if release not in names:
                prints[value] = ", ".join([*names, release])
    table = looked_up(table)
    TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    known.write(table)


def looked_up(table: Table) -> Table:
    """``table`` without what no patch declares any more, and without releases from before a patch's range."""
    kept: Table = {}
    for key, pythons in table.items():
        for python, prints in pythons.items():
            for value, text in prints.items():
                names = [release for release in releases(text) if is_wanted(key, release)]
                if names:
                    kept.setdefault(key, {}).setdefault(python, {})[value] = ", ".join(names)
    return kept


if __name__ == "__main__":
    main()
