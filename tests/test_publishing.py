"""What a process tells others by its own account: files, sockets and datagrams, of real programs."""

import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fastio
from benchmarks.backends.base import reserved_port
from fastio import config
from fastio.errors import SettingError
from fastio.watching import asking, metrics, shared, statsd
from fastio.watching.asking import AskingError
from fastio.watching.publishing import Told
from fastio.watching.shared import Shared
from tests.conftest import HAS_EVENTLET, MONKEY_PATCHED
from tests.eventually import until

pytestmark = pytest.mark.skipif(MONKEY_PATCHED, reason="the programs are fresh ones, the same as without TEST_EVENTLET")

ROOT = Path(fastio.__file__).parent.parent
GREEN = pytest.param("green", marks=pytest.mark.skipif(not HAS_EVENTLET, reason="eventlet is not installed"))

#: Obeys the lines that it reads: a number of calls, "fork", or "scrape"; says its pid, or what it is asked.
PROGRAM = """
import select, sys
look = select.select
if sys.argv[1] == "green":
    import eventlet
    eventlet.monkey_patch()
import os, subprocess, time
import fastio
fastio.patch()
from fastio.watching import endpoint

def say(text):
    os.write(1, text.encode() + b"\\n")

say(str(os.getpid()))
buffer = b""
while True:
    while not look([0], [], [], 0)[0]:
        time.sleep(0.01)
    data = os.read(0, 1)
    buffer += data
    if not data:
        break
    if not buffer.endswith(b"\\n"):
        continue
    order, buffer = buffer.decode().strip(), b""
    if order == "scrape":
        started = []
        (body,) = endpoint.wsgi({}, lambda *answer: started.append(answer))
        say(str(len(body)) + "\\n" + body.decode().rstrip())
    elif order == "fork":
        reader, writer = os.pipe()
        if os.fork():
            os.close(reader)
            say(str(writer))
        else:
            os.close(writer)
            os.dup2(reader, 0)
            if sys.argv[1] == "green":
                eventlet.hubs.use_hub()
            say(str(os.getpid()))
    else:
        for _ in range(int(order)):
            subprocess.Popen(["true"], stdout=-1, stderr=-1).communicate()
        say("done")
"""


class Program:
    """A service of one process."""

    def __init__(self, mode: str, env: dict[str, str]) -> None:
        self.mode = mode
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, mode],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=env,
        )  # fmt: skip
        self.pid = int(self.line())

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def tell(self, order: object) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        return self.line()

    def scrape(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.read(int(self.tell("scrape")))

    def end(self, sent: int | None = None) -> None:
        if sent is not None:
            self._process.send_signal(sent)
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate(timeout=100)


@pytest.fixture
def private() -> Iterator[Path]:
    """A directory whose path is short, in memory."""
    directory = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def run(private: Path) -> Iterator[Callable[..., Program]]:
    started: list[Program] = []
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "TEST_EVENTLET"))}

    def run(mode: str = "native", **settings: object) -> Program:
        given = {f"FASTIO_{name.upper()}": str(value) for name, value in settings.items()}
        started.append(Program(mode, {**environ, "PYTHONPATH": str(ROOT), "FASTIO_METRICS_INTERVAL": "1", **given}))
        return started[-1]

    yield run
    for program in started:
        program.end(signal.SIGKILL)


def counted(text: str) -> int:
    """The calls of subprocess, natively or under eventlet, all processes together."""
    return sum(map(int, re.findall(r'^fastio_calls_total\{patch="(?:green_)?communicate"[^}]*\} (\d+)$', text, re.M)))


# A file for the node exporter


@pytest.mark.parametrize("mode", ["native", GREEN])
def test_a_textfile_of_each_process(run: Callable[..., Program], tmp_path: Path, mode: str) -> None:
    first, second = (run(mode, metrics_textfile=tmp_path) for _ in range(2))
    for program in (first, second):
        program.tell(3)

    def texts() -> dict[str, str]:
        return {
            name.split("-")[2]: (tmp_path / name).read_text() for name in os.listdir(tmp_path) if ".new" not in name
        }

    until(lambda: sorted(map(counted, texts().values())) == [3, 3], "the counts of both")
    assert set(texts()) == {str(first.pid), str(second.pid)}
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in tmp_path.glob("*.prom"))
    first.tell(2)
    until(lambda: sorted(map(counted, texts().values())) == [3, 5], "a later count")
    # One that is killed is removed by another process, with what it was about to write.
    (left,) = tmp_path.glob(f"*-{first.pid}-*.prom")
    left.with_name(left.name + ".new").touch()
    others = tmp_path / "fastio-notes.prom"
    others.touch()
    first.end(signal.SIGKILL)
    until(lambda: not list(tmp_path.glob(f"*-{first.pid}-*")), "the removal of a stale file")
    second.end()
    assert list(tmp_path.iterdir()) == [others]


