"""Errors as glance, its stores, its database and its middleware really word them land in their categories."""

# ruff: noqa: E501 - texts as they are worded

from __future__ import annotations

import re

import pytest

pytest.importorskip("scipy", reason="scipy is not installed")
pytest.importorskip("drain3", reason="drain3 is not installed")

from benchmarks.tools.synthetic import BEGIN, HOSTS, MS, Host, Process, World
from fastio.trace import redaction
from fastio.trace.analysis import rules
from fastio.trace.analysis.analysis import analyse

IMAGE = "5f3c9a4e-0d6b-4c39-9b52-3d7a6a1f9c11"

#: (component, text, category)
WORDED = [
    # oslo.db and what is below it
    ("glance", "DBError: (sqlite3.OperationalError) database is locked [SQL: UPDATE images SET status=?]", "database locked"),
    ("glance", "DBDeadlock: (pymysql.err.OperationalError) (1213, 'Deadlock found when trying to get lock; try "
               "restarting transaction')", "database locked"),
    ("glance", "DBDeadlock: (pymysql.err.InternalError) (1205, 'Lock wait timeout exceeded; try restarting "
               "transaction')", "database locked"),
    ("glance", "DBDeadlock: (psycopg2.errors.DeadlockDetected) deadlock detected", "database locked"),
    ("glance", "OperationalError: (sqlite3.OperationalError) database is locked (from OperationalError: database is "
               "locked)", "database locked"),
    ("glance", "DBConnectionError: (pymysql.err.OperationalError) (2003, \"Can't connect to MySQL server on 'db' "
               "([Errno 111] ECONNREFUSED)\")", "database down"),
    ("glance", "DBConnectionError: (pymysql.err.OperationalError) (2013, 'Lost connection to MySQL server during "
               "query')", "database down"),
    ("glance", "TimeoutError: QueuePool limit of size 5 overflow 50 reached, connection timed out, timeout 30.00",
     "database pool exhausted"),
    # keystonemiddleware and keystoneauth
    ("glance", "HTTP 401 Unauthorized", "authentication failure"),
    ("glance", "InvalidToken: Token authorization failed", "authentication failure"),
    ("glance", "HTTPUnauthorized: The request you have made requires authentication.", "authentication failure"),
    ("glance", f"HTTPUnauthorized: Authentication error - the token may have expired during file upload. Deleting image "
               f"data for {IMAGE}.", "authentication failure"),
    ("glance", "NotAuthenticated: You are not authenticated.", "authentication failure"),
    ("client", "HTTPUnauthorized: HTTP 401 Unauthorized: This server could not verify that you are authorized to access "
               "the document you requested.", "authentication failure"),
    ("store.swift", "ClientException: Authorization Failure. Authorization failed: Unauthorized (HTTP 401)",
     "authentication failure"),
    ("store.s3", "ClientError: An error occurred (InvalidAccessKeyId) when calling the HeadObject operation: The AWS "
                 "Access Key Id you provided does not exist in our records.", "authentication failure"),
    ("glance", "ServiceError: Failed to fetch token data from identity server", "identity service down"),
    ("glance", "ServiceError: Identity server rejected authorization necessary to fetch token data",
     "identity service down"),
    ("glance", "HTTPForbidden: You are not authorized to complete upload_image action.", "not allowed"),
    # glance_store
    ("store.filesystem", "StorageFull: There is not enough disk space on the image storage media. (from OSError: [Errno "
                         "28] No space left on device)", "disk full"),
    ("glance", "HTTPRequestEntityTooLarge: Image storage media is full: There is not enough disk space on the image "
               "storage media.", "disk full"),
    ("store.filesystem", "StorageFull: There is no enough disk space left on the image storage media. requested=16777216",
     "disk full"),
    ("store.filesystem", "OSError: [Errno 122] Disk quota exceeded", "disk full"),
    ("store.s3", "ClientError: An error occurred (XMinioStorageFull) when calling the PutObject operation", "disk full"),
    ("glance", "HTTPRequestEntityTooLarge: Denying attempt to upload image because it exceeds the quota: The size of "
               "the data 17 will exceed the limit. 3 bytes remaining.", "quota exceeded"),
    ("store.filesystem", "StorageWriteDenied: Permission to write image storage media denied. (from PermissionError: "
                         "[Errno 13] Permission denied: '/var/lib/glance/images/x')", "no permission on the store"),
    ("store.http", "RemoteServiceUnavailable: Remote server where the image is present is unavailable.", "store down"),
    ("store.http", "ConnectionError: HTTPConnectionPool(host='127.0.0.1', port=8081): Max retries exceeded with url: "
                   "/x (Caused by NewConnectionError('<urllib3.connection.HTTPConnection object at 0x7f3a>: Failed to "
                   "establish a new connection: [Errno 111] Connection refused'))", "store down"),
    ("store.swift", "ClientException: Object GET failed: http://127.0.0.1:8080/v1/AUTH_test/glance/x 503 Service "
                    "Unavailable", "store down"),
    ("store.swift", "ConnectionRefusedError: [Errno 111] ECONNREFUSED", "store down"),
    ("store.s3", "EndpointConnectionError: Could not connect to the endpoint URL: \"http://127.0.0.1:9000/b/x\"",
     "store down"),
    ("store.rbd", "ObjectNotFound: [errno 2] RADOS object not found (error connecting to the cluster)", "store down"),
    ("store.rbd", "BackendException: Error in store configuration: error connecting to the cluster", "store down"),
    ("store.swift", "ClientException: Connection reset by peer", "store down"),
    ("store.http", "ReadTimeout: HTTPConnectionPool(host='store', port=80): Read timed out. (read timeout=60)",
     "time-out"),
    ("store.filesystem", "TimeoutError: Operation timed out after 30s. Check storage health and connectivity.",
     "time-out"),
    ("store.filesystem", f"NotFound: Image /var/lib/glance/images/{IMAGE} not found", "image not found"),
    ("glance", f"HTTPNotFound: Failed to find image {IMAGE}. HTTP 404", "image not found"),
    ("store.filesystem", f"Duplicate: Image /srv/{IMAGE} already exists", "conflict"),
    # The client, as eventlet's server, uWSGI, webob and glance_store see it
    ("glance", "BrokenPipeError: [Errno 32] Broken pipe", "client gone"),
    ("glance", "ConnectionResetError: [Errno 104] Connection reset by peer", "client gone"),
    ("glance", "OSError: write error", "client gone"),
    ("glance", "OSError: unable to receive chunked part", "client gone"),
    ("store.filesystem", "OSError: error during read(65536) on wsgi.input", "client gone"),
    ("glance", "DisconnectionError: The client disconnected while sending the body (1024 more bytes were expected)",
     "client gone"),
    ("store.filesystem", "Invalid: Size mismatch: expected 16777216 bytes, got 4194304 bytes", "client gone"),
    ("store.filesystem", "ConnectionResetError: [Errno 104] Connection reset by peer [request aborted]", "client gone"),
    ("glance", "aborted: the client has gone", "client gone"),
    ("client", "CommunicationError: Error finding address for http://127.0.0.1:9292: [Errno 111] Connection refused",
     "server not reached"),
    ("client", "OSError: Corrupt image download. Hash was 1 expected 2", "wrong data"),
    ("glance", "OSError: [Errno 24] Too many open files", "out of resources"),
    ("glance", "ProcessExecutionError: Unexpected error while running command. Command: qemu-img Exit code: 1",
     "child process failed"),
    ("glance", "HTTPInternalServerError: The server has either erred or is incapable of performing the requested "
               "operation. HTTP 500", "internal error"),
    ("glance", "something that nobody has seen before", "other"),
]  # fmt: skip


