"""What the processes of a pair do: the smallest real work of each patch, one call at a time.

An operation is a context manager, which is given the mode and what it needs, and yields a :class:`Work`. What a service
imports after it was monkey patched is imported then here, too.
"""

import contextlib
import hashlib
import importlib
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from benchmarks.harness import http_client, modes
from benchmarks.harness.modes import KIB, MIB, Mode, discard_command, discarded
from benchmarks.harness.worker import Payload, digest, pieces_of, random_payload
from benchmarks.suites.communicate import workload as communicate
from benchmarks.suites.green_pipe import workload as green_pipe
from benchmarks.suites.input import writing
from benchmarks.suites.stores import workload as stores

#: Bytes of images that an operation leaves in a store before it deletes them: that takes a time of its own.
LEFT = 256 * MIB

Told: TypeAlias = Mapping[str, Any]


class Work:
    """Calls of an operation; each is about so many bytes, which are known."""

    #: whether threads make the calls, whatever the mode: what is measured is a server
    threads = False

    def before(self, size: int, calls: int) -> None:
        """What so many calls need that is not measured."""

    def once(self, size: int) -> int:
        """One call; returns the bytes that it has moved."""
        raise NotImplementedError

    def sha256(self, size: int) -> str:
        """The hash of what one more call moves."""
        raise NotImplementedError

    def after(self) -> None:
        """Remove what calls have left."""


Operation: TypeAlias = Callable[[Mode, Told], AbstractContextManager[Work]]


class Reading(Work):
    """A call that gets data."""

    def __init__(self, read: Callable[[int, Callable[[Any], object]], object]) -> None:
        self._read = read

    def once(self, size: int) -> int:
        counts: list[int] = []
        self._read(size, lambda piece: counts.append(len(piece)))
        return sum(counts)

    def sha256(self, size: int) -> str:
        hasher = hashlib.sha256()
        self._read(size, hasher.update)
        return hasher.hexdigest()


class Writing(Work):
    """A call that sends a payload; it returns what the other side says of it: the bytes, or their hash."""

    def __init__(self, write: Callable[[Payload, bool], str]) -> None:
        self._write = write

    def once(self, size: int) -> int:
        return int(self._write(random_payload(size), False))

    def sha256(self, size: int) -> str:
        return self._write(random_payload(size), True)


# --- child processes


@contextlib.contextmanager
def child_output(mode: Mode, told: Told, through: str = "popen") -> Iterator[Work]:
    modes.enter(mode, {})
    read = communicate.through({"through": through})

    def run(size: int, take: Callable[[Any], object]) -> None:
        output, _ = read(["cat", str(random_payload(size).path)], False)
        take(output)

    yield Reading(run)


@contextlib.contextmanager
def child_input(mode: Mode, told: Told) -> Iterator[Work]:
    modes.enter(mode, {})
    write = writing.through({"through": "popen"})

    def send(payload: Payload, hashed: bool) -> str:
        command = ["sha256sum"] if hashed else discard_command()
        output, said = write(command, _content(payload))
        return output.decode().split()[0] if hashed else str(discarded(said))

    yield Writing(send)


_CONTENT: dict[str, bytes] = {}


def _content(payload: Payload) -> bytes:
    """The payload in memory, read once."""
    if payload.sha256 not in _CONTENT:
        _CONTENT[payload.sha256] = payload.path.read_bytes()
    return _CONTENT[payload.sha256]


@contextlib.contextmanager
def green_pipe_read(mode: Mode, told: Told) -> Iterator[Work]:
    modes.enter(mode, {})
    parameters = {"style": "read_n", "n": 64 * KIB}

    def run(size: int, take: Callable[[Any], object]) -> None:
        green_pipe.read(random_payload(size), parameters, lambda pieces: [take(piece) for piece in pieces])

    yield Reading(run)


@contextlib.contextmanager
def green_pipe_write(mode: Mode, told: Told) -> Iterator[Work]:
    modes.enter(mode, {})

    def send(payload: Payload, hashed: bool) -> str:
        said = green_pipe.write(["sha256sum"] if hashed else discard_command(), [_content(payload)], {})
        return said.decode().split()[0] if hashed else str(discarded(said))

    yield Writing(send)


