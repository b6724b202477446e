"""``glanceclient_hashing`` and ``openstacksdk_hashing``: threads verify downloads, with the errors of upstream."""

import hashlib
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("requests", reason="requests is not installed: pip install '.[client]'")

import fastio  # noqa: E402
from fastio.io.hashing import BATCH, pool  # noqa: E402
from tests.concurrency.gate import until  # noqa: E402
from tests.outcome import as_upstream, raising  # noqa: E402
from tests.patches.cloud import Cloud  # noqa: E402
from tests.patches.image_api import Image, client, image_api, outcome  # noqa: E402
from tests.stores.http_server import Server  # noqa: E402
from tests.stores.images import content  # noqa: E402

MIB = 1 << 20
GLANCECLIENT, OPENSTACKSDK = "glanceclient_hashing", "openstacksdk_hashing"


def utils() -> Any:
    return pytest.importorskip("glanceclient.common.utils")


def integrity_iter() -> Any:
    """openstacksdk's, which hashes elsewhere in some releases."""
    module = pytest.importorskip("openstack.image._download")
    return getattr(module, "_integrity_iter", None) or pytest.skip("this release of openstacksdk hashes elsewhere")


class Check(NamedTuple):
    """A function that passes on what it is given, and verifies it at the end."""

    patch: str
    algorithm: str
    #: of the pieces and the expected digest
    call: Callable[[Iterator[Any], str], Any]
    error: str
    says: str

    def __call__(self, source: Iterator[Any], data: bytes, right: bool = True) -> Any:
        return self.call(source, hashlib.new(self.algorithm, data).hexdigest() if right else "0")


