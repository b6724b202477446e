"""Each backend starts, answers, and leaves nothing: no process, no file."""

import importlib
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.backends import BACKENDS, backend, base
from benchmarks.backends.base import Backend, BackendError, Unavailable
from benchmarks.backends.stores import opened, snippet
from tests.backends.conftest import alive, processes_of
from tests.eventually import until

ROOT = Path(__file__).parent.parent.parent

#: A package or a program of a backend, and the line that installs it.
WITHOUT = {
    "http": ("nginx", "apt-get install --no-install-recommends nginx-light"),
    "swift": ("swift-proxy-server", "pip install -e '.[stores]'"),
    "s3": ("rclone", "pip install -e '.[stores]'"),
    "ceph": ("ceph-mon", "apt-get install --no-install-recommends ceph-mon ceph-osd"),
    "cinder": ("os_brick", "pip install -e '.[stores]'"),
    "vmware": ("oslo_vmware", "pip install -e '.[stores]'"),
}
SERVERS = [name for name in BACKENDS if name not in ("filesystem", "cinder")]


@pytest.mark.parametrize("name", BACKENDS)
def test_two_start_and_answer_and_leave_nothing(usable, tmp_path, name):
    with usable(name)(tmp_path) as one, usable(name)(tmp_path) as two:
        assert one.directory.parent == tmp_path
        pids = one.pids() + two.pids()
        assert all(map(alive, pids)) and len(set(pids)) == len(pids)
        assert bool(one.pids()) == bool(two.pids()) == (name in SERVERS)
        one.check()
        assert json.loads(json.dumps(one.access())) == one.access()
        assert f"[{name}]\n" in f"{snippet(one.access())}\n"
        if importlib.util.find_spec("glance_store"):
            with opened(one.access(), "one") as first, opened(two.access(), "two") as second:
                urls = first.place(b"one"), second.place(b"two")
                assert (first.read(urls[0]), second.read(urls[1])) == (b"one", b"two")
        two.stop()
        one.check()

    assert not any(map(alive, pids))
    assert processes_of(tmp_path) == list(tmp_path.iterdir()) == one.pids() == []


@pytest.mark.parametrize("name", WITHOUT)
def test_a_missing_package_gives_one_line(monkeypatch, tmp_path, name):
    monkeypatch.delenv("BENCHMARK_SWIFT", raising=False)
    hidden, install = WITHOUT[name]
    if "_" in hidden:
        monkeypatch.setitem(sys.modules, hidden, None)
    else:
        for module in (base, importlib.import_module(BACKENDS[name].partition(":")[0])):
            monkeypatch.setattr(module, "find_program", lambda *_: None, raising=False)

    message = backend(name)().why_not()

    assert message.startswith(f"{name}: ")
    assert install in message
    assert "\n" not in message
    with pytest.raises(Unavailable, match=re.escape(message)):
        backend(name)(tmp_path).start()
    assert list(tmp_path.iterdir()) == []


def test_a_required_backend_is_not_skipped(monkeypatch):
    from tests.backends.required import missing

    monkeypatch.setenv("BACKENDS_REQUIRED", "http swift")
    with pytest.raises(pytest.fail.Exception, match="swift is in BACKENDS_REQUIRED; install it"):
        missing("swift", "install it")
    with pytest.raises(pytest.skip.Exception, match="install it"):
        missing("s3", "install it")


def test_ceph_says_that_its_bindings_are_for_another_python(monkeypatch, tmp_path):
    from benchmarks.backends import ceph

    (tmp_path / "rados.cpython-999-x86_64-linux-gnu.so").touch()
    monkeypatch.setattr(ceph, "DEBIAN_MODULES", tmp_path)
    monkeypatch.setattr(base, "find_program", lambda name, *_: f"/usr/bin/{name}")
    for name in ("rados", "rbd"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert "rados.cpython-999" in ceph.Ceph().why_not()


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("swift", {"colour": 1}, "unknown parameter 'colour'; its parameters: disk_chunk_size, network_chunk_size"),
        ("swift", {"workers": "many"}, "workers='many' is not a number"),
        ("swift", {"fastio": "maybe"}, "fastio='maybe' is not one of on, off"),
        ("s3", {"program": "minio"}, "unknown parameter 'program'; its parameters: latency_ms, rate"),
        ("cinder", {"device": "tape"}, "device='tape' is not one of file, loop"),
        ("glance-32", {"fastio": "yes"}, "fastio='yes' is not one of on, off"),
    ],
)
def test_bad_parameters(name, parameters, message):
    with pytest.raises(BackendError, match=f"{name}: {message}"):
        backend(name)(**parameters)


class Shell(Backend):
    """A backend that runs a shell command, for what servers may do."""

    name = "shell"
    driver = "none"
    parameters = {"script": "", "answers": 1}
    patience = 60.0

    def launch(self) -> None:
        self.spawn("shell", ["/bin/sh", "-c", self.chosen["script"]])
        ready = self.directory / "ready"
        self.wait(ready.exists if self.chosen["answers"] else lambda: False, "the shell")

    def options(self):
        return {}


