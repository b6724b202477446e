"""Who may import whom: fastio's layers those below them, and no two modules each other.

fastio imports nothing of the benchmarks, and the benchmarks nothing of the tests.
"""

from __future__ import annotations

import ast
import contextlib
import graphlib
import textwrap
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: The folders of the benchmarks: each imports of its own line and of those above it only.
FOLDERS = (
    ("backends", "harness"),
    ("load", "logserver", "tools"),
    ("suites",),
    ("report",),
    ("validate",),
)

#: fastio's layers from the bottom up, and the parts of each. A part imports what is in layers below, and itself. What
#: is not named here is the public face: the commands, and what ``fastio`` itself has.
LAYERS = (
    (
        "arguments",
        "config",
        "counters",
        "errors",
        "log",
        "report",
        "tables",
        "terminal",
        "version",
    ),
    ("concurrency",),
    ("io", "patching"),
    ("patches",),
    ("trace", "drivers"),
)
FACE = len(LAYERS)

#: Where eventlet's hubs are known, and why not only in ``concurrency``.
HUBS = {
    "fastio.concurrency.hub_wait": "waits in the hub",
    "fastio.patches.eventlet.fix_green_epipe": "upstream's function, put right",
    "fastio.patches.eventlet.green_pipe": "upstream's methods, made fast",
}
#: What asks eventlet or gevent whether there is a hub.
_ASKED = {"already_patched", "eventlet.hubs", "get_hub_if_exists", "gevent._hub_local", "_threadlocal"}


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


def layer(module: str) -> tuple[int, str]:
    """The layer of one of fastio's modules, and the part that it is in; those of the public face are one part."""
    part = module.split(".")[1:2]
    for level, parts in enumerate(LAYERS):
        if part and part[0] in parts:
            # The lowest modules use each other, as long as there is no circle.
            return level, part[0] if level else ""
    return FACE, ""


def arrows_up(graph: Mapping[str, set[str]]) -> list[str]:
    """The imports of fastio's modules that are not of a layer below or of the same part."""
    found = []
    for name, used in graph.items():
        level, part = layer(name)
        for each in sorted(used):
            below, other = layer(each)
            if each.split(".")[0] == "fastio" and (below, other) != (level, part) and below >= level:
                found.append(f"{name} imports {each}")
    return found


def of_hubs(path: Path) -> bool:
    """Whether the module imports ``eventlet.hubs``."""
    return any(name.startswith("eventlet.hubs") for name in imports(path.read_text("utf-8"), "", {"eventlet.hubs"}))


def asks_for_a_hub(path: Path) -> bool:
    """Whether the module has an answer of its own to the question if there is a hub."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    words |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return bool(words & _ASKED)


def test_arrows_between_the_layers_of_fastio_point_down() -> None:
    assert arrows_up(graph(ROOT, "fastio")) == []


def test_each_layer_is_there() -> None:
    """A part that was renamed would count as the public face, which may import anything."""
    named = {part for parts in LAYERS for part in parts}
    assert named <= {name.split(".")[1] for name in modules(ROOT, "fastio") if "." in name}


def test_only_concurrency_and_patches_of_eventlet_know_hubs() -> None:
    assert {name for name, path in modules(ROOT, "fastio").items() if of_hubs(path)} == set(HUBS)


def test_one_answer_to_whether_there_is_a_hub() -> None:
    found = {name for name, path in modules(ROOT, "fastio").items() if asks_for_a_hub(path)}
    assert found == {"fastio.concurrency.current"}


def test_no_circles_in_fastio() -> None:
    assert circle(graph(ROOT, "fastio")) == []


def test_nothing_in_fastio_imports_benchmarks_or_tests() -> None:
    assert upwards(graph(ROOT, "fastio"), "benchmarks", "tests") == {}


def test_nothing_in_benchmarks_imports_tests() -> None:
    assert upwards(graph(ROOT, "benchmarks"), "tests") == {}


def test_no_circles_in_benchmarks() -> None:
    assert circle(graph(ROOT, "benchmarks")) == []


def test_the_folders_of_benchmarks_import_downwards() -> None:
    level = {folder: number for number, line in enumerate(FOLDERS) for folder in line}
    arrows = {
        (name, each)
        for name, used in graph(ROOT, "benchmarks").items()
        for each in used
        if name.count(".") > 1 and each.startswith("benchmarks.")
    }
    assert arrows
    assert [(name, each) for name, each in arrows if level[name.split(".")[1]] < level[each.split(".")[1]]] == []


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


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("concurrency/events.py", "from fastio.io import paced"),
        ("io/paced.py", "def function():\n    from fastio.patching import patcher"),
        ("patches/s3.py", "from ..drivers import sheepdog"),
        ("trace/spans.py", "from fastio.drivers import sheepdog"),
        ("config.py", "import fastio"),
    ],
)
def test_an_arrow_up_is_found(tmp_path: Path, module: str, code: str) -> None:
    for name in ("io/paced.py", "patching/patcher.py", "drivers/sheepdog.py", "__init__.py", "cli.py", module):
        path = tmp_path / "fastio" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "fastio" / "cli.py").write_text("import fastio")
    assert arrows_up(graph(tmp_path, "fastio")) == []
    (tmp_path / "fastio" / module).write_text(code)
    assert len(arrows_up(graph(tmp_path, "fastio"))) == 1


@pytest.mark.parametrize(
    ("code", "imported", "asked"),
    [
        ("def function():\n    from eventlet import hubs", True, False),
        ("from eventlet.hubs import trampoline", True, False),
        ("import eventlet.hubs.hub", True, False),
        ("from eventlet import sleep", False, False),
        ("hub = sys.modules.get('eventlet.hubs')", False, True),
        ("from eventlet import patcher\npatcher.already_patched", False, True),
    ],
)
def test_a_module_that_knows_hubs_is_found(tmp_path: Path, code: str, imported: bool, asked: bool) -> None:
    path = tmp_path / "module.py"
    path.write_text(code)
    assert (of_hubs(path), asks_for_a_hub(path)) == (imported, asked)
