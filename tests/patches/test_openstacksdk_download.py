"""``openstacksdk_download`` and ``openstackclient_download``: the same bytes, files, pieces and errors, read faster."""

import gzip
import io
import pathlib
import platform
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("openstack", reason="openstacksdk is not installed: pip install fastio[client]")
pytest.importorskip("openstackclient", reason="python-openstackclient is not installed: pip install fastio[client]")

import openstack  # noqa: E402
import openstack.object_store.v1._proxy  # noqa: E402
import openstackclient.api.object_store_v1  # noqa: E402, F401

import fastio  # noqa: E402
import tests.green_ssl  # noqa: E402, F401
from benchmarks.harness.engine import ROOT  # noqa: E402
from fastio.io import unbuffered  # noqa: E402
from tests.conftest import MONKEY_PATCHED  # noqa: E402
from tests.patches.cloud import OBJECT, Cloud  # noqa: E402
from tests.patches.image_api import Image, ImageServer, content, image_api  # noqa: E402
from tests.stores.images import Ticker  # noqa: E402

KIB = 1 << 10
MIB = 1 << 20
SDK, COMMANDS = "openstacksdk_download", "openstackclient_download"


@dataclass
class Way:
    """How a program downloads ``a`` to ``path``."""

    patch: str
    #: bytes that upstream reads at a time
    size: int
    download: Callable[[Cloud, pathlib.Path], Any]


def into_a_file(download: Callable[[Any], Any], path: pathlib.Path) -> None:
    with open(path, "wb", buffering=0) as file:
        download(file)


def streamed(cloud: Cloud, path: pathlib.Path) -> list[int]:
    sizes = []
    with open(path, "wb", buffering=0) as file:
        for piece in cloud.object_store.stream_object(OBJECT, container="a", chunk_size=3000):
            sizes.append(file.write(piece))
    return sizes


WAYS = {
    "object": Way(SDK, 1024, lambda cloud, path: cloud.object_store.get_object(
        OBJECT, container="a", outfile=str(path))),
    "object, pieces of 100,000 bytes": Way(SDK, 100_000, lambda cloud, path: cloud.object_store.get_object(
        OBJECT, container="a", resp_chunk_size=100_000, outfile=str(path))),
    "object, a file": Way(SDK, 1024, lambda cloud, path: into_a_file(
        lambda file: cloud.object_store.get_object(OBJECT, container="a", outfile=file), path)),
    "object, streamed": Way(SDK, 3000, streamed),
    "image": Way(SDK, MIB, lambda cloud, path: cloud.image.download_image(
        "a", stream=True, output=str(path))),
    "image save": Way(SDK, 1024, lambda cloud, path: into_a_file(
        lambda file: cloud.image.download_image("a", stream=True, output=file, chunk_size=1024), path)),
    "object save": Way(COMMANDS, 64 * KIB, lambda cloud, path: cloud.commands.object_save("a", OBJECT, str(path))),
}  # fmt: skip


pytestmark = pytest.mark.usefixtures("own_certificates")


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


def shown(value: Any) -> Any:
    """What a program sees of a result, without what differs from one download to the next."""
    return value if isinstance(value, list) else type(value).__name__


def outcome(way: Way, server: ImageServer, directory: pathlib.Path, timeout: float | None = None) -> Any:
    """What is returned or raised, and the file then."""
    path = directory / "downloaded"
    path.unlink(missing_ok=True)
    try:
        result = shown(way.download(Cloud(server, timeout), path))
    except Exception as error:
        result = type(error), re.sub(r"port=\d+|0x[0-9a-f]+", "", str(error))
    return result, path.read_bytes() if path.exists() else None


def both(way: Way, server: ImageServer, directory: pathlib.Path, timeout: float | None = None) -> list[Any]:
    """The outcomes of stock and patched."""
    stock = outcome(way, server, directory, timeout)
    with fastio.patched(way.patch, strict=True):
        return [stock, outcome(way, server, directory, timeout)]


def test_a_download(way: Way, images: dict[str, Image], server: ImageServer, tmp_path: pathlib.Path) -> None:
    data = content(9 * MIB + 12_345)
    images["a"] = Image(data)
    stock, patched = both(way, server, tmp_path)
    assert patched == stock
    assert patched[1] == data
    counts = fastio.metrics().patches[way.patch]
    assert (counts.calls, counts.bytes, counts.fallbacks) == (1, len(data), {})


