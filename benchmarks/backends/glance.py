"""Real glance-api servers: release 32, the last with the eventlet server, and release 33 under uWSGI with threads.

Each runs from a separate environment (:mod:`benchmarks.backends.glance_environments`). There is no keystone: the
paste pipeline is the one without authentication, in which glance copies all its policies for each request (3 ms of
CPU); or, with the flavor ``identity``, that of keystone with :mod:`confirmed_identity` in the place of its middleware.
The database is sqlite, and the images are in one filesystem store, whose chunk size is glance's default unless the
parameter ``chunk_size`` gives another.

``fastio=on`` starts the server as an operator would: ``fastio run -- glance-api ...``, and ``import = fastio.auto`` for
uWSGI. The server does not count as started unless its log then has fastio's summary.
"""

import configparser
import contextlib
import os
import re
import shutil
import signal
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.backends import glance_logs, nginx
from benchmarks.backends.base import HOST, ON_OFF, ROOT, Backend, BackendError, http_status
from benchmarks.backends.glance_environments import ENVIRONMENTS, uwsgi
from benchmarks.backends.keeper import descendants
from benchmarks.harness.worker import cache_directory

#: Options of glance-api.conf by group.
Configuration = Mapping[str, Mapping[str, object]]

#: How uWSGI serves glance with fastio.
UWSGI = ROOT / "doc" / "source" / "examples" / "uwsgi.ini"
#: Parameters of ``glance-33`` by which it runs as glance's documentation has it, but for a queue in which all who wait
#: have a place.
AS_SHIPPED: Mapping[str, Any] = {"workers": 4, "threads": 1, "listen": 4096}
_KOLLA = {
    "static-map": "/help=/nowhere", "chunked-input-limit": "67108864", "socket-timeout": "30",
    "worker-reload-mercy": "80",
}  # fmt: skip
#: How deployments serve glance 33, as far as that decides what is in effect: the option of uWSGI by which clients reach
#: it, and further options. "advised" is kolla-ansible's with what ``fastio check`` advises.
DEPLOYMENTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "glance": ("http-socket", {}),
    "kolla-ansible": ("http", _KOLLA),
    "kolla-ansible-advised": ("http-socket", _KOLLA),
    "openstack-ansible": ("http-socket", {
        "route-user-agent": "^health$ donotlog:", "disable-write-exception": "true", "ignore-sigpipe": "true",
        "ignore-write-errors": "true",
    }),
    "openstack-helm": ("http-socket", {
        "route-user-agent": "^kube-probe.* donotlog:", "procname-prefix-spaced": "glance:",
    }),
    "Debian": ("http-socket", {"rem-header": "Content-Length", "chunked-input-limit": "1073741824"}),
}  # fmt: skip
#: How images come into several stores.
IMPORT_METHODS = "[glance-direct,web-download,copy-image]"
#: In PYTHONPATH of a server: its ``sitecustomize`` lets many clients write to the database, and imports the module
#: beside it that the variable names.
SITE = Path(__file__).parent / "site"
SITE_VARIABLE = "BENCHMARK_SITE"
#: That module: each request says whether it is recorded.
TRACE_BY_REQUEST = "trace_by_request"
#: A value of ``trace``.
BY_REQUEST = "by-request"
#: In PYTHONPATH of a server: a filter for its pipeline.
CONFIRMED_IDENTITY = Path(__file__).parent / "confirmed_identity"
#: A request that costs glance little.
SCHEMA = "/v2/schemas/image"
#: The flavor of the paste pipeline that has it.
IDENTITY = "identity"
_IDENTITY_PASTE = """
[composite:glance-api-identity]
paste.composite_factory = glance.api:root_app_factory
/: api
/healthcheck: healthcheck

[filter:identity]
paste.filter_factory = confirmed_identity:factory
"""

#: Prints the identity of a glance's database: two may have the same version, and other migrations.
_SCHEMA = """\
import glance, hashlib, importlib.metadata, pathlib
digest = hashlib.sha256()
for file in sorted((pathlib.Path(glance.__file__).parent / "db").rglob("*.py")):
    digest.update(file.read_bytes())
print(importlib.metadata.version("glance"), digest.hexdigest()[:8], sep="-")
"""