def test_a_file_is_replaced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastio.io import libc, replace

    path = tmp_path / "file"
    replace.replace(str(path), b"before" * 100_000, 0o644)
    seen = []

    def rename(old: str, new: str) -> Any:
        seen.append((path.read_bytes(), Path(old).read_bytes()))
        return real(old, new)

    real = libc.rename
    monkeypatch.setattr(libc, "rename", rename)
    replace.replace(str(path), b"after", 0o644)
    assert seen == [(b"before" * 100_000, b"after")] and path.read_bytes() == b"after"
    (tmp_path / "directory").mkdir()
    with pytest.raises(IsADirectoryError):
        replace.replace(str(tmp_path / "directory"), b"", 0o644)
    assert {each.name for each in tmp_path.iterdir()} == {"file", "directory"}


def test_an_output_that_fails_leaves_the_service_alone(run: Callable[..., Program], tmp_path: Path) -> None:
    directory = tmp_path / "directory"
    program = run(metrics_textfile=directory)
    until(lambda: list(directory.glob("*.prom")), "the file")
    shutil.rmtree(directory)
    directory.touch()
    assert program.tell(1) == "done"
    directory.unlink()
    directory.mkdir()
    until(lambda: list(directory.glob("*.prom")), "the file where the directory is back")


def test_an_output_is_told_by_one_at_a_time() -> None:
    """The last counts come last, also if the output ends while somebody else tells it."""
    done: list[str] = []

    class Slow:
        def publish(self, found: metrics.Metrics, last: bool = False) -> None:
            done.append("last" if last else "begun")
            if not last:
                told.tell()
                told.end()
                assert not told.ended
                done.append("told")

        def close(self) -> None:
            done.append("closed")

    def safely(call: Callable[[], object]) -> None:
        call()

    told = Told(Slow(), safely)
    told.tell()
    told.tell()
    told.end()
    assert told.ended and done == ["begun", "told", "last", "closed"]


# All workers in one answer


@pytest.mark.parametrize("mode", ["native", GREEN])
def test_an_answer_has_all_processes(run: Callable[..., Program], private: Path, mode: str) -> None:
    """However the workers end, the counts never go backwards, and at the end nothing is missing."""
    stays = run(mode, run_dir=private)
    expected = 0
    for sent in (signal.SIGKILL, None, signal.SIGKILL, None):
        worker = run(mode, run_dir=private)
        worker.tell(2)
        expected += 2
        before = counted(stays.scrape())
        assert before >= expected - 2
        # What it has is in the directory once another process, or its own, has looked.
        until_counted(worker, expected)
        assert counted(stays.scrape()) == expected
        worker.end(sent)
        assert counted(stays.scrape()) == expected
    # A file is renamed by who claims it, then counted, then removed: the removal is waited for, too.
    until(lambda: len(list(private.glob("*.json*"))) == 1, "the adoption of those that have ended")
    text = stays.scrape()
    assert counted(text) == expected and 'pid="' not in text
    assert not [path for path in private.iterdir() if ".json.by-" in path.name]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in private.glob("*.json"))


def test_workers_of_one_process(run: Callable[..., Program], private: Path) -> None:
    """A forked worker has a file and a socket of its own, and counts from zero."""
    parent = run(run_dir=private)
    parent.tell(2)
    said = {int(parent.tell("fork")), int(parent.line())}
    child = max(said)
    until(lambda: list(private.glob(f"*-{child}-*.json")) and list(private.glob(f"*-{child}-*.sock")), "the child's")
    for pid, calls in ((parent.pid, 2), (child, 0)):
        found = until_answered(pid)
        assert found["metrics"]["pid"] == pid
        assert found["metrics"]["patches"]["communicate"]["calls"] == calls
    until_counted(parent, 2)


def until_counted(program: Program, calls: int) -> None:
    """With a scrape that meets the process while it writes its file, the counts of before are told once more."""
    until(lambda: counted(program.scrape()) == calls, f"{calls} calls")


