"""The filesystem store: a directory."""

from typing import Any

from benchmarks.backends.base import Backend


class Filesystem(Backend):
    """No server; the store's directory is made and removed."""

    name = "filesystem"
    driver = "file"

    def launch(self) -> None:
        (self.directory / "images").mkdir()

    def options(self) -> dict[str, Any]:
        return {"filesystem_store_datadir": str(self.directory / "images")}
