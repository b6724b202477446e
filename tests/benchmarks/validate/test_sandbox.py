"""The reach of a hostile candidate: nothing beyond its sandbox; and the report where there is none."""

import json
import os
import shutil
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.engine import ROOT, Options
from benchmarks.tools import pythons
from benchmarks.tools.pythons import Python
from benchmarks.tools.upstream import environment
from benchmarks.tools.upstream.runner import Launcher, Runner, clean_environment
from benchmarks.tools.upstream.suites import Suite
from benchmarks.validate import measuring, projects, sandbox
from benchmarks.validate.environments import CANDIDATE, STOCK, Environment, Variant
from benchmarks.validate.errors import ValidateError
from benchmarks.validate.sandbox import Bubblewrap, Refused, SandboxLauncher
from tests.benchmarks.validate.test_diffs import write


def sandboxes() -> Bubblewrap:
    try:
        return Bubblewrap(pythons.find(""))
    except Refused as refused:
        pytest.skip(str(refused))


@pytest.fixture
def launcher(tmp_path: Path) -> SandboxLauncher:
    """For a candidate whose environment has nothing in it."""
    (tmp_path / CANDIDATE).mkdir()
    return SandboxLauncher(sandboxes(), Variant(CANDIDATE, Environment(tmp_path / CANDIDATE), "1.0", None))


def start(launcher: Launcher, tmp_path: Path, code: str, *arguments: object, **options: Any) -> Any:
    """A process of this Python in a directory of its run, which it may write to."""
    own = tmp_path / "own"
    own.mkdir(exist_ok=True)
    command = [sys.executable, "-I", "-c", textwrap.dedent(code), *map(str, arguments)]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **options}
    env = {**clean_environment(), "TMPDIR": str(own)}
    return launcher.start(command, own, env, readable=[], writable=[own], **pipes)


def said(launcher: Launcher, tmp_path: Path, code: str, *arguments: object) -> str:
    with start(launcher, tmp_path, code, *arguments) as process:
        return process.communicate()[0].decode().strip()


READ = "print(open(sys.argv[1]).read())"
WRITE = "print(open(sys.argv[1], 'w').write('mine'))"
CONNECT = "print(socket.create_connection(('127.0.0.1', int(sys.argv[1])), 60).getpeername()[0])"
CONNECT_BY_NAME = "print(socket.socket(socket.AF_UNIX).connect('\\0' + sys.argv[1]))"
SIGNAL = "print(os.kill(int(sys.argv[1]), 0))"
#: Of the session's keyring, which a login shell has its secrets in.
KEYRING = """
import ctypes, platform
number = {"x86_64": 250, "aarch64": 219}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(number, 6, int(sys.argv[1]), 0, 0) < 0:
    raise OSError(ctypes.get_errno(), "keyctl")
print("described")
"""


def attempt(launcher: Launcher, tmp_path: Path, code: str, *arguments: object) -> str:
    """Its output, or the name of its exception."""
    body = textwrap.indent(code.strip(), "    ")
    code = f"import os, socket, sys\ntry:\n{body}\nexcept OSError as error:\n    print(type(error).__name__)"
    return said(launcher, tmp_path, code, *arguments)


def test_nothing_outside_is_reached(launcher, tmp_path):
    """As this user all of it is."""
    secret = write(tmp_path / "home", {"secret": "the password"}) / "secret"
    secret.chmod(0o644)
    (tmp_path / CANDIDATE / "link").symlink_to(secret)
    name = f"sandbox-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as named:
        named.bind(f"\0{name}")
        named.listen()
        refused, missing = ("ConnectionRefusedError",), ("FileNotFoundError",)
        gone = ("ProcessLookupError", "PermissionError")
        for code, argument, outside, inside in (
            (READ, secret, "the password", missing),
            (READ, tmp_path / CANDIDATE / "link", "the password", missing),
            (READ, f"/proc/{os.getpid()}/root{secret}", "the password", missing),
            (WRITE, tmp_path / CANDIDATE / "file", "4", ("OSError",)),
            (WRITE, tmp_path / "own" / "file", "4", ("4",)),
            (CONNECT, listener.getsockname()[1], "127.0.0.1", refused),
            (CONNECT_BY_NAME, name, "None", refused),
            (SIGNAL, os.getpid(), "None", gone),
        ):
            assert attempt(Launcher(), tmp_path, code, argument) == outside
            if code == WRITE:
                Path(str(argument)).unlink()
            assert attempt(launcher, tmp_path, code, argument) in inside, (code, argument)
    assert (tmp_path / "own" / "file").read_text() == "mine"
    for path in (ROOT / "fastio" / "file", "/usr/file", "/file"):
        assert attempt(launcher, tmp_path, WRITE, path) in ("OSError", "PermissionError")
    names = set(attempt(launcher, tmp_path, "print(*os.listdir(sys.argv[1]))", ROOT).split())
    assert {"benchmarks", "fastio"} <= names and not {".git", "tests", "results"} & names
    # KEYCTL_DESCRIBE of the session's, and of the user's.
    for keyring in (-3, -4):
        assert attempt(launcher, tmp_path, KEYRING, keyring) == "OSError"


