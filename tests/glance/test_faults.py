"""Faults of files, of backends and of clients give with fastio what they give without it.

Each scenario runs once with a stock glance-api and once, at the same time, with a patched one: the status, the headers
and every byte of the answer, what becomes of the image and of its files, and what is logged have to be the same.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import http.client
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.backends import backend
from benchmarks.backends import glance_logs as logs
from benchmarks.backends.base import HOST
from benchmarks.backends.glance import KINDS, RELEASES, Service
from benchmarks.backends.glance_api import Answer, Api, reset_at_close, sha512
from benchmarks.backends.swift import Swift
from tests import fuse
from tests.backends.required import missing
from tests.child import data
from tests.eventually import until
from tests.glance.faults import Fault, Proxy, add_file_store, add_full_store, add_swift_store
from tests.glance.sending import open_images
from tests.glance.usable import usable

KIB, MIB = 1 << 10, 1 << 20
#: More than sockets buffer, so that the service is not done before the client has read anything.
SIZE = 40 * MIB + 12_345
PAYLOAD = data(11, SIZE)
#: Bytes of the small file system.
ROOM = 8 * MIB
CAP = 48 * MIB
#: The rest of a file that is truncated. Its end is no end of a chunk, and is more than the 4 KiB that eventlet
#: gathers before it writes: it drops them when the application then raises, so a shorter end would be lost or not
#: depending on the size of the chunks.
CUT = 30 * MIB + 5077
#: Seconds without a new line after which a log is taken to be complete.
QUIET = 0.3
#: Headers that differ from answer to answer.
VOLATILE = ("date", "x-openstack-request-id", "openstack-image-import-methods")


@dataclass
class World:
    """One service, stock or patched, and what it stores its images in."""

    service: Service
    api: Api
    #: the small file system, or why there is none
    full: Path | str
    #: in front of Swift, or why there is none
    swift: Proxy | str
    #: the file system that fails when it is asked to, or why there is none
    disk: fuse.FileSystem | str

    def need(self, name: str) -> Any:
        """Return :attr:`full`, :attr:`swift` or :attr:`disk`; skips if there is none."""
        found = getattr(self, name)
        if isinstance(found, str):
            missing(name, found)
        return found

    def create(self, store: str = "images") -> str:
        return self.api.create(name=store)

    def upload(self, image: str, body: Any, store: str = "images") -> Answer:
        headers = {"Content-Type": "application/octet-stream", "X-Image-Meta-Store": store}
        return self.api.ask("PUT", f"/v2/images/{image}/file", body, headers)

    def make(self, payload: bytes = PAYLOAD, store: str = "images") -> str:
        image = self.create(store)
        answer = self.upload(image, payload, store)
        assert answer.status == 204, answer
        return image

    def file(self, image: str) -> Path:
        return self.service.images / image

    def raw(self, image: str, headers: str = "", receive: int = 0) -> RawDownload:
        return RawDownload(self.service.http_port, image, headers, receive)


class RawDownload:
    """An answer down to its last byte, also where there are fewer or more than its head announces."""

    def __init__(self, port: int, image: str, headers: str, receive: int) -> None:
        self.sock = socket.socket()
        self.sock.settimeout(90)
        if receive:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        self.sock.connect((HOST, port))
        request = f"GET /v2/images/{image}/file HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n{headers}\r\n"
        self.sock.sendall(request.encode())
        self.bytes = b""
        self.ended = ""

    def read(self, until: int) -> None:
        """Read until there are so many bytes, head included, or no more."""
        parts, count = [self.bytes], len(self.bytes)
        while count < until and not self.ended:
            try:
                piece = self.sock.recv(min(1 << 20, until - count))
                self.ended = "" if piece else "end"
            except ConnectionResetError:
                piece, self.ended = b"", "reset"
            parts.append(piece)
            count += len(piece)
        self.bytes = b"".join(parts)

    def rest(self) -> list[Any]:
        """Read to the end; what was answered, and how it ended."""
        self.read(1 << 40)
        self.sock.close()
        head, _, body = self.bytes.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = [line for line in lines if not line.lower().startswith(VOLATILE)]
        if "transfer-encoding: chunked" in map(str.lower, lines):
            body, complete = unchunked(body)
            headers.append("all chunks" if complete else "cut off")
        return [status, sorted(headers), len(body), sha512(body), self.ended]

    def reset(self) -> None:
        reset_at_close(self.sock)
        self.sock.close()


def unchunked(body: bytes) -> tuple[bytes, bool]:
    """The content of a chunked body as far as it came, and whether all of it came; chunks may have any size."""
    parts: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\r\n", at)
        if end < 0:
            return b"".join(parts), False
        size = int(body[at:end], 16)
        content = body[end + 2 : end + 2 + size]
        at = end + 2 + size + 2
        if not size or len(content) < size:
            return b"".join([*parts, content]), not size and body[at - 2 : at] == b"\r\n"
        parts.append(content)


# The scenarios: each returns results that have to be the same, and asserts that the fault has really happened.

Scenario = Callable[[World], Any]


def no_fault(world: World) -> Any:
    image = world.make()
    found = world.raw(image).rest()
    assert found[2:4] == [SIZE, sha512(PAYLOAD)]
    return found


def become_a_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


#: Changes to an image's file before it is asked for.
DAMAGE: dict[str, Callable[[Path], Any]] = {
    "file_truncated_before": lambda file: os.truncate(file, 5 * MIB + 5077),
    "file_emptied": lambda file: os.truncate(file, 0),
    "file_longer_than_the_image": lambda file: os.truncate(file, SIZE + 400_000),
    "file_gone": Path.unlink,
    "file_is_a_directory": become_a_directory,
}


def damaged(world: World, name: str) -> Any:
    image = world.make()
    DAMAGE[name](world.file(image))
    found = world.raw(image).rest()
    assert " 200 " not in found[0] or found[2] < SIZE or "longer" in name
    return found


def file_truncated_while_served(world: World) -> Any:
    return truncated_while_served(world, world.make())


def truncated_while_served(world: World, image: str) -> Any:
    download = world.raw(image, receive=32 * KIB)
    download.read(MIB)
    os.truncate(world.file(image), CUT)
    found = download.rest()
    assert found[2] == CUT
    return found


def file_gone_while_served(world: World) -> Any:
    image = world.make()
    download = world.raw(image, receive=32 * KIB)
    download.read(MIB)
    world.file(image).unlink()
    found = download.rest()
    assert found[2:4] == [SIZE, sha512(PAYLOAD)]
    return found


def range_of_a_truncated_file(world: World) -> Any:
    image = world.make()
    os.truncate(world.file(image), 5 * MIB + 5077)
    ranges = ("0-99", f"{5 * MIB}-{6 * MIB}", f"{20 * MIB}-{21 * MIB}", "-1000")
    return [world.raw(image, f"Range: bytes={each}\r\n").rest() for each in ranges]


def range_beyond_the_image(world: World) -> Any:
    image = world.make(PAYLOAD[:MIB])
    return [world.raw(image, f"Range: bytes={each}\r\n").rest() for each in (f"{MIB}-", "5-2", "x", "0-9999999")]


def image_without_data(world: World) -> Any:
    return world.raw(world.create()).rest()


def image_of_no_bytes(world: World) -> Any:
    image = world.make(b"")
    return [world.raw(image).rest(), world.raw(image, "Range: bytes=0-0\r\n").rest()]


def cached(world: World, image: str) -> list[tuple[str, int]]:
    """The directories of the image cache that have a file of this image, and its size."""
    settle(world.service)
    files = world.service.cache.rglob(image)
    return sorted((str(file.parent.relative_to(world.service.cache)), file.stat().st_size) for file in files)


def filled_and_read_from_the_cache(world: World) -> Any:
    image = world.make()
    found = [world.raw(image).rest()]
    kept = cached(world, image)
    assert kept == [(".", SIZE)]
    # It no longer comes from the store.
    world.file(image).unlink()
    found += [world.raw(image).rest(), world.raw(image, "Range: bytes=1000-70000\r\n").rest()]
    assert found[0][2:4] == found[1][2:4] == [SIZE, sha512(PAYLOAD)]
    return [found, kept]


def cached_file_truncated_while_served(world: World) -> Any:
    image = world.make()
    world.raw(image).rest()
    settle(world.service)
    (file,) = world.service.cache.rglob(image)
    download = world.raw(image, receive=32 * KIB)
    download.read(MIB)
    os.truncate(file, CUT)
    return download.rest()


def file_truncated_while_the_cache_is_filled(world: World) -> Any:
    image = world.make()
    found = truncated_while_served(world, image)
    return [found, cached(world, image)]


def client_resets_while_the_cache_is_filled(world: World) -> Any:
    image = world.make()
    reset_while_served(world, image)
    # How far the service had come depends on when the signal came.
    return [directory for directory, _ in cached(world, image)]


def client_resets_a_download_from_the_cache(world: World) -> Any:
    image = world.make()
    world.raw(image).rest()
    settle(world.service)
    download = world.raw(image, receive=32 * KIB)
    download.read(3 * MIB)
    download.reset()
    settle(world.service)
    return world.raw(image).rest()


def wrong_bytes_are_not_cached(world: World) -> Any:
    image = world.make()
    with open(world.file(image), "r+b") as file:
        file.write(b"others")
    return [world.raw(image).rest(), cached(world, image)]


def client_resets_a_download(world: World) -> Any:
    reset_while_served(world, world.make())


def reset_while_served(world: World, image: str) -> None:
    download = world.raw(image, receive=32 * KIB)
    download.read(3 * MIB)
    download.reset()


def client_resets_at_once(world: World) -> Any:
    image = world.make()
    world.raw(image, receive=32 * KIB).reset()


def client_resets_an_upload(world: World) -> Any:
    image = world.create()
    world.api.abort_upload(image, PAYLOAD[: 9 * MIB + 5], SIZE)
    return after_upload(world, image)


def client_ends_an_upload_early(world: World) -> Any:
    """The body is shorter than its announced length, and the client still reads the answer."""
    image = world.create()
    with world.api.started_upload(image, PAYLOAD[: 3 * MIB], SIZE) as sock:
        sock.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: sock.recv(65536), b""))
    return [answer.partition(b"\r\n")[0], after_upload(world, image)]


def chunked_upload_is_cut_off(world: World) -> Any:
    image = world.create()
    chunk = b"40000\r\n" + PAYLOAD[: 256 * KIB] + b"\r\n"
    with world.api.started_upload(image, 9 * chunk + chunk[:1000]) as sock:
        time.sleep(0.3)
        reset_at_close(sock)
    return after_upload(world, image)


def service_is_ended_during_an_upload(world: World) -> Any:
    """The image keeps its state in the middle of it, and can be deleted after the next start."""
    service, image = world.service, world.create()
    with world.api.started_upload(image, PAYLOAD[: 9 * MIB + 5], SIZE) as sock:
        until(lambda: world.file(image).exists() and world.file(image).stat().st_size)
        service.expect_end()
        service.signal(signal.SIGTERM)
        until(lambda: not service.pids())
        # Whether the connection was reset or ended depends on what the service had read by then.
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
    service.start_again()
    shown, kept = world.api.show(image), world.file(image).exists()
    found = [shown["status"], shown["size"], shown["os_hash_value"], kept, world.api.delete(image)]
    settle(service)
    return [*found, world.file(image).exists()]


def larger_than_allowed(world: World, body: Callable[[], Any]) -> Any:
    image = world.create()
    answer = tolerant_upload(world, image, body())
    assert answer in (413, "cut off"), answer
    return [answer, after_upload(world, image)]


def disk_full(world: World, body: Callable[[], Any]) -> Any:
    full, image = world.need("full"), world.create("full")
    answer = tolerant_upload(world, image, body(), "full")
    assert answer in (413, "cut off"), answer
    return [answer, after_upload(world, image), os.listdir(full)]


def disk_just_large_enough(world: World) -> Any:
    full = world.need("full")
    image = world.make(PAYLOAD[:ROOM], "full")
    found = [world.raw(image).rest(), after_upload(world, image)]
    assert world.api.delete(image) == 204
    return [*found, os.listdir(full)]


def file_system_fails(world: World, number: int) -> Any:
    disk, image = world.need("disk"), world.make(store="disk")
    download = world.raw(image, receive=32 * KIB)
    download.read(MIB)
    disk.forget()
    disk.fault(read={"errno": number})
    try:
        status, headers, size, digest, ended = download.rest()
        settle(world.service)
    finally:
        disk.fault()
    assert MIB <= size < SIZE and digest == sha512(PAYLOAD[:size])
    return [status, headers, ended]


def file_system_cannot_be_written(world: World) -> Any:
    disk, image = world.need("disk"), world.create("disk")
    disk.fault(write={"errno": errno.EIO})
    try:
        return [tolerant_upload(world, image, PAYLOAD, "disk"), after_upload(world, image)]
    finally:
        disk.fault()


def swift_without_fault(world: World) -> Any:
    world.need("swift")
    image = world.make(store="swift")
    found = world.raw(image).rest()
    assert found[2:4] == [SIZE, sha512(PAYLOAD)]
    return found


def swift_is_unavailable_for_a_moment(world: World) -> Any:
    found = swift_download(world, Fault(status=503), Fault())
    assert found[0][2:4] == [SIZE, sha512(PAYLOAD)]
    return found


def swift_resets_each_answer(world: World) -> Any:
    """swiftclient asks for the rest, as often as it takes."""
    found = swift_download(world, Fault(reset_answer=9 * MIB + 5))
    assert found[0][2:4] == [SIZE, sha512(PAYLOAD)]
    assert found[1] > 2
    return found


def swift_resets_an_answer_and_then_forbids(world: World) -> Any:
    """The part of the chunk in which it happens is lost, in stock too, whose chunks are smaller."""
    (status, headers, size, digest, ended), failed = swift_download(
        world, Fault(reset_answer=9 * MIB + 5), Fault(status=403)
    )
    assert 7 * MIB < size < 9 * MIB + 5
    assert digest == sha512(PAYLOAD[:size])
    return [status, headers, ended, failed]


def failed_swift_download(world: World, fault: Fault) -> Any:
    found = swift_download(world, fault)
    assert " 200 " not in found[0][0]
    return found


def swift_download(world: World, *faults: Fault) -> Any:
    swift = world.need("swift")
    image = world.make(store="swift")
    before = swift.failed
    swift.fail("GET", image, *faults)
    found = world.raw(image).rest()
    assert swift.failed > before
    return [found, swift.failed - before]


def failed_swift_upload(world: World, fault: Fault) -> Any:
    swift = world.need("swift")
    image = world.create("swift")
    before = swift.failed
    swift.fail("PUT", image, fault)
    answer = tolerant_upload(world, image, PAYLOAD, "swift")
    assert swift.failed > before
    return [answer, after_upload(world, image), swift.failed - before]


#: By name; half a minute is what swiftclient takes to try an unavailable server six times.
SCENARIOS: dict[str, Scenario] = {
    **{each.__name__: each for each in (
        no_fault, file_truncated_while_served, file_gone_while_served, range_of_a_truncated_file,
        range_beyond_the_image, image_without_data, image_of_no_bytes, client_resets_a_download, client_resets_at_once,
        client_resets_an_upload, client_ends_an_upload_early, chunked_upload_is_cut_off,
        service_is_ended_during_an_upload, disk_just_large_enough, file_system_cannot_be_written, swift_without_fault,
        swift_is_unavailable_for_a_moment, swift_resets_each_answer, swift_resets_an_answer_and_then_forbids,
    )},
    **{name: functools.partial(damaged, name=name) for name in DAMAGE},
    "image_larger_than_allowed": functools.partial(larger_than_allowed, body=lambda: bytes(CAP + 1)),
    "chunked_image_larger_than_allowed": functools.partial(larger_than_allowed, body=lambda: pieces(CAP + 1)),
    "disk_full": functools.partial(disk_full, body=lambda: PAYLOAD[: 2 * ROOM]),
    "disk_full_at_the_last_byte": functools.partial(disk_full, body=lambda: PAYLOAD[: ROOM + 1]),
    "chunked_disk_full": functools.partial(disk_full, body=lambda: pieces(2 * ROOM)),
    "file_system_breaks": functools.partial(file_system_fails, number=errno.EIO),
    # Reading from one whose daemon has died fails with an error that connections have as well.
    "file_system_is_gone": functools.partial(file_system_fails, number=errno.ENOTCONN),
    "file_system_times_out": functools.partial(file_system_fails, number=errno.ETIMEDOUT),
    "swift_forbids_a_download": functools.partial(failed_swift_download, fault=Fault(status=403)),
    "swift_has_no_such_object": functools.partial(failed_swift_download, fault=Fault(status=404)),
    "swift_is_unavailable_for_a_download": functools.partial(failed_swift_download, fault=Fault(status=503)),
    "swift_is_unavailable_for_an_upload": functools.partial(failed_swift_upload, fault=Fault(status=503)),
    "swift_is_full": functools.partial(failed_swift_upload, fault=Fault(status=413)),
    "swift_resets_an_upload": functools.partial(failed_swift_upload, fault=Fault(reset_request=9 * MIB + 5)),
}  # fmt: skip
#: Half a minute each: one release is enough for them.
SLOW = ("swift_is_unavailable_for_a_download",)
#: With the image cache in the pipeline.
CACHE_SCENARIOS: dict[str, Scenario] = {
    **{each.__name__: each for each in (
        filled_and_read_from_the_cache, cached_file_truncated_while_served, file_truncated_while_the_cache_is_filled,
        client_resets_while_the_cache_is_filled, client_resets_a_download_from_the_cache, wrong_bytes_are_not_cached,
        range_of_a_truncated_file, range_beyond_the_image, image_of_no_bytes, client_resets_an_upload,
    )},
    "file_gone": SCENARIOS["file_gone"],
}  # fmt: skip


def pieces(size: int) -> Iterator[bytes]:
    """``size`` bytes for a chunked upload; uWSGI takes no chunk of 1 MiB by default."""
    for start in range(0, size, 256 * KIB):
        yield PAYLOAD[: min(256 * KIB, size - start)]


def tolerant_upload(world: World, image: str, body: Any, store: str = "images") -> int | str:
    """The status of an upload, also where the service answers and closes before it has taken the body."""
    connection = world.api.connect()
    headers = {"Content-Type": "application/octet-stream", "X-Image-Meta-Store": store}
    try:
        # The rest of the body may not be taken any more, and the answer is there all the same.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request("PUT", f"/v2/images/{image}/file", body, headers)
        return connection.getresponse().status
    except (ConnectionResetError, http.client.RemoteDisconnected):
        return "cut off"
    finally:
        connection.close()


def after_upload(world: World, image: str) -> Any:
    """Return the state of an image after its upload has failed, once the service has done with it."""
    deadline = time.monotonic() + 30
    while world.api.show(image)["status"] == "saving" and time.monotonic() < deadline:
        time.sleep(0.05)
    settle(world.service)
    fields = ("status", "size", "checksum", "os_hash_value", "stores")
    shown = world.api.show(image)
    file = world.file(image)
    return [{name: shown.get(name) for name in fields}, file.stat().st_size if file.exists() else None]


def settle(service: Service) -> None:
    """Return when the service has written nothing for a while."""
    size, since = len(service.log()), time.monotonic()
    while time.monotonic() - since < QUIET:
        time.sleep(0.05)
        now = len(service.log())
        if now != size:
            size, since = now, time.monotonic()


@pytest.fixture(scope="module")
def swift_server() -> Iterator[Swift | str]:
    reason = backend("swift")().why_not()
    if reason:
        yield reason
        return
    with backend("swift")() as running:
        yield running


@pytest.fixture(scope="module", params=RELEASES)
def worlds(
    request: pytest.FixtureRequest, swift_server: Swift | str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[World]]:
    """The services of a release, stock and patched."""
    yield from make_worlds(request, swift_server, tmp_path_factory, "")


@pytest.fixture(scope="module", params=RELEASES)
def cache_worlds(
    request: pytest.FixtureRequest, swift_server: Swift | str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[World]]:
    """The cases with the image cache in the pipeline."""
    yield from make_worlds(request, swift_server, tmp_path_factory, "caching")


def make_worlds(
    request: pytest.FixtureRequest,
    swift_server: Swift | str,
    tmp_path_factory: pytest.TempPathFactory,
    flavor: str,
) -> Iterator[list[World]]:
    release = usable(request.param)
    failed_before = request.session.testsfailed
    with contextlib.ExitStack() as stack:

        def world(fastio: str) -> World:
            config: dict[str, dict[str, object]] = {
                "DEFAULT": {"enabled_backends": "images:file", "image_size_cap": CAP}
            }
            full = add_full_store(stack, tmp_path_factory.mktemp("full") / "store", ROOM, config)
            proxy: Proxy | str
            if isinstance(swift_server, str):
                proxy = swift_server
            else:
                proxy = add_swift_store(stack, swift_server, config)
            disk = fuse.missing() or stack.enter_context(fuse.mounted(tmp_path_factory.mktemp("disk")))
            if not isinstance(disk, str):
                add_file_store(config, "disk", disk.directory)
            # A request for a part would have the fault that is meant for the reader's.
            service = release(config=config, fastio=fastio, flavor=flavor, disabled="swift_ranges")
            service.start()
            stack.callback(lambda: service.stop(keep_logs=request.session.testsfailed > failed_before))
            return World(service, Api(service.http_port, timeout=100), full, proxy, disk)

        yield [world(fastio) for fastio in KINDS.values()]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_as_stock(worlds: list[World], name: str) -> None:
    if name in SLOW and worlds[0].service.name != "glance-33":
        pytest.skip("half a minute, and done with glance 33")
    compare(worlds, SCENARIOS[name])


@pytest.mark.parametrize("name", CACHE_SCENARIOS)
def test_the_same_as_stock_with_the_cache(cache_worlds: list[World], name: str) -> None:
    compare(cache_worlds, CACHE_SCENARIOS[name])


def compare(worlds: list[World], scenario: Scenario) -> None:
    with ThreadPoolExecutor(2) as pool:
        stock, patched = pool.map(functools.partial(outcome, scenario), worlds)
    assert patched == stock


def outcome(scenario: Scenario, world: World) -> dict[str, Any]:
    """Return a scenario's result and the log meanwhile; the service goes on afterwards."""
    logged = len(world.service.log())
    found = scenario(world)
    settle(world.service)
    assert world.api.ask("GET", "/healthcheck").status == 200
    world.service.check()
    lines = world.service.log()[logged:].splitlines()
    # Only fastio names the reason why a chunked upload has ended.
    log = logs.classes("\n".join(line for line in lines if "fastio: an upload has failed: " not in line))
    return {"found": found, "log": log, "descriptors": open_images(world.service)}
