"""What a hostile candidate can do: nothing beyond its sandbox, and what is said where there is none."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.engine import ROOT, Options
from benchmarks.tools import pythons
from benchmarks.tools.upstream import environment
from benchmarks.tools.upstream.runner import Launcher, Runner, clean_environment
from benchmarks.tools.upstream.suites import Suite
from benchmarks.validate import isolation as isolated
from benchmarks.validate import projects
from benchmarks.validate.environments import Environment
from benchmarks.validate.errors import ValidateError
from benchmarks.validate.isolation import bubblewrap, measuring
from benchmarks.validate.isolation.bubblewrap import Bubblewrap, Refused, SandboxLauncher
from benchmarks.validate.isolation.limits import LIMITS, Limits
from benchmarks.validate.state import State
from benchmarks.validate.variants import CANDIDATE, STOCK, Variant
from tests.benchmarks.validate.test_diffs import write

#: Kept low, so that a test that fails does no harm either. No process of a sandbox needs more.
SMALL = Limits(memory=512 << 20, processes=64, file_size=1 << 20, cpu_seconds=60, temporary=1 << 20)


def sandboxes(cache: Path, limits: Limits = LIMITS) -> Bubblewrap:
    cache.mkdir(exist_ok=True)
    try:
        return bubblewrap.make([pythons.find("")], cache, [], limits)
    except Refused as refused:
        pytest.skip(str(refused))


def of(tmp_path: Path, name: str = CANDIDATE) -> Variant:
    """A variant whose environment has nothing in it."""
    directory = tmp_path / "cache" / name
    directory.mkdir(parents=True, exist_ok=True)
    return Variant(name, Environment(directory), "1.0", None)


def start(launcher: Launcher, tmp_path: Path, code: str, *arguments: object, **options: Any) -> Any:
    """A process of this Python in a directory of its own, which it may write to."""
    own = tmp_path / "own"
    own.mkdir(exist_ok=True)
    command = [sys.executable, "-I", "-c", textwrap.dedent(code), *map(str, arguments)]
    env = {**clean_environment(), "TMPDIR": str(own)}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **options}
    return launcher.start(command, own, env, readable=[], writable=[own], **pipes)


def said(launcher: Launcher, tmp_path: Path, code: str, *arguments: object) -> str:
    with start(launcher, tmp_path, code, *arguments) as process:
        return process.communicate()[0].decode().strip()


@pytest.fixture
def sandbox(tmp_path):
    return sandboxes(tmp_path / "cache").launcher(of(tmp_path))


def limited(tmp_path: Path, limits: Limits) -> SandboxLauncher:
    # A user id that no other run of these tests has: its processes are counted.
    return SandboxLauncher(sandboxes(tmp_path / "cache", limits), 40_000 + os.getpid() % 10_000, [])


@pytest.fixture
def small(tmp_path):
    return limited(tmp_path, SMALL)


ATTEMPT = """
    import sys
    try:
        print("did", attempt(*sys.argv[1:]))
    except OSError as error:
        print(type(error).__name__)
"""
READ = """
    def attempt(path):
        return open(path).read()
"""
WRITE = """
    def attempt(path):
        return open(path, "w").write("mine")
"""
CONNECT = """
    import socket
    def attempt(port):
        return socket.create_connection(("127.0.0.1", int(port)), 60).getpeername()[0]
"""
CONNECT_BY_NAME = """
    import socket
    def attempt(name):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(60)
            return client.connect("\\0" + name)
"""
SIGNAL = """
    import os
    def attempt(pid):
        return os.kill(int(pid), 0)