def until_answered(pid: int) -> dict[str, Any]:
    def ask() -> Any:
        with contextlib.suppress(AskingError):
            return asking.ask(pid, 100)

    found: dict[str, Any] = until(ask, f"the answer of {pid}")
    return found


#: Where a process that adopts the counts of another one may be killed: in each call that changes the directory.
KILLED = ["posix.rename", "replace", "posix.unlink"]


@pytest.mark.parametrize("where", KILLED)
@pytest.mark.parametrize("after", [False, True])
def test_a_process_killed_while_it_adopts(
    private: Path, monkeypatch: pytest.MonkeyPatch, where: str, after: bool
) -> None:
    owners = [f"1-{number}-1" for number in (1, 2, 3)]
    alive = set(owners)
    monkeypatch.setattr(shared, "is_gone", lambda name: name not in alive)

    def process(number: int) -> Shared:
        monkeypatch.setattr(shared, "identity", lambda: owners[number])
        return Shared(str(private))

    def put(one: Shared, calls: int) -> None:
        found = metrics.Metrics(1, 1.0, {"wait": metrics.PatchMetrics(calls, 0, {})}, {})
        monkeypatch.setattr(metrics, "read", lambda: found)
        one.publish(metrics.read())

    class Killed(BaseException):
        pass

    def calls() -> int:
        return last.read().patches["wait"].calls

    first, second, last = map(process, range(3))
    put(first, 5)
    put(second, 7)
    put(last, 1)
    assert calls() == 13
    alive.remove(owners[0])
    with monkeypatch.context() as patch:
        owner: Any = shared.posix if where.startswith("posix") else shared
        name = where.rpartition(".")[2]
        real = getattr(owner, name)
        done: list[str] = []

        def kill(path: str, *arguments: Any) -> Any:
            done.append(path)
            # Its own file is written before, too.
            if where == "replace" and len(done) < 2:
                return real(path, *arguments)
            if after:
                real(path, *arguments)
            # What it would put right is not put right.
            patch.setattr(shared.posix, "rename", lambda *_: None)
            raise Killed

        patch.setattr(owner, name, kill)
        with pytest.raises(Killed):
            put(second, 7)
    assert calls() == 13
    alive.remove(owners[1])
    for _ in range(3):
        put(last, 1)
        assert calls() == 13
    assert [path.name for path in private.iterdir()] == [f"{owners[2]}.json"]


UWSGI = """
import os, subprocess, uwsgi
from fastio.watching import endpoint
def call():
    subprocess.Popen(["true"], stdout=-1, stderr=-1).communicate()
# That of the master, before it forks, is not the workers'.
if uwsgi.worker_id() == 0:
    call()
def application(environ, start_response):
    if environ["PATH_INFO"] == "/metrics":
        return endpoint.wsgi(environ, start_response)
    call()
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]
"""


def uwsgi() -> list[str]:
    """uWSGI beside this Python, or that of the benchmarks' glance, with the environment that it needs."""
    python = os.environ.get("BENCHMARK_GLANCE33", sys.executable)
    found = shutil.which("uwsgi", path=str(Path(python).parent))
    if found is None:
        pytest.skip("uwsgi is not installed")
    return [found, "--virtualenv", str(Path(python).parent.parent), "--pythonpath", str(ROOT)]


@pytest.fixture
def port() -> Iterator[int]:
    """One that nobody else is given, but that uWSGI can listen on."""
    with reserved_port() as reserved:
        yield reserved.getsockname()[1]


@pytest.mark.parametrize("loaded", [["--lazy-apps"], []], ids=["in each worker", "before the fork"])
def test_the_workers_of_uwsgi(private: Path, tmp_path: Path, port: int, loaded: list[str]) -> None:
    """Without an option that has uWSGI tell Python of a fork, too."""
    import http.client

    (tmp_path / "watched.py").write_text(UWSGI)
    command = [
        *uwsgi(), *loaded, "--pythonpath", str(tmp_path), "--http-socket", f"127.0.0.1:{port}", "--master",
        "--processes", "3", "--enable-threads", "--die-on-term", "--import", "fastio.auto", "--module", "watched",
    ]  # fmt: skip
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "PYTHON"))}
    environ |= {"FASTIO_RUN_DIR": str(private), "FASTIO_METRICS_INTERVAL": "1"}

    def get(path: str) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        except ConnectionError:
            return ""
        finally:
            connection.close()

    nowhere = subprocess.DEVNULL
    server = subprocess.Popen(command, env=environ, stdout=nowhere, stderr=nowhere, start_new_session=True)
    try:
        workers: dict[int, int] = {}
        until(lambda: get("/metrics"), "the server")
        while len(workers) < 2 or sum(workers.values()) < 10:
            pid = int(get("/"))
            workers[pid] = workers.get(pid, 0) + 1
        total = sum(workers.values()) + (not loaded)
        until(lambda: counted(get("/metrics")) == total, "the counts of all")
        for pid, calls in workers.items():
            found = until_answered(pid)
            assert (found["metrics"]["pid"], found["metrics"]["patches"]["communicate"]["calls"]) == (pid, calls)
        os.kill(min(workers), signal.SIGKILL)
        for _ in range(20):
            assert counted(get("/metrics")) == total
    finally:
        # A worker that has just been begun anew may not hear of a gentler one.
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(100)