class Service(Backend):
    """One glance-api, and nginx in front of it if HTTPS is asked for, or that it is proxied.

    :param command: makes the command line that starts it, instead of its own
    :param config: options by group that are added to glance-api.conf, or replace those in it
    :param environment: of the server, besides its own
    """

    driver = ""
    #: of :data:`benchmarks.backends.glance_environments.ENVIRONMENTS`
    environment: ClassVar[str]
    #: whether its own eventlet server serves it, which SIGHUP reloads, and which reports its greenlets on SIGUSR2
    eventlet: bool = False
    #: programs that there must be beside the interpreter
    own_programs: ClassVar[tuple[str, ...]]
    #: ``fastio``: ``on`` or ``off``; ``disabled``: patches of fastio that are left out, with commas between them;
    #: ``chunk_size``: filesystem_store_chunk_size in bytes, 0 for glance's default; ``flavor``: of the paste pipeline,
    #: such as ``caching``, or ``identity``; ``stores``: filesystem stores, into several of which images can be
    #: imported; ``tls``: 1 for HTTPS as well; ``python``: the interpreter of another environment to run in, into which
    #: fastio can be imported if it is to be on; ``trace``: ``on`` to record one, also with ``fastio=off``;
    #: ``by-request``: not of requests with the header ``X-Trace: off``; ``host``: of its URLs, for those who are on
    #: other machines; ``proxied``: 1 for nginx in front of it, which takes whole bodies first, and whose URL is then
    #: the server's
    parameters = {
        "fastio": "off", "disabled": "", "workers": 1, "chunk_size": 0, "flavor": "", "stores": 1, "tls": 0,
        "python": "", "trace": "off", "host": HOST, "proxied": 0,
    }  # fmt: skip
    choices = {"fastio": ON_OFF, "trace": (*ON_OFF, BY_REQUEST)}

    #: where it listens
    http_port: int
    #: the process that was started
    pid: int

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        command: Callable[[Any], list[str]] | None = None,
        config: Configuration | None = None,
        environment: Mapping[str, str] | None = None,
        **parameters: int | str,
    ) -> None:
        super().__init__(directory, **parameters)
        self._own_command = command
        self._config = config or {}
        self._own_environment = environment or {}

    def why_not(self) -> str:
        environment = ENVIRONMENTS[self.environment]
        setting, python = "python", self.chosen["python"]
        if not python:
            if reason := environment.missing():
                return f"{self.name}: {reason}"
            setting, python = environment.variable, environment.python()
        lacking = [name for name in self.own_programs if not os.access(_beside(python, name), os.X_OK)]
        return f"{self.name}: beside {setting}={python} there is no {lacking[0]}" if lacking else ""

    def python(self) -> Path:
        """The interpreter that it runs in."""
        # The servers do not start in this process's directory.
        return Path(os.path.abspath(self.chosen["python"] or ENVIRONMENTS[self.environment].python()))

    def program(self, name: str) -> str:
        """The path of a program of its environment."""
        return str(_beside(self.python(), name))

    def paste(self) -> Path:
        """The paste file that comes with glance."""
        return self.python().parent.parent / "etc" / "glance" / "glance-api-paste.ini"

    def _own_paste(self) -> Path:
        """That one, or a copy with the pipeline ``identity``."""
        if self.chosen["flavor"] != IDENTITY:
            return self.paste()
        text = self.paste().read_text()
        with_keystone = re.search(r"^keystone = (.*)\bauthtoken\b(.*)$", text, re.MULTILINE)
        if with_keystone is None:
            raise BackendError(f"{self.paste()}: no pipeline with authtoken in it")
        before, after = with_keystone.groups()
        changed = text.replace(with_keystone[0], f"{with_keystone[0]}\nidentity = {before}identity{after}")
        own = self.etc / "glance-api-paste.ini"
        own.write_text(changed + _IDENTITY_PASTE)
        return own

    @property
    def etc(self) -> Path:
        """The directory of its configuration files."""
        return self.directory / "etc"

    @property
    def images(self) -> Path:
        """The directory of the filesystem store."""
        return self.directory / "images"

    @property
    def stores(self) -> list[str]:
        """The names of the filesystem stores, which are those of their directories too; the first is the default."""
        return ["images", *(f"images{number}" for number in range(2, self.chosen["stores"] + 1))]

    @property
    def traces(self) -> Path:
        """The directory of its trace."""
        return self.directory / "trace"

    @property
    def runs_fastio(self) -> bool:
        """Whether fastio is in the server, be it only to trace it."""
        return self.chosen["fastio"] == "on" or self.traced

    @property
    def traced(self) -> bool:
        """Whether it records a trace."""
        return self.chosen["trace"] != "off"

    @property
    def cache(self) -> Path:
        """The directory of the image cache, which the flavor ``caching`` switches on."""
        return self.directory / "cache"

    def launch(self) -> None:
        if self.chosen["tls"] and self.chosen["proxied"]:
            raise BackendError("tls=1 and proxied=1: it can have one of them")
        for name in (*self.stores, "etc", "staging", "tasks", "locks", "cache", "temporary"):
            (self.directory / name).mkdir()
        self.http_port = self.port()
        self.reconfigure(self._config)
        shutil.copyfile(self._database(), self.directory / "glance.sqlite")
        self.start_again()
        if self.runs_fastio and "fastio: " not in (self.logs / "glance-api.log").read_text():
            raise BackendError("glance-api runs, but its log has no summary of fastio")
        self._proxy_port, self._certificate = self.http_port, ""
        if self.chosen["tls"] or self.chosen["proxied"]:
            self._proxy_port, self._certificate = nginx.start_proxy(
                self, self.http_port, SCHEMA, self.chosen["host"], tls=bool(self.chosen["tls"])
            )

    def start_again(self) -> None:
        """Start glance-api, in the same directory and at the same address, and wait until it answers."""
        command = self._own_command(self) if self._own_command else self.command()
        self.pid = self.spawn("glance-api", command, self.variables())
        # 401: it asks for a token, with the flavor keystone.
        self.wait(lambda: http_status(self.http_port, SCHEMA) in (200, 401), "glance-api")
        # One of the workers has answered.
        self.wait(lambda: len(self.pids()) > self.chosen["workers"], "all workers")

    def details(self) -> dict[str, Any]:
        found = {
            "url": f"http://{self.chosen['host']}:{self.http_port if self.chosen['tls'] else self._proxy_port}",
            "images": str(self.images),
            "stores": [str(self.directory / name) for name in self.stores],
            "python": str(self.python()),
            "log": str(self.logs / "glance-api.log"),
            "temporary": str(self.directory / "temporary"),
            "trace": str(self.traces) if self.traced else "",
        }
        if self.chosen["tls"]:
            found["https_url"] = f"https://{self.chosen['host']}:{self._proxy_port}"
            found["certificate"] = self._certificate
        return found

    def command(self) -> list[str]:
        """Return the command that starts the server."""
        raise NotImplementedError

    def variables(self) -> dict[str, str]:
        """Of the server's environment, besides what servers inherit."""
        disabled = self.chosen["disabled"] if self.chosen["fastio"] == "on" else "all"
        # This checkout's fastio, whichever is installed there.
        path = [str(SITE), str(CONFIRMED_IDENTITY), *([str(ROOT)] if self.runs_fastio else [])]
        return {
            "PATH": f"{self.python().parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(path),
            SITE_VARIABLE: self.site(),
            "OS_GLANCE_CONFIG_DIR": str(self.etc),
            **({"FASTIO_DISABLED": disabled} if disabled and self.runs_fastio else {}),
            **({"FASTIO_TRACE": str(self.traces)} if self.traced else {}),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "ignore",
            **self._own_environment,
        }

    def site(self) -> str:
        """The module in :data:`SITE` that it is to import; empty if it needs none."""
        return TRACE_BY_REQUEST if self.chosen["trace"] == BY_REQUEST else ""

    def configuration(self) -> Configuration:
        """Return the options of glance-api.conf, besides those given to this one."""
        chunk = {"filesystem_store_chunk_size": self.chosen["chunk_size"]} if self.chosen["chunk_size"] else {}
        places = {
            name: {"filesystem_store_datadir": self.directory / name} for name in ("staging", "tasks", *self.stores)
        }
        return {
            "DEFAULT": {
                "bind_host": self._listens_at(),
                "bind_port": self.http_port,
                "workers": self.chosen["workers"],
                "enabled_backends": ",".join(f"{name}:file" for name in self.stores),
                "enabled_import_methods": IMPORT_METHODS if len(self.stores) > 1 else "[]",
                "image_size_cap": 1 << 40,
                "image_cache_dir": self.cache,
                "worker_self_reference_url": f"http://{HOST}:{self.http_port}",
                **glance_logs.OPTIONS,
            },
            "database": {"connection": f"sqlite:///{self.directory / 'glance.sqlite'}?timeout=60"},
            "glance_store": {"default_backend": "images"},
            **{name: {**places[name], **chunk} for name in self.stores},
            "os_glance_staging_store": places["staging"],
            "os_glance_tasks_store": places["tasks"],
            # Of web-download: whichever port the test's server has.
            "import_filtering_opts": {"allowed_hosts": f"[{HOST}]", "allowed_ports": "[]"},
            "paste_deploy": {"config_file": self._own_paste(), "flavor": self.chosen["flavor"]},
            "oslo_policy": {"enforce_new_defaults": "false", "enforce_scope": "false"},
            "oslo_concurrency": {"lock_path": self.directory / "locks"},
        }

    def reconfigure(self, config: Configuration) -> None:
        """Write glance-api.conf anew, with ``config`` instead of the options that it has been given."""
        self._config = config
        parser = configparser.RawConfigParser(delimiters=("=",))
        parser.read_dict(self.configuration())
        parser.read_dict(config)
        with open(self.etc / "glance-api.conf", "w", encoding="utf-8") as file:
            parser.write(file)

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

    def _database(self) -> Path:
        """An empty database of this glance. Its migrations take longer than the server's start, so it is kept."""
        kept = cache_directory() / f"glance-{self.run([str(self.python()), '-c', _SCHEMA]).strip()}-wal.sqlite"
        if not kept.exists():
            configuration = str(self.etc / "glance-api.conf")
            manage = [self.program("glance-manage"), "--config-file", configuration, "db_sync"]
            self.run(manage, {"PYTHONWARNINGS": "ignore"}, timeout=300)
            made = self.directory / "glance.sqlite"
            with contextlib.closing(sqlite3.connect(made)) as database:
                # Else a writer waits for readers, and under eventlet it has the whole process wait, readers included.
                database.execute("PRAGMA journal_mode=WAL")
            partial = kept.with_name(f"{kept.name}.{os.getpid()}")
            shutil.move(made, partial)
            os.replace(partial, kept)
        return kept

    def _listens_at(self) -> str:
        return HOST if self.chosen["host"] == HOST else "0.0.0.0"


