"""Python clients of object stores and of glance, whose server is the plain one of :mod:`benchmarks.operations.servers`.

Of the context: ``url`` of the server.
"""

import contextlib
import io
import socket
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.harness import modes
from benchmarks.harness.modes import Mode
from benchmarks.harness.worker import Payload
from benchmarks.operations.base import Context, Reading, Work, Writing, content

#: Patches of what sends with urllib3.
URLLIB3 = ("urllib3_blocks", "urllib3_sendfile")


class Sending(Writing):
    """A client's upload.

    :param patch: fastio's patch that has to take large ones; empty: none
    """

    def __init__(
        self,
        write: Callable[[Payload, bool], str],
        patch: str = "",
        prepare: Callable[[Payload], object] | None = None,
    ) -> None:
        super().__init__(write, prepare)
        self._patch = patch

    def check(self, mode: Mode, size: int) -> None:
        if mode.fast and self._patch:
            import fastio

            counts = fastio.metrics().patches[self._patch]
            if counts.calls < 2 or not counts.bytes:
                raise RuntimeError(f"fastio's {self._patch} has taken {counts.calls} of 2 uploads: {counts.fallbacks}")


@contextlib.contextmanager
def upload(mode: Mode, context: Context, body: str) -> Iterator[Work]:
    modes.enter(mode, context, ("requests",), URLLIB3)
    import requests

    url = context["url"]

    def send(payload: Payload, hashed: bool) -> str:
        with open(payload.path, "rb") as file:
            data: Any = file if body == "file" else io.BytesIO(content(payload))
            return requests.put(f"{url}/{'hash' if hashed else 'count'}", data=data).text

    if body == "file":
        yield Sending(send, "urllib3_sendfile")
    else:
        yield Sending(send, "urllib3_blocks", content)


@contextlib.contextmanager
def sendfile(mode: Mode, context: Context) -> Iterator[Work]:
    """The reference: ``socket.sendfile()`` of a file."""
    address = urllib.parse.urlsplit(context["url"])

    def send(payload: Payload, hashed: bool) -> str:
        place = (address.hostname, address.port or 80)
        with open(payload.path, "rb") as file, socket.create_connection(place) as connection:
            path = "hash" if hashed else "count"
            head = f"PUT /{path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {payload.size}\r\n\r\n"
            connection.sendall(head.encode())
            connection.sendfile(file)
            with connection.makefile("rb") as answer:
                return answer.read().partition(b"\r\n\r\n")[2].decode()

    yield Sending(send)


@contextlib.contextmanager
def swiftclient_put(mode: Mode, context: Context) -> Iterator[Work]:
    modes.enter(mode, context, ("swiftclient.client",), URLLIB3)
    import swiftclient.client

    url = context["url"]

    def send(payload: Payload, hashed: bool) -> str:
        with open(payload.path, "rb") as file:
            return swiftclient.client.put_object(
                url, "token", "container", "hash" if hashed else "count", file, content_length=payload.size
            )  # fmt: skip

    yield Sending(send)


@contextlib.contextmanager
def glanceclient(mode: Mode, context: Context) -> Iterator[Work]:
    modes.enter(mode, context, ("glanceclient.v2.images",), ("glanceclient_hashing",))
    import glanceclient

    client = glanceclient.Client("2", context["url"], token="none")

    def run(size: int, take: Callable[[Any], object]) -> None:
        for chunk in client.images.data(str(size)):
            take(chunk)

    yield Getting(run)


class Getting(Reading):
    """A client's download, which fastio's own code does not count."""

    counts = False


class Sink(io.RawIOBase):
    """A file that passes written data to a function."""

    def __init__(self, take: Callable[[Any], object]) -> None:
        self._take = take

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._take(data)
        return len(data)


@contextlib.contextmanager
def openstacksdk(mode: Mode, context: Context, what: str) -> Iterator[Work]:
    names = ("openstack.image.v2._proxy", "openstack.object_store.v1._proxy")
    modes.enter(mode, context, names, ("openstacksdk_download", "openstacksdk_hashing"))
    import openstack.image.v2._proxy
    import openstack.object_store.v1._proxy

    url = context["url"]
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
    yield Getting(run)
