"""Disk against Swift, at a small size, as the engine runs it; its tables; the statistics that it needs."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harness import engine, results, statistics
from benchmarks.load.content import Content
from benchmarks.load.schedule import Schedule
from benchmarks.suites.disk_swift import records
from benchmarks.suites.disk_swift import tables as disk_swift_tables
from benchmarks.suites.disk_swift import workload as disk_swift
from benchmarks.suites.disk_swift.bench_disk_swift import LOG
from tests.benchmarks import samples
from tests.benchmarks.test_load_analysis import operation, run_of
from tests.conftest import with_services

pytestmark = [with_services, pytest.mark.usefixtures("cache")]


def test_a_stock_swift_under_a_fast_name_is_an_error() -> None:
    def told(**of_proxy) -> dict:
        return {"beside": {"wide": {"access": {"patched": {"object": disk_swift.SERVER_PATCHES, **of_proxy}}}}}

    parameters = {"swift": "wide", "fastio": "on"}
    found = told(proxy=[*disk_swift.SERVER_PATCHES, "others"])
    assert disk_swift._swift(parameters, found) is found["beside"]["wide"]
    assert disk_swift._swift({}, found) is found
    with pytest.raises(RuntimeError, match="green_sendall is not in effect in Swift's proxy server"):
        disk_swift._swift(parameters, told(proxy=["others"]))
    with pytest.raises(RuntimeError, match="wide: no room"):
        disk_swift._swift(parameters, {"beside": {"wide": {"failed": "no room"}}})


def test_cpu_time_of_a_request() -> None:
    processes = [{"pids": [1, 2], "cpu": 0.5}, {"pids": [3], "cpu": 0.25}]
    found = {"seconds": 2.0, "operations": 100}
    pids = {"server": [1], "both": [2, 3], "none": [4]}
    assert disk_swift.spent({**found, "usage": {"processes": processes}}, pids) == {"server": 10, "both": 15, "none": 0}
    assert disk_swift.spent(found, pids) == {}


def test_a_stock_server_under_a_fast_name_is_an_error() -> None:
    applied = [{"name": name, "target": f"{module}:X", "outcome": "applied"} for name, module in disk_swift.PATCHES]
    disk_swift.check_patched({"patches": applied})
    for number in range(len(applied)):
        for outcome in ("waiting", "absent"):
            wrong = [dict(each) for each in applied]
            wrong[number]["outcome"] = outcome
            with pytest.raises(RuntimeError, match=f"{applied[number]['name']} is not applied"):
                disk_swift.check_patched({"patches": wrong})
    with pytest.raises(RuntimeError, match="is not applied"):
        disk_swift.check_patched({"patches": []})


def test_the_logs_on_the_disk_are_those_of_the_plan(tmp_path) -> None:
    parameters = {"source": "disk", "fastio": "off", "chunk": 1, "users": 1, "objects": 2, "size": 100_000, "total": 1}
    plan = disk_swift.reading(parameters, "http://127.0.0.1:1")
    step = Schedule(plan).step(1)
    written = Schedule(disk_swift.writing(parameters, dict.fromkeys(("auth_v1", "user", "key"), "x"))).step(1)
    assert written == step._replace(kind="write", name=f"{step.container}/{step.name}")
    path = tmp_path / step.name
    for _ in range(2):
        disk_swift._write(path, Content(plan), step)
        assert path.read_bytes() == b"".join(Content(plan).pieces(step.number, 100_000))
    path.write_bytes(b"half")
    disk_swift._write(path, Content(plan), step)
    assert path.stat().st_size == 100_000


def made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transfers: dict[str, float], count: int = 50
) -> results.Result:
    """A result whose requests took so many seconds in each phase."""
    monkeypatch.setattr(engine, "ROOT", tmp_path)
    # The width of the intervals is not tested.
    monkeypatch.setattr(statistics, "RESAMPLES", 100)
    rows = {}
    for title, seconds in transfers.items():
        rows[title] = samples.variant([1.0] * 7)
        for number, run in enumerate(rows[title].runs):
            operations = [operation(0, n, n + 3 * seconds * (1 + n % 5 / 100), size=LOG) for n in range(count)]
            run_of(tmp_path / title / str(number), operations)
            jitter = 1 + number / 1000
            run |= {"records": f"{title}/{number}", "operations": count, **{
                f"{figure}_ms": seconds * 1000 * jitter * (3 if figure == "whole_p50" else 1)
                for figure in ("response_p50", "response_p99", "transfer_p50", "whole_p50")}}  # fmt: skip
    case = samples.case(rows, name="one-same", unit="ms", value="transfer_p50_ms", parameters={"size": LOG})
    case.summary = records.summary(case)
    return samples.result(case)


ROWS = {"disk-stock": 0.002, "disk-fastio": 0.002, "swift-stock": 0.010, "swift-fastio": 0.009,
        "swift-1MiB-stock": 0.006, "swift-1MiB-fastio": 0.005, "swift-wide-stock": 0.006,
        "swift-wide-fastio": 0.004, "swift-direct": 0.008}  # fmt: skip


def test_tables_compare_sources_and_judge_goals(tmp_path, monkeypatch) -> None:
    result = made(tmp_path, monkeypatch, ROWS)
    (table,) = disk_swift_tables.published(result)
    rows = {(row[0], row[1]): row[2:] for row in table.rows}
    assert rows["transfer, ms", "median"][2].startswith("10.2 (")
    assert float(rows["transfer, ms", "mean"][2]) == pytest.approx(10.2, abs=0.1)
    goals = {row[0]: row[1:] for row in disk_swift_tables.goals(result).rows}
    assert goals["one-same: transfer from Swift, ms, swift-fastio"][-2:] == ["1.11 x stock's speed", "no"]
    assert goals["one-same: transfer from Swift, ms, swift-1MiB-fastio"][-2:] == ["2 x stock's speed", "yes"]
    assert goals["one-same: response p99, ms, swift"][-1] == "yes"
    assert goals["one-same: whole request from Swift, ms, swift-fastio"][-2:] == ["1.11 x stock's speed", "yes"]
    (response, transfer, whole) = disk_swift_tables.losses(result).rows
    # Of the 8 ms that each phase takes longer than from the disk.
    assert transfer[1:] == ["transfer", "2.01", "10", "8.03", "8.03", "12%", "62%", "75%"]
    assert response[1] == "response" and whole[1] == "whole request" and whole[-1] == "75%"


def test_a_p99_that_has_grown_is_reported(tmp_path, monkeypatch) -> None:
    result = made(tmp_path, monkeypatch, {**ROWS, "swift-fastio": 0.011})
    goals = {row[0]: row[1:] for row in disk_swift_tables.goals(result).rows}
    assert goals["one-same: response p99, ms, swift"][-1] == "no"
    assert goals["one-same: response p99, ms, disk"][-1] == "yes"


# --- the statistics

FIGURES = st.lists(st.floats(0, 1e6), min_size=1, max_size=50)


@given(FIGURES)
def test_outliers_are_far_off(figures) -> None:
    found = statistics.moments(figures)
    kept = statistics.without_outliers(figures)
    assert len(kept) >= 1
    assert all(abs(each - found.mean) <= 2 * found.deviation * (1 + 1e-9) + 1e-9 for each in kept)
    far = [each for each in figures if abs(each - found.mean) > 2 * found.deviation * (1 + 1e-9) + 1e-6]
    assert len(kept) <= len(figures) - len(far)


@given(FIGURES)
def test_the_interval_has_the_median(figures) -> None:
    low, high = statistics.median_interval(figures)
    assert min(figures) <= low <= statistics.median(figures) <= high <= max(figures)