# --- glance_store


@contextlib.contextmanager
def store_get(mode: Mode, told: Told) -> Iterator[Work]:
    images = told["images"]
    with stores.opened_store(mode, {}) as store:

        def run(size: int, take: Callable[[Any], object]) -> None:
            for chunk in stores.get(store, images[str(size)]):
                take(chunk)

        yield Reading(run)


class Adding(Work):
    """``add()`` of an image."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._urls: list[str] = []
        self._left = 0

    def once(self, size: int) -> int:
        return self._added(size).size

    def sha256(self, size: int) -> str:
        return digest(stores.get(self._store, self._added(size).url))

    def _added(self, size: int) -> Any:
        payload = random_payload(size)
        with contextlib.closing(stores.Source(payload)) as source:
            added = self._store.add(source, size=size, hashing=stores.MULTIHASH)
        self._urls.append(added.url)
        self._left += size
        if (added.checksum, added.multihash) != stores.digests(payload):
            raise RuntimeError(f"{added.url}: another checksum than the payload's")
        return added

    def after(self) -> None:
        if self._left >= LEFT:
            while self._urls:
                self._store.delete(self._urls.pop())
            self._left = 0


@contextlib.contextmanager
def store_add(mode: Mode, told: Told) -> Iterator[Work]:
    with stores.opened_store(mode, {}) as store:
        yield Adding(store)


# --- clients, whose server is a plain one


def _client(mode: Mode, patches: tuple[str, ...], *imported: str) -> None:
    """Make this process a client's in this mode, which has these modules."""
    if mode.green:
        import eventlet

        eventlet.monkey_patch()
    # The imports of a service come before the patches.
    for name in imported:
        importlib.import_module(name)
    if mode.fast:
        import fastio

        fastio.patch()
        modes.require(*patches)


@contextlib.contextmanager
def upload(mode: Mode, told: Told, body: str) -> Iterator[Work]:
    _client(mode, ("urllib3_blocks", "urllib3_sendfile"), "requests")
    import requests

    url = told["url"]

    def send(payload: Payload, hashed: bool) -> str:
        with open(payload.path, "rb") as file:
            data: Any = file if body == "file" else io.BytesIO(_content(payload))
            return requests.put(f"{url}/{'hash' if hashed else 'count'}", data=data).text

    yield Writing(send)


@contextlib.contextmanager
def swiftclient_put(mode: Mode, told: Told) -> Iterator[Work]:
    _client(mode, ("urllib3_blocks", "urllib3_sendfile"), "swiftclient.client")
    import swiftclient.client

    url = told["url"]

    def send(payload: Payload, hashed: bool) -> str:
        with open(payload.path, "rb") as file:
            return swiftclient.client.put_object(
                url, "token", "container", "hash" if hashed else "count", file, content_length=payload.size
            )  # fmt: skip

    yield Writing(send)


@contextlib.contextmanager
def glanceclient(mode: Mode, told: Told) -> Iterator[Work]:
    _client(mode, ("glanceclient_hashing",), "glanceclient.v2.images")
    import glanceclient

    client = glanceclient.Client("2", told["url"], token="none")

    def run(size: int, take: Callable[[Any], object]) -> None:
        for chunk in client.images.data(str(size)):
            take(chunk)

    yield Reading(run)


class Sink(io.RawIOBase):
    """A file that gives what is written to it to somebody."""

    def __init__(self, take: Callable[[Any], object]) -> None:
        self._take = take

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._take(data)
        return len(data)