"""


def attempts(launcher, tmp_path, code, *arguments):
    return said(launcher, tmp_path, textwrap.dedent(code) + textwrap.dedent(ATTEMPT), *arguments)


def both(sandbox, tmp_path, code, *arguments):
    """What became of it as this user, and in the sandbox."""
    return [attempts(launcher, tmp_path, code, *arguments) for launcher in (Launcher(), sandbox)]


def test_a_file_of_the_callers_is_not_read(sandbox, tmp_path):
    secret = tmp_path / "home" / "secret"
    write(secret.parent, {"secret": "the password"})
    secret.chmod(0o644)
    assert both(sandbox, tmp_path, READ, secret) == ["did the password", "FileNotFoundError"]
    # Of this checkout there is no more than what runs.
    names = said(sandbox, tmp_path, "import os, sys; print(*os.listdir(sys.argv[1]))", ROOT).split()
    assert {"benchmarks", "fastio"} <= set(names) and not {".git", "tests", "results"} & set(names)


@pytest.mark.parametrize("place", ["outside", "cache/candidate/file", "cache/other"])
def test_nothing_is_written_outside_of_its_directory(sandbox, tmp_path, place):
    path = tmp_path / place
    assert attempts(Launcher(), tmp_path, WRITE, path) == "did 4"
    path.unlink()
    # A file of that name in the sandbox's own /tmp may be.
    attempts(sandbox, tmp_path, WRITE, path)
    assert not path.exists()
    for each in (tmp_path / "cache" / CANDIDATE / "file", ROOT / "fastio" / "file", "/usr/file", "/file"):
        assert attempts(sandbox, tmp_path, WRITE, each) in ("OSError", "PermissionError")
    # Only its own directory is the caller's as well; /tmp is there, and goes with it.
    assert attempts(sandbox, tmp_path, WRITE, tmp_path / "own" / "file") == "did 4"
    assert (tmp_path / "own" / "file").read_text() == "mine"
    mark = f"/tmp/of-a-sandbox-{os.getpid()}"
    assert attempts(sandbox, tmp_path, WRITE, mark) == "did 4" and not os.path.exists(mark)


def test_no_listener_of_the_machines_is_reached(sandbox, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert both(sandbox, tmp_path, CONNECT, port) == ["did 127.0.0.1", "ConnectionRefusedError"]
    name = f"isolation-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        assert both(sandbox, tmp_path, CONNECT_BY_NAME, name) == ["did None", "ConnectionRefusedError"]


def test_loopback_is_there(sandbox, tmp_path):
    code = """
        import socket
        with socket.create_server(("127.0.0.1", 0)) as server:
            with socket.create_connection(server.getsockname()) as client:
                server.accept()[0].sendall(b"hi")
                print(client.recv(2), socket.gethostbyname("localhost"), socket.gethostbyname(socket.gethostname()))
    """
    assert said(sandbox, tmp_path, code) == "b'hi' 127.0.0.1 127.0.0.1"


def test_no_process_of_the_machines_is_seen(sandbox, tmp_path):
    assert both(sandbox, tmp_path, SIGNAL, os.getpid()) in (
        ["did None", "ProcessLookupError"], ["did None", "PermissionError"]
    )  # fmt: skip
    code = "import os; print(len([each for each in os.listdir('/proc') if each.isdecimal()]))"
    assert said(sandbox, tmp_path, code) == "2"


def test_no_secret_is_in_the_environment(sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "the password")
    monkeypatch.setenv("FASTIO_PIPE_SIZE", "1MiB")
    code = "import os; print('SOME_TOKEN' in os.environ)"
    assert [said(launcher, tmp_path, code) for launcher in (Launcher(), sandbox)] == ["True", "False"]
    # Nor in that of bwrap, which is the only other process there.
    code = """
        import os
        files = [f"/proc/{pid}/environ" for pid in os.listdir("/proc") if pid.isdecimal()]
        print(len(files), any(b"SOME_TOKEN" in open(file, "rb").read() for file in files if os.access(file, os.R_OK)))
    """
    assert said(sandbox, tmp_path, code) == "2 False"
    names = ("FASTIO_PIPE_SIZE", "HOME", "USER", "TMPDIR")
    code = f"import os, pwd; print(*map(os.environ.get, {names}), pwd.getpwuid(os.getuid()).pw_name)"
    assert said(sandbox, tmp_path, code) == f"1MiB /tmp isolated {tmp_path / 'own'} isolated"


def test_it_is_another_user_without_rights(sandbox, tmp_path):
    code = """
        import os
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        print(os.getuid(), os.getgroups(), int(status["CapPrm"], 16), int(status["CapEff"], 16), status["NoNewPrivs"])
    """
    uid, *rest = said(sandbox, tmp_path, code).split(maxsplit=1)
    assert int(uid) == bubblewrap.UIDS[CANDIDATE] != os.getuid()
    if os.getuid() == 0:
        assert rest == ["[] 0 0 \t1"]
        # Nobody else is that user.
        assert (tmp_path / "own").stat().st_uid == int(uid)


FORKS = """
    import os, signal
    forked = 0
    try:
        while forked < 1000:
            if not os.fork():
                signal.pause()
            forked += 1
    except BlockingIOError:
        pass
    print(forked)
"""
EATS = """
    import sys
    held = []
    try:
        while len(held) < 20:
            held.append(bytearray(64 << 20))
        print("had all")
    except MemoryError:
        print("no more")
"""
FILLS = """
    import sys
    try:
        with open(sys.argv[1], "wb") as file:
            file.write(bytes(3 << 20))
    except OSError as error:
        print(error.strerror)
