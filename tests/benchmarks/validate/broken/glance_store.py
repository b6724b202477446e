"""glance_store: the drivers, and what they share."""

from .candidate import Broken

FILES, UTILS = "glance_store/_drivers/filesystem.py", "glance_store/common/utils.py"
CINDER, S3, SWIFT = (f"glance_store/_drivers/{name}.py" for name in ("cinder/store", "s3", "swift/store"))
NATIVE, UPSTREAM = "conformance-stores-native", "glance_store-native"

BROKEN = (
    Broken(
        "leaves the file of an upload that breaks off",
        FILES, "if e.errno != errno.EACCES:", "if e.errno in (errno.EFBIG, errno.ENOSPC):",
        suite=NATIVE, tests=("Files.test_an_upload_that_breaks_off_leaves_no_file",),
    ),
    Broken(
        "takes a short read for the end",
        UTILS, "            yield chunk\n",
        "            yield chunk\n            if len(chunk) < chunk_size:\n                break\n",
        suite=NATIVE, tests=("Files.test_an_image_in_small_pieces",),
    ),
    Broken(
        "says nothing if there is no image to delete",
        FILES, "        except FileNotFoundError:\n            raise exceptions.NotFound(image=fn)\n",
        "        except FileNotFoundError:\n            LOG.debug('it is gone')\n",
        suite=UPSTREAM, match="test_delete_non_existing",
        tests=("test_filesystem_store.TestStore.test_delete_non_existing",),
    ),
    Broken(
        "loses the last part of an image",
        S3, "if len(buffered_chunk) > 0:", "if len(buffered_chunk) > write_chunk_size:",
        suite=NATIVE, tests=("S3Parts.test_every_byte",),
    ),
    Broken(
        "goes on without a segment that was refused",
        SWIFT, "from swift backend\n                                with excutils.save_and_reraise_exception():",
        "from swift backend\n                                with excutils.save_and_reraise_exception(False):",
        suite=NATIVE, tests=("SwiftSegments.test_a_request_that_fails_while_an_image_is_added",),
    ),
    Broken(
        "gives the start of a volume for any part",
        CINDER, "                fp.seek(offset)\n", "",
        suite=NATIVE, tests=("Cinder.test_a_part_of_an_image",),
    ),
    Broken(
        "reads in pieces that are too small",
        FILES, "chunk_size=self.READ_CHUNKSIZE,", "chunk_size=512,",
        benchmark="stores/filesystem-get-256MiB", options=("--rounds", "7", "--size", "64MiB"),
    ),
)  # fmt: skip
