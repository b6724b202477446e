"""Contracts: what a function may change, and what it may not, while it is wrapped or called."""

import ast
import inspect
import pathlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastio
from fastio.patching import catalogue, contracts, holders, hooks, registry, syntax
from fastio.patching.registry import Target
from fastio.report import Outcome
from tests.conftest import everything
from tests.targets import can_be_applied, function_at, import_targets

TARGETS = [(patch, target) for patch in registry.all_patches() for target in patch.targets]


def function_of(source: str) -> tuple[Any, syntax.Function]:
    """The function ``f`` that the source defines, and its syntax tree."""
    found = dict(syntax.functions(source, "library.py", {"f"}))["f"]
    namespace: dict[str, Any] = {}
    exec(compile(source, "library.py", "exec", dont_inherit=True), namespace)
    return namespace["f"], found.node


def check(stub: str, source: str) -> str:
    return contracts.violation(contracts.stubs(stub)["f"], *function_of(source))


@pytest.mark.parametrize(
    ("stub", "source"),
    [
        ("def f(self, a, b=1, *c, d=2, **e): ...", "def f(self, a, b=1, *c, d=2, **e): return a"),
        ("def f(a, /, b, *, c): ...", "def f(a, /, b, *, c): pass"),
        ("def f(a, *_): ...", "def f(a, b=1, *c, d=2, **e): pass"),
        ("def f(*_): ...", "def f(a, /, b): pass"),
        ("def f(a: int) -> str: ...", "def f(a): pass"),
        ("def f():\n yield _", "def f():\n yield 1\n yield 2"),
        ("async def f(): ...", "async def f(): pass"),
        ("def f():\n return _, _", "def f():\n def g():\n  return 1\n return g, (lambda: 1)"),
        ("def f():\n return None\n return g()", "def f():\n if x:\n  return None\n return g()"),
        ("def f():\n g(_, *_)", "def f():\n print(g(1))\n g(1, 2, *h)"),
        ("def f():\n g(1, b=_, **_)", "def f():\n g(1, a=1, b=2, c=3)\n a.g()\n h(2)"),
        ("def f():\n g(1, b=_)", "def f():\n g(1, b=h(2))"),
        ("def f():\n g(**_)", "def f():\n g(a=1)\n g(**a)"),
        ("def f():\n a.b = _", "def f():\n if x:\n  a.b = 1"),
        ("def f():\n a.b", "def f(): print(a.b)"),
        ("def f():\n for a in b:\n  g(a)", "def f():\n with c:\n  for a in b:\n   g(a)\n h()"),
        ("def f():\n g()", "def f():\n def h():\n  g()"),
    ],
)  # fmt: skip
def test_what_keeps_to_a_contract(stub: str, source: str) -> None:
    assert check(stub, source) == ""


