"""What is recorded is what is known to be harmless; what went wrong can still be told."""

import os
import pathlib
import re
import sqlite3
import string
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fastio
from fastio.trace import recorder, redaction, spans
from fastio.trace.instrumentation import trace_client, trace_subprocess
from fastio.trace.recorder import Limits
from fastio.trace.wsgi import traced
from tests.trace import traces

IMAGE = "5ba9f1b2-6a0c-4f0e-9a42-4ef5b8e0a1c3"
#: Of a traceparent.
PARENT = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"

#: Whatever somebody may have chosen, with a digit, so that it is no word that a text has of itself.
SECRETS = st.one_of(
    st.text(string.ascii_letters + string.digits + string.punctuation + " ", min_size=6, max_size=60),
    st.text(string.ascii_letters + string.digits + "-_", min_size=6, max_size=60),
    st.binary(min_size=8, max_size=32).map(bytes.hex),
    st.text(min_size=6, max_size=20),
).filter(lambda secret: any(c.isdigit() and c.isascii() for c in secret) and secret == secret.strip())

#: How a secret comes into a text.
SHAPES = (
    "{}", "'{}'", "[{!r}]", "('X-Auth-Token', {!r})", "X-Auth-Token {}", "X-Auth-Token: {}", "'--password', {!r}",
    "--os-password {}", "--os-password={}", "cmd -p{}", "-u admin:{}", "pass={}", "pass={};user=x", "PW={} cmd",
    "http://glance:{}@host:5000/v3", "mysql+pymysql://glance:{}@host/glance", "http://host/token/{}", "/token/{}",
    "http://host/v2/images?token={}", "GET /v1/AUTH_a/c/o?temp_url_sig={}&x=1 failed", "{{'password': {!r}}}",
    '{{"auth": {{"secret": "{}"}}}}', "Authorization: Bearer {}", "Bearer {} was refused", "Cookie: session={}",
    "token {} is not valid", "INSERT INTO t VALUES ({!r})", "UPDATE images SET name = '{}' WHERE id = 1",
    "[SQL: INSERT INTO images (name) VALUES (?)]\n[parameters: ({!r},)]", "(1062, \"Duplicate entry '{}' for key\")",
    "[Errno 2] No such file or directory: '/srv/{}'", "[Errno {}]", "Connection to {} timed out",
    "HTTP 401 {}", "{} Service Unavailable", "No image found with ID {}", "status={}", "a {} b", "error:{}",
)  # fmt: skip


class CommandError(Exception):
    """As oslo.concurrency's."""

    def __init__(self, cmd: str) -> None:
        super().__init__(cmd)
        self.cmd, self.exit_code, self.stdout = cmd, 1, cmd

    def __str__(self) -> str:
        return f"Unexpected error while running command.\nCommand: {self.cmd}\nExit code: 1\nStdout: {self.stdout!r}"


class StatementError(Exception):
    """As SQLAlchemy's."""

    def __init__(self, text: str, *own: object) -> None:
        super().__init__(text)
        self.orig = sqlite3.OperationalError(*own or [f"near {text!r}: syntax error"])

    def __str__(self) -> str:
        return f"(sqlite3.OperationalError) {self.orig}\n[SQL: SELECT {self.args[0]!r}]"


class DBError(Exception):
    """As oslo.db's."""

    def __init__(self, text: str) -> None:
        self.inner_exception = StatementError(text)
        super().__init__(str(self.inner_exception))


