"""The log server itself, stock and with fastio, over sockets and with a real Swift."""

import http.client
import json
import socket
import time
import urllib.parse
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("eventlet", reason="the log server needs the extra 'eventlet'")
pytest.importorskip("swiftclient", reason="the log server needs the extra 'stores'")

from benchmarks.backends.logserver import LogServer
from benchmarks.load import protocols
from benchmarks.load.content import Content
from benchmarks.load.exchange import Exchange
from benchmarks.suites.disk_swift import workload as disk_swift
from tests.backends.required import usable
from tests.eventually import until
from tests.trace import traces

LOG = b"2014-10-01 12:00:00.1 7 DEBUG a\n2014-10-01 12:00:01.2 7 ERROR b <c>\n"
LARGE = bytes(range(256)) * 4096 + b"end"


@pytest.fixture(scope="module")
def swift():
    # Tokens that end while the tests go on.
    with usable("swift")(token_life=2) as running:
        yield running.access()


@pytest.fixture(scope="module")
def objects(swift):
    """The objects in Swift, by name."""
    content = {"only/in-swift.txt": LOG, "both.txt": b"from swift", "large.bin": LARGE, "ünïcode/ü.txt": LOG}
    parameters, container = {"objects": 1, "size": 0}, disk_swift.CONTAINER.name(1)
    plan = disk_swift.writing(parameters, swift)
    kind = protocols.client_class("swift")
    client: Any = kind(plan, Content(plan), kind.shared(plan))
    client.make_container(container)
    for name, data in content.items():
        path = client._path(container, name)
        found = Exchange()

        def put(headers, path=path, data=data, found=found) -> str:
            client.connection.exchange("PUT", path, headers, lambda: [data], len(data), found=found)
            return protocols.failure(found, 201)

        assert client._logged_in(put, found) == ""
    client.close()
    return content


@pytest.fixture(scope="module", params=["off", "on"], ids=["stock", "fastio"])
def server(request, swift, objects, tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    (root / "a").mkdir()
    (root / "a" / "log.txt").write_bytes(LOG)
    (root / "both.txt").write_bytes(b"from disk")
    (root / "empty.txt").write_bytes(b"")
    (root / "large.bin").write_bytes(LARGE[::-1])
    (root.parent / "outside.txt").write_bytes(b"outside")
    (root / "link.txt").symlink_to(root.parent / "outside.txt")
    access = {key: swift[key] for key in ("auth_v1", "user", "key")} | {"container": disk_swift.CONTAINER.name(1)}
    with LogServer(fastio=request.param, root=str(root), swift=json.dumps(access)) as running:
        if request.param == "on":
            disk_swift.check_patched(running.status)
        yield running


def ask(server, path: str, method: str = "GET") -> tuple[int, bytes, http.client.HTTPMessage]:
    address = urllib.parse.urlsplit(server.access()["url"])
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/a/log.txt", LOG), ("/both.txt", b"from disk"), ("/both.txt?source=disk", b"from disk"), ("/empty.txt", b""),
        ("/both.txt?source=swift", b"from swift"), ("/only/in-swift.txt", LOG), ("/large.bin", LARGE[::-1]),
        ("/large.bin?source=swift", LARGE), ("/%C3%BCn%C3%AFcode/%C3%BC.txt", LOG),
    ],
)  # fmt: skip
def test_logs_are_what_they_are(server, path, wanted) -> None:
    status, body, headers = ask(server, path)
    assert (status, body) == (200, wanted)
    assert headers["Content-Length"] == str(len(wanted))
    assert headers["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/none", 404), ("/a", 404), ("/a/log.txt/x", 404), ("/a/log.txt?source=swift", 404), ("/link.txt", 404),
        ("/", 400), ("/../outside.txt", 400), ("/a/../../outside.txt", 400), ("/%2e%2e/outside.txt", 400),
        ("/a/%2e%2e/%2e%2e/outside.txt", 400), ("/a//log.txt", 400), ("/a%5c..%5coutside.txt", 400),
        # http.server takes slashes at the beginning for one.
        ("//etc/passwd", 404),
        ("/%00", 400), ("/a%0d%0aX-Evil:%201", 400), ("/%ff%fe", 400), ("/%252e%252e/outside.txt", 404),
        ("/a/log.txt?source=tape", 400), ("/a/log.txt?color=red", 400), ("/a/log.txt?source", 400),
        ("/" + "a" * 1100, 400),
    ],
)  # fmt: skip
def test_refused_paths(server, path, status) -> None:
    found, body, headers = ask(server, path)
    assert found == status
    assert b"outside" not in body and b"root:" not in body and headers["X-Evil"] is None


def test_only_get_and_head_are_served(server) -> None:
    assert ask(server, "/a/log.txt", "DELETE")[0] == 405
    status, body, headers = ask(server, "/large.bin?source=swift", "HEAD")
    assert (status, body, headers["Content-Length"]) == (200, b"", str(len(LARGE)))


def test_clients_that_go_away(server) -> None:
    """The rest of their answers goes to no other client."""
    address = urllib.parse.urlsplit(server.access()["url"])
    for _ in range(5):
        with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
            connection.sendall(b"GET /large.bin?source=swift HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        assert ask(server, "/only/in-swift.txt")[1] == LOG
        assert ask(server, "/large.bin?source=swift")[1] == LARGE


def test_tokens_are_renewed(server) -> None:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        assert ask(server, "/only/in-swift.txt")[:2] == (200, LOG)
        time.sleep(0.05)


def test_a_swift_that_is_not_there(tmp_path: Path) -> None:
    access = {"auth_v1": "http://127.0.0.1:1/auth/v1.0", "user": "a:b", "key": "c", "container": "logs"}
    (tmp_path / "log.txt").write_bytes(LOG)
    with LogServer(root=str(tmp_path), swift=json.dumps(access)) as running:
        assert ask(running, "/log.txt")[:2] == (200, LOG)
        status, body, _ = ask(running, "/none.txt")
        assert status == 503 and b"127.0.0.1:1" not in body


def test_it_can_be_open_to_others(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_bytes(LOG)
    with LogServer(root=str(tmp_path), host="127.0.0.2") as running:
        assert running.access()["url"].startswith("http://127.0.0.2:")
        assert ask(running, "/log.txt")[:2] == (200, LOG)


def asked(running: LogServer) -> list[dict[str, Any]]:
    """The requests of its trace so far, without those of who waited for its start."""
    found = traces.ends(running.traces, "log-server.request")
    return [each for each in found if each["status"] != 400]


@pytest.mark.parametrize("fastio", ["off", "on"], ids=["stock", "fastio"])
def test_its_requests_are_traced(tmp_path: Path, fastio: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "large.bin").write_bytes(LARGE)
    with LogServer(root=str(root), fastio=fastio, trace="on") as running:
        assert ask(running, "/large.bin")[:2] == (200, LARGE)
        assert ask(running, "/none.txt")[0] == 404
        found = until(lambda: each if len(each := asked(running)) >= 2 else None, "both requests")
        # Its end may be reported after that of the next request.
        (body,) = until(lambda: traces.ends(running.traces, "log-server.body"), "the body")
    told = [(each["path"], each["status"], each["outcome"], each["bytes"]) for each in found]
    # The names of logs may say anything, so none is recorded.
    assert told == [("/{id}", 200, "ok", len(LARGE)), ("/{id}", 404, "error", len(b"there is no such log\n"))]
    assert (body["bytes"], body["outcome"]) == (len(LARGE), "ok")
