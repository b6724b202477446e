"""``glance_slow_clients`` in a real glance 33 under uWSGI: results are stock's, and no client waits for a slow one."""

import contextlib
import http.client
import os
import random
import re
import resource
import signal
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import fastio
from benchmarks.backends.base import HOST, ROOT, reserved_port
from benchmarks.backends.glance import DEPLOYMENTS, SCHEMA, Service
from benchmarks.backends.glance_api import Api, sha512
from benchmarks.backends.glance_environments import ENVIRONMENTS
from benchmarks.backends.glance_environments import uwsgi as uwsgi_program
from fastio import check, config
from fastio.io import file_pieces
from fastio.patches.glance import _bodies, _uwsgi, glance_slow_clients
from fastio.patching import registry
from fastio.servers import read
from tests import fuse
from tests.conftest import MONKEY_PATCHED
from tests.eventually import until
from tests.glance import fronts
from tests.glance.faults import add_file_store
from tests.glance.sending import Sending, given_away, open_images, start_giving, temporary_bytes
from tests.glance.test_glance_sendfile import all_that_comes
from tests.glance.usable import usable

NAME = "glance_slow_clients"
MIB = 1 << 20
#: More than the buffers of a connection take.
DATA = random.Random(5).randbytes(20 * MIB + 321)

services = pytest.mark.skipif(MONKEY_PATCHED, reason="the services are separate processes")


@pytest.fixture
def start(serve: Callable[..., Service], tmp_path: Path) -> Callable[..., Sending]:
    """``start(kind, uwsgi={option: value}, environment={…})`` starts glance 33 with one process and one thread."""

    return partial(start_giving, serve, tmp_path)


def requests(sending: Sending) -> int:
    """How many requests for the data of an image have ended for uWSGI."""
    return len(re.findall(r"GET \S+/file => generated", sending.service.log()))


@contextlib.contextmanager
def slow(sending: Sending, image: str) -> Iterator[http.client.HTTPResponse]:
    """A download whose client has read its head, and no more."""
    with sending.api.started_download(image) as response:
        yield response


def all_closed(sending: Sending) -> bool:
    return not open_images(sending.service)


#: How glance 33 is served: the deployment, what is in front of it, or the release of uWSGI.
SERVED: dict[str, dict[str, Any]] = {
    **{name: {"deployment": name} for name in DEPLOYMENTS},
    "kolla-ansible": {"deployment": "kolla-ansible", "front": "haproxy"},
    "openstack-ansible": {"deployment": "openstack-ansible", "front": "haproxy"},
    "openstack-helm": {"deployment": "openstack-helm", "front": "nginx"},
    "Debian": {"deployment": "Debian", "front": "Apache"},
    **{name: {"front": name} for name in fronts.BY_UWSGI},
    **{f"uWSGI {release}": {"release": release} for release in ENVIRONMENTS["glance33"].uwsgi},
    "mules and spoolers": {"uwsgi": {"mules": "2", "spooler": "temporary", "master-as-root": "true"}},
}


def behind(
    start: Callable[..., Sending], front: str, option: str = "", uwsgi: Mapping[str, str] | None = None, **options: Any
) -> Sending:  # fmt: skip
    """Start glance, and a proxy in front of it if one is named, which is asked then."""
    with reserved_port() as reserved:
        port = reserved.getsockname()[1]
        by_uwsgi = {"socket": f"{HOST}:{port}"} if front in fronts.BY_UWSGI else {}
        sending = start(uwsgi={**by_uwsgi, **(uwsgi or {})}, **options)
        if front:
            upstream = port if by_uwsgi else sending.service.http_port
            sending.api = Api(fronts.start(front, sending.service, upstream, option))
    return sending


