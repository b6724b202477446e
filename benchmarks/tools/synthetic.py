"""Traces of made-up hosts whose clocks are known, as the files that real processes would have written."""

import json
import random
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    lines: list[list[Any]] = field(default_factory=list)
    spans: int = 0

    def begin(self, time: int, name: str, parent: int | None = None, thread: int = 1, **values: Any) -> int:
        self.spans += 1
        self.lines.append(["B", self.host.monotonic(time), self.spans, parent, name, thread, values])
        return self.spans

    def end(self, time: int, span: int, name: str, parent: int | None = None, thread: int = 1, **values: Any) -> None:
        values.setdefault("outcome", "ok")
        self.lines.append(["E", self.host.monotonic(time), span, parent, name, thread, values])

    def point(self, time: int, name: str, span: int = 0, thread: int = 1, **values: Any) -> None:
        self.lines.append(["P", self.host.monotonic(time), span, None, name, thread, values])

    @property
    def prefix(self) -> str:
        return f"{self.host.name}-{self.pid}-{self.begun // MS}"

    def header(self, number: int = 0) -> dict[str, Any]:
        return {
            "fastio-trace": 1, "host": self.host.name, "pid": self.pid, "boot": self.host.boot,
            "component": self.component, "program": self.component, "versions": {"fastio": "0"},
            "monotonic": self.host.monotonic(self.begun), "wall": self.host.wall(self.begun), "file": number,
        }  # fmt: skip

    def write(self, directory: Path, files: int = 1, lost: int = 0, ended: bool = True) -> list[Path]:
        """The events, in the order of their times, in so many files."""
        lines = sorted(self.lines, key=lambda line: line[1])
        size = -(-len(lines) // files) or 1
        paths = []
        for number in range(files):
            part: list[Any] = [self.header(number), *lines[number * size : (number + 1) * size]]
            if ended and number == files - 1:
                last = lines[-1][1] if lines else self.host.monotonic(self.begun)
                part.append({"end": True, "monotonic": last, "events": len(lines), "lost": lost})
            path = directory / f"{self.prefix}-{number}.jsonl"
            path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in part))
            paths.append(path)
        return paths


@dataclass
class World:
    """Clients, API servers and a log server on hosts of their own, and what they have done."""

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
        client, server = self.client, self.random.choice(self.servers)
        thread, size = self.random.randrange(1 << 40), 16 << 20
        name, own = self.identity(), self.identity()
        asked = {"method": "GET", "path": f"/v2/images/{uuid.UUID(int=self.random.getrandbits(128))}/file"}
        outer = client.begin(start, "client.request", None, thread, **{"global": name}, **asked)
        client.point(start + 1000, "message.sent", outer, thread, message=name)
        now = start + self.delay(2)
        inner = server.begin(now, "glance.request", None, thread, **{"global": name}, peer="192.0.2.1", **asked)
        server.point(now + 1000, "message.received", inner, thread, message=name)
        now += self.delay(1)
        logging = {"method": "POST", "path": "/v1/log"}
        logged = self.logs.begin(now + self.delay(0.5), "log-server.request", None, thread, **logging)
        self.logs.end(now + self.delay(0.5) + 30 * MS, logged, "log-server.request", None, thread, status=204)
        controller = server.begin(now, "glance.image_data.download", inner, thread)
        now += self.delay(3)
        store = server.begin(now, "store.swift.get", controller, thread)
        child = server.begin(now + 1000, "subprocess.command", store, thread, program="dog")
        now += self.delay(5)
        server.end(now - 1000, child, "subprocess.command", store, thread, bytes=100, code=0)
        if error:
            failed = {"outcome": "error", "error": error}
            server.end(now, store, "store.swift.get", controller, thread, **failed)
            server.end(now + 1000, controller, "glance.image_data.download", inner, thread, **failed)
        else:
            server.end(now, controller, "glance.image_data.download", inner, thread)
        now += self.delay(0.5)
        server.point(now, "message.sent", inner, thread, message=own)
        client.point(now + self.delay(2), "message.received", outer, thread, message=own)
        if not error:
            body = server.begin(now, "glance.body", inner, thread)
            now += self.delay(40)
            waited = {"waits": 12, "wait_ns": 5 * MS} if self.random.random() < 0.5 else {}
            server.end(now, body, "glance.body", inner, thread, bytes=size, chunks=256, **waited)
            server.end(now, store, "store.swift.get", controller, thread, bytes=size, chunks=256, busy_ns=4 * MS)
        now += 20_000
        ending: dict[str, Any] = {"status": status, "request": own, "bytes": 0 if error else size}
        if error:
            ending |= {"outcome": outcome, "error": error}
        server.end(now, inner, "glance.request", None, thread, **ending)
        now += self.delay(2)
        client.end(now, outer, "client.request", None, thread, **ending)
        self.truth[name] = (start, now)
        return name

    def run(self, requests: int, seconds: float = 60) -> None:
        """Downloads, evenly distributed, and samples of resources, each second."""
        for index in range(requests):
            self.download(BEGIN + SECOND // 10 + round(index * seconds * SECOND / requests))
        for process in self.processes:
            for second in range(int(seconds) + 1):
                process.point(
                    BEGIN + second * SECOND, "process.resources", thread=0, cpu_s=0.5 * second,
                    rss=(100 << 20) + (second << 20), threads=4, fds=20 + second, net_sent=second * 10**7,
                )  # fmt: skip

    def write(self, directory: Path, files: int = 1) -> list[Path]:
        return [path for process in self.processes for path in process.write(directory, files)]


HOSTS = (
    Host("client1"),
    Host("api1", offset=37 * MS, drift=40e-6, up=90_000 * SECOND),
    Host("api2", offset=-5 * SECOND, drift=-25e-6, up=7 * SECOND),
)
