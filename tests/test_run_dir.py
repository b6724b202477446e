"""The files of ``run_dir``: of real programs, beside dead processes, other users and full disks."""

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fastio
from benchmarks.backends.base import reserved_port
from fastio import counters, exporters, run_dir
from fastio.counters import Reason
from fastio.run_dir import Files, StatusError
from tests.conftest import HAS_EVENTLET, uwsgi
from tests.eventually import until

ROOT = Path(fastio.__file__).parent.parent
GREEN = pytest.param("green", marks=pytest.mark.skipif(not HAS_EVENTLET, reason="eventlet is not installed"))
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")

#: Obeys the lines that it reads: a number of calls, "fork", or code that it runs.
PROGRAM = """
import os, select, subprocess, sys, time
look = select.select
if sys.argv[1] == "green":
    import eventlet
    eventlet.monkey_patch()
os.umask(0o027)
import fastio
from fastio import run_dir
run_dir.INTERVAL = 0.3
fastio.patch()

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
    if order == "fork":
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
    elif order.isdigit():
        for _ in range(int(order)):
            subprocess.Popen(["true"], stdout=-1, stderr=-1).communicate()
        say("done")
    else:
        say(str(eval(order)))
"""


class Program:
    """A service of one process."""

    def __init__(self, mode: str, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, mode],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1, env=env,
        )  # fmt: skip
        self.pid = int(self.line())
        self.said = ""

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def tell(self, order: object) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        return self.line()

    def end(self, sent: int | None = None) -> str:
        """End it; what it has said on standard error."""
        if sent is not None:
            self._process.send_signal(sent)
        with contextlib.suppress(BrokenPipeError, ValueError):
            self.said += self._process.communicate(timeout=100)[1]
        return self.said


@pytest.fixture
def private(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir(mode=0o755)
    return tmp_path / "run"


@pytest.fixture
def run() -> Iterator[Callable[..., Program]]:
    started: list[Program] = []
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "TEST_EVENTLET"))}

    def run(mode: str = "native", **settings: object) -> Program:
        given = {f"FASTIO_{name.upper()}": str(value) for name, value in settings.items()}
        started.append(Program(mode, {**environ, "PYTHONPATH": str(ROOT), **given}))
        return started[-1]

    yield run
    for program in started:
        program.end(signal.SIGKILL)


def counted(text: str) -> int:
    """The calls of subprocess, natively or under eventlet."""
    return sum(map(int, re.findall(r'^fastio_calls_total\{patch="(?:green_)?communicate"[^}]*\} (\d+)$', text, re.M)))


def texts(directory: Path) -> dict[int, int]:
    """The calls that Prometheus reads, by pid."""
    return {int(path.name.split("-")[2]): counted(path.read_text()) for path in directory.glob("fastio-*.prom")}


def settled(path: Path) -> Path:
    """The file, once nothing is written any more: under a hub, that goes on for a moment after the last call."""
    until(lambda: time.time() - path.stat().st_mtime > 0.8, "the last count")
    return path


def name_of(pid: int, began: str = "1") -> str:
    return f"fastio-{run_dir._namespace('self')}-{pid}-{began}"


def dead(directory: Path, numbers: range) -> None:
    """The files of processes that were killed, one of them while it wrote."""
    for number in numbers:
        for ending in (".json", ".prom" if number % 2 else ".prom.new"):
            (directory / (name_of(10**7 + number) + ending)).touch()


# Writing


@pytest.mark.parametrize("mode", ["native", GREEN])
def test_two_files_of_each_process(run: Callable[..., Program], private: Path, mode: str) -> None:
    first, second = (run(mode, run_dir=private) for _ in range(2))
    until(lambda: texts(private) == {first.pid: 0, second.pid: 0}, "the files at the start")
    dead(private, range(3))
    others = private / "notes.prom"
    others.touch()
    # Natively, a later count has the files written; under a hub, time does.
    until(lambda: first.tell(1) and texts(private)[first.pid] > 2, "the counts")
    if mode == "green":
        calls = int(first.tell("fastio.metrics().patches['green_communicate'].calls"))
        until(lambda: texts(private)[first.pid] == calls, "the last count")
    until(lambda: second.tell(1) and not list(private.glob("*-1000000*")), "the removal of files of dead processes")
    assert {path.stat().st_mode & 0o777 for path in private.glob("fastio-*.prom")} == {0o644}
    assert {path.stat().st_mode & 0o777 for path in private.glob("fastio-*.json")} == {0o600}
    first.end(signal.SIGKILL)
    until(lambda: second.tell(1) and first.pid not in texts(private), "the removal of those of the killed one")
    name = "communicate" if mode == "native" else "green_communicate"
    calls = int(second.tell(f"fastio.metrics().patches[{name!r}].calls"))
    (path,) = private.glob(f"fastio-*-{second.pid}-*.prom")
    assert f'fastio_patch_state{{patch="{name}",state="in effect",' in path.read_text()
    assert second.end() == ""
    assert texts(private)[second.pid] == calls and "fastio_patch_state{" not in path.read_text()
    assert len(list(private.iterdir())) == 3 and others.exists()