@services
@pytest.mark.parametrize("served", SERVED)
def test_a_slow_client_holds_no_worker(start: Callable[..., Sending], served: str) -> None:
    options = {"front": "", **SERVED[served]}
    release = options.get("release")
    if release and not uwsgi_program(usable("glance-33")().python(), release).exists():
        pytest.skip(f"uWSGI {release} could not be built for this Python")
    sending = behind(start, **options)
    service = sending.service
    assert f"*** Starting uWSGI {release or '2.0'}" in service.log()
    image = sending.api.make(DATA)
    assert sending.api.show(image)["os_hash_value"] == sha512(DATA)
    with contextlib.ExitStack() as stack:
        responses = [stack.enter_context(slow(sending, image)) for _ in range(3)]
        # There is one worker, with one thread.
        assert sending.api.ask("GET", SCHEMA).status == 200
        assert sending.api.download(image).body == DATA
        # The others have not ended.
        until(partial(given_away, sending), "the line of the log")
        assert given_away(sending) == [(len(DATA), len(DATA))]
        for response in responses:
            assert response.read() == DATA
    sending.expect_notifications([("INFO", len(DATA))] * 4)
    sending.api.abort_download(image, 3 * MIB)
    until(lambda: any(sent < whole for sent, whole in given_away(sending)), "the end of what is cut off")
    until(partial(all_closed, sending), "the files to be closed")
    with slow(sending, image) as response:
        until(lambda: requests(sending) == 6, "the end of the request")
        os.kill(int(re.findall(r"spawned uWSGI worker 1 \(pid: (\d+)", service.log())[0]), signal.SIGHUP)
        until(lambda: "Gracefully killing worker" in service.log(), "the signal to reach the worker")
        assert response.read() == DATA
    until(lambda: "Respawned uWSGI worker 1" in service.log(), "the next worker")
    assert sending.api.download(image).body == DATA


@services
def test_answers_are_those_of_stock(start: Callable[..., Sending]) -> None:
    found = {}
    for kind in ("stock", "patched"):
        sending = start(kind)
        image = sending.api.make(DATA)
        port = sending.service.http_port
        answers = [sending.api.download(image, Range=each) for each in ("bytes=100-5000099", "bytes=-10", "bytes=9-9")]
        expected = [DATA[100:5000100], DATA[-10:], DATA[9:10]]
        assert [answer.status for answer in answers] == [206] * 3
        assert [answer.body for answer in answers] == expected
        sending.api.abort_download(image, 3 * MIB)
        head, body = all_that_comes(port, "HEAD", image)
        assert body == b""
        whole, body = all_that_comes(port, "GET", image)
        assert body == DATA
        # The one that was not sent to the end is not notified.
        sending.expect_notifications([("INFO", len(each)) for each in (*expected, DATA)])
        until(partial(all_closed, sending), "the files to be closed")
        ranges = [answer.headers.get("Content-Range") for answer in answers]
        found[kind] = [[re.sub("[0-9a-f-]{32,36}", "", line) for line in (*head, *whole)], ranges]
        sent = [sizes for sizes in given_away(sending) if sizes[0] == sizes[1]]
        assert sent == ([] if kind == "stock" else [(5000000, 5000000), (len(DATA), len(DATA))])
    assert found["patched"] == found["stock"]


@services
def test_a_worker_that_has_to_end_finishes_first(start: Callable[..., Sending]) -> None:
    sending = start()
    image = sending.api.make(DATA)
    (worker,) = sending.service.workers()
    with slow(sending, image) as response:
        # uWSGI ends a worker that has a request at once. This one's line comes when it has none any more.
        until(lambda: requests(sending) == 1, "the end of the request")
        os.kill(worker, signal.SIGHUP)
        until(lambda: "Gracefully killing worker" in sending.service.log(), "the signal to reach the worker")
        assert response.read() == DATA
    sending.expect_notifications([("INFO", len(DATA))])
    until(lambda: worker not in sending.service.workers(), "the next worker")
    assert sending.api.download(image).body == DATA
    until(lambda: requests(sending) >= 2, "the end of the request")
    before = requests(sending)
    with slow(sending, image) as response:
        until(lambda: requests(sending) == before + 1, "the end of the request")
        sending.service.expect_end()
        sending.service.signal(signal.SIGTERM)
        until(lambda: "killing workers" in sending.service.log(), "the signal to reach the workers")
        assert response.read() == DATA
    until(lambda: not sending.service.pids(), "the end")


