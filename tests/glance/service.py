"""A real glance-api, with a store in a directory or on a server, in processes of its own."""

from __future__ import annotations

import configparser
import contextlib
import hashlib
import http.client
import importlib.metadata
import json
import os
import re
import signal
import socket
import sqlite3
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.backends.base import HOST, Backend, http_status
from benchmarks.backends.keeper import descendants
from benchmarks.glance_environments import ENVIRONMENTS

RELEASES = {"glance32": "32.", "glance33": "33."}

Config = Mapping[str, Mapping[str, object]]

#: In PYTHONPATH of a service: many clients may write to its database.
PATIENT_SQLITE = Path(__file__).parent / "patient_sqlite"

#: One line of the log: level, logger, message; the lines of a traceback have a bar before them.
_LOG_FORMAT = "%(levelname)s %(name)s %(message)s"
_LOG_LINE = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (\S+) \|?(.*)")
#: The last line of a traceback.
_EXCEPTION = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Full|Exit|Interrupt|NotFound|Timeout))\b")


def interpreter(release: str) -> str:
    """The Python of a release: the one that the environment variable names, or this one; else the test is skipped."""
    environment = ENVIRONMENTS[release]
    if not environment.python():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            if importlib.metadata.version("glance").startswith(RELEASES[release]):
                return sys.executable
    reason = environment.missing()
    if reason:
        pytest.skip(reason)
    return environment.python()

_databases: dict[str, bytes] = {}


class LogLine(NamedTuple):
    level: str
    logger: str
    message: str