def test_it_has_what_tests_need(launcher, tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "the password")
    monkeypatch.setenv("FASTIO_PIPE_SIZE", "1MiB")
    code = """
        import json, os, pwd, socket
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
            server.accept()[0].sendall(b"hi")
            found = {"loopback": client.recv(2).decode(), "localhost": socket.gethostbyname("localhost")}
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        found |= {
            "processes": len([each for each in os.listdir("/proc") if each.isdecimal()]),
            "token": any(b"SOME_TOKEN" in open(f"/proc/{each}/environ", "rb").read()
                         for each in os.listdir("/proc") if each.isdecimal() and os.access(f"/proc/{each}/environ", 4)),
            "variables": [os.environ.get(name) for name in ("FASTIO_PIPE_SIZE", "HOME", "USER", "TMPDIR")],
            "user": pwd.getpwuid(os.getuid()).pw_name, "uid": os.getuid(), "groups": os.getgroups(),
            "rights": [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff")],
            "new rights": status["NoNewPrivs"].strip() == "0",
        }
        open("/tmp/mark", "w").close()
        open("/dev/shm/mark", "w").close()
        print(json.dumps(found))
    """
    found = json.loads(said(launcher, tmp_path, code))
    assert found.pop("uid") == sandbox.UID != os.getuid()
    groups = found.pop("groups")
    assert os.getuid() or groups == []
    assert found == {
        "loopback": "hi", "localhost": "127.0.0.1", "processes": 2, "token": False, "user": "isolated",
        "variables": ["1MiB", "/tmp", "isolated", str(tmp_path / "own")], "rights": [0, 0, 0], "new rights": False,
    }  # fmt: skip
    assert not os.path.exists("/tmp/mark") and not os.path.exists("/dev/shm/mark")


def test_its_children_end_with_it(launcher, tmp_path):
    code = """
        import os, signal
        if not os.fork():
            os.setsid()
            signal.pause()
        os.write(1, b"there\\n")
        signal.pause()
    """
    with start(launcher, tmp_path, code) as process:
        assert process.stdout.readline() == b"there\n"
        process.kill()
        # Its end is when no process has the pipe any more.
        assert process.stdout.read() == b""


def test_of_a_python_no_more_is_seen_than_its_installation(tmp_path):
    """A Python in a directory of other things is refused, also if a sandbox is only asked for where it is possible."""
    sandboxes()
    for place in ("cpython/python", "bin/python"):
        path = tmp_path / place
        path.parent.mkdir()
        shutil.copy(os.path.realpath(sys.executable), path)
    built = Python(str(tmp_path / "cpython/python"), "3.99.0", "/usr/local")
    with pytest.raises(ValidateError, match="--python .*/cpython/python: allowed in the sandbox is a Python that is"):
        sandbox.choose("auto", built)
    (tmp_path / "lib").mkdir()
    own = Python(str(tmp_path / "bin/python"), "3.99.0", str(tmp_path))
    shown = [str(part) for part in Bubblewrap(own)._code if part.is_relative_to(tmp_path)]
    assert shown == [str(tmp_path / "bin"), str(tmp_path / "lib")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path))
        with pytest.raises(ValidateError, match=f"--python: {tmp_path} has home directories in it"):
            sandbox.choose("auto", own)
    assert sandbox.choose("none", own).sandbox is None


