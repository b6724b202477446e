"""Workloads that are really carried out: on a made-up Swift, on real services, and on servers that fail meanwhile."""

import contextlib
import importlib.util
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

# Not importorskip(): to import it patches the process.
if importlib.util.find_spec("locust") is None:
    pytest.skip("loads need the extra 'load'", allow_module_level=True)
pytest.importorskip("numpy", reason="the analysis needs the extra 'bench'")
pytest.importorskip("psutil", reason="sampling needs the extra 'bench'")

import psutil

from benchmarks.harness import results
from benchmarks.load import Failed, Wrong, cosbench, protocols, records, report, stages
from benchmarks.load.exchange import Exchange
from benchmarks.load.schedule import Schedule, Step
from benchmarks.load.workload import Workload
from benchmarks.suites.stores.references import login
from benchmarks.suites.workload_matrix import bench_workload_matrix as matrix
from tests.backends.required import usable
from tests.benchmarks import object_server
from tests.benchmarks.test_workload_matrix_parts import agent_process
from tests.conftest import with_services
from tests.eventually import until

pytestmark = with_services

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "doc" / "source" / "examples" / "load"


def workload(path: Path, text: str) -> Workload:
    path.write_text(text)
    return cosbench.read(path)


def short(access: dict[str, Any]) -> str:
    """The example, for this service, with less to do."""
    text = (EXAMPLES / "swift.xml").read_text().replace("http://127.0.0.1:8080", access["url"])
    text = re.sub(r'runtime="\d+"', 'runtime="2"', text).replace('rampup="2"', 'rampup="1"')
    return text.replace("c(1)MiB", "c(100)KB").replace("u(8,16)MiB", "u(1,2)MiB")


def done(tmp_path: Path, what: Workload, **watched: Any) -> report.Found:
    stages.carry_out(what, tmp_path / "out", **watched)
    return report.read(tmp_path / "out")


def failed(tmp_path: Path, what: Workload, message: str) -> report.Found:
    with pytest.raises(Failed, match=message):
        stages.carry_out(what, tmp_path / "out")
    return report.read(tmp_path / "out")


def statuses(tmp_path: Path) -> list[str]:
    """The outcome of each stage."""
    return [stage["status"] for stage in json.loads((tmp_path / "out" / stages.SUMMARY).read_text())["stages"]]


def named(found: report.Found, name: str) -> report.Measured:
    (only,) = (each for each in found.works if each.title.rpartition(", ")[2] == name)
    return only


def nothing_is_left(what: Workload) -> None:
    """The containers are gone."""
    work = what.stages[0].works[0]
    client: Any = protocols.once(work.plan)
    with contextlib.closing(client) as service:
        for name in work.containers:
            found = Exchange()
            assert service.list(Step("list", 0, name, "", 0), found), f"{name} is there"
            assert found.status == 404


# --- a service that keeps what it is sent


