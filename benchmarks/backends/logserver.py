"""The log server (:mod:`benchmarks.logserver`) on eventlet, in this Python's environment, stock or with fastio."""

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.backends.base import HOST, ON_OFF, ROOT, Backend, BackendError, http_status


class LogServer(Backend):
    """One log server."""

    name = "logserver"
    driver = ""
    modules = ("eventlet", "swiftclient")
    #: ``fastio`` and ``trace``: ``on`` or ``off``; ``root``: directory of the logs on the disk, a new one by default;
    #: ``swift``: the access of a Swift with its ``container``, as JSON; ``chunk_size``: bytes; ``host``: of its URL,
    #: for those who are on other machines
    parameters = {"fastio": "off", "trace": "off", "root": "", "swift": "", "chunk_size": 65536, "host": HOST}
    choices = {"fastio": ON_OFF, "trace": ON_OFF}

    def launch(self) -> None:
        root = Path(self.chosen["root"] or self.directory / "root")
        root.mkdir(exist_ok=True)
        self._port = self.port()
        own = ["--root", str(root), "--port", str(self._port), "--chunk-size", str(self.chosen["chunk_size"])]
        if self.chosen["host"] != HOST:
            own += ["--host", "0.0.0.0"]
        if self.chosen["swift"]:
            access = self.directory / "swift.json"
            access.touch(mode=0o600)
            access.write_text(self.chosen["swift"], encoding="utf-8")
            own += ["--swift", str(access)]
        start = ["-m"]
        environment = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        if "on" in (self.chosen["fastio"], self.chosen["trace"]):
            start = ["-m", "fastio", "run", "-m"]
            if self.chosen["trace"] == "on":
                environment["FASTIO_TRACE"] = str(self.traces)
            if self.chosen["fastio"] == "off":
                environment["FASTIO_DISABLED"] = "all"
        self.spawn("logserver", [sys.executable, *start, "benchmarks.logserver", *own], environment)
        self.wait(lambda: http_status(self._port, "/") == 400, "the log server")
        if self.chosen["trace"] == "off" and (self.status is not None) != (self.chosen["fastio"] == "on"):
            raise BackendError(f"fastio={self.chosen['fastio']}, but in the server it is {self.status}")

    @property
    def traces(self) -> Path:
        """The directory of its trace."""
        return self.directory / "trace"

    @property
    def status(self) -> dict[str, Any] | None:
        """fastio's status in the server, None if it is stock."""
        for line in (self.logs / "logserver.log").read_text(encoding="utf-8").splitlines():
            if line.startswith("{"):
                return json.loads(line)["fastio"]
        raise BackendError("the log server runs, but has not reported that")

    def details(self) -> dict[str, Any]:
        return {"url": f"http://{self.chosen['host']}:{self._port}"}
