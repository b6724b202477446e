"""The ``sheepdog`` driver for today's glance_store, which dropped its own in release 1.1.0 (2019).

It accepts the options and the locations of the old driver, so configurations and images go on working. Each ``get()``
runs one ``dog vdi read`` and passes its output on as it comes. Each ``add()`` runs one ``dog vdi write``. The old
driver ran one command for each 64 MiB, and kept that much of every image in memory.

glance_store finds the driver by its entry point. Install it with ``pip install '.[sheepdog]'``.
"""

import itertools
import logging
from collections.abc import Iterator
from typing import Any

import glance_store.backend
import glance_store.driver
import glance_store.location
from glance_store import capabilities, exceptions
from glance_store.common import utils
from oslo_config import cfg

from fastio import config
from fastio.concurrency import waiting
from fastio.drivers import _dog
from fastio.drivers._process import Child
from fastio.errors import SettingError

LOG = logging.getLogger(__name__)

MIB = 1 << 20

#: An image of unknown size grows in steps of so many bytes, which are in memory until they are written: ``dog``
#: cannot make an image smaller, and throws away what is written past its end.
SEGMENT = 64 * MIB

#: Seconds for which whoever was cancelled waits until the rest of an image is deleted, which then goes on by itself.
_PATIENCE = 1.0

_OPTIONS = [
    cfg.IntOpt(
        "sheepdog_store_chunk_size",
        min=1,
        default=1,
        help="""
Size of the pieces that an image is read and written in, in mebibytes.

This much of each image is in memory while it is transferred. It does not change how an image is stored, nor how many
commands are run for it: that is one per image.
""",
    ),
    cfg.PortOpt(
        "sheepdog_store_port",
        default=7000,
        help="""
Port of the sheep daemon at sheepdog_store_address.
""",
    ),
    cfg.HostAddressOpt(
        "sheepdog_store_address",
        default="127.0.0.1",
        help="""
Address of a sheep daemon, any one of the cluster in which images are stored: IPv4, IPv6 or a host's name.
""",
    ),
]


class StoreLocation(glance_store.location.StoreLocation):
    """Where an image is: ``sheepdog://addr:port:image``, or only ``sheepdog://image`` as very old ones are written."""

    image: str
    addr: str
    port: int

    def process_specs(self) -> None:
        self.image = self.specs.get("image")
        self.addr = self.specs.get("addr")
        self.port = self.specs.get("port")

    def get_uri(self) -> str:
        return f"sheepdog://{self.addr}:{self.port}:{self.image}"

    def parse_uri(self, uri: str) -> None:
        scheme = "sheepdog://"
        self.validate_schemas(uri, valid_schemas=(scheme,))
        # From the right, because IPv6 addresses have colons too.
        *cluster, image = uri[len(scheme) :].rsplit(":", 2)
        if not image or "\0" in image or len(image.encode(errors="surrogateescape")) > _dog.MAX_NAME:
            raise exceptions.BadStoreUri(message=f"Bad name of an image in the location {uri!r}")
        self.image = image
        if not cluster:
            options = _options(self.conf, self.backend_group)
            self.addr, self.port = options.sheepdog_store_address, options.sheepdog_store_port
            return
        addr, port = cluster if len(cluster) == 2 else ("", "")
        addr = addr.removeprefix("[").removesuffix("]")
        if not addr or "\0" in addr or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise exceptions.BadStoreUri(message=f"The location {uri!r} is not sheepdog://addr:port:image")
        self.addr, self.port = addr, int(port)


def _options(conf: Any, group: str | None) -> Any:
    """The options of a store: of its group, else of ``[backend_defaults]``; or of a single store.

    Up to glance_store 4.10 the group alone has them.
    """
    if not group:
        return conf.glance_store
    if not hasattr(glance_store.driver, "BackendGroupConfiguration"):
        return conf[group]
    return glance_store.driver.BackendGroupConfiguration(_OPTIONS, group, conf=conf)


