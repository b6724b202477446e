"""Fingerprints: the same for the same code under any circumstances, another one for any other code."""

import functools
import inspect
import json
import pathlib
import platform
import subprocess
import sys
import sysconfig
import types
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastio
from benchmarks.tools import fingerprints as generator
from fastio.patching import catalogue, fingerprint

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


def code(source: str, optimize: int = 0) -> types.CodeType:
    """The code of the function that ``source`` defines."""
    compiled = compile(source, "somewhere.py", "exec", optimize=optimize, dont_inherit=True)
    found = [constant for constant in compiled.co_consts if isinstance(constant, types.CodeType)]
    # From Python 3.14 on, annotations have a function of their own, and it comes first.
    return next(each for each in found if each.co_name != "__annotate__")


def digest(code: types.CodeType) -> str:
    return fingerprint.digest(code, fingerprint.Defaults())


BASE = "def f(a, b=1):\n    for c in a:\n        if c in {'x', 'y'}:\n            return g(c, b, 10)\n"


@pytest.mark.parametrize(
    "source",
    [
        BASE.replace("10", "11"),
        BASE.replace("10", "10.0"),
        BASE.replace("10", "True"),
        BASE.replace("'y'", "'z'"),
        BASE.replace("g(", "h("),
        BASE.replace("c, b", "b, c"),
        BASE.replace("c", "d"),
        BASE.replace("a, b", "a, *, b"),
        BASE.replace("a, b=1", "a, b, /"),
        BASE.replace("a, b", "b, a"),
        BASE.replace("a, b=1", "*a, b=1"),
        BASE.replace("    for", "    a = iter(a)\n    for"),
        BASE.replace("return g", "yield g"),
        "async " + BASE,
        BASE.replace("return g(c, b, 10)", "return (lambda: g(c, b, 10))()"),
    ],
)
def test_other_code_has_another_fingerprint(source: str) -> None:
    assert source != BASE
    assert digest(code(source)) != digest(code(BASE))


@pytest.mark.parametrize("inner", ["return 2", "return c", "raise"])
def test_nested_functions_count(inner: str) -> None:
    source = "def f():\n    c = 1\n    def g():\n        return 1\n    return g\n"
    assert digest(code(source)) != digest(code(source.replace("return 1", inner)))


def test_what_an_exception_handler_covers_counts() -> None:
    one = "def f():\n    try:\n        g()\n        h()\n    except E:\n        pass\n"
    other = "def f():\n    try:\n        g()\n    except E:\n        pass\n    h()\n"
    assert digest(code(one)) != digest(code(other))


@pytest.mark.skipif(not hasattr(types.CodeType, "co_exceptiontable"), reason="the instructions tell of handlers")
def test_the_table_of_handlers_counts() -> None:
    whole = code("def f():\n    try:\n        g()\n    except E:\n        pass\n")
    assert digest(whole) != digest(whole.replace(co_exceptiontable=b""))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "source",
    [
        "\n\n\n" + BASE,
        BASE.replace("\n    for", "\n    # a comment\n\n    for"),
        BASE.replace("def f(a, b=1)", "def f(a: 'int', b: 'str' = 1) -> 'bytes'"),
        BASE.replace("    for", "  for").replace("        if", "    if").replace("            return", "      return"),
    ],
    ids=["lines", "comments", "annotations", "indentation"],
)
def test_what_the_code_does_not_do_does_not_count(source: str) -> None:
    assert source != BASE
    assert digest(code(source)) == digest(code(BASE))


def test_the_file_does_not_count() -> None:
    other = compile(BASE, "/elsewhere/else.py", "exec", dont_inherit=True).co_consts
    assert digest(next(c for c in other if isinstance(c, types.CodeType))) == digest(code(BASE))


