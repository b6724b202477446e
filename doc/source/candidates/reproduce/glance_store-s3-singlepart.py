"""glance_store's S3 driver copies an image in a single part once per chunk that it reads.

No server is needed. What is in memory while an image of unknown size is uploaded is printed, as tracemalloc sees it.
Exits with 1 if this is more than one and a half times the image.
"""

import io
import sys
import tracemalloc
from unittest import mock

from glance_store._drivers import s3

MIB = 2**20
SIZE = 64 * MIB

image = io.BytesIO(bytes(SIZE))
store = s3.Store.__new__(s3.Store)
store.WRITE_CHUNKSIZE = MIB
store.backend_group = None
client = mock.Mock()
tracemalloc.start()
store._add_singlepart(client, image, "bucket", "key", mock.Mock(), "sha256", None, 0)
peak = tracemalloc.get_traced_memory()[1]
assert client.put_object.call_args.kwargs["Body"] == image.getvalue()
print(f"an image of {SIZE // MIB} MiB takes {peak // MIB} MiB while it is uploaded")
sys.exit(peak > 1.5 * SIZE)
