"""Writes ``fastio/patching/fingerprints.json``: the code of upstream's releases that fastio knows.

    python -m benchmarks.tools.fingerprints --python python3.10 python3.11 --eventlet 0.40.4 0.41.3 --oslo 7.6.1 \\
        --glance-store 5.6.0 5.7.0

Each interpreter hashes its own standard library, the releases of eventlet, oslo.concurrency, glance_store,
swiftclient, glanceclient and glance (downloaded with pip) and further versions of the standard library of its minor
version given by ``--stdlib VERSION=DIRECTORY``. A new release is added only after somebody has read what changed in
it; the file is merged, never started anew, unless ``--fresh`` is given.
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
from types import CodeType

from packaging.version import Version

from fastio.patching.fingerprint import NOT_PLAIN, PYTHON, Defaults, digest, spell

TABLE = pathlib.Path(__file__).resolve().parents[2] / "fastio" / "patching" / "fingerprints.json"
POPEN = (
    "_communicate", "_save_input", "_check_timeout", "_remaining_time", "_translate_newlines", "communicate", "_wait",
    "_try_wait", "_execute_child", "_get_handles", "_close_pipe_fds",
)  # fmt: skip
STDLIB = {
    "subprocess": [*(f"Popen.{name}" for name in POPEN), "run"],
    "_pyio": ["open"],
}
#: eventlet makes a function of its own of this code, which has no defaults.
WITHOUT_DEFAULTS = {"_pyio:open"}
EVENTLET = {
    "eventlet.green.subprocess": ["Popen.wait", "Popen.__init__"],
    "eventlet.green.os": ["write"],
    "eventlet.greenio.base": [f"GreenSocket.{name}" for name in ("sendall", "send", "_send_loop")],
    "eventlet.greenio.py3": [
        f"GreenFileIO.{name}" for name in ("__init__", "_trampoline", "read", "readall", "readinto", "write")
    ],
    "eventlet.hubs.hub": ["BaseHub.switch"],
    "eventlet.wsgi": ["HttpProtocol.handle_one_response"],
}
OSLO = {"oslo_concurrency.processutils": ["_subprocess_setup"]}
#: A pair names the first release whose function has been read and fits what fastio does with it.
GLANCE_STORE: dict[str, list[str | tuple[str, str]]] = {
    "glance_store._drivers.cinder.store": [
        *(f"Store.{name}" for name in ("get", "add", "delete", "_open_cinder_volume", "_cinder_volume_data_iterator")),
        ("Store._write_data", "5.0"),
        "CinderVolumeIterator.__init__",
        "CinderVolumeIterator.__next__",
        "CinderVolumeIterator.close",
    ],
    "glance_store._drivers.filesystem": [
        *(f"Store.{name}" for name in ("get", "add", "configure_add")),
        ("Store.delete", "4.5"),
        "ChunkedFile.__init__",
        "ChunkedFile.__iter__",
        "ChunkedFile.close",
    ],
    "glance_store._drivers.http": ["Store.get", "http_response_iterator"],
    "glance_store._drivers.rbd": [
        *(f"Store.{name}" for name in ("get", "add", "configure_add", "get_size", "get_connection", "_create_image")),
        *(f"Store.{name}" for name in ("_delete_image", "_resize_on_write")),
        ("Store.delete", "4.5"),
        "ImageIterator.__iter__",
        "ImageIterator.__init__",
    ],
    "glance_store._drivers.s3": [
        *(f"Store.{name}" for name in ("get", "add", "_add_singlepart", "_add_multipart", "_create_s3_client")),
        "Store._operation_set",
        "Store.delete",
    ],
    "glance_store._drivers.sheepdog": [
        *(f"Store.{name}" for name in ("get", "add", "configure_add")),
        *(f"SheepdogImage.{name}" for name in ("_run_command", "read")),
    ],
    "glance_store._drivers.swift.buffered": ["BufferedReader._buffer"],
    "glance_store._drivers.swift.store": [
        *(f"BaseStore.{name}" for name in ("get", "add", "_get_object")),
        ("BaseStore.delete", "4.5"),
    ],
    "glance_store._drivers.vmware_datastore": ["Store.get", "Store.add", ("Store.delete", "4.5"), "new_session"],
    "glance_store.common.utils": ["get_hasher", "chunkreadable", "chunkiter"],
}
GLANCE: dict[str, list[str | tuple[str, str]]] = {
    "glance.api.common": ["size_checked_iter"],
    "glance.api.middleware.cache": ["CacheFilter.get_from_cache", "CacheFilter._process_v2_request"],
    "glance.common.config": ["load_paste_app"],
    "glance.common.utils": [
        *("chunkiter", "cooperative_iter", "cooperative_read"),
        *(f"CooperativeReader.{name}" for name in ("__init__", "read", "__iter__")),
        *(f"LimitingReader.{name}" for name in ("__init__", "read", "__iter__")),
    ],
    "glance.common.wsgi": ["Resource.dispatch", ("_UWSGIChunkFile.read", "32.0"), ("_UWSGIChunkFile.__init__", "32.0")],
    "glance.image_cache": ["ImageCache.cache_tee_iter"],
    "glance.location": ["ImageProxy.get_data", "ImageProxy._upload_to_store"],
    "glance.notifier": ["ImageProxy.get_data", "ImageProxy._get_chunk_data_iterator"],
}
SWIFTCLIENT = {
    "swiftclient.client": ["HTTPConnection.__init__", "HTTPConnection.getresponse", "Connection.put_object"]
}
GLANCECLIENT = {
    "glanceclient.common.http": ["_close_after_stream", "HTTPClient._request", "SessionClient.request"],
    "glanceclient.common.utils": ["serious_integrity_iter", "integrity_iter"],
}
#: What is wanted of each distribution.
DISTRIBUTIONS: dict[str, Mapping[str, Sequence[str | tuple[str, str]]]] = {
    "eventlet": EVENTLET,
    "oslo.concurrency": OSLO,
    "glance_store": GLANCE_STORE,
    "python-swiftclient": SWIFTCLIENT,
    "python-glanceclient": GLANCECLIENT,
    "glance": GLANCE,
}


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


def since(release: str, names: Sequence[str | tuple[str, str]]) -> list[str]:
    """Those of ``names`` that are wanted of ``release``."""
    pairs = [(name, "0") if isinstance(name, str) else name for name in names]
    return [name for name, first in pairs if Version(first) <= Version(release)]


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
                    yield key, digest(function, Defaults() if key in WITHOUT_DEFAULTS else its)


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

    add(pathlib.Path(sysconfig.get_path("stdlib")), STDLIB, "CPython " + platform.python_version())
    for spec in arguments.stdlib:
        version, _, directory = spec.partition("=")
        if version.rpartition(".")[0] == PYTHON:
            add(pathlib.Path(directory), STDLIB, "CPython " + version)
    for distribution, versions in (
        ("eventlet", arguments.eventlet),
        ("oslo.concurrency", arguments.oslo),
        ("glance_store", arguments.glance_store),
        ("python-swiftclient", arguments.swiftclient),
        ("python-glanceclient", arguments.glanceclient),
        ("glance", arguments.glance),
    ):
        for version in versions:
            with tempfile.TemporaryDirectory() as directory:
                root = download(distribution, version, pathlib.Path(directory))
                if root is not None:
                    add(root, wanted_of(distribution, version), f"{distribution} {version}")
    return found


def wanted_of(distribution: str, version: str) -> dict[str, list[str]]:
    """The functions that are wanted of a release, by module."""
    return {module: since(version, names) for module, names in DISTRIBUTIONS[distribution].items()}


def releases(text: str) -> list[str]:
    return [release for release in text.split(", ") if release]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", nargs="*", default=[], help="interpreters to run; by default only this one")
    parser.add_argument("--stdlib", nargs="*", default=[], metavar="VERSION=DIRECTORY")
    parser.add_argument("--eventlet", nargs="*", default=[], metavar="VERSION")
    parser.add_argument("--oslo", nargs="*", default=[], metavar="VERSION")
    parser.add_argument("--glance-store", nargs="*", default=[], metavar="VERSION")
    parser.add_argument("--swiftclient", nargs="*", default=[], metavar="VERSION")
    parser.add_argument("--glanceclient", nargs="*", default=[], metavar="VERSION")
    parser.add_argument("--glance", nargs="*", default=[], metavar="VERSION")
    parser.add_argument("--fresh", action="store_true", help="forget what the table holds")
    arguments = parser.parse_args()
    if arguments.fresh:
        TABLE.write_text("{}\n")
    if arguments.python:
        rest = [
            word
            for name in ("stdlib", "eventlet", "oslo", "glance_store", "swiftclient", "glanceclient", "glance")
            for word in ("--" + name.replace("_", "-"), *getattr(arguments, name))
        ]
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
    TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