@pytest.mark.parametrize(
    ("stub", "source", "said"),
    [
        ("def f(a, b=1): ...", "def f(a, b=2): pass", "takes (a, b=2), not (a, b=1)"),
        ("def f(a, b): ...", "def f(a, c): pass", "takes (a, c), not (a, b)"),
        ("def f(a, b): ...", "def f(b, a): pass", "takes"),
        ("def f(a): ...", "def f(a, b=None): pass", "takes"),
        ("def f(a, b): ...", "def f(a, *, b): pass", "takes (a, *, b)"),
        ("def f(a, b): ...", "def f(a, /, b): pass", "takes (a, /, b)"),
        ("def f(a): ...", "def f(*a): pass", "takes (*a)"),
        ("def f(a): ...", "def f(**a): pass", "takes (**a)"),
        ("def f(a=1): ...", "def f(a=True): pass", "takes (a=True)"),
        ("def f(a, *_): ...", "def f(b, a): pass", "takes (b, a), not (a, *_)"),
        ("def f(a, *_): ...", "def f(): pass", "takes ()"),
        ("def f(*, a=1): ...", "def f(*, a): pass", "takes (*, a)"),
        ("def f():\n yield _", "def f(): return g()", "generator"),
        ("def f(): ...", "def f(): yield 1", "generator"),
        ("def f(): ...", "async def f(): pass", "coroutine"),
        ("async def f(): ...", "async def f(): yield 1", "generator"),
        ("def f():\n yield g(_)", "def f():\n yield g(1)\n yield 2", "has '(yield 2)', not '(yield g(_))'"),
        ("def f():\n return _, _", "def f():\n if x:\n  return 1, 2\n return 1, 2, 3", "has 'return (1, 2, 3)'"),
        ("def f():\n return _, _", "def f():\n return g()", "has 'return g()', not 'return (_, _)'"),
        ("def f():\n return a\n return b", "def f():\n return c", "not 'return a' or 'return b'"),
        ("def f():\n return _", "def f():\n def g():\n  return 1", "has no 'return _'"),
        ("def f():\n return _", "def f():\n return", "has 'return', not"),
        ("def f():\n g(_)", "def f():\n h(1)", "has no 'g(_)'"),
        ("def f():\n g(_)", "def f():\n g(1)\n g(1, 2)", "has 'g(1, 2)', not 'g(_)'"),
        ("def f():\n g(_)", "def f():\n g(1)\n g(*a)\n g(a=1)", "has 'g(a=1)'"),
        ("def f():\n g(a=1)", "def f():\n g(a=2)", "has no 'g(a=1)'"),
        ("def f():\n g(a=1)", "def f():\n g(a=1, b=2)", "has no 'g(a=1)'"),
        ("def f():\n g(a=1, **_)", "def f():\n g(b=1)", "has no"),
        ("def f():\n g()", "def f():\n g", "has no 'g()'"),
        ("def f():\n a.b = _", "def f():\n a.c = 1", "has no 'a.b = _'"),
        ("def f():\n for a in b:\n  g(a)", "def f():\n for a in b:\n  h(a)\n  g(a)", "has no 'for a in b:"),
    ],
)  # fmt: skip
def test_what_breaks_a_contract(stub: str, source: str, said: str) -> None:
    assert said in check(stub, source)


def test_defaults_are_those_of_the_function_now() -> None:
    function, node = function_of("def f(a=1): pass")
    stub = contracts.stubs("def f(a=1): ...")["f"]
    assert contracts.violation(stub, function, node) == ""
    function.__defaults__ = (2,)
    assert "takes (a=2)" in contracts.violation(stub, function, node)


@pytest.mark.parametrize(("patch", "target"), TARGETS, ids=lambda value: getattr(value, "key", None) or value.name)
def test_known_code_keeps_to_the_contracts(patch: registry.Patch, target: Target) -> None:
    """Each stub is of a function that the target is about, and what is installed here keeps to it."""
    stubs = contracts.stubs(target.contract)
    assert stubs.keys() <= set(map(registry.last_name, target.keys_for(None)))
    import_targets()
    try:
        hooks.recognise(target)
    except Exception as error:
        pytest.skip(f"not here: {error}")
    functions = {key: function_at(target, name, key) for name, key in target.beside.items()}
    functions |= {key: hooks._function_at(key) for key in target.elsewhere}
    for key, function in functions.items():
        stub = stubs.get(registry.last_name(key))
        source = catalogue.source(hooks._original(function))
        if stub is not None:
            assert source is not None
            assert contracts.violation(stub, hooks._original(function), source.node) == ""


