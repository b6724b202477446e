"""Servers that are measured, and their plain clients: glance-api, nginx as the reference, eventlet's WSGI server."""

import contextlib
import subprocess
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.backends.base import server_environment
from benchmarks.backends.glance_api import Api
from benchmarks.harness import http_client, modes
from benchmarks.harness.children import Child
from benchmarks.harness.modes import Mode, check_fast, choice
from benchmarks.harness.worker import (
    MULTIHASH,
    Payload,
    command_digest,
    digest,
    digests,
    pieces_of,
    random_payload,
)
from benchmarks.operations import servers
from benchmarks.operations.base import Context, Keeping, Work

#: Seconds that a request of the set-up may take.
PATIENCE = 120
CURL = ("curl", "-q", "--silent", "--show-error", "--fail", "--noproxy", "*")


class WrongData(Exception):
    """The received data differs from the sent data."""


class Service:
    """A running server.

    :param access: from :meth:`benchmarks.backends.base.Backend.access`
    :param directory: has the data of its images
    """

    #: a request that costs it little
    cheap = ""

    def __init__(self, access: Mapping[str, Any], directory: str) -> None:
        self.url = access["url"]
        self.port = urllib.parse.urlsplit(self.url).port or 80
        self._directory = Path(directory)

    def stored(self, identifier: str) -> Path:
        """The file that has an image's data."""
        return self._directory / identifier


class Glance(Service):
    """A glance-api."""

    cheap = "/v2/schemas/image"

    def __init__(self, access: Mapping[str, Any]) -> None:
        super().__init__(access, access["images"])
        self._api = Api(self.port, PATIENCE)

    def new(self, **fields: str) -> str:
        """An image without data; returns its identifier."""
        return self._api.create(**fields)

    def place(self, identifier: str) -> str:
        """The URL of an image's data."""
        return f"{self.url}/v2/images/{identifier}/file"

    def multihash(self, identifier: str) -> str:
        """SHA-512 of an image as glance has it.

        :raises WrongData: if the image has none
        """
        image = self._api.show(identifier)
        if (image["status"], image["os_hash_algo"]) != ("active", MULTIHASH):
            raise WrongData(f"image {identifier} is {image['status']}, its hash {image['os_hash_algo']}")
        return image["os_hash_value"]

    def size(self, identifier: str) -> int:
        """Bytes of an image as glance has it."""
        return self._api.show(identifier)["size"]

    def delete(self, identifier: str) -> None:
        status = self._api.delete(identifier)
        if status >= 300:
            raise RuntimeError(f"image {identifier} is not deleted: status {status}")


class Nginx(Service):
    """The reference: nginx, which sends and takes files and hashes nothing."""

    cheap = "/answer"

    def __init__(self, access: Mapping[str, Any]) -> None:
        super().__init__(access, access["place"]["directory"])
        self._made = 0

    def new(self) -> str:
        self._made += 1
        return f"upload-{self._made}"

    def place(self, identifier: str) -> str:
        return f"{self.url}/{identifier}"

    def multihash(self, identifier: str) -> str:
        return sha512(self.stored(identifier))

    def delete(self, identifier: str) -> None:
        self.stored(identifier).unlink()


def sha512(path: Path) -> str:
    with open(path, "rb") as file:
        return digest(pieces_of(file), MULTIHASH)


def curl(*arguments: str) -> str:
    """Run curl; returns what it says."""
    command = [*CURL, *arguments]
    return subprocess.run(command, env=server_environment(), stdout=subprocess.PIPE, text=True, check=True).stdout


def downloaded_sha512(place: str, *options: str) -> str:
    return command_digest([*CURL, *options, place], MULTIHASH, env=server_environment())


def put(payload: Payload, place: str, chunked: bool = False, *more: str) -> None:
    """Upload a file with one PUT; ``more`` are options of curl."""
    # No "Expect: 100-continue", for whose answer curl would wait.
    headers = ["--header", "Expect:", "--header", "Content-Type: application/octet-stream"]
    if chunked:
        headers += ["--header", "Transfer-Encoding: chunked"]
    curl(*headers, *more, "--output", "/dev/null", "--upload-file", str(payload.path), place)


def given(service: Glance, payload: Payload, known: str) -> str:
    """Give a glance-api an image; returns its identifier.

    :raises WrongData: if its SHA-512 is not the ``known`` one
    """
    image = service.new()
    put(payload, service.place(image), False, "--max-time", str(PATIENCE))
    if service.multihash(image) != known:
        raise WrongData(f"os_hash_value of image {image} is not the payload's SHA-512")
    return image