def functions_of(source: str, names: list[str], path: pathlib.Path) -> tuple[dict[str, str], dict[str, str]]:
    """The fingerprints of a module's functions by name: as the generator reads them, and as they are when loaded."""
    path.joinpath("library.py").write_text(source)
    namespace: dict[str, Any] = {"__name__": "library"}
    exec(compile(source, "library.py", "exec", dont_inherit=True), namespace)
    live = {}
    for name in names:
        value: Any = types.SimpleNamespace(**namespace)
        for part in name.split("."):
            value = inspect.getattr_static(value, part)
        live[f"library:{name}"] = fingerprint.fingerprint(value)
    read = generator.hashes(path, {"library": names})
    return {key: value for key, kind, value in read if kind == catalogue.PYTHON}, live


def test_what_was_one_module_in_earlier_releases(tmp_path: pathlib.Path) -> None:
    """It is known by where the package of today has it."""
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "driver.py").write_text("def f(a):\n    return a\n")
    one = list(generator.hashes(tmp_path, {"library.driver.store": ["f"]}))
    (tmp_path / "library" / "driver").mkdir()
    (tmp_path / "library" / "driver.py").rename(tmp_path / "library" / "driver" / "store.py")
    assert one and one == list(generator.hashes(tmp_path, {"library.driver.store": ["f"]}))


DEFAULTS = [
    "b=1", "b=2", "b=None", "b=''", "b=b''", "b=True", "b=1.0", "b=-1", "b=...", "b=(1, 'a', (None,))", "b=()", "b=2j",
    "b=64 * 1024", "b=65537", "*, b=1", "*, b=2", "*, b", "b", "b=1, *, c=2", "b=1, *, c=3", "b=1, c=2", "/, b=1",
    "b=1e400", "b={'x'}", "*, d=1, b=2", "*, b=1, d=2",
]  # fmt: skip


def test_defaults_count_and_the_generator_reads_them_from_the_source(tmp_path: pathlib.Path) -> None:
    seen: dict[str, str] = {}
    for arguments in DEFAULTS:
        source = f"def f(a, {arguments}):\n    return a, b\n".replace("(a, /", "(a, /")
        read, live = functions_of(source, ["f"], tmp_path)
        assert read == live, arguments
        assert live["library:f"] not in seen, (arguments, seen[live["library:f"]])
        seen[live["library:f"]] = arguments


@pytest.mark.parametrize("default", ["print", "CONSTANT.real.real", "[]", "{}", "object()", "frozenset({1})", "Error"])
def test_defaults_that_are_no_plain_values_are_alike(default: str, tmp_path: pathlib.Path) -> None:
    """What they are cannot be told from the source."""
    source = "class CONSTANT:\n    real = int\nclass Error(Exception):\n    pass\ndef f(a, b=%s): return a\n"
    read, live = functions_of(source % default, ["f"], tmp_path)
    assert read == live
    assert live == functions_of(source % "lambda: 1", ["f"], tmp_path)[1]


def test_defaults_of_the_right_function_of_several_of_a_name(tmp_path: pathlib.Path) -> None:
    source = """
import functools
if __name__:
    def f(a, b=1): return a
else:
    def f(a, b=2): return a
class C:
    @staticmethod
    @functools.cache
    def f(a, b=3): return a
    def g(self, b=4): return self
    class D:
        def f(a, *, b=5): return [a]
"""
    expected: dict[str, set[str]] = {name: set() for name in ("f", "C.f", "C.g", "C.D.f")}
    path = tmp_path / "library.py"
    path.write_text(source)
    for key, kind, value in generator.hashes(tmp_path, {"library": list(expected)}):
        if kind == catalogue.PYTHON:
            expected[key.partition(":")[2]].add(value)
    assert {name: len(found) for name, found in expected.items()} == {"f": 2, "C.f": 1, "C.g": 1, "C.D.f": 1}
    assert len(set().union(*expected.values())) == 5