def test_only_what_is_replaced_has_to_be_known() -> None:
    """Whoever adds a target says by a contract what it relies on, or finds that it takes over what the code does."""
    strict = {
        (patch.name, key)
        for patch, target in TARGETS
        for key in target.keys_for(None)
        if registry.last_name(key) not in contracts.stubs(target.contract)
    }
    assert strict == {
        ("communicate", "subprocess:Popen._communicate"),
        ("fix_green_epipe", "eventlet.green.os:write"),
        ("glance_sendfile", "eventlet.wsgi:HttpProtocol.handle_one_response"),
        ("glance_sendfile", "glance.api.common:size_checked_iter"),
        ("glance_slow_clients", "glance.api.common:size_checked_iter"),
        ("glance_uploads", "glance.common.wsgi:_UWSGIChunkFile.read"),
        ("glanceclient_hashing", "glanceclient.common.utils:integrity_iter"),
        ("green_communicate", "subprocess:Popen._communicate"),
        ("green_pipe", "eventlet.greenio.py3:GreenFileIO.read"),
        ("green_pipe", "eventlet.greenio.py3:GreenFileIO.readall"),
        ("green_pipe", "eventlet.greenio.py3:GreenFileIO.readinto"),
        ("green_pipe", "eventlet.greenio.py3:GreenFileIO.write"),
        ("green_sendall", "eventlet.greenio.base:GreenSocket.send"),
        ("green_sendall", "eventlet.greenio.base:GreenSocket.sendall"),
        ("oslo_spawn", "oslo_concurrency.processutils:_subprocess_setup"),
        ("s3_client", "glance_store._drivers.s3:Store._create_s3_client"),
        ("s3_singlepart", "glance_store._drivers.s3:Store._add_singlepart"),
        ("store_s3", "glance_store._drivers.s3:Store._add_multipart"),
        ("store_swift", "glance_store._drivers.swift.buffered:BufferedReader._buffer"),
        # What stands for the body relies on how upstream reads it.
        ("urllib3_blocks", "urllib3.connection:HTTPConnection.request"),
        ("urllib3_sendfile", "urllib3.connection:HTTPConnection.request"),
        *((name, f"subprocess:{function}")
          for name in ("communicate", "green_communicate")
          for function in ("_communicate_io_posix", "_flush_stdin", "_make_input_view")),
    }  # fmt: skip
    for patch, target in TARGETS:
        if (patch.name, target.keys[0]) not in strict:
            # The release tells a patch apart what it replaces; of code that is not known there is none.
            assert "release" not in target.make.__code__.co_names  # type: ignore[attr-defined]


# What becomes of a function of upstream's that is not known

