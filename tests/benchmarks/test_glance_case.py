"""The benchmarks of glance with little data, and what is read from their results; they notice what is wrong."""

import contextlib
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

# Not "http.server.…": eventlet's import of that module leaves its own copy at the package.
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")

from benchmarks.backends import SERVICES
from benchmarks.backends.base import HOST
from benchmarks.harness import engine, other_requests, results, servers, worker
from benchmarks.harness.engine import Case, Variant
from benchmarks.harness.other_requests import Requests
from benchmarks.suites.concurrency import bench_concurrency
from benchmarks.suites.glance import bench_glance
from benchmarks.suites.glance import tables as glance_tables
from benchmarks.suites.glance import workload as glance
from benchmarks.suites.glance.bench_glance import ELSEWHERE
from benchmarks.suites.glance_client import bench_glance_client, commands
from benchmarks.suites.glance_client import tables as client_tables
from benchmarks.suites.glance_client import workload as glance_client
from tests.benchmarks import samples
from tests.benchmarks.running import measured, needs, work
from tests.conftest import with_services

pytestmark = [with_services, pytest.mark.usefixtures("cache")]

#: Divides nothing.
SIZE = 300_001


# --- through the real servers


@pytest.mark.parametrize("release", SERVICES)
def test_downloads(release: str) -> None:
    needs(release, "http")
    rows = [("stock", ""), ("fastio", "fastio"), ("reference-nginx", "nginx")]
    variants = [Variant("transfer", label=title, parameters={"server": name}) for title, name in rows]
    more = {"clients": 3, "requests": 1, "server": "fastio"}
    variants += [Variant("transfer", "requests", more), Variant("transfer", "elsewhere", {"source": ELSEWHERE})]
    found = measured(
        Case(
            name="case", workload="glance", variants=variants, rounds=1,
            warmup=0, parameters={"task": "download", "size": SIZE}, backend=release,
            beside={"fastio": (release, {"fastio": "on"}), "nginx": ("http", {})}, prepare="prepare",
        )
    )  # fmt: skip
    assert found.backend["fastio"] == f"{release} fastio=on"
    for title, row in found.variants.items():
        (one,) = row.runs
        transfers = 3 if title == "requests" else 1
        assert one["verified"] and (one["bytes"], one["transfers"]) == (transfers * SIZE, transfers)
        assert one["server_cpu_seconds"] > 0 and one["cpu_seconds"] > 0
        assert (one.get("requests", 0) > 0) == ("p50_ms" in one) == ("mb_s" in one) == (title == "requests")


@pytest.mark.parametrize("release", SERVICES)
def test_uploads(release: str) -> None:
    needs(release, "http")
    rows: dict[str, dict[str, Any]] = {
        "stock": {},
        "fastio": {"server": "fastio"},
        "reference-nginx": {"server": "nginx"},
        "chunked": {"chunked": 1},
    }
    variants = [Variant("transfer", label=title, parameters=parameters) for title, parameters in rows.items()]
    more = {"clients": 3, "requests": 1}
    found = measured(
        Case(
            name="case", workload="glance", rounds=1, warmup=0, backend=release, prepare="prepare",
            variants=[*variants, Variant("transfer", "requests", more), "limit-sha512"],
            parameters={"task": "upload", "size": SIZE},
            beside={"fastio": (release, {"fastio": "on"}), "nginx": ("http", {"writable": 1})},
        )
    )  # fmt: skip
    for title, row in found.variants.items():
        (one,) = row.runs
        assert one["verified"] and one["bytes"] == (3 if title == "requests" else 1) * SIZE
        assert ("server_cpu_seconds" in one) == (title != "limit-sha512")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_clients(scheme: str) -> None:
    needs("glance-32", "http")
    (case,) = [case for case in bench_glance_client.CASES if case.name == f"client-{scheme}"]
    # Each mode over one of them.
    green = scheme == "https"
    chosen = [each for each in case.all_variants() if each.name == "curl" or ("eventlet" in each.name) == green]
    found = measured(dataclasses.replace(case, variants=chosen), engine.Options(quick=True))
    for title, row in found.variants.items():
        (one,) = row.runs
        assert one["bytes"] == 1 << 20
        assert one["load_percent"] == pytest.approx(100 * one["cpu_seconds"] / one["seconds"])
        assert ("transfer_cpu_seconds" in one) == title.startswith(("api", "limit"))
        assert row.details["load"][-1][0] == pytest.approx(one["seconds"], abs=0.001)
    assert client_tables.judgement(samples.result(found))[0].rows


