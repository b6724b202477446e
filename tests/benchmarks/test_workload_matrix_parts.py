"""The parts of the workload matrix: samples and agents, the bottleneck, limits on servers, a slow path."""

import contextlib
import gzip
import json
import os
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="the analysis needs the extra 'bench'")
pytest.importorskip("psutil", reason="sampling needs the extra 'bench'")

import psutil

from benchmarks.backends.base import reserved_port
from benchmarks.harness.probes import server_cpu_seconds
from benchmarks.load import Failed, Wrong, agent, bottleneck, limits, monitor, report, usage
from benchmarks.load import path as paths
from benchmarks.load.bottleneck import Limits
from benchmarks.load.monitor import Sampler
from benchmarks.load.usage import Machine, Process, Samples, Usage
from tests.eventually import until

ROOT = Path(__file__).parent.parent.parent
MIB = 1 << 20

BURNER = "import time\nwhile True: pass"


@contextlib.contextmanager
def burning(code: str = BURNER) -> Iterator[subprocess.Popen]:
    """A process that uses all that it can get."""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


# --- samples


def test_a_process_is_sampled_with_its_children() -> None:
    code = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'while True: pass'])"
    with burning(code) as process:
        children = until(lambda: psutil.Process(process.pid).children(), "the child")
        try:
            sampler = Sampler([process.pid])
            first = until(lambda: _with_cpu(sampler.sample(), children[0].pid), "CPU time of the child")
            child = str(children[0].pid)
            assert set(first["processes"]) == {str(process.pid), child}
            own, counters = first["processes"][child], first["counters"]
            assert own["name"] == monitor.title(children[0]) and own["memory"] > 0
            assert own["cores"] == sorted(os.sched_getaffinity(0))
            ((thread, cpu),) = [each for each in counters["thread"].items() if each[0].startswith(f"{child} ")]
            later = sampler.sample()["counters"]
            # It goes on while it is looked at. User and system time are each reported in whole ticks of 10 ms.
            assert thread == f"{child} {child}"
            assert counters["process cpu"][child] - 0.03 <= cpu <= later["process cpu"][child] + 0.03
            assert len(counters["core"]) == psutil.cpu_count() and 0 < first["memory"][0] < first["memory"][1]
        finally:
            children[0].kill()


def _with_cpu(sample: dict, pid: int) -> dict | None:
    return sample if sample["counters"].get("process cpu", {}).get(str(pid), 0) > 0.05 else None


def test_processes_are_found_by_their_command_line_and_named() -> None:
    # No other run of the tests has the same mark.
    mark = f"marked-by-{os.getpid()}-for-the-test"
    with burning(f"import time; {mark!r}; time.sleep(300)") as process:
        found = until(Sampler(patterns={"it": f"{mark[:-1]}[t]"}).processes, "the process")
        assert {pid: name for pid, (name, _) in found.items()} == {process.pid: "it"}
    assert Sampler([process.pid]).processes() == {}
    assert monitor.title(psutil.Process()) not in ("", "?")


LAUNCHED = ["-m", "fastio", "run", "--", sys.executable]


