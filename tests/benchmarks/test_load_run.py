"""Loads that are really carried out, by Locust: alone, with workers, against servers that misbehave, and real ones."""

import collections
import contextlib
import dataclasses
import importlib.util
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

# Not importorskip(): to import it patches the process.
if importlib.util.find_spec("locust") is None:
    pytest.skip("loads need the extra 'load'", allow_module_level=True)
pytest.importorskip("numpy", reason="the analysis needs the extra 'bench'")

from benchmarks.backends import SERVICES
from benchmarks.backends.base import reserved_port
from benchmarks.load import Failed, analysis, measuring, protocols, report
from benchmarks.load.plan import Names, Operation, Plan
from tests.backends.required import usable
from tests.benchmarks import object_server
from tests.conftest import with_services

pytestmark = with_services

ROOT = Path(__file__).parent.parent.parent

#: How often plan()'s operations use each of its objects.
TWICE = dict.fromkeys(range(1, 51), 2)


def operation(kind: str, count: int, size: int) -> Operation:
    return Operation(kind, objects=Names(f"r(1,{count})", "object-"), sizes=f"c({size})B")


def plan(url: str = "http://127.0.0.1:1", size: int = 20_000, **fields) -> Plan:
    defaults = {"operations": (operation("read", 50, size),), "users": 3, "total": 100, "patience": 20}
    return Plan(protocol="logs", server={"url": url}, **{**defaults, **fields})


def numbers(found: analysis.Run) -> dict[int, int]:
    """How often each object was used."""
    return collections.Counter((found.operations.number & 0xFFFFFFFF).tolist())


def read(directory: Path) -> analysis.Run:
    found = analysis.read(directory)
    assert not found.doubts
    return found


def carried_out(tmp_path: Path, chosen: Plan, fault=object_server.well) -> tuple[analysis.Run, object_server.Objects]:
    with object_server.serving(chosen, fault) as (url, objects):
        directory = measuring.carry_out(dataclasses.replace(chosen, server={"url": url}), tmp_path / "run")
    return read(directory), objects


