"""Fingerprints of sources: the same for the same source, whichever Python reads it, and only for code made of it."""

import importlib.util
import json
import pathlib
import subprocess
import sys
import sysconfig
import types
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from packaging.version import Version

from benchmarks.tools import pythons
from fastio.patching import catalogue, syntax
from tests.patching.test_fingerprint import KEY, STDLIB, native

SOURCE = (
    "def f(a, b=1, *, c=2):\n    for d in a:\n        if d in {'x', 'y'}:\n            return g(d, b, f'{c}: {d!r}')\n"
)


def tree(source: str) -> str:
    """The fingerprint of the function ``f`` of a module."""
    found = dict(syntax.functions(source, "somewhere.py", {"f"}))["f"]
    return syntax.fingerprint(found.tree, found.defaults)


@pytest.fixture
def module(tmp_path: pathlib.Path) -> Iterator[Any]:
    """``module(source)`` imports it from a file, again if it is called again."""

    def load(source: str = SOURCE, path: pathlib.Path = tmp_path / "library.py") -> types.ModuleType:
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("library", path)
        assert spec is not None and spec.loader is not None
        found = importlib.util.module_from_spec(spec)
        # Compiled here: a file of bytecode is found by a time that two writes may share.
        exec(compile(source, str(path), "exec", dont_inherit=True), found.__dict__)
        return found

    yield load


def of(function: Any) -> str | None:
    return syntax.of_function(function, {"f"})


@pytest.mark.parametrize(
    ("old", "new"),
    [("b=1", "b=2"), ("c=2", "c=3"), ("b=1", "b"), ("*, c", "c"), ("'y'", "'z'"), ("g(", "h("), ("d, b", "b, d"),
     ("return", "yield"), ("!r", "!s"), (": {", ":{"), ("    for", "    a = iter(a)\n    for"), ("def", "async def"),
     ("d in {", "d not in {"), ("b=1", "b=True"), ("b=1", "b=1.0"), ("b=1", "b=print")],
)  # fmt: skip
def test_other_code_has_another_fingerprint(old: str, new: str) -> None:
    assert tree(SOURCE.replace(old, new)) != tree(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [("def", "\n\n# a comment\ndef"), ("(a,", "(a: int,"), ("):\n", ") -> str:\n"), ("'x'", '"x"'),
     ("    for", "    'what it does'\n    for"), ("f'{c}: {d!r}'", "f'{c}' ': ' f'{d!r}'"), ("def", "@print\ndef"),
     ("b=1", "b=2 - 1"), ("(d, b", "(\n d,\n b")],
)  # fmt: skip
def test_what_the_code_does_not_do_does_not_count(old: str, new: str) -> None:
    assert tree(SOURCE.replace(old, new, 1)) == tree(SOURCE)


@pytest.mark.parametrize(
    ("default", "value"),
    [("2 - 1", "1"), ("-1", "-1"), ("64 * 1024", "65536"), ("1 << 20", "1048576"), ("(1, (2, 'x'))", "(1, (2, 'x'))"),
     ("b'x'", "b'x'"), ("...", "Ellipsis"), ("1.5", "1.5"),
     *((text, "<object>") for text in (
        "[]", "name", "f()", "1 << 9999", "9 ** 9 ** 9", "'x' * 9", "1 / 0", "(*'ab',)", "0 if 1 else 2",
     ))],
)  # fmt: skip
def test_defaults_that_are_read(default: str, value: str) -> None:
    found = dict(syntax.functions(f"def f(a={default}): pass", "x.py", {"f"}))["f"]
    assert list(found.defaults.positional) == [value]


#: Reaches os.system() without a name that is looked up.
MALICIOUS = (
    "[each for each in ().__class__.__base__.__subclasses__() if each.__name__ == '_wrap_close'][0]"
    ".__init__.__globals__['system']('touch {}')"
)


def test_a_default_is_not_evaluated(tmp_path: pathlib.Path) -> None:
    call = MALICIOUS.format(tmp_path / "made")
    eval(call, {})
    assert (tmp_path / "made").exists()
    (tmp_path / "made").unlink()
    found = dict(syntax.functions(f"def f(a={call}, *, b={call}): pass", "x.py", {"f"}))["f"]
    assert found.defaults == (("<object>",), {"b": "<object>"})
    assert not (tmp_path / "made").exists()


def test_a_function_that_was_made_of_its_file(module: Any) -> None:
    assert of(module().f) == tree(SOURCE) == of(module("\n\n" + SOURCE).f)
    assert of(module(SOURCE.replace("b=1", "b=2")).f) != tree(SOURCE)


def test_a_file_that_was_replaced_since(module: Any) -> None:
    old = module().f
    module(SOURCE.replace("'y'", "'z'"))
    assert of(old) is None


def test_a_file_that_is_gone_or_unreadable(module: Any, tmp_path: pathlib.Path) -> None:
    function = module().f
    (tmp_path / "library.py").write_text("def f(:\n")
    assert of(function) is None
    (tmp_path / "library.py").unlink()
    assert of(function) is None
    assert of(types.FunctionType(compile(SOURCE, "<string>", "exec"), {})) is None


def test_defaults_that_were_changed_at_run_time_count(module: Any) -> None:
    function = module().f
    function.__defaults__ = (5,)
    assert of(function) == tree(SOURCE.replace("b=1", "b=5"))