def _allow_as_default() -> None:
    """Accept ``default_store = sheepdog``: the option of single stores has only the names of glance_store's drivers."""
    for option in getattr(glance_store.backend, "_STORE_OPTS", ()):
        choices = getattr(option.type, "choices", None)
        if option.dest == "default_store" and isinstance(choices, dict):
            choices.setdefault("sheepdog", None)


# Services register the options of the stores after they have loaded all drivers.
_allow_as_default()


class ImageIterator:
    """The bytes of an image, or of a part of it. Each iteration is a command, which ends with the iteration."""

    def __init__(self, vdi: _dog.Vdi, offset: int, length: int, chunk_size: int, started: Child | None = None) -> None:
        self._vdi = vdi
        self._offset = offset
        self._length = length
        self._chunk_size = chunk_size
        #: reads already, for the first iteration
        self._started = started

    def __iter__(self) -> Iterator[bytes]:
        child, self._started = self._started, None
        if self._length:
            if child is None:
                child = self._vdi.start_read(self._offset, self._length)
            yield from self._vdi.read(child, self._offset, self._length, self._chunk_size)
        elif child is not None:
            child.stop()

    def __del__(self) -> None:
        if self._started is not None:
            # Whatever greenlet lets go of it must not switch to another one.
            self._started.stop(wait=False)


class Store(glance_store.driver.Store):
    """The store in a sheepdog cluster."""

    _CAPABILITIES = (
        capabilities.BitMasks.RW_ACCESS | capabilities.BitMasks.READ_RANDOM | capabilities.BitMasks.DRIVER_REUSABLE
    )
    #: Only where there is a store: glance_store lists the options of all drivers that are installed, and fastio adds
    #: none to those of programs that have no sheepdog.
    OPTIONS: list[Any] | None = None
    EXAMPLE_URL = "sheepdog://addr:port:image"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.OPTIONS = _OPTIONS
        super().__init__(*args, **kwargs)
        self._options = _options(self.conf, self.backend_group)
        self._program: str | None = None

    def get_schemes(self) -> tuple[str, ...]:
        return ("sheepdog",)

    def configure_add(self) -> None:
        """
        :raises glance_store.exceptions.BadStoreConfiguration: for a bad option, and where there is no ``dog``
        """
        try:
            self.addr = self._options.sheepdog_store_address
            self.port = self._options.sheepdog_store_port
            self._chunk_size()
            self._program = _dog.find_program()
        except (cfg.ConfigFileValueError, SettingError, exceptions.BackendException) as error:
            reason = f"Error in store configuration: {error}"
            LOG.error(reason)
            raise exceptions.BadStoreConfiguration(store_name="sheepdog", reason=reason) from error
        if self.backend_group:
            self._url_prefix = f"sheepdog://{self.addr}:{self.port}:"

    def _chunk_size(self) -> int:
        """Bytes; fastio's own setting wins over the store's option, as it does for all drivers."""
        size = config.effective().store_chunk_size("sheepdog")
        return self._options.sheepdog_store_chunk_size * MIB if size is None else size

    def _vdi(self, address: str, port: int, image: str) -> _dog.Vdi:
        return _dog.Vdi(self._program or _dog.find_program(), address, port, image)

    def _located(self, location: Any) -> _dog.Vdi:
        found = location.store_location
        return self._vdi(found.addr, found.port, found.image)

    @capabilities.check
    def get(
        self, location: Any, offset: int = 0, chunk_size: int | None = None, context: Any = None
    ) -> tuple[ImageIterator, int]:
        """An iterator of the image's bytes, and its size.

        :param offset: first byte that is wanted
        :param chunk_size: how many bytes are wanted (not the size of the pieces); all up to the end by default
        :raises glance_store.exceptions.NotFound: if there is no such image
        """
        vdi = self._located(location)
        # A read takes a while until it has the first byte; meanwhile another command finds out how many there are.
        started = vdi.start_read(offset) if chunk_size is None else None
        try:
            size = vdi.size()
        except BaseException:
            if started is not None:
                started.stop()
            raise
        length = max(0, size - offset)
        if chunk_size is not None:
            length = min(length, chunk_size)
        return ImageIterator(vdi, offset, length, self._chunk_size(), started), chunk_size or size

    def get_size(self, location: Any, context: Any = None) -> int:
        """Bytes of the image.

        :raises glance_store.exceptions.NotFound: if there is no such image
        """
        return self._located(location).size()

    @glance_store.driver.back_compat_add
    @capabilities.check
    def add(
        self,
        image_id: str,
        image_file: Any,
        image_size: int,
        hashing_algo: str,
        context: Any = None,
        verifier: Any = None,
    ) -> tuple[str, int, str, str, dict[str, str]]:
        """Store an image.

        :param image_size: bytes; 0 if it is not known
        :returns: its location, bytes written, MD5 checksum, the hash by ``hashing_algo``, and the store's metadata
        :raises glance_store.exceptions.Duplicate: if there is such an image already
        :raises glance_store.exceptions.Invalid: if there is more or less data than ``image_size``
        """
        location = StoreLocation(
            {"image": str(image_id), "addr": self.addr, "port": self.port}, self.conf, backend_group=self.backend_group
        )
        # An image that could not be found again must not be stored.
        location.parse_uri(location.get_uri())
        vdi = self._vdi(location.addr, location.port, location.image)
        hashes = [utils.get_hasher("md5", False), utils.get_hasher(hashing_algo, False)]
        source = _Source(utils.chunkreadable(image_file, self._chunk_size()), image_size, hashes, verifier)
        chunks = iter(source)
        if image_size:
            segments = iter([(0, chunks, image_size)])
            least = image_size
        else:
            first = next(chunks, b"")
            segments = _segments(itertools.chain([first] if first else [], chunks))
            least = len(first)
        try:
            vdi.create(least)
            for offset, segment, length in segments:
                vdi.resize(offset + length)
                vdi.write(segment, offset, length)
        except BaseException as error:
            if vdi.begun:
                LOG.error("%s could not be stored, what there is of it is deleted: %s", vdi, error)
                # A cancelled caller, which is no Exception under eventlet, is not to be held up, and cancels it no
                # more.
                waiting.waiter().apart(lambda: _discard(vdi), None if isinstance(error, Exception) else _PATIENCE)
            raise
        metadata = {"store": self.backend_group} if self.backend_group else {}
        checksum, multihash = (each.hexdigest() for each in hashes)
        return location.get_uri(), source.size, checksum, multihash, metadata

    @capabilities.check
    def delete(self, location: Any, context: Any = None) -> None:
        """Delete the image.

        :raises glance_store.exceptions.NotFound: if there is no such image
        """
        self._located(location).delete()