@pytest.mark.parametrize(
    ("task", "scheme", "service"),
    [("image-save", "https", "glance-32"), ("image-create", "http", "glance-32"), ("object-save", "https", "swift")],
)
def test_commands(task: str, scheme: str, service: str) -> None:
    needs("glance-32", "http", service)
    (case,) = [case for case in bench_glance_client.CASES if case.name == f"{task}-{scheme}"]
    # Each kind of row in one of them.
    left_out = ("glance-stock", "openstack-fastio") if task == "image-create" else ("glance", "openstack-stock")
    chosen = [each for each in case.all_variants() if not each.title.startswith(left_out)]
    if chosen[-1].skip:
        pytest.skip(chosen[-1].skip)
    found = measured(dataclasses.replace(case, variants=chosen), engine.Options(quick=True))
    assert len(found.variants) == {"image-save": 3, "image-create": 3, "object-save": 2}[task]
    for title, row in found.variants.items():
        (one,) = row.runs
        assert one["bytes"] == 1 << 20
        if title == "limit-sha512":
            continue
        assert one["start_cpu_seconds"] > 0 and one["start_seconds"] > 0
        for key in ("seconds", "cpu_seconds"):
            assert one[f"transfer_{key}"] == max(0.0, one[key] - one[f"start_{key}"])
        assert one["server_cpu_seconds"] > 0
        assert row.details["server_load"][-1][0] >= row.details["load"][-1][0]
    judged = [cells[0] for cells in client_tables.judgement(samples.result(found))[0].rows]
    assert all(each.startswith(f"openstack {task.replace('-', ' ')} over {scheme.upper()}") for each in judged)
    assert len(judged) == 1 + task.endswith("save")


def test_downloads_from_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("http")
    seen, data = [], os.urandom(SIZE)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.client_address[0])
            self.send_response(200)
            self.send_header("Content-Length", str(SIZE))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer((HOST, 0), Handler) as running:
        threading.Thread(target=running.serve_forever).start()
        access = {"backend": "http", "url": f"http://{HOST}:{running.server_port}", "place": {"directory": "/"}}
        prepared = {"images": {"": "image"}, "multihash": hashlib.sha512(data).hexdigest()}
        told = {"access": access, "pids": [os.getpid()], "prepared": prepared}
        monkeypatch.setenv(worker.SURROUNDINGS_VARIABLE, json.dumps(told))
        try:
            found = glance.download({"size": SIZE, "source": ELSEWHERE})
        finally:
            running.shutdown()
    assert found["verified"]
    assert seen == [ELSEWHERE] * 2


# --- runs by hand, beside a running server


@pytest.fixture
def told(tmp_path: Path) -> Iterator[dict[str, Any]]:
    needs("glance-32")
    with servers.running("glance-32", {}, tmp_path) as told:
        yield {**told, "beside": {}}


def test_a_server_that_does_not_take_its_image(told: dict[str, Any]) -> None:
    told["beside"] = {"broken": {**told, "access": {**told["access"], "url": "http://127.0.0.1:1"}}}
    prepared = work("glance", "prepare", {"size": SIZE, "task": "download"}, told)
    assert prepared["failed"]["broken"].startswith("it does not take its image: ")
    assert list(prepared["images"]) == [""]