@pytest.mark.parametrize("component, text, category", WORDED, ids=[f"{text[:40]}" for _, text, _ in WORDED])
def test_category(component, text, category):
    assert rules.load().category(component, text) == category


def recorded(text):
    """As the recorder writes it, who has the class from the exception."""
    cls, colon, message = text.partition(": ")
    return f"{cls}: {redaction.text(message)}" if colon and " " not in cls else str(redaction.text(text))


@pytest.mark.parametrize("component, text, category", WORDED, ids=[f"{text[:40]}" for _, text, _ in WORDED])
def test_category_of_what_is_recorded(component, text, category):
    """What is known to be harmless is enough to tell what went wrong."""
    assert rules.load().category(component, recorded(text)) == category


def test_every_word_that_is_looked_for_is_recorded():
    """A pattern can not find what never is in a trace; names of classes are always recorded."""
    patterns = [pattern.pattern for category in rules.load().categories for pattern in category.patterns]
    literal = re.sub(r"\\[a-zA-Z]|\\[.*?\\]", " ", " ".join(patterns))
    words = set(re.findall(r"[A-Za-z]{4,}", literal))
    lost = {word for word in words if redaction.text(word) == redaction.MASK}
    assert {word for word in lost if word.islower()} == set()


def test_categories_of_glance_stores_own_exceptions():
    exceptions = pytest.importorskip("glance_store.exceptions", reason="glance_store is not installed")
    known = rules.load()
    for cls, category in (
        (exceptions.StorageFull, "disk full"),
        (exceptions.StorageWriteDenied, "no permission on the store"),
        (exceptions.RemoteServiceUnavailable, "store down"),
        (exceptions.NotAuthenticated, "authentication failure"),
        (exceptions.AuthorizationFailure, "authentication failure"),
        (exceptions.Forbidden, "not allowed"),
        (exceptions.NotFound, "image not found"),
        (exceptions.Duplicate, "conflict"),
    ):
        made = cls(image="x") if "%(image)" in str(cls.message) else cls()
        assert known.category("store.filesystem", f"{cls.__name__}: {made}") == category
        assert known.category("store.filesystem", redaction.error(made)) == category