@services
def test_beyond_the_mercy_of_uwsgi_the_answer_is_cut_off(start: Callable[..., Sending]) -> None:
    sending = start(uwsgi={"worker-reload-mercy": "1"})
    image = sending.api.make(DATA)
    (worker,) = sending.service.workers()
    with slow(sending, image) as response:
        sending.service.expect_end()
        sending.service.signal(signal.SIGTERM)
        until(lambda: not sending.service.pids(), "the end")
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)) as caught:
            response.read()
    if isinstance(caught.value, http.client.IncompleteRead):
        assert DATA.startswith(caught.value.partial)


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[list[fuse.FileSystem]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(fuse.mounted(tmp_path / name)) for name in ("dead", "slow")]


def on(disks: list[fuse.FileSystem]) -> dict[str, Any]:
    """glance's options with a store on each file system."""
    config: dict[str, Any] = {"DEFAULT": {"enabled_backends": "images:file"}}
    for disk in disks:
        add_file_store(config, disk.directory.name, disk.directory)
    return config


def make_in(sending: Sending, store: str) -> str:
    image = sending.api.create()
    headers = {"Content-Type": "application/octet-stream", "X-Image-Meta-Store": store}
    assert sending.api.ask("PUT", f"/v2/images/{image}/file", DATA, headers).status == 204
    return image


@services
def test_file_systems_that_do_not_answer(start: Callable[..., Sending], disks: list[fuse.FileSystem]) -> None:
    dead, slow = disks
    sending = start(config=on(disks), uwsgi={"harakiri": "3"})
    image, on_dead, on_slow = sending.api.make(DATA), make_in(sending, "dead"), make_in(sending, "slow")
    other = make_in(sending, "dead")
    (worker,) = sending.service.workers()
    with slow_clients(sending, on_dead, on_slow) as (first, second):
        for disk, fault in ((dead, {"hang": True}), (slow, {"seconds": 0.05})):
            disk.forget()
            disk.fault(read=fault)
        with ThreadPoolExecutor(2) as pool:
            cut, late = pool.submit(first.read), pool.submit(second.read)
            # Harakiri would end the worker, whose only thread has no time to wait for them.
            for _ in range(3):
                assert sending.api.download(image).body == DATA
            # The client of the dead one is cut off as if the worker had been replaced, and the slow one's gets all.
            with pytest.raises(http.client.IncompleteRead):
                cut.result(timeout=60)
            assert late.result(timeout=60) == DATA
    slow.fault()
    assert sending.service.workers() == [worker]
    # A transfer that begins now is in a request, which harakiri ends.
    with contextlib.suppress(http.client.HTTPException, ConnectionError):
        sending.api.download(other)
    until(lambda: worker not in sending.service.workers(), "the next worker")
    assert "HARAKIRI" in sending.service.log()
    dead.fault()
    assert sending.api.download(image).body == DATA
    assert sending.api.download(other).body == DATA


