"""What people see of the stores' results: the overview of all cases, and what chunk sizes are worth."""

import pytest

pytest.importorskip("numpy", reason="tables need the extra 'bench'")
pytest.importorskip("rich", reason="tables need the extra 'bench'")

from benchmarks.harness import compare, results, tables
from tests.benchmarks import samples


def modes(native: float, green: float, **fields) -> results.CaseResult:
    """A case of these factors of fastio natively and under eventlet; stock takes 1 s and 2 s for 200 MiB."""
    rows = {
        "native-stock": samples.variant([1.0] * 3, against="native-stock"),
        "native-fastio": samples.variant([1 / native] * 3, against="native-stock"),
        "eventlet-stock": samples.variant([2.0] * 3, against="eventlet-stock"),
        "eventlet-fastio": samples.variant([2 / green] * 3, against="eventlet-stock"),
        "reference": samples.variant([0.25] * 3),
    }
    for title, row in rows.items():
        for run in row.runs:
            run["server_cpu_seconds"] = 0.2
            if title != "reference":
                run["chunks"] = 50 if "fastio" in title else 3200
            if title.startswith("eventlet"):
                run["p99_ms"] = 4.5 if "fastio" in title else 80
    defaults = {"unit": "MiB/s", "panel": "get 200 MiB", "label": "swift", "columns": ["chunks"]}
    return samples.case(rows, **{**defaults, **fields})


def test_rows_are_compared_with_their_own():
    table = tables.table(modes(2, 3))
    assert table.head[:4] == ["", "MiB/s", "±", "x native-stock / eventlet-stock"]
    assert [row[3] for row in table.rows] == ["1", "2 (2–2)", "1", "3 (3–3)", "4 (4–4)"]
    assert table.head[4:6] == ["CPU s/GiB", "server CPU s/GiB"]
    assert {row[5] for row in table.rows} == {"1.02"}


def test_overview():
    add = modes(1.5, 1.25, name="add", panel="add 200 MiB")
    add.variants["no-hashing"] = samples.variant([0.5] * 3)
    result = samples.result(add, modes(2, 3, name="get"), samples.case({"other": [1.0]}, name="third"))
    table = tables.overview(result)
    assert table.head == [
        "", "", "stock MiB/s", "fastio", "x stock", "reference", "fastio / reference",
        "CPU s/GiB", "server CPU s/GiB", "chunks", "p99 ms",
    ]  # fmt: skip
    assert table.rows[2] == [
        "swift: get 200 MiB", "native", "200", "400", "2 (2–2)", "800", "0.5",
        "2.56 → 1.28", "1.02 → 1.02", "3200 → 50", "–",
    ]  # fmt: skip
    assert table.rows[3][1:5] == ["eventlet", "100", "300", "3 (3–3)"]
    assert table.rows[3][-1] == "80 → 4.5"
    assert [row[0] for row in table.rows] == ["swift: add 200 MiB"] * 2 + ["swift: get 200 MiB"] * 2
    assert table.notes == ["swift: add 200 MiB: no-hashing 400 MiB/s"]
    assert tables.tables(result)[-1] == table
    assert not tables.overview_cases(samples.result(samples.case({"other": [1.0]})))


def test_what_the_overview_lacks():
    skipped = {title: samples.variant([], skipped="swift: not installed") for title in modes(1, 1).variants}
    failed = modes(1, 1, name="failed")
    failed.variants["native-fastio"] = samples.variant([], failure={"reason": "x", "status": 1, "stderr": ""})
    failed.variants["eventlet-fastio"] = samples.variant([1.0], verified=False, against="eventlet-stock")
    failed.variants["reference"] = samples.variant([], skipped="curl is not installed")
    absent = samples.case(skipped, name="absent", label="rbd", panel="get 200 MiB", unit="MiB/s")
    table = tables.overview(samples.result(failed, absent))
    assert [row[2:6] for row in table.rows] == [
        ["200", "failed", "–", "–"],
        ["100", "WRONG DATA", "2", "–"],
        ["–", "–", "–", "–"],
        ["–", "–", "–", "–"],
    ]
    assert "swift: get 200 MiB: reference skipped: curl is not installed" in table.notes
    assert "rbd: get 200 MiB: skipped: swift: not installed" in table.notes


def test_the_backend_is_told():
    backend = {"name": "swift", "directory": "/dev/shm", "client_chunk_size": 1 << 20}
    notes = tables.table(modes(1, 1, backend=backend)).notes
    assert "backend: swift, its files in /dev/shm, client_chunk_size 1 MiB" in notes
    differences = compare.compare(samples.result(modes(1, 1)), samples.result(modes(1, 1, backend=backend))).differences
    assert "case cat: backend directory: (none) -> /dev/shm" in differences


def test_overview_plot(tmp_path):
    pytest.importorskip("matplotlib", reason="plots need the extra 'plot'")
    from benchmarks.harness import plots

    add = modes(1.5, 1.25, name="add", panel="add 200 MiB", label="a store, one that has a long name")
    skipped = {"native-stock": samples.variant([], skipped="no")}
    empty = samples.case(skipped, name="no", panel="add 200 MiB", label="no")
    made = plots.draw(samples.result(modes(2, 3), add, empty, suite="stores"), tmp_path, "stores", "")
    assert made == [tmp_path / "stores.png", tmp_path / "stores.svg"]
    drawn = made[1].read_text()
    for expected in (
        "swift: get 200 MiB",
        "a store, one that has a long name: add 200 MiB",
        "1.25",
        "eventlet",
        "better",
    ):
        assert expected in drawn