@pytest.mark.parametrize("name", ["object, a file", "image save"])
def test_files_are_written_to_in_large_pieces(
    name: str, images: dict[str, Image], server: ImageServer, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class File(io.BytesIO):
        sizes: list[int] = []

        def write(self, data: Any, /) -> int:
            self.sizes.append(len(data))
            return super().write(data)

    monkeypatch.setitem(globals(), "into_a_file", lambda download, path: download(File()))
    images["a"] = Image(content(9 * MIB + 5))
    both(WAYS[name], server, tmp_path)
    assert File.sizes.count(1024) >= 9 * KIB
    # As much as the server sends in one go, or a record of TLS.
    assert max(File.sizes) > 10 * KIB
    # Multiples of what upstream writes, but for the end.
    assert all(size % 1024 == 0 for size in File.sizes if size != 5 and size % 1024 != 5)


def test_one_connection_for_all(images: dict[str, Image], server: ImageServer, tmp_path: pathlib.Path) -> None:
    """Each download gives it back."""
    images["a"] = Image(content(MIB))
    cloud = Cloud(server)
    with fastio.patched([SDK, COMMANDS], strict=True):
        for way in WAYS.values():
            way.download(cloud, tmp_path / "downloaded")
    assert {request.connection for request in server.requests} == {0}


@pytest.mark.parametrize("breaks_off", [0, 1, 300 * KIB, 2_500_000, 3 * MIB - 1])
def test_what_breaks_off_leaves_the_same_file(
    way: Way, images: dict[str, Image], server: ImageServer, tmp_path: pathlib.Path, breaks_off: int
) -> None:
    images["a"] = Image(content(3 * MIB), answer={"breaks_off": breaks_off})
    stock, patched = both(way, server, tmp_path)
    assert patched == stock
    assert isinstance(stock[0], tuple)


def test_an_error_of_the_server(
    way: Way, images: dict[str, Image], server: ImageServer, tmp_path: pathlib.Path
) -> None:
    images["a"] = Image(content(3 * MIB), answer={"status": "403 Forbidden"})
    stock, patched = both(way, server, tmp_path)
    assert patched == stock


def test_a_wrong_checksum(images: dict[str, Image], server: ImageServer, tmp_path: pathlib.Path) -> None:
    wrong = {"checksum": "0" * 32, "os_hash_algo": "sha512", "os_hash_value": "0" * 128}
    images["a"] = Image(content(3 * MIB), record=wrong, headers={"Content-MD5": "0" * 32})
    stock, patched = both(WAYS["image save"], server, tmp_path)
    assert patched == stock
    assert stock[0][0] is openstack.exceptions.SDKException
    assert "checksum mismatch" in stock[0][1]


def test_a_server_that_says_nothing_more(
    way: Way, images: dict[str, Image], server: ImageServer, tmp_path: pathlib.Path
) -> None:
    hold = threading.Event()
    images["a"] = Image(content(4 * MIB), answer={"hold": hold, "before_hold": 1_500_000})
    try:
        # The server has the same time for all that comes before, also on a busy machine.
        for timeout in (0.5, 4, 20):
            stock, patched = both(way, server, tmp_path, timeout)
            if patched == stock and len(stock[1] or b"") == 1_500_000 // way.size * way.size:
                break
    finally:
        hold.set()
    assert patched == stock
    assert "timed out" in stock[0][1]
    assert len(stock[1]) == 1_500_000 // way.size * way.size


def test_what_has_arrived_is_not_held_back(images: dict[str, Image], server: ImageServer) -> None:
    """The server waits until the program has the first pieces."""

    class Hold(threading.Event):
        in_time: list[bool] = []

        def wait(self, timeout: float | None = None) -> bool:
            self.in_time.append(super().wait(timeout))
            return self.in_time[-1]

    hold = Hold()
    data = content(2 * MIB + 7)
    images["a"] = Image(data, answer={"hold": hold, "before_hold": 100_000})

    class File(io.BytesIO):
        def write(self, piece: Any, /) -> int:
            written = super().write(piece)
            if self.tell() == 100_000 // 1024 * 1024:
                hold.set()
            return written

    with fastio.patched(SDK, strict=True):
        store = Cloud(server).object_store
        store.get_object(OBJECT, container="a", outfile=(file := File()))
        assert file.getvalue() == data
        assert hold.in_time == [True]
        hold.clear()
        body = store.stream_object(OBJECT, container="a", chunk_size=1000)
        first = [next(body) for _ in range(100)]
        assert b"".join(first) == data[:100_000]
        hold.set()
        assert b"".join(body) == data[100_000:]
    assert hold.in_time == [True, True]


def test_a_stream_that_is_left_half_way(images: dict[str, Image], server: ImageServer) -> None:
    images["a"] = Image(content(12 * MIB))
    images["b"] = Image(b"more")
    with fastio.patched(SDK, strict=True):
        store = Cloud(server).object_store
        for stop in (True, False):
            body = store.stream_object(OBJECT, container="a")
            assert len(next(body)) == 1024
            if stop:
                body.close()
            del body
            assert b"".join(store.stream_object(OBJECT, container="b")) == b"more"


LEFT: dict[str, tuple[dict[str, Any], str]] = {
    "chunked": ({"chunked": 100_000}, "framing"),
    "compressed": ({"headers": {"Content-Encoding": "gzip"}}, "framing"),
    "small": ({}, "small"),
}


@pytest.mark.parametrize("name", list(LEFT))
def test_what_is_left_to_upstream(
    way: Way, name: str, images: dict[str, Image], server: ImageServer, tmp_path: pathlib.Path
) -> None:
    data = content(100 * KIB if name == "small" else 2 * MIB)
    more, reason = LEFT[name]
    images["a"] = Image(gzip.compress(data) if name == "compressed" else data, record=Image(data).described(), **more)
    stock, patched = both(way, server, tmp_path)
    assert patched == stock
    assert patched[1] == data
    counts = fastio.metrics().patches[way.patch]
    assert (counts.calls, counts.bytes, counts.fallbacks) == (0, 0, {reason: 1})


def test_what_is_not_streamed_is_as_it_was(
    images: dict[str, Image], server: ImageServer, tmp_path: pathlib.Path
) -> None:
    data = content(2 * MIB)
    images["a"] = Image(data)
    with fastio.patched(SDK, strict=True):
        cloud = Cloud(server)
        assert cloud.object_store.download_object(OBJECT, container="a") == data
        cloud.image.download_image("a", output=str(tmp_path / "image"))
        assert (tmp_path / "image").read_bytes() == data
        response = cloud.image.download_image("a", stream=True)
        assert "stream" not in vars(response.raw)
        assert b"".join(response.iter_content(MIB)) == data
        counts = fastio.metrics().patches[SDK]
        assert (counts.calls, counts.bytes, counts.fallbacks) == (0, 0, {})


def test_results_and_arguments_are_upstreams(images: dict[str, Image], tmp_path: pathlib.Path) -> None:
    images["a"] = Image(content(MIB), headers={"X-Object-Meta-Colour": "blue"})
    with image_api(images) as server, fastio.patched(SDK, strict=True):
        store = Cloud(server).object_store
        path = str(tmp_path / "object")
        found = store.get_object(OBJECT, "a", 4096, path, True)
        assert type(found).__module__ == "openstack.object_store.v1.obj"
        assert found.metadata == {"colour": "blue"} or found.metadata == {"Colour": "blue"}
        with pytest.raises(FileNotFoundError):
            store.get_object(OBJECT, container="a", outfile=str(tmp_path / "none" / "object"))
        with pytest.raises(TypeError, match="chunk_size must be an int"):
            store.get_object(OBJECT, container="a", resp_chunk_size="1k", outfile=path)


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    size=st.integers(0, 3 * MIB),
    breaks_off=st.none() | st.integers(0, 3 * MIB),
    name=st.sampled_from(list(WAYS)),
)
def test_every_size_and_end(
    context: Any, size: int, breaks_off: int | None, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    image = Image(content(size), answer={"breaks_off": breaks_off})
    with image_api({"a": image}, context) as server:
        stock, patched = both(WAYS[name], server, tmp_path_factory.mktemp("downloads"))
    assert patched == stock


@pytest.mark.skipif(not MONKEY_PATCHED, reason="there are greenlets only after monkey_patch()")
@pytest.mark.parametrize("name", ["object", "object, streamed", "image", "object save"])
def test_others_run_meanwhile(name: str, images: dict[str, Image], server: ImageServer, tmp_path: pathlib.Path) -> None:
    """The server's greenlets send, and then nothing makes the client wait: it yields by itself."""
    from fastio import counters

    images["a"] = Image(content(16 * MIB))
    cloud = Cloud(server)
    with fastio.patched(WAYS[name].patch, strict=True, yield_bytes="64KiB"):
        counters.reset()
        with Ticker() as ticker:
            WAYS[name].download(cloud, tmp_path / "downloaded")
    assert counters.yields >= 8
    assert ticker.ticks >= counters.yields


def test_it_is_read_from_the_socket(images: dict[str, Image], monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel gathers, and what upstream would read through its buffer comes in few reads."""
    reads = []
    read = unbuffered.Gathered._read

    def counting(self: Any, view: memoryview) -> int | None:
        reads.append(len(view))
        return read(self, view)

    monkeypatch.setattr(unbuffered.Gathered, "_read", counting)
    data = content(8 * MIB)
    images["a"] = Image(data)
    with image_api(images) as server, fastio.patched(SDK, strict=True):
        Cloud(server).object_store.get_object(OBJECT, container="a", outfile=io.BytesIO())
    assert reads and max(reads) >= 1_000_000


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc that asks the kernel for each block anew")
def test_pieces_that_are_cut_do_not_cost_new_memory() -> None:
    """In a process of its own, since it depends on what was freed before."""
    program = (
        "import io, resource\n"
        "from fastio.io import http_bodies\n"
        "class Arrived(io.RawIOBase):\n"
        "    readable = lambda self: True\n"
        "    def readinto(self, view):\n"
        "        view[:len(piece)] = piece\n"
        "        return len(piece)\n"
        "piece = b'x' * (http_bodies.LARGE * 3 // 4)\n"
        "file = io.BufferedReader(Arrived(), 1)\n"
        "http_bodies._keep_memory()\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "for _ in range(100):\n"
        "    file.read1(http_bodies.LARGE)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 100)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    # Anew, these would be the 192 pages of a piece.
    assert int(done.stdout) < 50, done.stderr
