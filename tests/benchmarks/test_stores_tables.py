"""What people see of the stores' results: tables and plots of rows in all modes."""

import pytest

from benchmarks.harness import results, tables
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
    defaults = {"unit": "MiB/s", "title": "swift: get of 200 MiB", "columns": ["chunks"]}
    return samples.case(rows, **{**defaults, **fields})


def test_rows_are_compared_with_their_own():
    table = tables.table(modes(2, 3))
    assert table.head[:4] == ["", "MiB/s", "±", "x native-stock / eventlet-stock"]
    assert [row[3] for row in table.rows] == ["1", "2 (2–2)", "1", "3 (3–3)", "4 (4–4)"]
    assert table.head[4:6] == ["CPU s/GiB", "server CPU s/GiB"]
    assert {row[5] for row in table.rows} == {"1.02"}


def test_the_backend_is_told():
    backend = {"name": "swift", "directory": "/dev/shm", "client_chunk_size": 1 << 20}
    notes = tables.table(modes(1, 1, backend=backend)).notes
    assert "backend: swift, its files in /dev/shm, client_chunk_size 1 MiB" in notes


def test_overview_plot(tmp_path):
    pytest.importorskip("matplotlib", reason="plots need the extra 'plot'")
    from benchmarks.harness import plots

    add = modes(1.5, 1.25, name="add", title="a store, one that has a long name: add 200 MiB")
    skipped = {"native-stock": samples.variant([], skipped="no")}
    empty = samples.case(skipped, name="no")
    made = plots.draw(samples.result(modes(2, 3), add, empty, suite="stores"), tmp_path, "stores", "")
    assert made == [tmp_path / "stores.png", tmp_path / "stores.svg"]
    drawn = made[1].read_text()
    for expected in (
        "swift: get of 200 MiB",
        "a store, one that has a long name: add 200 MiB",
        "1.25",
        "eventlet",
        "better",
    ):
        assert expected in drawn
