"""Traces under a real uWSGI, whose master may load the application before it forks its workers."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from benchmarks.backends.base import HOST, ROOT
from benchmarks.backends.glance_environments import ENVIRONMENTS
from tests.backends.required import missing
from tests.eventually import until
from tests.trace import traces

#: A service whose master runs a command before there are workers, as glance's may.
SERVICE = """
import os, subprocess, time
import fastio
fastio.patch([], trace=os.environ["TRACE"])
from fastio.trace import spans
from fastio.trace.wsgi import traced
subprocess.run(["true"], check=True)

def answer(environ, start_response):
    with spans.begin("store.filesystem.get"):
        time.sleep(0.01)
    start_response("200 OK", [("Content-Length", "2")])
    return iter([b"a", b"b"])

application = traced(answer, "a-service", "service")
"""
WORKERS, REQUESTS = 3, 120


def ask(port: int, count: int) -> None:
    for _ in range(count):
        connection = http.client.HTTPConnection(HOST, port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", "/")
            assert connection.getresponse().read() == b"ab"


@pytest.mark.parametrize("threads", ["--enable-threads", "--threads=2", ""], ids=["enabled", "two", "none"])
@pytest.mark.parametrize("lazy", ["--lazy-apps", ""], ids=["lazy-apps", "forked"])
def test_each_worker_has_its_own_file_and_no_span_is_lost(tmp_path: Path, lazy: str, threads: str) -> None:
    environment = ENVIRONMENTS["glance33"]
    if reason := environment.missing():
        missing("glance-33", reason)
    uwsgi = Path(environment.python()).with_name("uwsgi")
    (tmp_path / "service.py").write_text(SERVICE)
    directory = tmp_path / "trace"
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        port = sock.getsockname()[1]
    command = [str(uwsgi), "--http-socket", f"{HOST}:{port}", "--module", "service", "--processes", str(WORKERS)]
    command += ["--master", "--die-on-term", "--need-app", *filter(None, (lazy, threads))]
    own = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "TRACE": str(directory), "PYTHONWARNINGS": "ignore"}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FASTIO")}
    log = tmp_path / "log"
    with log.open("wb") as output, subprocess.Popen(
        command, env={**inherited, **own}, stdout=output, stderr=output, cwd=tmp_path
    ) as server:  # fmt: skip
        try:
            until(lambda: b"spawned uWSGI worker 3" in log.read_bytes())
            until(lambda: log.read_bytes().count(b"WSGI app 0") == (WORKERS if lazy else 1))
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(partial(ask, port), [REQUESTS // 4] * 4))
            # A worker that has yet to end a request, whose answer the client has, ends without what is to be done then.
            until(lambda: log.read_bytes().count(b"generated 2 bytes") == REQUESTS, "the end of all requests")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)
    found = traces.spans(directory)
    traces.well_formed(found)
    names = [span.name for span in found]
    assert [names.count(name) for name in ("service.request", "store.filesystem.get", "service.body")] == [REQUESTS] * 3
    # The command is the master's, or each worker's.
    assert names.count("subprocess.command") == (WORKERS if lazy else 1)
    assert len(found) == len({span.id for span in found})
    for path in traces.files(directory):
        of_file = traces.of_file(path)
        assert len({(span.resource["process.pid"], span.resource["service.instance.id"]) for span in of_file}) == 1
    served = {span.resource["process.pid"] for span in found if span.name == "service.request"}
    assert 1 < len(served) <= WORKERS
