"""glance: uploads and downloads of a server."""

from .candidate import Broken

DATA = "glance/api/v2/image_data.py"
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
        "sends a download in pieces that are too small",
        DATA, "            response.app_iter = iter(image.get_data(offset=offset,\n"
        "                                                    chunk_size=chunk_size))\n",
        "            response.app_iter = (piece[start:start + 256]\n"
        "                                 for piece in image.get_data(offset=offset, chunk_size=chunk_size)\n"
        "                                 for start in range(0, len(piece), 256))\n",
        benchmark=DOWNLOAD, options=("--rounds", "7", "--size", "16MiB"),
    ),
)  # fmt: skip
