"""Samples of machines elsewhere: an agent waits there, and a run asks it for each of them, by XML-RPC.

There is no password, and it gives samples only. Use a private network.
"""

from __future__ import annotations

import contextlib
import functools
import json
import socketserver
import threading
import time
import xmlrpc.client
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

from benchmarks.load import Failed, monitor
from benchmarks.load.monitor import Sampler

#: Where agents listen if nothing else is said.
PORT = 5558
#: Seconds that a request may take.
PATIENCE = 10.0


class _Handler(SimpleXMLRPCRequestHandler):
    timeout = PATIENCE


class Server(socketserver.ThreadingMixIn, SimpleXMLRPCServer):
    """An agent that listens; ``serve_forever()`` makes it answer."""

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        super().__init__((host, port), _Handler, logRequests=False)
        self._samplers: dict[str, Sampler] = {}
        self._lock = threading.Lock()
        self.register_function(time.time, "clock")
        for method in ("about", "sample"):
            self.register_function(functools.partial(self._ask, method), method)

    def _ask(self, method: str, patterns: str) -> str:
        """Return the answer of a sampler as text: numbers of XML-RPC have 32 bits."""
        with self._lock:
            if patterns not in self._samplers:
                self._samplers = {patterns: Sampler(patterns=json.loads(patterns))}
            return json.dumps(getattr(self._samplers[patterns], method)())


class _Transport(xmlrpc.client.Transport):
    def make_connection(self, host: Any) -> HTTPConnection:
        return HTTPConnection(host, timeout=PATIENCE)


class Remote:
    """The samples of an agent. All methods raise :class:`Failed`."""

    def __init__(self, host: str, port: int, patterns: Mapping[str, str]) -> None:
        self._address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._patterns = json.dumps(dict(patterns))

    def _ask(self, method: str, *arguments: str) -> Any:
        try:
            with xmlrpc.client.ServerProxy(f"http://{self._address}", _Transport()) as server:
                return getattr(server, method)(*arguments)
        except xmlrpc.client.Fault as error:
            raise Failed(f"agent {self._address}: {error.faultString}") from error
        except (OSError, HTTPException, ExpatError, xmlrpc.client.Error) as error:
            raise Failed(f"agent {self._address}: {error}") from error

    def clock(self) -> float:
        return self._ask("clock")

    def about(self) -> dict[str, Any]:
        return json.loads(self._ask("about", self._patterns))

    def sample(self) -> dict[str, Any]:
        return json.loads(self._ask("sample", self._patterns))


@contextlib.contextmanager
def everywhere(
    directory: Path, pids: Sequence[int], agents: Sequence[tuple[str, int]], patterns: Mapping[str, str],
    period: float = monitor.PERIOD,
) -> Iterator[list[str]]:  # fmt: skip
    """Sample this machine and those of agents while the block goes on; yields why samples ended before it, if they do.

    :param directory: of the files
    :param pids: servers of this machine
    :param patterns: of further processes, here and there
    :raises Failed: if an agent cannot be reached
    """
    problems: list[str] = []
    with contextlib.ExitStack() as stack:
        for host, port in agents:
            path = directory / f"samples-{host}-{port}.jsonl.gz"
            stack.enter_context(monitor.monitored(Remote(host, port, patterns), path, problems, period))
        local = Sampler(pids, patterns)
        stack.enter_context(monitor.monitored(local, directory / "samples-local.jsonl.gz", problems, period))
        yield problems
