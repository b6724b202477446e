"""nginx for the http store, which only reads: files are put into the directory that nginx serves."""

from __future__ import annotations

import os
from typing import Any

from benchmarks.backends.base import HOST, Backend, find_program, http_status

INSTALL = "apt-get install --no-install-recommends nginx-light"

_CONF = """\
daemon off;
{user}
worker_processes {workers};
pid {directory}/nginx.pid;
error_log stderr;
events {{ }}
http {{
    access_log off;
    sendfile on;
    default_type application/octet-stream;
    client_body_temp_path {directory}/temporary;
    proxy_temp_path {directory}/temporary;
    fastcgi_temp_path {directory}/temporary;
    uwsgi_temp_path {directory}/temporary;
    scgi_temp_path {directory}/temporary;
    server {{
        listen {host}:{port};
        root {directory}/images;
        {writing}
    }}
}}
"""


class Http(Backend):
    """One nginx."""

    name = "http"
    driver = "http"
    #: ``workers``: nginx's processes; ``writable``: 1 for one that takes images by PUT
    parameters = {"workers": 1, "writable": 0}

    @classmethod
    def available(cls) -> str | None:
        return None if find_program("nginx") else f"http: nginx is not installed; install it with: {INSTALL}"

    def launch(self) -> None:
        images = self.directory / "images"
        images.mkdir()
        (images / "answer").touch()
        self._port = self.port()
        # Started by root its workers would change to a user who must not look into this directory.
        user = "user root;" if os.getuid() == 0 else ""
        conf = self.directory / "nginx.conf"
        writing = "dav_methods PUT; client_max_body_size 0;" if self.chosen["writable"] else ""
        conf.write_text(
            _CONF.format(
                user=user, directory=self.directory, host=HOST, port=self._port, workers=self.chosen["workers"],
                writing=writing,
            )
        )  # fmt: skip
        # -e: not even before it has read the configuration may it write to the system's log.
        self.spawn("nginx", [find_program("nginx") or "", "-p", str(self.directory), "-e", "stderr", "-c", str(conf)])
        self.wait(lambda: http_status(self._port, "/answer") == 200, "nginx")
        # One of the workers has answered.
        self.wait(lambda: len(self.pids()) > self.chosen["workers"], "all workers of nginx")

    def options(self) -> dict[str, Any]:
        return {}

    def details(self) -> dict[str, Any]:
        url = f"http://{HOST}:{self._port}"
        return {"url": url, "place": {"directory": str(self.directory / "images"), "url": url}}