@contextlib.contextmanager
def slow_clients(sending: Sending, *images: str) -> Iterator[list[http.client.HTTPResponse]]:
    """Downloads of these, each of which uWSGI has done with."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(slow(sending, image)) for image in images]
        until(lambda: requests(sending) == len(images), "the end of the requests")
        yield found


@services
def test_a_worker_ends_beside_a_dead_file_system(start: Callable[..., Sending], disks: list[fuse.FileSystem]) -> None:
    sending = start(config=on(disks), uwsgi={"harakiri": "3", "worker-reload-mercy": "3"})
    image, one, other = sending.api.make(DATA), make_in(sending, "dead"), make_in(sending, "dead")
    (worker,) = sending.service.workers()
    with slow_clients(sending, one) as (response,), ThreadPoolExecutor(1) as pool:
        disks[0].forget()
        disks[0].fault(read={"hang": True})
        cut = pool.submit(response.read)
        os.kill(worker, signal.SIGHUP)
        until(lambda: worker not in sending.service.workers(), "the next worker")
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            cut.result(timeout=60)
    assert sending.api.download(image).body == DATA
    disks[0].fault()
    with slow(sending, other):
        until(lambda: requests(sending) == 3, "the end of the request")
        disks[0].forget()
        disks[0].fault(read={"hang": True})
        sending.service.expect_end()
        sending.service.signal(signal.SIGTERM)
        until(lambda: not sending.service.pids(), "the end")


def test_without_a_master_nothing_is_waited_for(uwsgi: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request of upstream's ends with uWSGI as well, and nothing else would end the wait."""
    waited: list[int] = []
    monkeypatch.setattr(glance_slow_clients.sender, "wait", lambda: waited.append(uwsgi.masterpid()))
    drain = glance_slow_clients.make_drain_workers(lambda: "drained", None)
    for uwsgi.masterpid in (lambda: 0, lambda: 5):
        assert drain() == "drained"
    assert waited == [5]


@services
def test_transfers_beyond_the_limit_are_stock(start: Callable[..., Sending]) -> None:
    sending = start(FASTIO_TRANSFERS="1")
    image = sending.api.make(DATA)
    with slow(sending, image) as response:
        # This one holds the worker.
        assert sending.api.download(image).body == DATA
        assert given_away(sending) == []
        assert response.read() == DATA
    sending.expect_notifications([("INFO", len(DATA))] * 2)
    until(partial(given_away, sending), "the line of the log")
    assert given_away(sending) == [(len(DATA), len(DATA))]


@services
def test_an_unknown_server_is_left_alone(start: Callable[..., Sending]) -> None:
    sending = start(uwsgi={"max-requests": "1000"})
    image = sending.api.make(DATA)
    assert sending.api.download(image).body == DATA
    assert given_away(sending) == []


TAKEN, HELD = "the worker is free meanwhile", "the worker is held"
#: Proxy in front, or option of uWSGI -> option of the proxy, and what becomes of a slow upload with its length, and of
#: a chunked one. A status is that of a refusal, with stock as well.
UPLOADS: dict[str, tuple[str, str | int, str | int]] = {
    "": ("", HELD, HELD),
    "post-buffering": ("", HELD, HELD),
    "nginx": ("", TAKEN, TAKEN),
    "uwsgi_pass": ("", TAKEN, 500),
    "haproxy": ("option http-buffer-request", HELD, HELD),
    "Apache": ("SetEnv proxy-sendcl 1", HELD, TAKEN),
    "mod_proxy_uwsgi": ("", HELD, 411),
}


@services
@pytest.mark.parametrize("way", UPLOADS)
def test_a_slow_upload_holds_a_worker_unless_a_proxy_takes_it(start: Callable[..., Sending], way: str) -> None:
    option, *outcomes = UPLOADS[way]
    buffering = way == "post-buffering"
    sending = behind(start, "" if buffering else way, option, post_buffering=65536 if buffering else 0)
    for chunked, outcome in zip((False, True), outcomes, strict=True):
        image = sending.api.create()
        with sending.api.started_upload(image, part(DATA[:MIB], chunked), None if chunked else len(DATA)) as sock:
            # There is one worker, with one thread, and it was this client that came first.
            if outcome == HELD:
                until(partial(is_held, sending.service), "the upload to come through the proxy")
            else:
                assert Api(sending.service.http_port).ask("GET", SCHEMA).status == 200
            # uWSGI puts chunks into no file.
            if way == "nginx" or buffering and not chunked:
                until(partial(temporary_bytes, sending.service), "the temporary file")
            elif not way or buffering:
                assert temporary_bytes(sending.service) == 0
            sock.sendall(part(DATA[MIB:], chunked) + (b"0\r\n\r\n" if chunked else b""))
            status = int(sock.recv(4096).split(maxsplit=2)[1])
        shown = sending.api.show(image)
        if outcome in (HELD, TAKEN):
            assert (status, shown["size"], shown["os_hash_value"]) == (204, len(DATA), sha512(DATA))
        else:
            assert (status, shown["status"]) == (outcome, "queued")