def test_one_process_does_every_operation_once(tmp_path) -> None:
    found, objects = carried_out(tmp_path, plan())
    operations = found.operations
    assert collections.Counter(objects.numbers) == TWICE
    assert numbers(found) == TWICE
    assert not operations.failed.any() and set(operations.status) == {200} and set(operations.bytes) == {20_000}
    assert set(operations.user) == {0, 1, 2}
    # Each user has kept its connection.
    assert len(objects.connections) == 3
    assert (operations.start <= operations.sent).all()
    assert (operations.sent <= operations.first_byte).all() and (operations.first_byte <= operations.end).all()
    figures = report.figures(found)
    assert figures["verified"] and figures["success_ratio"] == 1 and 0 < figures["generator_cpu"] <= 1.1
    assert list(tmp_path.iterdir()) == [tmp_path / "run"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["run.json", "worker-0.csv.gz"]


def test_a_time_instead_of_a_number(tmp_path) -> None:
    started = time.monotonic()
    found, objects = carried_out(tmp_path, plan(total=0, seconds=1.0))
    assert time.monotonic() - started >= 1.0
    # How many fit is the machine's business.
    assert len(found.operations) == len(objects.numbers) > 0


def stall(at: int, seconds: float) -> object_server.Fault:
    """From this request on none is answered, for so many seconds."""
    until = [0.0]

    def fault(handler: Any, count: int) -> bool:
        # Not only this one: its thread may be held up here while those of others answer.
        if count >= at and not until[0]:
            until[0] = time.monotonic() + seconds
        time.sleep(max(0.0, until[0] - time.monotonic()))
        return False

    return fault


def test_an_open_loop_shows_a_stall(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FASTIO_LOAD_PROCESSES", "2")
    chosen = plan(users=4, total=150, size=1000, rate=100)
    found, objects = carried_out(tmp_path, chosen, stall(20, 1.0))
    assert numbers(found) == collections.Counter(objects.numbers)
    assert len(objects.numbers) == 150
    # Two processes have shared it evenly, and their users are different ones.
    assert len({worker["pid"] for worker in found.workers}) == 2 and len(set(found.operations.user)) == 4
    assert collections.Counter((found.operations.user >> 32).tolist()) == {0: 75, 1: 75}
    # Of those that were due while none was answered, four were under way at the most, and all of them waited.
    assert (found.operations.milliseconds("from_due") >= 500).sum() >= 45
    assert report.figures(found)["from_due_p99_ms"] >= 900


def test_an_operation_that_cannot_begin_in_time_has_failed(tmp_path) -> None:
    chosen = plan(users=1, total=40, size=1000, rate=100, patience=0.5)
    directory = tmp_path / "run"
    with object_server.serving(chosen, stall(5, 2.0)) as (url, _):
        measuring.carry_out(dataclasses.replace(chosen, server={"url": url}), directory)
    found = analysis.read(directory)
    assert len(found.operations) == 40 and found.operations.failed.any()
    assert any("not begun within 0.5 s: no user was free" in error for error in found.errors)


def start(*arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "benchmarks.load", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def written(tmp_path: Path, chosen: Plan) -> str:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(chosen.to_dict()))
    return str(path)


@contextlib.contextmanager
def elsewhere(tmp_path: Path, chosen: Plan, *options: str, fault=object_server.well) -> Iterator[Any]:
    """Two workers that wait for a master; yields them, what starts a master, and what the objects' server sees."""
    with object_server.serving(chosen, fault) as (url, objects), contextlib.ExitStack() as stack:
        address = f"127.0.0.1:{stack.enter_context(reserved_port()).getsockname()[1]}"
        path = written(tmp_path, dataclasses.replace(chosen, server={"url": url}))

        def started(*arguments: str) -> subprocess.Popen:
            process = start(*arguments)
            stack.callback(_end, process)
            return process

        workers = [started("worker", address, *options) for _ in range(2)]
        yield workers, lambda name="run": started(
            "run", path, "--output", str(tmp_path / name), "--bind", address, "--workers", "2"
        ), objects  # fmt: skip


def _end(process: subprocess.Popen) -> None:
    process.terminate()
    process.communicate(timeout=60)


def test_two_workers_elsewhere(tmp_path) -> None:
    """The example of the documentation, on loopback."""
    with elsewhere(tmp_path, plan()) as (workers, run, objects):
        master = run()
        _, said = master.communicate(timeout=120)
        assert master.returncode == 0, said
        assert [worker.wait(60) for worker in workers] == [0, 0]
    # The workers' last figures are in Locust's summary.
    rows = [line.split() for line in said.splitlines() if line.startswith("read ")]
    assert rows[0][:4] == ["read", "logs", "100", "0(0.00%)"]
    found = read(tmp_path / "run")
    assert collections.Counter(objects.numbers) == TWICE
    assert len(found.workers) == 2 and len(found.operations) == 100
    assert all(abs(worker["clock_offset"]) <= worker["clock_error"] + 0.001 for worker in found.workers)


def test_workers_that_keep_waiting_take_part_in_one_run_after_the_other(tmp_path) -> None:
    with elsewhere(tmp_path, plan(total=10, users=1), "--keep") as (_, run, _):
        for name in ("first", "second"):
            master = run(name)
            assert master.wait(120) == 0, master.stderr.read()
            found = read(tmp_path / name)
            # There are fewer users than workers.
            assert len(found.operations) == 10 and len(found.workers) == 1


def test_errors_are_recorded(tmp_path) -> None:
    def fault(handler, count: int) -> bool:
        if count % 10 == 1:
            object_server.reset(handler)
        elif count % 10 == 3:
            object_server.answer(handler, 503, b"busy")
        elif count % 10 == 5:
            object_server.answer(handler, 200, bytes(20_000))
        elif count % 10 == 7:
            object_server.answer(handler, 200, b"short", length=20_000)
            handler.close_connection = True
        else:
            return False
        return True

    chosen = plan(users=1, keep_alive=False)
    found, _ = carried_out(tmp_path, chosen, fault)
    assert len(found.operations) == 100
    figures = report.figures(found)
    assert (figures["failed"], figures["success_ratio"], figures["verified"]) == (40, pytest.approx(0.6), False)
    errors = {error.partition(":")[0]: count for error, count in found.errors.items()}
    assert errors.pop("status 503") == 10
    assert errors.pop("wrong data in the piece from byte 0 on") == 10
    assert errors.pop("5 bytes instead of 20000") == 10
    assert sum(errors.values()) == 10 and set(errors) <= {"ConnectionResetError", "RemoteDisconnected"}


@pytest.mark.parametrize("drips", [False, True], ids=["silent", "drips"])
def test_a_server_that_does_not_end(tmp_path, drips) -> None:
    """Nothing comes, or each byte in time, but not the end."""
    released = threading.Event()

    def fault(handler, count: int) -> bool:
        if count != 1:
            return False
        if drips:
            handler.send_response(200)
            handler.send_header("Content-Length", "20000")
            handler.end_headers()
        # Long enough that no byte comes later on a busy machine either.
        while not released.wait(0.1 if drips else 60):
            try:
                handler.wfile.write(b"x")
                handler.wfile.flush()
            except OSError:
                break
        handler.close_connection = True
        return True

    try:
        found, _ = carried_out(tmp_path, plan(users=1, total=3, patience=5.0), fault)
    finally:
        released.set()
    assert len(found.operations) == 3
    (error,) = found.errors.items()
    assert error == ("no end after 5 s", 1) or not drips and "timed out" in error[0]


def test_a_worker_that_dies_is_lost_and_the_run_ends(tmp_path) -> None:
    begun = threading.Event()

    def fault(handler, count: int) -> bool:
        if count > 20:
            begun.set()
        time.sleep(0.02)
        return False

    chosen = plan(users=2, total=0, seconds=5)
    with elsewhere(tmp_path, chosen, fault=fault) as (workers, run, _):
        master = run()
        assert begun.wait(60)
        workers[0].send_signal(signal.SIGKILL)
        assert master.wait(120) == 0, master.stderr.read()
        assert workers[1].wait(60) == 0
    found = analysis.read(tmp_path / "run")
    assert [worker["lost"] for worker in found.workers].count(True) == 1
    assert any("was lost" in note for note in found.doubts)
    assert report.figures(found)["verified"] is False
    assert len(found.operations) > 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "1", "--patience", "0.5"], "waited 0.5 s for 1 workers to come"),
        (["--bind", "nowhere"], "connect|resolve|Name"),
        (["--bind", "127.0.0.1:x"], "is not HOST:PORT"),
        (["--processes", "-1"], "is not a number from 0 on"),
    ],
)
def test_impossible_plans_are_reported(tmp_path, arguments, message) -> None:
    more = ["--workers", "1"] if arguments[0] == "--bind" else []
    master = start("run", written(tmp_path, plan()), "--output", str(tmp_path / "run"), *arguments, *more)
    errors = master.communicate(timeout=100)[1]
    assert master.returncode != 0
    assert re.search(message, errors)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"protocol": "swift", "server": {"url": "x"}}, "server of swift: needs user, key"),
        ({"operations": (operation("write", 1, 1),)}, "logs cannot write, only read"),
        ({}, "there is something in it already"),
    ],
)
def test_a_load_that_is_refused(tmp_path, fields, message) -> None:
    (tmp_path / "run").mkdir()
    if not fields:
        (tmp_path / "run" / "kept").touch()
    with pytest.raises(Failed, match=message):
        measuring.carry_out(dataclasses.replace(plan(), **fields), tmp_path / "run")
    assert (tmp_path / "run").exists() == (not fields)


