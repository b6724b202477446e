"""Errors of glance, its stores, its database and its middleware get their categories."""

from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="scipy is not installed")

from fastio.trace import values
from fastio.trace.analysis import rules
from fastio.trace.analysis.analysis import analyse
from tests.trace.synthetic import BEGIN, HOSTS, MS, Host, Process, World

#: (component, category, error)
RECORDED = [
    line.split(" | ", 2)
    for line in Path(__file__).with_name("errors.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("component, category, error", RECORDED, ids=[error[:60] for *_, error in RECORDED])
def test_category(component, category, error):
    assert rules.category(component, error) == category


def test_every_category_has_an_example():
    assert {name for name, _, _ in rules.CATEGORIES} <= {category for _, category, _ in RECORDED}


def test_categories_of_glance_stores_own_exceptions():
    exceptions = pytest.importorskip("glance_store.exceptions", reason="glance_store is not installed")
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
        assert rules.category("store.filesystem", values.error(made)) == category


def errors(analysis):
    return analysis.to_dict()["errors"]


@pytest.mark.parametrize("error, status, outcome, category", [
    ("ConnectionRefusedError ECONNREFUSED", 500, "error", "store down"),
    ("glance_store.exceptions.StorageFull < OSError ENOSPC", 413, "error", "disk full"),
    ("OSError", 200, "aborted", "client gone"),
    ("oslo_db.exception.DBError < sqlite3.OperationalError SQLITE_BUSY", 500, "error", "database locked"),
    ("webob.exc.HTTPUnauthorized HTTP 401", 401, "error", "authentication failure"),
])  # fmt: skip
def test_a_seeded_fault_is_why_its_requests_failed(tmp_path, error, status, outcome, category):
    world = World(list(HOSTS), seed=5)
    world.run(20, 2)
    for index in range(7):
        world.download(BEGIN + index * 100 * MS, error=error, status=status, outcome=outcome)
    world.write(tmp_path)
    analysis = analyse([tmp_path])
    assert list(analysis.causes.values()) == [category] * 7
    # One for each component that it has passed through, however many of its spans.
    assert [(each["component"], each["error"], each["category"], each["count"]) for each in errors(analysis)] == [
        (component, error, category, 7) for component in ("client", "glance", "store.swift")
    ]


def one_request(tmp_path, *, inner=None, **ending):
    process = Process(Host("api"), 1, "glance-api")
    span = process.begin(BEGIN, "glance.request")
    if inner:
        process.end(BEGIN + 10, process.begin(BEGIN + 5, "store.swift.get", span), outcome="error", error=inner)
    process.end(BEGIN + MS, span, **ending)
    process.write(tmp_path)
    return analyse([tmp_path])


def test_an_error_that_did_no_harm_is_counted_and_is_no_reason(tmp_path):
    analysis = one_request(tmp_path, status=200, recovered="ConnectionRefusedError ECONNREFUSED")
    assert analysis.causes == {}
    (error,) = errors(analysis)
    assert (error["error"], error["count"], error["recovered"]) == ("ConnectionRefusedError ECONNREFUSED", 1, 1)


@pytest.mark.parametrize("ending, category", [
    ({"status": 500, "outcome": "error"}, "internal error"),
    ({"status": 200, "outcome": "aborted"}, "client gone"),
    ({"status": 200, "outcome": "error"}, "other"),
])  # fmt: skip
def test_a_request_without_an_error_has_what_its_end_says(tmp_path, ending, category):
    assert list(one_request(tmp_path, **ending).causes.values()) == [category]


def test_the_first_error_that_explains_something_counts(tmp_path):
    analysis = one_request(
        tmp_path, inner="glance_store.exceptions.StorageFull", status=500, outcome="error", error="HTTP 500"
    )
    assert list(analysis.causes.values()) == ["disk full"]