def is_held(service: Service) -> bool:
    """Whether the only worker gives no answer."""
    try:
        return not Api(service.http_port, timeout=0.5).ask("GET", SCHEMA)
    except TimeoutError:
        return True


def part(data: bytes, chunked: bool) -> bytes:
    """Yield the pieces of a body; uWSGI takes no chunk of 1 MiB by default."""
    if not chunked:
        return data
    pieces = (data[start : start + 65536] for start in range(0, len(data), 65536))
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


UWSGI = {"http-socket": b":9292", "enable-threads": True}


@pytest.fixture
def uwsgi(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.SimpleNamespace]:
    """The module that a program has in uWSGI."""
    module = types.SimpleNamespace(version=b"2.0.31", opt=dict(UWSGI))
    monkeypatch.setattr(_uwsgi, "module", lambda: module)
    monkeypatch.setattr(_uwsgi.current, "is_green", lambda: False)
    _uwsgi._why_not.cache_clear()
    yield module
    _uwsgi._why_not.cache_clear()


@pytest.mark.parametrize(
    ("version", "options", "why_not"),
    [
        ("2.0.31", UWSGI, ""),
        ("2.0.21", {"http-socket": [b":1", b":2"], "threads": b"4", "socket-timeout": b"10"}, ""),
        ("2.0.25.1", {**UWSGI, "rem-header": b"Content-Length", "plugins": b"python3,http"}, ""),
        ("2.0.24-debian", {"http": b":9292", "socket": b":3031", "enable-threads": True}, ""),
        ("2.0.31", {**UWSGI, "route-user-agent": [b"^a donotlog:", b"^\xe9$ donotlog:"]}, ""),
        ("2.1.0", UWSGI, "uWSGI 2.1.0 is not known"),
        ("2.0.20", UWSGI, "uWSGI 2.0.20 is not known"),
        ("2.0.32", UWSGI, "uWSGI 2.0.32 is not known"),
        ("2.0.31", {**UWSGI, "route-run": b"chunked:"}, "option route-run is not known"),
        ("2.0.31", {**UWSGI, "route-uri": [b"^a donotlog:", b"^b gzip:"]}, "option route-uri is not known"),
        ("2.0.31", {**UWSGI, "route-uri": b"^donotlog: rewrite:/b"}, "option route-uri is not known"),
        ("2.0.31", {**UWSGI, "http11-socket": b":3031"}, "option http11-socket is not known"),
        ("2.0.31", {**UWSGI, "https-socket": b":3031,a,b"}, "its router (https) or a proxy"),
        ("2.0.31", {**UWSGI, "gevent": b"100"}, "option gevent is not known"),
        ("2.0.31", {**UWSGI, "plugins": b"python3,transformation_gzip"}, "plugin transformation_gzip"),
        ("2.0.31", {"enable-threads": True}, "none of http, http-socket"),
        ("2.0.31", {**UWSGI, "enable-threads": b"false"}, "without enable-threads"),
    ],
)
def test_only_a_fitting_uwsgi_takes_over_downloads(
    uwsgi: types.SimpleNamespace, version: str, options: dict[str, Any], why_not: str
) -> None:
    uwsgi.version, uwsgi.opt = version.encode(), options
    assert why_not in _uwsgi.why_not() and bool(why_not) == bool(_uwsgi.why_not())


