"""Real glance-api servers: release 32, the last with the eventlet server, and release 33 under uWSGI with threads.

Each runs from an environment of its own (:mod:`benchmarks.glance_environments`). There is no keystone (the paste
pipeline without authentication), the database is sqlite, and the images are in one filesystem store, whose chunk size
is glance's default unless the parameter ``chunk_size`` gives another.

``fastio=on`` starts the server as an operator would: ``fastio run -- glance-api ...``, and ``import = fastio.auto`` for
uWSGI. The server does not count as started unless its log then has fastio's summary.
"""

from __future__ import annotations

import json
import os
import shutil
import urllib.request
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.backends.base import HOST, ROOT, Backend, BackendError, find_program, http_status
from benchmarks.glance_environments import ENVIRONMENTS
from benchmarks.worker import cache_directory

_CONF = """\
[DEFAULT]
bind_host = {host}
bind_port = {port}
workers = {workers}
enabled_backends = images:file
enabled_import_methods = []
image_size_cap = 1099511627776
image_cache_dir = {directory}/cache
worker_self_reference_url = http://{host}:{port}
[database]
connection = sqlite:///{directory}/glance.sqlite?timeout=60
[glance_store]
default_backend = images
[images]
filesystem_store_datadir = {directory}/images
{store}
[os_glance_staging_store]
filesystem_store_datadir = {directory}/staging
[os_glance_tasks_store]
filesystem_store_datadir = {directory}/tasks
[paste_deploy]
config_file = {paste}
flavor = {flavor}
[oslo_policy]
enforce_new_defaults = false
enforce_scope = false
[oslo_concurrency]
lock_path = {directory}/locks
"""

_TLS_CONF = """\
daemon off;
{user}
pid {directory}/nginx.pid;
error_log stderr;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {directory}/temporary;
    proxy_temp_path {directory}/temporary;
    fastcgi_temp_path {directory}/temporary;
    uwsgi_temp_path {directory}/temporary;
    scgi_temp_path {directory}/temporary;
    server {{
        listen {host}:{port} ssl;
        ssl_certificate {directory}/certificate.pem;
        ssl_certificate_key {directory}/key.pem;
        client_max_body_size 0;
        location / {{
            proxy_pass http://{host}:{upstream};
            proxy_http_version 1.1;
            proxy_request_buffering off;
            proxy_max_temp_file_size 0;
            proxy_buffer_size 64k;
            proxy_buffers 8 256k;
            proxy_busy_buffers_size 512k;
        }}
    }}
}}
"""