@pytest.mark.parametrize("how", ["stop", "longest"])
def test_a_load_that_is_stopped_ends(tmp_path, how) -> None:
    begun = threading.Event()

    def fault(handler, count: int) -> bool:
        begun.set()
        time.sleep(0.02)
        return False

    chosen = plan(total=0, seconds=600)
    ways: dict[str, dict[str, Any]] = {"stop": {"stop": begun}, "longest": {"longest": 3.0}}
    with object_server.serving(chosen, fault) as (url, _):
        running = dataclasses.replace(chosen, server={"url": url})
        with pytest.raises(Failed, match="the load was stopped|did not end in 3 s"):
            measuring.carry_out(running, tmp_path / "run", **ways[how])


def test_only_the_generators_processes_are_patched() -> None:
    code = (
        "import sys; from benchmarks.load import analysis, content, measuring, plan, records, report, schedule; "
        "from benchmarks.load.protocols import glance, logs, swift; import benchmarks.load.__main__; "
        "print([name for name in ('gevent', 'locust', 'eventlet') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- real services


ALL = ("write", "read", "list", "delete")


def everything(tmp_path: Path, protocol: str, server: dict, kinds: Sequence[str] = ALL) -> None:
    """Write, read, list and delete, with two users; and the same container again."""
    chosen = Plan(
        protocol=protocol, server=server, operations=(operation("write", 20, 300_001),), users=2, total=20,
    )  # fmt: skip
    service = protocols.once(chosen)
    for _ in range(2):
        service.make_container("load1")
    for kind in kinds:
        objects = None if kind == "list" else Names("r(1,20)", "object-")
        sizes = "c(300001)B" if kind in ("read", "write") else ""
        step = dataclasses.replace(chosen, operations=(Operation(kind, objects=objects, sizes=sizes),))
        found = read(measuring.carry_out(step, tmp_path / kind))
        assert found.errors == {}
        assert len(found.operations) == 20
        assert set(found.operations.bytes) == ({0} if kind in ("list", "delete") else {300_001})
        assert report.figures(found)["verified"]
    if kinds != ALL:
        return
    gone = dataclasses.replace(chosen, operations=(operation("read", 20, 300_001),))
    found = read(measuring.carry_out(gone, tmp_path / "gone"))
    assert report.figures(found)["success_ratio"] == 0 and set(found.operations.status) == {404}
    for _ in range(2):
        service.remove_container("load1")


def test_the_load_reaches_swift_by_both_logins(tmp_path) -> None:
    with usable("swift")() as running:
        access = running.access()
        everything(tmp_path, "swift", {key: access[key] for key in ("auth_v1", "user", "key")})
        # The other login, to the same container.
        other = {key: access[key] for key in ("auth_v3", "user", "key")}
        everything(tmp_path / "v3", "swift", other, ("write",))


def test_swift_renews_its_token(tmp_path) -> None:
    with usable("swift")(token_life=2) as running:
        access = running.access()
        chosen = Plan(
            protocol="swift", server={key: access[key] for key in ("auth_v1", "user", "key")}, users=2, seconds=5,
            operations=(operation("write", 5, 1000),),
        )  # fmt: skip
        protocols.once(chosen).make_container("load1")
        found = read(measuring.carry_out(chosen, tmp_path / "run"))
        assert found.errors == {}
        wrong = dataclasses.replace(chosen, server={**chosen.server, "key": "guess"})
        with pytest.raises(Failed, match="worker 0: Refused: login to .*status 401"):
            measuring.carry_out(wrong, tmp_path / "refused")


@pytest.mark.parametrize("release", SERVICES)
def test_glance(tmp_path, release) -> None:
    with usable(release)() as running:
        everything(tmp_path, "glance", {"url": running.access()["url"]})