class Fetching(Work):
    """Downloads from a server.

    :param places: the URL for each size
    :param chunked: of the answers the frame of chunks comes as well
    """

    threads = True

    def __init__(self, places: Callable[[int], str], chunked: bool = False) -> None:
        self._places = places
        self._chunked = chunked

    def once(self, size: int) -> int:
        count = self.count(self._places(size))
        # The frame is less than half of the smallest chunk.
        return size if self._chunked and size < count < 1.5 * size else count

    def count(self, url: str) -> int:
        return http_client.fetched(url)

    def sha256(self, size: int) -> str:
        return digest(http_client.pieces(self._places(size)))


class Asking(Fetching):
    """Downloads with the headers of a side.

    A server's work after the last byte of one falls into the next, so one more comes first, and is not measured.
    """

    def __init__(self, places: Callable[[int], str], headers: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__(places)
        self._headers = headers

    def before(self, size: int, calls: int) -> None:
        self.once(size)

    def count(self, url: str) -> int:
        return http_client.fetched(url, headers=self._headers[self.side])


@contextlib.contextmanager
def download(mode: Mode, context: Context) -> Iterator[Work]:
    """Of the context: ``places`` by size, and ``headers`` by side if the downloads are to have some."""
    places = {int(size): place for size, place in context["places"].items()}.__getitem__
    yield Asking(places, context["headers"]) if "headers" in context else Fetching(places)


@contextlib.contextmanager
def wsgi(mode: Mode, context: Context, kind: str) -> Iterator[Work]:
    """eventlet's WSGI server, a process in this mode."""
    with servers.running("wsgi", mode, kind) as port:
        yield Fetching(lambda size: f"http://127.0.0.1:{port}/{size}", kind == "chunked")


class Serving(Fetching):
    """This process is the server, and its client another one, which counts or hashes."""

    threads = False

    def __init__(self, client: Child, kind: str, chunk: int) -> None:
        super().__init__(str, kind == "chunked")
        self._client, self._kind, self._chunk = client, kind, chunk

    def before(self, size: int, calls: int) -> None:
        # The server reads the payload for its first answer.
        self.once(size)

    def count(self, url: str) -> int:
        return int(self._client.ask(f"count {url}"))

    def sha256(self, size: int) -> str:
        return self._client.ask(f"hash {size}")

    def check(self, mode: Mode, size: int) -> None:
        if self._kind == "sendall":
            # Of each of the two calls without the first buffer.
            check_fast(mode, size - 2 * self._chunk)


@contextlib.contextmanager
def wsgi_serving(mode: Mode, context: Context) -> Iterator[Work]:
    """Of the context: ``kind`` is one of :data:`benchmarks.operations.servers.KINDS`; ``chunk`` bytes of each item."""
    kind = choice(context, "kind", *servers.KINDS)
    modes.enter(mode, context)
    port = servers.serve(mode, kind, context["chunk"])
    with Child("benchmarks.harness.http_client", f"http://127.0.0.1:{port}/") as client:
        # It has been started, and its start is not measured.
        client.read()
        yield Serving(client, kind, context["chunk"])


class Uploading(Keeping):
    """PUT of an image's data to a glance-api; the images are made before."""

    threads = True

    def __init__(self, service: Any) -> None:
        super().__init__(service.delete)
        self._service = service
        self._new: list[str] = []

    def before(self, size: int, calls: int) -> None:
        self._new += [self._service.new() for _ in range(calls - len(self._new))]

    def once(self, size: int) -> int:
        self._put(random_payload(size))
        return size

    def sha256(self, size: int) -> str:
        payload = random_payload(size)
        image = self._put(payload)
        stored = self._service.stored(image)
        if not self._service.multihash(image) == digests(payload).multihash == sha512(stored):
            return "another hash than the payload's"
        with open(stored, "rb") as file:
            return digest(pieces_of(file))

    def _put(self, payload: Payload) -> str:
        image = self._new.pop()
        self.keep(image, payload.size)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(payload.size)}
        with open(payload.path, "rb") as file:
            http_client.put(self._service.place(image), file, headers)
        return image


@contextlib.contextmanager
def glance_upload(mode: Mode, context: Context) -> Iterator[Work]:
    yield Uploading(Glance(context["access"]))
