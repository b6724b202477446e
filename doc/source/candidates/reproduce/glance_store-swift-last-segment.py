"""glance_store 5.0 to 5.7: the last segment of an image in Swift is announced with more than it has.

No server is needed. An image of 2.5 segments is added; what is announced of each segment, and what it has, is printed.
Exits with 1 if they differ.
"""

import contextlib
import io
import sys
from unittest import mock

from glance_store._drivers.swift import store as swift

SEGMENT = 1024
SIZE = 2 * SEGMENT + SEGMENT // 2


class Connection:
    """Takes objects, as swiftclient's connection does."""

    def __init__(self):
        self.segments = []

    def head_container(self, container):
        """There is one."""

    def put_object(self, container, name, contents, content_length=None, headers=None):
        if contents is not None:  # not the manifest
            self.segments.append((content_length, len(contents.read(SIZE))))


connection = Connection()
store = swift.SingleTenantStore.__new__(swift.SingleTenantStore)
store.large_object_size = store.large_object_chunk_size = SEGMENT
store.reader_class = swift.ChunkReader
store._capabilities = store._CAPABILITIES
store.backend_group = store.conf = None
store.create_location = mock.Mock()
store._create_container_if_missing = mock.Mock()
store.get_manager = lambda *_, **__: contextlib.nullcontext(mock.Mock(get_connection=lambda: connection))
with mock.patch.object(swift.sutils, "is_multiple_swift_store_accounts_enabled", return_value=True):
    store.add("image", io.BytesIO(bytes(SIZE)), SIZE, "sha256")
for announced, sent in connection.segments:
    print(f"announced: {announced} bytes, sent: {sent} bytes" + ", Swift waits for the rest" * (announced != sent))
sys.exit(any(announced != sent for announced, sent in connection.segments))
