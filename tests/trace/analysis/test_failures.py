"""Errors as glance, its stores, its database and its middleware really word them land in their categories."""

import re
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="scipy is not installed")
pytest.importorskip("drain3", reason="drain3 is not installed")

from benchmarks.tools.synthetic import BEGIN, HOSTS, MS, Host, Process, World
from fastio.trace import redaction
from fastio.trace.analysis import rules
from fastio.trace.analysis.analysis import analyse

#: (component, category, text)
WORDED = [
    line.split(" | ", 2)
    for line in Path(__file__).with_name("errors.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
worded = pytest.mark.parametrize("component, category, text", WORDED, ids=[text[:40] for *_, text in WORDED])


@worded
def test_category(component, text, category):
    assert rules.load().category(component, text) == category


def recorded(text):
    """As the recorder writes it, who has the class from the exception."""
    cls, colon, message = text.partition(": ")
    return f"{cls}: {redaction.text(message)}" if colon and " " not in cls else str(redaction.text(text))


@worded
def test_category_of_what_is_recorded(component, text, category):
    """What is known to be harmless is enough to tell what went wrong."""
    assert rules.load().category(component, recorded(text)) == category


def test_every_word_that_is_looked_for_is_recorded():
    """A pattern cannot find what never is in a trace; names of classes are always recorded."""
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