#: Backports as a distribution may make them: patch, function, what is edited in its source, what becomes of the patch.
BACKPORTS = [
    # An added line, an added check, another time-out: what the patch relies on is as it was.
    ("green_wait", "eventlet.green.subprocess:Popen.wait", "time.time() > endtime", "time.time() >= endtime", ""),
    ("green_wait", "eventlet.green.subprocess:Popen.wait", "eventlet.sleep(check_", "eventlet.sleep(2 * check_", ""),
    ("fix_green_encoding", "eventlet.green.subprocess:Popen.__init__", "self.args = args", "self.args = [*args]", ""),
    ("trace_hub", "eventlet.hubs.hub:BaseHub.switch", "self.ensure_greenlet()", "self.ensure_greenlet(); _ = 1", ""),
    ("image_hashing", "glance_store.common.utils:get_hasher",
     "hashlib.new(str(hash_algo))", "hashlib.new(str(hash_algo), usedforsecurity=usedforsecurity)", ""),
    ("image_fairness", "glance_store._drivers.filesystem:Store.get", "offset=offset", "offset=offset or 0", ""),
    ("image_fairness", "glance_store._drivers.filesystem:Store.add",
     "datadir = self._find", "image_id = str(image_id); datadir = self._find", ""),
    ("store_filesystem", "glance_store._drivers.filesystem:Store.add",
     "if os.path.exists(filepath)", "if os.path.lexists(filepath)", ""),
    ("store_filesystem", "glance_store._drivers.filesystem:Store.configure_add",
     "fdir = self.store", 'LOG.debug("configured"); fdir = self.store', ""),
    ("store_filesystem", "glance_store._drivers.filesystem:ChunkedFile.__iter__",
     "self.partial_length <= 0", "self.partial_length < 1", ""),
    ("store_http", "glance_store._drivers.http:http_response_iterator",
     "conn.close()", "response.close(); conn.close()", ""),
    ("store_swift", "glance_store._drivers.swift.store:BaseStore._get_object", "headers = {}", "headers = dict()", ""),
    ("store_swift", "swiftclient.client:HTTPConnection.__init__", "not in ('http', 'https')", "not in ['https']", ""),
    ("store_swift", "swiftclient.client:Connection.put_object", "self.retries > 0", "self.retries >= 1", ""),
    ("store_rbd", "glance_store._drivers.rbd:ImageIterator.__iter__", "bytes_left > 0", "bytes_left >= 1", ""),
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
    ("green_wait", "eventlet.green.subprocess:Popen.wait", "self.poll()", "self._poll()", "has no 'self.poll()'"),
    ("communicate", "subprocess:Popen._save_input", "self._input_offset = 0", "pass", "has no 'self._input_"),
    ("communicate", "subprocess:Popen.communicate",
     "self._communicate(input, endtime, timeout)", "self._communicate(input, endtime)", "has no 'self._communicate"),
    ("store_filesystem", "glance_store._drivers.filesystem:Store.configure_add",
     "self.WRITE_CHUNKSIZE = self.READ_CHUNKSIZE", "self.WRITE_CHUNKSIZE = 65536", "has no 'self.WRITE_CHUNKSIZE ="),
    ("store_filesystem", "glance_store._drivers.filesystem:Store.add", "not any(buf)", "not all(buf)", "has no"),
    ("store_filesystem", "glance_store._drivers.filesystem:Store.add",
     "datadir = self._find", "open('x'); datadir = self._find", "has \"open('x')\", not"),
    ("store_swift", "glance_store._drivers.swift.store:BaseStore._get_object",
     "resp_chunk_size=self.CHUNKSIZE, ", "", "has no 'manager"),
    ("fix_cinder_read_errors", "glance_store._drivers.cinder.store:CinderVolumeIterator.__next__",
     "except Exception:\n", "except StopIteration:\n", "has no 'try:"),
    ("fix_swift_last_segment", "glance_store._drivers.swift.store:BaseStore.add",
     "content_length = chunk_size", "content_length = min(chunk_size, image_size)", "has no 'content_length ="),
    ("glanceclient_hashing", "glanceclient.common.utils:serious_integrity_iter",
     "hasher.update(chunk)", "hasher.update(chunk, 0)", "has no 'hasher.update"),
    ("openstacksdk_download", "openstack.object_store.v1.obj:Object.stream",
     "iter_content(chunk_size,", "iter_content(1024,", "has 'return"),
    ("openstacksdk_download", "openstack.image._download:DownloadMixin.download",
     "session.get(url, stream=stream)", "session.get(url, stream=True)", ""),
    # It returns something else, or is of another kind.
    ("image_hashing", "glance_store.common.utils:get_hasher",
     "return hashlib.new(str(hash_algo))", "return hashlib.new(str(hash_algo)), hash_algo", "has 'return"),
    ("image_fairness", "glance_store._drivers.filesystem:Store.get",
     "chunk_size or filesize", "chunk_size or filesize, None", "has 'return"),
    ("trace_stores", "glance_store._drivers.http:Store.get",
     "content_length)\n", "content_length)[0]\n", "has 'return"),
    ("store_http", "glance_store._drivers.http:http_response_iterator",
     "yield chunk", "return chunk", "generator"),
    ("trace_hub", "eventlet.hubs.hub:BaseHub.switch", "def switch(", "async def switch(", "coroutine"),
    # What is replaced has to be known, all of it.
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
    """What stands at ``key`` in a copy of its module where the function's source was edited."""
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


@everything
@pytest.mark.parametrize(("name", "key", "old", "new", "said"), BACKPORTS)
def test_backports(
    name: str, key: str, old: str, new: str, said: str, replace: Callable[..., None], tmp_path: pathlib.Path
) -> None:
    """One that breaks the contract is refused, any other accepted."""
    patch = next(patch for patch in registry.all_patches() if patch.name == name)
    here = [target for target in patch.targets if can_be_applied(patch, target)]
    # That of the function itself, or one that relies on it.
    concerned = sorted((target for target in here if key in target.keys), key=lambda target: target.key != key)
    if not concerned:
        pytest.skip(f"{key} is not here")
    target = concerned[0]
    attribute = next(attribute for attribute, its in target.beside.items() if its == key)
    assert hooks.recognise(target).by != hooks.BY_CONTRACT
    replace(target.owner(), attribute, edited(key, old, new, tmp_path))
    trace: dict[str, Any] = {"trace": str(tmp_path / "trace")} if patch.setting else {}
    fastio.patch(None if patch.setting else name, **trace)
    entry = next(entry for entry in fastio.status().entries if (entry.name, entry.target) == (name, target.key))
    if said:
        assert (entry.outcome, entry.in_effect, entry.known_by) == (Outcome.CHANGED, False, "")
        assert said in entry.found
    else:
        assert (entry.outcome, entry.in_effect, entry.known_by) == (Outcome.APPLIED, True, "contract")
        changed = key == target.keys[0]
        assert entry.found.startswith("changed code, by contract" if changed else "code of ")
        assert entry.found.endswith("" if changed else f"; by contract: {attribute}")


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
