"""The metrics over HTTP."""

import asyncio
import os
import re
import threading
import urllib.request
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.validate import validator

import fastio
from fastio import counters
from fastio.counters import Reason
from fastio.watching import endpoint
from fastio.watching.metrics import FAMILIES
from tests.conftest import MONKEY_PATCHED


class Quiet(WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


def check(text: str) -> None:
    """It is what Prometheus reads: the families one after the other, each with its type, and each series once."""
    lines = text.splitlines()
    assert [line.split()[2] for line in lines if line.startswith("# TYPE")] == list(FAMILIES)
    series = [line for line in lines if not line.startswith("#")]
    for line in series:
        assert re.fullmatch(r'[a-z_]+\{([a-z]+="[^"\\]*",)*pid="\d+"\} [\d.]+', line), line
    assert len({line.rpartition(" ")[0] for line in series}) == len(series)
    pid = f'pid="{os.getpid()}"'
    assert f'fastio_calls_total{{patch="wait",{pid}}} 1' in lines
    assert f'fastio_bytes_total{{patch="wait",{pid}}} 7' in lines
    assert f'fastio_fallbacks_total{{patch="wait",reason="hub",{pid}}} 1' in lines


def count() -> None:
    counters.reset()
    counters.of("wait").took()
    counters.of("wait").moved(7)
    counters.of("wait").fell_back(Reason.HUB)


def test_wsgi() -> None:
    count()
    server = make_server("127.0.0.1", 0, validator(endpoint.wsgi), handler_class=Quiet)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        check(answer.read().decode())
    thread.join()
    server.server_close()


def test_asgi() -> None:
    count()
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> None:
        raise AssertionError

    coroutine = endpoint.asgi({"type": "http"}, receive, send)
    if MONKEY_PATCHED:
        # It never waits: no loop is needed.
        try:
            coroutine.send(None)
        except StopIteration:
            pass
    else:
        asyncio.run(coroutine)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[0]["status"] == 200
    check(sent[1]["body"].decode())


def test_data() -> None:
    count()
    assert fastio.metrics().to_dict()["patches"]["wait"] == {"calls": 1, "bytes": 7, "fallbacks": {"hub": 1}}