@pytest.mark.parametrize(
    ("lines", "why_not"),
    [
        ("", ""),
        ("route-user-agent = ^kube-probe.* donotlog:", ""),
        ("route-host = ^a$ gzip:", "option route-host is not known"),
        ("plugins = python3,transformation_gzip", "plugin transformation_gzip"),
        ("gevent = 100", "option gevent is not known"),
        ("enable-threads = false", "without enable-threads"),
    ],
)
def test_which_servers_would_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, why_not: str) -> None:
    """The report of ``fastio check`` on uWSGI's file, while no uWSGI runs."""
    example = (ROOT / "doc" / "source" / "examples" / "uwsgi.ini").read_text()
    (tmp_path / "uwsgi.ini").write_text(f"{example}\n{lines}\n")
    served = read(["uwsgi", str(tmp_path / "uwsgi.ini")], {})
    assert served is not None
    monkeypatch.setattr(_uwsgi, "asked_about", served.options)
    _uwsgi._why_not.cache_clear()
    assert why_not in _uwsgi.why_not() and bool(why_not) == bool(_uwsgi.why_not())
    _uwsgi._why_not.cache_clear()


def test_gunicorn_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gunicorn.workers", types.ModuleType("gunicorn.workers"))
    assert "gunicorn shuts a connection down" in _uwsgi.why_not()


@pytest.mark.parametrize(
    ("status", "headers", "part"),
    [
        ("200 OK", {"Content-Length": "5"}, (0, 5, True)),
        ("206 Partial Content", {"content-length": "5", "Content-Range": "bytes 3-7/100"}, (3, 5, False)),
        ("206 Partial Content", {"Content-Length": "5"}, None),
        ("404 Not Found", {"Content-Length": "5"}, None),
        ("200 OK", {}, None),
        ("200 OK", {"Content-Length": "-5"}, None),
        ("200 OK", {"Content-Length": "5", "Transfer-Encoding": "chunked"}, None),
    ],
)
def test_the_announced_part(status: str, headers: dict[str, str], part: tuple[int, ...] | None) -> None:
    given: list[Any] = []
    answer = glance_slow_clients.Answer(lambda *all: given.append(all))
    answer(status, list(headers.items()))
    assert (given, answer.part) == ([(status, list(headers.items()))], part)