"""


def test_it_can_not_fork_without_end(small, tmp_path):
    assert 0 < int(said(small, tmp_path, FORKS)) < SMALL.processes


def test_it_can_not_eat_all_memory(small, tmp_path):
    assert said(small, tmp_path, EATS) == "no more"
    # Nor by files in memory.
    for place in ("/tmp/file", "/dev/shm/file"):
        assert said(small, tmp_path, FILLS, place) in ("No space left on device", "File too large")


def test_its_files_have_an_end(small, tmp_path):
    assert said(small, tmp_path, FILLS, "file") == "File too large"
    assert (tmp_path / "own" / "file").stat().st_size <= SMALL.file_size


def test_its_time_has_an_end(tmp_path):
    with start(limited(tmp_path, replace(SMALL, cpu_seconds=1)), tmp_path, "while True: pass") as process:
        process.communicate()
    assert process.returncode in (128 + signal.SIGXCPU, 128 + signal.SIGKILL)


def test_the_kernel_would_end_it_first(sandbox, tmp_path):
    assert said(sandbox, tmp_path, "print(open('/proc/self/oom_score_adj').read())") == "1000"


def test_what_it_has_started_ends_with_it(sandbox, tmp_path):
    code = """
        import os, signal
        if not os.fork():
            os.setsid()
            signal.pause()
        print("there", flush=True)
        signal.pause()
    """
    with start(sandbox, tmp_path, code) as process:
        assert process.stdout.readline() == b"there\n"
        process.kill()
        # Its end is when nobody has the pipe any more.
        assert process.stdout.read() == b""


def test_a_signal_is_for_the_command(sandbox, tmp_path):
    code = """
        import os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        os.write(1, b"there\\n")
        signal.sigwait({signal.SIGUSR1})
        os.write(1, b"heard\\n")
    """
    with start(sandbox, tmp_path, code) as process:
        assert process.stdout.readline() == b"there\n"
        sandbox.signal(process, signal.SIGUSR1)
        assert process.communicate()[0] == b"heard\n"
    # Of one that has ended nothing is asked.
    sandbox.signal(process, signal.SIGUSR1)


def test_links_lead_only_where_sources_are(tmp_path):
    made = sandboxes(tmp_path / "cache")
    write(tmp_path, {"cache/sources/tests/one.py": "print('the release')", "home/one.py": "print('the password')"})
    candidate = of(tmp_path)
    tests = candidate.environment.directory / "upstream"
    tests.mkdir()
    (tests / "tests").symlink_to(tmp_path / "cache" / "sources" / "tests")
    (tests / "other").symlink_to(tmp_path / "home")
    own = tmp_path / "own"
    own.mkdir()
    for name, expected in (("tests", "the release\n"), ("other", "")):
        process = made.launcher(candidate).start(
            [sys.executable, "-I", str(tests / name / "one.py")], own, clean_environment(), readable=[tests],
            writable=[own], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert process.communicate()[0] == expected


SUITE = """
    import os, signal, threading, unittest

    class Some(unittest.TestCase):
        def test_passes(self):
            with open(os.path.join(os.environ["TMPDIR"], "file"), "w") as file:
                file.write("own")
            with open("file", "w") as file:
                file.write("own")

        def test_hangs(self):
            threading.Event().wait()

        def test_replaces_what_the_parent_reads(self):
            for name in ("events", "trace"):
                path = os.path.join(os.environ["TMPDIR"], "..", name)
                self.assertRaises(OSError, os.unlink, path)
                self.assertRaises(OSError, os.rename, os.path.join(os.environ["TMPDIR"], "file"), path)
