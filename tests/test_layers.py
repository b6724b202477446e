"""Allowed imports between packages: rules as data."""

from __future__ import annotations

import ast
import contextlib
import graphlib
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: The layers of each package from the bottom up, and the parts of each. A part imports parts of layers below, and
#: itself. The parts that are not named are the top: of fastio the commands, and what ``fastio`` itself has.
LAYERS = {
    "fastio": (
        ("arguments", "config", "counters", "errors", "log", "proxy", "report", "tables", "terminal", "version"),
        ("concurrency",),
        ("io", "patching"),
        ("patches",),
        ("trace", "drivers"),
    ),
    "benchmarks": (
        ("backends", "harness"),
        ("load", "logserver", "operations", "tools"),
        ("suites",),
        ("report",),
        ("validate",),
    ),
}
#: Modules that a package never imports.
FOREIGN = {"fastio": ("benchmarks", "tests"), "benchmarks": ("tests",)}

#: Where eventlet's hubs are known, and why not only in ``concurrency``.
HUBS = {
    "fastio.concurrency.hub_wait": "waits in the hub",
    "fastio.patches.eventlet.fix_green_epipe": "upstream's function, put right",
    "fastio.patches.eventlet.green_pipe": "upstream's methods, made fast",
}
#: Modules that ask eventlet or gevent whether there is a hub.
ASKED = {"already_patched", "eventlet.hubs", "get_hub_if_exists", "gevent._hub_local", "_threadlocal"}


def modules(root: Path, package: str) -> dict[str, Path]:
    """The package's modules by name."""
    found = {}
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(text: str, package: str, known: object = ()) -> Iterator[str]:
    """The modules that code of ``package`` imports: also in functions, for type checkers, and in code that is a string.

    Of a name that is imported from a package, only ``known`` ones are taken for modules.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            names = [f"{module}.{each.name}" for each in node.names]
            yield from (name if name in known else module for name in names)  # type: ignore[operator]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "import " in node.value:
            with contextlib.suppress(SyntaxError):
                yield from imports(textwrap.dedent(node.value), package, known)


def graph(root: Path, package: str) -> dict[str, set[str]]:
    """Return the imports of each module of the package, of this package and of others."""
    known, found = modules(root, package), {}
    for name, path in known.items():
        own = name if path.name == "__init__.py" else name.rpartition(".")[0]
        found[name] = set(imports(path.read_text("utf-8"), own, known)) - {name}
    return found


def place(module: str) -> tuple[int, str]:
    """The layer of a module, and the part of it that must not import the layer's others."""
    package, _, part = module.partition(".")
    part, top = part.partition(".")[0], len(LAYERS[package])
    level = next((level for level, parts in enumerate(LAYERS[package]) if part in parts), top)
    # The lowest modules use each other, and the highest ones.
    return level, "" if package == "benchmarks" or level in (0, top) else part


def broken(root: Path, package: str) -> list[str]:
    """The imports that the rules forbid, and the modules of a circle."""
    found = graph(root, package)
    lines = []
    for name, used in found.items():
        for each in sorted(used):
            inside = each.split(".")[0] == package and place(each) != place(name)
            if each.startswith(FOREIGN[package]) or (inside and place(each)[0] >= place(name)[0]):
                lines.append(f"{name} imports {each}")
    try:
        graphlib.TopologicalSorter(found).prepare()
    except graphlib.CycleError as error:
        lines.append(f"a circle: {', '.join(error.args[1])}")
    return lines


def knows_hubs(path: Path) -> tuple[bool, bool]:
    """Whether the module imports ``eventlet.hubs``; and whether it decides itself if there is a hub."""
    text = path.read_text("utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    words |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return any(name.startswith("eventlet.hubs") for name in imports(text, "", {"eventlet.hubs"})), bool(words & ASKED)


@pytest.mark.parametrize("package", LAYERS)
def test_imports(package: str) -> None:
    assert broken(ROOT, package) == []
    # A part that was renamed would count as the public face, which may import anything.
    named = {part for parts in LAYERS[package] for part in parts}
    assert named <= {name.split(".")[1] for name in modules(ROOT, package) if "." in name}


def test_only_concurrency_and_patches_of_eventlet_know_hubs() -> None:
    found = {name: knows_hubs(path) for name, path in modules(ROOT, "fastio").items()}
    assert {name for name, (imported, _) in found.items() if imported} == set(HUBS)
    assert {name for name, (_, asked) in found.items() if asked} == {"fastio.concurrency.current"}
