"""Known code: the same hash for the same source, whichever Python reads it; what is replaced has to be known."""

import ast
import importlib.util
import inspect
import json
import pathlib
import subprocess
import sys
import sysconfig
import types
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from packaging.version import Version

import fastio
from benchmarks.tools import fingerprints as generator
from benchmarks.tools import pythons
from fastio.patching import holders, hooks, known_code, registry, sources
from fastio.patching.known_code import Uses
from fastio.report import Outcome
from tests.conftest import RunPython
from tests.targets import can_be_applied, import_targets

TARGETS = [(patch, target) for patch in registry.all_patches() for target in patch.targets]
KEY = "subprocess:Popen._communicate"

SOURCE = """
def f(a, b=1, *, c=2):
    for d in a:
        if d in {'x', 'y'}:
            return g(d, b, f'{c}: {d!r}')
"""


def native(name: str) -> Any:
    """The function as the standard library has it, whatever has been monkey patched."""
    if "eventlet" in sys.modules:
        return getattr(sys.modules["eventlet.patcher"].original("subprocess").Popen, name)
    return getattr(subprocess.Popen, name)


@pytest.fixture
def load(tmp_path: pathlib.Path) -> Callable[..., Any]:
    """``load(source)`` imports it from a file, again if it is called again; returns the function ``f``."""

    def load(source: str = SOURCE, path: pathlib.Path = tmp_path / "library.py") -> Any:
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("library", path)
        assert spec is not None
        found = importlib.util.module_from_spec(spec)
        # Compiled here: a file of bytecode is found by a time that two writes may share.
        exec(compile(source, str(path), "exec", dont_inherit=True), found.__dict__)
        return found.f

    return load


@pytest.mark.parametrize(
    ("old", "new"),
    [("b=1", "b=2"), ("c=2", "c=3"), ("b=1", "b"), ("*, c", "c"), ("'y'", "'z'"), ("g(", "h("), ("d, b", "b, d"),
     ("return", "yield"), ("!r", "!s"), (": {", ":{"), ("    for", "    a = iter(a)\n    for"), ("def", "async def"),
     ("d in {", "d not in {"), ("b=1", "b=True"), ("b=1", "b=1.0"), ("b=1", "b=print"), ("b=1", "b=(1,)"),
     ("return g(d, b, f'{c}: {d!r}')", "return (lambda: g(d, b, f'{c}: {d!r}'))()"), ("a, b=1", "a, /, b=1")],
)  # fmt: skip
def test_other_code_has_another_hash(old: str, new: str, load: Callable[..., Any]) -> None:
    assert sources.hash_of(load(SOURCE.replace(old, new, 1))) not in (None, sources.hash_of(load()))


@pytest.mark.parametrize(
    ("old", "new"),
    [("def", "\n\n# a comment\ndef"), ("(a,", "(a: int,"), ("):\n", ") -> str:\n"), ("'x'", '"x"'),
     ("    for", "    'what it does'\n    for"), ("f'{c}: {d!r}'", "f'{c}' ': ' f'{d!r}'"),
     ("def", "import functools\n@functools.lru_cache\ndef"), ("b=1", "b=2 - 1"), ("(d, b", "(\n d,\n b"),
     ("def", "from __future__ import annotations\ndef"), ("d!r}')", "d!r}')\n# the end\nh = 1\n")],
)  # fmt: skip
def test_parts_that_do_not_run_do_not_count(old: str, new: str, load: Callable[..., Any]) -> None:
    changed = load(SOURCE.replace(old, new, 1))
    assert sources.hash_of(inspect.unwrap(changed)) == sources.hash_of(load())


@pytest.mark.parametrize(
    "source",
    [
        # A name that is imported, and one that looks as if it were, make other bytecode.
        "import os\nfrom pathlib import Path\ndef f(a):\n    return os.stat(a), Path.home(), a.home()\n",
        # Private names and super() have the class's meaning.
        "class C:\n    def g(self):\n        return self.__a, super().g()\nf = C.g\n",
        "if True:\n    def f(a):\n        return a\nelse:\n    def f(a):\n        return 2\n",
        "def f(a):\n    class R:\n        size = 8\n        def read(self):\n            return a\n    return R\n",
        "def f(a): return a",
    ],
)
def test_a_function_is_found_in_its_file(source: str, load: Callable[..., Any]) -> None:
    function = load(source)
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    first = next(node for node in nodes if node.name == function.__name__)
    assert sources.hash_of(function) == sources.hash_tree(sources.spell(first), ((), {}))
    assert sources.hash_of(function) == sources.hash_of(load("\n" * 300 + source))