def test_defaults_that_were_changed_at_run_time_count() -> None:
    def function(a: Any, b: int = 1, *, c: int = 2) -> None:
        pass

    f: Any = function
    before = fingerprint.fingerprint(f)
    f.__defaults__ = (2,)
    assert fingerprint.fingerprint(f) != before
    f.__defaults__ = (1,)
    assert fingerprint.fingerprint(f) == before
    f.__kwdefaults__ = {"c": 3}
    assert fingerprint.fingerprint(f) != before


INNER = """
def f(data):
    class Reader:
        size = 8
        def __init__(self):
            self.data = data
            self.other = 1
        def read(self, size=%d):
            return self.data[:size]
    return Reader
"""


@pytest.mark.parametrize("lines", [1, 5, 7, 254, 255, 256, 300, 70_000])
def test_the_line_of_an_inner_class_does_not_count(lines: int) -> None:
    """Python 3.13 has it among the constants of the body, which may have the same number for something else."""
    assert digest(code("\n" * lines + INNER % 8)) == digest(code(INNER % 8))


def test_what_an_inner_class_has_counts() -> None:
    base = digest(code(INNER % 8))
    for old, new in [("%d", "9"), ("size = 8", "size = 9"), ("data[:size]", "data[size:]"),
                     ("Reader:", "Reader(data):"), ("other = 1", "other = 2"), ("        size = 8\n", ""),
                     ("def read", "def load")]:  # fmt: skip
        source = INNER.replace(old, new)
        assert digest(code(source % 8 if "%d" in source else source)) != base, new


@given(st.integers(), st.text(), st.binary(), st.floats(allow_nan=False))
def test_constants_count(integer: int, text: str, data: bytes, number: float) -> None:
    def with_constant(constant: Any) -> str:
        return digest(code(BASE).replace(co_consts=(*code(BASE).co_consts, constant)))

    found = [with_constant(constant) for constant in (integer, text, data, number, (integer,), None)]
    assert len(set(found)) == len({repr(constant) for constant in (integer, text, data, number, (integer,), None)})
    assert found == [with_constant(constant) for constant in (integer, text, data, number, (integer,), None)]


PROGRAM = """
    import json, subprocess
    from fastio.patching.fingerprint import fingerprint
    def f(a, *, b=1, c=2):
        return a in {'some', 'strings', 'in', 'a', 'set', 'whose', 'order', 'differs', b'bytes', 1, 2.5}
    def g():
        class Inner:
            def __init__(self):
                self.some = self.attributes = self.whose = self.order = self.differs = None
    popen = subprocess.Popen
    functions = [f, g, popen._communicate, popen._wait, popen._execute_child, subprocess.run]
    print(json.dumps([fingerprint(function) for function in functions]))
"""


def test_the_hash_seed_does_not_count(run_python: RunPython) -> None:
    found = {run_python(PROGRAM, env={"PYTHONHASHSEED": str(seed)}).stdout for seed in (0, 1, 2, 3)}
    assert len(found) == 1


@pytest.mark.parametrize("options", [(), ("-O",), ("-OO",), ("-X", "dev"), ("-X", "utf8"), ("-E",)], ids="".join)
def test_patches_are_applied_whatever_python_is_told(options: tuple[str, ...], run_python: RunPython) -> None:
    code = """
        import sys
        sys.path[:0] = sys.argv[1:]
        import fastio
        from fastio.patching import registry
        fastio.patch(strict=True, also=registry.outside_the_default())
        from tests.targets import import_targets
        import_targets()
        print({entry.outcome.value for entry in fastio.status().entries} - {"absent", "not needed", "off"})
        """
    root = str(pathlib.Path(fastio.__file__).parent.parent)
    result = run_python(code, root, options=("-W", "ignore", *options))
    assert result.stdout == "{'applied'}\n"


def busy(number: int) -> int:
    total = 0
    for one in range(number):
        try:
            total += one
        except ValueError:
            total -= 1
    return total


def test_running_the_code_does_not_change_its_fingerprint() -> None:
    """Python 3.11 and later rewrite bytecode while it runs."""
    before = digest(busy.__code__)
    for _ in range(5000):
        busy(20)
    assert digest(busy.__code__) == before