def command(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """``python -m benchmarks.load ARGUMENTS``."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.load", *arguments], cwd=cwd, env=environment, capture_output=True, text=True,
        timeout=100,
    )  # fmt: skip


TEXT = """<workload name="w"><storage type="swift" config="token=t;storage_url={url}/v1/AUTH_test" /><workflow>
<workstage name="init"><work type="init" workers="1" config="containers=r(1,2)" /></workstage>
<workstage name="one" closuredelay="1"><work name="a" workers="2" totalOps="{total}" {more}>
  <operation type="write" ratio="80" config="containers=c(1);objects=s(1,50);sizes=c(4)KB" />
  <operation type="list" ratio="20" config="containers=u(1,2)" /></work></workstage>
<workstage name="two"><work name="b" workers="1" totalOps="5">
  <operation type="read" config="containers=c(1);objects=s(1,4)" /></work>
  <work name="c" workers="2" runtime="1"><operation type="list" config="containers=u(1,2)" /></work></workstage>
<workstage name="cleanup"><work type="cleanup" workers="1" config="containers=r(1,2);objects=r(1,3)" /></workstage>
</workflow></workload>"""


def every(number: int) -> object_server.Fault:
    """Of so many writes of objects one fails."""
    writes = itertools.count(1)

    def fault(handler: Any, _: int) -> bool:
        if handler.command != "PUT" or "object" not in handler.path or next(writes) % number:
            return False
        object_server.answer(handler, 503, b"busy")
        return True

    return fault


def test_a_workload_from_the_command_line(tmp_path) -> None:
    arguments = ["workload", str(tmp_path / "w.xml")]
    with object_server.serving(fault=every(100)) as (url, _):
        (tmp_path / "w.xml").write_text(TEXT.format(url=url, total=1000, more='afr="50000"'))
        # A relative directory, of one that is not the checkout.
        ran = command(*arguments, "-o", "out", "--result", str(tmp_path / "r.json"), cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.splitlines() == ["init …", "one …", "two …", "cleanup …"]
    found = report.read(tmp_path / "out")
    main = named(found, "a")
    # A hundredth of the writes fail, and all are reported.
    assert main.figures["success_ratio"] == 0.992 and main.figures["failed"] == 8
    assert set(main.run.errors) == {"status 503: busy"}
    assert len(main.run.operations) == 1000 and sum(main.run.operations.kind == "write") == 800
    assert main.details["shares"]["resource"] and sum(main.details["usage"]["machines"][0]["cores"]) > 0
    # Failures are not wrong data.
    assert main.figures["verified"] is True
    case, other = results.read(tmp_path / "r.json").cases
    assert case.figures("one, a")[0] > 0 and case.variants["one, a"].details["usage"]["machines"]
    # Operations that move no bytes are compared by their times.
    assert list(case.variants) == ["one, a", "two, b"] and list(other.variants) == ["two, c", "cleanup"]
    assert case.parameters["protocol"] == "swift" and "users" not in case.parameters
    again = command("analyze", str(tmp_path / "out"))
    assert again.returncode == 0 and again.stdout == ran.stdout
    for words in ("one, a: 8 x status 503: busy", "The bottlenecks", "two, c: processes"):
        assert words in ran.stdout
    checked = command(*arguments, "--check")
    assert checked.stdout.splitlines() == [
        "init: init (init)", "one: a (normal)", "two: b (normal), c (normal)", "cleanup: cleanup (cleanup)"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.xml"], "none.xml"),
        (["wrong.xml", "-o", "x"], r"wrong.xml:1: a: it cannot be at the top"),
        (["swift.xml"], "--output DIRECTORY is needed"),
        (["swift.xml", "-o", "x", "--watch", "swift="], "is not NAME=PATTERN"),
        (["swift.xml", "-o", "x", "--agents", "127.0.0.1:1"], "agent 127.0.0.1:1: .*refused"),
    ],
)
def test_impossible_workloads_are_reported(tmp_path, arguments, message) -> None:
    shutil.copy(EXAMPLES / "swift.xml", tmp_path)
    (tmp_path / "wrong.xml").write_text("<a/>")
    ran = command("workload", *arguments, cwd=tmp_path)
    assert ran.returncode in (1, 2) and re.search(message, ran.stderr) and "Traceback" not in ran.stderr


def test_works_of_a_stage_go_on_at_the_same_time(tmp_path) -> None:
    with object_server.serving() as (url, _):
        found = done(tmp_path, workload(tmp_path / "w.xml", TEXT.format(url=url, total=10, more="")))
    assert statuses(tmp_path) == ["done"] * 4
    data = json.loads((tmp_path / "out" / "workload.json").read_text())
    first, second = data["stages"][2]["works"]
    assert first["started"] < second["finished"] and second["started"] < first["finished"]
    assert data["stages"][2]["works"][0]["started"] >= data["stages"][1]["works"][0]["finished"] + 1
    assert len(named(found, "cleanup").run.operations) == 6


def test_a_failure_ends_it_but_for_the_cleanup(tmp_path) -> None:
    with object_server.serving(fault=every(2)) as (url, _):
        what = workload(tmp_path / "w.xml", TEXT.format(url=url, total=200, more='afr="0"'))
        found = failed(tmp_path, what, "stage one, work a: .*of 200")
    assert statuses(tmp_path) == ["done", "failed", "skipped", "done"]
    assert named(found, "a").figures["success_ratio"] == 0.6
    first, reason, skipped = found.problems
    assert (first, skipped) == ("stage 2 one: failed", "stage 3 two: skipped")
    assert reason == "one, a: 40.00% of 200 operations failed, 0.00% may; such as: status 503: busy"


def test_a_run_that_is_stopped_ends_its_load_generators(tmp_path) -> None:
    with object_server.serving() as (url, _):
        (tmp_path / "w.xml").write_text(TEXT.format(url=url, total=10**9, more='runtime="300"'))
        files = [str(tmp_path / "w.xml"), "-o", str(tmp_path / "out")]
        started = [sys.executable, "-m", "benchmarks.load", "workload", *files]
        with subprocess.Popen(started, cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:

            def generators():
                with contextlib.suppress(psutil.Error):
                    return [each for each in psutil.Process(process.pid).children() if "run" in each.cmdline()]

            children = until(generators, "a load generator")
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 143
            until(lambda: not any(each.is_running() and each.status() != "zombie" for each in children), "its end")


# --- real services


def test_swift_with_an_agent_on_its_machine(tmp_path) -> None:
    with usable("swift")() as server, agent_process() as address:
        what = workload(tmp_path / "swift.xml", short(server.access()))
        watch = {"object": f"object-server*{server.directory}"}
        found = done(tmp_path, what, pids=server.pids(), agents=[address], patterns=watch)
        nothing_is_left(what)
    assert found.problems == [] and set(statuses(tmp_path)) == {"done"}
    assert {each.title for each in found.works} == {"prepare", "read", "mixed, large", "mixed, small", "cleanup"}
    for each in found.works:
        assert each.title == "cleanup" or each.figures["success_ratio"] == 1, each.run.errors
        # Samples from here and from the agent, brought together with the operations.
        processes = each.details["usage"]["processes"]
        assert {"swift-proxy-server", "swift-object-server", "object"} <= {one["name"] for one in processes}
        assert len(each.details["usage"]["machines"]) == 2
        # Both used the same, but how exactly each measures it in so short a time depends on the machine.
        here, there = (one for one in processes if one["name"] in ("swift-object-server", "object"))
        assert set(here["pids"]) == set(there["pids"])
        assert each.details["shares"]["shares"]
    read, large, small = (named(found, name) for name in ("read", "large", "small"))
    assert set(read.run.operations.bytes) == {100_000}
    assert set(large.run.operations.bytes) <= {1 << 20, 2 << 20}
    assert set(small.run.operations.kind) == {"read", "write", "list"}
    (_, *used) = report.judgement(report.result([found]))
    assert len(used) == len(found.works) and all(
        "swift-proxy-server" in "".join(row[0] for row in each.rows) for each in used
    )


# --- servers that fail

MAIN = """<workload name="w"><storage type="swift" config="token={token};storage_url={account}" />
<workflow config="containers=r(1,2)">
<workstage name="init"><work type="init" workers="1" /></workstage>
<workstage name="prepare"><work type="prepare" workers="4" config="objects=r(1,50);sizes=c(64)KB" /></workstage>
<workstage name="main"><work name="main" workers="8" runtime="8">
  <operation type="read" ratio="80" config="objects=u(1,50)" />
  <operation type="write" ratio="20" config="objects=r(51,100);sizes=c(64)KB" /></work></workstage>
<workstage name="cleanup"><work type="cleanup" workers="4" config="objects=r(1,100)" /></workstage>
<workstage name="dispose"><work type="dispose" workers="1" /></workstage>
</workflow></workload>"""


def operations(path: Path) -> int:
    """How many a worker has recorded by now."""
    with contextlib.suppress(Wrong, FileNotFoundError):
        return len(list(records.read(path)))
    return 0


def test_a_server_that_dies(tmp_path, monkeypatch) -> None:
    """It is gone for good: the run ends with the right report, also of objects that cannot be cleaned up."""
    killed: list[float] = []

    def kill() -> None:
        until(lambda: operations(tmp_path / "out" / "03-main" / "1-main" / records.file_name(0)) > 10, "operations")
        killed.append(time.time())
        for pid in server.pids():
            os.kill(pid, signal.SIGKILL)
        # On a busy machine some time has passed.
        killed.append(time.time())

    monkeypatch.setenv("FASTIO_LOAD_PROCESSES", "2")
    with usable("swift")() as server:
        # A login would need the server as well.
        account, token = login(server.access())
        what = workload(tmp_path / "w.xml", MAIN.format(account=account, token=token))
        thread = threading.Thread(target=kill)
        thread.start()
        found = failed(tmp_path, what, "stage main, work main: .* operations failed, 20.00% may")
        thread.join()
    assert statuses(tmp_path) == ["done", "done", "failed", "failed", "failed"]
    main = named(found, "main").run.operations
    assert len(named(found, "main").run.workers) == 2
    late = main.start + named(found, "main").run.started > killed[1] + 0.1
    # All operations begun after its end have failed; those that had ended before have not.
    assert main.failed[late].all() and late.sum() > 5
    early = main.end + named(found, "main").run.started < killed[0] - 0.1
    assert not main.failed[early].any() and early.sum() > 5
    assert any("cleanup" in problem for problem in found.problems)
    ratio = named(found, "main").figures["success_ratio"]
    assert ratio == pytest.approx(1 - main.failed.mean()) and 0 < ratio < 1


# --- the matrix


def test_every_workload_of_the_matrix_has_a_plan() -> None:
    for case in matrix.CASES:
        for variant in case.all_variants():
            from benchmarks.suites.workload_matrix import workload as workload_matrix

            access = dict.fromkeys(("auth_v1", "user", "key"), "x")
            plan = workload_matrix.main_plan({**case.parameters, **variant.parameters}, access)
            assert next(Schedule(plan).share(0, 1))