class HTTPError(Exception):
    """As webob's."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.explanation, self.code = text, 400


ERRORS: list[Callable[[str], BaseException]] = [
    Exception, OSError, KeyError, CommandError, StatementError, DBError, HTTPError,
    lambda text: OSError(28, "No space left on device", text), lambda text: OSError(28, text),
    lambda text: OSError(text, text), lambda text: ConnectionRefusedError(111, "ECONNREFUSED", text),
    lambda text: subprocess.TimeoutExpired(["dog", text], 5), lambda text: subprocess.TimeoutExpired(text, 0.5, text),
    lambda text: subprocess.CalledProcessError(1, text, text, text),
    lambda text: UnicodeDecodeError("a", b"a", 0, 1, text),
    lambda text: type("OddError", (Exception,), {})(text, {"a": text}),
    lambda text: type("OddError", (Exception,), {"explanation": text, "title": text, "errno": text})(),
]  # fmt: skip


def chained(make: Callable[[str], BaseException], text: str) -> BaseException:
    try:
        raise RuntimeError(text) from make(text)
    except RuntimeError as error:
        return error


class Popen:
    """What the instrumentation of subprocess sees."""

    def __init__(self, args: Any, error: BaseException | None = None) -> None:
        self.args, self.error = args, error
        self.returncode: int | None = None

    def communicate(self, input: Any = None, timeout: float | None = None) -> Any:
        self.returncode = 1
        if self.error is not None:
            raise self.error
        return b"", b""


communicate = trace_subprocess.make_communicate(Popen.communicate, None)


class Answer:
    """What the instrumentation of glanceclient sees."""

    def __init__(self, **headers: str) -> None:
        self.status_code, self.headers = 200, headers


def request(environ: dict[str, Any], status: str, headers: list[tuple[str, str]]) -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        start_response(status, headers)
        return [b""]

    traced(application, "a-service", "service")(environ, lambda *answer: None)


def everything(secret: str, shape: str) -> None:
    """Have tracing see a secret wherever it looks."""
    text = shape.format(secret)
    for make in ERRORS:
        for error in (make(text), chained(make, text)):
            spans.begin("test.error").fail(error)
            if isinstance(error, Exception):
                with pytest.raises(type(error)):
                    communicate(Popen([text], error))
    assignments = (["PW=" + text, "a"], f"PW={secret} cmd")
    for args in (text, [text], (text, "a"), *assignments, os.fsencode(text), pathlib.Path(text)):
        communicate(Popen(args))
    image = f"/v2/images/{IMAGE}"
    for path in (text, f"/{secret}", f"/v2/images/{secret}", f"{image}/file?token={secret}", f"{image}/{secret}/a"):
        request(
            {
                "REQUEST_METHOD": secret, "PATH_INFO": path, "QUERY_STRING": secret,
                # A secret may have the form of an address, and addresses are recorded.
                "REMOTE_ADDR": f"{secret}@",
                "SCRIPT_NAME": text, "HTTP_X_AUTH_TOKEN": secret, "HTTP_X_OPENSTACK_REQUEST_ID": f"req-{secret}",
            },
            f"503 {secret}", [("X-OpenStack-Request-ID", f"req-{secret}"), ("Set-Cookie", secret)],
        )  # fmt: skip
        # A header that is valid, with what other tracers have, and some that are none.
        for parent in (f"00-{PARENT}-01", text, f"00-{PARENT}-{secret}", f"00-{secret}x-{PARENT[-16:]}-01"):
            request({"HTTP_TRACEPARENT": parent, "HTTP_TRACESTATE": f"a={secret}"}, "200 OK", [])
        for url in (path, f"http://a:{secret}@host{path}"):
            headers = {"X-OpenStack-Request-ID": f"req-{secret}", "X-Auth-Token": secret}
            answer = (Answer(**headers), None)
            trace_client._run(None, secret, url, {"headers": headers}, lambda answer=answer: answer)  # type: ignore[misc]
    for field in ("trace", "caller", "context", "sampled", "os", "runtime", "arch", "kernel"):
        spans.point("test.point", None, {field: f"{text}@"})
    for value in (text, [text], {text: secret}, secret.encode(), type("Odd", (str,), {})(text)):
        for field in ("bytes", "error", "outcome", "message", "an-unknown-field", secret):
            spans.point("test.point", None, {field: value})
    # A secret may have the form of an event's name, with a period in it, and such names are recorded.
    spans.point(f"{secret}@" if "." in secret else secret, None, {})


@given(SECRETS, st.sampled_from(SHAPES))
def test_no_secret_is_in_the_bytes_of_a_trace(secret: str, shape: str) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [secret])
        recorder.start(directory, Limits(1 << 16, 64 << 20, 1 << 30))
        try:
            everything(secret, shape)
        finally:
            recorder.stop()
        (path,) = pathlib.Path(directory).iterdir()
        content = path.read_bytes()
        (file,) = traces.read(directory)
        assert file.lost == 0 and file.ended
    for identity in PARENT.split("-"):
        assert identity.encode() in content
        content = content.replace(identity.encode(), b"")
    # Ids, times and sizes are ours, and a few digits may well be among them.
    content = re.sub(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=[,:])[0-9.]+(?=[,}])", b"", content)
    for shown in (secret, repr(secret)[1:-1]):
        assert shown.encode() not in content
    # Nor a part of it that would do.
    for part in re.findall(r"[A-Za-z0-9]{6,}", secret):
        if any(c.isdigit() for c in part) and any(c.isalpha() for c in part):
            assert part.encode() not in content


@given(st.text(max_size=10_000))
@example("\x00\n\r\u2028" * 50)
@example("password=" * 500)
@example("a" * 5000 + "://" + "b" * 5000 + "@")
@example("a." * 5000)
def test_any_text_gives_one_short_line_of_known_words(value: str) -> None:
    found = redaction.text(value)
    assert len(found) <= 400
    assert found.isascii() and found.isprintable()
    assert redaction.text(found) == found or len(found) == 400


@pytest.mark.parametrize(
    ("found", "recorded"),
    [
        (f"Image {IMAGE} not found", "Image *** not found"),
        (f"No image found with ID {IMAGE}", "No image found with ID ***"),
        ("Connection to 10.0.0.1:6789 timed out after 30 s", "Connection to *** timed out after *** s"),
        ("HTTPConnectionPool(host='10.0.0.1', port=80): Max retries exceeded", "*** Max retries exceeded"),
        ("The request has failed: 401 Unauthorized", "The request has failed: 401 Unauthorized"),
        ("Unable to reach http://u:p/a#@host:5000/v3/auth", "Unable to reach ***:5000/v3"),
        ("(sqlite3.DataError) database is locked\n[SQL: SELECT images]", "(sqlite3.DataError) database is locked"),
        ("the correct horse battery staple", "the ***"),
        ("cOnNeCtIoN connection Connection CONNECTION", "*** connection Connection CONNECTION"),
        ("data,,,,,data 99999 404 1234 [Errno 5] [Errno 12345]", "*** 404 *** [Errno 5] [Errno ***"),
    ],
)  # fmt: skip
def test_known_words_stay(found: str, recorded: str) -> None:
    assert redaction.text(found) == recorded


def test_an_error_names_its_class_and_the_one_it_came_from() -> None:
    error = chained(lambda text: OSError(28, "No space left on device", "/srv/x"), "the storage is full, token=abc123")
    assert redaction.error(error) == (
        "RuntimeError: the storage is full, *** (from OSError: [Errno 28] No space left on device)"
    )


def test_an_error_that_was_suppressed_is_not_told() -> None:
    try:
        try:
            raise OSError(28, "No space left on device")
        except OSError:
            raise ValueError("the storage is full") from None
    except ValueError as error:
        assert redaction.error(error) == "ValueError: the storage is full"


@pytest.mark.parametrize(
    ("error", "recorded"),
    [
        (subprocess.TimeoutExpired(["curl", "-u", "a:b"], 5), "TimeoutExpired: timed out after 5 seconds"),
        (subprocess.CalledProcessError(3, ["curl", "data"], b"data"), "CalledProcessError: exit status 3"),
        (CommandError("qemu-img data"), "CommandError: exit status 1"),
        (DBError("x1 data"), "DBError: (sqlite3.OperationalError) near *** error"),
        (OSError(5, "Input/output error", "/data/image"), "OSError: [Errno 5] Input/output error"),
        (ConnectionRefusedError(111, "ECONNREFUSED"), "ConnectionRefusedError: [Errno 111] Connection refused"),
        (OSError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed (_ssl.c:1)"),
         "PermissionError: [Errno 1] [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed ***"),
        (OSError("write error"), "OSError: write error"),
        (StatementError("x", 1062, "Duplicate entry 'x' for key 'name'"),
         "StatementError: (sqlite3.OperationalError) 1062, Duplicate *** for key 'name'"),
        # Words that are known, as values.
        (StatementError("data"), "StatementError: (sqlite3.OperationalError) near *** error"),
        (StatementError("x", 1062, "Duplicate entry 'it's data' for key 'name'"),
         "StatementError: (sqlite3.OperationalError) 1062, Duplicate *** for key 'name'"),
        (StatementError("x", 1406, "Data too long for column 'name' at row 1"),
         "StatementError: (sqlite3.OperationalError) 1406, Data too long for *** 'name' at row ***"),
        (StatementError("x", "duplicate key DETAIL: Key (name)=(data, file) already exists."),
         "StatementError: (sqlite3.OperationalError) duplicate key DETAIL: Key *** already exists."),
        (StatementError("x", "Failing row contains (1, data, null)."),
         "StatementError: (sqlite3.OperationalError) Failing row ***"),
        (sqlite3.OperationalError('near "data'), "OperationalError: near ***"),
        (RuntimeError('(x.Error) near "data": error\n[SQL: SELECT data]'), "RuntimeError: *** near *** error"),
        # The client's own errors are of no statement.
        (StatementError("x", 2013, "Lost at 'reading initial packet' ([Errno 104] reset)"),
         "StatementError: (sqlite3.OperationalError) 2013, Lost at 'reading *** packet' ([Errno 104] reset)"),
        (ValueError(), "ValueError"),
    ],
)  # fmt: skip
def test_errors_of_a_known_kind(error: BaseException, recorded: str) -> None:
    assert redaction.error(error) == recorded


def test_an_error_whose_text_can_not_be_had() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert redaction.error(OddError()) == "OddError: its text cannot be had"


def test_errors_in_a_cycle_end() -> None:
    one, other = ValueError("error one"), ValueError("other")
    one.__context__, other.__context__ = other, one
    assert redaction.error(one).startswith("ValueError: error one")


def test_paths_are_those_of_known_routes() -> None:
    identity = str(uuid.uuid4())
    image = f"/v2/images/{identity}"
    for known in (f"{image}/file", image, "/v2/images", "/", f"/image/v2.9/tasks/{identity}", "/v2/schemas/image"):
        assert redaction.path(known) == known
    for value, recorded in (
        (f"/v2/images/{identity}/file?token=abc#x", f"/v2/images/{identity}/file"),
        ("/v2/images;jsessionid=1a2b3c", "/v2/images"),
        ("/v2/images/hunter/file", "/v2/images/***/file"),
        (f"/v2/images/{identity}/tags/hunter", f"/v2/images/{identity}/tags/***"),
        (f"/reset/{identity}", "/***/***"),
        (f"http://a:b@host/v2/images/{identity}", f"***//***/v2/images/{identity}"),
        (f"/v2/images/{identity}x", "/v2/images/***"),
    ):
        assert redaction.path(value) == recorded
    assert len(redaction.path("/metadefs" * 1000)) < 200


def test_a_request_id_is_none_that_a_client_has_made_up() -> None:
    for value in ("", "req-", "token", "req-a b", "req-hunter2", IMAGE, f"req-{IMAGE}\n", f"req-{IMAGE.upper()}"):
        assert redaction.request_id(value) is None
    assert redaction.request_id(f"req-{IMAGE}") == f"req-{IMAGE}"


def test_the_program_of_a_command() -> None:
    for args, recorded in (
        (["sh", "-c", "x"], "sh"), ("sh", "sh"), ("/bin/sh", "sh"), (pathlib.Path("/bin/sh"), "sh"),
        ([b"/bin/sh"], "sh"),
        ("PW=x sh", "sh"), ("echo hunter2", "sh"), (["hunter2", "sh"], "***"), (["/no/such/sh"], "***"), ([], "***"),
        (["PW=x", "sh"], "***"),
    ):  # fmt: skip
        assert redaction.program(args) == recorded


def test_nothing_of_a_real_command_s_arguments(tmp_path: pathlib.Path) -> None:
    """Not even where the exception has them in its text."""
    secret = "ARGUMENTSECRET"
    with fastio.patched([], trace=str(tmp_path)):
        subprocess.run(["echo", secret], capture_output=True, check=True)
        subprocess.run(f"PW={secret} echo {secret}", shell=True, capture_output=True, check=True)
        with pytest.raises(Exception, match=secret):
            subprocess.run(["sh", "-c", "sleep 30; :", secret], capture_output=True, timeout=0.1)
    (path,) = tmp_path.iterdir()
    assert secret not in path.read_text()
    ends = traces.ends(tmp_path, "subprocess.command")
    assert [(end["program"], end.get("error", "")) for end in ends][:3] == [
        ("echo", ""), ("sh", ""), ("sh", "TimeoutExpired: timed out after 0.1 seconds"),
    ]  # fmt: skip


def test_a_field_that_is_not_known_keeps_nothing() -> None:
    event = ("P", 1, 1, None, "test.event", 1, {"bytes": 1, "hunter2": "hunter2", "status": "hunter2", "path": 7})
    nothing: Any = ("P", 1, 1, None, "Hunter2!", 1, {})
    found, unnamed = redaction.events([event, nothing])
    assert found[6] == {"bytes": 1, "***": "***", "status": "***", "path": "***"}
    assert unnamed[4] == "***"


def test_what_is_harmless_is_handed_on_as_it_is() -> None:
    event = ("E", 1, 1, None, "test.event", 1, {"bytes": 1, "outcome": spans.OK, "path": redaction.path("/v2/images")})
    assert redaction.events([event])[0] == event
    # Once the name is known.
    assert redaction.events([event])[0] is event