def test_a_module_in_an_archive(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "library.zip", "w") as archive:
        archive.writestr("zipped_library.py", SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path / "library.zip"))
    assert of(importlib.import_module("zipped_library").f) == tree(SOURCE)


@pytest.mark.parametrize("name", [name for name in STDLIB["subprocess"] if name.startswith("Popen.")])
def test_the_standard_library_as_an_unknown_compiler_makes_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its releases are told by the source alone, as they are by the bytecode."""
    key, function = f"subprocess:{name}", native(name.removeprefix("Popen."))
    by_bytecode = catalogue.recognise(key, function)
    assert by_bytecode
    others = {key: {**known, catalogue.PYTHON: {}} for key, known in catalogue.table().items()}
    monkeypatch.setattr(catalogue, "table", lambda: others)
    by_source = catalogue.recognise(key, function)
    assert by_source and set(by_bytecode.releases.split(", ")) <= set(by_source.releases.split(", "))
    assert (by_bytecode.by, by_source.by) == ("bytecode", "source")
    copy = types.FunctionType(function.__code__.replace(co_consts=(*function.__code__.co_consts, 1)), {})
    assert catalogue.recognise(KEY, copy) is None


PROGRAM = """
import sys, pathlib, hashlib, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from fastio.patching import syntax
import ast
for path in map(pathlib.Path, sys.argv[2:]):
    text = path.read_text(encoding="utf-8")
    names = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    for name, source in syntax.functions(text, "x.py", names):
        print(path.name, name, hashlib.sha256((source.tree + repr(source.defaults)).encode()).hexdigest())
"""


def others() -> list[str]:
    """Another Python of each minor version that is here."""
    here = pythons.here(f"3.{minor}" for minor in range(10, 16))
    return [each.path for each in here.values() if each.path != sys.executable]


def test_every_python_reads_the_same(tmp_path: pathlib.Path) -> None:
    """All functions of some large modules of the oldest one's standard library, as each of them reads them."""
    if not others():
        pytest.skip(f"no other Python beside {sys.base_prefix}, on the path or in pyenv")
    root = str(pathlib.Path(syntax.__file__).parents[2])
    asking = "import platform, sysconfig; print(platform.python_version(), sysconfig.get_path('stdlib'))"
    here = [sys.executable, *others()]
    told = [subprocess.check_output([python, "-c", asking], text=True).split() for python in here]
    _, library = min(told, key=lambda each: Version(each[0]))
    modules = [f"{library}/{name}" for name in ("subprocess.py", "_pyio.py", "argparse.py", "inspect.py")]
    found = {}
    for python in here:
        result = subprocess.run([python, "-c", PROGRAM, root, *modules], stdout=subprocess.PIPE, text=True, check=True)
        found[python] = result.stdout
    assert found[sys.executable].count("\n") > 500
    assert set(found.values()) == {found[sys.executable]}


RECOGNISE = """
import json, pathlib, sys, sysconfig, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from fastio.patching import catalogue, fingerprint, syntax
roots = [pathlib.Path(sysconfig.get_path("stdlib")), pathlib.Path(sys.argv[2])]
found = {}
for key, known in catalogue.table().items():
    module, _, name = key.partition(":")
    for root in roots:
        place = root.joinpath(*module.split("."))
        path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if path.exists():
            ways = set()
            for qualified, source in syntax.functions(path.read_text(encoding="utf-8"), "x.py", {name.split(".")[-1]}):
                if qualified == name:
                    by_bytecode = fingerprint.digest(source.code, source.defaults) in known.get(catalogue.PYTHON, {})
                    by_source = syntax.fingerprint(source.tree, source.defaults) in known.get(catalogue.SOURCE, {})
                    ways.add((by_bytecode, by_source))
            if ways:
                found[key] = max(ways)
print(json.dumps([catalogue.PYTHON, found]))
"""


def test_every_compiler_s_code_is_recognised() -> None:
    """What is installed here, as each Python compiles it: by its bytecode, and by its source alone."""
    root, libraries = str(pathlib.Path(syntax.__file__).parents[2]), sysconfig.get_path("purelib")
    minors = {minor for known in catalogue.table().values() for minor in known}
    for python in (sys.executable, *others()):
        command = [python, "-c", RECOGNISE, root, libraries]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        minor, found = json.loads(result.stdout)
        if minor not in minors:
            continue
        assert len(found) > 10
        unknown = {key: ways for key, ways in found.items() if not ways[1]}
        assert not unknown, f"{python} makes of the source what no release has"
        # A micro release may compile some of it otherwise: 3.13.1 and later do so with comprehensions.
        assert sum(by_bytecode for by_bytecode, _ in found.values()) > 0.8 * len(found), python


def test_what_is_known_by_its_bytecode_is_known_by_its_source() -> None:
    """So any other compiler of that release's source does, such as those of the micro releases that were never here."""

    def releases(hashes: dict[str, str]) -> set[str]:
        return {release for text in hashes.values() for release in text.split(", ")}

    for key, known in catalogue.table().items():
        for minor, hashes in known.items():
            assert releases(hashes) <= releases(known[catalogue.SOURCE]), (key, minor)
