"""Findings from the records of a run: checked on operations whose outcome is known."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numpy", reason="the analysis needs the extra 'bench'")
pytest.importorskip("scipy", reason="the comparison needs the extra 'bench'")

from benchmarks.harness import compare, results, tables
from benchmarks.load import Wrong, analysis, records, report
from benchmarks.load import __main__ as command
from benchmarks.load.plan import Names, Operation, Plan
from benchmarks.load.records import Record, Writer

EPOCH = 1_700_000_000.0


def operation(user: int, start: float, end: float, *, size: int = 1000, error: str = "", kind: str = "read") -> Record:
    third = (end - start) / 3
    status = 500 if error else 200
    return Record(kind, 0, user, EPOCH + start, third, 2 * third, end - start, 0 if error else size, status, error)


def run_of(directory: Path, *workers: list[Record], **fields) -> Path:
    """A run of these operations, one list for each worker."""
    directory.mkdir(parents=True)
    defaults = {"protocol": "logs", "server": {"url": "http://127.0.0.1:1"}, "total": 1}
    read = Operation("read", objects=Names("r(1,9)"), sizes="c(1000)B")
    plan = Plan(operations=(read,), **{**defaults, **fields.pop("plan", {})})
    about = []
    for number, operations in enumerate(workers):
        writer = Writer()
        for each in operations:
            writer.add(each)
        (directory / f"worker-{number}.csv.gz").write_bytes(writer.piece())
        samples = [(EPOCH + second, 0.1) for second in range(1, 40)]
        about.append({"worker": number, "lost": False, "clock_offset": 0.0, "clock_error": 0.0, "cpu": samples,
                      **fields.get("about", {})})  # fmt: skip
    summary = {"format": records.RUN_FORMAT, "version": records.RUN_VERSION, "plan": plan.to_dict(), "started": EPOCH,
               "finished": EPOCH, "workers": about}  # fmt: skip
    (directory / records.SUMMARY).write_text(json.dumps(summary))
    return directory


def steady(user: int, count: int, seconds: float = 0.1, begin: float = 0.0, **more) -> list[Record]:
    return [operation(user, begin + n * seconds, begin + (n + 1) * seconds, **more) for n in range(count)]


def test_warm_up_and_tail_are_cut_as_warp_does(tmp_path) -> None:
    # The slower user has its first end at 0.5, the other starts its last at 2.9.
    found = analysis.read(run_of(tmp_path / "run", steady(0, 30), steady(0, 8, 0.5)))
    assert analysis.window(found.operations) == pytest.approx((0.5, 2.9, True))
    # Users of two workers are two users, though both have the number 0.
    assert len(set(found.operations.user)) == 2


@pytest.mark.parametrize(
    ("workers", "seconds", "operations"),
    [
        ([[operation(0, 0, 0.1)]], 0.1, 1),
        # Nothing began between the end of the last first one, at 1.0, and the start of the first last one, at 1.001.
        ([[operation(0, 0, 1), operation(0, 1.002, 2)], [operation(1, 0, 0.9), operation(1, 1.001, 2)]], 2.0, 4),
    ],
)
def test_a_run_that_is_too_short_counts_whole(tmp_path, workers, seconds, operations) -> None:
    found = analysis.read(run_of(tmp_path / "run", *workers))
    assert analysis.window(found.operations) == pytest.approx((0.0, seconds, False), abs=1e-6)
    assert any("too short" in note for note in report.notes(found))
    assert report.figures(found)["operations"] == operations


def test_of_fixed_work_all_counts(tmp_path) -> None:
    """All bytes, and all of the time: the part of a second at the end as well."""
    found = analysis.read(run_of(tmp_path / "run", [operation(0, 0, 2.6, size=8000), operation(1, 1, 2.3, size=8000)]))
    part = analysis.everything(found.operations)
    figures = report.figures(found, part)
    assert figures["seconds"] == pytest.approx(2.6) and figures["bytes"] == 16_000 and figures["operations"] == 2
    assert figures["operations_per_second"] == pytest.approx(2 / 2.6)
    assert not any("too short" in note for note in report.notes(found, part))


def test_an_operation_partly_in_a_part_counts_in_proportion(tmp_path) -> None:
    found = analysis.read(run_of(tmp_path / "run", [operation(0, 0, 4, size=8000), operation(1, 2, 3)])).operations
    assert analysis.within(found, analysis.Window(1, 2.5, True)) == pytest.approx((3000 + 500, 0.375 + 0.5))
    assert analysis.within(found, analysis.Window(5, 6, True)) == (0, 0)


TIMES = st.lists(
    st.tuples(st.floats(0, 20), st.floats(0.001, 9), st.integers(0, 10**9), st.booleans()), min_size=1, max_size=30
)


@given(TIMES, st.floats(1, 30))
def test_the_parts_of_a_run_add_up_to_the_whole(tmp_path_factory, times, cut) -> None:
    operations = [
        operation(0, start, start + taken, size=size, error="x" * failed) for start, taken, size, failed in times
    ]
    found = analysis.read(run_of(tmp_path_factory.mktemp("parts") / "run", operations))
    parts = [
        analysis.within(found.operations, analysis.Window(begin, end, True)) for begin, end in ((0, cut), (cut, 31.0))
    ]
    well = [size for _, _, size, failed in times if not failed]
    assert sum(moved for moved, _ in parts) == pytest.approx(sum(well), rel=1e-6, abs=1)
    assert sum(done for _, done in parts) == pytest.approx(len(well), abs=1e-3)


def test_phases_and_percentiles(tmp_path) -> None:
    operations = [operation(0, n, n + 0.3 * (n + 1) / 100) for n in range(100)]
    found = analysis.read(run_of(tmp_path / "run", operations))
    for phase, share in {"sent": 1, "response": 1, "first_byte": 2, "transfer": 1, "whole": 3}.items():
        middle = analysis.percentiles(found.operations, phase)
        # The n-th takes n milliseconds in each of its three phases.
        assert middle["p50"] == pytest.approx(50.5 * share, rel=1e-3)
        assert middle["p99"] == pytest.approx(99.01 * share, rel=1e-3)


def test_a_failure_has_no_times(tmp_path) -> None:
    operations = [operation(0, n, n + (0.9 if n % 4 == 0 else 0.1), error="x" * (n % 4 == 0)) for n in range(20)]
    found = analysis.read(run_of(tmp_path / "run", operations))
    every = dict.fromkeys(("p50", "p90", "p99", "p99.9"), 100)
    assert analysis.percentiles(found.operations, "whole") == pytest.approx(every)
    # Nor is there a time at which they were due, in a closed loop.
    assert analysis.percentiles(found.operations, "from_due") == {}
    failed = found.operations[found.operations.failed]
    assert analysis.percentiles(failed, "whole") == {}


def test_failures_are_reported(tmp_path) -> None:
    operations = [operation(0, n, n + 1, error="status 503: busy" if n % 4 == 0 else "") for n in range(20)]
    found = analysis.read(run_of(tmp_path / "run", operations))
    figures = report.figures(found)
    # Failures are not wrong answers.
    assert (figures["failed"], figures["success_ratio"], figures["verified"]) == (5, 0.75, True)
    assert "5 x status 503: busy" in report.notes(found)
    cells = shown(found)
    assert (cells[""], cells["failed"], cells["success_ratio"]) == ("read", "5", "0.75")
    # An operation that failed has no bytes and is none of those that were done.
    assert figures["operations_per_second"] == pytest.approx(14 / 18, abs=0.05)


def shown(found: analysis.Run) -> dict[str, str]:
    """The row of its only kind of operations, by the columns' names."""
    (overview,) = tables.tables(report.result([report.read(found.directory)]))
    return dict(zip(overview.head, overview.rows[0], strict=True))


