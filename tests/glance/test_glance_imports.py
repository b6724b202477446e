"""``glance_imports``: what is imported into three stores is what stock imports, and is hashed once."""

import gzip
import hashlib
import json
import os
import random
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import fastio
from benchmarks.backends.base import HOST, ROOT
from benchmarks.backends.glance import CONFIRMED_IDENTITY, KINDS, RELEASES, SITE, Service
from benchmarks.backends.glance_api import Api
from fastio.io.hashing import pool
from fastio.io.hashing_once import SEGMENT
from tests.glance import importing
from tests.glance.sending import ini
from tests.glance.usable import usable

MIB = 1 << 20
STORES = ["images", "images2", "images3"]
DATA = random.Random(17).randbytes(2 * SEGMENT + 54321)
#: all bytes of it that states are known of
KNOWN = 2 * SEGMENT


class Importer:
    """A running service with three stores."""

    def __init__(self, service: Service, source: str) -> None:
        self.service = service
        self.source = source
        self.api = Api(service.http_port)

    def skipped(self, change_before: str = "") -> int:
        """Bytes that digests were not computed of so far; from now on what is staged changes before that store."""
        return json.loads(self.api.ask("GET", f"{importing.PATH}?{change_before}").body)

    def by(self, method: str, data: bytes = DATA, **fields: Any) -> str:
        """Import ``data``; returns the image."""
        image = self.api.make(data) if method == "copy-image" else self.api.create()
        told: dict[str, str] = {"name": method}
        if method == "glance-direct":
            assert self.api.stage(image, data).status == 204
        elif method == "web-download":
            told["uri"] = f"{self.source}/{data is DATA}"
        stores = STORES[1:] if method == "copy-image" else STORES
        answer = self.api.import_image(image, told, stores, **fields)
        assert answer.status == 202, answer
        return image

    def stored(self, image: str) -> list[bytes | None]:
        paths = [self.service.directory / name / image for name in STORES]
        return [path.read_bytes() if path.exists() else None for path in paths]

    def told(self, image: str) -> dict[str, Any]:
        """Return glance's record of an image, without the parts that differ between services."""
        task = self.api.imported(image)
        shown = self.api.show(image)
        kept = ("status", "size", "checksum", "os_hash_value", "os_hash_algo", "stores", "os_glance_failed_import")
        said = task["message"].replace(image, "").replace(task["id"], "")
        return {**{name: shown.get(name) for name in kept}, "task": task["status"], "message": said}


class _Source(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        data = DATA if self.path == "/True" else gzip.compress(DATA, 1)
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def source() -> Iterator[str]:
    server = ThreadingHTTPServer((HOST, 0), _Source)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://{HOST}:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=RELEASES)
def start(
    request: pytest.FixtureRequest, serve: Callable[..., Service], tmp_path: Path, source: str
) -> Callable[..., Importer]:
    def started(kind: str, **config: Any) -> Importer:
        paste = ini(usable(request.param)().paste(), tmp_path, "importing")
        paste.write_text(re.sub(r"^(keystone = .*)authtoken", r"\1importing", paste.read_text(), flags=re.MULTILINE))
        return Importer(serve(
            request.param, fastio=KINDS[kind], stores=len(STORES), flavor="keystone",
            config={"paste_deploy": {"config_file": paste}, **config},
            environment={"PYTHONPATH": os.pathsep.join(map(str, (ROOT, SITE, CONFIRMED_IDENTITY)))},
        ), source)  # fmt: skip

    return started


def digests(data: bytes) -> dict[str, str]:
    return {
        "checksum": hashlib.md5(data, usedforsecurity=False).hexdigest(),
        "os_hash_value": hashlib.sha512(data).hexdigest(),
        "os_hash_algo": "sha512",
    }


def test_each_way_in(start: Callable[..., Importer]) -> None:
    """Each digest is computed in one pass, whichever asks for it first."""
    patched = start("patched")
    for method, skipped in {
        # Two digests of the staging area's are one; md5 is known in the first store, and both in the others.
        "web-download": KNOWN * (1 + 1 + 2 + 2),
        # All is known of the data already.
        "glance-direct": KNOWN * (2 + 2 + 2 + 2),
        "copy-image": KNOWN * (2 + 2 + 2),
    }.items():
        before = patched.skipped()
        image = patched.by(method)
        told = patched.told(image)
        assert {**told, **digests(DATA)} == told
        assert (told["status"], told["size"]) == ("active", len(DATA))
        assert sorted(told["stores"].split(",")) == STORES
        assert patched.stored(image) == [DATA] * 3
        assert patched.skipped() - before == skipped, method
        assert patched.api.download(image).body == DATA
        assert patched.api.delete(image) == 204
    assert patched.skipped("images2") == before + skipped


def test_changed_files_and_failing_stores(start: Callable[..., Importer]) -> None:
    """The file changes before the second store, a store refuses, a plugin unpacks the file: all as with stock."""
    found: dict[str, list[Any]] = {}
    for kind in KINDS:
        importer = start(kind, image_import_opts={"image_import_plugins": "[image_decompression]"})
        found[kind] = []
        for all_must, method, change_before, refusing, data in (
            (True, "web-download", "images2", "", DATA),
            (False, "glance-direct", "images2", "", DATA),
            (False, "glance-direct", "", "images2", DATA),
            (True, "web-download", "", "", b"gzip"),
        ):
            importer.skipped(change_before)
            if refusing:
                (importer.service.directory / refusing).rename(importer.service.directory / "away")
            image = importer.by(method, data, all_stores_must_succeed=all_must)
            told = importer.told(image)
            if refusing:
                (importer.service.directory / "away").rename(importer.service.directory / refusing)
            stored = [data and hashlib.md5(data, usedforsecurity=False).hexdigest() for data in importer.stored(image)]
            found[kind].append((all_must, method, change_before, refusing, told, stored))
        assert (importer.skipped() > 0) == (kind == "patched")
    assert found["patched"] == found["stock"]
    tasks = [told["task"] for *_, told, _ in found["stock"]]
    assert tasks == ["failure", "success", "success", "success"]
    *_, told, _ = found["stock"][-1]
    assert {**told, **digests(DATA)} == told


class _Image:
    """An object with an image's data, which is given its digests."""

    image_id = "image"

    def __init__(self, *chunks: Any) -> None:
        self._chunks = chunks

    def get_data(self) -> Iterator[bytes | None]:
        yield from self._chunks


@pytest.mark.parametrize("algorithm", ["sha512", "sha256", "nothing"])
def test_an_added_location_is_hashed_by_threads(algorithm: str) -> None:
    location_import = pytest.importorskip("glance.async_.flows.location_import", reason="glance is not installed")

    def found() -> dict[str, Any]:
        image = _Image(DATA[:MIB], DATA[MIB:], None, b"behind the end")
        task = location_import._CalculateHash("task", "type", None, "image", algorithm)
        try:
            task._calculate_hash(image)
        except ValueError as error:
            return {"error": str(error)}
        return {"checksum": image.checksum, "os_hash_value": image.os_hash_value}  # type: ignore[attr-defined]

    stock = found()
    before = pool.batches
    with fastio.patched("glance_imports"):
        assert found() == stock
    assert (pool.batches > before) == (algorithm != "nothing")
