"""nova: what its tests of images cover."""

from .candidate import Broken

GLANCE = "nova/image/glance.py"
IMAGES = "nova-images"

BROKEN = (
    Broken(
        "writes nothing without a signature",
        GLANCE, "                if write_image:\n                    data.write(chunk)\n",
        "                if write_image and verifier:\n                    data.write(chunk)\n",
        suite=IMAGES, tests=("TestDownloadNoDirectUri.test_download_data_no_dest_path_v2",),
    ),
    Broken(
        "checks the signature of written images only",
        GLANCE, "            if verifier:\n                verifier.verify()\n",
        "            if verifier and write_image:\n                verifier.verify()\n",
        suite=IMAGES, tests=("TestDownloadSignatureVerification.test_download_with_signature_verification_v2",),
    ),
    Broken(
        "leaves the data where the signature is wrong",
        GLANCE, "                data.truncate(0)\n", "                data.flush()\n",
        suite=IMAGES, tests=("TestDownloadSignatureVerification.test_download_dst_path_signature_fail_v2",),
    ),
    Broken(
        "does not try again where an answer breaks off",
        GLANCE, "return list(result)", "return result",
        suite=IMAGES, tests=("TestGlanceClientWrapperRetries.test_retry_works_with_generators",),
    ),
    Broken(
        "does not sync the file",
        GLANCE, "                self._safe_fsync(data)\n", "",
        suite=IMAGES, tests=("TestDownloadNoDirectUri.test_download_no_data_dest_path_v2",),
    ),
    Broken(
        "leaves the file open",
        GLANCE, "                self._safe_fsync(data)\n                data.close()\n",
        "                self._safe_fsync(data)\n",
        suite=IMAGES, tests=("TestDownloadNoDirectUri.test_download_no_data_dest_path_v2",),
    ),
    Broken(
        "syncs a pipe, which is an error",
        GLANCE, "(stat.S_ISFIFO, stat.S_ISSOCK)", "(stat.S_ISSOCK,)",
        suite=IMAGES, tests=("TestSafeFSync.test_fifo",),
    ),
    Broken(
        "gives up where a direct download fails",
        GLANCE, '                LOG.exception("Download image error")\n',
        '                LOG.exception("Download image error")\n                raise\n',
        suite=IMAGES, tests=("TestDownloadNoDirectUri.test_download_direct_exception_fallback_v2",),
    ),
    Broken(
        "does not say that a quota is exceeded",
        GLANCE, "isinstance(exc_value, glanceclient.exc.HTTPOverLimit)",
        "isinstance(exc_value, glanceclient.exc.HTTPConflict)",
        suite=IMAGES, tests=("TestExceptionTranslations.test_client_httpoverlimit_converts_to_imagequotaexceeded",),
    ),
    Broken(
        "makes one attempt less than it is told",
        GLANCE, "num_attempts = 1 + CONF.glance.num_retries", "num_attempts = max(1, CONF.glance.num_retries)",
        suite=IMAGES, match="TestGlanceClientWrapperRetries",
        tests=("TestGlanceClientWrapperRetries.test_static_client_with_retries",),
    ),
    Broken(
        "says that an image in use is missing",
        GLANCE, "raise exception.ImageDeleteConflict(reason=str(exc))",
        "raise exception.ImageNotFound(image_id=image_id)",
        suite=IMAGES, tests=("TestDelete.test_delete_client_conflict_failure_v2",),
    ),
    Broken(
        "exports another image of the pool",
        GLANCE, "                                    snapshot_name, pool_name)",
        "                                    pool_name, snapshot_name)",
        suite=IMAGES, tests=("TestRBDDownload.test_rbd_download_success",),
    ),
)  # fmt: skip