def test_a_file_that_begins_elsewhere_is_left_to_upstream(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(DATA[:MIB])
    with open(tmp_path / "image", "rb") as file:
        pieces = file_pieces.PieceFile(file)

        def body() -> Iterator[bytes]:
            file.seek(4096)
            yield from iter(lambda: pieces.read(128 * 1024), b"")

        download = glance_slow_clients.Download(body(), glance_slow_clients.Part(0, MIB, True), "GET")
        assert download.use(pieces)
        assert b"".join(download) == DATA[4096:MIB]


@pytest.mark.parametrize(
    ("descriptors", "most"), [(100, 25), (4 * 7, 7), (4 * 8, 7), (1 << 20, 7), (resource.RLIM_INFINITY, 7)]
)
def test_how_many_transfers(monkeypatch: pytest.MonkeyPatch, descriptors: int, most: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
    with fastio.patched(NAME, transfers=7 if most == 7 else 256):
        assert glance_slow_clients.most() == most


def test_how_long_a_client_may_take(uwsgi: types.SimpleNamespace) -> None:
    assert _uwsgi.patience() == 4
    uwsgi.opt["socket-timeout"] = b"10"
    assert _uwsgi.patience() == 10
    # For ever.
    uwsgi.opt["socket-timeout"] = b"-1"
    assert _uwsgi.patience() == -1


def test_an_application_may_not_hear_that_its_client_is_gone(uwsgi: types.SimpleNamespace) -> None:
    assert _uwsgi.raises_write_errors()
    uwsgi.opt["disable-write-exception"] = True
    assert not _uwsgi.raises_write_errors()


def test_reports_name_the_server_that_has_no_use_for_it() -> None:
    registry.load(NAME)
    with fastio.patched(NAME) as report:
        assert report.unused == {NAME: "the server is not uWSGI"}
    assert NAME not in fastio.status().unused


@pytest.mark.parametrize(
    ("backends", "left_alone"),
    [
        ("a:file, b:http, c:swift, d:s3, e:rbd, f:vmware", ""),
        ("a:file, b:cinder, c:another, d:cinder", "another, cinder"),
        ("", ""),
    ],
)
def test_reports_name_the_stores_that_hold_workers(
    uwsgi: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, backends: str, left_alone: str
) -> None:
    pytest.importorskip("oslo_config")
    path = tmp_path / "glance-api.conf"
    path.write_text(f"[DEFAULT]\nenabled_backends = {backends}\n")
    monkeypatch.setattr(config, "asked_about", check.configuration([str(path)], [], "")[0])
    expected = [f"{NAME}: downloads from {left_alone} hold a worker, like upstream"] if left_alone else []
    assert glance_slow_clients.notes() == expected


def relayed(data: Any) -> Any:
    """The body of glance's notifier, which notes its calls in ``told``."""
    told: list[int] = []

    class Image:
        def _get_chunk_data_iterator(self, data: Any, chunk_size: int | None = None) -> Iterator[bytes]:
            sent = 0
            for chunk in data:
                yield chunk
                sent += len(chunk)
            told.append(sent)

    make = _bodies.make_relayed_chunk_data_iterator(Image._get_chunk_data_iterator, None)
    return make(Image(), data), told


def of_driver(module: str, chunks: list[bytes]) -> Any:
    """The data that a driver of this module returns."""
    cls = type("Data", (), {"__module__": module, "__iter__": lambda self: iter(chunks)})
    return cls()


@pytest.mark.parametrize("module", sorted(_bodies.RELAYED.values()))
def test_notifications_have_the_number_of_sent_bytes(module: str) -> None:
    body, told = relayed(of_driver(module, [b"one", b"two", b"three"]))
    relay = _bodies.relay(body)
    assert relay is not None and next(body) == b"one"
    assert relay.take() == b"two"
    # Not sent: three.
    relay.tell(3, None)
    assert [len(chunk) for chunk in body] == [3]
    assert told == [6]


def test_an_error_comes_where_reading_raises_it() -> None:
    body, told = relayed(of_driver(_bodies.RELAYED["http"], [b"one"]))
    relay = _bodies.relay(body)
    assert relay is not None and next(body) == b"one"
    relay.tell(0, ConnectionResetError("of the store"))
    with pytest.raises(ConnectionResetError, match="of the store"):
        next(body)
    assert told == []


@pytest.mark.parametrize("module", ["glance_store._drivers.cinder.store", "site.driver", None])
def test_a_store_that_is_not_known_is_left_alone(module: Any) -> None:
    body, told = relayed(of_driver(module, [b"one", b"two"]))
    assert _bodies.relay(body) is None
    assert (list(body), told) == ([b"one", b"two"], [6])


def test_a_body_that_other_code_has_to_see_is_left_to_it(uwsgi: types.SimpleNamespace, tmp_path: Path) -> None:
    """Here it is a function of Python's that calls the application, and not the server."""

    (tmp_path / "image").write_bytes(b"data")
    image = types.SimpleNamespace()

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        start_response("200 OK", [("Content-Length", "4")])
        body = (each for each in iter(lambda: image.fp.read(2), b""))
        _bodies._sources[body] = image
        return body

    given: list[Any] = []
    hook = types.SimpleNamespace(active=True)
    wrapper = glance_slow_clients.Application(application, hook)
    with open(tmp_path / "image", "rb") as file:
        image.fp = file_pieces.PieceFile(file)
        body = wrapper({"REQUEST_METHOD": "GET"}, lambda *args: given.append(args))
        assert type(body) is types.GeneratorType
        assert b"".join(body) == b"data"
    assert given == [("200 OK", [("Content-Length", "4")])]