def test_a_default_is_not_evaluated(tmp_path: pathlib.Path) -> None:
    """Neither by the tool nor here: what is no literal counts as no plain value."""
    made = tmp_path / "made"
    call = f"open({str(made)!r}, 'w')"
    (tmp_path / "library.py").write_text(f"def f(a={call}, *, b={call}, c=-1, d=(1, 'x')): pass")
    (found,) = generator.functions(tmp_path, {"library:f": {Uses("a=<object>, *, b=<object>, c=-1, d=(1, 'x')"): []}})
    assert not found.lacking and not made.exists()


def test_defaults_that_were_changed_at_run_time_count(load: Callable[..., Any]) -> None:
    function, before = load(), sources.hash_of(load())
    function.__defaults__ = (5,)
    assert sources.hash_of(function) == sources.hash_of(load(SOURCE.replace("b=1", "b=5"))) != before
    function.__defaults__, function.__kwdefaults__ = (1,), {"c": object()}
    assert sources.hash_of(function) != before


def test_a_file_that_was_replaced_is_gone_or_unreadable(load: Callable[..., Any], tmp_path: pathlib.Path) -> None:
    function = load(SOURCE.replace("'y'", "'w'"))
    load(SOURCE.replace("'y'", "'z'"))
    assert sources.hash_of(function) is None
    (tmp_path / "library.py").write_text("def f(:\n")
    assert sources.hash_of(function) is None
    (tmp_path / "library.py").unlink()
    assert sources.hash_of(function) is None
    assert sources.hash_of(types.FunctionType(compile(SOURCE, "<string>", "exec"), {})) is None


def test_a_module_in_an_archive(tmp_path: pathlib.Path, monkeypatch: Any, load: Callable[..., Any]) -> None:
    with zipfile.ZipFile(tmp_path / "library.zip", "w") as archive:
        archive.writestr("zipped_library.py", SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path / "library.zip"))
    assert sources.hash_of(importlib.import_module("zipped_library").f) == sources.hash_of(load())


@pytest.mark.parametrize("instrument", ["trace", "monitoring", "busy"])
def test_running_and_tracing_the_code_does_not_change_its_hash(instrument: str) -> None:
    """Python rewrites bytecode while it runs; debuggers, coverage and profilers instrument it."""
    if instrument == "monitoring" and not hasattr(sys, "monitoring"):
        pytest.skip("sys.monitoring came with Python 3.12")
    before = sys.gettrace()
    command = [sys.executable, "-c", INSTRUMENTED, instrument, str(pathlib.Path(fastio.__file__).parents[1])]
    assert subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout == "True\n"
    assert sys.gettrace() is before


INSTRUMENTED = """
import sys, textwrap
sys.path.insert(0, sys.argv[2])
from fastio.patching import sources
for _ in range(5000):
    textwrap.indent("a\\nb", " ")
if sys.argv[1] == "trace":
    sys.settrace(lambda frame, event, argument: setattr(frame, "f_trace_opcodes", True))
if sys.argv[1] == "monitoring":
    sys.monitoring.use_tool_id(4, "tests")
    events = sys.monitoring.events
    sys.monitoring.set_events(4, events.LINE | events.INSTRUCTION | events.BRANCH)
textwrap.indent("a\\nb", " ")
print(sources.source(textwrap.indent) is not None)
"""


@pytest.mark.parametrize("options", [("-OO",), ("-E", "-X", "dev")], ids="".join)
def test_patches_are_applied_whatever_python_gets(options: tuple[str, ...], run_python: RunPython) -> None:
    code = """
        import sys
        sys.path[:0] = sys.argv[1:]
        import fastio
        fastio.patch(strict=True)
        from tests.targets import import_targets
        import_targets()
        print({entry.outcome.value for entry in fastio.status().entries} - {"absent", "off"})
        """
    root = str(pathlib.Path(fastio.__file__).parent.parent)
    result = run_python(code, root, options=("-W", "ignore", *options))
    assert result.stdout == "{'applied'}\n"


