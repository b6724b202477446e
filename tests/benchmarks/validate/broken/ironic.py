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
        "takes an image without data",
        GLANCE, "        if image_size == 0:\n", "        if image_size is None:\n",
        suite=IMAGES, tests=("TestGlanceImageService.test_download_no_data",),
    ),
    Broken(
        "does not try again",
        GLANCE, "        retry=tenacity.retry_if_exception_type(\n            exception.GlanceConnectionFailed),\n",
        "        retry=tenacity.retry_if_exception_type(ConnectionError),\n",
        suite=IMAGES, tests=("TestGlanceImageService.test_download_with_retries",),
    ),
    Broken(
        "says that a forbidden image is missing",
        GLANCE, "return exception.ImageNotAuthorized(image_id=image_id)",
        "return exception.ImageNotFound(image_id=image_id)",
        suite=IMAGES, tests=("TestGlanceImageService.test_client_forbidden_converts_to_imagenotauthed",),
    ),
    Broken(
        "shows an image that is not active",
        GLANCE, "if not service_utils.is_image_active(image):", "if image is None:",
        suite=IMAGES, tests=("TestGlanceImageService.test_show_raises_when_image_not_active",),
    ),
    Broken(
        "reads 128 bytes at a time",
        OTHERS, "                for chunk in response.iter_content(\n"
        "                        chunk_size=IMAGE_CHUNK_SIZE):\n                    image_file.write(chunk)\n\n",
        "                for chunk in response.iter_content(128):\n                    image_file.write(chunk)\n\n",
        suite=IMAGES, tests=("HttpImageServiceTestCase.test_download_success_http_scheme",),
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
    Broken(
        "lets an error of the disk through",
        OTHERS, "                    image_file.write(chunk)\n\n        except (OSError, requests.ConnectionError,"
        " requests.RequestException,\n                IOError) as e:\n",
        "                    image_file.write(chunk)\n\n        except (requests.ConnectionError,"
        " requests.Timeout) as e:\n",
        suite=IMAGES, tests=("HttpImageServiceTestCase.test_download_fail_verify_true_oserror",),
    ),
    Broken(
        "reports a size of 0 where none is told",
        OTHERS, "response.headers.get('Content-Length')\n        if image_size is None:",
        "response.headers.get('Content-Length', 0)\n        if image_size is None:",
        suite=IMAGES, tests=("HttpImageServiceTestCase.test_show_no_content_length",),
    ),
    Broken(
        "does not copy where a link is refused",
        OTHERS, "            except OSError as exc:\n                orig",
        "            except FileExistsError as exc:\n                orig",
        suite=IMAGES, tests=("FileImageServiceTestCase.test_download_copy",),
    ),
    Broken(
        "links to a symbolic link instead of the image",
        OTHERS, "real_image_path = os.path.realpath(source_image_path)", "real_image_path = source_image_path",
        suite=IMAGES, tests=("FileImageServiceTestCase.test_download_symlink",),
    ),
)  # fmt: skip