CORRUPT = r"^\[Errno 32\] Corrupt image download\. .* expected 0$"
CHECKS = {
    "serious_integrity_iter": Check(GLANCECLIENT, "sha512", lambda source, digest: utils().serious_integrity_iter(
        source, hashlib.sha512(), digest), "BrokenPipeError", CORRUPT),
    "integrity_iter": Check(GLANCECLIENT, "md5", lambda source, digest: utils().integrity_iter(
        source, digest), "BrokenPipeError", CORRUPT),
    "openstacksdk": Check(OPENSTACKSDK, "sha512", lambda source, digest: integrity_iter()(
        source, hashlib.sha512(), digest, "sha512"), "InvalidResponse", "checksum mismatch"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    """Threads have nothing to do at a test's end."""
    yield
    until(lambda: not pool.load())


@pytest.fixture(params=list(CHECKS))
def check(request: pytest.FixtureRequest) -> Check:
    return CHECKS[request.param]


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def by_glanceclient(server: Server, path: pathlib.Path) -> tuple[bytes, Any]:
    utils()
    _, data, error, text = outcome(lambda: client(server.url).images.data("a"))
    return data, error and (error, text)


def by_openstacksdk(server: Server, path: pathlib.Path) -> tuple[bytes, Any]:
    integrity_iter()
    path.unlink(missing_ok=True)
    error = None
    try:
        Cloud(server).image.download_image("a", stream=True, output=str(path))
    except Exception as raised:
        error = type(raised), re.sub(r"port=\d+", "", str(raised))
    return path.read_bytes(), error


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("algorithm", ["sha512", "sha256", "md5"])
@pytest.mark.parametrize(("patch", "download"), [(GLANCECLIENT, by_glanceclient), (OPENSTACKSDK, by_openstacksdk)])
def test_downloads(patch: str, download: Any, algorithm: str, right: bool, tmp_path: pathlib.Path) -> None:
    """By the hash of the image's record; MD5 is its ``checksum``."""
    data = content(9 * MIB + 5)
    digest = hashlib.new(algorithm, data if right else data[1:]).hexdigest()
    record = {"checksum": digest} if algorithm == "md5" else {"os_hash_algo": algorithm, "os_hash_value": digest}
    batches: list[int] = []

    def go() -> Any:
        before = pool.batches
        found = download(server, tmp_path / "image")
        batches.append(pool.batches - before)
        return found

    with image_api({"a": Image(data, record=record)}) as server:
        found, error = as_upstream(go, patch)
    assert batches[0] == 0 < batches[1]
    assert (found, error is None) == (data, right)


@pytest.mark.parametrize("right", [True, False])
def test_content_md5(right: bool, tmp_path: pathlib.Path) -> None:
    """The server's header, where the record has neither."""
    data = content(2 * MIB)
    header = hashlib.md5(data).hexdigest() if right else "0"
    with image_api({"a": Image(data, record={}, headers={"Content-MD5": header})}) as server:
        assert (as_upstream(lambda: by_glanceclient(server, tmp_path), GLANCECLIENT)[1] is None) == right


@pytest.mark.parametrize("name", list(CHECKS))
@settings(max_examples=40)
@given(data=st.data())
def test_digests_of_any_pieces(name: str, data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([0, 1, 2047, 2048, BATCH - 1, BATCH, BATCH + 1, 3 * MIB + 1]))
    piece = data.draw(st.integers(max(1, size // 500), max(1, size)))
    right = data.draw(st.booleans())
    whole, check = content(size), CHECKS[name]
    _, found, error, _ = as_upstream(lambda: outcome(lambda: check(pieces(whole, piece), whole, right)), check.patch)
    assert (found, error is None) == (whole, right)


def test_the_error_comes_after_the_last_chunk(check: Check) -> None:
    whole = content(3 * MIB)
    with fastio.patched(check.patch):
        found = check(pieces(whole, MIB), whole, False)
        assert inspect.isgenerator(found)
        assert [len(next(found)) for _ in range(3)] == [MIB] * 3  # type: ignore[arg-type]
        with pytest.raises(Exception, match=check.says) as caught:
            next(found)
        assert type(caught.value).__name__ == check.error
        assert list(found) == []


@pytest.mark.parametrize("name", ["serious_integrity_iter", "integrity_iter"])
def test_text_and_buffers_as_pieces(name: str) -> None:
    whole = content(MIB)
    as_pieces = [whole[:1000].decode("latin-1"), bytearray(whole[1000:500_000]), memoryview(whole)[500_000:]]
    with fastio.patched(GLANCECLIENT):
        assert list(CHECKS[name](iter(as_pieces), whole)) == as_pieces


def test_an_error_of_the_source_is_raised(check: Check) -> None:
    def failing() -> Iterator[bytes]:
        yield content(MIB)
        raise ConnectionResetError(104, "Connection reset by peer")

    assert as_upstream(lambda: outcome(lambda: check(failing(), b"")), check.patch)[2] is ConnectionResetError


def test_left_half_way_the_source_is_left_too(check: Check) -> None:
    closed = []

    def source() -> Iterator[bytes]:
        try:
            while True:
                yield content(MIB)
        finally:
            closed.append(True)

    with fastio.patched(check.patch):
        found = check(source(), b"")
        if check.patch == GLANCECLIENT:
            found = utils().IterableWithLength(found, 10 * MIB)
        iterator = iter(found)
        assert len(next(iterator)) == MIB
        iterator.close()
        del found, iterator
    assert closed == [True]


def test_md5_may_be_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    utils()
    monkeypatch.setattr(hashlib, "new", raising(ValueError("[digital envelope routines] unsupported: md5")))
    found = as_upstream(lambda: outcome(lambda: utils().integrity_iter(iter([b"data"]), "0")), GLANCECLIENT)
    assert "md5 algorithm is not available" in found[3]


def test_a_download_without_a_digest() -> None:
    whole = content(MIB)
    with fastio.patched(OPENSTACKSDK):
        assert b"".join(integrity_iter()(iter([whole]), hashlib.sha512(), None, None)) == whole


def test_the_command(tmp_path: pathlib.Path) -> None:
    """``fastio run -- glance image-download`` of a good image and of a damaged one."""
    utils()
    data = content(3 * MIB + 1)
    bad = {"os_hash_algo": "sha512", "os_hash_value": "0" * 128}
    # Beside this Python, or the distribution's.
    places = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    command = [sys.executable, "-m", "fastio", "run", "--", shutil.which("glance", path=places) or "glance"]
    with image_api({"good": Image(data), "bad": Image(data, record=bad)}) as server:

        def glance(*arguments: str) -> subprocess.CompletedProcess[bytes]:
            options = ["--os-image-url", server.url, "--os-auth-token", "token", "--os-image-api-version", "2"]
            return subprocess.run([*command, *options, *arguments], cwd=tmp_path, capture_output=True, timeout=60)

        filed = glance("image-download", "good", "--file", "image", "--progress")
        assert (filed.returncode, filed.stderr) == (0, b"")
        assert (tmp_path / "image").read_bytes() == data
        damaged = glance("image-download", "bad", "--file", "image")
        assert damaged.returncode == 1
        assert b"Corrupt image download" in damaged.stderr