def test_code_is_recognised_by_its_source() -> None:
    communicate = native("_communicate")
    known = known_code.recognise(KEY, communicate)
    assert known and known.by == known_code.SOURCE and known.releases.startswith("CPython 3.")
    assert known_code.recognise("subprocess:Popen.nothing", communicate) is None
    assert known_code.recognise(KEY, native("_save_input")) is None
    copy = types.FunctionType(communicate.__code__, communicate.__globals__)
    assert known_code.recognise(KEY, copy) == known
    copy.__defaults__ = (None,)
    assert known_code.recognise(KEY, copy) is None


def test_fingerprints_are_those_of_replaced_code_only() -> None:
    """It has what patches replace and nothing else, as the tool writes it, and is small."""
    path = pathlib.Path(known_code.__file__).with_name("fingerprints.json")
    text, table = path.read_text(encoding="utf-8"), known_code.table()
    assert text == json.dumps(table, indent=1, sort_keys=True) + "\n" and len(text) <= 20_000
    assert set(table) == {key for key, uses, *_ in generator.declared() if uses.parameters is None}
    for of_key in table.values():
        for hashed, releases in of_key.items():
            name, *versions = releases.split(" ")
            assert len(hashed) == 16 and set(hashed) <= set("0123456789abcdef")
            assert versions == known_code.ordered(versions) and name


def test_every_micro_release_of_python_is_known_as_a_whole() -> None:
    """Each of them gets the same as the newest one."""
    keys = [key for key in known_code.table() if known_code.CPYTHON in known_code.releases(key)]
    versions = {version for key in keys for version in known_code.releases(key)[known_code.CPYTHON]}
    # The releases of Debian 12, 13 and sid, and of Ubuntu 22.04 and 24.04.
    assert versions >= {"3.10.12", "3.11.2", "3.12.3", "3.13.5", "3.14.10", "3.15.2"}
    for version in versions:
        wanted = generator.wanted_of(known_code.CPYTHON, version)
        replaced = {key for key, uses in wanted.items() if any(each.parameters is None for each in uses)}
        missing = [key for key in replaced if version not in known_code.releases(key)[known_code.CPYTHON]]
        assert replaced and missing == [], version


READ = """
import sys, pathlib, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import ast
from fastio.patching import known_code, sources
for path in map(pathlib.Path, sys.argv[2:]):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            print(path.name, node.name, node.lineno, sources.hash_tree(sources.spell(node), ((), {})))
import subprocess, tempfile, fractions
for cls in (subprocess.Popen, tempfile.SpooledTemporaryFile, fractions.Fraction):
    for function in vars(cls).values():
        if type(function) is type(ast.parse):
            assert sources.hash_of(function), function
"""


def test_every_python_reads_the_same(tmp_path: pathlib.Path) -> None:
    """All functions of some large modules of the oldest one's standard library, as each of them reads them.

    Each also finds the sources of its library's functions, which its compiler makes other bytecode of.
    """
    here = pythons.here(f"3.{minor}" for minor in range(10, 16))
    others = [each.path for each in here.values() if each.path != sys.executable]
    if not others:
        pytest.skip(f"no other Python beside {sys.base_prefix}, on the path or in pyenv")
    asking = "import platform, sysconfig; print(platform.python_version(), sysconfig.get_path('stdlib'))"
    told = [subprocess.check_output([python, "-c", asking], text=True).split() for python in (sys.executable, *others)]
    _, library = min(told, key=lambda each: Version(each[0]))
    modules = [f"{library}/{name}" for name in ("subprocess.py", "_pyio.py", "argparse.py", "inspect.py")]
    root, found = str(pathlib.Path(known_code.__file__).parents[2]), {}
    for python in (sys.executable, *others):
        result = subprocess.run([python, "-c", READ, root, *modules], stdout=subprocess.PIPE, text=True, check=True)
        found[python] = result.stdout
    assert found[sys.executable].count("\n") > 500
    assert set(found.values()) == {found[sys.executable]}


