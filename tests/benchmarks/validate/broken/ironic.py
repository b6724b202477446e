"""ironic: what its tests of image services cover."""

from .candidate import Broken

GLANCE = "ironic/common/glance_service/image_service.py"
IMAGES = "ironic-images"

BROKEN = (
    Broken(
        "sends a multiple of the page only",
        GLANCE, "f.fileno(), 0, filesize)", "f.fileno(), 0, filesize // 4096 * 4096)",
        suite=IMAGES, tests=("TestGlanceImageService.test_download_file_url",),
    ),
)  # fmt: skip
