"""``fastio trace report`` from the outside: what it prints and writes, and its exit status."""

import json
import re
import subprocess
import sys

import pytest

from benchmarks.tools.synthetic import BEGIN, HOSTS, MS, Host, Process, World
from fastio import cli
from fastio.trace.analysis import charts, views
from fastio.trace.analysis.analysis import analyse
from tests import widths


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    made = tmp_path_factory.mktemp("trace")
    world = World(list(HOSTS), seed=4)
    world.run(12, 3)
    world.download(BEGIN + MS, error="StorageFull: There is not enough disk space", status=413)
    world.write(made)
    return made


@pytest.fixture(autouse=True)
def _libraries():
    for name in ("scipy", "drain3"):
        pytest.importorskip(name, reason=f"{name} is not installed")


def run(capsys, *arguments):
    status = cli.main(["trace", "report", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_terminal_has_all_tables(directory, capsys):
    status, out, err = run(capsys, directory)
    assert (status, err) == (0, "")
    for heading in (
        "Requests by kind", "Requests by how many were in flight", "Time by component, download",
        "States of download", "Why requests failed", "Errors by component and message", "Resources",
        "Corrections of the clocks", "What was read",
    ):  # fmt: skip
        assert heading in out
    assert "disk full" in out
    assert "26 requests: 25 ok, 1 failed" in out


def test_pages_and_exports_are_written(directory, capsys, tmp_path):
    files = {name: tmp_path / name for name in ("html", "otlp", "perfetto")}
    options = [part for name, path in files.items() for part in (f"--{name}", path)]
    status, out, _ = run(capsys, directory, "--markdown", *options)
    assert status == 0
    assert out.startswith("# Trace of client, glance-api, log-server\n")
    page = files["html"].read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<svg" in page and "States of download" in page
    assert json.loads(files["otlp"].read_text())["resourceSpans"]
    assert json.loads(files["perfetto"].read_text())["traceEvents"]


def test_the_bars_have_axes_and_what_they_show_as_their_title(directory, capsys, tmp_path):
    run(capsys, directory, "--html", tmp_path / "html")
    page = (tmp_path / "html").read_text()
    bars = re.findall(r"<figure>.*?</figure>", page, re.DOTALL)
    assert bars
    for each in bars:
        assert ">in flight<" in each and ">mean time of a request, ms<" in each
        finding = r"<figcaption>\w+: \d+% of the time is .*; a request takes [\d,.]+ ms with .* in flight<"
        assert re.search(finding, each)


@pytest.mark.parametrize("most", [0.0003, 0.9, 1, 2, 4.99, 7, 10, 123456])
def test_the_numbers_on_an_axis_are_few_and_round(most):
    ticks = charts._ticks(most)
    assert ticks[0] == 0 and most / 2 < ticks[-1] <= most and 3 <= len(ticks) <= 8
    step = f"{ticks[1]:e}"
    assert step[:8] in ("1.000000", "2.000000", "5.000000")


def test_json_has_the_figures(directory, capsys):
    status, out, _ = run(capsys, directory, "--json")
    found = json.loads(out)
    assert status == 0
    assert found["kinds"]["download"]["requests"] == 13
    assert found["kinds"]["download"]["failed"] == 1
    assert found["kinds"]["download"]["states"]["body"]["count"] == 12
    assert found["causes"] == {"disk full": 1}
    assert {each["clock"].split()[0] for each in found["clocks"]} == {"client1", "api1", "api2"}


def test_the_time_line_of_a_request(directory, capsys):
    lines = map(json.loads, next(directory.glob("client*")).read_text().splitlines()[1:-1])
    name = next(line[6]["global"] for line in lines if "global" in line[6])
    status, out, _ = run(capsys, directory, "--request", name)
    assert status == 0
    assert "state: middleware" in out
    assert "glance.image_data.download" in out
    assert "client 100 on client1" in out


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
    (["/no/such/directory"], "/no/such/directory: no such file or directory"),
    (["{directory}", "--request", "req-none"], "--request req-none: there is no such request; the first are req-"),
    (["{directory}", "--html", "/no/such/page.html"], "/no/such/page.html: No such file or directory"),
    (["{directory}", "--rules", "/no/such/rules.toml"], "rules: /no/such/rules.toml: No such file or directory"),
])  # fmt: skip
def test_errors_are_one_line_and_status_2(directory, capsys, arguments, said):
    status, _, err = run(capsys, *(each.format(directory=directory) for each in arguments))
    assert status == 2
    assert err.startswith(f"fastio: {said}")
    assert err.count("\n") == 1


def test_reading_imports_nothing_beyond_the_standard_library(directory):
    code = (
        "import sys; from fastio.trace.analysis import reading; "
        f"trace = reading.read([{str(directory)!r}]); assert trace.counts['events']; "
        "found = {name.partition('.')[0] for name in sys.modules}; "
        "print(sorted(found & {'numpy', 'scipy', 'drain3', 'rich', 'matplotlib', 'eventlet', 'glance_store'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout == "[]\n"


def test_one_host_needs_no_scipy(capsys, monkeypatch, tmp_path):
    process = Process(Host("api"), 1, "glance-api")
    process.end(BEGIN + MS, process.begin(BEGIN, "glance.request"), "glance.request")
    process.write(tmp_path)
    for name in ("scipy", "scipy.optimize", "numpy", "drain3"):
        monkeypatch.setitem(sys.modules, name, None)
    status, out, _ = run(capsys, tmp_path)
    assert status == 0
    assert out.startswith("1 request: 1 ok\n  * 2 events of 1 process on 1 host, in 1 file\n")


def test_commands_count_and_their_failures_are_shown(capsys, tmp_path):
    process = Process(Host("api"), 1, "tool")
    for number, code in enumerate((0, 3, 3)):
        span = process.begin(BEGIN + number * MS, "subprocess.communicate", program="qemu-img")
        process.end(BEGIN + (number + 1) * MS, span, "subprocess.communicate", code=code)
    process.write(tmp_path)
    status, out, _ = run(capsys, tmp_path)
    assert status == 0
    assert out.startswith("3 commands: 1 ok, 2 failed\n")
    (row,) = [line for line in out.splitlines() if line.startswith("qemu-img")]
    assert row.split()[:5] == ["qemu-img", "3", "2", "3", "(2)"]
    assert "No errors, but 2 commands failed" in out


def test_what_is_missing_is_named_with_the_extra(directory, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    status, _, err = run(capsys, directory)
    assert status == 2
    assert "this needs scipy" in err and "pip install 'fastio[trace]'" in err


def test_no_table_loses_anything_at_any_width(directory):
    tables = views.tables(views.sections(analyse([directory])))
    assert len(tables) > 5
    for table in tables:
        widths.check(table)