def test_all_that_is_installed_here_is_known() -> None:
    """The releases that the tests run with have been read: the tool finds nothing new, and hashes as is done here."""
    import_targets()
    for finding in generator.installed():
        assert not finding.unknown, str(finding)
    stdlib = pathlib.Path(sysconfig.get_path("stdlib"))
    hashes = {each.hashed for each in generator.functions(stdlib, {KEY: {}})}
    assert sources.hash_of(native("_communicate")) in hashes


# Used parts of code that goes on running


@pytest.mark.parametrize(
    ("uses", "source", "lacking"),
    [
        (Uses("self, a, b=1, *c, d=2, **e"), "def f(self, a, b=1, *c, d=2, **e): return a", ""),
        (Uses("a, /, b, *, c"), "def f(a, /, b, *, c): pass", ""),
        (Uses("a, *_"), "def f(a, b=1, *c, d=2, **e): pass", ""),
        (Uses("*_"), "def f(a, /, b): pass", ""),
        (Uses(""), "def f(): pass", ""),
        (Uses("a", "yield g b key"), "def f(a: int):\n def h(): a.b\n yield g(key=1)", ""),
        (Uses("a", "x"), "def f(a): return [x for x in a]", ""),
        (Uses("a"), "def f(b): pass", "takes (b), not (a)"),
        (Uses("a"), "def f(a, b=1): pass", "takes (a, b=1), not (a)"),
        (Uses("a, b=1"), "def f(a, b=2): pass", "takes (a, b=2), not (a, b=1)"),
        (Uses("a, b=1"), "def f(a, *, b=1): pass", "takes (a, *, b=1), not (a, b=1)"),
        (Uses("a, *_"), "def f(b, a): pass", "takes (b, a)"),
        (Uses("a=<object>"), "def f(a=print): pass", ""),
        (Uses("a"), "def f(a): yield a", "is a generator"),
        (Uses("a", "yield"), "def f(a): return a", "no longer one"),
        (Uses("a"), "async def f(a): return a", "coroutine"),
        (Uses("a", "g h"), "def f(a): g(a.i)", "has no h"),
    ],
)
def test_missing_parts_of_a_function(uses: Uses, source: str, lacking: str) -> None:
    namespace: dict[str, Any] = {}
    exec(compile(source, "library.py", "exec", dont_inherit=True), namespace)
    function = namespace["f"]
    found = known_code.lacks(uses, function.__code__, sources.defaults(function))
    assert lacking in found and bool(lacking) is bool(found)


#: Patches, and the functions of a module that they replace, or must know for another reason.
REPLACED = [
    ("communicate green_communicate", "subprocess",
     "Popen._communicate _communicate_io_posix _flush_stdin _make_input_view"),
    ("fix_green_epipe", "eventlet.green.os", "write"),
    ("glance_sendfile", "eventlet.wsgi", "HttpProtocol.handle_one_response"),
    # A proxy of a chunk's data has to pass by like the data itself.
    *(("glance_sendfile glance_slow_clients", module, function) for module, function in (
        ("glance.api.common", "size_checked_iter"),
        ("glance.api.middleware.cache", "CacheFilter.get_from_cache"),
        ("glance.notifier", "ImageProxy._get_chunk_data_iterator"),
        ("glance_store._drivers.filesystem", "ChunkedFile.__iter__"),
    )),
    ("glance_uploads", "glance.common.wsgi", "_UWSGIChunkFile.read"),
    ("glanceclient_hashing", "glanceclient.common.utils", "integrity_iter"),
    ("green_pipe", "eventlet.greenio.py3",
     "GreenFileIO.read GreenFileIO.readall GreenFileIO.readinto GreenFileIO.write"),
    ("green_sendall", "eventlet.greenio.base", "GreenSocket.send GreenSocket.sendall"),
    ("oslo_spawn", "oslo_concurrency.processutils", "_subprocess_setup"),
    ("s3_client", "glance_store._drivers.s3", "Store._create_s3_client"),
    ("s3_singlepart", "glance_store._drivers.s3", "Store._add_singlepart"),
    ("store_s3", "glance_store._drivers.s3", "Store._add_multipart"),
    ("store_swift", "glance_store._drivers.swift.buffered", "BufferedReader._buffer"),
    # The proxy of the body relies on upstream's way to read it.
    ("urllib3_blocks urllib3_sendfile", "urllib3.connection", "HTTPConnection.request"),
]  # fmt: skip