@pytest.mark.parametrize("mode", ["native", GREEN])
def test_a_forked_child_has_separate_files(run: Callable[..., Program], private: Path, mode: str) -> None:
    parent = run(mode, run_dir=private)
    until(lambda: parent.tell(1) and texts(private).get(parent.pid, 0) >= 2, "the parent's files")
    (its,) = private.glob(f"*-{parent.pid}-*.json")
    said = {int(parent.tell("fork")), int(parent.line())}
    child = max(said)
    before = settled(its).stat()
    # The child reads from a pipe, whose other end its parent has.
    parent.tell(f"os.write({min(said)}, b'1\\n')")
    until(lambda: texts(private).get(child) == 1, "the child's files")
    parent.tell(f"os.close({min(said)})")
    until(lambda: not run_dir.start(child), "the end of the child")
    assert its.stat().st_mtime == before.st_mtime and its.stat().st_ino == before.st_ino


def test_ten_thousand_dead_processes_delay_none(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead(private, range(10_000))
    kept = [private / f"{name_of(os.getpid(), run_dir.start('self'))}.{number}" for number in range(5)]
    kept += [private / "README", private / (name_of(1, run_dir.start(1)) + ".json")]
    for path in kept:
        path.touch()
    calls: list[str] = []
    files = Files(str(private))

    def counting(function: Callable[..., Any], *args: Any) -> Any:
        calls.append(function.__name__)
        return function(*args)

    monkeypatch.setattr(run_dir.offload, "run", counting)
    turns = 0
    while len(list(private.iterdir())) > len(kept) + 2:
        calls.clear()
        files.write()
        turns += 1
        assert calls.count("unlinkat") <= run_dir.REMOVALS + 2 and calls.count("getdents64") <= run_dir.LOOKS
        assert len(calls) <= run_dir.REMOVALS + run_dir.LOOKS + 20
        assert turns < 20_000 / run_dir.REMOVALS + 20
    assert all(path.exists() for path in kept)


def test_files_of_other_containers_stay_for_an_hour(private: Path) -> None:
    old, new = private / "fastio-1-2-3.json", private / "fastio-1-2-4.json.new"
    for path in (old, new):
        path.touch()
    os.utime(old, (time.time() - run_dir.STALE - 10,) * 2)
    Files(str(private)).write()
    assert not old.exists() and new.exists()


def test_no_descriptor_is_kept(run: Callable[..., Program], private: Path) -> None:
    """A daemon closes all descriptors, and opens its own files in their place."""
    program = run(run_dir=private)
    until(lambda: texts(private), "the files")
    assert program.tell("sorted(os.listdir('/proc/self/fd'))") == "['0', '1', '2', '3']"
    program.tell("os.closerange(3, 100)")
    own = private.parent / "own"
    program.tell(f"[os.open({str(own)!r}, os.O_CREAT | os.O_RDWR) for _ in range(20)]")
    until(lambda: program.tell(1) and texts(private)[program.pid] > 2, "the counts")
    program.end()
    assert own.read_bytes() == b""


@pytest.mark.skipif(not HAS_EVENTLET, reason="eventlet is not installed")
def test_a_disk_that_does_not_answer_holds_no_hub(run_python: Callable[..., Any], private: Path) -> None:
    code = """
    import os, sys
    from _queue import SimpleQueue
    import eventlet
    eventlet.monkey_patch()
    import fastio
    from eventlet.green import subprocess
    from fastio.io import libc
    asked, never = [], SimpleQueue()
    def hangs(directory, name, flags, mode=0):
        asked.append(name)
        return never.get,
    libc.open_at = hangs
    eventlet.sleep(0)
    fastio.patch("green_communicate", run_dir=sys.argv[1])
    # A hub that waited for the call would never come back.
    while not asked:
        eventlet.sleep(0.01)
    subprocess.Popen(["true"], stdout=-1).communicate()
    for _ in range(20):
        eventlet.sleep(0.001)
    print("others run", flush=True)
    os._exit(0)
    """
    assert run_python(code, str(private), options=("-W", "ignore")).stdout == "others run\n"


@pytest.mark.parametrize("kind", ["writable", "link", "file", "foreign"])
def test_a_directory_that_others_could_change_is_not_used(
    kind: str, private: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    used = private / "used"
    if kind == "link":
        (private / "elsewhere").mkdir()
        used.symlink_to("elsewhere")
    elif kind == "file":
        used.touch()
    else:
        used.mkdir()
        used.chmod(0o777 if kind == "writable" else 0o755)
    if kind == "foreign":
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        monkeypatch.setattr(run_dir.posix, "fstat", lambda fd: os.stat_result((0o40755, 0, 0, 0, 77, *5 * [0])))
    files = Files(str(used))
    for _ in range(3):
        files.write()
    (record,) = caplog.records
    assert record.getMessage().startswith(f"fastio: run_dir: {used}: ")
    assert kind == "file" or not list(private.rglob("fastio-*"))
    if kind == "writable":
        used.chmod(0o1777)
        files.write()
        assert len(list(used.iterdir())) == 2


@pytest.mark.parametrize("quicker", [False, True])
def test_links_are_not_followed(quicker: bool, private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = private.parent / "target"
    target.write_text("kept")
    for kind in (".json", ".prom"):
        (private / (run_dir._name() + kind)).symlink_to(target)
        (private / (run_dir._name() + kind + ".new")).symlink_to(target)
    if quicker:
        # Another user puts the links there again before the files are created.
        monkeypatch.setattr(run_dir, "_unlink", lambda *_: None)
    Files(str(private)).write()
    assert target.read_text() == "kept"
    assert [path.is_symlink() for path in private.iterdir()] == ([True] * 4 if quicker else [False, False])


def test_a_full_disk_is_logged_once(run: Callable[..., Program], private: Path) -> None:
    program = run(run_dir=private)
    until(lambda: program.tell(1) and texts(private)[program.pid] > 1, "the files")
    program.tell("__import__('signal').signal(25, __import__('signal').SIG_IGN)")
    limits = resource.prlimit(program.pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    time.sleep(0.4)
    before = texts(private)
    for _ in range(3):
        assert program.tell(1) == "done"
        time.sleep(0.4)
    assert texts(private) == before and len(list(private.iterdir())) == 2
    resource.prlimit(program.pid, resource.RLIMIT_FSIZE, limits)
    until(lambda: program.tell(1) and texts(private)[program.pid] > before[program.pid] + 3, "the files")
    (line,) = program.end().splitlines()
    assert line == f"fastio: run_dir: {private}: OSError: [Errno 27] File too large"


def test_the_settings_take_effect_and_end(private: Path) -> None:
    other = private / "new" / "other"
    with fastio.patched("wait", run_dir=private):
        assert {path.suffix for path in private.iterdir()} == {".json", ".prom"}
        with fastio.patched("wait", run_dir=other):
            assert list(private.glob("fastio-*")) == [] and len(list(other.iterdir())) == 2
        assert list(other.iterdir()) == [] and len(list(private.glob("fastio-*"))) == 2
    assert list(private.glob("fastio-*")) == []
    assert counters.wake is None


@pytest.mark.parametrize("command", [["status"], ["check"]])
def test_commands_that_only_report_write_nothing(command: list[str], private: Path) -> None:
    made = {f"FASTIO_{name}": str(private / name) for name in ("RUN_DIR", "TRACE")}
    env = {**os.environ, **made, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "fastio", *command], env=env, capture_output=True)
    assert done.returncode in (0, 1), done.stderr
    assert list(private.iterdir()) == []


UWSGI = """
import os, subprocess, uwsgi
from fastio import run_dir
run_dir.INTERVAL = 0
def call():
    subprocess.Popen(["true"], stdout=-1, stderr=-1).communicate()
# That of the master, before it forks, is not the workers'.
if uwsgi.worker_id() == 0:
    call()
def application(environ, start_response):
    call()
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]
"""


@pytest.fixture
def port() -> Iterator[int]:
    """Return a reserved port that uWSGI can listen on."""
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

    def get() -> str:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
        try:
            connection.request("GET", "/")
            return connection.getresponse().read().decode()
        except ConnectionError:
            return ""
        finally:
            connection.close()

    nowhere = subprocess.DEVNULL
    environ |= {"FASTIO_RUN_DIR": str(private)}
    server = subprocess.Popen(command, env=environ, stdout=nowhere, stderr=nowhere, start_new_session=True)
    try:
        workers = {int(until(get, "the server")): 1}
        while len(workers) < 2 or sum(workers.values()) < 10:
            pid = int(get())
            workers[pid] = workers.get(pid, 0) + 1
        for pid, calls in workers.items():
            found = run_dir.read(pid)
            assert (found["metrics"]["pid"], found["metrics"]["patches"]["communicate"]["calls"]) == (pid, calls)
        assert {pid: texts(private)[pid] for pid in workers} == workers
    finally:
        # A worker that has just been begun anew may not hear of a gentler one.
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(100)


# Reading


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
    name = "communicate" if mode == "native" else "green_communicate"
    program.tell(2)
    until(lambda: program.tell(1) and texts(directory).get(program.pid, 0) > 2, "the counts")
    settled(next(directory.glob("*.prom")))
    calls = texts(directory)[program.pid]
    done = status("--pid", program.pid, "--json")
    assert done.stderr == "" and done.returncode == 0
    found = json.loads(done.stdout)
    assert found["metrics"]["patches"][name]["calls"] == calls and time.time() - found["written"] < 60
    assert found["settings"]["chunk_size"] == {"value": 96 * 1024, "source": "environment FASTIO_CHUNK_SIZE"}
    assert (name, "applied") in {(each["name"], each["outcome"]) for each in found["patches"]}
    text = status("--pid", program.pid).stdout
    assert re.search(r"^chunk_size +96 KiB +environment FASTIO_CHUNK_SIZE$", text, re.M)
    assert re.search(rf"^{name} +{calls} +\d+ *$", text, re.M) and re.search(r"^Written \d+ s ago\.$", text, re.M)
    only = status("--pid", program.pid, "--patch", name).stdout
    assert re.search(rf"^{name} +{calls} ", only, re.M) and "oslo_spawn" not in only
    sums = status("--run-dir", directory)
    assert sums.stdout.startswith("1 processes\n") and re.search(rf"^{name} +{calls} ", sums.stdout, re.M)


def test_late_imports_reach_the_status(run: Callable[..., Program], private: Path) -> None:
    pytest.importorskip("requests")
    program = run(run_dir=private)
    until(lambda: texts(private), "the files")

    def outcome() -> str:
        report = run_dir.read(program.pid)["report"]
        return next(each["outcome"] for each in report["patches"] if each["name"] == "urllib3_blocks")

    assert outcome() == "waiting for import"
    program.tell("__import__('requests') and 1")
    until(lambda: program.tell(1) and outcome() == "applied", "the new status")


def test_a_process_without_a_file(run: Callable[..., Program], private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = run()
    for arguments, said in (
        ([], f"process {program.pid}: its run_dir is not known; give it with --run-dir or FASTIO_RUN_DIR"),
        (["--run-dir", private], f"process {program.pid} has no file in {private}: it was started without"),
    ):
        done = status("--pid", program.pid, *arguments)
        assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(f"fastio: {said}")
    with monkeypatch.context() as patch:
        patch.setattr(os, "readlink", lambda *_: (_ for _ in ()).throw(PermissionError()))
        with pytest.raises(StatusError, match=f"only the user of process {program.pid}, and root, can read"):
            run_dir.read(program.pid)
    program.end(signal.SIGKILL)
    done = status("--pid", program.pid)
    assert (done.returncode, done.stderr) == (2, f"fastio: there is no process {program.pid}\n")
    assert status("--pid", 0).returncode == 2


def fake(directory: Path, kind: str) -> Path:
    """Another user's object in the place of this process's file."""
    path = directory / (run_dir._name() + ".json")
    Files(str(directory)).write()
    right = json.loads(path.read_bytes())
    if kind == "link":
        path.rename(directory / "elsewhere")
        path.symlink_to("elsewhere")
    elif kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif kind == "foreign":
        os.chown(path, 12345, 12345)
    else:
        text = {
            "large": json.dumps({**right, "more": "x" * run_dir.MOST_BYTES}),
            "deep": "[" * 100_000,
            "binary": "\0\xff",
            "digits": "9" * 10_000,
            "other release": json.dumps({**right, "report": {"versions": {}}}),
            "list": "[]",
        }[kind]
        path.write_text(text)
    return path


@pytest.mark.parametrize(
    "kind",
    ["link", "pipe", "large", "deep", "binary", "digits", "other release", "list",
     pytest.param("foreign", marks=AS_ROOT)],
)  # fmt: skip
def test_files_that_no_process_has_written_are_not_read(kind: str, private: Path) -> None:
    path = fake(private, kind)
    with pytest.raises(StatusError, match=f"^'{re.escape(str(path))}' (is not used|cannot be read): "):
        run_dir.read(os.getpid(), str(private))
    found, skipped = run_dir.read_all(str(private))
    assert found == [] and skipped[-1].startswith(f"'{path}' ")


def test_the_sums_skip_foreign_files_with_a_word(private: Path) -> None:
    with pytest.raises(StatusError, match="run_dir: .*No such file"):
        run_dir.read_all(str(private / "missing"))
    assert run_dir.read_all(str(private)) == ([], [])
    Files(str(private)).write()
    dead(private, range(2))
    (private / "notes\33[2J.txt").touch()
    (private / (name_of(1, run_dir.start(1)) + ".json")).write_text("{}")
    done = status("--run-dir", private)
    assert done.returncode == 0 and done.stdout.startswith("1 processes\n") and "\33" not in done.stdout
    assert re.findall(r"^'.*(is not .*)$", done.stdout, re.M) == [
        "is not used: no release of fastio like this one has written it", "is not fastio's",
    ]  # fmt: skip
    assert json.loads(status("--run-dir", private, "--json").stdout)["processes"] == 1


def test_no_escape_sequence_reaches_the_terminal(private: Path) -> None:
    Files(str(private)).write()
    path = private / (run_dir._name() + ".json")
    data = json.loads(path.read_bytes())
    data["report"]["notes"] = ["\33[2Jgone\r\nfastio: 99 in effect \u202e"]
    path.write_text(json.dumps(data))
    text = status("--pid", os.getpid(), "--run-dir", private).stdout
    assert "\33" not in text and "\\x1b[2Jgone\\r\\nfastio: 99 in effect \\u202e" in text


# Prometheus and OpenTelemetry


def test_the_text_for_prometheus() -> None:
    """The families one after the other, each with its type, and each series once."""
    counters.reset()
    counters.of("wait").took()
    counters.of("wait").moved(7)
    counters.of("wait").fell_back(Reason.HUB)
    lines = fastio.metrics().to_prometheus().splitlines()
    assert [line.split()[2] for line in lines if line.startswith("# TYPE")] == list(exporters.FAMILIES)
    series = [line for line in lines if not line.startswith("#")]
    for line in series:
        assert re.fullmatch(r'[a-z_]+\{([a-z]+="[^"\\]*",)*pid="\d+"\} [\d.]+', line), line
    assert len({line.rpartition(" ")[0] for line in series}) == len(series)
    pid = f'pid="{os.getpid()}"'
    assert f'fastio_calls_total{{patch="wait",{pid}}} 1' in lines
    assert f'fastio_bytes_total{{patch="wait",{pid}}} 7' in lines
    assert f'fastio_fallbacks_total{{patch="wait",reason="hub",{pid}}} 1' in lines
    # A count of zero is left out.
    assert 'fastio_calls_total{patch="communicate"' not in "\n".join(lines) and not any(
        line.endswith(" 0") for line in series
    )
    states = {patch.name: patch.word for patch in fastio.status().patches()}
    told = dict(
        re.findall(r'^fastio_patch_state\{patch="(\w+)",state="([a-z ]+)",pid="\d+"\} 1$', "\n".join(lines), re.M)
    )
    assert told == {name: word for name, word in states.items() if word not in ("off", "absent")}
    assert fastio.metrics().to_dict()["patches"]["wait"] == {"calls": 1, "bytes": 7, "fallbacks": {"hub": 1}}


OPENTELEMETRY = """
import json, os, subprocess, sys
import fastio
fastio.patch()
assert "opentelemetry" not in sys.modules
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
fastio.unpatch()
print(json.dumps([os.getpid(), found, gather()]))
"""


def test_opentelemetry(run_python: Callable[..., Any]) -> None:
    pytest.importorskip("opentelemetry.sdk.metrics")
    pid, found, after = json.loads(run_python(OPENTELEMETRY).stdout)
    counts = {
        (name, *sorted(attributes.items())): (unit, monotonic, value)
        for name, unit, monotonic, value, attributes in found
    }
    own = ("process.pid", pid)
    assert counts["fastio.calls", ("patch", "communicate"), own] == ("{call}", True, 2)
    assert counts["fastio.bytes", ("patch", "communicate"), own] == ("By", True, 2)
    assert counts["fastio.io", own, ("what", "exchanges")][2] == 2
    assert after == []
    assert json.loads(run_python(OPENTELEMETRY, env={"FASTIO": "0"}).stdout)[1:] == [[], []]


def test_an_opentelemetry_of_another_kind_is_left_alone(run_python: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "opentelemetry").mkdir()
    (tmp_path / "opentelemetry" / "metrics.py").touch()
    code = "import fastio; fastio.patch('wait'); import opentelemetry.metrics; print('imported')"
    done = run_python(code, path=(str(tmp_path),))
    assert done.stdout == "imported\n" and "fastio: no counters for OpenTelemetry: AttributeError" in done.stderr
