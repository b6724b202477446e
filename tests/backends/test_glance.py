"""The real glance-api servers: they start, stock and with fastio, serve images, and leave nothing."""

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil", reason="suites need the extra 'bench'")

from benchmarks.backends import SERVICES, backend
from benchmarks.backends.base import Backend, BackendError, Unavailable
from benchmarks.backends.glance import AS_SHIPPED, BY_REQUEST, UWSGI
from benchmarks.backends.glance_api import Api, sha512
from benchmarks.backends.glance_environments import ENVIRONMENTS
from benchmarks.harness import servers
from tests.backends.conftest import alive, processes_of

VARIABLES = [environment.variable for environment in ENVIRONMENTS.values()]
Usable = Callable[[str], type[Backend]]


def api(access: Mapping[str, Any], url: str = "url") -> Api:
    """A client of the server; of its HTTPS address, if that is the ``url``."""
    tls = ssl.create_default_context(cafile=access["certificate"]) if url == "https_url" else None
    return Api(urllib.parse.urlsplit(access[url]).port or 0, tls=tls)


def check_image(access: Mapping[str, Any], data: bytes, url: str = "url") -> str:
    """Make an image and read it; returns its identifier."""
    client = api(access, url)
    identifier = client.make(data)
    image = client.show(identifier)
    assert (image["status"], image["size"], image["os_hash_value"]) == ("active", len(data), sha512(data))
    assert client.download(identifier).body == data
    assert (Path(access["images"]) / identifier).read_bytes() == data
    return identifier


@pytest.mark.parametrize("fastio", ["off", "on"])
@pytest.mark.parametrize("name", SERVICES)
def test_it_serves_images_and_leaves_nothing(usable: Usable, tmp_path: Path, name: str, fastio: str) -> None:
    data = os.urandom(300_001)
    with usable(name)(tmp_path, fastio=fastio) as running:
        access, pids = running.access(), running.pids()
        assert json.loads(json.dumps(access)) == access
        # A parent and the worker that has the requests.
        assert len(pids) == 2 and all(map(alive, pids))
        check_image(access, data)
        running.check()
        said = Path(access["log"]).read_text()
        assert ("fastio: " in said) == (fastio == "on")

    assert not any(map(alive, pids))
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", SERVICES)
def test_a_request_says_whether_it_is_recorded(usable: Usable, tmp_path: Path, name: str) -> None:
    recorded, not_recorded = "/v2/images/{id}", "/v2/images/{id}/members"

    def in_trace(route: str) -> int:
        """The requests for a route, of which each has a line."""
        lines = [line for file in Path(access["trace"]).iterdir() for line in file.read_text().splitlines()]
        return sum(f'"{route}"' in line for line in lines)

    with usable(name)(tmp_path, trace=BY_REQUEST) as running:
        access = running.access()
        for route in (not_recorded, recorded, not_recorded, not_recorded, recorded):
            headers = {"X-Trace": "off"} if route == not_recorded else {}
            url = access["url"] + route.format(id=uuid.uuid4())
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60)
        running.wait(lambda: in_trace(recorded) == 2, "the trace")
        assert in_trace(not_recorded) == 0


@pytest.mark.parametrize("name", SERVICES)
def test_two_with_their_parameters(usable: Usable, tmp_path: Path, name: str) -> None:
    parameters: dict[str, Any] = {
        "chunk_size": 131072, "flavor": "caching", "workers": 2, "fastio": "on", "disabled": "image_fairness",
    }  # fmt: skip
    with usable(name)(tmp_path) as one, usable(name)(tmp_path, **parameters) as two:
        assert not set(one.pids()) & set(two.pids())
        assert len(two.pids()) == 3
        configuration = (two.etc / "glance-api.conf").read_text()
        assert "filesystem_store_chunk_size = 131072\n" in configuration and "flavor = caching\n" in configuration
        assert "filesystem_store_chunk_size" not in (one.etc / "glance-api.conf").read_text()
        settings = Path(f"/proc/{two.pids()[-1]}/environ").read_bytes().split(b"\0")
        assert b"FASTIO_DISABLED=image_fairness" in settings
        check_image(two.access(), b"two")
        one.check()


