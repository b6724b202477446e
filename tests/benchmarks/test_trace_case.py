"""The benchmark of tracing with few events, and what is said of its figures."""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading
from typing import ClassVar

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")
pytest.importorskip("scipy", reason="tables need the extra 'bench'")

from benchmarks.backends.base import HOST, ROOT
from benchmarks.backends.glance import BY_REQUEST, SITE, SITE_VARIABLE, Glance32
from benchmarks.harness.results import VariantResult
from benchmarks.harness.tables import EMPTY
from benchmarks.harness.worker import SURROUNDINGS_VARIABLE
from benchmarks.suites.trace import tables
from benchmarks.suites.trace import workload as trace
from tests.benchmarks import samples


def test_spans_that_are_lost_are_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastio.trace import recorder

    monkeypatch.setattr(recorder, "MOST_WAITING", 0)
    with pytest.raises(trace.LostSpans):
        trace.spans({"count": 50})
    assert recorder.active is None


class _Server(http.server.BaseHTTPRequestHandler):
    content = b"x" * 1000
    #: of each request, whether it was to be recorded
    log: ClassVar[list[bool]] = []

    def do_GET(self) -> None:
        self.log.append(self.headers["X-Trace"] != "off")
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *_: object) -> None:
        pass


def test_the_downloads_of_a_pair_are_made_in_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(trace, "_is_right", lambda parameters: True)
    monkeypatch.setattr(_Server, "log", [])
    processors = os.sched_getaffinity(0)
    server = http.server.ThreadingHTTPServer((HOST, 0), _Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        told = {
            "access": {"backend": "glance", "url": f"http://{HOST}:{server.server_port}", "images": str(tmp_path)},
            "pids": [], "prepared": {"images": {"": "a"}, "failed": {}},
        }  # fmt: skip
        monkeypatch.setenv(SURROUNDINGS_VARIABLE, json.dumps(told))
        found = trace.pairs({"server": "", "pairs": 4, "size": 1000})
    finally:
        server.shutdown()
        server.server_close()
    block = trace.BLOCK + 1
    blocks = [_Server.log[start : start + block] for start in range(0, 8 * block, block)]
    assert all(len(set(each)) == 1 for each in blocks)
    pairs = [(first[0], second[0]) for first, second in zip(blocks[::2], blocks[1::2], strict=True)]
    assert sorted(pairs) == [(False, True)] * 2 + [(True, False)] * 2
    assert (found["verified"], found["downloads"], found["bytes"]) == (True, 8 * block, 8 * block * 1000)
    assert found["times"] > 0
    assert os.sched_getaffinity(0) == processors


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_client_and_server_are_apart() -> None:
    before = os.sched_getaffinity(0)
    child = subprocess.Popen(["sleep", "60"])
    try:
        with trace._apart([child.pid]):
            client, server = os.sched_getaffinity(0), os.sched_getaffinity(child.pid)
    finally:
        child.kill()
        child.wait()
    assert (len(client), len(server), client & server) == (1, 1, set())
    assert os.sched_getaffinity(0) == before


def test_a_request_says_whether_it_is_recorded() -> None:
    program = (
        "from fastio.trace import recorder, wsgi\n"
        "recorder.active = kept = recorder.Recorder('/nowhere')\n"
        "seen = []\n"
        "wsgi._Request = lambda environ, *names: type('', (), {'run': lambda self, *_: seen.append(True)})()\n"
        "application = wsgi.traced(lambda environ, start: seen.append(False), 'glance-api')\n"
        "for header in (None, 'off', 'off', 'on', None):\n"
        "    application({} if header is None else {'HTTP_X_TRACE': header}, None)\n"
        "print(seen, recorder.active is kept)\n"
    )
    environment = {"PYTHONPATH": f"{SITE}:{ROOT}", SITE_VARIABLE: Glance32(trace=BY_REQUEST).site()}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[True, False, False, True, True] True\n", done.stderr


def pairs(*times: float) -> VariantResult:
    row = samples.variant([1.0] * len(times))
    for run, each in zip(row.measured(), times, strict=True):
        run["times"] = each
    return row


NARROW = [1.0 + number / 10_000 for number in range(-10, 11)]


def test_rounds_go_on_until_the_interval_is_narrow() -> None:
    def sure(**rows: VariantResult) -> bool:
        return tables.sure(samples.case(rows, name="pairs", unit="x", value="times"))

    assert sure(stock=pairs(*NARROW))
    assert not sure(stock=pairs(*NARROW[:6]))
    assert not sure(stock=pairs(*NARROW), fastio=pairs(*(1.0 + number / 100 for number in range(-10, 11))))
    failed = pairs()
    failed.failure = {"reason": "no server"}
    assert sure(stock=pairs(*NARROW), fastio=failed)


def test_pairs_decide() -> None:
    rows = {
        "same": pairs(*NARROW),
        "slower": pairs(*(1.02 + each - 1 for each in NARROW)),
        "unclear": pairs(0.9, 1.1, 1.0, 0.8, 1.2),
    }
    (table,) = tables.judgement(samples.result(samples.case(rows, name="g", unit="x", value="times")))
    assert [(row[0], row[-1]) for row in table.rows] == [
        ("g: same, traced", "yes"), ("g: slower, traced", "no"), ("g: unclear, traced", EMPTY),
    ]  # fmt: skip
    assert table.rows[0][2].startswith("1.0000 (0.99")
