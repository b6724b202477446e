"""``fastio trace follow``: what is recorded reaches a collector while it is recorded, all of it and each span once."""

import json
import os
import pathlib
import platform
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from benchmarks.tools.synthetic import BEGIN, HOSTS, MS, SECOND, Host, Process, World
from fastio import cli
from fastio.trace import files
from fastio.trace.analysis import following, otlp, rules
from fastio.trace.analysis.analysis import analyse
from fastio.trace.analysis.following import Follower
from fastio.trace.analysis.model import TraceError
from tests.conftest import MONKEY_PATCHED
from tests.eventually import until
from tests.trace.analysis.collector import Collector, attributes

ROOT = pathlib.Path(cli.__file__).parent.parent


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def follower(tmp_path: pathlib.Path, told: list[str]) -> Iterator[Callable[[], Follower]]:
    """Makes one that goes on where the last one was; that one is closed."""
    made: list[Follower] = []

    def make() -> Follower:
        while made:
            made.pop().close()
        made.append(Follower([tmp_path], rules.load(None), tmp_path / "position", told.append))
        return made[0]

    yield make
    while made:
        made.pop().close()


def plain(exported: dict[str, Any], times: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """The spans by their ids, without their times, with the attributes of their resources."""
    for each in exported["resourceSpans"]:
        for span in each["scopeSpans"][0]["spans"]:
            kept = {name: value for name, value in span.items() if times or not name.endswith("UnixNano")}
            kept["events"] = [(event["name"], event["attributes"]) for event in span["events"]]
            yield span["spanId"], {**kept, "resource": each["resource"]}


def step(following: Follower, final: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """What is sent after one look at the files."""
    while following.read():
        pass
    spans = following.ready(final)
    found = list(plain(following.exported(spans)))
    if spans:
        following.sent(spans)
    return found


def lines_of(process: Process) -> list[tuple[float, bytes]]:
    """The lines of a process's file, each with the true time at which it is there."""
    events = sorted(process.lines, key=lambda line: line[1])
    found = [(0.0, process.header()), *((process.host.true(line[1]), line) for line in events)]
    found.append((found[-1][0], {"end": True, "monotonic": 0, "events": len(events), "lost": 0}))
    return [(time, json.dumps(line).encode() + b"\n") for time, line in found]


@pytest.mark.parametrize("anew", [False, True])
def test_each_span_is_sent_once_and_as_the_report_exports_it(
    tmp_path: pathlib.Path, follower: Callable[[], Follower], told: list[str], anew: bool
) -> None:
    pytest.importorskip("scipy", reason="scipy is not installed")
    pytest.importorskip("drain3", reason="drain3 is not installed")
    world = World([Host(name) for name in ("client1", "api1", "api2")], seed=5)
    world.run(8, 3)
    world.download(BEGIN + 40 * MS, error="ConnectionError: Connection refused", status=503)
    world.client.begin(BEGIN + 50 * MS, "client.request", truth=True, half=0.5, many=[1], nothing=None, lone="\ud800")
    texts = {process.prefix: lines_of(process) for process in world.processes}
    last = max(time for lines in texts.values() for time, _ in lines)
    found: list[tuple[str, dict[str, Any]]] = []
    one = follower()
    early = 0
    for part in range(1, 9):
        for prefix, lines in texts.items():
            there = b"".join(line for time, line in lines if time <= last * part / 8)
            rest = b"".join(line for time, line in lines if time > last * part / 8)
            # A line of which only a part is there yet.
            (tmp_path / f"{prefix}-0.jsonl").write_bytes(there + rest[:7])
        if anew:
            one = follower()
        early = len(found)
        found += step(one) + step(one)
    assert 0 < early < len(found)
    expected = dict(plain(otlp.export(analyse(tmp_path.glob("*.jsonl")))))
    assert len(found) == len(expected)
    if not anew:
        # Who begins anew does not know any more whose call it was that has ended already.
        assert dict(found) == expected
    assert {name: (each["traceId"], each["resource"]) for name, each in found} == {
        name: (each["traceId"], each["resource"]) for name, each in expected.items()
    }
    assert step(one) == step(one) == []
    assert step(follower(), final=True) == []
    assert told == []


def finished(process: Process, at: int, name: str = "glance.request", **values: Any) -> int:
    span = process.begin(BEGIN + at * MS, name, **values)
    process.end(BEGIN + (at + 1) * MS, span, name, status=200)
    return span


def test_what_was_sent_is_sent_again_only_if_nobody_could_write_that_down(
    tmp_path: pathlib.Path, follower: Callable[[], Follower]
) -> None:
    process = Process(Host("api"), 1, "glance-api")
    finished(process, 0)
    process.write(tmp_path, ended=False)
    first = follower()
    assert not first.read()
    spans = first.ready(final=True)
    sent = list(plain(first.exported(spans)))
    assert len(sent) == 1
    # It ends before the position is written.
    second = follower()
    assert step(second, final=True) == sent
    assert step(follower(), final=True) == []


def test_spans_go_when_the_request_around_them_ends(tmp_path: pathlib.Path, follower: Callable[[], Follower]) -> None:
    process = Process(Host("api"), 1, "glance-api")
    outer = process.begin(BEGIN, "glance.request")
    finished(process, 1, "glance.images.index")
    inner = process.begin(BEGIN + MS, "store.swift.get", outer)
    process.end(BEGIN + 2 * MS, inner, "store.swift.get", outer)
    child = process.begin(BEGIN + MS, "subprocess.command", outer, program="dog")
    process.write(tmp_path, ended=False)
    one = follower()
    assert [span["name"] for _, span in step(one, final=True)] == ["glance.images.index"]
    process.end(BEGIN + 3 * MS, outer, "glance.request", request="req-5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3")
    process.write(tmp_path, ended=False)
    one = follower()
    # It could be sent, but its caller may be in a file that was read before.
    assert step(one) == []
    sent = dict(step(one))
    assert {span["name"]: span["traceId"] for span in sent.values()} == dict.fromkeys(
        ("glance.request", "store.swift.get"), "5ba9f1b26a0c4f0e9a424ef5b8e0a1c3"
    )
    # A command that goes on after its request is known to be within it, also by who begins anew.
    process.end(BEGIN + 4 * MS, child, "subprocess.command", outer, code=0)
    process.write(tmp_path, ended=False)
    ((_, late),) = step(follower(), final=True)
    assert late["name"] == "subprocess.command"
    assert sent[late["parentSpanId"]]["name"] == "glance.request"


def test_of_a_process_that_is_gone_all_is_sent(tmp_path: pathlib.Path, follower: Callable[[], Follower]) -> None:
    child = subprocess.Popen(["true"])
    host = Host(socket.gethostname())
    gone, other, alive = (Process(host, pid, "glance-api") for pid in (child.pid, child.pid + 1, os.getpid()))
    child.wait()
    if pathlib.Path(f"/proc/{child.pid}").exists():
        pytest.skip("the number is another process's already")
    for process, namespace in ((gone, files.pid_namespace()), (other, 1), (alive, files.pid_namespace())):
        outer = process.begin(BEGIN, "glance.request")
        process.end(BEGIN + MS, process.begin(BEGIN, "store.swift.get", outer), "store.swift.get", outer)
        (path,) = process.write(tmp_path, ended=False)
        header, rest = path.read_text().split("\n", 1)
        told = {**json.loads(header), "boot": files.boot_id(), "namespace": namespace}
        path.write_text(json.dumps(told) + "\n" + rest)
    one = follower()
    sent = dict(step(one, final=True))
    assert {span["name"] for span in sent.values()} == {"glance.request", "store.swift.get"}
    assert len(sent) == 2
    flags = [each["key"] for span in sent.values() for each in span["attributes"]]
    assert flags.count("fastio.incomplete") == 1
    # Of others there is no telling: what has ended goes after a while of silence.
    for path in tmp_path.glob("*.jsonl"):
        os.utime(path, (1, 1))
    one = follower()
    assert len(step(one, final=True)) == 4


def test_silence_is_no_end(
    tmp_path: pathlib.Path, follower: Callable[[], Follower], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "SILENT", -1.0)
    process = Process(Host("api"), 1, "glance-api")
    outer = process.begin(BEGIN, "glance.request")
    process.end(BEGIN + MS, process.begin(BEGIN, "store.swift.get", outer), "store.swift.get", outer)
    process.write(tmp_path, ended=False)
    one = follower()
    assert [span["name"] for _, span in step(one, final=True)] == ["store.swift.get"]
    process.end(BEGIN + 2 * MS, outer, "glance.request")
    process.write(tmp_path)
    assert [span["name"] for _, span in step(follower(), final=True)] == ["glance.request"]


def test_files_that_are_rotated_and_removed(
    tmp_path: pathlib.Path, follower: Callable[[], Follower], told: list[str]
) -> None:
    process = Process(Host("api"), 1, "glance-api")
    for number in range(60):
        finished(process, 10 * number)
    paths = process.write(tmp_path, files=6, ended=False)
    content = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    found = []
    for number, path in enumerate(paths[:3]):
        path.write_bytes(content[number])
        if number > 1:
            paths[number - 2].unlink()
        one = follower()
        found += step(one, final=True)
    assert len(found) == len(dict(found)) == 30
    assert told == []
    # While it did not run, two files have come and gone, and another one was not read to its end.
    for path in paths[1:3]:
        path.unlink()
    paths[5].write_bytes(content[5])
    found += step(follower(), final=True)
    assert len(dict(found)) == 40
    assert sorted(told) == [
        "process 1 on api: 2 files were removed before they were read",
        "process 1 on api: file 2 was removed before it was seen that all of it was read",
    ]


def test_damage_is_told_and_the_rest_is_sent(
    tmp_path: pathlib.Path, follower: Callable[[], Follower], told: list[str]
) -> None:
    process = Process(Host("api"), 1, "glance-api")
    finished(process, 0)
    (path,) = process.write(tmp_path, ended=False)
    kept = path.read_bytes()
    path.write_bytes(kept + b"{oops\n" + b"x" * (1 << 20) + b"\n")
    one = follower()
    assert len(step(one, final=True)) == 1
    assert [line.partition("jsonl")[2] for line in told] == [
        ":4: not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ":5: longer than 1048576 bytes",
    ]
    told.clear()
    # What could not be written whole is cut off, and something else is written there: once shorter, once longer.
    finished(process, 5)
    (path,) = process.write(tmp_path, ended=False)
    one = follower()
    assert step(one, final=True) == []
    assert "is not what was read before" in told[0]
    told.clear()
    finished(process, 10)
    process.write(tmp_path, ended=False)
    assert len(step(one, final=True)) == 1
    finished(process, 15, peer="192.0.2.1")
    process.lines[-2][1] -= 1000 * SECOND
    process.write(tmp_path, ended=False)
    step(one, final=True)
    assert len(told) == 1 and "is not what was read before" in told[0]


def test_a_file_without_its_first_line_and_events_that_were_lost(
    tmp_path: pathlib.Path, follower: Callable[[], Follower], told: list[str]
) -> None:
    process = Process(Host("api"), 1, "glance-api")
    finished(process, 0)
    (path,) = process.write(tmp_path)
    path.write_text("".join(path.read_text().splitlines(True)[1:]))
    other = Process(Host("api"), 2, "glance-api")
    (path,) = other.write(tmp_path, ended=False)
    path.write_text(path.read_text() + '{"lost": 12, "monotonic": 1}\n')
    assert step(follower(), final=True) == []
    assert [line.rpartition("/")[2] for line in told] == [
        "api-1-1700000000000-0.jsonl: no first line that tells the process: 2 events left out",
        "process 2 on api: it has lost 12 events",
    ]


def test_what_is_held_is_bounded(
    tmp_path: pathlib.Path, follower: Callable[[], Follower], told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MOST_HELD", 10)
    monkeypatch.setattr(following, "PIECE", 300)
    monkeypatch.setattr(following.reading, "LONGEST_LINE", 300)
    process = Process(Host("api"), 1, "glance-api")
    for number in range(40):
        outer = process.begin(BEGIN + 10 * number * MS, "glance.request")
        inner = process.begin(BEGIN + (10 * number + 1) * MS, "store.swift.get", outer)
        process.end(BEGIN + (10 * number + 2) * MS, inner, "store.swift.get", outer)
    process.write(tmp_path, ended=False)
    one = follower()
    found, most = [], 0
    more = True
    while more:
        more = one.read()
        if one.full or not more:
            most = max(most, sum(len(held.process.spans) - len(held.sent) for held in one._held.values()))
            spans = one.ready()
            found += list(plain(one.exported(spans)))
            one.sent(spans)
    assert most < 20
    assert len(found) == len(dict(found)) > 60
    assert {span["name"] for _, span in found} == {"glance.request", "store.swift.get"}
    assert told and all("have not ended: half of them are sent as they are" in line for line in told)


def test_one_at_a_time_and_only_with_a_position_of_its_own(tmp_path: pathlib.Path, told: list[str]) -> None:
    given: Any = ([tmp_path], rules.load(None), tmp_path / "position", told.append)
    one = Follower(*given)
    with pytest.raises(TraceError, match="--position .*: another process follows with it"):
        Follower(*given)
    one.close()
    for content in (
        "",
        "{}",
        "[]",
        '{"fastio-trace-position": 2}',
        '{"fastio-trace-position": 1, "processes": {"a": 1}}',
    ):
        (tmp_path / "position").write_text(content)
        with pytest.raises(TraceError, match="this is no position that fastio trace follow has written"):
            Follower(*given)
    with pytest.raises(TraceError, match="/no/such/position.lock: No such file or directory"):
        Follower([tmp_path], rules.load(None), pathlib.Path("/no/such/position"), told.append)


# With a collector.


@pytest.fixture
def collector(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the exporter is not installed")
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    # A collector that is not there is found out at once.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    made = Collector(tmp_path / "collected")
    yield made
    made.stop()


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    status = cli.main(["trace", "follow", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_collector_is_sent_what_the_export_has(
    tmp_path: pathlib.Path, collector: Collector, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "trace"
    directory.mkdir()
    world = World(list(HOSTS[:1]), seed=3)
    world.run(20, 2)
    world.download(BEGIN + 9 * SECOND, error="ConnectionError: Connection refused", status=503)
    world.write(directory)
    collector.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    status, out, err = run(capsys, directory, "--once")
    sent = list(collector.spans())
    assert (status, err) == (0, "")
    assert out == f"{len(sent)} spans sent to {collector.url}/v1/traces\n"
    pytest.importorskip("drain3", reason="drain3 is not installed")
    expected = dict(plain(otlp.export(analyse([directory])), times=True))
    assert len(sent) == len(expected) > 60
    for resource, span in sent:
        told = expected[span.span_id.hex()]
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (told["traceId"], told["parentSpanId"])
        assert (span.name, span.kind, span.status.code) == (told["name"], told["kind"], told["status"].get("code", 0))
        assert span.status.message == told["status"].get("message", "")
        assert str(span.start_time_unix_nano) == told["startTimeUnixNano"]
        assert str(span.end_time_unix_nano) == told["endTimeUnixNano"]
        assert [event.name for event in span.events] == [name for name, _ in told["events"]]
        for found, given in ((attributes(span), told), (resource, told["resource"])):
            kinds = [next(iter(each["value"].items())) for each in given["attributes"]]
            values = [int(value) if kind == "intValue" else value for kind, value in kinds]
            assert found == dict(zip([each["key"] for each in given["attributes"]], values, strict=True))
    # Nothing is left.
    assert run(capsys, directory, "--once")[1].startswith("0 spans sent to ")
    assert set(collector.statuses()) == {200}


def test_what_is_refused_for_ever_is_left_out_and_the_rest_is_sent(
    tmp_path: pathlib.Path, collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "trace"
    directory.mkdir()
    process = Process(Host("api"), 1, "glance-api")
    for number in range(4):
        finished(process, 10 * number)
    process.write(directory)
    # All four; the first two, the first, the second; the other two.
    collector.start("400", "413", "400", "200")
    status, out, err = run(capsys, directory, "--once", "--otlp", f"{collector.url}/v1/traces/")
    assert (status, collector.statuses()) == (1, [400, 413, 400, 200, 200])
    assert out.startswith("3 spans sent to ")
    assert (
        err
        == f"fastio: {collector.url}/v1/traces: a span of glance-api 1 on api is left out: it answers 400 Bad Request\n"
    )
    assert len(list(collector.spans())) == 3


def test_once_says_that_the_collector_takes_nothing_now(
    tmp_path: pathlib.Path, collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "trace"
    directory.mkdir()
    process = Process(Host("api"), 1, "glance-api")
    finished(process, 0)
    process.write(directory)
    status, _, err = run(capsys, directory, "--once", "--otlp", collector.url)
    assert status == 2
    assert err.startswith(f"fastio: {collector.url}/v1/traces: ConnectionError: ")
    assert err.endswith("; the next run goes on from here\n")
    # What OpenTelemetry's variables say may be wrong: then nothing is left out either.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b%0Ac")
        status, _, err = run(capsys, directory, "--once", "--otlp", collector.url)
    assert (status, err.count("\n")) == (2, 1)
    assert "InvalidHeader" in err
    # A redirection is no success.
    collector.start("307", "401", "404", "200")
    for said in ("307 Temporary Redirect", "401 Unauthorized", "404 Not Found"):
        status, _, err = run(capsys, directory, "--once", "--otlp", collector.url)
        assert (status, err) == (
            2, f"fastio: {collector.url}/v1/traces: it answers {said}; the next run goes on from here\n"
        )  # fmt: skip
    assert run(capsys, directory, "--once", "--otlp", collector.url)[0] == 0
    assert len(list(collector.spans())) == 1


PROGRAM = """
import subprocess, sys
import fastio
fastio.patch([], trace=sys.argv[1])
for line in sys.stdin:
    if line == "hang\\n":
        subprocess.run(["cat"], stdin=sys.stdin, stdout=subprocess.PIPE)
    subprocess.run(["true"], stdout=subprocess.PIPE)
"""


@pytest.mark.skipif(MONKEY_PATCHED, reason="nothing here depends on the hub, and the processes are others")
def test_live(tmp_path: pathlib.Path, collector: Collector) -> None:
    """A program runs and is killed, the collector comes late and takes its time, and the follower is started anew."""
    directory = tmp_path / "trace"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FASTIO")}
    environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{collector.url}/v1/traces"
    directory.mkdir()
    command = [sys.executable, "-m", "fastio", "trace", "follow", str(directory)]
    given: dict[str, Any] = {"cwd": ROOT, "env": environment, "text": True}
    log = tmp_path / "log"

    def follow() -> subprocess.Popen[str]:
        with log.open("a") as stderr:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, **given)

    def sent() -> list[str]:
        return [span.span_id.hex() for _, span in collector.spans()]

    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(directory)], stdin=subprocess.PIPE, **given) as program:
        assert program.stdin is not None
        following = follow()
        try:
            program.stdin.write("one\n")
            program.stdin.flush()
            until(lambda: "ConnectionError" in log.read_text(), "the follower to find no collector")
            collector.start("503:1", "200")
            until(lambda: len(sent()) == 1, "the first span")
            assert collector.statuses() == [503, 200]
            assert program.poll() is None
            following.send_signal(signal.SIGTERM)
            assert following.communicate(timeout=100)[0].startswith("1 spans sent to ")
            assert following.returncode == 0
            program.stdin.write("two\nhang\n")
            program.stdin.flush()
            begun = re.compile(r'^\["B"', re.M)
            until(
                lambda: len(begun.findall(next(directory.glob("*.jsonl")).read_text())) == 3, "the command that hangs"
            )
            following = follow()
            until(lambda: len(sent()) == 2, "the second span")
            assert following.poll() is None
        finally:
            program.kill()
            program.wait()
            if following.poll() is None and len(sent()) < 2:
                following.kill()
        try:
            until(lambda: len(sent()) == 3, "what was under way when the program was killed")
        finally:
            following.send_signal(signal.SIGINT)
            out = following.communicate(timeout=100)[0]
    assert (following.returncode, out) == (0, f"2 spans sent to {collector.url}/v1/traces\n")
    assert len(set(sent())) == 3
    found = list(collector.spans())
    assert [attributes(span).get("fastio.incomplete", False) for _, span in found] == [False, False, True]
    assert [attributes(span)["fastio.program"] for _, span in found] == ["true", "true", "cat"]
    system = os.uname()
    for resource, _ in found:
        assert resource["host.name"] == system.nodename
        assert (resource["os.type"], resource["os.version"]) == ("linux", system.release)
        assert resource["os.description"] == f"Linux {system.release}"
        assert resource["host.arch"] == {"x86_64": "amd64", "aarch64": "arm64"}.get(system.machine, system.machine)
        assert resource["process.pid"] == program.pid
        assert resource["process.runtime.name"] == sys.implementation.name
        assert resource["process.runtime.version"] == platform.python_version()
        assert resource["service.name"] == "unknown"
    assert len({resource["service.instance.id"] for resource, _ in found}) == 1
    said = log.read_text().splitlines()
    assert [re.sub(r".*/v1/traces: |ConnectionError: .*(?=; it)", "", line) for line in said] == [
        "; it is tried again", "it answers 503 Service Unavailable; it is tried again", "it takes spans again",
    ]  # fmt: skip


@pytest.mark.parametrize("variables, arguments, said", [
    ({}, ["--otlp", "collector:4318"], "--otlp: 'collector:4318' is not allowed; allowed is an address such as http://"),
    ({}, ["--otlp", ""], "--otlp: '' is not allowed; allowed is an address such as http://collector:4318"),
    ({}, ["--otlp", "http://collector:many"], "--otlp: 'http://collector:many' is not allowed"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "a"}, [], "OTEL_EXPORTER_OTLP_ENDPOINT: 'a' is not allowed; allowed is an"),
    ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, [], "OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' is not allowed; allowed is"),
    ({}, ["/no/such/directory"], "/no/such/directory: no such directory"),
])  # fmt: skip
def test_bad_input_names_itself(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], collector: Collector, monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str], arguments: list[str], said: str,
) -> None:  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    status, _, err = run(capsys, tmp_path, *arguments)
    assert status == 2
    assert err.startswith(f"fastio: {said}")
    assert err.count("\n") == 1


def test_a_missing_exporter_is_named_with_the_extra(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry.exporter")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    status, _, err = run(capsys, tmp_path)
    assert status == 2
    assert "this needs opentelemetry-exporter-otlp-proto-http, which cannot be imported" in err
    assert "pip install 'fastio[otlp]'" in err


@pytest.mark.parametrize("header, least, most", [
    (None, 0, 0), ("7", 7, 7), (" 7 ", 7, 7), ("-7", 0, 0), ("soon", 0, 0), ("9" * 400, 3600, 3600),
    ("Fri, 31 Dec 1999 23:59:59 GMT", 0, 0), ("Fri, 31 Dec 9998 23:59:59 GMT", 3600, 3600),
])  # fmt: skip
def test_when_to_try_again(header: str | None, least: float, most: float) -> None:
    from fastio.trace.analysis import sending

    assert least <= sending._seconds(header) <= most
