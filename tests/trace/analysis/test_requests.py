"""Requests, their states and how they ended, of traces that are made up."""

import pytest

pytest.importorskip("scipy", reason="scipy is not installed")

from fastio.trace.analysis.analysis import analyse, percentile, state_times
from tests.trace.synthetic import BEGIN, HOSTS, MS, Host, Process, World

PATH = "/v2/images/0b1c/file"


@pytest.fixture
def world():
    return World(list(HOSTS), seed=3)


def analysed(world, tmp_path):
    world.write(tmp_path)
    return analyse([tmp_path])


def single(tmp_path, record):
    """The analysis of what ``record(process)`` has recorded, of one process."""
    process = Process(Host("api"), 1, "glance-api")
    record(process)
    process.write(tmp_path)
    return analyse([tmp_path])


def test_each_request_has_its_client_its_server_and_what_is_within(world, tmp_path):
    world.run(30, 5)
    analysis = analysed(world, tmp_path)
    downloads = analysis.kinds()["download"]
    assert len(downloads) == 30
    assert {each.global_id for each in downloads} == set(world.truth)
    for each in downloads:
        assert each.outcome == "ok"
        assert each.status == 200
        assert each.bytes == 16 << 20
        assert each.unexpected == []
        assert {span.name for span in each.spans} == {
            "client.request", "glance.request", "glance.image_data.download", "store.swift.get", "glance.body",
            "subprocess.command",
        }  # fmt: skip
        # On the client's clock, which has no drift and is the reference or is set by it.
        start, finish = world.truth[each.global_id]
        assert each.duration == pytest.approx(finish - start, rel=1e-4)
    assert len(analysis.kinds()["other"]) == 30


def test_the_states_of_a_download_follow_each_other_without_a_gap(world, tmp_path):
    world.run(30, 5)
    for request in analysed(world, tmp_path).kinds()["download"]:
        names = [stay.state for stay in request.stays]
        assert names == [
            "to the server", "middleware", "controller", "store: opening", "serializing", "body", "finishing",
            "answered",
        ]  # fmt: skip
        assert request.state == "done"
        assert request.stays[0].start == request.start
        for before, after in zip(request.stays, request.stays[1:], strict=False):
            assert before.finish == after.start
        assert sum(stay.duration for stay in request.stays) == pytest.approx(request.duration, abs=1000)


def test_states_and_outcome_of_a_request_that_failed(world, tmp_path):
    name = world.download(BEGIN, error="ConnectionRefusedError ECONNREFUSED", status=503)
    [request] = analysed(world, tmp_path).request(name)
    assert request.outcome == "failed"
    assert request.status == 503
    assert "store failed" in [stay.state for stay in request.stays]
    assert request.state == "store: opening"


def test_an_aborted_request_is_not_a_failed_one(world, tmp_path):
    name = world.download(BEGIN, error="OSError", outcome="aborted")
    [request] = analysed(world, tmp_path).request(name)
    assert request.outcome == "aborted"


def test_a_store_that_is_asked_again(tmp_path):
    def record(process):
        outer = process.begin(BEGIN, "glance.request", method="GET", path=PATH)
        for index, outcome in enumerate(["error", "error", "ok"]):
            time = BEGIN + index * 10 * MS
            span = process.begin(time + MS, "store.swift.get", outer)
            process.end(time + 2 * MS, span, outcome=outcome, error="x")
        process.end(BEGIN + 50 * MS, outer, status=200)

    [request] = single(tmp_path, record).requests
    assert request.outcome == "ok" and request.unexpected == []
    assert [stay.state for stay in request.stays].count("store: opening") == 3


def test_an_event_that_the_table_does_not_allow_is_reported(tmp_path):
    def record(process):
        outer = process.begin(BEGIN, "glance.request", method="GET", path=PATH)
        process.end(BEGIN + MS, process.begin(BEGIN, "glance.body", outer))
        process.end(BEGIN + 3 * MS, process.begin(BEGIN + 2 * MS, "glance.body", outer))
        process.end(BEGIN + 5 * MS, outer, status=200)

    [request] = single(tmp_path, record).requests
    assert request.unexpected == [
        "begin glance.body in state 'finishing'", "end glance.body in state 'finishing'"
    ]  # fmt: skip


@pytest.mark.parametrize("method, path, kind", [
    ("GET", "/v2/images/1/file", "download"),
    ("GET", "/image/v2/images/1/file", "download"),
    ("PUT", "/v2/images/1/file", "upload"),
    ("PUT", "/v2/images/1/stage", "upload"),
    ("POST", "/v2/images/1/import", "import"),
    ("POST", "/v2/images", "create"),
    ("GET", "/v2/images", "list"),
    ("GET", "/v2/images/1", "show"),
    ("DELETE", "/v2/images/1", "delete"),
    ("GET", "/v2/images/1/file/more", "other"),
    ("", "", "other"),
])  # fmt: skip
def test_a_request_has_the_kind_of_its_method_and_route(tmp_path, method, path, kind):
    def record(process):
        process.end(BEGIN + 1, process.begin(BEGIN, "glance.request", method=method, path=path))

    assert list(single(tmp_path, record).kinds()) == [kind]


def test_the_states_of_an_upload(tmp_path):
    def record(process):
        outer = process.begin(BEGIN, "glance.request", method="PUT", path=PATH)
        controller = process.begin(BEGIN + 1 * MS, "glance.image_data.upload", outer)
        store = process.begin(BEGIN + 3 * MS, "store.filesystem.add", controller)
        process.end(BEGIN + 30 * MS, store, bytes=5, input_ns=20 * MS)
        process.end(BEGIN + 34 * MS, controller)
        process.end(BEGIN + 35 * MS, outer, status=204)

    [request] = single(tmp_path, record).requests
    assert [(stay.state, round(stay.duration / MS)) for stay in request.stays] == [
        ("middleware", 1), ("controller", 2), ("store: adding", 27), ("saving", 4), ("serializing", 1)
    ]  # fmt: skip


def test_percentiles_lie_between_figures():
    assert percentile([3, 1, 2], 50) == 2
    assert percentile([1, 2], 50) == 1.5
    assert percentile([7], 99) == 7
    assert percentile(range(101), 90) == 90


def test_state_times_count_a_state_once_for_each_request(tmp_path):
    def record(process):
        outer = process.begin(BEGIN, "glance.request", method="GET", path=PATH)
        for time in (1, 3):
            span = process.begin(BEGIN + time * MS, "store.swift.get", outer)
            process.end(BEGIN + (time + 1) * MS, span, outcome="error")
        process.end(BEGIN + 9 * MS, outer)

    times = state_times(single(tmp_path, record).requests)
    assert times["store: opening"] == [2 * MS]
    assert list(times) == ["middleware", "store: opening", "store failed"]


def test_impossible_events_of_one_clock_are_reported(tmp_path):
    def record(process):
        outer = process.begin(BEGIN + 2 * MS, "glance.request")
        process.end(BEGIN + 5 * MS, process.begin(BEGIN + MS, "glance.body", outer))
        process.end(BEGIN + MS, outer)

    analysis = single(tmp_path, record)
    assert sorted(str(each) for each in analysis.impossible) == [
        "glance.body (span 0000000100000002 of glance-api 1 on api) begins before glance.request around it: "
        "by 1.000 ms",
        "glance.request (span 0000000100000001 of glance-api 1 on api) ends before it begins: by 1.000 ms",
    ]
    assert len(analysis.problems) == 2