# statsd


class Receiver:
    """A statsd: a real socket, and the sums of what has come."""

    def __init__(self, family: int, host: str) -> None:
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self._socket.settimeout(0.05)
        self.port = self._socket.getsockname()[1]
        self.sums: dict[str, int] = {}
        self.sizes: list[int] = []

    def receive(self) -> dict[str, int]:
        with contextlib.suppress(TimeoutError):
            while True:
                datagram = self._socket.recv(1 << 16)
                self.sizes.append(len(datagram))
                for line in datagram.decode().split("\n"):
                    match = re.fullmatch(r"([a-z0-9_.]+):([1-9]\d*)\|c", line)
                    assert match is not None, line
                    self.sums[match[1]] = self.sums.get(match[1], 0) + int(match[2])
        return self.sums

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize(
    ("mode", "family", "host"),
    [
        ("native", socket.AF_INET6, "::1"),
        pytest.param("green", socket.AF_INET, "127.0.0.1", marks=GREEN.marks),
    ],
)
def test_statsd(run: Callable[..., Program], mode: str, family: int, host: str) -> None:
    with contextlib.closing(Receiver(family, host)) as receiver:
        program = run(mode, metrics_statsd=f"[{host}]:{receiver.port}" if ":" in host else f"{host}:{receiver.port}")
        name = "fastio.calls." + ("communicate" if mode == "native" else "green_communicate")
        program.tell(3)
        until(lambda: receiver.receive().get(name) == 3, "the counts")
        program.tell(2)
        # The last ones come as the process ends.
        program.end()
        until(lambda: receiver.receive().get(name) == 5, "only what was added")
        assert receiver.sums["fastio.io.exchanges"] == 5


def test_what_statsd_does_not_get_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    patches = {f"patch_{number}": metrics.PatchMetrics(number, 10**9, {"hub": 1}) for number in range(1, 100)}
    found = metrics.Metrics(1, 1.0, patches, {"reads": 0})
    with contextlib.closing(Receiver(socket.AF_INET, "127.0.0.1")) as receiver:
        told = statsd.Statsd(f"127.0.0.1:{receiver.port}")
        real = told._socket
        refused: list[Any] = []

        class Refusing:
            def sendto(self, *arguments: Any) -> int:
                if len(refused) < 2:
                    refused.append(arguments)
                    raise ConnectionRefusedError
                return real.sendto(*arguments)

        monkeypatch.setattr(told, "_socket", Refusing())
        told.publish(found)
        told.publish(found)
        told.publish(found)
        real.close()
        receiver.receive()
    assert len(refused) == 2 and len(receiver.sizes) > 4 and max(receiver.sizes) <= 1432
    assert len(receiver.sums) == 3 * 99 and receiver.sums["fastio.fallbacks.patch_7.hub"] == 1
    assert all(receiver.sums[f"fastio.calls.patch_{number}"] == number for number in range(1, 100))


# OpenTelemetry


OPENTELEMETRY = """
import json, os, subprocess
import fastio
fastio.patch()
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))

def gather():
    data = reader.get_metrics_data()
    return [] if data is None else [
        [metric.name, metric.unit, metric.data.is_monotonic, point.value, dict(point.attributes)]
        for resource in data.resource_metrics for scope in resource.scope_metrics
        for metric in scope.metrics for point in metric.data.data_points
    ]

subprocess.run(["echo"], capture_output=True)
subprocess.run(["echo"], capture_output=True)
found = gather()
fastio.patch(metrics_opentelemetry=False)
print(json.dumps([os.getpid(), found, gather()]))
"""


