"""W3C Trace Context: what is taken from a request that comes in, and handed on in those that go out."""

import contextlib
import pathlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from wsgiref import simple_server

import pytest

pytest.importorskip("requests", reason="requests is not installed")
pytest.importorskip("urllib3", reason="urllib3 is not installed")

import requests
import urllib3

import fastio
import tests.green_ssl  # noqa: F401
from fastio import counters
from fastio.trace import context, spans
from fastio.trace.wsgi import traced
from tests.trace import traces

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{CALLER}-01"
STATE = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE,secret@vendor=STATESECRET"


def received(parent: Any, state: Any = "") -> context.Context | None:
    return context.received({"HTTP_TRACEPARENT": parent, "HTTP_TRACESTATE": state})


@pytest.mark.parametrize(
    ("parent", "sampled"),
    [
        (VALID, True),
        (f"  {VALID}\t", True),
        (f"00-{TRACE}-{CALLER}-00", False),
        (f"00-{TRACE}-{CALLER}-02", False),
        (f"00-{TRACE}-{CALLER}-ff", True),
        # Later versions begin like this one.
        (f"cc-{TRACE}-{CALLER}-01", True),
        (f"cc-{TRACE}-{CALLER}-01-what-the-future-will-be-like", True),
        (f"01-{TRACE}-{CALLER}-00-", False),
        # All others are ignored.
        *[(parent, None) for parent in (
            None, "", "00", VALID[:-1], f"{VALID}0", f"{VALID}-", f"{VALID}-more", f"{VALID},{VALID}",
            f"{VALID}, {VALID}", f"ff-{TRACE}-{CALLER}-01", f"0-{TRACE}-{CALLER}-01", f"0x-{TRACE}-{CALLER}-01",
            f"CC-{TRACE}-{CALLER}-01", f"cc-{TRACE}-{CALLER}-01.more", f"cc-{TRACE}-{CALLER}-0",
            f"00-{'0' * 32}-{CALLER}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE.upper()}-{CALLER}-01",
            f"00-{TRACE}-{CALLER.upper()}-01", f"00-{TRACE}-{CALLER}-0X", f"00-{TRACE[:-1]}-{CALLER}-01",
            f"00_{TRACE}_{CALLER}_01", f"00-{TRACE}-{CALLER}-01\n", f"00-{'.' * 32}-{CALLER}-01", 7, b"00",
        )],
    ],
)  # fmt: skip
def test_the_header_of_the_trace(parent: Any, sampled: bool | None) -> None:
    assert received(parent, STATE) == (None if sampled is None else (TRACE, CALLER, sampled, STATE))


LONGEST = "a=" + "1" * 510


@pytest.mark.parametrize(
    ("state", "carried"),
    [
        (LONGEST, LONGEST),
        *((state, "") for state in ("", "a=1\r\n b=2", "a=1\nX: y", "a=\0", "a=é", LONGEST + "1", 7, None)),
    ],
)
def test_the_header_of_other_tracers(state: Any, carried: str) -> None:
    """One that cannot be sent on is none."""
    found = received(VALID, state)
    assert found is not None and found.state == carried


def test_what_is_over_hands_on_nothing(recorded: Callable[[], list[traces.Span]]) -> None:
    """Its end is recorded, and what it would hand on could be matched with nothing."""
    with spans.begin("test.outer") as outer:
        assert context.handed_on(outer) == {"traceparent": f"00-{outer.trace}-{outer.id}-01"}
    assert context.handed_on(outer) == {}
    recorded()
    with spans.begin("test.outer") as outer:
        assert context.handed_on(outer) == {}


def test_a_span_that_outlasts_its_request_hands_on_what_came_in(recorded: Callable[[], list[traces.Span]]) -> None:
    with spans.Span("test.outer", None, None, received(VALID)):
        inner = spans.begin("test.inner")
    assert context.handed_on(inner)["traceparent"].startswith(f"00-{TRACE}-")
    inner.end()


Application = Callable[..., Any]