def test_a_server_that_does_not_start_leaves_its_log(tmp_path):
    with pytest.raises(BackendError, match="(?s)shell did not start: shell has ended.*no such luck") as caught:
        Shell(tmp_path, script="echo no such luck; exit 3").start()

    (logs,) = tmp_path.iterdir()
    assert (logs / "shell.log").read_text() == "no such luck\n"
    assert f"Logs: {logs}\n" in str(caught.value)


def test_a_server_that_does_not_answer(monkeypatch, tmp_path):
    monkeypatch.setattr(Shell, "patience", 0.2)

    with pytest.raises(BackendError, match="the shell did not answer in 0.2 s"):
        Shell(tmp_path, script="exec sleep 1000", answers=0).start()

    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []


SLEEP = ["/bin/sh", "-c", "exec sleep 1000"]


@pytest.mark.parametrize(
    ("method", "command", "error", "message"),
    [
        ("spawn", ["/no/such/program"], BackendError, "/no/such/program cannot be run"),
        ("run", ["/bin/sh", "-c", "echo because >&2; exit 4"], BackendError, "(?s)exit status 4.*because"),
        ("spawn", SLEEP, KeyboardInterrupt, "by the user"),
    ],
)
def test_a_start_that_fails_or_is_interrupted_leaves_nothing(tmp_path, method, command, error, message):
    started = []

    class Failing(Shell):
        def launch(self) -> None:
            started.append(getattr(self, method)(*(["name"] if method == "spawn" else []), command))
            raise KeyboardInterrupt("by the user")

    with pytest.raises(error, match=message):
        Failing(tmp_path).start()
    assert not any(map(alive, started))
    assert list(tmp_path.iterdir()) == []


def test_daemons_and_those_who_ignore_signals_end_too(tmp_path):
    script = """
        trap '' TERM INT HUP
        setsid sleep 1000 &
        (setsid sh -c 'trap "" TERM; echo $$ > daemon; while :; do sleep 1000; done' &)
        while ! [ -s daemon ]; do sleep 0.01; done
        touch ready
        while :; do sleep 1000; done
    """
    with Shell(tmp_path, script=script) as running:
        daemon = int((running.directory / "daemon").read_text())
        # The shells have said that they are ready, but not yet started their last commands.
        until(lambda: len(running.pids()) >= 5)
        pids = running.pids()
        assert daemon in pids

    assert not any(map(alive, pids))
    assert list(tmp_path.iterdir()) == []


def test_servers_end_even_if_their_keeper_was_killed(tmp_path):
    with Shell(tmp_path, script="touch ready; sleep 1000; true") as running:
        pids = running.pids()
        os.kill(running._keeper.pid, signal.SIGKILL)

    until(lambda: not any(map(alive, pids)))
    assert list(tmp_path.iterdir()) == []


def test_logs_are_kept_when_the_block_fails(tmp_path):
    with pytest.raises(ZeroDivisionError), Shell(tmp_path, script="echo said; touch ready; exec sleep 1000"):
        raise ZeroDivisionError

    (logs,) = tmp_path.iterdir()
    assert (logs / "shell.log").read_text() == "said\n"


def test_a_server_that_dies_later_is_noticed(tmp_path):
    with Shell(tmp_path, script="touch ready; exec sleep 1000") as running:
        running.check()
        os.kill(running.pids()[0], signal.SIGKILL)
        until(lambda: not running.pids())
        with pytest.raises(BackendError, match="shell of shell has ended"):
            running.check()


def test_it_does_not_start_twice(tmp_path):
    running = Shell(tmp_path, script="touch ready; exec sleep 1000").start()
    with pytest.raises(BackendError, match="shell runs already"):
        running.start()
    running.stop()
    running.stop()
    with pytest.raises(BackendError, match="shell does not run"):
        running.directory  # noqa: B018


def test_ports_are_reserved(tmp_path):
    running = Shell(tmp_path)
    ports = [running.port() for _ in range(50)]
    assert len(set(ports)) == 50
    with socket.create_server(("127.0.0.1", ports[0])):
        socket.create_connection(("127.0.0.1", ports[0]), 10).close()
    for reserved in running._ports:
        reserved.close()


@pytest.mark.parametrize("name", ["filesystem", "swift"])
def test_nothing_survives_who_started_it(usable, tmp_path, name):
    usable(name)
    program = f"""
        import json, sys, time
        from benchmarks.backends import backend
        running = backend({name!r})({str(tmp_path)!r}).start()
        print(json.dumps(running.pids()), flush=True)
        time.sleep(1000)
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", "\n".join(line.strip() for line in program.splitlines())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, start_new_session=True)
    with process.stdout as output:
        pids = json.loads(output.readline())
    assert all(map(alive, pids))

    process.kill()
    process.wait()

    until(lambda: not any(map(alive, pids)))
    until(lambda: list(tmp_path.iterdir()) == [])
    until(lambda: processes_of(tmp_path) == [])
