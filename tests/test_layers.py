"""Who may import whom: fastio not the benchmarks, the benchmarks not the tests, and no two of them each other."""

from __future__ import annotations

import ast
import contextlib
import graphlib
import textwrap
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def modules(root: Path, package: str) -> dict[str, Path]:
    """The package's modules by name."""
    found = {}
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(text: str, package: str, known: Container[str] = ()) -> Iterator[str]:
    """The modules that the code imports: at its top, in functions, for type checkers, and in code that is a string.

    :param package: that relative imports start from
    :param known: modules, of which it is known that they are not just names in their packages
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            names = [f"{module}.{each.name}" for each in node.names]
            yield from (name if name in known else module for name in names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "import " in node.value:
            with contextlib.suppress(SyntaxError):
                yield from imports(textwrap.dedent(node.value), package, known)


def graph(root: Path, package: str) -> dict[str, set[str]]:
    """What each module of the package imports, of this package and of others."""
    known = modules(root, package)
    found = {}
    for name, path in known.items():
        own = name if path.name == "__init__.py" else name.rpartition(".")[0]
        found[name] = set(imports(path.read_text(encoding="utf-8"), own, known)) - {name}
    return found


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules of a circle, from one of them back to it; none if there is no circle."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def upwards(graph: Mapping[str, set[str]], *packages: str) -> dict[str, set[str]]:
    """The modules that import something of these packages, and what."""
    found = {name: {each for each in used if each.split(".")[0] in packages} for name, used in graph.items()}
    return {name: used for name, used in found.items() if used}


def test_nothing_in_fastio_imports_benchmarks_or_tests() -> None:
    assert upwards(graph(ROOT, "fastio"), "benchmarks", "tests") == {}


def test_nothing_in_benchmarks_imports_tests() -> None:
    assert upwards(graph(ROOT, "benchmarks"), "tests") == {}


def test_no_circles_in_benchmarks() -> None:
    assert circle(graph(ROOT, "benchmarks")) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("import benchmarks.other", "import benchmarks.one"),
        ("from benchmarks.other import name", "from benchmarks import one"),
        ("from . import other", "from .one import name"),
        ("def function():\n    from benchmarks import other", "if TYPE_CHECKING:\n    from .one import name"),
    ],
    ids=["import", "from", "relative", "function"],
)
def test_a_circle_is_found(tmp_path: Path, one: str, other: str) -> None:
    package = tmp_path / "benchmarks"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "one.py").write_text(one)
    (package / "other.py").write_text("name = 1")
    assert circle(graph(tmp_path, "benchmarks")) == []
    (package / "other.py").write_text(other)
    assert set(circle(graph(tmp_path, "benchmarks"))) == {"benchmarks.one", "benchmarks.other"}


@pytest.mark.parametrize(
    "code",
    ["import os, tests.targets", "from tests import child", 'CODE = """\n    from tests.child import data\n"""'],
)
def test_an_import_of_tests_is_found(tmp_path: Path, code: str) -> None:
    package = tmp_path / "benchmarks" / "inner"
    package.mkdir(parents=True)
    (package / "module.py").write_text(code)
    assert set(upwards(graph(tmp_path, "benchmarks"), "tests")) == {"benchmarks.inner.module"}