@contextlib.contextmanager
def openstacksdk(mode: Mode, told: Told, what: str) -> Iterator[Work]:
    names = ("openstack.image.v2._proxy", "openstack.object_store.v1._proxy")
    _client(mode, ("openstacksdk_download", "openstacksdk_hashing"), *names)
    import openstack.image.v2._proxy
    import openstack.object_store.v1._proxy

    url = told["url"]
    cloud = openstack.connect(load_yaml_config=False, load_envvars=False, auth_type="none", endpoint=url)
    images: Any = openstack.image.v2._proxy.Proxy(
        cloud.session, service_type="image", endpoint_override=f"{url}/v2"
    )  # fmt: skip
    objects: Any = openstack.object_store.v1._proxy.Proxy(
        cloud.session, service_type="object-store", endpoint_override=f"{url}/v2/images"
    )

    def run(size: int, take: Callable[[Any], object]) -> None:
        if what == "image":
            images.download_image(str(size), stream=True, output=Sink(take))
        else:
            # An object named as the data of an image are.
            objects.get_object("file", container=str(size), outfile=Sink(take))

    # A proxy only refers weakly to the connection.
    images.connection_of_benchmark = objects.connection_of_benchmark = cloud
    yield Reading(run)


# --- servers that are measured, whose client is a plain one


class Fetching(Work):
    """Downloads from a server: a URL for each size."""

    threads = True

    def __init__(self, places: Callable[[int], str], chunked: bool = False) -> None:
        self._places = places
        self._chunked = chunked

    def once(self, size: int) -> int:
        count = http_client.fetched(self._places(size))
        # Of chunks the frame comes as well, less than half of the smallest of them.
        return size if self._chunked and size < count < 1.5 * size else count

    def sha256(self, size: int) -> str:
        return http_client.fetched_sha256(self._places(size))


@contextlib.contextmanager
def download(mode: Mode, told: Told) -> Iterator[Work]:
    yield Fetching(lambda size: told["places"][str(size)])


@contextlib.contextmanager
def wsgi(mode: Mode, told: Told, kind: str) -> Iterator[Work]:
    """The server is a process in this mode."""
    from benchmarks.suites.never_slower import servers

    with servers.running("wsgi", mode, kind) as port:
        yield Fetching(lambda size: f"http://127.0.0.1:{port}/{size}", kind == "chunked")


class Uploading(Work):
    """PUT of an image's data to a glance-api; the images are made before, and deleted once there are many."""

    threads = True

    def __init__(self, service: Any) -> None:
        self._service = service
        self._new: list[str] = []
        self._full: list[str] = []
        self._left = 0

    def before(self, size: int, calls: int) -> None:
        self._new += [self._service.new() for _ in range(calls - len(self._new))]

    def once(self, size: int) -> int:
        self._put(random_payload(size))
        return size

    def sha256(self, size: int) -> str:
        from benchmarks.suites.glance.workload import sha512

        payload = random_payload(size)
        image = self._put(payload)
        stored = self._service.stored(image)
        if not self._service.multihash(image) == stores.digests(payload).multihash == sha512(stored):
            return "another hash than the payload's"
        with open(stored, "rb") as file:
            return digest(pieces_of(file))

    def _put(self, payload: Payload) -> str:
        image = self._new.pop()
        self._full.append(image)
        self._left += payload.size
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(payload.size)}
        with open(payload.path, "rb") as file:
            http_client.put(self._service.place(image), file, headers)
        return image

    def after(self) -> None:
        if self._left >= LEFT:
            while self._full:
                self._service.delete(self._full.pop())
            self._left = 0


@contextlib.contextmanager
def glance_upload(mode: Mode, told: Told) -> Iterator[Work]:
    from benchmarks.suites.glance.workload import Glance

    yield Uploading(Glance(told["access"]))


def _with(operation: Any, *arguments: str) -> Operation:
    return lambda mode, told: operation(mode, told, *arguments)


OPERATIONS: Mapping[str, Operation] = {
    "child-output": child_output,
    "oslo-execute": _with(child_output, "oslo"),
    "child-input": child_input,
    "green-pipe-read": green_pipe_read,
    "green-pipe-write": green_pipe_write,
    "store-get": store_get,
    "store-add": store_add,
    "upload-file": _with(upload, "file"),
    "upload-memory": _with(upload, "memory"),
    "swiftclient-put": swiftclient_put,
    "glanceclient": glanceclient,
    "openstacksdk-image": _with(openstacksdk, "image"),
    "openstacksdk-object": _with(openstacksdk, "object"),
    "wsgi-length": _with(wsgi, "length"),
    "wsgi-chunked": _with(wsgi, "chunked"),
    "glance-download": download,
    "glance-upload": glance_upload,
}