def test_only_what_is_replaced_has_to_be_known() -> None:
    """A new target declares its uses, or replaces the code."""
    strict = {
        (patch.name, key)
        for patch, target in TARGETS
        for key, uses in target.functions(None).items()
        if uses.parameters is None
    }
    assert strict == {
        (name, f"{module}:{function}")
        for names, module, functions in REPLACED
        for name in names.split()
        for function in functions.split()
    }
    for patch, target in TARGETS:
        if (patch.name, next(iter(target.functions(None)))) not in strict:
            # The release shows a patch which code it replaces; of unknown code there is none.
            assert "release" not in target.make.__code__.co_names  # type: ignore[attr-defined]


# Unknown functions of upstream's

#: Backports as a distribution may make them: patch, function, the edit of its source, why the patch is left alone.
BACKPORTS = [
    # An added line, an added check, another time-out: the parts that the patch relies on are unchanged.
    ("fix_green_encoding", "eventlet.green.subprocess:Popen.__init__", "self.args = args", "self.args = [*args]", ""),
    ("trace_hub", "eventlet.hubs.hub:BaseHub.switch", "self.ensure_greenlet()", "self.ensure_greenlet(); _ = 1", ""),
    ("image_hashing", "glance_store.common.utils:get_hasher",
     "hashlib.new(str(hash_algo))", "hashlib.new(str(hash_algo), usedforsecurity=usedforsecurity)", ""),
    ("image_fairness", "glance_store._drivers.filesystem:Store.get", "offset=offset", "offset=offset or 0", ""),
    ("image_fairness", "glance_store._drivers.filesystem:Store.add",
     "datadir = self._find", "image_id = str(image_id); datadir = self._find", ""),
    ("store_filesystem", "glance_store._drivers.filesystem:Store.add",
     "if os.path.exists(filepath)", "if os.path.lexists(filepath)", ""),
    ("store_filesystem", "glance_store._drivers.filesystem:ChunkedFile.__iter__",
     "self.partial_length <= 0", "self.partial_length < 1", ""),
    ("store_http", "glance_store._drivers.http:http_response_iterator",
     "conn.close()", "response.close(); conn.close()", ""),
    ("store_swift", "glance_store._drivers.swift.store:BaseStore._get_object", "headers = {}", "headers = dict()", ""),
    ("store_swift", "swiftclient.client:HTTPConnection.__init__", "not in ('http', 'https')", "not in ['https']", ""),
    ("store_rbd", "glance_store._drivers.rbd:ImageIterator.__iter__", "bytes_left > 0", "bytes_left >= 1", ""),
    ("fix_cinder_file_volumes", "glance_store._drivers.cinder.store:Store._open_cinder_volume",
     "open(device['path'], mode)", "open(device['path'], 'rb+' if mode == 'wb' else mode)", ""),
    ("fix_cinder_read_errors", "glance_store._drivers.cinder.store:CinderVolumeIterator.close",
     "self._closed = True", "self._closed = True; self._next = None", ""),
    ("glanceclient_hashing", "glanceclient.common.utils:serious_integrity_iter", "errno.EPIPE", "errno.EIO", ""),
    ("openstacksdk_download", "openstack.object_store.v1._proxy:Proxy.get_object",
     "exceptions.raise_from_response(response)", "exceptions.raise_from_response(response, 'x')", ""),
    ("trace_subprocess", "subprocess:Popen.communicate", "self.stdout.close()", "self.stdout.close(); timeout = 9", ""),
    ("communicate", "subprocess:Popen._save_input", "self._input is None:", "self._input is None and True:", ""),
    ("wait", "subprocess:Popen._wait", "delay = 0.0005", "delay = 0.001", ""),
    ("oslo_spawn", "subprocess:Popen._execute_child", "isinstance(args, (str,", "isinstance(args, (str, str,", ""),
    # Another signature, another default.
    ("green_wait", "eventlet.green.subprocess:Popen.wait", "check_interval=0.01", "check_interval=0.02", "takes"),
    ("wait", "subprocess:Popen._wait", "def _wait(self, timeout)", "def _wait(self, timeout, limit=0)", "takes"),
    ("store_vmware", "glance_store.common.utils:chunkiter", "chunk_size=65536", "chunk_size=1048576", "takes"),
    ("image_fairness", "glance_store._drivers.filesystem:Store.add",
     "def add(self, image_id, image_file,", "def add(self, image_id, source,", "takes"),
    ("communicate", "subprocess:Popen._check_timeout",
     "skip_check_and_raise=False", "skip_check_and_raise=True", "takes"),
    ("store_swift", "swiftclient.client:Connection.put_object",
     "contents, content_length=None", "contents, size=None", "takes"),
    # A call that is relied on is gone, or made otherwise.
    ("green_wait", "eventlet.green.subprocess:Popen.wait", "self.poll()", "self._poll()", "has no poll"),
    ("communicate", "subprocess:Popen._save_input", "self._input_offset = 0", "pass", "has no _input_offset"),
    ("store_filesystem", "glance_store._drivers.filesystem:Store.configure_add",
     "self.WRITE_CHUNKSIZE = self.READ_CHUNKSIZE", "self.WRITE_CHUNKSIZE = 65536", ""),
    ("store_filesystem", "glance_store._drivers.filesystem:Store.add", "not any(buf)", "not all(buf)", "has no any"),
    ("store_filesystem", "glance_store._drivers.filesystem:Store.add",
     "datadir = self._find", "open('x'); datadir = self._find", ""),
    ("store_swift", "glance_store._drivers.swift.store:BaseStore._get_object",
     "resp_chunk_size=self.CHUNKSIZE, ", "", "has no CHUNKSIZE"),
    ("fix_cinder_read_errors", "glance_store._drivers.cinder.store:CinderVolumeIterator.__next__",
     "except Exception:\n", "except StopIteration:\n", "has no Exception"),
    ("fix_cinder_file_volumes", "glance_store._drivers.cinder.store:Store._open_cinder_volume",
     "open(device['path'], mode)", "io.FileIO(device['path'], mode)", "has no open"),
    ("fix_swift_last_segment", "glance_store._drivers.swift.store:BaseStore.add",
     "content_length = chunk_size", "content_length = min(chunk_size, image_size)", ""),
    ("glanceclient_hashing", "glanceclient.common.utils:serious_integrity_iter",
     "hasher.update(chunk)", "hasher.feed(chunk)", "has no update"),
    ("openstacksdk_download", "openstack.object_store.v1.obj:Object.stream",
     "iter_content(chunk_size,", "iter_content(1024,", ""),
    ("openstacksdk_download", "openstack.image._download:DownloadMixin.download",
     "session.get(url, stream=stream)", "session.get(url, stream=True)", ""),
    # It is of another kind.
    ("store_http", "glance_store._drivers.http:http_response_iterator",
     "yield chunk", "return chunk", "generator"),
    ("trace_hub", "eventlet.hubs.hub:BaseHub.switch", "def switch(", "async def switch(", "coroutine"),
    # Something is called at another time, caught, or tried again: harmless where all of that is upstream's own.
    ("store_rbd", "glance_store._drivers.rbd:Store.add",
     "image.write(chunk, offset)", "[image.write(chunk, offset) for _ in range(2)]", ""),
    ("green_wait", "eventlet.green.subprocess:Popen.wait", "self.poll()", "self.poll() or self.poll()", ""),
    ("store_swift", "swiftclient.client:Connection.put_object", "self._retry(", "self._retry and self._retry(", ""),
    ("fix_cinder_read_errors", "glance_store._drivers.cinder.store:CinderVolumeIterator.__next__",
     "except Exception:\n", "except BaseException:\n", "has no Exception"),
    ("glance_sendfile", "glance_store._drivers.filesystem:ChunkedFile.__iter__",
     "chunk = self.fp.read(size)", "chunk = self.fp.read(size) or self.fp.read(size)", "unknown code"),
    ("glance_slow_clients", "glance_store._drivers.filesystem:ChunkedFile.__iter__",
     "yield chunk", "before, chunk = chunk, self.fp.read(0) or chunk; yield before", "unknown code"),
    ("green_pipe", "eventlet.greenio.py3:GreenFileIO.write", "while ", "while True and ", "unknown code"),
    ("store_s3", "glance_store._drivers.s3:Store._add_multipart",
     "mpu['UploadId']", "mpu['UploadId'] or mpu['UploadId']", "unknown code"),
    ("fix_green_epipe", "eventlet.green.os:write", "except OSError as", "except (OSError, ValueError) as",
     "unknown code"),
    # Replaced code has to be known, all of it.
    ("communicate", "subprocess:Popen._communicate", "stdout = None\n", "stdout = b''\n", "unknown code"),
    ("green_sendall", "eventlet.greenio.base:GreenSocket.send", "return self._send", "flags &= 1; return self._send",
     "unknown code"),
    ("s3_singlepart", "glance_store._drivers.s3:Store._add_singlepart",
     "image_data = b''", "image_data = b''; LOG.debug('x')", "unknown code"),
    ("glanceclient_hashing", "glanceclient.common.utils:integrity_iter", "errno.EPIPE", "errno.EIO", "unknown code"),
    ("urllib3_blocks", "urllib3.connection:HTTPConnection.request", "if headers is None", "if not headers",
     "unknown code"),
]  # fmt: skip


