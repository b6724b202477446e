"""ironic: an image of more than 2 GiB, of which Glance gives a file:// location, is cut off at 2,147,479,552 bytes.

A file with a hole of 3 GiB is the image. It is copied to /dev/null, and what Linux has copied is printed. Exits with 1
if this is not all.
"""

import os
import sys
import tempfile
from unittest import mock

from ironic.common import image_service
from ironic.conf import CONF

SIZE = 3 * 2**30
IMAGE = "d24a4f66-9d8b-4f36-a0c5-c1f5a6c0e1ab"

CONF.set_override("allowed_direct_url_schemes", ["file"], group="glance")
sent = []
original = os.sendfile


def sendfile(*arguments):
    sent.append(original(*arguments))
    return sent[-1]


with tempfile.NamedTemporaryFile() as source, open(os.devnull, "wb") as target:
    os.truncate(source.name, SIZE)
    service = image_service.GlanceImageService(mock.Mock(), mock.Mock())
    with (
        mock.patch.object(service, "_get_location", return_value="file://" + source.name),
        mock.patch.object(os, "sendfile", sendfile),
    ):
        service.download(IMAGE, target)
print(f"an image of {SIZE:,} bytes: {sum(sent):,} bytes are copied, calls of sendfile(): {len(sent)}")
sys.exit(sum(sent) != SIZE)
