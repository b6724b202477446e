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
)  # fmt: skip
