"""ironic: what its tests of image services cover."""

from .candidate import Broken

GLANCE = "ironic/common/glance_service/image_service.py"
OTHERS = "ironic/common/image_service.py"
IMAGES = "ironic-images"

BROKEN = (
    Broken(
        "sends a multiple of the page only",
        GLANCE, "f.fileno(), 0, filesize)", "f.fileno(), 0, filesize // 4096 * 4096)",
        suite=IMAGES, tests=("TestGlanceImageService.test_download_file_url",),
    ),
    Broken(
        "ignores the time-out of a download",
        OTHERS, "                image_href, stream=True, verify=verify,\n"
        "                timeout=CONF.webserver_connection_timeout,\n",
        "                image_href, stream=True, verify=verify,\n                timeout=None,\n",
        suite=IMAGES, tests=("HttpImageServiceTestCase.test_download_success_custom_timeout",),
    ),
    Broken(
        "does not check the server's certificate",
        OTHERS, "image_href, stream=True, verify=verify,", "image_href, stream=True, verify=bool(auth),",
        suite=IMAGES, tests=("HttpImageServiceTestCase.test_download_success_verify_path",),
    ),
)  # fmt: skip
