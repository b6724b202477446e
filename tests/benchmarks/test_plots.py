"""The presentation of a result: tables and plots."""

import io
from typing import Any

import pytest

from benchmarks.harness import tables
from fastio import terminal
from tests.benchmarks import samples
from tests.benchmarks.samples import FAILURE, SPREAD


def sample():
    settings = {"chunk_size": {"value": 65536, "source": "environment"}}
    rows: dict[str, Any] = {
        "stock": SPREAD,
        "fast|io": samples.variant([each / 3 for each in SPREAD], details={"fastio": {"settings": settings}}),
        "slow": samples.variant([5.0, 5.1, 4.9], parameters={"size": 16 << 20}),
        "broken": samples.variant([], failure=FAILURE),
        "absent": samples.variant([], skipped="no such Python"),
        "gone": samples.variant([], skipped="no such Python"),
    }
    latencies = {"stock": samples.variant([2.0] * 7), "fast": samples.variant([1.0] * 7, verified=False)}
    for variant in latencies.values():
        for run in variant.runs:
            run["p90"] = run["seconds"] * 3
    return samples.result(
        samples.case(rows, title="200 MiB of random data", load_before=5.0),
        samples.case(latencies, name="latency", unit="s", columns=["p90"], complete=False),
        suite="sheepdog",
    )


def test_a_table_has_figures_and_ratios_of_each_row():
    first, second = (tables.table(case, samples.MACHINE) for case in sample().cases)
    assert first.title == "200 MiB of random data"
    assert first.head == ["", "MB/s", "±", "x stock", "CPU s/GiB", "reads/MiB", "rounds"]
    rows = {row[0]: row[1:] for row in first.rows}
    assert rows["stock"] == ["419", "2.0%", "1", "1.28", "32", "7"]
    assert rows["fast|io"][0] == "1258"
    assert rows["fast|io"][2].startswith("3 (2.")
    assert rows["broken"] == ["failed", "–", "–", "–", "–", "0"]
    assert rows["absent"] == ["skipped", "–", "–", "–", "–", "0"]
    assert second.head[-2:] == ["p90", "rounds"]
    # Less is better here, and half the time is twice as good.
    assert [row[3] for row in second.rows] == ["1", "2 (2–2)"]
    assert [row[-2] for row in second.rows] == ["6", "3"]


def test_rows_are_compared_with_their_own_and_the_backend_is_named():
    rows = {
        "native-stock": samples.variant([1.0] * 3, against="native-stock"),
        "native-fastio": samples.variant([0.5] * 3, against="native-stock"),
        "eventlet-stock": samples.variant([2.0] * 3, against="eventlet-stock"),
        "eventlet-fastio": samples.variant([2 / 3] * 3, against="eventlet-stock"),
        "reference": samples.variant([0.25] * 3),
    }
    for row in rows.values():
        for run in row.runs:
            run["server_cpu_seconds"] = 0.2
    backend = {"name": "swift", "directory": "/dev/shm", "client_chunk_size": 1 << 20}
    table = tables.table(samples.case(rows, backend=backend))
    assert table.head[3:6] == ["x native-stock / eventlet-stock", "CPU s/GiB", "server CPU s/GiB"]
    assert [row[3] for row in table.rows] == ["1", "2 (2–2)", "1", "3 (3–3)", "4 (4–4)"]
    assert {row[5] for row in table.rows} == {"1.02"}
    assert "backend: swift, its files in /dev/shm, client_chunk_size 1 MiB" in table.notes


def test_doubts_are_reported():
    first, second = (tables.table(case, samples.MACHINE) for case in sample().cases)
    assert first.notes == [
        "parameters: size 200 MiB",
        "load average 5 before the first run: the machine was busy with something else",
        "slow: with 16 MiB, where the others have 200 MiB",
        "slow: only 3 rounds, by design",
        "broken: failed: exit status 1: ValueError: <bad>",
        "absent, gone: skipped: no such Python",
    ]
    assert second.notes == [
        "parameters: size 200 MiB",
        "interrupted: not all runs were made",
        "fast: WRONG DATA: the payload did not have the expected SHA-256",
    ]


def test_a_ratio_of_single_runs_has_no_interval():
    case = samples.case({"stock": [0.5], "fast": [0.25]})
    assert [row[3] for row in tables.table(case).rows] == ["1", "2"]


def test_numbers():
    shown = [tables.number(figure) for figure in (1234.5, 99.95, 3.14159, 0.00123, 0.0, None)]
    assert shown == ["1234", "100", "3.14", "0.00123", "0", "–"]


def test_the_terminal_shows_tables_and_summary():
    stream = io.StringIO()
    result = sample()
    terminal.show(tables.tables(result), tables.summary(result), stream)
    text = stream.getvalue()
    for expected in (
        "200 MiB of random data",
        "1258",
        "* broken: failed",
        "chunk_size 65536",
        "EPYC with fsrm, 2 threads",
    ):
        assert expected in text
    assert "\x1b" not in text
    # No row is broken into two lines.
    assert sum(line.strip().startswith("stock") for line in text.splitlines()) == 2


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "sample.json"
    sample().write(path)
    return path


def test_command(path, capsys):
    assert tables.main([str(path)]) == 0
    assert "1258" in capsys.readouterr().out
    assert tables.main([str(path.with_name("missing.json"))]) == 2


def test_plots(tmp_path):
    pytest.importorskip("matplotlib", reason="plots need the extra 'plot'")
    from benchmarks.harness import plots

    directory = tmp_path / "new" / "directory"
    # Rows without fastio say nothing together.
    assert plots.draw(sample(), directory, "sample") == [
        directory / f"sample-{case}.png" for case in ("cat", "latency")
    ]
    assert (directory / "sample-cat.png").read_bytes().startswith(b"\x89PNG\r\n")
    cat, latency = (plots.svg(plots.case_figure(case)) for case in sample().cases)
    for words in ("200 MiB of random data", "fast|io", "1258 (3 x)", "more is better", "Best of 3"):
        assert words in cat
    assert "broken" not in cat
    assert "less is better" in latency
