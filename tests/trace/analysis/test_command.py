"""``fastio trace`` from the outside: what it prints and writes, and its exit status."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from fastio import cli
from fastio.trace.analysis import lists, views
from fastio.trace.analysis.analysis import analyse
from tests.trace.synthetic import BEGIN, HOSTS, MS, Host, Process, World


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    made = tmp_path_factory.mktemp("trace")
    world = World(list(HOSTS), seed=4)
    world.run(12, 3)
    world.download(BEGIN + MS, error="glance_store.exceptions.StorageFull", status=413)
    world.write(made)
    return made


@pytest.fixture(autouse=True)
def _libraries():
    pytest.importorskip("scipy", reason="scipy is not installed")


def run(capsys, *arguments, command="report"):
    status = cli.main(["trace", command, *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_terminal_has_all_tables(directory, capsys):
    status, out, err = run(capsys, directory)
    assert (status, err) == (0, "")
    for heading in (
        "Requests by kind", "States of download",
        "Why requests failed", "Errors by component",
        "Corrections of the clocks", "Records read",
    ):  # fmt: skip
        assert heading in out
    assert "disk full" in out
    assert "26 requests: 25 ok, 1 failed" in out


def test_json_has_the_figures(directory, capsys):
    status, out, _ = run(capsys, directory, "--json")
    found = json.loads(out)
    assert status == 0
    assert found["kinds"]["download"]["requests"] == 13
    assert found["kinds"]["download"]["failed"] == 1
    assert found["kinds"]["download"]["states"]["body"]["count"] == 12
    assert found["causes"] == {"disk full": 1}
    assert {each["clock"].split()[0] for each in found["clocks"]} == {"client1", "api1", "api2"}


def test_damaged_files_are_named_and_the_rest_is_reported(directory, capsys, tmp_path):
    for path in directory.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    broken = min(tmp_path.iterdir())
    broken.write_bytes(broken.read_bytes() + b"{oops\n")
    lines = broken.read_bytes().count(b"\n")
    status, out, err = run(capsys, tmp_path)
    assert status == 1
    assert f"fastio: {broken}:{lines}: not JSON" in err
    assert "26 requests" in out
    assert "not all of the data is sound" in out


@pytest.mark.parametrize("arguments, said", [
    (["/no/such/directory", "--request", "x"], "/no/such/directory: no such file or directory"),
    (["{directory}", "--request", "req-none"], "--request req-none: there is no such request; the first are req-"),
])  # fmt: skip
def test_errors_are_one_line_and_status_2(directory, capsys, arguments, said):
    status, _, err = run(capsys, *(each.format(directory=directory) for each in arguments), command="waterfall")
    assert status == 2
    assert err.startswith(f"fastio: {said}")
    assert err.count("\n") == 1


def test_reading_imports_nothing_beyond_the_standard_library(directory):
    code = (
        "import sys; from fastio.trace.analysis import reading; "
        f"trace = reading.read([{str(directory)!r}]); assert trace.counts['spans']; "
        "found = {name.partition('.')[0] for name in sys.modules}; "
        "print(sorted(found & {'numpy', 'scipy', 'rich', 'matplotlib', 'eventlet', 'glance_store'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout == "[]\n"


def test_one_host_needs_no_scipy(capsys, monkeypatch, tmp_path):
    process = Process(Host("api"), 1, "glance-api")
    process.end(BEGIN + MS, process.begin(BEGIN, "glance.request"))
    process.write(tmp_path)
    for name in ("scipy", "scipy.optimize", "numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    status, out, _ = run(capsys, tmp_path)
    assert status == 0
    assert out.startswith("1 request: 1 ok\n  * 1 span of 1 process on 1 host, in 1 file\n")


PROGRAM = """
import os, subprocess
reader, writer = os.pipe()
subprocess.run(["cat"], input=b"x" * 1000, stdout=subprocess.PIPE)
subprocess.call(["sh", "-c", "exit 3"])
try:
    subprocess.run(["sh", "-c", "read line"], stdin=reader, timeout=0.05)
