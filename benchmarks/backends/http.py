"""nginx for the http store, which only reads: files are put into the directory that nginx serves."""

from typing import Any

from benchmarks.backends import nginx
from benchmarks.backends.base import FAR, HOST, Backend, http_status


class Http(Backend):
    """One nginx."""

    name = "http"
    driver = "http"
    programs = ("nginx",)
    install = nginx.INSTALL
    #: ``workers``: nginx's processes; ``writable``: 1 for one that takes images by PUT
    parameters = {"workers": 1, "writable": 0, **FAR}

    def launch(self) -> None:
        images = self.directory / "images"
        images.mkdir()
        (images / "answer").touch()
        self._port = self.port()
        server = f"listen {HOST}:{self._port}; root {images}; sendfile on; default_type application/octet-stream;"
        if self.chosen["writable"]:
            server += " dav_methods PUT; client_max_body_size 0;"
        nginx.start(self, server, self.chosen["workers"])
        self.wait(lambda: http_status(self._port, "/answer") == 200, "nginx")
        # One of the workers has answered.
        self.wait(lambda: len(self.pids()) > self.chosen["workers"], "all workers of nginx")
        self._port = self.far_port(self._port)

    def details(self) -> dict[str, Any]:
        url = f"http://{HOST}:{self._port}"
        return {"url": url, "place": {"directory": str(self.directory / "images"), "url": url}}