@pytest.mark.parametrize("error, status, outcome, category", [
    ("ConnectionRefusedError: [Errno 111] ECONNREFUSED", 500, "error", "store down"),
    ("StorageFull: There is not enough disk space on the image storage media.", 413, "error", "disk full"),
    ("OSError: write error", 200, "aborted", "client gone"),
    ("DBError: (sqlite3.OperationalError) database is locked", 500, "error", "database locked"),
    ("HTTPUnauthorized: The request you have made requires authentication.", 401, "error", "authentication failure"),
])  # fmt: skip
def test_a_seeded_fault_is_why_its_requests_failed(tmp_path, error, status, outcome, category):
    world = World(list(HOSTS), seed=5)
    world.run(20, 2)
    for index in range(7):
        world.download(BEGIN + index * 100 * MS, error=error, status=status, outcome=outcome)
    world.write(tmp_path)
    analysis = analyse([tmp_path])
    assert list(analysis.causes.values()) == [category] * 7
    assert {group.category for group in analysis.groups} == {category}
    # One for each component that it has passed through, however many of its spans.
    assert {group.component for group in analysis.groups} == {"store.swift", "glance", "client"}
    assert [group.count for group in analysis.groups] == [7, 7, 7]


def test_messages_that_differ_in_what_is_variable_have_one_template(tmp_path):
    process = Process(Host("api"), 1, "glance-api")
    for index in range(20):
        span = process.begin(
            BEGIN + index * MS, "glance.request", request=f"req-{index:08x}-0000-4000-8000-000000000000"
        )
        uuid = f"5f3c9a4e-0d6b-4c39-9b52-{index:012x}"
        texts = (f"ImageNotFound: No image found with ID {uuid}", f"OSError: [Errno 28] No space left: '/srv/a/{uuid}'")
        error = texts[index % 2]
        process.end(BEGIN + index * MS + 5, span, "glance.request", outcome="error", error=error)
    process.write(tmp_path)
    groups = {(group.template, group.category): group.count for group in analyse([tmp_path]).groups}
    assert groups == {
        ("ImageNotFound: No image found with ID <uuid>", "image not found"): 10,
        ("OSError: [Errno 28] No space left: '<path>'", "disk full"): 10,
    }


def test_drain_finds_what_is_variable_where_no_pattern_does(tmp_path):
    process = Process(Host("api"), 1, "glance-api")
    for index, name in enumerate(["alice", "bob", "carol", "dave"]):
        span = process.begin(BEGIN + index * MS, "glance.request")
        process.end(
            BEGIN + index * MS + 5, span, "glance.request", outcome="error", error=f"Odd: the mood of {name} is bad"
        )
    process.write(tmp_path)
    [group] = analyse([tmp_path]).groups
    assert (group.template, group.count) == ("Odd: the mood of <*> is bad", 4)


def test_an_error_that_did_no_harm_is_counted_and_is_no_reason(tmp_path):
    process = Process(Host("api"), 1, "glance-api")
    span = process.begin(BEGIN, "glance.request")
    process.end(BEGIN + MS, span, "glance.request", status=200, recovered="ConnectionError: Connection refused")
    process.write(tmp_path)
    analysis = analyse([tmp_path])
    assert analysis.causes == {}
    assert [(group.count, group.recovered) for group in analysis.groups] == [(1, 1)]


def test_an_error_that_did_no_harm_is_not_why_another_failed_its_request(tmp_path):
    process = Process(Host("api"), 1, "glance-api")
    outer = process.begin(BEGIN, "glance.request")
    store = process.begin(BEGIN, "store.swift.add", outer)
    process.end(BEGIN + MS, store, "store.swift.add", outer, recovered="ConnectionError: Connection refused")
    error = "StorageFull: There is not enough disk space on the image storage media."
    process.end(BEGIN + 2 * MS, outer, "glance.request", status=413, outcome="error", error=error)
    process.write(tmp_path)
    assert list(analyse([tmp_path]).causes.values()) == ["disk full"]


def test_an_error_outside_of_requests_is_counted(tmp_path):
    process = Process(Host("api"), 1, "glance-api")
    span = process.begin(BEGIN, "store.rbd.delete")
    process.end(BEGIN + MS, span, "store.rbd.delete", outcome="error", error="InUseByStore: in use")
    process.write(tmp_path)
    [group] = analyse([tmp_path]).groups
    assert (group.component, group.category, group.request) == ("store.rbd", "conflict", "")
