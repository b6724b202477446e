"""glance: uploads and downloads of a server."""

from .candidate import Broken

DATA, LOCATION = "glance/api/v2/image_data.py", "glance/location.py"
SERVER = "conformance-glance"
DOWNLOAD = "glance/glance-33-download"

DROPS_THE_LAST_BYTE = Broken(
    "drops the last byte of a download",
    DATA, "= str(chunk_size)\n", "= str(chunk_size - 1)\n",
    suite=SERVER, tests=("EveryByte.test_an_uploaded_image_is_downloaded",),
)  # fmt: skip
DOES_NOT_START = Broken(
    "does not start",
    DATA, "LOG = logging.getLogger(__name__)\n", "LOG = logging.getLogger(__name__)\nLOG.no_such_name\n",
    benchmark=DOWNLOAD, verdict="FAILED", options=("--rounds", "1", "--size", "16MiB"),
)  # fmt: skip

# One test each: each look at a difference starts a server.
BROKEN = (
    DROPS_THE_LAST_BYTE,
    DOES_NOT_START,
    Broken(
        "forgets an upload that broke off",
        DATA, "image.status = 'queued'\n", "image.status = 'saving'\n",
        suite=SERVER, tests=("ThoseWhoLeave.test_an_upload_that_breaks_off_leaves_no_file",),
    ),
    Broken(
        "leaks a descriptor",
        DATA, "        offset, chunk_size = 0, None\n",
        "        offset, chunk_size = 0, None\n        import os\n        os.dup(0)\n",
        suite=SERVER, tests=("NothingIsLeft.test_by_transfers",),
    ),
    Broken(
        "ends a part one byte early",
        DATA, "                    chunk_size = range_val.end - offset\n",
        "                    chunk_size = range_val.end - offset - 1\n",
        suite=SERVER, tests=("EveryByte.test_a_part_of_an_image",),
    ),
    Broken(
        "says that an image without data is missing",
        DATA, "raise webob.exc.HTTPNoContent(explanation=e.msg)", "raise webob.exc.HTTPNotFound(explanation=e.msg)",
        suite=SERVER, tests=("Refusals.test_an_image_without_data",),
    ),
    Broken(
        "reports the announced size instead of the stored one",
        LOCATION, "            (location, size, checksum,\n", "            (location, stored, checksum,\n",
        suite=SERVER, tests=("EveryByte.test_an_upload_without_a_length",),
    ),
    Broken(
        "leaves the file of a deleted image",
        LOCATION, "        self.image.delete()\n        if self.image.locations:\n",
        "        self.image.delete()\n        if len(self.image.locations) > 1:\n",
        suite=SERVER, tests=("NothingIsLeft.test_by_transfers",),
    ),
    Broken(
        "answers a second upload as if the request were wrong",
        DATA, "raise webob.exc.HTTPConflict(explanation=e.msg, request=req)\n\n        except exception.Forbidden:\n"
        '            msg = ("Not allowed to upload',
        "raise webob.exc.HTTPBadRequest(explanation=e.msg, request=req)\n\n        except exception.Forbidden:\n"
        '            msg = ("Not allowed to upload',
        suite=SERVER, tests=("Refusals.test_data_for_an_image_that_has_some",),
    ),
    Broken(
        "sends a download in pieces that are too small",
        DATA, "            response.app_iter = iter(image.get_data(offset=offset,\n"
        "                                                    chunk_size=chunk_size))\n",
        "            response.app_iter = (piece[start:start + 256]\n"
        "                                 for piece in image.get_data(offset=offset, chunk_size=chunk_size)\n"
        "                                 for start in range(0, len(piece), 256))\n",
        benchmark=DOWNLOAD, options=("--rounds", "7", "--size", "16MiB"),
    ),
)  # fmt: skip
