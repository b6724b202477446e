"""Base of all backends: a directory, ports, processes, and their end.

A backend is one module with one subclass of :class:`Backend`. It is used as a context manager::

    with Swift(workers=2) as backend:
        backend.access()      # how to reach it, plain JSON: see benchmarks.backends.stores.opened()
        backend.pids()        # of its server processes

Everything listens on 127.0.0.1, on ports that were free, and lives in a separate directory. Both are gone after
:meth:`Backend.stop`, or when the process that started it dies, even of SIGKILL (:mod:`benchmarks.backends.keeper`).
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.backends import far, keeper
from benchmarks.backends.keeper import descendants

ROOT = Path(__file__).resolve().parent.parent.parent
HOST = "127.0.0.1"

#: The command that installs the Python packages of the backends, in the checkout.
EXTRA = "pip install -e '.[stores]'"
#: The parameter ``fastio`` of servers that may run it, and ``trace``.
ON_OFF = ("on", "off")
#: Parameters of servers that may be far away: milliseconds until an answer begins, bytes per second of a connection.
FAR: Mapping[str, int] = {"latency_ms": 0, "rate": 0}


class BackendError(RuntimeError):
    """A backend that did not start, or died, or was given a parameter that it does not know."""


class Unavailable(BackendError):
    """A dependency of the backend is not installed; the message says how to install it."""


def reserved_port() -> socket.socket:
    """A socket that is bound to a free port on 127.0.0.1, and stays so until it is closed.

    The kernel gives such a port to no process that asks for any free one, and a server that sets SO_REUSEADDR, as all
    do, can still listen on it.
    """
    reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind((HOST, 0))
    return reserved


class Backend:
    """A server, or several that belong together, on loopback.

    :param directory: parent of the backend's directory, which is removed at the end; the system's
        temporary directory by default. ``/dev/shm`` takes the disk out of a measurement.
    :param parameters: those that :attr:`parameters` names; raises :class:`BackendError` for any other
    """

    #: as ``python -m benchmarks.backends up NAME`` and fixtures have it
    name: ClassVar[str]
    #: entry point of its glance_store driver
    driver: ClassVar[str]
    #: Python packages and programs that it needs, and what installs them
    modules: ClassVar[tuple[str, ...]] = ()
    programs: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = EXTRA
    #: keyword argument -> its default; sizes are in bytes
    parameters: ClassVar[Mapping[str, int | str]] = {}
    #: keyword argument -> what it may be, if not all that is of its type
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    #: seconds that it may take to answer after its start, many times what it takes
    patience: ClassVar[float] = 180.0

    def __init__(self, directory: str | os.PathLike[str] | None = None, **parameters: int | str) -> None:
        unknown = sorted(set(parameters) - set(self.parameters))
        if unknown:
            allowed = ", ".join(self.parameters) or "none"
            raise BackendError(f"{self.name}: unknown parameter {unknown[0]!r}; its parameters: {allowed}")
        for key, value in parameters.items():
            if type(value) is not type(self.parameters[key]):
                kind = "a number" if isinstance(self.parameters[key], int) else "text"
                raise BackendError(f"{self.name}: {key}={value!r} is not {kind}")
            if value not in self.choices.get(key, (value,)):
                raise BackendError(f"{self.name}: {key}={value!r} is not one of {', '.join(self.choices[key])}")
        self.chosen: dict[str, Any] = {**self.parameters, **parameters}
        self._parent = None if directory is None else Path(directory).absolute()
        self._directory: Path | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._servers: dict[str, int] = {}
        self._ports: list[socket.socket] = []

    # Set by a backend's module.

    def why_not(self) -> str:
        """Return its missing dependencies with these parameters, and their installation; empty if it can be started."""
        missing = [name for name in self.modules if importlib.util.find_spec(name) is None]
        missing += [name for name in self.programs if find_program(name) is None]
        return f"{self.name}: {', '.join(missing)} not installed; install with: {self.install}" if missing else ""

    def launch(self) -> None:
        """Write the configuration, :meth:`spawn` the servers, wait until they answer."""
        raise NotImplementedError

    def access(self) -> dict[str, Any]:
        """How to reach it, as plain JSON, for any process.

        ``backend`` and ``driver`` are its names here and in glance_store, ``options`` the glance_store options of its
        group; further keys are the backend's own (``url``, ``user``, ``directory`` ...).
        """
        return {"backend": self.name, "driver": self.driver, "options": self.options(), **self.details()}

    def options(self) -> dict[str, Any]:
        """The glance_store options of the group of this backend."""
        return {}

    def details(self) -> dict[str, Any]:
        """Return the access of a client other than glance_store, JSON."""
        return {}

    @classmethod
    @contextlib.contextmanager
    def in_client(cls, access: Mapping[str, Any]) -> Iterator[None]:
        """Around the use of glance_store in a client's process: what that one needs. Fakes are put in place here."""
        yield

    @classmethod
    def after_stores(cls, access: Mapping[str, Any], identifier: str) -> None:
        """In a client's process, when glance_store knows the store ``identifier``."""

    # For its users.

    def start(self) -> Backend:
        """Start it and wait until it answers; raises :class:`Unavailable`, or :class:`BackendError` with its logs."""
        missing = self.why_not()
        if missing:
            raise Unavailable(missing)
        if self._directory is not None:
            raise BackendError(f"{self.name} runs already")
        if self._parent is not None:
            self._parent.mkdir(parents=True, exist_ok=True)
        self._directory = Path(tempfile.mkdtemp(prefix=f"fastio-{self.name}-", dir=self._parent))
        try:
            self._start_keeper()
            self.logs.mkdir()
            self.launch()
        except BaseException as error:
            failed = isinstance(error, Exception) and not isinstance(error, Unavailable)
            logs = self._log_tails() if failed else ""
            self.stop(keep_logs=failed)
            if failed and isinstance(error, (OSError, BackendError, subprocess.SubprocessError)):
                raise BackendError(f"{self.name} did not start: {error}{logs}") from error
            raise
        return self

    def stop(self, keep_logs: bool = False) -> None:
        """End its processes and remove its directory; logs that are not empty stay beside it if they are to be kept.

        Returns when both have happened. Nothing happens if it does not run.
        """
        directory, self._directory = self._directory, None
        if directory is None:
            return
        logs = directory / "logs"
        if keep_logs and any(path.stat().st_size for path in logs.glob("*.log")):
            logs.rename(_kept(directory))
        try:
            if self._keeper is not None:
                self._end_keeper()
        finally:
            self._servers.clear()
            while self._ports:
                self._ports.pop().close()
            shutil.rmtree(directory, ignore_errors=True)

    def __enter__(self) -> Any:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop(keep_logs=kind is not None and issubclass(kind, Exception))

    @property
    def directory(self) -> Path:
        """Of the running backend."""
        if self._directory is None:
            raise BackendError(f"{self.name} does not run")
        return self._directory

    @property
    def logs(self) -> Path:
        """The directory of what the servers wrote."""
        return self.directory / "logs"

    def pids(self) -> list[int]:
        """The processes of the servers, workers included."""
        return [] if self._keeper is None else descendants(self._keeper.pid)

    def check(self) -> None:
        """Raise :class:`BackendError`, with the logs, if one of its servers is no more."""
        ended = self._ended()
        if ended:
            raise BackendError(f"{ended} of {self.name} has ended{self._log_tails()}")

    # For a backend's module.

    def port(self) -> int:
        """Return a free port on 127.0.0.1, reserved while this backend runs."""
        reserved = reserved_port()
        self._ports.append(reserved)
        return reserved.getsockname()[1]

    def far_port(self, port: int) -> int:
        """The port at which the server of ``port`` is as far away as the parameters :data:`FAR` say."""
        latency, rate = (self.chosen[name] for name in FAR)
        if not latency and not rate:
            return port
        found = self.port()
        self.spawn("far", [sys.executable, "-IS", far.__file__, *map(str, (found, port, latency, rate))])
        self.wait(lambda: http_status(found) > 0, "the way to the server")
        return found

    def spawn(self, name: str, command: list[str], environment: Mapping[str, str] | None = None) -> int:
        """Start a server, whose output goes to the log ``name``; returns its process id."""
        answer = self._ask({
            "command": [str(part) for part in command], "environment": server_environment(environment),
            "directory": str(self.directory), "log": str(self.logs / f"{name}.log"),
        })  # fmt: skip
        if "error" in answer:
            raise BackendError(f"{command[0]} cannot be run: {answer['error']}")
        self._servers[name] = answer["pid"]
        return answer["pid"]

    def run(self, command: list[str], environment: Mapping[str, str] | None = None, timeout: float = 180) -> str:
        """Run a command of the set-up and return its output; raises :class:`BackendError` with its errors."""
        done = subprocess.run(
            [str(part) for part in command],
            env=server_environment(environment),
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if done.returncode:
            raise BackendError(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr.strip()}")
        return done.stdout

    def find(self, name: str, install: str = "") -> str:
        """The path of a program that it needs; raises :class:`Unavailable` if it is not installed."""
        path = find_program(name)
        if path is None:
            raise Unavailable(f"{self.name}: {name} not installed; install with: {install or self.install}")
        return path

    def make_certificate(self, address: str = HOST) -> tuple[Path, Path]:
        """A certificate of an address, this machine's loopback unless another one is given, and its key."""
        certificate, key = self.directory / "certificate.pem", self.directory / "key.pem"
        request = [self.find("openssl", "apt-get install openssl"), "req", "-x509", "-noenc", "-days", "2"]
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", str(key), "-out", str(certificate)]
        self.run([*request, *kind, "-subj", "/CN=benchmark", "-addext", f"subjectAltName=IP:{address}"])
        return certificate, key

    def wait(self, answers: Callable[[], object], what: str) -> None:
        """Return when ``answers()`` is true; an OSError of it, or of HTTP, is taken for "not yet".

        Raises :class:`BackendError` when a server has died, or after :attr:`patience` seconds.
        """
        deadline = time.monotonic() + self.patience
        while True:
            try:
                if answers():
                    return
                problem = "no"
            except (OSError, http.client.HTTPException) as error:
                problem = str(error)
            if self._ended():
                raise BackendError(f"{self._ended()} has ended")
            if time.monotonic() > deadline:
                raise BackendError(f"{what} did not answer in {self.patience:g} s: {problem}")
            time.sleep(0.02)

    def _start_keeper(self) -> None:
        # A pair of sockets rather than pipes: eventlet's green pipes have faults, and fastio patches them.
        self._channel, other = socket.socketpair()
        with other:
            self._keeper = subprocess.Popen(
                [sys.executable, "-IS", keeper.__file__, str(self.directory)],
                stdin=other.fileno(),
                stdout=other.fileno(),
                # Ctrl-C at the terminal is for this process, which then stops the backend.
                start_new_session=True,
            )

    def _ended(self) -> str | None:
        """The name of a server that is no more."""
        for name, pid in self._servers.items():
            if keeper.state_and_parent(pid)[0] in "ZX":
                return name
        return None

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._channel is not None
        answer = b""
        try:
            self._channel.sendall(json.dumps(request).encode() + b"\n")
            while not answer.endswith(b"\n"):
                received = self._channel.recv(4096)
                if not received:
                    raise BackendError("its keeper has died")
                answer += received
        except OSError as error:
            raise BackendError(f"its keeper has died: {error}") from error
        return json.loads(answer)

    def _end_keeper(self) -> None:
        process, self._keeper = self._keeper, None
        assert process is not None and self._channel is not None
        self._channel.close()
        try:
            process.wait(keeper.GRACE + 120)
        except BaseException:
            # Interrupted, or stuck: what it has not ended is ended here.
            for pid in [process.pid, *descendants(process.pid)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
            raise
        if process.returncode:
            # The keeper was killed. Each server leads a process group, in which most keep their workers.
            for pid in self._servers.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)

    def _log_tails(self, lines: int = 15) -> str:
        text = ""
        for path in sorted(self.logs.glob("*.log")):
            text = text or f"\nLogs: {_kept(self.directory)}"
            tail = path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
            text += "".join([f"\n--- {path.name}", *(f"\n{line}" for line in tail)])
        return text


def _kept(directory: Path) -> Path:
    """Where the logs of a backend that has failed are."""
    return directory.with_name(f"{directory.name}-logs")


def server_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of servers: nothing that patches, traces or warns in one written in Python, no proxies."""
    dropped = ("FASTIO", "PYTHON", "COV_", "EVENTLET_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(dropped) and not name.lower().endswith("_proxy")
    }
    return {**kept, **(more or {})}


def http_status(
    port: int, path: str = "/", method: str = "GET", headers: Mapping[str, str] | None = None, host: str = HOST,
    certificate: str = "",
) -> int:  # fmt: skip
    """The status of one HTTP request; raises OSError or HTTPException if there is no answer.

    :param certificate: the file of the server's, for HTTPS
    """
    connection: http.client.HTTPConnection
    if certificate:
        context = ssl.create_default_context(cafile=certificate)
        connection = http.client.HTTPSConnection(host, port, timeout=60, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request(method, path, headers=dict(headers or {}))
        return connection.getresponse().status
    finally:
        connection.close()


def find_program(name: str, *directories: str | os.PathLike[str]) -> str | None:
    """The path of a program: beside this Python, in ``directories``, on the path, or where Debian keeps daemons."""
    beside = os.path.dirname(sys.executable)
    given = [os.fspath(each) for each in directories]
    places = [beside, *given, *os.environ.get("PATH", "").split(os.pathsep), "/usr/sbin"]
    return shutil.which(name, path=os.pathsep.join(places))