def test_opentelemetry(run_python: Callable[..., Any]) -> None:
    pytest.importorskip("opentelemetry.sdk.metrics")
    pid, found, after = json.loads(run_python(OPENTELEMETRY, env={"FASTIO_METRICS_OPENTELEMETRY": "1"}).stdout)
    counts = {
        (name, *sorted(attributes.items())): (unit, monotonic, value)
        for name, unit, monotonic, value, attributes in found
    }
    own = ("process.pid", pid)
    assert counts["fastio.calls", ("patch", "communicate"), own] == ("{call}", True, 2)
    assert counts["fastio.bytes", ("patch", "communicate"), own] == ("By", True, 2)
    assert counts["fastio.io", own, ("what", "exchanges")][2] == 2
    assert after == []
    assert json.loads(run_python(OPENTELEMETRY).stdout)[1:] == [[], []]


def test_opentelemetry_where_it_is_not_installed(run_python: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "fastio").symlink_to(ROOT / "fastio")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import fastio; fastio.patch('wait')"
    done = run_python(
        code, str(tmp_path / "bare"), options=("-I", "-S"), env={"FASTIO_METRICS_OPENTELEMETRY": "1"}, check=False
    )
    assert "metrics_opentelemetry: '1' (from environment FASTIO_METRICS_OPENTELEMETRY) is not allowed" in done.stderr
    assert "only where opentelemetry-api is installed" in done.stderr


# fastio status --pid


def status(*arguments: object) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FASTIO")}
    return subprocess.run(
        [sys.executable, "-m", "fastio", "status", *map(str, arguments)],
        env={**environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=100,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["native", GREEN])
def test_status_of_a_process(run: Callable[..., Program], private: Path, mode: str) -> None:
    directory = private / "run"
    program = run(mode, run_dir=directory, chunk_size="96KiB")
    program.tell(2)
    (path,) = until(lambda: list(directory.glob("*.sock")), "the socket")
    assert (path.stat().st_mode & 0o777, directory.stat().st_mode & 0o777) == (0o600, 0o700)
    name = "communicate" if mode == "native" else "green_communicate"
    done = status("--pid", program.pid, "--json")
    assert done.stderr == "" and done.returncode == 0
    found = json.loads(done.stdout)
    assert found["metrics"]["patches"][name]["calls"] == 2
    assert found["settings"]["chunk_size"] == {"value": 96 * 1024, "source": "environment FASTIO_CHUNK_SIZE"}
    assert (name, "applied") in {(each["name"], each["outcome"]) for each in found["patches"]}
    text = status("--pid", program.pid).stdout
    assert re.search(r"^chunk_size +96 KiB +environment FASTIO_CHUNK_SIZE$", text, re.M)
    assert re.search(rf"^{name} +2 +\d+ *$", text, re.M)
    only = status("--pid", program.pid, "--patch", name).stdout
    assert re.search(rf"^{name} +2 ", only, re.M) and "oslo_spawn" not in only
    program.end()
    assert not list(directory.glob("*.sock"))


def test_a_process_that_cannot_be_asked(
    run: Callable[..., Program], private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = run()
    done = status("--pid", without.pid)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"fastio: process {without.pid} has no socket: start the service with the setting run"
    )
    program = run(run_dir=private)
    until(lambda: list(private.glob("*.sock")), "the socket")
    os.kill(program.pid, signal.SIGSTOP)
    stat = Path(f"/proc/{program.pid}/stat")
    until(lambda: stat.read_text().rpartition(") ")[2].startswith("T"), "the stop")
    with pytest.raises(AskingError, match=rf"process {program.pid} did not answer within 0.2 s: it is busy or stopped"):
        asking.ask(program.pid, 0.2)
    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "connect", lambda *_: (_ for _ in ()).throw(PermissionError()))
        with pytest.raises(AskingError, match=f"only the user of process {program.pid}, and root, may ask it"):
            asking.ask(program.pid)
    os.kill(program.pid, signal.SIGCONT)
    assert until_answered(program.pid)["metrics"]["pid"] == program.pid
    os.kill(program.pid, signal.SIGKILL)
    program.end()
    done = status("--pid", program.pid)
    assert (done.returncode, done.stderr) == (2, f"fastio: there is no process {program.pid}\n")
    assert status("--pid", 0).returncode == 2