@pytest.mark.parametrize("fastio", ["off", "on"])
def test_uwsgi_has_the_options_of_the_documentation(usable: Usable, tmp_path: Path, fastio: str) -> None:
    own = ("http-socket", "processes", "threads", "listen", "virtualenv", "import", "post-buffering")
    with usable("glance-33")(tmp_path, fastio=fastio, post_buffering=65536, **AS_SHIPPED) as running:
        documented, given = RawConfigParser(delimiters="="), RawConfigParser(delimiters="=")
        documented.read(UWSGI)
        given.read(running.etc / "uwsgi.ini")
        options = given["uwsgi"]
        assert len(options) > 12 and (documented["uwsgi"]["processes"], options["processes"]) == ("4", "4")
        kept = {name: value for name, value in options.items() if name not in own}
        assert kept.items() <= documented["uwsgi"].items()
        assert (options["threads"], options.get("import")) == ("1", "fastio.auto" if fastio == "on" else None)
        # The master and its workers, of which none has a second thread for requests.
        assert len(running.pids()) == 5
        # It buffers bodies where the backend has its files.
        settings = Path(f"/proc/{running.pids()[-1]}/environ").read_bytes().split(b"\0")
        assert f"TMPDIR={running.access()['temporary']}".encode() in settings
        assert options["post-buffering"] == "65536"
        check_image(running.access(), os.urandom(300_001))


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("trace", ["off", BY_REQUEST])
def test_many_concurrent_uploads(usable: Usable, tmp_path: Path, name: str, trace: str) -> None:
    """sqlite refuses this to threads. With the flavor ``identity`` an image has an owner."""
    data = os.urandom(100_000)
    with usable(name)(tmp_path, flavor="identity", trace=trace) as running, ThreadPoolExecutor(20) as pool:
        made = list(pool.map(check_image, [running.access()] * 20, [data] * 20))
        assert len(set(made)) == 20
        assert api(running.access()).show(made[0])["owner"]


@pytest.mark.parametrize("name", SERVICES)
def test_another_environment(usable: Usable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    kind: Any = usable(name)
    python = str(kind().python())
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    assert servers.why_not(name) and not servers.why_not(name, {"python": python})
    with backend(name)(tmp_path, python=python, fastio="on") as running:
        check_image(running.access(), b"image")
        assert running.access()["python"] == python
    reason = servers.why_not(name, {"python": "/nowhere/bin/python"})
    assert reason.startswith(f"{name}: beside python=/nowhere/bin/python there is no ")
    # Its start says which it has.
    assert servers.why_not(name, {"nonsense": 1}) == ""


def test_https(usable: Usable, tmp_path: Path) -> None:
    usable("http")
    data = os.urandom(300_001)
    with usable("glance-32")(tmp_path, tls=1) as running:
        access = running.access()
        check_image(access, data, "https_url")
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(access["https_url"], timeout=60)


def test_nginx_in_front_takes_whole_bodies_first(usable: Usable, tmp_path: Path) -> None:
    usable("http")
    kind: Any = usable("glance-33")
    with kind(tmp_path, proxied=1) as running:
        access = running.access()
        assert access["url"] != f"http://127.0.0.1:{running.http_port}"
        check_image(access, os.urandom(300_001))
        assert "proxy_request_buffering on;" in (running.directory / "nginx.conf").read_text()
    with pytest.raises(BackendError, match="tls=1 and proxied=1: it can have one of them"):
        kind(tmp_path, proxied=1, tls=1).start()


def test_a_server_that_is_not_patched_is_none(usable: Usable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind: Any = usable("glance-32")
    stock = kind.command

    def unpatched(self: Any) -> list[str]:
        self.chosen["fastio"] = "off"
        command = stock(self)
        self.chosen["fastio"] = "on"
        return command

    monkeypatch.setattr(kind, "command", unpatched)
    with pytest.raises(BackendError, match="its log has no summary of fastio"):
        kind(tmp_path, fastio="on").start()


@pytest.mark.parametrize("name", SERVICES)
def test_without_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    message = backend(name)().why_not()
    assert "\n" not in message
    assert message.startswith(f"{name}: BENCHMARK_GLANCE{name[-2:]} names no Python with glance==")
    assert "python -m benchmarks.backends.glance_environments DIRECTORY" in message
    with pytest.raises(Unavailable):
        backend(name)(tmp_path).start()
    for variable in VARIABLES:
        monkeypatch.setenv(variable, str(tmp_path / "python"))
    assert "there is no such program" in backend(name)().why_not()
    (tmp_path / "python").symlink_to(sys.executable)
    assert "there is no " in backend(name)().why_not()