def test_what_is_wrong_is_noticed(told: dict[str, Any], cache: Path) -> None:
    told["prepared"] = work("glance", "prepare", {"size": SIZE, "task": "download"}, told)
    assert work("glance", "transfer", {"size": SIZE, "task": "download"}, told)["verified"]
    image = told["prepared"]["images"][""]
    stored = Path(told["access"]["images"]) / image
    content = bytearray(stored.read_bytes())
    content[-1] ^= 1
    stored.write_bytes(content)
    assert not work("glance", "transfer", {"size": SIZE, "task": "download"}, told)["verified"]
    client = {**told, "prepared": {"image": image, "multihash": told["prepared"]["multihash"]}}
    assert not work("glance_client", "curl", {"size": SIZE, "scheme": "http"}, client)["verified"]
    command = {"size": SIZE, "scheme": "http", "python": ""}
    client["prepared"]["least"] = image
    assert not work("glance_client", "command-curl", {**command, "task": "image-save"}, client)["verified"]
    # An upload whose hash is another than the one that is known of the payload.
    kept = cache / f"random-{SIZE}-0.digests"
    before = kept.read_text()
    kept.write_text(before[:-1] + ("0" if before[-1] != "0" else "1"))
    try:
        assert not work("glance", "transfer", {"size": SIZE, "task": "upload"}, told)["verified"]
        assert not work("glance_client", "command-curl", {**command, "task": "image-create"}, client)["verified"]
    finally:
        kept.unlink()
    assert work("glance", "transfer", {"size": SIZE, "task": "upload"}, told)["verified"]
    assert work("glance_client", "command-curl", {**command, "task": "image-create"}, client)["verified"]
    assert [path.name for path in stored.parent.iterdir()] == [image]


# --- the requests beside the transfers


