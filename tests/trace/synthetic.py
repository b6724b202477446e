"""Traces of made-up hosts whose clocks are known, as the files that real processes would have written."""

import json
import random
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastio.trace import otlp

MS = 1_000_000
SECOND = 1_000_000_000
#: When everything begins, in ns since 1970.
BEGIN = 1_700_000_000 * SECOND


@dataclass
class Host:
    """A machine whose clock is wrong by ``offset`` ns, and by ``drift`` ns more in each ns."""

    name: str
    offset: int = 0
    drift: float = 0.0
    #: its monotonic clock at the beginning
    up: int = 5_000 * SECOND

    @property
    def boot(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, self.name))

    def monotonic(self, time: int) -> int:
        """The monotonic clock at a true time."""
        return self.up + (time - BEGIN) + round(self.drift * (time - BEGIN))

    def wall(self, time: int) -> int:
        return self.monotonic(time) - self.up + BEGIN + self.offset

    def true(self, monotonic: int) -> float:
        """The true time, at which the monotonic clock was this, in ns since the beginning."""
        return (monotonic - self.up) / (1 + self.drift)


@dataclass
class Process:
    """Writes what a process of a host does at true times."""

    host: Host
    pid: int
    component: str
    begun: int = BEGIN
    spans: dict[int, dict[str, Any]] = field(default_factory=dict)
    #: spans in a line
    most: int = 4

    def _time(self, time: int) -> str:
        return str(self.host.monotonic(time) + self.clock)

    @property
    def clock(self) -> int:
        """ns from the monotonic clock to the wall clock."""
        return self.host.wall(self.begun) - self.host.monotonic(self.begun)

    def begin(self, time: int, name: str, parent: int | None = None, **values: Any) -> int:
        number = len(self.spans) + 1
        above = {"parentSpanId": self.id(parent)} if parent else {}
        self.spans[number] = {
            "traceId": f"{self.pid:032x}", "spanId": self.id(number), **above, "name": name, "kind": 1,
            "startTimeUnixNano": self._time(time), "endTimeUnixNano": "", "values": values, "events": [],
        }  # fmt: skip
        return number

    def id(self, number: int) -> str:
        return f"{(self.pid << 32) + number:016x}"

    def end(self, time: int, span: int, **values: Any) -> None:
        values.setdefault("outcome", "ok")
        self.spans[span]["endTimeUnixNano"] = self._time(time)
        self.spans[span]["values"].update(values)

    def point(self, time: int, name: str, span: int, **values: Any) -> None:
        made = {"timeUnixNano": self._time(time), "name": name, "attributes": attributes(values)}
        self.spans[span]["events"].append(made)

    @property
    def prefix(self) -> str:
        return f"{self.host.name}-{self.pid}-{self.begun % (1 << 48):012x}"

    def resource(self) -> dict[str, Any]:
        return {
            "service.name": self.component, "process.executable.name": self.component, "process.pid": self.pid,
            "service.instance.id": self.prefix, "host.name": self.host.name,
            otlp.BOOT.removeprefix("fastio."): self.host.boot, otlp.CLOCK.removeprefix("fastio."): self.clock,
        }  # fmt: skip

    def lines(self) -> list[str]:
        """The spans of its files, which have ended, in the order of their ends."""
        ended = sorted((each for each in self.spans.values() if each["endTimeUnixNano"]), key=_end)
        shown = [{**each, "attributes": attributes(each["values"])} for each in ended]
        for each in shown:
            del each["values"]
        return [line(self.resource(), shown[first : first + self.most]) for first in range(0, len(shown), self.most)]

    def write(self, directory: Path, files: int = 1) -> list[Path]:
        """Write the lines in so many files."""
        lines = self.lines()
        size = -(-len(lines) // files) or 1
        paths = []
        for number in range(files):
            path = directory / f"{self.prefix}-{number}.jsonl"
            path.write_text("".join(f"{each}\n" for each in lines[number * size : (number + 1) * size]))
            paths.append(path)
        return paths


def _end(span: dict[str, Any]) -> int:
    return int(span["endTimeUnixNano"])


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Values by the names that the recorder has for them, as OTLP has attributes."""
    standard = ("service.", "host.", "process.")
    found = []
    for name, value in values.items():
        shown = otlp.NAMES.get(name) or (name if name.startswith(standard) else otlp.PREFIX + name)
        kind = {int: "intValue", float: "doubleValue", bool: "boolValue"}.get(type(value), "stringValue")
        found.append({"key": shown, "value": {kind: str(value) if type(value) is int else value}})
    return found


def line(resource: dict[str, Any], spans: list[dict[str, Any]]) -> str:
    """A line of a file."""
    scope = {"scope": {"name": "fastio.trace"}, "spans": spans}
    made = {"resourceSpans": [{"resource": {"attributes": attributes(resource)}, "scopeSpans": [scope]}]}
    return json.dumps(made, separators=(",", ":"))


@dataclass
class World:
    """Clients, API servers and a log server on separate hosts, and their records."""

    hosts: list[Host]
    seed: int = 0
    #: true times of the beginning and the end of each request's client span, by global id
    truth: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.client = Process(self.hosts[0], 100, "client")
        servers = self.hosts[1:] or self.hosts
        self.servers = [Process(host, 200 + index, "glance-api") for index, host in enumerate(servers)]
        self.logs = Process(self.hosts[-1], 300, "log-server")

    @property
    def processes(self) -> list[Process]:
        return [self.client, *self.servers, self.logs]

    def identity(self) -> str:
        return f"req-{uuid.UUID(int=self.random.getrandbits(128), version=4)}"

    def delay(self, mean_ms: float) -> int:
        """A time that is at least a twentieth of the mean."""
        return round(mean_ms * MS * (0.05 + self.random.expovariate(1)))

    def download(self, start: int, error: str = "", outcome: str = "error", status: int = 200) -> str:
        """A download of 16 MiB; with an error, one whose store fails. Returns its global id."""
        client, server, size = self.client, self.random.choice(self.servers), 16 << 20
        name, own = self.identity(), self.identity()
        asked = {"method": "GET", "path": "/v2/images/{id}/file", "global": name}
        outer = client.begin(start, "client.request", None, **asked)
        client.point(start + 1000, "message.sent", outer, message=name)
        now = start + self.delay(2)
        inner = server.begin(now, "glance.request", None, **asked)
        server.point(now + 1000, "message.received", inner, message=name)
        now += self.delay(1)
        logged = self.logs.begin(now + self.delay(0.5), "log-server.request", None, method="POST", path="/v1/log")
        self.logs.end(now + self.delay(0.5) + 30 * MS, logged, status=204)
        controller = server.begin(now, "glance.image_data.download", inner)
        now += self.delay(3)
        store = server.begin(now, "store.swift.get", controller)
        child = server.begin(now + 1000, "subprocess.command", store, program="dog")
        now += self.delay(5)
        server.end(now - 1000, child, bytes=100, code=0)
        if error:
            failed = {"outcome": "error", "error": error}
            server.end(now, store, **failed)
            server.end(now + 1000, controller, **failed)
        else:
            server.end(now, controller)
        now += self.delay(0.5)
        server.point(now, "message.sent", inner, message=own)
        client.point(now + self.delay(2), "message.received", outer, message=own)
        if not error:
            body = server.begin(now, "glance.body", inner)
            now += self.delay(40)
            waited = {"waits": 12, "wait_ns": 5 * MS} if self.random.random() < 0.5 else {}
            server.end(now, body, bytes=size, chunks=256, **waited)
            server.end(now, store, bytes=size, chunks=256, busy_ns=4 * MS)
        now += 20_000
        ending: dict[str, Any] = {"status": status, "request": own, "bytes": 0 if error else size}
        if error:
            ending |= {"outcome": outcome, "error": error}
        server.end(now, inner, **ending)
        now += self.delay(2)
        client.end(now, outer, **ending)
        self.truth[name] = (start, now)
        return name

    def run(self, requests: int, seconds: float = 60) -> None:
        """Downloads, evenly distributed."""
        for index in range(requests):
            self.download(BEGIN + SECOND // 10 + round(index * seconds * SECOND / requests))

    def write(self, directory: Path, files: int = 1) -> list[Path]:
        return [path for process in self.processes for path in process.write(directory, files)]


HOSTS = (
    Host("client1"),
    Host("api1", offset=37 * MS, drift=40e-6, up=90_000 * SECOND),
    Host("api2", offset=-5 * SECOND, drift=-25e-6, up=7 * SECOND),
)