class _Quiet(simple_server.WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@contextlib.contextmanager
def serving(application: Application) -> Iterator[str]:
    """The address of a real server of this application."""
    with simple_server.make_server("127.0.0.1", 0, application, handler_class=_Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v2/images"
        finally:
            server.shutdown()
            thread.join(60)


@pytest.fixture
def store() -> Iterator[tuple[str, list[Mapping[str, str]]]]:
    """The address of a store, and the headers of each request that came there."""
    seen: list[Mapping[str, str]] = []

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        seen.append({name: value for name, value in environ.items() if name.startswith("HTTP_")})
        if environ["PATH_INFO"].endswith("/elsewhere"):
            start_response("302 Found", [("Location", "/v2/images"), ("Content-Length", "0")])
            return [b""]
        status = "418 I'm a teapot" if environ["PATH_INFO"].endswith("/teapot") else "200 OK"
        start_response(status, [("Content-Length", "4")])
        return [b"data"]

    with serving(application) as address:
        yield address, seen


def by_requests(address: str) -> bytes:
    return requests.get(address, headers={"X-Own": "1"}, timeout=30).content


def by_a_session(address: str) -> bytes:
    with requests.Session() as session:
        return session.get(address, timeout=30).content


def by_a_pool(address: str) -> bytes:
    with urllib3.PoolManager(headers={"X-Own": "1"}) as pool:
        return pool.request("GET", address, timeout=30).data


def by_position(address: str) -> bytes:
    with urllib3.connection_from_url(address) as pool:
        return pool.urlopen("GET", "/v2/images", None, {"X-Own": "1"}).data


WAYS = [by_requests, by_a_session, by_a_pool, by_position]


@pytest.fixture
def tracing(tmp_path: pathlib.Path) -> Callable[..., Any]:
    """Patches that record, and hand the trace on."""
    return lambda names=(), **more: fastio.patched(
        names, **{"trace": str(tmp_path / "trace"), "trace_context": True, **more}
    )


@pytest.fixture
def the(tmp_path: pathlib.Path) -> Callable[[str], traces.Span]:
    """``the(name)`` is the span of this name."""

    def the(name: str) -> traces.Span:
        (found,) = [span for span in traces.spans(tmp_path / "trace") if span.name == name]
        return found

    return the


@pytest.fixture
def in_a_call(tracing: Callable[..., Any], store: Any) -> Iterator[Any]:
    """A pool of connections to the store, used within a span."""
    with tracing(), spans.begin("test.call"), urllib3.connection_from_url(store[0]) as pool:
        yield pool


def ask(application: Application, **headers: str) -> Any:
    """Have a real, traced service answer one request with these headers."""
    with serving(traced(application, "a-service", "service")) as address:
        # By the standard library, which is not patched, and adds nothing.
        import http.client

        host = address.split("/")[2]
        connection = http.client.HTTPConnection(host, timeout=30)
        try:
            connection.request("GET", "/v2/images", headers=headers)
            return connection.getresponse().read()
        finally:
            connection.close()


def service(call: Callable[[], bytes]) -> Application:
    def application(environ: dict[str, Any], start_response: Any) -> Any:
        with spans.begin("store.http.get"):
            data = call()
        start_response("200 OK", [("Content-Length", str(len(data)))])
        return [data]

    return application


@pytest.mark.parametrize("way", WAYS)
def test_the_trace_is_handed_on(
    way: Callable[[str], bytes], store: Any, tracing: Any, the: Any, tmp_path: pathlib.Path
) -> None:
    address, seen = store
    with tracing():
        assert ask(service(lambda: way(address)), traceparent=VALID, tracestate=STATE) == b"data"
    request, inner = the("service.request"), the("store.http.get")
    assert (request.trace, request.parent, inner.trace, inner.parent) == (TRACE, CALLER, TRACE, request.id)
    (headers,) = seen
    assert (headers["HTTP_TRACEPARENT"], headers["HTTP_TRACESTATE"]) == (f"00-{TRACE}-{inner.id}-01", STATE)
    assert ("HTTP_X_OWN" in headers) is (way is not by_a_session)
    assert all(b"STATESECRET" not in path.read_bytes() for path in (tmp_path / "trace").iterdir())


OFF: list[dict[str, Any]] = [{"trace_context": False}, {"disabled": "trace_urllib3"}, {"trace": None}]


@pytest.mark.parametrize("settings", OFF, ids=["by default", "disabled", "no trace"])
def test_nothing_is_handed_on_unless_asked_for(settings: dict[str, Any], store: Any, tracing: Any, the: Any) -> None:
    address, seen = store
    before = urllib3.connectionpool.HTTPConnectionPool.urlopen
    with tracing(**settings):
        assert urllib3.connectionpool.HTTPConnectionPool.urlopen is before
        assert ask(service(lambda: by_requests(address)), traceparent=VALID, tracestate=STATE) == b"data"
    assert not {"HTTP_TRACEPARENT", "HTTP_TRACESTATE"} & set(seen[0])
    if "trace" not in settings:
        # It is recorded all the same.
        assert the("service.request").trace == TRACE


@pytest.mark.parametrize(
    ("parent", "trace", "sampled"),
    [(f"00-{TRACE}-{CALLER}-02", TRACE, False), (f"00-{'0' * 32}-{CALLER}-01", None, True)],
    ids=["a caller that does not record", "an invalid header"],
)
def test_what_is_handed_on_of_what_came(
    parent: str, trace: str | None, sampled: bool, store: Any, tracing: Any, the: Any
) -> None:
    """A trace begins where there is none, and what came with an invalid header belongs to no trace."""
    address, seen = store
    with tracing():
        call = service(lambda: by_requests(address) + by_requests(address))
        ask(call, traceparent=parent, **({} if trace else {"tracestate": STATE}))
    request, inner = the("service.request"), the("store.http.get")
    assert (request.parent, request.trace == trace) == (CALLER if trace else "", trace is not None)
    assert [received(headers["HTTP_TRACEPARENT"]) for headers in seen] == [(request.trace, inner.id, sampled, "")] * 2
    assert all("HTTP_TRACESTATE" not in headers for headers in seen)


@pytest.mark.parametrize("own", [{"traceparent": VALID}, {"TraceParent": VALID}, {"Tracestate": "a=1"}])
@pytest.mark.parametrize("kind", [str, str.encode], ids=["text", "bytes"])
def test_another_tracer_s_headers_stay(
    own: dict[str, str], kind: Callable[[str], Any], store: Any, in_a_call: Any
) -> None:
    # Names in bytes are http.client's to send.
    headers: dict[Any, str] = {kind(name): value for name, value in own.items()} | {"User-Agent": "a-test"}
    assert in_a_call.urlopen("GET", "/v2/images", headers=headers).data == b"data"
    ((name, value),) = own.items()
    found = {key: value for key, value in store[1][0].items() if key in ("HTTP_TRACEPARENT", "HTTP_TRACESTATE")}
    assert found == {f"HTTP_{name.upper()}": value}


def test_a_request_that_is_sent_again_has_them_once(store: Any, in_a_call: Any) -> None:
    """urllib3 does so by the same function, with what it was given."""
    again = urllib3.Retry(2, status_forcelist=[418], raise_on_status=False)
    assert in_a_call.urlopen("GET", "/v2/images/teapot", retries=again).status == 418
    span = spans.current.get()
    assert span is not None
    # Of two, the server would show both, with a comma between them.
    assert [headers["HTTP_TRACEPARENT"] for headers in store[1]] == [f"00-{span.trace}-{span.id}-01"] * 3


def test_a_copy_that_is_none_is_left_alone(store: Any, in_a_call: Any) -> None:
    class Own(dict[str, str]):
        def copy(self) -> "Own":
            return self

    given = Own({"X-Own": "1"})
    in_a_call.urlopen("GET", "/v2/images", headers=given)
    assert given == {"X-Own": "1"}
    assert "HTTP_TRACEPARENT" not in store[1][0]


def test_a_signed_request_is_handed_on(store: Any, tracing: Any, the: Any) -> None:
    """The header comes after botocore has signed the others, and is none of those that the signature is about."""
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    from botocore.config import Config

    address, seen = store
    client = boto3.client(
        "s3", endpoint_url=address.removesuffix("/v2/images"), region_name="us-east-1",
        aws_access_key_id="AN-ID", aws_secret_access_key="A-KEY",
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
    )  # fmt: skip
    with tracing():
        call = service(lambda: client.get_object(Bucket="a-bucket", Key="a-key")["Body"].read())
        assert ask(call, traceparent=VALID) == b"data"
    (headers,) = seen
    assert headers["HTTP_TRACEPARENT"] == f"00-{TRACE}-{the('store.http.get').id}-01"
    assert "traceparent" not in headers["HTTP_AUTHORIZATION"]


@pytest.mark.parametrize("names", [["urllib3_sendfile"], ["urllib3_blocks"], ["urllib3_sendfile", "urllib3_blocks"]])
def test_an_upload_that_is_patched_is_handed_on(
    names: list[str], tracing: Any, the: Any, tmp_path: pathlib.Path
) -> None:
    """The body is the patches' own, and the headers are ours."""
    from tests.patches.uploads import recorder as uploads

    data = bytes(range(256)) * 4096
    (tmp_path / "file").write_bytes(data)
    with uploads(len(data)) as server:
        with tracing(names, strict=True):
            counters.reset()
            with spans.begin("test.upload"), (tmp_path / "file").open("rb") as file:
                assert requests.put(server.url, data=file).status_code == 200
                assert file.tell() == len(data)
            taken = {name: fastio.metrics().patches[name].calls for name in names}
        ((head, body),) = server.requests
    assert body == data
    assert taken == dict.fromkeys(names, 1)
    found = the("test.upload")
    assert head.lower().count(b"traceparent") == 1
    assert f"traceparent: 00-{found.trace}-{found.id}-01\r\n".encode() in head


def test_without_a_span_that_is_recorded_nothing_is_added(store: Any, tracing: Any) -> None:
    address, seen = store
    with tracing():
        assert by_requests(address) == b"data"
        spans.current.set(spans.begin("test.call"))
    # Of a trace that is over.
    with tracing(trace=None):
        assert by_requests(address) == b"data"
    assert all("HTTP_TRACEPARENT" not in headers for headers in seen)


def test_what_the_caller_has_given_is_not_changed(store: Any, tracing: Any) -> None:
    address, seen = store
    headers = urllib3.HTTPHeaderDict()
    headers.add("X-Own", "1")
    headers.add("X-Own", "2")
    with tracing(), spans.begin("test.call"):
        with urllib3.connection_from_url(address, headers={"X-Pool": "1"}) as pool:
            pool.urlopen("GET", "/v2/images/elsewhere", headers=headers)
            pool.urlopen("GET", "/v2/images")
            assert pool.headers == {"X-Pool": "1"}
        given = {"X-Own": "1"}
        response = requests.get(address, headers=given, timeout=30)
        assert given == {"X-Own": "1"}
        assert "traceparent" not in response.request.headers
    assert list(headers.items()) == [("X-Own", "1"), ("X-Own", "2")]
    # The redirect is followed with the same headers.
    assert [each["HTTP_X_OWN"].replace(" ", "") for each in seen if "HTTP_X_OWN" in each] == ["1,2", "1,2", "1"]
    assert seen[2]["HTTP_X_POOL"] == "1"
    assert len({each["HTTP_TRACEPARENT"] for each in seen}) == 1 and len(seen) == 4


@pytest.mark.parametrize("headers", [5, [("X-Own", "1")], object()])
def test_what_are_no_headers_is_urllib3_s_to_judge(headers: Any, store: Any, tracing: Any) -> None:
    def outcome() -> Any:
        with urllib3.connection_from_url(store[0]) as pool:
            try:
                return pool.urlopen("GET", "/v2/images", headers=headers, retries=False).data
            except Exception as error:
                return type(error), str(error)

    stock = outcome()
    with tracing(), spans.begin("test.call"):
        assert outcome() == stock


def test_fastio_trace_shows_the_request_by_the_id_of_its_trace(
    store: Any, tracing: Any, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fastio.trace.analysis import command

    with tracing():
        ask(service(lambda: by_requests(store[0])), traceparent=VALID)
        ask(service(lambda: b""))
    assert command.main(["waterfall", "--request", TRACE, str(tmp_path / "trace")]) == 0
    shown = capsys.readouterr().out
    assert shown.count("service.request") == 1
    assert "store.http.get" in shown and "method GET" in shown