class Answers(BaseHTTPRequestHandler):
    """Answers the first request of a server, and the others with the status that the path says."""

    seen = 0

    def do_GET(self) -> None:
        type(self).seen += 1
        self.send_response(200 if type(self).seen == 1 else int(self.path[1:]))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    kind = type("Fresh", (Answers,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_requests(port: int) -> None:
    with Requests(port, "/200") as requests:
        figures = requests.stop()
    assert figures["requests"] >= 1
    assert 0 < figures["p50_ms"] <= figures["p99_ms"] <= figures["worst_ms"]


def test_requests_that_fail(port: int) -> None:
    with Requests(port, "/503") as requests, pytest.raises(RuntimeError, match="requests were not answered"):
        requests.stop()


# --- the commands of the clients


def test_a_command_is_timed(cache: Path) -> None:
    cache.mkdir(exist_ok=True)
    script = "import time; end = time.process_time() + 0.4\nwhile time.process_time() < end: pass\ntime.sleep(0.4)"
    figures = glance_client.timed([sys.executable, "-c", script])
    assert figures["cpu_seconds"] >= 0.4 and figures["seconds"] >= 0.8
    assert figures["user_seconds"] + figures["system_seconds"] == pytest.approx(figures["cpu_seconds"])
    assert figures["load_percent"] == pytest.approx(100 * figures["cpu_seconds"] / figures["seconds"])
    spent = 0.0
    for before, (after, percent) in zip([[0.0]] + figures["load"], figures["load"], strict=False):
        spent += (after - before[0]) * percent / 100
    assert spent == pytest.approx(figures["cpu_seconds"], abs=0.05)


def test_a_command_that_fails(cache: Path) -> None:
    with pytest.raises(RuntimeError, match="exit status 3\nno such luck"):
        glance_client.timed(["sh", "-c", "echo no such luck >&2; exit 3"])


def test_the_load_of_servers(cache: Path) -> None:
    cache.mkdir(exist_ok=True)
    busy = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    idle = glance_client.timed([sys.executable, "-c", busy], [1])
    assert "server_load" in idle and "server_load" not in glance_client.timed([sys.executable, "-c", busy])
    with subprocess.Popen([sys.executable, "-c", f"{busy}\ninput()"], stdin=subprocess.PIPE) as server:
        figures = glance_client.timed([sys.executable, "-c", f"{busy}\ntime.sleep(0.3)"], [server.pid])
        server.communicate(b"\n")
    spent = 0.0
    for before, (after, percent) in zip([[0.0]] + figures["server_load"], figures["server_load"], strict=False):
        spent += (after - before[0]) * percent / 100
    assert spent == pytest.approx(figures["server_cpu_seconds"], abs=0.05)


def test_commands_that_fastio_does_not_patch(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``fastio`` beside a Python: one whose patches are not in effect, and one that fails."""
    cache.mkdir(exist_ok=True)
    command = tmp_path / "fastio"
    for said, fails in (('[["x", true]]', False), ('[["x", true], ["y", false]]', True), ("[]", True), ("", True)):
        command.write_text(f"#!/bin/sh\necho '{said}'\n" + ("" if said else "exit 3\n"))
        command.chmod(0o755)
        context = pytest.raises(RuntimeError, match="not all in effect") if fails else contextlib.nullcontext()
        with context:
            commands.require_patches(str(tmp_path / "python"))


# --- the suites


def test_the_patch_of_the_copying_row_exists() -> None:
    import fastio

    assert bench_glance.SENDFILE in fastio.names()


@pytest.mark.parametrize("suite", [bench_glance, bench_glance_client])
def test_without_the_environments(suite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("BENCHMARK_GLANCE32", "BENCHMARK_GLANCE33"):
        monkeypatch.delenv(variable, raising=False)
    how = "python -m benchmarks.backends.glance_environments"
    for case in suite.CASES:
        # Swift runs without it, but none of the commands does.
        assert how in case.why_not() or case.backend == "swift"
    monkeypatch.setattr(bench_glance_client, "PYTHON", "")
    assert all(how in each.skip for each in bench_glance_client._commands("object-save", "http").all_variants())


def test_a_server_that_can_not_be_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    beside = {"one": {"failed": "it did not start\nits log"}, "other": {"access": {}, "pids": []}}
    told = {"beside": beside, "prepared": {"failed": {"other": "it does not take its image"}}}
    monkeypatch.setenv(worker.SURROUNDINGS_VARIABLE, json.dumps(told))
    reasons = {"one": "it did not start", "other": "it does not take its image", "none": "there is no server none"}
    for name, reason in reasons.items():
        with pytest.raises(glance.NotServed, match=f"^{reason}$"):
            glance.server({"server": name})
    assert "its log" in capsys.readouterr().err


def test_backends_beside_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("http")
    monkeypatch.delenv("BENCHMARK_GLANCE33", raising=False)
    beside = {"nginx": ("http", {"workers": 2}), "other": ("glance-33", {})}
    case = Case(
        name="case", workload="glance", variants=["x"], backend="filesystem", beside=beside, parameters={"size": SIZE}
    )
    recorded = samples.case({"x": []})
    with engine._surroundings(case, recorded, ["x"]) as told:
        assert list(told["beside"]) == ["nginx"]
        assert told["beside"]["nginx"]["access"]["backend"] == "http"
        assert len(told["beside"]["nginx"]["pids"]) == 3
    assert recorded.backend["nginx"] == "http workers=2"


# --- what is asked


def row(seconds: float, **figures: float) -> results.VariantResult:
    made = samples.variant([seconds] * 3)
    for each in made.runs:
        each.update(figures)
    return made


def goals(judge: Any, *cases: results.CaseResult) -> dict[str, list[str]]:
    (table,) = judge(samples.result(*cases))
    return {cells[0]: cells[1:] for cells in table.rows}


def test_what_is_asked_of_the_service() -> None:
    rows = {"stock": row(2, server_cpu_seconds=1.0), "fastio": row(1, server_cpu_seconds=0.6)}
    rows["reference-nginx"], rows["fastio-sendfile"] = row(1, server_cpu_seconds=0.7), row(1, server_cpu_seconds=0.8)
    rows["stock, 5 + requests"] = row(2, p50_ms=500, p99_ms=900)
    rows["fastio, 5 + requests"] = row(1.5, p50_ms=20, p99_ms=151)
    uploads = {"stock": row(2), "fastio": row(1.2)}
    uploads["stock, 1 + requests"], uploads["fastio, 1 + requests"] = row(2, p50_ms=9.0), row(1, p50_ms=14.5)
    given = samples.case(rows, name="glance-32-download"), samples.case(uploads, name="glance-32-upload")
    found = goals(glance_tables.judgement, *given)
    assert found["glance-32 download, MB/s"] == ["105", "210", "≥ 1.9 x stock", "2 x stock", "yes"]
    assert found["glance-32 download, fastio, server CPU s/GiB"][2:] == ["≤ 0.5 x stock", "0.6 x stock", "no"]
    assert found["glance-32 download, fastio, server CPU s/GiB, nginx for stock"][3:] == ["0.857 x nginx", "yes"]
    assert found["glance-32 download, fastio-sendfile, server CPU s/GiB, nginx for stock"][3:] == ["1.14 x nginx", "no"]
    assert found["glance-32 download, fastio-copying, server CPU s/GiB"][3:] == ["–", "–"]
    assert found["glance-32, other requests during 5 downloads, p50 ms"] == ["500", "20", "≤ 20 ms", "20 ms", "yes"]
    assert found["glance-32, other requests during 5 downloads, p99 ms"][-1] == "no"
    assert found["glance-32, other requests during 5 downloads, MB/s of the downloads"][-1] == "no"
    assert found["glance-32, other requests during 20 downloads, p50 ms"][-1] == "–"
    assert found["glance-32 upload, MB/s"][2:] == ["≥ 1.8 x stock", "1.67 x stock", "no"]
    assert found["glance-32, other requests during 1 upload, p50 ms"][2:] == ["≤ 5 ms more", "5.5 ms more", "no"]
    assert not any("glance-33" in what for what in found)


def test_what_is_asked_of_the_service_as_it_is_shipped() -> None:
    downloads = {"stock": row(2, server_cpu_seconds=1.0), "fastio": row(1.5, server_cpu_seconds=0.7)}
    uploads = {"stock": row(2), "fastio": row(1)}
    for rows, fast in ((downloads, 901), (uploads, 899)):
        rows["stock, 5 + requests"] = row(2, p50_ms=500, p99_ms=900)
        rows["fastio, 5 + requests"] = row(2, p50_ms=600, p99_ms=fast)
    name = bench_glance.SHIPPED
    given = (samples.case(rows, name=f"{name}-{task}") for task, rows in (("download", downloads), ("upload", uploads)))
    found = goals(glance_tables.judgement, *given)
    met = {what.removeprefix(name): line[-1] for what, line in found.items() if line[-1] != "–"}
    assert met == {
        " download, MB/s": "no",
        " download, fastio, server CPU s/GiB": "yes",
        ", other requests during 5 downloads, p99 ms": "no",
        " upload, MB/s": "yes",
        ", other requests during 5 uploads, p99 ms": "yes",
    }
    assert found[f"{name} download, MB/s"][2] == "≥ 1.4 x stock" and found[f"{name} upload, MB/s"][2] == "≥ 1.8 x stock"


@pytest.mark.parametrize("suite", [bench_glance, bench_concurrency])
def test_the_service_as_it_is_shipped_comes_first(suite: Any) -> None:
    case = suite.CASES[0]
    assert case.name.startswith(bench_glance.SHIPPED) and case.backend == "glance-33"
    fastio = {**case.backend_parameters, "fastio": "on"}
    assert (fastio["workers"], fastio["threads"]) == (4, 1)
    assert case.beside["fastio"] == ("glance-33", fastio)


def test_what_is_asked_of_the_client() -> None:
    rows = {
        "curl": row(1, cpu_seconds=0.2),
        "api-stock": row(2, transfer_seconds=2.0, transfer_cpu_seconds=2.0),
        "api-fastio": row(2, transfer_seconds=1.7, transfer_cpu_seconds=1.62),
        "api-fastio-unverified": row(2, transfer_seconds=1.7, transfer_cpu_seconds=0.3),
        "limit-sha512": row(2, transfer_seconds=1.4, transfer_cpu_seconds=1.4),
    }
    found = goals(client_tables.judgement, samples.case(rows, name="client-http", unit="s"))
    assert found["glanceclient over HTTP, api-fastio, CPU s without the hashing, curl for stock"] == [
        "0.2", "0.22", "≤ 1.2 x curl", "1.1 x curl", "yes",
    ]  # fmt: skip
    assert found["glanceclient over HTTP, api-fastio-unverified, CPU s, curl for stock"][-1] == "no"
    assert found["glanceclient over HTTP, verified, seconds"][2:] == ["≤ 0.87 x stock", "0.85 x stock", "yes"]


def test_what_is_asked_of_the_commands() -> None:
    rows = {
        "curl": row(1, transfer_cpu_seconds=0.5, transfer_seconds=1.0),
        "openstack-stock": row(12, transfer_cpu_seconds=10.0, transfer_seconds=10.0),
        "openstack-fastio": row(4, transfer_cpu_seconds=2.62, transfer_seconds=2.0),
        "limit-sha512": row(2, transfer_cpu_seconds=2.0),
    }
    parameters = {"size": samples.SIZE, "scheme": "https", "task": "image-save"}
    found = goals(client_tables.judgement, samples.case(rows, name="image-save-https", parameters=parameters))
    assert found["openstack image save over HTTPS, MB/s"] == ["21", "105", "≥ 5 x stock", "5 x stock", "yes"]
    assert found["openstack image save over HTTPS, CPU s without the hashing, curl for stock"] == [
        "0.5", "0.62", "≤ 1.3 x curl", "1.24 x curl", "yes",
    ]  # fmt: skip
    del rows["limit-sha512"]
    parameters["task"] = "image-create"
    found = goals(client_tables.judgement, samples.case(rows, name="image-create-https", parameters=parameters))
    assert found == {
        "openstack image create over HTTPS, CPU s, curl for stock": ["0.5", "2.62", "≤ 1.3 x curl", "5.24 x curl", "no"]
    }


def test_the_load_of_several_cases_is_drawn() -> None:
    pytest.importorskip("matplotlib", reason="plots need the extra 'plot'")
    from benchmarks.suites.glance_client import plots

    cases = []
    for name in ("image-save-http", "image-save-https"):
        rows = {title: row(2) for title in ("curl", "openstack-stock", "openstack-fastio", "limit-sha512")}
        for title, made in rows.items():
            made.details["load"] = [[0.1, 20.0], [2.0, 90.0]]
            if not title.startswith("limit"):
                made.details["server_load"] = [[0.1, 5.0], [2.0, 110.0]]
        for each in rows["openstack-fastio"].runs:
            each["cpu_seconds"] /= 4
        cases.append(samples.case(rows, name=name, title=name, unit="s"))
    figure = plots.load(samples.result(*cases))
    assert figure is not None
    # A bar of colours beside each panel.
    assert len(figure.axes) == 4
    strips = [sum(type(each).__name__ == "QuadMesh" for each in panel.collections) for panel in figure.axes[:2]]
    assert strips == [7, 7]
    assert "take 0.25 to 0.25 of stock's CPU time" in figure.get_suptitle().replace("\n", " ")
    lines = list(plots.PLOTS["load"].lines(samples.result(*cases)))
    assert len(lines) == 14
    assert "image-save-https, curl, its server: 2 s, median 57.5 %, at most 110 %" in lines


def test_the_rate_is_that_of_the_documentation() -> None:
    text = (engine.ROOT / "doc" / "source" / "measuring" / "methods.rst").read_text()
    assert other_requests.RATE == 20 and "20 times a second" in " ".join(text.split())
