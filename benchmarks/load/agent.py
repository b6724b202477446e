"""Samples of machines elsewhere: an agent waits there, and a run connects to it.

Lines of JSON over TCP. The one that asks sends what is to be watched; the agent answers with what its machine is, then
with a sample each ``period`` seconds, until the connection ends. Before that, ``{"clock": true}`` is answered with
the agent's time. There is no password, and samples are all that it gives: use a network that nobody else is
in.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.load import Failed, files, monitor
from benchmarks.load.monitor import Log, Sampler, Watched

#: Where agents listen if nothing else is said.
PORT = 5558
#: Seconds that a connection, an answer or a sample may take.
PATIENCE = 10.0
#: Bytes of a line that are read.
LONGEST_LINE = 1 << 16


class AgentError(Failed):
    """An agent that cannot be reached, or that gives no samples."""


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError):
            self._answer()

    def _answer(self) -> None:
        while line := self.rfile.readline(LONGEST_LINE):
            try:
                request = json.loads(line)
                if "clock" in request:
                    self._send({"clock": time.time()})
                    continue
                period = float(request.get("period", monitor.PERIOD))
                if not 0.01 <= period <= 60:
                    raise ValueError(f"period {period:g} is not from 0.01 to 60")
                asked = monitor.patterns([f"{name}={each}" for name, each in dict(request["patterns"]).items()])
                watched = Watched(patterns=asked)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                self._send({"error": f"{type(error).__name__}: {error}"})
                return
            self._sample(watched, period)
            return

    def _sample(self, watched: Watched, period: float) -> None:
        self._send(monitor.about())
        ended = threading.Event()

        def wait_for_the_end() -> None:
            with contextlib.suppress(OSError):
                self.rfile.read(1)
            ended.set()

        threading.Thread(target=wait_for_the_end, daemon=True).start()
        with contextlib.suppress(OSError):
            monitor.go_on(Sampler(watched), self._send, ended, period)

    def _send(self, data: Mapping[str, Any]) -> None:
        self.wfile.write(json.dumps(data, separators=(",", ":")).encode() + b"\n")


class Server(socketserver.ThreadingTCPServer):
    """An agent that listens; ``serve_forever()`` makes it answer."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        super().__init__((host, port), _Handler)


class Remote:
    """The samples of one agent, written to a file by a thread."""

    def __init__(self, host: str, port: int, patterns: Mapping[str, str], directory: Path, period: float) -> None:
        self.address = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), timeout=PATIENCE)
            self._file = self._socket.makefile("rwb")
            offset, error = files.clock_ahead(self._clock)
            self._send({"patterns": dict(patterns), "period": period})
            first = self._receive()
            if "error" in first:
                raise ValueError(first["error"])
        except (OSError, ValueError, KeyError) as error:
            with contextlib.suppress(AttributeError):
                self._socket.close()
            raise AgentError(f"agent {self.address}: {error}") from error
        self._socket.settimeout(PATIENCE + period)
        path = directory / f"samples-{host}-{port}.jsonl.gz"
        self._log = Log(path, {**first, "agent": self.address, "clock_offset": offset, "clock_error": error})
        #: what went wrong while it sampled, empty if nothing did
        self.problem = ""
        self._ending = False
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def _clock(self) -> float:
        self._send({"clock": True})
        return self._receive()["clock"]

    def _send(self, data: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(data).encode() + b"\n")
        self._file.flush()

    def _receive(self) -> dict[str, Any]:
        line = self._file.readline()
        if not line:
            raise OSError("it has closed the connection")
        return json.loads(line)

    def _go_on(self) -> None:
        try:
            while True:
                self._log.add(self._receive())
        except (OSError, ValueError) as error:
            # The one that ends it shuts the connection down.
            if not self._ending:
                self.problem = f"agent {self.address}: {error}; its samples end before the run does"

    def close(self) -> None:
        self._ending = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._file.close()
        self._socket.close()
        self._log.close()


@contextlib.contextmanager
def monitored(
    agents: Sequence[tuple[str, int]], patterns: Mapping[str, str], directory: Path, period: float = monitor.PERIOD
) -> Iterator[list[Remote]]:
    """Have the agents sample while the block goes on; their samples are in ``directory``.

    :raises AgentError: if one cannot be reached
    """
    with contextlib.ExitStack() as stack:
        remotes = []
        for host, port in agents:
            remote = Remote(host, port, patterns, directory, period)
            stack.callback(remote.close)
            remotes.append(remote)
        yield remotes


@contextlib.contextmanager
def everywhere(
    directory: Path, pids: Sequence[int], agents: Sequence[tuple[str, int]], patterns: Mapping[str, str],
    period: float = monitor.PERIOD,
) -> Iterator[list[Remote]]:  # fmt: skip
    """As :func:`monitored`, and this machine too.

    :param pids: servers of this machine
    :param patterns: of further processes, here and there
    """
    local = monitor.monitored(Watched({"": pids}, patterns), directory / "samples-local.jsonl.gz", period)
    with monitored(agents, patterns, directory, period) as remotes, local:
        yield remotes