def test_a_run_of_which_all_has_failed_is_shown(tmp_path) -> None:
    directory = run_of(tmp_path / "run", steady(0, 5, error="status 503: busy"))
    (overview,) = tables.tables(report.result([report.read(directory)]))
    assert overview.rows[0][:2] == ["read", "failed"]
    assert "read: failed: no operation went well: 5 x status 503: busy" in overview.notes


def stalled(directory: Path, **plan) -> Path:
    """An open loop of 100 operations a second, of 10 ms each, but nothing begins from 1 s to 2 s."""
    starts = [n / 100 if n < 100 else max(n / 100, 2 + (n - 100) / 200) for n in range(400)]
    due = [operation(0, start, start + 0.01)._replace(late=start - n / 100) for n, start in enumerate(starts)]
    return run_of(directory, due, plan={"rate": 100, **plan})


def test_a_stall_shows_in_the_times_from_when_operations_were_due(tmp_path) -> None:
    found = analysis.read(stalled(tmp_path / "run"))
    assert analysis.percentiles(found.operations, "whole")["p99.9"] == pytest.approx(10)
    assert analysis.percentiles(found.operations, "from_due") == pytest.approx(
        {"p50": 12.5, "p90": 807, "p99": 990, "p99.9": 1008}, rel=0.01
    )
    # All that were due count, whoever began when.
    assert analysis.window(found.operations) == pytest.approx((0.0, 3.99, True))
    assert report.figures(found)["operations"] == 400
    assert any("of the operations began more than 50 ms after they were due" in each for each in report.notes(found))
    cells = shown(found)
    assert (cells["whole_p99_ms"], cells["from_due_p99_ms"]) == ("10", "990")