class Glance32(Service):
    """Release 32 with its own eventlet server."""

    name = "glance-32"
    environment = "glance32"
    eventlet = True
    own_programs = ("glance-api", "glance-manage")

    def command(self) -> list[str]:
        command = [self.program("glance-api"), "--config-file", str(self.etc / "glance-api.conf")]
        if not self.runs_fastio:
            return command
        return [str(self.python()), "-m", "fastio", "run", "--", *command]


class Glance33(Service):
    """Release 33, which has no own server, under uWSGI: processes with native threads.

    The configuration is the documentation's (:data:`UWSGI`), which is the one that glance's own shows, but for the
    number of processes and threads. ``threads`` are those of each process. A thread has one request, so fewer than a
    case's concurrent transfers, and some for other requests, would measure a queue. ``listen`` is how many connections
    may wait for one, as far as the system lets them. ``post_buffering``: from so many bytes on, uWSGI has the whole
    body of a request in a file before it calls glance; 0: never. ``deployment``: of :data:`DEPLOYMENTS`. ``uwsgi``: an
    older release of it.
    """

    name = "glance-33"
    environment = "glance33"
    own_programs = ("uwsgi", "glance-manage")
    parameters = {
        **Service.parameters, "threads": 28, "listen": 100, "post_buffering": 0, "deployment": "glance", "uwsgi": "",
    }  # fmt: skip
    choices = {**Service.choices, "deployment": tuple(DEPLOYMENTS), "uwsgi": ("", *ENVIRONMENTS[environment].uwsgi)}

    def variables(self) -> dict[str, str]:
        # uWSGI has no option for the place of its temporary files.
        place = {"TMPDIR": str(self.directory / "temporary")} if self.chosen["post_buffering"] else {}
        return {**super().variables(), **place}

    def command(self) -> list[str]:
        parser = configparser.RawConfigParser(delimiters=("=",))
        parser.read_string(UWSGI.read_text(encoding="utf-8"))
        options = parser["uwsgi"]
        # uWSGI does not start with more.
        most = int(Path("/proc/sys/net/core/somaxconn").read_text())
        del options["http-socket"]
        served_by, more = DEPLOYMENTS[self.chosen["deployment"]]
        options.update(more)
        options.update({
            served_by: f"{self._listens_at()}:{self.http_port}",
            "virtualenv": str(self.python().parent.parent),
            "processes": str(self.chosen["workers"]),
            "threads": str(self.chosen["threads"]),
            "listen": str(min(self.chosen["listen"], most)),
        })  # fmt: skip
        if self.chosen["post_buffering"]:
            # It is also the size of each read, whatever post-buffering-bufsize is: that is only raised to this.
            options["post-buffering"] = str(self.chosen["post_buffering"])
        if not self.runs_fastio:
            del options["import"]
        with open(self.etc / "uwsgi.ini", "w", encoding="utf-8") as file:
            parser.write(file)
        release = self.chosen["uwsgi"]
        program = str(uwsgi(self.python(), release)) if release else self.program("uwsgi")
        return [program, "--ini", str(self.etc / "uwsgi.ini")]


#: by the names of their backends
RELEASES: dict[str, type[Service]] = {each.name: each for each in (Glance32, Glance33)}
#: variant of a test -> the parameter ``fastio``
KINDS = {"stock": "off", "patched": "on"}


def _beside(python: str | Path, name: str) -> Path:
    """A program of the environment of this interpreter, which is not resolved: it is a link in its environment."""
    return Path(python).parent / name
