"""What glance relies on in glance_store's drivers: every byte, sizes, checksums, and no descriptor left.

The directory of the filesystem driver and an nginx for the http driver are this project's own test backends.
"""

import contextlib
import errno
import hashlib
import io
import sys
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from conformance_processes import Case, data_of

# After the environment's packages: only benchmarks is meant.
sys.path.append(str(Path(__file__).resolve().parents[3]))

from benchmarks.backends.filesystem import Filesystem  # noqa: E402
from benchmarks.backends.http import Http  # noqa: E402
from benchmarks.backends.stores import opened  # noqa: E402

#: Around the drivers' chunk sizes.
SIZES = (1, 65535, 65536, 65537, (4 << 20) - 1, 4 << 20, (8 << 20) + 1)

# Here and not in the first test, whose time is limited: it takes seconds to import all drivers and their clients.
with Filesystem() as first, opened(first.access()):
    pass


class Pieces:
    """An image as it comes from the network: read() returns less than it was asked for."""

    def __init__(self, data, piece):
        self._data = memoryview(data)
        self._piece = piece

    def read(self, size=-1):
        wanted = self._piece if size is None or size < 0 else min(size, self._piece)
        found, self._data = self._data[:wanted], self._data[wanted:]
        return bytes(found)


class StoreCase(Case):
    backend: Any = None

    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.store = stack.enter_context(opened(stack.enter_context(self.backend()).access()))


class Files(StoreCase):
    backend = Filesystem

    def test_what_is_added_is_what_is_got(self):
        for size in SIZES:
            data = data_of(size)
            added = self.store.add(data)
            self.assertEqual(added.size, size)
            self.assertEqual(added.checksum, hashlib.md5(data, usedforsecurity=False).hexdigest())
            self.assertEqual(added.multihash, hashlib.sha512(data).hexdigest())
            self.assertSame(Path(added.url.removeprefix("file://")).read_bytes(), data, "the file")
            chunks, told = self.store.get(added.url)
            self.assertEqual(told, size)
            self.assertSame(b"".join(chunks), data, f"an image of {size} bytes")
            self.assertEqual(self.store.size(added.url), size)
            self.store.delete(added.url)

    def test_an_upload_in_small_pieces(self):
        data = data_of((1 << 20) + 1)
        for size in (len(data), 0):
            added = self.store.add(Pieces(data, 1447), size=size)
            self.assertEqual((added.size, added.multihash), (len(data), hashlib.sha512(data).hexdigest()))
            self.assertSame(self.store.read(added.url), data, "an image that came in pieces")

    def test_an_upload_that_breaks_off_leaves_no_file(self):
        class Broken(Pieces):
            def read(self, size=-1):
                found = super().read(size)
                if not found:
                    raise OSError("the client has gone")
                return found

        directory = Path(self.store.add(b"x").url.removeprefix("file://")).parent
        before = set(directory.iterdir())
        with self.assertRaises(OSError):
            self.store.add(Broken(data_of(1 << 20), 65536), size=2 << 20)
        self.assertEqual(set(directory.iterdir()), before)

    def test_an_upload_that_is_too_short_leaves_no_file(self):
        directory = Path(self.store.add(b"x").url.removeprefix("file://")).parent
        before = set(directory.iterdir())
        with self.assertRaises(Exception) as caught:
            self.store.add(data_of(1 << 20), size=2 << 20)
        self.assertEqual(type(caught.exception).__name__, "Invalid")
        self.assertEqual(set(directory.iterdir()), before)

    def test_an_image_that_is_there_stays_as_it_is(self):
        url = self.store.add(b"first", image_id="the-same").url
        with self.assertRaises(Exception) as caught:
            self.store.add(b"second", image_id="the-same")
        self.assertEqual(type(caught.exception).__name__, "Duplicate")
        self.assertSame(self.store.read(url), b"first", "the image")

    def test_zeros(self):
        data = data_of(100_000) + bytes(200_001) + data_of(100_000) + bytes(300_001)
        added = self.store.add(data)
        self.assertEqual(added.multihash, hashlib.sha512(data).hexdigest())
        self.assertSame(self.store.read(added.url), data, "an image with zeros at its end")

    def test_a_part_of_an_image(self):
        data = data_of(1 << 20)
        url = self.store.add(data).url
        self.assertEqual(self.store.get(url, offset=1000, chunk_size=70_000)[1], 70_000)
        self.assertSame(self.store.read(url, offset=1000, chunk_size=70_000), data[1000:71_000], "a part")

    def test_nothing_is_left(self):
        url = self.store.add(data_of(200_000)).url

        def once():
            self.store.delete(self.store.add(data_of(200_000)).url)
            self.store.read(url)

        self.assertNothingLeft(once)

    def test_nothing_is_left_by_a_reader_that_leaves(self):
        url = self.store.add(data_of(8 << 20)).url

        def once():
            chunks, _ = self.store.get(url)
            next(iter(chunks))
            close = getattr(chunks, "close", None)
            if close is not None:
                close()

        self.assertNothingLeft(once)


@unittest.skipIf(Http().why_not(), Http().why_not())
class HttpImages(StoreCase):
    backend = Http

    def test_every_byte_is_got(self):
        for size in SIZES:
            data = data_of(size)
            chunks, told = self.store.get(self.store.place(data))
            self.assertEqual(told, size)
            self.assertSame(b"".join(chunks), data, f"an image of {size} bytes")

    def test_nothing_is_left(self):
        url = self.store.place(data_of(200_000))
        self.assertNothingLeft(lambda: self.store.read(url))


class Drivers(Case):
    """What needs no server; a driver that cannot be imported fails in all variants alike."""

    def test_each_segment_in_swift_has_the_size_that_is_announced(self):
        from glance_store._drivers.swift import store as swift

        segment, data = 1024, data_of(2560)
        sent: list[Any] = []

        class Connection:
            def head_container(self, container):
                """There is one."""

            def put_object(self, container, name, contents, content_length=None, headers=None):
                if contents is not None:  # not the manifest
                    sent.append((content_length, contents.read(len(data))))

        store: Any = swift.SingleTenantStore.__new__(swift.SingleTenantStore)
        store.large_object_size = store.large_object_chunk_size = segment
        store.reader_class = swift.ChunkReader
        store._capabilities = store._CAPABILITIES
        store.backend_group = store.conf = None
        store.create_location = store._create_container_if_missing = mock.Mock()
        store.get_manager = lambda *_, **__: contextlib.nullcontext(mock.Mock(get_connection=Connection))
        with mock.patch.object(swift.sutils, "is_multiple_swift_store_accounts_enabled", return_value=True):
            store.add("image", io.BytesIO(data), len(data), "sha256")
        self.assertSame(b"".join(own for _, own in sent), data, "all segments")
        self.assertEqual([announced for announced, _ in sent], [len(own) for _, own in sent])

    def test_an_error_of_a_volume_is_not_the_end_of_the_image(self):
        from glance_store._drivers.cinder import store as cinder

        def volume():
            yield b"first"
            raise OSError(errno.EIO, "Input/output error")

        found: list[bytes] = []
        with self.assertRaises(OSError):
            found.extend(cinder.CinderVolumeIterator(volume()))
        self.assertEqual(found, [b"first"])