except subprocess.TimeoutExpired:
    pass
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The trace of a program that has no requests, only commands."""
    directory = tmp_path_factory.mktemp("program")
    script = directory / "tool.py"
    script.write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "TEST_"))}
    command = [sys.executable, "-m", "fastio", "run", "--trace", str(directory / "trace"), "--", str(script)]
    subprocess.run(command, check=True, env=environment, timeout=60, cwd=pathlib.Path(cli.__file__).parent.parent)
    return directory / "trace"


def test_a_program_that_only_runs_commands_is_reported(program, capsys):
    status, out, err = run(capsys, program)
    assert (status, err) == (0, "")
    assert out.startswith("3 commands: 1 ok, 2 failed\n")
    assert "requests" not in out.partition("\n")[0]
    (row,) = [line for line in out.splitlines() if line.startswith("sh ")]
    assert row.split()[:7] == ["sh", "2", "2", "3", "(1),", "-9", "(1)"]
    status, out, _ = run(capsys, program, "--json")
    found = json.loads(out)["commands"]
    assert {name: (of["commands"], of["failed"]) for name, of in found.items()} == {"cat": (1, 0), "sh": (2, 2)}


def test_the_slowest_commands_come_first(program, capsys):
    status, out, _ = run(capsys, program, command="slowest")
    assert status == 0
    assert "The slowest 3 of 3 commands" in out
    _, one, _ = run(capsys, program, "--most", "1", command="slowest")
    assert "The slowest 1 of 3 commands" in one
    works = lists.works(analyse([program]))
    assert [work.what for work in works] == ["cat", "sh", "sh"]
    assert works[0].bytes == 2000
    (table,) = lists.slowest(works, 3)
    times = [work.duration for work in works]
    assert [row[2] for row in table.rows] == [views.number(each / 1e6) for each in sorted(times, reverse=True)]


def test_the_commands_that_failed_and_why(program, capsys):
    status, out, _ = run(capsys, program, command="failed")
    assert status == 0
    assert "Failed: 2 commands, of 3 commands" in out
    assert "exit status 3" in out
    assert re.search(r"subprocess.TimeoutExpired, killed by signal 9", out)
    _, out, _ = run(capsys, program, "--most", "1", command="failed")
    assert "and 1 before them" in out


def test_requests_are_in_the_lists_as_well(directory, capsys):
    _, out, _ = run(capsys, directory, command="failed")
    # Commands of the synthetic servers' own requests are part of them.
    assert "Failed: 1 request, of 26 requests and 13 commands" in out and "disk full" in out
    request = next(each for each in analyse([directory]).requests if each.kind.name == "download")
    _, out, _ = run(capsys, directory, "--request", request.id, command="waterfall")
    assert f"Waterfall of download {request.id}" in out
    assert "subprocess.command" in out and "dog" in out
    for shown in ("state: middleware", "glance.image_data.download", "client 100 on client1"):
        assert shown in out
    bars = re.findall(r"[·█]+", out)
    assert len(bars) > 5 and all(len(bar) == 32 and "█" in bar for bar in bars)
    # One after the other.
    assert [bar.index("█") for bar in bars] == sorted(bar.index("█") for bar in bars)


def test_a_command_that_goes_on_is_no_part_of_the_request(tmp_path):
    process = Process(Host("api"), 1, "glance-api")
    outer = process.begin(BEGIN, "glance.request")
    for ended in (2, 9):
        span = process.begin(BEGIN + MS, "subprocess.command", outer, program="dog")
        process.end(BEGIN + ended * MS, span, code=0)
    process.end(BEGIN + 5 * MS, outer, status=200)
    process.write(tmp_path)
    analysis = analyse([tmp_path])
    (request,) = analysis.requests
    assert request.duration == 5 * MS
    assert len(request.spans) == 2


def test_nothing_failed(tmp_path, capsys):
    process = Process(Host("api"), 1, "tool")
    span = process.begin(BEGIN, "subprocess.command", program="dog")
    process.end(BEGIN + MS, span, code=0)
    process.write(tmp_path)
    _, out, _ = run(capsys, tmp_path, command="failed")
    assert out == "Nothing failed: 1 command.\n"
    _, out, _ = run(capsys, tmp_path, command="slowest")
    assert "The slowest 1 of 1 command" in out


@pytest.mark.parametrize("most", ["0", "-1", "many", "1.5", "²", ""])
def test_a_bad_number_of_rows_names_itself(program, capsys, most):
    with pytest.raises(SystemExit) as caught:
        run(capsys, program, f"--most={most}", command="slowest")
    assert caught.value.code == 2
    assert f"argument --most: {most!r} is not allowed; allowed is a whole number from 1 on" in capsys.readouterr().err


def test_a_missing_package_is_named_with_the_extra(directory, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    status, _, err = run(capsys, directory)
    assert status == 2
    assert "this needs scipy" in err and "in a checkout: pip install '.[trace]'" in err


def test_every_table_is_printed_at_any_width(directory):
    analysis = analyse([directory])
    works = lists.works(analysis)
    parts = [*lists.slowest(works, 9), *lists.failures(works, 9), lists.waterfall(analysis.requests[0])]
    tables = [*views.tables(analysis.to_dict()), *parts]
    assert len(tables) > 9
    for table in tables:
        assert table.text(60) and table.text()