def edited(key: str, old: str, new: str, directory: pathlib.Path) -> Any:
    """Return the object at ``key`` in a copy of its module where the function's source was edited."""
    module, _, path = key.partition(":")
    text = pathlib.Path(sys.modules[module].__file__ or "").read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    name = registry.last_name(key)
    for node in (node for node in ast.walk(ast.parse(text)) if getattr(node, "name", "") == name):
        first, last = node.lineno - 1, node.end_lineno  # type: ignore[attr-defined]
        lines[first:last] = ["".join(lines[first:last]).replace(old, new)] + [""] * (last - first - 1)
    assert "".join(lines) != text, f"{old!r} is not in {key}"
    file = directory / "backported.py"
    file.write_text("".join(lines), encoding="utf-8")
    namespace = {**{name: value for name, value in vars(sys.modules[module]).items() if name.startswith("__")}}
    exec(compile("".join(lines), str(file), "exec", dont_inherit=True), namespace)
    value: Any = types.SimpleNamespace(**namespace)
    for part in path.split("."):
        value = inspect.getattr_static(value, part)
    return value


@pytest.fixture
def replace() -> Iterator[Callable[[Any, str, Any], None]]:
    """``replace(owner, name, value)`` until the end of the test, when all is taken back first."""
    import_targets()
    with pytest.MonkeyPatch.context() as context:
        yield context.setattr
        fastio.unpatch()