def test_an_imposter_is_not_asked(run: Callable[..., Program], private: Path) -> None:
    """Anybody can make a socket of the right name: what counts is who listens at it."""
    without = run()
    with socket.socket(socket.AF_UNIX) as imposter:
        imposter.bind(str(private / f"fastio-1-{without.pid}-1.sock"))
        imposter.listen()
        with pytest.raises(AskingError, match="has no socket"):
            asking.ask(without.pid)


def test_a_process_is_asked_before_others(
    run: Callable[..., Program], private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others, of whom there may be many on one host, are not disturbed."""
    asked: list[str] = []
    connect = socket.socket.connect

    def connecting(self: socket.socket, path: str) -> None:
        asked.append(path)
        connect(self, path)

    with contextlib.ExitStack() as stack:

        def bind(number: int) -> None:
            stack.enter_context(socket.socket(socket.AF_UNIX)).bind(str(private / f"fastio-1-{number}-1.sock"))

        # Some are older, and some are newer: the kernel lists them in one order or the other.
        for number in range(4):
            bind(number)
        program = run(run_dir=private)
        until_answered(program.pid)
        for number in range(4, 8):
            bind(number)
        monkeypatch.setattr(socket.socket, "connect", connecting)
        assert asking.ask(program.pid, 100)["metrics"]["pid"] == program.pid
    (its,) = private.glob(f"*-{program.pid}-*.sock")
    assert asked == [str(its)]


def test_another_user_gets_no_answer(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel keeps others from the socket; should its mode be changed, the process does."""
    from fastio.watching import answers

    ours = answers.Answers(str(private))
    for user, gets in ((os.geteuid() + 1, 0), (os.geteuid(), 1), (0, 1)):
        monkeypatch.setattr(answers, "CREDENTIALS", Credentials(user))
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(str(next(private.iterdir())))
            # Who asks for another process may connect first, such as another run of these tests.
            while not select.select([other], [], [], 0)[0]:
                ours.answer()
            assert bool(other.recv(1)) == gets
    ours.close()
    assert not list(private.iterdir())


class Credentials:
    """Of a client who is another user."""

    size = asking.CREDENTIALS.size

    def __init__(self, user: int) -> None:
        self._user = user

    def unpack(self, data: bytes) -> tuple[int, int, int]:
        return 1, self._user, 1


# Settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metrics_statsd", "localhost:8125"), ("metrics_statsd", "127.0.0.1"), ("metrics_statsd", "127.0.0.1:0"),
        ("metrics_statsd", "127.0.0.1:65536"), ("metrics_statsd", "::1:8125"), ("metrics_statsd", "[127.0.0.1]:8125"),
        ("metrics_interval", "0"), ("metrics_interval", 3601), ("metrics_interval", "soon"), ("metrics_interval", 1.5),
        ("metrics_opentelemetry", "perhaps"), ("metrics_textfile", "/proc/version"), ("metrics_textfile", ""),
        ("run_dir", "/proc/version"), ("run_dir", "/dev/shm/" + 60 * "x"), ("run_dir", "/usr"),
    ],
)  # fmt: skip
def test_a_setting_that_is_not_allowed(name: str, value: Any) -> None:
    with pytest.raises(SettingError, match=f"^{name}: .* is not allowed; allowed: "):
        config.resolve({name: value}, {}, {})


def test_a_directory_that_others_may_enter(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert config.resolve({"run_dir": private}, {}, {}).run_dir == str(private)
    link = private / "link"
    link.symlink_to(tempfile.mkdtemp(dir=private))
    (private / "open").mkdir()
    (private / "open").chmod(0o750)
    for path in (private / "open", link):
        with pytest.raises(SettingError, match="only the service's user can enter"):
            config.resolve({"run_dir": path}, {}, {})
    monkeypatch.setattr(os, "geteuid", lambda: private.stat().st_uid + 1)
    with pytest.raises(SettingError, match="only the service's user can enter"):
        config.resolve({"run_dir": private}, {}, {})


def test_the_settings_take_effect_and_end(private: Path, tmp_path: Path) -> None:
    with fastio.patched("wait", run_dir=private, metrics_textfile=tmp_path, metrics_interval=1):
        until(lambda: list(tmp_path.glob("*.prom")) and list(private.glob("*.json")), "the files")
        with fastio.patched("wait", run_dir=None, metrics_textfile=tmp_path):
            assert not list(private.glob("*.sock"))
        assert list(private.glob("*.sock"))
    assert not list(private.glob("*.sock"))
    until(lambda: not list(tmp_path.glob("*.prom")), "the removal of the file")