def test_tracing_the_code_does_not_change_its_fingerprint() -> None:
    """Debuggers, coverage and profilers instrument it."""
    before = digest(busy.__code__)
    during = []

    def trace(frame: Any, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = True
        if frame.f_code is busy.__code__:
            during.append(digest(busy.__code__))
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        busy(3)
    finally:
        sys.settrace(previous)
    assert set(during) == {before}
    assert digest(busy.__code__) == before


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="sys.monitoring came with Python 3.12")
def test_monitoring_the_code_does_not_change_its_fingerprint() -> None:
    before = digest(busy.__code__)
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    tool = next(number for number in range(6) if monitoring.get_tool(number) is None)
    monitoring.use_tool_id(tool, "tests")
    try:
        monitoring.register_callback(tool, monitoring.events.LINE, lambda *args: None)
        monitoring.set_events(tool, monitoring.events.LINE | monitoring.events.INSTRUCTION | monitoring.events.BRANCH)
        busy(3)
        assert digest(busy.__code__) == before
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)
    assert digest(busy.__code__) == before


KEY = "subprocess:Popen._save_input"
#: What the patches rely on of the standard library.
STDLIB = generator.wanted_of(generator.CPYTHON, platform.python_version())


def native(name: str) -> Any:
    """The function as the standard library has it, whatever has been monkey patched."""
    if "eventlet" in sys.modules:
        return getattr(sys.modules["eventlet.patcher"].original("subprocess").Popen, name)
    return getattr(subprocess.Popen, name)


def test_recognise() -> None:
    save_input = native("_save_input")
    releases = catalogue.recognise(KEY, save_input)
    assert releases
    assert "CPython" in releases.releases
    assert releases.by == "bytecode"
    assert catalogue.recognise("subprocess:Popen._wait", save_input) is None
    assert catalogue.recognise("subprocess:Popen.nothing", save_input) is None
    copy = types.FunctionType(save_input.__code__, {})
    assert catalogue.recognise(KEY, copy) == releases
    copy.__defaults__ = (None,)
    assert catalogue.recognise(KEY, copy) is None


@pytest.mark.parametrize("value", [None, 3, "text", len, functools.partial(native("_save_input")), staticmethod(busy)])
def test_what_is_no_function_is_not_recognised(value: Any) -> None:
    assert catalogue.recognise(KEY, value) is None


def test_a_proxy_is_not_recognised() -> None:
    """Else a whole wrapper would be taken for what is inside it, and thrown away with it."""
    wrapt = pytest.importorskip("wrapt")
    proxy = wrapt.FunctionWrapper(native("_save_input"), lambda wrapped, *rest: wrapped(*rest[1]))
    assert isinstance(proxy, types.FunctionType)
    assert catalogue.recognise(KEY, proxy) is None


def test_known_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert catalogue.known_python(KEY)
    assert not catalogue.known_python("subprocess:Popen.nothing")
    monkeypatch.setattr(catalogue, "PYTHON", "3.99")
    assert not catalogue.known_python(KEY)


@pytest.mark.parametrize(
    ("releases", "text"),
    [
        ("CPython 3.11.7", "CPython 3.11.7"),
        ("CPython 3.11.7, CPython 3.11.2", "CPython 3.11.2 to 3.11.7"),
        ("eventlet 0.9.17, eventlet 0.41.3, eventlet 0.35.2", "eventlet 0.9.17 to 0.41.3"),
        ("CPython 3.13.5, CPython 3.13.18, CPython 3.13.0", "CPython 3.13.0 to 3.13.18"),
    ],
)
def test_span(releases: str, text: str) -> None:
    assert catalogue.span(releases) == text


