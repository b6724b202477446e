"""Candidates that are broken on purpose, a module for each project: faults that a reviewer could miss."""

from . import cpython, eventlet, glance, glance_store, oslo_concurrency
from .candidate import Broken

#: by the projects' names
BROKEN: dict[str, tuple[Broken, ...]] = {
    "eventlet": eventlet.BROKEN,
    "oslo.concurrency": oslo_concurrency.BROKEN,
    "glance_store": glance_store.BROKEN,
    "glance": glance.BROKEN,
    "cpython": cpython.BROKEN,
    "nova": (
        Broken(
            "checks the signature of written images only",
            "nova/image/glance.py", "            if verifier:\n                verifier.verify()\n",
            "            if verifier and write_image:\n                verifier.verify()\n",
            suite="nova-images",
            tests=("TestDownloadSignatureVerification.test_download_with_signature_verification_v2",),
        ),
    ),
    "ironic": (
        Broken(
            "sends a multiple of the page only",
            "ironic/common/glance_service/image_service.py",
            "f.fileno(), 0, filesize)", "f.fileno(), 0, filesize // 4096 * 4096)",
            suite="ironic-images", tests=("TestGlanceImageService.test_download_file_url",),
        ),
    ),
}  # fmt: skip