def test_errors_that_are_all_different_take_little_room(tmp_path) -> None:
    operations = [operation(0, n, n + 1, error=f"status 503: request {n}") for n in range(500)]
    found = analysis.read(run_of(tmp_path / "run", operations))
    assert len(found.errors) == analysis.DIFFERENT_ERRORS + 1
    assert found.errors["status 503: and others"] == 400
    assert sum(found.errors.values()) == 500


def test_omissions_are_reported(tmp_path) -> None:
    for total, told in ((20, False), (21, True)):
        found = analysis.read(run_of(tmp_path / str(total), steady(0, 20), plan={"total": total}))
        assert ("only 20 of 21 operations were carried out" in found.doubts) == told
        assert report.figures(found)["verified"] is not told


def test_clocks_of_workers(tmp_path) -> None:
    directory = run_of(tmp_path / "run", steady(0, 20), steady(0, 20, begin=100.0))
    path = directory / records.SUMMARY
    summary = json.loads(path.read_text())
    summary["workers"][1] |= {"clock_offset": 100.0, "clock_error": 0.2}
    path.write_text(json.dumps(summary))
    found = analysis.read(directory)
    assert found.operations.end.max() == pytest.approx(2.0)
    assert analysis.window(found.operations).cut
    assert "the workers' clocks agree to 200 ms only" in report.notes(found)


@pytest.mark.parametrize(("busy", "limited"), [(0, False), (1, False), (5, True), (20, True)])
def test_a_run_whose_generator_was_busy_for_more_than_a_few_seconds_is_marked(tmp_path, busy, limited) -> None:
    samples = [(EPOCH + second, 0.97 if second <= busy else 0.2) for second in range(1, 21)]
    found = analysis.read(run_of(tmp_path / "run", steady(0, 200), about={"cpu": samples}))
    assert report.figures(found)["generator_cpu"] == pytest.approx(0.97 if limited else 0.2)
    (table,) = tables.tables(report.result([report.read(found.directory)]))
    assert any("LIMITED BY THE LOAD GENERATOR" in note for note in table.notes) == limited


def test_a_lost_worker_is_reported(tmp_path) -> None:
    found = analysis.read(run_of(tmp_path / "run", steady(0, 100), about={"lost": True}))
    assert report.figures(found)["verified"] is False
    assert any("worker 0 was lost" in note for note in report.notes(found))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no run of a load"), ("{}", "no format"), ('{"format": "fastio-load-run", "version": 9}', "version 9"),
        ("", "not a single operation"),
    ],
)  # fmt: skip
def test_files_that_are_no_run(tmp_path, content, message) -> None:
    directory = run_of(tmp_path / "run", [])
    if content:
        (directory / records.SUMMARY).write_text(content)
    with pytest.raises(Wrong, match=message):
        analysis.read(directory)


def test_results_of_runs_compare(tmp_path, capsys) -> None:
    """As results of any suite do: the rank test over the runs first, then differing parameters."""
    for name, seconds, users in (("before", 0.1, 1), ("after", 0.05, 2)):
        # Where the server is does not count, what it is said to be does.
        plan = {"users": users, "server": {"url": f"http://{name}"}, "labels": {"server": f"{name} the change"}}
        made = [run_of(tmp_path / name / str(n), steady(0, 90 + n, seconds), plan=plan) for n in range(5)]
        assert command.main(["analyze", *map(str, made), "--result", str(tmp_path / f"{name}.json")]) == 0
    assert command.main(["analyze", *map(str, made), str(tmp_path / "before" / "0"), "--result", "none"]) == 2
    assert "a result is made of runs of the same plan" in capsys.readouterr().err
    assert compare.main([str(tmp_path / "before.json"), str(tmp_path / "after.json")]) == 0
    text = capsys.readouterr().out
    assert "parameter users: 1 -> 2" in text and "http://" not in text
    assert "parameter server: before the change -> after the change" in text
    assert "parameter operations" not in text
    assert text.index("times better") < text.index("parameter users")
    rows = [line.split() for line in text.splitlines() if line.split()[:2] == ["data", "read"]]
    assert rows and rows[-1][-1] == "faster"
    (case,) = results.read(tmp_path / "after.json").cases
    assert case.parameters["operations"] == "kind read, weight 1, containers c(1), objects r(1,9), sizes c(1000)B"
    assert case.figures("read") == pytest.approx([20 * 1000 / (1 << 20)] * 5, rel=1e-3)
