"""Recordable values: never a text of a client or a server."""

import errno
import os
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastio.trace import values

SECRET = "gAAAAABnotforanybody"


class Named(Exception):
    """With attributes as libraries have them."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args)
        self.__dict__.update(attributes)


class Answer:
    status_code = 503


class Mysql(Exception):
    __module__ = "pymysql.err"


class Broken(Exception):
    @property
    def errno(self) -> int:
        raise RuntimeError

    @property
    def response(self) -> int:
        raise RuntimeError


NAMED = f"{__name__}.Named"


@pytest.mark.parametrize(
    ("exception", "recorded"),
    [
        (ValueError(SECRET), "ValueError"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), SECRET), "OSError ENOSPC"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "ECONNREFUSED"), "ConnectionRefusedError ECONNREFUSED"),
        (OSError(errno.EPIPE, f"Corrupt image: {SECRET}"), "BrokenPipeError"),
        (OSError(SECRET), "OSError"),
        (socket.gaierror(socket.EAI_NONAME, SECRET), "socket.gaierror"),
        (ssl.SSLError(1, SECRET), "ssl.SSLError"),
        (subprocess.CalledProcessError(3, ["mount", SECRET]), "subprocess.CalledProcessError exit status 3"),
        (subprocess.TimeoutExpired(["mount", SECRET], 5), "subprocess.TimeoutExpired"),
        (Named(SECRET, exit_code=7), f"{NAMED} exit status 7"),
        (Named(code=404, explanation=SECRET), f"{NAMED} HTTP 404"),
        (Named(http_status=401, http_reason=SECRET), f"{NAMED} HTTP 401"),
        (Named(response=Answer()), f"{NAMED} HTTP 503"),
        (Named(response={"ResponseMetadata": {"HTTPStatusCode": 403}, "Error": {"Code": SECRET}}), f"{NAMED} HTTP 403"),
        (Named(code=SECRET, status=True, sqlite_errorname=SECRET), NAMED),
        (Named(code=7), NAMED),
        (Mysql(1213, SECRET), "pymysql.err.Mysql 1213"),
        (Named(1213, SECRET), NAMED),
        (Broken(), f"{__name__}.Broken"),
        (SystemExit(404), "SystemExit"),
        (type(SECRET + " =", (Exception,), {})(), "***"),
    ],
)
def test_errors_are_recorded_without_their_texts(exception: BaseException, recorded: str) -> None:
    found = values.error(exception)
    assert found == recorded and type(found) is values.Recordable
    assert SECRET not in found


@pytest.mark.skipif(sys.version_info < (3, 11), reason="sqlite3 does not give the number there")
def test_the_error_of_a_database() -> None:
    with pytest.raises(sqlite3.OperationalError) as caught:
        sqlite3.connect("/no/such/directory/SECRET.sqlite")
    assert values.error(caught.value) == "sqlite3.OperationalError SQLITE_CANTOPEN"


def test_the_causes_of_an_error() -> None:
    lowest = OSError(errno.EIO, os.strerror(errno.EIO))
    for attribute in ("orig", "inner_exception", "reason"):
        assert values.error(Named(**{attribute: lowest})) == f"{NAMED} < OSError EIO"
    outer = ValueError()
    outer.__cause__ = Named(orig=lowest)
    assert values.error(outer) == f"ValueError < {NAMED} < OSError EIO"
    lowest.__context__ = outer
    # A cycle ends somewhere, and nothing is named twice.
    assert values.error(outer) == f"ValueError < {NAMED} < OSError EIO"
    hidden = ValueError()
    hidden.__context__, hidden.__suppress_context__ = lowest, True
    assert values.error(hidden) == "ValueError"


IMAGE = "0b1c7e40-8d6f-4f0e-9a42-4ef5b8e0a1c3"


@pytest.mark.parametrize(
    ("path", "route"),
    [
        (f"/v2/images/{IMAGE}/file", "/v2/images/{id}/file"),
        (f"/image/v2.12/images/{IMAGE}/members/{SECRET}", "/image/v2.12/images/{id}/members/{id}"),
        (f"/v2/images?name={SECRET}", "/v2/images"),
        (f"/v2/images;{SECRET}", "/v2/images"),
        (f"/{SECRET}/v2//images/", "/{id}/v2//images/"),
        (f"http://{SECRET}@host/v2/images", "{id}//{id}/v2/images"),
        ("", ""),
        ("/a" * 10_000, "/{id}" * 11),
    ],
)
def test_identifiers_in_paths_become_templates(path: str, route: str) -> None:
    assert values.route(path) == route


@given(st.text(max_size=200))
def test_of_any_text_nothing_is_left_but_what_is_known(text: str) -> None:
    for found in (values.route(text), values.method(text), values.name(text)):
        assert found.isascii() and not set(found) & set('"\\\n \t')
        assert type(found) is values.Recordable
    assert set(values.route(text)) <= set("/{}abcdefghijklmnopqrstuvwxyz_-.0123456789")


def test_ids_and_methods() -> None:
    assert values.request_id(f"req-{IMAGE}") == f"req-{IMAGE}"
    for other in (f"req-{SECRET}", IMAGE, f"req-{IMAGE}\n", f"req-{IMAGE.upper()}", None, 5, b"req"):
        assert values.request_id(other) is None
    assert [values.method(each) for each in ("get", "PUT", SECRET)] == ["GET", "PUT", "other"]
    assert [values.name(each) for each in ("a-store_1.x", f"a {SECRET}", "x" * 65, "")] == ["a-store_1.x", *["***"] * 3]


@pytest.mark.parametrize(
    ("args", "program"),
    [
        (["cat", SECRET], "cat"), (("/bin/cat", SECRET), "cat"), ("cat", "cat"), (b"cat", "cat"),
        (f"cat {SECRET}", "sh"), (f"/no/such/{SECRET}", "***"), ([SECRET], "***"), ([], "***"),
        (iter(["cat"]), "***"), (5, "***"),
    ],
)  # fmt: skip
def test_programs(args: Any, program: str) -> None:
    assert values.program(args) == program


@pytest.mark.parametrize("text", ["a'b'" * 50_000 + "@", "/" * 200_000, "a" * 200_000 + "'", "=(" * 100_000])
def test_a_client_cannot_make_it_take_long(text: str) -> None:
    began = time.process_time()
    values.route(text), values.method(text), values.request_id(text), values.error(Named(text, code=text))
    assert time.process_time() - began < 0.1