@pytest.mark.parametrize(("launcher", "module"), [([], False), (LAUNCHED, True)], ids=["plain", "launched"])
def test_a_process_is_called_by_its_program(tmp_path: Path, launcher: list[str], module: bool) -> None:
    (tmp_path / "service.py").write_text("print('runs', flush=True)\ninput()\n")
    program = ["-m", "service"] if module else [str(tmp_path / "service.py")]
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    with subprocess.Popen(
        [sys.executable, *launcher, *program, "-c", "option"], env={**os.environ, "PYTHONPATH": paths},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        assert monitor.title(psutil.Process(process.pid)) == ("service" if module else "service.py")
        process.communicate("\n")


def sample(moment: float, cpu: float, pids: Sequence[int] = (7,)) -> dict:
    """A machine of two cores on which each process uses ``cpu`` seconds up to then."""
    return {
        "time": moment, "memory": [MIB, 4 * MIB],
        "counters": {
            "core": {"0": moment * 0.5, "1": moment * 0.25}, "sent": {"eth0": int(moment * 10 * MIB)},
            "received": {"eth0": 0}, "read": {"vda": 0}, "written": {"vda": int(moment * MIB)},
            "busy": {"vda": moment * 0.4}, "process cpu": {str(pid): cpu for pid in pids},
            "process read": {str(pid): 0 for pid in pids},
            "process written": {str(pid): int(moment * 2 * MIB) for pid in pids},
            "thread": {f"{pid} {pid}": cpu * 0.75 for pid in pids},
        },
        "processes": {str(pid): {"name": "server", "memory": 100 * MIB, "cores": [0, 1]} for pid in pids},
    }  # fmt: skip


def samples_in(directory: Path, lines: list[dict], **about) -> Samples:
    first = {
        "format": monitor.FORMAT,
        "version": monitor.VERSION,
        "host": "box",
        "clock_offset": 0.0,
        "speeds": {"eth0": 100},
    }
    path = directory / f"samples-{len(list(directory.iterdir()))}.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(each) + "\n" for each in [{**first, **about}, *lines])
    return Samples(path)


def test_the_use_in_between(tmp_path) -> None:
    # Nothing until 10, then 0.8 processors.
    lines = [sample(float(moment), max(0.0, 0.8 * (moment - 10))) for moment in range(21)]
    found = usage.of([samples_in(tmp_path, lines)], 10.5, 19.5)
    (process,), (machine,) = found.processes, found.machines
    assert (process.name, process.pids, process.cores) == ("server", [7], [0, 1])
    assert process.cpu == pytest.approx(0.8) and process.thread == pytest.approx(0.6)
    assert process.memory == 100 * MIB and process.written == pytest.approx(2 * MIB)
    assert machine.cores == pytest.approx([0.5, 0.25]) and machine.cpu == pytest.approx(0.75)
    assert machine.disks["vda"] == pytest.approx([0, MIB, 0.4]) and machine.network["eth0"][0] == pytest.approx(
        10 * MIB
    )
    assert machine.speeds == {"eth0": 12.5e6}
    half = usage.of([samples_in(tmp_path, lines)], 5, 15)
    assert half.processes[0].cpu == pytest.approx(0.4)


def test_the_clock_of_another_machine_is_put_right(tmp_path) -> None:
    lines = [sample(1000.0 + moment, max(0.0, 0.8 * (moment - 10))) for moment in range(21)]
    found = usage.of([samples_in(tmp_path, lines, clock_offset=1000.0)], 10, 20)
    assert found.processes[0].cpu == pytest.approx(0.8)


def test_processes_of_a_name_are_counted_together_and_one_that_comes_later_too(tmp_path) -> None:
    lines = [sample(float(moment), 0.5 * moment, (7, 8) if moment >= 5 else (7,)) for moment in range(11)]
    for line in lines[5:]:
        line["counters"]["process cpu"]["8"] = line["time"] - 5
    found = usage.of([samples_in(tmp_path, lines)], 0, 10)
    (process,) = found.processes
    assert process.cpu == pytest.approx(0.5 + 0.5) and process.pids == [7, 8] and process.memory == 200 * MIB


def test_a_part_that_is_shorter_than_a_period(tmp_path) -> None:
    found = usage.of([samples_in(tmp_path, [sample(0.0, 0.0), sample(60.0, 30.0), sample(120.0, 60.0)])], 70, 70.5)
    assert found.processes[0].cpu == pytest.approx(0.5)


def test_no_samples_of_that_time(tmp_path) -> None:
    known = [sample(float(moment), 0) for moment in range(50, 61)]
    found = usage.of([samples_in(tmp_path, [sample(0.0, 0), sample(1.0, 0)]), samples_in(tmp_path, known)], 50, 60)
    # The other machine's are there all the same.
    assert len(found.machines) == 1 and len(found.problems) == 1
    assert "no samples from 50.0 to 60.0" in found.problems[0]
    (tmp_path / "samples-x.jsonl.gz").write_bytes(gzip.compress(b"{}\n"))
    with pytest.raises(Wrong, match="no samples .no format"):
        usage.read(tmp_path)


def test_a_file_that_was_cut_off_is_read_up_to_there(tmp_path) -> None:
    found = samples_in(tmp_path, [sample(float(moment), moment / 2) for moment in range(100)])
    data = found.path.read_bytes()
    found.path.write_bytes(data[:-200])
    assert 0 < len(Samples(found.path).samples) <= 100


@pytest.fixture
def told(monkeypatch) -> set[float]:
    """The CPU times of watched processes' threads that were sampled so far, here and by agents."""
    found: set[float] = set()
    write = monitor.write

    def writing(file: Any, line: dict) -> None:
        write(file, line)
        found.update(line.get("counters", {}).get("thread", {}).values())

    monkeypatch.setattr(monitor, "write", writing)
    return found


# --- agents


@contextlib.contextmanager
def agent_process() -> Iterator[tuple[str, int]]:
    """One that is started by hand, on loopback."""
    command = [sys.executable, "-m", "benchmarks.load", "agent", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            host, _, port = process.stdout.readline().strip().partition(":")
            yield host, int(port)
        finally:
            process.terminate()


def test_this_machine_and_that_of_an_agent_are_sampled_for_a_run(tmp_path, told) -> None:
    mark = f"the-agents-server-of-{os.getpid()}-x"
    with burning(f"{mark!r}\nwhile True: pass") as process, agent_process() as address:
        begin, here = time.time(), monitor.title(psutil.Process(process.pid))
        patterns = {"own": f"{mark[:-1]}[x]", "other": "nothing-has-th[i]s"}
        with agent.everywhere(tmp_path, [process.pid], [address], patterns, 0.05) as problems:
            until(lambda: len(told) > 3, "samples between which it has used CPU time")
        found = usage.of(usage.read(tmp_path), begin, time.time())
    assert problems == [] and len(found.machines) == 2 and all(each.cpu > 0 for each in found.machines)
    for each in usage.read(tmp_path):
        assert abs(each.about["clock_offset"]) <= each.about["clock_error"] + 0.01
    # Here it is known by its number, and there by its command line.
    assert {each.name for each in found.processes} == {"own", here}
    for own in found.processes:
        # How exact that is in so short a time is the machine's business: it may hold up who samples between counters.
        assert own.pids == [process.pid] and own.cpu > 0 and own.thread > 0


def test_an_agent_that_is_not_there_or_asked_for_nonsense(tmp_path) -> None:
    with (
        reserved_port() as nobody,
        pytest.raises(Failed, match="(?i)refused"),
        agent.everywhere(tmp_path, [], [nobody.getsockname()], {}),
    ):
        pass
    with agent_process() as address:
        with pytest.raises(Failed, match="agent .*: .*nothing"):
            agent.Remote(*address, {})._ask("nothing", "{}")
        with socket.create_connection(address, timeout=60) as connection:
            connection.sendall(b"nonsense\n")
            assert b"400" in connection.recv(1000)
        assert agent.Remote(*address, {}).clock() > 0


def test_an_agent_that_is_lost_is_reported(tmp_path) -> None:
    with contextlib.ExitStack() as stack:
        with agent_process() as address:
            problems = stack.enter_context(agent.everywhere(tmp_path, [], [address], {}, 0.05))
        # The agent's machine has gone away.
        until(lambda: problems, "the loss to be noticed")
    assert "its samples end before the run does" in problems[0]


# --- the bottleneck


def used(*processes: Process, cores=(0.3, 0.3), disks=None, network=None, speeds=None, memory=1) -> Usage:
    machine = Machine("box", list(cores), memory, 100, network or {}, speeds or {}, disks or {})
    return Usage(3.0, [machine], list(processes))


def server(name: str, cpu: float, thread: float | None = None, cores=(0, 1)) -> Process:
    return Process("box", name, [1], cpu, cpu if thread is None else thread, list(cores), 1, 0, 0)


FIGURES = {"generator_cpu": 0.3, "bytes": 30 * MIB, "seconds": 3.0, "whole_p50_ms": 10.0}


PROXY = server("proxy", 0.4)
#: Used resources, figures of the load, limits (those of 8 users if there are none), and the resulting report.
BOTTLENECKS = [
    (used(PROXY), {"generator_cpu": 0.95}, None, "generator", "0.95 of its one processor"),
    # The cause is named, not the most used resource.
    (used(server("proxy", 1.9, 0.99), cores=(0.99, 0.99)), {"generator_cpu": 0.92}, None, "generator",
     "0.92 of its one processor"),
    (used(server("proxy", 0.5), PROXY, disks={"vda": [0, 90 * MIB, 0.99]}), {}, Limits(1.0, "pinned", users=8), "quota",
     "the servers used 0.90 of 1 processors"),
    (used(server("proxy", 0.97), server("object", 0.6), cores=(0.9, 0.8)), {}, None, "thread",
     "of proxy: one thread used 0.97"),
    (used(server("s3", 1.9, 0.4), cores=(0.97, 0.98)), {}, None, "cores",
     "of s3: 1.95 of 2 cores were busy (core 0 0.97, core 1 0.98): s3 1.90"),
    (used(server("proxy", 0.5), server("object", 0.42), cores=(0.95, 0.4)), {}, Limits(1.0, "pinned", users=8), "quota",
     "of proxy: the servers used 0.92 of 1 processors (pinned): proxy 0.50, object 0.42"),
    (used(server("proxy", 0.4, cores=(0,)), cores=(0.99, 0.1)), {}, None, "cores",
     "0.99 of 1 cores were busy (core 0 0.99): proxy 0.40, all others 0.59"),
    (used(PROXY, disks={"vda": [0, 90 * MIB, 0.99]}), {}, None, "disk",
     "vda of box: busy 99% of the time, 0.0 MiB/s read, 90.0 MiB/s written"),
    (used(PROXY, network={"eth0": [11e6, 1e6]}, speeds={"eth0": 12.5e6}), {}, None, "network", "eth0 of box"),
    (used(PROXY, memory=99), {}, None, "memory", "of box"),
    (used(PROXY), {}, Limits(rate=10 * MIB, users=8), "path", "10.0 of 10.0 MiB/s"),
    (used(server("proxy", 0.1)), {}, Limits(users=4, think=0.25), "users",
     "4 users think 250 ms after each answer, which takes 10 ms"),
    (used(PROXY, server("object", 0.3)), {"generator_cpu": 0.25}, Limits(users=1), "turns",
     "the load generator 0.25, proxy 0.40, object 0.30"),
    (used(PROXY), {}, None, "none", "no resource is used up; the most used is thread of proxy"),
]  # fmt: skip


@pytest.mark.parametrize(("used_", "figures", "limits_", "resource", "words"), BOTTLENECKS)
def test_the_bottleneck(used_, figures, limits_, resource, words) -> None:
    found = bottleneck.find(used_, {**FIGURES, **figures}, limits_ or Limits(users=8))
    assert found.resource == resource
    assert words in str(found)
    assert found.to_dict()["resource"] == resource and json.dumps(found.to_dict())
    shares = [each.share for each in found.shares[1 if found.limit else 0 :]]
    assert shares == sorted(shares, reverse=True)


def test_a_machine_that_others_use_is_reported() -> None:
    run: Any = types.SimpleNamespace(workers=[{"cpu": [[1.0, 0.2], [2.0, 0.4]]}, {"cpu": [[1.0, 0.1], [2.0, 0.1]]}])
    quiet = used(server("proxy", 0.5), server("object", 0.4), cores=(0.8, 0.9))
    assert report.disturbed(run, quiet) == []
    busy = used(server("proxy", 0.3), server("object", 0.1), cores=(1.0, 1.0))
    assert report.disturbed(run, busy) == [
        "others, who are not watched, used 1.2 of 2 processors: figures of a busy machine"
    ]


# --- limits


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core only")
def test_servers_are_pinned_and_set_free() -> None:
    every = os.sched_getaffinity(0)
    with burning() as process:
        with limits.pinned([process.pid], {min(every)}) as how:
            assert os.sched_getaffinity(process.pid) == {min(every)}
            assert f"1 of {len(every)} cores" in how
        assert os.sched_getaffinity(process.pid) == every


def test_limits_that_can_not_be() -> None:
    with pytest.raises(Failed, match=r"cores \[9999\] are not among"), limits.pinned([], {9999}):
        pass
    with pytest.raises(Failed, match="must be more than 0"), limits.quota([], 0):
        pass


def test_a_quota_holds_and_ends() -> None:
    with burning() as process:
        until(lambda: server_cpu_seconds([process.pid]) > 0.1, "CPU time")
        with limits.quota([process.pid], 0.2):
            begin, before = time.monotonic(), server_cpu_seconds([process.pid])

            def keeps_to_it() -> bool:
                spent, taken = server_cpu_seconds([process.pid]) - before, time.monotonic() - begin
                return spent > 0 and taken > 2 and spent < 0.2 * taken + 0.1

            # An excess that went unnoticed because the machine was busy is missing afterwards.
            until(keeps_to_it, "no more than its part", 60)
        # It may go on.
        assert psutil.Process(process.pid).status() != psutil.STATUS_STOPPED
        after = server_cpu_seconds([process.pid])
        until(lambda: server_cpu_seconds([process.pid]) > after + 0.2, "the process to go on")


# --- the path


def test_a_path_is_no_faster_than_its_rate() -> None:
    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(1) == b"x"
            connection.sendall(bytes(1_000_000))

    listener = socket.create_server(("127.0.0.1", 0))
    with listener, paths.slowed("127.0.0.1", listener.getsockname()[1], 2e6) as address:
        server = threading.Thread(target=answer)
        server.start()
        begin = time.monotonic()
        host, _, port = address.partition(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(b"x")
            connection.shutdown(socket.SHUT_WR)
            come = sum(map(len, iter(lambda: connection.recv(1 << 16), b"")))
        server.join()
    assert come == 1_000_000
    # At the rate it takes half a second, less what may be sent at once.
    assert time.monotonic() - begin >= 0.5 - 2 * paths.BURST - 0.05