"""


def test_a_suite_is_run_there_as_elsewhere(tmp_path):
    made = sandboxes(tmp_path / "cache")
    python = environment.create(tmp_path / "cache" / CANDIDATE)
    tests = write(tmp_path / "cache" / CANDIDATE / "upstream", {"some_test.py": textwrap.dedent(SUITE)})
    suite = Suite("some", ("some_test",), env={"PYTHONPATH": str(tests)}, find=lambda: None)
    run = Runner(python, 4, launcher=made.launcher(of(tmp_path))).run(suite, patched=False)
    outcomes = {test.rpartition(".")[2]: each.outcome for test, each in run.tests.items()}
    assert outcomes == {
        "test_passes": "pass", "test_hangs": "hang", "test_replaces_what_the_parent_reads": "pass"
    }, run.tests  # fmt: skip


def environments(tmp_path):
    """Stock and a candidate, which have what this environment has."""
    found = []
    for name in (STOCK, CANDIDATE):
        directory = tmp_path / "cache" / name
        environment.create(directory)
        write(directory, {"complete.json": "{}"})
        found.append(Variant(name, Environment(directory), "1.0", None))
    return found


def test_benchmarks_are_run_there(tmp_path, capfd, monkeypatch):
    # As in the process that the command starts.
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    made = sandboxes(tmp_path / "cache")
    variants = environments(tmp_path)
    cases = projects.EVENTLET.choose_cases(["input/popen-16MiB"])
    state, options = State(tmp_path / "state"), Options(rounds=1, size=1 << 16)
    result = measuring.run(made.launcher(*variants), cases, variants, ["native"], options, state, "py")
    (case,) = result.cases
    assert case.name == "input/popen-16MiB" and case.complete
    assert {title: row.failure for title, row in case.variants.items()} == {
        "native-stock": None, "native-candidate": None
    }  # fmt: skip
    assert all(row.verified() and len(row.measured()) == 1 for row in case.variants.values())
    assert "native-candidate" in capfd.readouterr().err
    # What was kept is not run again.
    again = measuring.run(made.launcher(*variants), cases, variants, ["native"], options, state, "py")
    assert [each.variants for each in again.cases] == [case.variants]
    assert "native-candidate" not in capfd.readouterr().err


class Says(Launcher):
    """Runs another program than what it is given."""

    def __init__(self, code):
        self._code = code

    def start(self, command, directory, env, *, readable, writable, **options):
        return subprocess.Popen([sys.executable, "-c", self._code], start_new_session=True, **options)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('nonsense')", "no result"),
        ("import json; print(json.dumps('{}'))", "no result"),
        ("import sys; sys.stderr.write('\\33[2J why\\n'); sys.exit(3)", r"exit status 3: \?\[2J why"),
    ],
)
def test_what_is_no_result_is_an_error(tmp_path, capfd, code, message):
    cases = projects.EVENTLET.choose_cases(["input/popen-16MiB"])
    variants = environments(tmp_path)
    with pytest.raises(ValidateError, match=message):
        measuring.run(Says(code), cases, variants, ["native"], Options(), State(tmp_path / "state"), "py")
    assert "\33" not in capfd.readouterr().err


@pytest.fixture
def bwrap(tmp_path, monkeypatch):
    """Let this be bwrap; without a text there is none."""
    which = shutil.which

    def is_now(text=""):
        program = tmp_path / "bwrap"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        found = str(program) if text else None
        monkeypatch.setattr(shutil, "which", lambda name, *rest, **named: (
            found if name == "bwrap" else which(name, *rest, **named)
        ))  # fmt: skip

    return is_now


MISSING = "bwrap is not installed (apt-get install bubblewrap)"
REFUSED = "echo 'bwrap: No permissions to create new namespace' >&2; exit 1"


@pytest.mark.parametrize(
    ("program", "reason"), [("", MISSING), (REFUSED, "bwrap: No permissions to create new namespace")]
)
def test_where_there_can_be_no_sandbox(bwrap, tmp_path, program, reason):
    bwrap(program)
    found = isolated.choose("auto", [pythons.find("")], tmp_path / "cache", [])
    assert (found.name, found.to_dict()["used"]) == ("none", "none")
    assert reason in found.reason == found.to_dict()["reason"]
    line = found.line(candidate=True, installed=True)
    user = isolated.user_name()
    assert line.startswith(f"isolation: none, so the candidate's code ran as this user ({user}) with this network: ")
    assert reason in line and "\n" not in line
    assert "so what is compared ran as this user" in found.line(candidate=False, installed=False)
    with pytest.raises(ValidateError) as error:
        isolated.choose("bubblewrap", [pythons.find("")], tmp_path / "cache", [])
    said = str(error.value)
    assert said.startswith("--isolation bubblewrap: ") and reason in said
    assert "allowed are auto, bubblewrap, none" in said


def test_what_is_said_of_a_sandbox(tmp_path):
    found = isolated.Isolation("auto", sandboxes(tmp_path / "cache"))
    line = found.line(candidate=True, installed=False)
    assert line.startswith("isolation: bubblewrap ") and "no network" in line and "outside" not in line
    assert "at most 4096 processes, each with 8 GiB of memory, 3600 s of CPU time and files of 2 GiB" in line
    assert "outside, as this user" in found.line(candidate=True, installed=True)
    assert found.to_dict()["limits"] == vars(LIMITS)
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    # Asked for none, none is tried.
    assert isolated.choose("none", [], tmp_path, []).reason == "--isolation none was asked for"