class Service(Backend):
    """glance-api on loopback, with sqlite and without Keystone.

    :param release: ``glance32`` or ``glance33``
    :param command: makes the command line that starts it, for example :func:`eventlet_server`
    :param config: options by group that are added to glance-api.conf, or replace those in it
    :param environment: of the service, besides what servers inherit
    """

    name = "glance-api"
    driver = ""

    def __init__(
        self,
        release: str,
        command: Callable[[Service], Sequence[str | Path]],
        config: Config | None = None,
        environment: Mapping[str, str] | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(directory)
        self.release = release
        self.python = Path(interpreter(release))
        self._command = command
        self._config = config or {}
        self._environment = environment or {}
        self.http_port = 0
        self.pid = 0

    @property
    def bin(self) -> Path:
        """The directory of the programs of its environment."""
        return self.python.parent

    @property
    def etc(self) -> Path:
        """The directory of its configuration files."""
        return self.directory / "etc"

    @property
    def images(self) -> Path:
        """The directory of the filesystem store."""
        return self.directory / "images"

    @property
    def cache(self) -> Path:
        """The directory of the image cache, which ``{"paste_deploy": {"flavor": "caching"}}`` switches on."""
        return self.directory / "cache"

    def launch(self) -> None:
        self.http_port = self.port()
        self.etc.mkdir()
        for name in ("images", "staging", "tasks", "cache", "lock"):
            (self.directory / name).mkdir()
        self.configure(self._config)
        (self.directory / "glance.sqlite").write_bytes(self._empty_database())
        self.start_again()

    def start_again(self) -> None:
        """Start it, in the same directory and at the same address, and wait until it answers."""
        environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "OS_GLANCE_CONFIG_DIR": str(self.etc),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "ignore",
            **self._environment,
        }
        self.pid = self.spawn("glance-api", [str(part) for part in self._command(self)], environment)
        self.wait(lambda: http_status(self.http_port, "/healthcheck") == 200, "glance-api")

    def configure(self, config: Config) -> None:
        """Write glance-api.conf anew, with ``config`` in it."""
        parser = configparser.RawConfigParser(delimiters=("=",))
        for source in (self._defaults(), config):
            for group, options in source.items():
                if group != "DEFAULT" and not parser.has_section(group):
                    parser.add_section(group)
                for option, value in options.items():
                    parser.set(group, option, str(value))
        with open(self.etc / "glance-api.conf", "w", encoding="utf-8") as file:
            parser.write(file)

    def _defaults(self) -> Config:
        stores = {name: {"filesystem_store_datadir": self.directory / name} for name in ("images", "staging", "tasks")}
        return {
            "DEFAULT": {
                "bind_host": HOST,
                "bind_port": self.http_port,
                "workers": 1,
                "enabled_backends": "images:file",
                "enabled_import_methods": "[]",
                "image_cache_dir": self.cache,
                "worker_self_reference_url": f"http://{HOST}:{self.http_port}",
                "logging_default_format_string": _LOG_FORMAT,
                "logging_context_format_string": _LOG_FORMAT,
                "logging_exception_prefix": "%(levelname)s %(name)s |",
            },
            "database": {"connection": f"sqlite:///{self.directory / 'glance.sqlite'}?timeout=60"},
            "glance_store": {"default_backend": "images"},
            "images": stores["images"],
            "os_glance_staging_store": stores["staging"],
            "os_glance_tasks_store": stores["tasks"],
            "paste_deploy": {"config_file": self.python.parent.parent / "etc" / "glance" / "glance-api-paste.ini"},
            "oslo_policy": {"enforce_new_defaults": "false", "enforce_scope": "false"},
            "oslo_concurrency": {"lock_path": self.directory / "lock"},
        }

    def _empty_database(self) -> bytes:
        """Made once: the migrations take longer than the service takes to start."""
        key = str(self.python)
        if key not in _databases:
            manage = [self.bin / "glance-manage", "--config-file", self.etc / "glance-api.conf", "db_sync"]
            self.run([str(part) for part in manage], {"PYTHONWARNINGS": "ignore"}, timeout=120)
            path = self.directory / "glance.sqlite"
            with contextlib.closing(sqlite3.connect(path)) as database:
                # Else a writer waits for readers, and under eventlet it has the whole process wait, readers included.
                database.execute("PRAGMA journal_mode=WAL")
            _databases[key] = path.read_bytes()
        return _databases[key]

    def workers(self) -> list[int]:
        """The processes beneath the first one, or that one if there are none."""
        return descendants(self.pid) or [self.pid]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process that was started."""
        os.kill(self.pid, number)

    def expect_end(self) -> None:
        """Forget that the process should run: the test ends it."""
        self._servers.clear()

    def log(self) -> str:
        """Everything that the service has written so far."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.logs.glob("*.log")))

    def log_lines(self, levels: Iterable[str] = ("WARNING", "ERROR", "CRITICAL")) -> list[LogLine]:
        found = (_LOG_LINE.match(line) for line in self.log().splitlines())
        return [LogLine(*match.groups()) for match in found if match and match[1] in levels]

    def log_classes(self, since: int = 0) -> list[str]:
        """What was logged at WARNING or above, as ``level logger``, and the exceptions in any traceback, in order.

        Neither messages, which hold ids and times, nor frames of tracebacks, which differ between stock and patched.

        :param since: characters of the log that are left out at its beginning
        """
        classes: list[str] = []
        where = ""
        for line in self.log()[since:].splitlines():
            found = _LOG_LINE.match(line)
            level, logger, message = found.groups() if found else ("", "", line)
            raised = _EXCEPTION.match(message)
            # Whether a socket was full when its client went away is chance.
            if raised and raised[1] != "BlockingIOError":
                classes.append(f"{where}: {raised[1]}")
            elif found and (level, logger) != tuple(where.split()):
                where = f"{level} {logger}"
                if level in ("WARNING", "ERROR", "CRITICAL"):
                    classes.append(where)
        return classes


def eventlet_server(service: Service) -> list[str | Path]:
    """glance 32's own server, stock."""
    return [service.bin / "glance-api", "--config-file", service.etc / "glance-api.conf"]


def eventlet_server_patched(service: Service) -> list[str | Path]:
    """The same with fastio."""
    return [service.bin / "fastio", "run", "--", *eventlet_server(service)]