def test_the_shape_of_the_table() -> None:
    table = catalogue.table()
    assert table
    for key, pythons in table.items():
        assert key.count(":") == 1
        for python, known in pythons.items():
            assert python.startswith("3.") or python == catalogue.SOURCE
            for value, releases in known.items():
                assert len(value) == 16
                assert set(value) <= set("0123456789abcdef")
                assert catalogue.span(releases)
    path = pathlib.Path(catalogue.__file__).with_name("fingerprints.json")
    assert path.read_text(encoding="utf-8") == json.dumps(table, indent=1, sort_keys=True) + "\n"


def test_the_table_has_what_the_patches_declare() -> None:
    """Nothing is missing, and nothing is there that is looked up by nobody."""
    assert set(catalogue.table()) == {wanted.key for wanted in generator.declared()}
    assert generator.looked_up(catalogue.table()) == catalogue.table()


def test_every_key_belongs_to_a_library() -> None:
    """Only the standard library has no folder that says which releases are meant."""
    for key, requirement in generator.declared():
        package = key.partition(":")[0].partition(".")[0]
        assert (package in sys.stdlib_module_names) is (requirement is None), key
        if requirement is not None:
            assert requirement.distribution == generator.distributions()[package]


def test_what_is_wanted_of_a_release() -> None:
    """A release that comes after all ranges is looked at as well, one that comes before a range is not."""
    before, first, future = (generator.wanted_of("glance", version) for version in ("31.0", "33.0", "99.0"))
    assert "_UWSGIChunkFile.read" not in before["glance.common.wsgi"]
    assert {"_UWSGIChunkFile.read", "_UWSGIChunkFile.__init__"} <= set(first["glance.common.wsgi"])
    assert future == first
    assert not generator.wanted_of("glance_store", "0.28")


def test_the_generator_sees_what_the_running_python_has() -> None:
    """It compiles the source files; what is looked up are the functions as they were loaded."""
    stdlib = pathlib.Path(sysconfig.get_path("stdlib"))
    generated: dict[str, set[str]] = {}
    for key, kind, value in generator.hashes(stdlib, STDLIB):
        if kind == catalogue.PYTHON:
            generated.setdefault(key, set()).add(value)
    names = [name.removeprefix("Popen.") for name in STDLIB["subprocess"] if name.startswith("Popen.")]
    assert "_communicate" in names
    for name in names:
        live = inspect.getattr_static(native(name).__globals__["Popen"], name)
        assert fingerprint.fingerprint(live) in generated[f"subprocess:Popen.{name}"], name


def test_all_that_the_generator_finds_here_is_in_the_table() -> None:
    """The release that the tests run with has been read.

    A newer one is added with ``python -m benchmarks.tools.fingerprints``.
    """
    stdlib = pathlib.Path(sysconfig.get_path("stdlib"))
    unknown = {
        key
        for key, kind, value in generator.hashes(stdlib, STDLIB)
        if value not in catalogue.table().get(key, {}).get(kind, {})
    }
    assert unknown == set()


#: A contract answers for it, and the sources of most releases were not at hand.
BY_CONTRACT = {"http.client:HTTPConnection.send"}


def test_every_micro_release_of_python_is_known_as_a_whole() -> None:
    """So whoever has one of them gets what the newest one gets."""
    known = {
        key: {release for releases in kinds[catalogue.SOURCE].values() for release in releases.split(", ")}
        for key, kinds in catalogue.table().items()
    }
    versions = {
        release.removeprefix("CPython ") for of in known.values() for release in of if release.startswith("CPython ")
    }
    # Those of Debian 12, 13 and sid, and of Ubuntu 22.04 and 24.04.
    assert versions >= {"3.10.12", "3.11.2", "3.12.3", "3.13.5", "3.14.10", "3.15.2"}
    for version in versions:
        wanted = generator.wanted_of(catalogue.CPYTHON, version)
        keys = {f"{module}:{name}" for module, names in wanted.items() for name in names} - BY_CONTRACT
        assert [key for key in sorted(keys) if f"CPython {version}" not in known[key]] == [], version