SUITE = """
    import os, threading, unittest

    class Some(unittest.TestCase):
        def test_passes(self):
            for directory in (os.environ["TMPDIR"], "."):
                with open(os.path.join(directory, "file"), "w") as file:
                    file.write("own")

        def test_hangs(self):
            threading.Event().wait()

        def test_replaces_what_the_parent_reads(self):
            for name in ("events", "trace"):
                path = os.path.join(os.environ["TMPDIR"], "..", name)
                self.assertRaises(OSError, os.unlink, path)
                self.assertRaises(OSError, os.rename, os.path.join(os.environ["TMPDIR"], "file"), path)
"""


def test_a_suite_is_run_there_as_elsewhere(launcher, tmp_path):
    python = environment.create(tmp_path / CANDIDATE)
    tests = write(tmp_path / CANDIDATE / "upstream", {"some_test.py": textwrap.dedent(SUITE)})
    suite = Suite("some", ("some_test",), env={"PYTHONPATH": str(tests)})
    run = Runner(python, 4, launcher=launcher).run(suite, patched=False)
    outcomes = {test.rpartition(".")[2]: each.outcome for test, each in run.tests.items()}
    assert outcomes == {
        "test_passes": "pass", "test_hangs": "hang", "test_replaces_what_the_parent_reads": "pass"
    }, run.tests  # fmt: skip


@pytest.fixture
def variants(tmp_path):
    """Stock and a candidate, which have what this environment has."""
    found = []
    for name in (STOCK, CANDIDATE):
        environment.create(tmp_path / name)
        write(tmp_path / name, {"complete.json": "{}"})
        found.append(Variant(name, Environment(tmp_path / name), "1.0", None))
    return found


CASES = projects.EVENTLET.choose_cases(["processes/input-popen-16MiB"])


def test_benchmarks_are_run_there(variants, capfd, monkeypatch):
    # As in the process that the command starts.
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    launcher = SandboxLauncher(sandboxes(), *variants)
    (case,) = measuring.run(launcher, CASES, variants, ["native"], Options(rounds=1, size=1 << 16)).cases
    assert case.name == "processes/input-popen-16MiB" and case.complete
    assert set(case.variants) == {"native-stock", "native-candidate"}
    assert all(row.verified() and len(row.measured()) == 1 for row in case.variants.values())
    assert "native-candidate" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('nonsense')", "no result"),
        ("import json; print(json.dumps('{}'))", "no result"),
        ("import sys; sys.stderr.write('\\33[2J why\\n'); sys.exit(3)", r"exit status 3: \\x1b\[2J why"),
        ("import sys; sys.stderr.write('::stop-commands::x\\n'); sys.exit(3)", r"exit status 3: \\::stop-commands::x"),
    ],
)
def test_other_output_than_a_result_is_an_error(variants, capfd, code, message):
    class Says(Launcher):
        def start(self, command, directory, env, *, readable, writable, **options):
            return subprocess.Popen([sys.executable, "-c", code], start_new_session=True, **options)

    with pytest.raises(ValidateError, match=message):
        measuring.run(Says(), CASES, variants, ["native"], Options())
    shown = capfd.readouterr().err
    assert "\33" not in shown and "\n::" not in f"\n{shown}"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("", "bwrap is not installed (apt-get install bubblewrap)"),
        ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "No permissions to create new namespace"),
    ],
)
def test_where_there_can_be_no_sandbox(tmp_path, monkeypatch, program, reason):
    if program:
        write(tmp_path, {"bwrap": f"#!/bin/sh\n{program}\n"})
        (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = sandbox.choose("auto", pythons.find(sys.executable))
    assert found.sandbox is None and reason in found.reason == found.to_dict()["reason"]
    line = found.line(candidate=True, installed=True)
    user = sandbox.user_name()
    assert line.startswith(f"isolation: none, so the candidate's code ran as this user ({user}) with this network: ")
    assert reason in line and "\n" not in line
    with pytest.raises(ValidateError, match="--isolation bubblewrap: .*; allowed are auto, bubblewrap, none") as error:
        sandbox.choose("bubblewrap", pythons.find(sys.executable))
    assert reason in str(error.value)


def test_the_report_on_a_sandbox():
    found = sandbox.Isolation(sandboxes())
    line = found.line(candidate=True, installed=False)
    assert line.startswith("isolation: bubblewrap ") and "no network" in line and "outside" not in line
    assert "outside, as this user" in found.line(candidate=True, installed=True)
    assert found.to_dict()["used"] == "bubblewrap"
