"""nova: what its tests of images cover."""

from .candidate import Broken

GLANCE = "nova/image/glance.py"
IMAGES = "nova-images"

BROKEN = (
    Broken(
        "checks the signature of written images only",
        GLANCE, "            if verifier:\n                verifier.verify()\n",
        "            if verifier and write_image:\n                verifier.verify()\n",
        suite=IMAGES, tests=("TestDownloadSignatureVerification.test_download_with_signature_verification_v2",),
    ),
    Broken(
        "does not try again where an answer breaks off",
        GLANCE, "return list(result)", "return result",
        suite=IMAGES, tests=("TestGlanceClientWrapperRetries.test_retry_works_with_generators",),
    ),
    Broken(
        "leaves the file open",
        GLANCE, "                self._safe_fsync(data)\n                data.close()\n",
        "                self._safe_fsync(data)\n",
        suite=IMAGES, tests=("TestDownloadNoDirectUri.test_download_no_data_dest_path_v2",),
    ),
)  # fmt: skip
