"""Writes ``fastio/patching/fingerprints.json``: the code of upstream's releases that fastio knows.

    python -m benchmarks.tools.fingerprints --python python3.10 python3.11 --eventlet 0.40.4 0.41.3 --oslo 7.6.1 \\
        --glance-store 5.6.0 5.7.0

The functions are those that the patches declare. Each interpreter hashes its own standard library, the given releases
of the libraries that are patched (downloaded with pip; an option for each folder of ``fastio.patches``) and further
versions of the standard library of its minor version given by ``--stdlib VERSION=DIRECTORY``. A new release is added
only after somebody has read what changed in it; the file is merged, never started anew, unless ``--fresh`` is given.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import pathlib
import platform
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import CodeType
from typing import NamedTuple

from packaging.requirements import Requirement as PEP508

from fastio.patching import registry
from fastio.patching.fingerprint import NOT_PLAIN, PYTHON, Defaults, digest, spell
from fastio.patching.registry import Requirement

TABLE = pathlib.Path(__file__).resolve().parents[2] / "fastio" / "patching" / "fingerprints.json"
#: ``{key: {minor version of Python: {fingerprint: releases}}}``
Table = dict[str, dict[str, dict[str, str]]]
#: What the standard library is called in the table.
CPYTHON = "CPython"


class Wanted(NamedTuple):
    """A function that a patch declares."""

    #: as ``module:qualified.name``
    key: str
    #: the range of the patch; None of the standard library
    requirement: Requirement | None


@cache
def declared() -> list[Wanted]:
    """All that patches declare: what they replace and what they rely on."""
    known = distributions()
    found = []
    for patch in registry.all_patches():
        for target in patch.targets:
            ranges = {requirement.distribution: requirement for requirement in patch.requirements(target)}
            for key in target.keys:
                distribution = known.get(key.partition(":")[0].partition(".")[0], CPYTHON)
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
    for key, requirement in declared():
        if (requirement.distribution if requirement else CPYTHON) == distribution and _reaches(requirement, version):
            module, _, name = key.partition(":")
            found.setdefault(module, {})[name] = None
    return {module: list(names) for module, names in found.items()}


@cache
def is_wanted(key: str, release: str) -> bool:
    """Whether a patch may meet the function ``key`` as ``release`` has it."""
    distribution, _, version = release.rpartition(" ")
    module, _, name = key.partition(":")
    return name in wanted_of(distribution, version).get(module, ())


def _reaches(requirement: Requirement | None, version: str) -> bool:
    bounds = PEP508(str(requirement)).specifier if requirement else ()
    return all(bound.contains(version, prereleases=True) for bound in bounds if bound.operator == ">=")


@cache
def without_defaults() -> frozenset[str]:
    """The keys of functions of which upstream has but the code."""
    targets = (target for patch in registry.all_patches() for target in patch.targets)
    return frozenset(target.keys[0] for target in targets if target.without_defaults)


def functions(code: CodeType, prefix: str = "") -> Iterator[tuple[str, CodeType]]:
    """Every function and method of a module's code, with its qualified name; a later definition follows an earlier."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            name = prefix + constant.co_name
            yield name, constant
            yield from functions(constant, name + ".")


def all_defaults(tree: ast.AST) -> dict[tuple[str, int], Defaults]:
    """The defaults of every function, by its name and the line that its code begins on."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            keyword = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            found[node.name, line] = Defaults(
                tuple(map(spelled, node.args.defaults)),
                {argument.arg: spelled(value) for argument, value in keyword if value is not None},
            )
    return found


def spelled(default: ast.expr) -> str:
    """What ``fingerprint.spell`` makes of the default's value, if that can be told without running the module."""
    try:
        return spell(eval(compile(ast.Expression(default), "", "eval"), {"__builtins__": {}}))
    except NameError:
        return NOT_PLAIN


def hashes(root: pathlib.Path, wanted: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """``(key, fingerprint)`` of the wanted functions below ``root``, as compiled at each optimisation level."""
    for module, names in wanted.items():
        place = root.joinpath(*module.split("."))
        path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if not path.exists():
            continue
        defaults = all_defaults(ast.parse(path.read_bytes()))
        for level in (0, 1, 2):
            code = compile(path.read_bytes(), str(path), "exec", optimize=level, dont_inherit=True)
            for name, function in functions(code):
                if name in names:
                    key = f"{module}:{name}"
                    its = defaults[function.co_name, function.co_firstlineno]
                    yield key, digest(function, Defaults() if key in without_defaults() else its)


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


def collect(arguments: argparse.Namespace) -> dict[str, list[tuple[str, str]]]:
    """``{key: [(fingerprint, release)]}`` for the running interpreter."""
    found: dict[str, list[tuple[str, str]]] = {}

    def add(root: pathlib.Path, wanted: Mapping[str, Sequence[str]], release: str) -> None:
        for key, value in hashes(root, wanted):
            found.setdefault(key, []).append((value, release))

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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
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
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for key, entries in collect(arguments).items():
        known = table.setdefault(key, {}).setdefault(PYTHON, {})
        for value, release in entries:
            names = releases(known.get(value, ""))
            if release not in names:
                known[value] = ", ".join([*names, release])
    TABLE.write_text(json.dumps(looked_up(table), indent=1, sort_keys=True) + "\n")


def looked_up(table: Table) -> Table:
    """``table`` without what no patch declares any more, and without releases from before a patch's range."""
    kept: Table = {}
    for key, pythons in table.items():
        for python, known in pythons.items():
            for value, text in known.items():
                names = [release for release in releases(text) if is_wanted(key, release)]
                if names:
                    kept.setdefault(key, {}).setdefault(python, {})[value] = ", ".join(names)
    return kept


if __name__ == "__main__":
    main()