class Glance(Backend):
    """One glance-api, and nginx in front of it if HTTPS is asked for."""

    driver = ""
    #: of :data:`benchmarks.glance_environments.ENVIRONMENTS`
    environment: ClassVar[str]
    #: programs that the environment must have, beside its interpreter
    programs: ClassVar[tuple[str, ...]]
    #: ``fastio``: ``on`` or ``off``; ``disabled``: patches of fastio that are left out, with commas between them;
    #: ``chunk_size``: filesystem_store_chunk_size in bytes, 0 for glance's default; ``flavor``: of the paste pipeline,
    #: such as ``caching``; ``tls``: 1 for HTTPS as well
    parameters = {"fastio": "off", "disabled": "", "workers": 1, "chunk_size": 0, "flavor": "", "tls": 0}

    @classmethod
    def available(cls) -> str | None:
        environment = ENVIRONMENTS[cls.environment]
        reason = environment.missing()
        if not reason:
            lacking = [name for name in cls.programs if not os.access(_beside(environment.python(), name), os.X_OK)]
            reason = f"beside {environment.variable}={environment.python()} there is no {lacking[0]}" if lacking else ""
        return f"{cls.name}: {reason}" if reason else None

    def launch(self) -> None:
        _one_of(self, "fastio", "on", "off")
        # The servers do not start in this process's directory.
        self._python = os.path.abspath(ENVIRONMENTS[self.environment].python())
        for name in ("images", "staging", "tasks", "locks", "cache", "temporary"):
            (self.directory / name).mkdir()
        self._port = self.port()
        (self.directory / "glance-api.conf").write_text(self._configuration())
        shutil.copyfile(self._database(), self.directory / "glance.sqlite")
        self.spawn("glance-api", self._command(), self._environment())
        self.wait(lambda: http_status(self._port, "/v2/schemas/image") == 200, "glance-api")
        # One of the workers has answered.
        self.wait(lambda: len(self.pids()) > self.chosen["workers"], "all workers")
        if self.chosen["fastio"] == "on" and "fastio: " not in (self.logs / "glance-api.log").read_text():
            raise BackendError("glance-api runs, but its log has no summary of fastio")
        if self.chosen["tls"]:
            self._start_tls()

    def options(self) -> dict[str, Any]:
        return {}

    def details(self) -> dict[str, Any]:
        found = {
            "url": f"http://{HOST}:{self._port}",
            "images": str(self.directory / "images"),
            "python": self._python,
            "log": str(self.logs / "glance-api.log"),
        }
        if self.chosen["tls"]:
            found["https_url"] = f"https://{HOST}:{self._tls_port}"
            found["certificate"] = str(self.directory / "certificate.pem")
        return found

    def _command(self) -> list[str]:
        """What starts the server."""
        raise NotImplementedError

    def _environment(self) -> dict[str, str]:
        """Variables of the server."""
        disabled = self.chosen["disabled"]
        return {"FASTIO_DISABLED": disabled} if disabled else {}

    def _program(self, name: str) -> str:
        return str(_beside(self._python, name))

    def _configuration(self) -> str:
        chunk = self.chosen["chunk_size"]
        return _CONF.format(
            host=HOST, port=self._port, directory=self.directory, workers=self.chosen["workers"],
            flavor=self.chosen["flavor"], paste=Path(self._python).parent.parent / "etc/glance/glance-api-paste.ini",
            store=f"filesystem_store_chunk_size = {chunk}" if chunk else "",
        )  # fmt: skip

    def _database(self) -> Path:
        """An empty database of this release. Its migrations take longer than the server's start, so it is kept."""
        code = "import importlib.metadata as m; print(m.version('glance'))"
        kept = cache_directory() / f"glance-{self.run([self._python, '-c', code]).strip()}.sqlite"
        if not kept.exists():
            configuration = str(self.directory / "glance-api.conf")
            self.run([self._program("glance-manage"), "--config-file", configuration, "db_sync"], timeout=300)
            partial = kept.with_name(f"{kept.name}.{os.getpid()}")
            shutil.move(self.directory / "glance.sqlite", partial)
            os.replace(partial, kept)
        return kept

    def _start_tls(self) -> None:
        nginx, openssl = find_program("nginx"), find_program("openssl")
        if nginx is None or openssl is None:
            raise BackendError("tls=1 needs nginx and openssl: apt-get install nginx-light openssl")
        self._tls_port = self.port()
        self.run(
            [
                openssl, "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "2", "-subj", "/CN=benchmark",
                "-addext", f"subjectAltName=IP:{HOST}",
                "-keyout", str(self.directory / "key.pem"), "-out", str(self.directory / "certificate.pem"),
            ]
        )  # fmt: skip
        conf = self.directory / "nginx.conf"
        # Started by root its workers would change to a user who must not look into this directory.
        user = "user root;" if os.getuid() == 0 else ""
        conf.write_text(
            _TLS_CONF.format(
                user=user, directory=self.directory, host=HOST, port=self._tls_port, upstream=self._port
            )
        )
        self.spawn("nginx", [nginx, "-p", str(self.directory), "-e", "stderr", "-c", str(conf)])
        self.wait(self._tls_answers, "nginx")

    def _tls_answers(self) -> bool:
        import ssl

        context = ssl.create_default_context(cafile=str(self.directory / "certificate.pem"))
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        with opener.open(f"https://{HOST}:{self._tls_port}/v2/schemas/image", timeout=10) as answer:
            return "name" in json.load(answer)


class Glance32(Glance):
    """Release 32 with its own eventlet server."""

    name = "glance-32"
    environment = "glance32"
    programs = ("glance-api", "glance-manage", "fastio")

    def _command(self) -> list[str]:
        command = [self._program("glance-api"), "--config-file", str(self.directory / "glance-api.conf")]
        if self.chosen["fastio"] == "off":
            return command
        return [self._program("fastio"), "run", "--", *command]


class Glance33(Glance):
    """Release 33, which has no server of its own, under uWSGI: processes with native threads.

    ``threads`` are those of each process. A thread has one request, so fewer than the transfers that a case makes at a
    time, and some for other requests, would measure a queue.
    """

    name = "glance-33"
    environment = "glance33"
    programs = ("uwsgi", "glance-manage", "fastio")
    parameters = {**Glance.parameters, "threads": 28}

    def _command(self) -> list[str]:
        command = [
            self._program("uwsgi"), "--module", "glance.wsgi.api:application", "--http-socket", f"{HOST}:{self._port}",
            "--virtualenv", str(Path(self._python).parent.parent),
            "--master", "--processes", str(self.chosen["workers"]), "--threads", str(self.chosen["threads"]),
            "--enable-threads", "--lazy-apps", "--http-chunked-input", "--buffer-size", "65535", "--die-on-term",
            "--listen", "100", "--pythonpath", str(ROOT),
            "--import", "benchmarks.backends.glance_sqlite",
        ]  # fmt: skip
        return [*command, "--import", "fastio.auto"] if self.chosen["fastio"] == "on" else command

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), "OS_GLANCE_CONFIG_DIR": str(self.directory)}


def _beside(python: str, name: str) -> Path:
    """A program of the environment of this interpreter, which is not resolved: it is a link in its environment."""
    return Path(python).parent / name


def _one_of(backend: Backend, parameter: str, *allowed: str) -> None:
    value = backend.chosen[parameter]
    if value not in allowed:
        raise BackendError(f"{backend.name}: {parameter}={value!r} is not one of {', '.join(allowed)}")
