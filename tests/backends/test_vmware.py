"""The HTTPS server of VMware's backend: what glance_store's driver does not ask for by itself."""

import http.client
import ssl
from pathlib import Path

import pytest

PATH = "/folder/images/one?dcPath=datacenter&dsName=datastore"


@pytest.fixture
def running(usable, tmp_path):
    with usable("vmware")(tmp_path) as running:
        yield running


def request(running, method, path=PATH, body=None, cookie=True, **headers):
    access = running.access()
    context = ssl.create_default_context(cafile=access["certificate"])
    connection = http.client.HTTPSConnection("127.0.0.1", access["port"], timeout=60, context=context)
    if cookie:
        headers["Cookie"] = access["cookie"]
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def files(running):
    return [path for path in Path(running.directory, "datastores").rglob("*") if path.is_file()]


def test_put_get_delete(running):
    assert request(running, "GET") == (404, b"")
    assert request(running, "PUT", body=b"first") == (201, b"")
    assert request(running, "PUT", body=b"second") == (200, b"")
    assert request(running, "GET") == (200, b"second")
    assert request(running, "HEAD") == (200, b"")
    assert request(running, "DELETE") == (200, b"")
    assert request(running, "DELETE") == (404, b"")


def test_without_the_session(running):
    for method in ("GET", "HEAD", "DELETE"):
        assert request(running, method, cookie=False)[0] == 401
    assert request(running, "PUT", cookie=False, body=b"data")[0] == 401
    assert files(running) == []


@pytest.mark.parametrize("path", ["/other/images/one", "/folder/../../etc/passwd", "/folder/%2e%2e/one"])
def test_bad_paths(running, path):
    assert request(running, "GET", path)[0] == 400
