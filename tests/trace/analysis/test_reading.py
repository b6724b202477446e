"""Files in any order, twice, cut off, damaged and hostile: what is wrong is named, and the rest counts."""

import gzip
import json
import os
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")

from hypothesis import given, settings
from hypothesis import strategies as st

from fastio import cli
from fastio.trace.analysis import reading
from fastio.trace.analysis.model import Trace, TraceError
from tests.outcome import peak
from tests.trace import synthetic
from tests.trace.synthetic import HOSTS, Process, World

FEW = settings(max_examples=40)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Four processes, two files each, of six requests."""
    world = World(list(HOSTS), seed=1)
    world.run(6, 3)
    return world.write(tmp_path_factory.mktemp("trace"), files=2)


def content(trace: Trace) -> set[tuple]:
    """All that was recorded."""
    return {
        (process.host, process.pid, span.id, span.parent, span.name, span.begin, span.end,
         json.dumps([span.values, [(each.name, each.time, each.message) for each in span.points]], sort_keys=True))
        for process in trace.processes for span in process.spans.values()
    }  # fmt: skip


@pytest.fixture(scope="module")
def whole(files):
    trace = reading.read(files)
    assert trace.problems == []
    return content(trace)


def copied(files, directory: str) -> list[Path]:
    return [Path(shutil.copy(each, directory)) for each in files]


def test_all_of_it_is_read(files, whole):
    trace = reading.read([files[0].parent])
    assert content(trace) == whole and len(whole) == 6 * 7
    assert trace.counts["files"] == 8
    assert trace.counts["hosts"] == 3
    assert trace.counts["processes"] == 4
    assert trace.counts["duplicate spans"] == trace.counts["lost spans"] == 0
    assert {process.host: process.boot for process in trace.processes} == {host.name: host.boot for host in HOSTS}


@given(seed=st.integers(0, 1 << 30))
@FEW
def test_order_and_copies_make_no_difference(files, whole, seed):
    source = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        paths = copied(files, directory)
        for path in paths:
            lines = path.read_text().splitlines(keepends=True)
            source.shuffle(lines)
            path.write_text("".join(lines + source.choices(lines, k=source.randrange(4))))
            if source.random() < 0.3:
                # A copy in another directory under another name, perhaps compressed.
                target = Path(directory) / str(source.randrange(10**9)) / "copy.jsonl"
                target.parent.mkdir()
                shutil.copy(path, target)
                if source.random() < 0.5:
                    target.with_name("copy.jsonl.gz").write_bytes(gzip.compress(target.read_bytes()))
                    target.unlink()
        source.shuffle(paths)
        trace = reading.read([*paths, directory])
        assert content(trace) == whole
        assert trace.problems == []


@given(data=st.data())
@FEW
def test_a_file_that_is_cut_off_loses_what_is_behind_the_cut(files, whole, data):
    with tempfile.TemporaryDirectory() as directory:
        paths = copied(files, directory)
        path = data.draw(st.sampled_from(paths))
        text = path.read_bytes()
        cut = data.draw(st.integers(0, len(text) - 1))
        path.write_bytes(text[:cut])
        trace = reading.read([directory])
        assert content(trace) <= whole
        if not text[:cut].endswith(b"\n") and text[cut : cut + 1] != b"\n" and cut > 0:
            kept = text[:cut].count(b"\n")
            assert [(each.file, each.line) for each in trace.problems] == [(str(path), kept + 1)]
            assert "cut off in this line" in trace.problems[0].what
            assert trace.counts["truncated files"] == 1
        else:
            assert trace.problems == []


@given(data=st.data())
@FEW
def test_damaged_bytes_cost_the_lines_that_they_are_in(files, whole, data):
    with tempfile.TemporaryDirectory() as directory:
        path = data.draw(st.sampled_from(copied(files, directory)))
        lines = path.read_bytes().splitlines(keepends=True)
        number = data.draw(st.integers(0, len(lines) - 1))
        line = bytearray(lines[number])
        for _ in range(data.draw(st.integers(1, 5))):
            place = data.draw(st.integers(0, len(line) - 2))
            line[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != ord("\n")))
        lines[number] = bytes(line)
        path.write_bytes(b"".join(lines))
        trace = reading.read([directory])
        # A span whose id has become another's makes that one's own line the one too many.
        named = {(each.file, each.line) for each in trace.problems if "and not the same" not in each.what}
        assert named <= {(str(path), number + 1)}
        assert len(whole - content(trace)) <= 5


def line_of(**changed: Any) -> bytes:
    """A line with one span, changed."""
    span = {"traceId": "1" * 32, "spanId": "1" * 16, "name": "a", "startTimeUnixNano": "1", "endTimeUnixNano": "2",
            "attributes": []}  # fmt: skip
    span = {name: value for name, value in {**span, **changed}.items() if value is not None}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def test_the_line_is_one_that_is_read(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(line_of() + b"\n" + line_of(spanId="2" * 16, attributes=None) + b"\n")
    trace = reading.read([tmp_path])
    assert (trace.problems, trace.counts["spans"]) == ([], 2)


BAD_LINES = {
    "not JSON": b"{",
    "not UTF-8": b'{"resourceSpans": "\xff"}',
    "no object with resourceSpans": b"[17]",
    "resourceSpans is no list of objects": b'{"resourceSpans": {"a": 1}}',
    "scopeSpans is no list of objects": b'{"resourceSpans": [{"scopeSpans": 5}]}',
    "spans is no list of objects": b'{"resourceSpans": [{"scopeSpans": [{"spans": [7]}]}]}',
    "spanId is not 16": line_of(spanId="1" * 15),
    "spanId is not 16 hexadecimal": line_of(spanId=5),
    "traceId is not 32": line_of(traceId="x" * 32),
    "parentSpanId is not": line_of(parentSpanId=[1]),
    "name is no text": line_of(name=None),
    "startTimeUnixNano is no time": line_of(startTimeUnixNano="-1"),
    "endTimeUnixNano is no time": line_of(endTimeUnixNano="9" * 400),
    "endTimeUnixNano is no time in ns": line_of(endTimeUnixNano=True),
    "an attribute is no key with a value": line_of(attributes=[{"key": 5, "value": {}}]),
    "attributes is no list": line_of(attributes=["x"]),
    "events is no list": line_of(events={}),
    "timeUnixNano is no time": line_of(events=[{"name": "x", "timeUnixNano": "x"}]),
    "longer than": line_of(name="x" * (2 * reading.LONGEST_LINE)),
    "not JSON: ": b"[" * 200_000,
}


@pytest.mark.parametrize("what", BAD_LINES)
def test_a_bad_line_is_named_with_its_file_and_number(files, whole, tmp_path, what):
    paths = copied(files, str(tmp_path))
    lines = paths[0].read_bytes().splitlines(keepends=True)
    lines.insert(1, BAD_LINES[what] + b"\n")
    paths[0].write_bytes(b"".join(lines))
    trace = reading.read([tmp_path])
    assert content(trace) == whole
    [problem] = trace.problems
    assert str(problem).startswith(f"{paths[0]}:2: ")
    assert what in problem.what


def test_a_damaged_gz_counts_up_to_the_damage(tmp_path):
    # Not so regular that all of it is in the last bytes.
    content = b"".join(line_of(spanId=f"{number:016x}", name=os.urandom(500).hex()) + b"\n" for number in range(100))
    path = tmp_path / "a.jsonl.gz"
    packed = gzip.compress(content)
    path.write_bytes(packed[: len(packed) // 2])
    trace = reading.read([path])
    assert 0 < trace.counts["spans"] < 100
    assert trace.counts["truncated files"] == 1
    assert "cannot be read on from here: EOFError" in str(trace.problems[0])


def test_many_bad_lines_are_counted_but_not_all_listed(files, tmp_path):
    path = Path(shutil.copy(files[0], tmp_path))
    path.write_bytes(path.read_bytes() + b"\0\n" * 500)
    trace = reading.read([path])
    assert trace.counts["unreadable lines"] == 500
    assert len(trace.problems) == reading.MOST_PROBLEMS + 1


def test_losses_are_those_that_each_process_counts(tmp_path):
    for pid, losses in ((1, (3, 7)), (2, (5,))):
        process = Process(HOSTS[0], pid, "glance-api")
        for lost in losses:
            process.end(synthetic.BEGIN + 5, process.begin(synthetic.BEGIN, "glance.request"), lost=lost)
        process.write(tmp_path)
    assert reading.read([tmp_path]).counts["lost spans"] == 12


def pipe(directory: Path) -> Path:
    os.mkfifo(directory / "a.jsonl")
    return directory / "a.jsonl"


@pytest.mark.parametrize("make, said", [
    (lambda path: path / "missing", "no such file or directory"),
    (lambda path: path, "no files of a trace"),
    (lambda path: pipe(path).parent, "no files of a trace"),
    (lambda path: pipe(path), "no regular file"),
])  # fmt: skip
def test_nothing_to_read_is_an_error(tmp_path, make, said):
    with pytest.raises(TraceError, match=said):
        reading.read([make(tmp_path)])


def test_files_without_spans_are_an_error_that_names_the_reason(tmp_path):
    (tmp_path / "a.jsonl").write_text("nonsense\n")
    with pytest.raises(TraceError, match=r"no spans in 1 files\n.*a\.jsonl:1: not JSON"):
        reading.read([tmp_path])


HOSTILE = [
    {"key": "fastio.error", "value": {"stringValue": "E" * 300_000}},
    {"key": "fastio.program", "value": {"stringValue": "\x1b]0;title\x07\x1b[31m\r\ud800\u202e"}},
    {"key": "\x1b[2J" * 1000, "value": {"stringValue": "x"}},
    {"key": "http.response.status_code", "value": {"intValue": "9" * 400}},
    {"key": "fastio.bytes", "value": {"intValue": int("9" * 18)}},
    {"key": "fastio.busy_ns", "value": {"doubleValue": 1e308}},
    {"key": "fastio.wait_ns", "value": {"intValue": "-5"}},
    {"key": "fastio.outcome", "value": {"stringValue": "error"}},
]


@pytest.mark.parametrize("command", [
    ["report"], ["report", "--json"], ["slowest"], ["failed"],
    ["waterfall", "--request", "unknown 0 on "], ["waterfall", "--request", "1" * 32],
])  # fmt: skip
def test_a_hostile_trace_is_shown_within_bounds(tmp_path, capsys, command):
    """Numbers of 400 digits, surrogates, control characters and long texts neither end it nor reach a terminal."""
    name = "glance.request"
    latest = str((1 << 63) - 1)
    lines = [
        line_of(name=name, attributes=HOSTILE),
        line_of(spanId="2" * 16, name="\x1b[2J" + "n" * 100_000, endTimeUnixNano=latest, attributes=HOSTILE),
        line_of(spanId="3" * 16, parentSpanId="3" * 16, name="subprocess.command", attributes=HOSTILE * 100),
        line_of(spanId="4" * 16, parentSpanId="5" * 16, name="store.x.get", attributes=HOSTILE),
        line_of(spanId="5" * 16, parentSpanId="4" * 16, name="store.x.get", startTimeUnixNano=latest),
    ]
    (tmp_path / "\x1b[31m\n.jsonl").write_bytes(b"\n".join([*lines, b"\x1b[31m", b""]))
    assert cli.main(["trace", command[0], str(tmp_path), *command[1:]]) == 1
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        assert text.replace("\n", "").isprintable() and len(text) < 100_000


def test_repeated_values_take_no_memory(tmp_path):
    """A few bytes of gzip may be any number of lines."""
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wb", 1) as file:
        for _ in range(100):
            file.write((line_of(name="x" * 1000) + b"\n") * 100)
    assert peak(lambda: reading.read([path])) < 4 << 20
    trace = reading.read([path])
    assert (trace.counts["lines"], trace.counts["spans"]) == (10_000, 1)


@pytest.mark.parametrize(
    "limit, said", [("MOST_BYTES", "more than 5000 bytes"), ("MOST_SPANS", "more than 5000 spans")]
)
def test_reading_is_bounded(tmp_path, monkeypatch, limit, said):
    monkeypatch.setattr(reading, limit, 5000)
    ids = (f"{number:016x}" for number in range(1, 8000))
    with gzip.open(tmp_path / "a.jsonl.gz", "wb") as file:
        file.writelines(line_of(spanId=each) + b"\n" for each in ids)
    began = time.process_time()
    trace = reading.read([tmp_path])
    assert time.process_time() - began < 10
    assert 10 < trace.counts["spans"] <= 5000
    assert said in trace.problems[0].what