class _Source:
    """The data of an image on their way: counted, hashed, and checked against the size that was announced."""

    def __init__(self, chunks: Any, announced: int, hashes: list[Any], verifier: Any) -> None:
        self.size = 0
        self._chunks = chunks
        self._announced = announced
        self._hashes = [*hashes, verifier] if verifier else hashes

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.size += len(chunk)
            if self._announced and self.size > self._announced:
                raise exceptions.Invalid(f"Size exceeds: expected {self._announced} bytes, got {self.size} bytes")
            yield chunk
            # Afterwards, while the child deals with it.
            for each in self._hashes:
                each.update(chunk)
        if self._announced and self.size != self._announced:
            raise exceptions.Invalid(f"Size mismatch: expected {self._announced} bytes, got {self.size} bytes")


def _discard(vdi: _dog.Vdi) -> None:
    try:
        vdi.discard()
    except Exception as error:
        LOG.error("%s may be left behind: %s", vdi, error)


def _segments(chunks: Iterator[bytes]) -> Iterator[tuple[int, Iterator[bytes], int]]:
    """Group ``chunks`` into segments: their offset, the chunks, how many bytes those have."""
    offset = 0
    segment: list[bytes] = []
    length = 0
    for chunk in chunks:
        segment.append(chunk)
        length += len(chunk)
        if length >= SEGMENT:
            yield offset, iter(segment), length
            offset, segment, length = offset + length, [], 0
    if segment:
        yield offset, iter(segment), length