@pytest.mark.parametrize(("name", "key", "old", "new", "said"), BACKPORTS)
def test_backports(
    name: str, key: str, old: str, new: str, said: str, replace: Callable[..., None], tmp_path: pathlib.Path
) -> None:
    """One without what is used is refused, and one of what is replaced; any other is accepted."""
    patch = next(patch for patch in registry.all_patches() if patch.name == name)
    here = [target for target in patch.targets if can_be_applied(patch, target)]
    # The target of the function itself, or one that relies on it.
    code = {target.key: target.functions() for target in here}
    concerned = sorted((each for each in here if key in code[each.key]), key=lambda target: target.key != key)
    if not concerned:
        pytest.skip(f"{key} is not here")
    target = concerned[0]
    attribute = next(attribute for attribute, its in target.beside.items() if its == key)
    hooks.recognise(target)
    replace(target.owner(), attribute, edited(key, old, new, tmp_path))
    trace: dict[str, Any] = {"trace": str(tmp_path / "trace")} if name in registry.TRACE_NAMES else {}
    fastio.patch(None if trace else name, **trace)
    entry = next(entry for entry in fastio.status().entries if (entry.name, entry.target) == (name, target.key))
    if said:
        assert (entry.outcome, entry.in_effect, entry.known_by) == (Outcome.CHANGED, False, "")
        assert said in entry.found
    else:
        assert (entry.outcome, entry.in_effect, entry.known_by) == (Outcome.APPLIED, True, known_code.USES)


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_a_method_that_is_no_method_any_more(kind: Any, replace: Callable[..., None]) -> None:
    """Its code is known, but it is called otherwise."""
    popen = holders.native_popen()
    if popen is None:
        pytest.skip("the native class is not here")
    replace(popen, "_save_input", kind(popen._save_input))
    report = fastio.patch("communicate")
    assert report.outcome("communicate") is Outcome.CHANGED
    assert report.entries[0].found == f"_save_input is a {kind.__name__}"