def uwsgi_server(service: Service) -> list[str | Path]:
    """glance 33 on threads of one uWSGI worker, stock."""
    return [
        service.bin / "uwsgi", "--module", "glance.wsgi.api:application", "--virtualenv", service.bin.parent,
        "--http-socket", f"{HOST}:{service.http_port}", "--master", "--processes", "1", "--threads", "8",
        "--enable-threads", "--lazy-apps", "--http-chunked-input", "--buffer-size", "65535", "--die-on-term",
    ]  # fmt: skip


def uwsgi_server_patched(service: Service) -> list[str | Path]:
    """The same with fastio."""
    return [service.bin / "fastio", "run", "--children", "--", *uwsgi_server(service)]


#: release -> the commands of its server, stock and patched
SERVERS = {
    "glance32": (eventlet_server, eventlet_server_patched),
    "glance33": (uwsgi_server, uwsgi_server_patched),
}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Api:
    """The calls of glance's API that move data, each on a connection of its own."""

    def __init__(self, port: int, timeout: float = 60) -> None:
        self._port = port
        self._timeout = timeout

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(HOST, self._port, timeout=self._timeout)

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        connection = self.connect()
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            try:
                content = response.read()
            except http.client.IncompleteRead as error:
                content = error.partial
            return Answer(response.status, dict(response.getheaders()), content)
        finally:
            connection.close()

    def create(self, **fields: Any) -> str:
        """A new image without data; returns its id."""
        fields = {"name": "image", "disk_format": "raw", "container_format": "bare", **fields}
        answer = self.ask("POST", "/v2/images", json.dumps(fields), {"Content-Type": "application/json"})
        assert answer.status == 201, answer
        return json.loads(answer.body)["id"]

    def upload(self, image: str, data: Any) -> Answer:
        """Give an image its data: bytes with their length, an iterable in chunks."""
        return self.ask("PUT", f"/v2/images/{image}/file", data, {"Content-Type": "application/octet-stream"})

    def make(self, data: bytes) -> str:
        """A new image with data; returns its id."""
        image = self.create()
        answer = self.upload(image, data)
        assert answer.status == 204, answer
        return image

    def download(self, image: str, **headers: str) -> Answer:
        return self.ask("GET", f"/v2/images/{image}/file", headers=headers)

    def show(self, image: str) -> dict[str, Any]:
        answer = self.ask("GET", f"/v2/images/{image}")
        assert answer.status == 200, answer
        return json.loads(answer.body)

    def delete(self, image: str) -> int:
        return self.ask("DELETE", f"/v2/images/{image}").status

    @contextlib.contextmanager
    def started_download(self, image: str, receive_buffer: int = 65536) -> Iterator[http.client.HTTPResponse]:
        """A download of which nothing but the headers has been read, with a small receive buffer."""
        with socket.socket() as sock:
            sock.settimeout(self._timeout)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            sock.connect((HOST, self._port))
            sock.sendall(f"GET /v2/images/{image}/file HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
            response = http.client.HTTPResponse(sock)
            response.begin()
            with response:
                yield response

    def abort_download(self, image: str, after: int) -> None:
        """Read ``after`` bytes of an image's data and reset the connection."""
        with self.started_download(image) as response:
            left = after
            while left:
                left -= len(response.read(min(left, 65536)))
            reset(response)

    def abort_upload(self, image: str, data: bytes, announced: int) -> None:
        """Send ``data`` of ``announced`` bytes and reset the connection."""
        with socket.create_connection((HOST, self._port), timeout=self._timeout) as sock:
            head = f"PUT /v2/images/{image}/file HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {announced}\r\n"
            sock.sendall(head.encode() + b"Content-Type: application/octet-stream\r\n\r\n" + data)
            # So that the service is in the middle of it, and not still waiting for the first byte.
            time.sleep(0.3)
            _reset_at_close(sock)


def reset(response: http.client.HTTPResponse) -> None:
    """Have the connection of a response reset, rather than ended, when it is closed."""
    _reset_at_close(response.fp.raw._sock)


def _reset_at_close(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def sha512(data: bytes) -> str:
    return hashlib.sha512(data).hexdigest()
