"""Files in any order, twice, cut off and damaged: what is wrong is named, and the rest counts."""

import gzip
import json
import random
import shutil
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.tools.synthetic import HOSTS, World
from fastio.trace.analysis import reading
from fastio.trace.analysis.model import Trace, TraceError

FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Four processes, two files each, of six requests."""
    world = World(list(HOSTS), seed=1)
    world.run(6, 3)
    return world.write(tmp_path_factory.mktemp("trace"), files=2)


def content(trace: Trace) -> list[tuple]:
    """All that was recorded."""
    found: list[tuple] = []
    for process in trace.processes:
        key = (process.host, process.pid)
        for span in process.spans.values():
            values = json.dumps(span.values, sort_keys=True)
            found.append((*key, span.number, span.parent, span.name, span.begin, span.end, values))
        for point in process.points:
            values = json.dumps(point.values, sort_keys=True)
            found.append((*key, 0, None, point.name, point.monotonic, None, values))
    return sorted(found, key=repr)


@pytest.fixture(scope="module")
def whole(files):
    trace = reading.read(files)
    assert trace.problems == []
    return content(trace)


def copied(files, directory: str) -> list[Path]:
    return [Path(shutil.copy(each, directory)) for each in files]


def test_all_of_it_is_read(files, whole):
    trace = reading.read([files[0].parent])
    assert content(trace) == whole
    assert trace.counts["files"] == 8
    assert trace.counts["hosts"] == 3
    assert trace.counts["processes"] == 4
    assert trace.counts["duplicate lines"] == trace.counts["lost events"] == 0
    assert all(process.ended for process in trace.processes)


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
                # A copy in another directory, or under a name that tells nothing, perhaps compressed.
                name = source.choice([path.name, f"copy{source.randrange(10**9)}.jsonl"])
                target = Path(directory) / str(source.randrange(10**9)) / name
                target.parent.mkdir()
                shutil.copy(path, target)
                if source.random() < 0.5:
                    target.with_name(name + ".gz").write_bytes(gzip.compress(target.read_bytes()))
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
        kept = text[:cut].count(b"\n")
        trace = reading.read([directory])
        found = content(trace)
        # What is left is part of the whole, and all of the other files is there.
        events = {(each[:3], moment) for each in whole for moment in each[5:7] if moment is not None}
        assert {(each[:3], moment) for each in found for moment in each[5:7] if moment is not None} <= events
        partial = not text[:cut].endswith(b"\n") and text[cut : cut + 1] != b"\n" and cut > 0
        if partial:
            assert [(each.file, each.line) for each in trace.problems] == [(str(path), kept + 1)]
            assert "cut off in this line" in trace.problems[0].what
            assert trace.counts["truncated files"] == 1
        else:
            assert trace.problems == []


@given(data=st.data())
@FEW
def test_damaged_bytes_cost_the_lines_that_they_are_in(files, whole, data):
    with tempfile.TemporaryDirectory() as directory:
        paths = copied(files, directory)
        touched = set()
        for _ in range(data.draw(st.integers(1, 5))):
            path = data.draw(st.sampled_from(paths))
            text = bytearray(path.read_bytes())
            # The first line is another test's.
            place = data.draw(st.integers(text.index(b"\n") + 1, len(text) - 1))
            if text[place] != ord("\n"):
                text[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != ord("\n")))
                touched.add((str(path), text[:place].count(b"\n") + 1))
                path.write_bytes(text)
        trace = reading.read([directory])
        # A number of a span that has become another's makes that one's own line the one too many.
        named = {(each.file, each.line) for each in trace.problems if "and not the same" not in each.what}
        assert named <= touched
        # Of a span, one event may be gone.
        assert len(set(whole) - set(content(trace))) <= 2 * len(touched)


BAD_LINES = {
    "not JSON": b"{",
    "not UTF-8": b'["B", 1, 1, null, "\xff", 1, {}]',
    "neither an event nor a header": b"17",
    "an event of 2 elements": b'["B", 1]',
    'kind is not "B"': b'["X", 1, 1, null, "a", 1, {}]',
    "monotonic time is no whole number": b'["B", 1.5, 1, null, "a", 1, {}]',
    "monotonic time is no whole number of ns: true": b'["B", true, 1, null, "a", 1, {}]',
    "span is no whole number": b'["B", 1, "1", null, "a", 1, {}]',
    "without the number of its span": b'["B", 1, null, null, "a", 1, {}]',
    "parent is no whole number": b'["B", 1, 1, [], "a", 1, {}]',
    "name is no text": b'["B", 1, 1, null, 7, 1, {}]',
    "thread is no whole number": b'["B", 1, 1, null, "a", "x", {}]',
    "values are no object": b'["B", 1, 1, null, "a", 1, [1]]',
    "lost is no count": b'{"lost": "many", "monotonic": 1}',
    "an object that is no header": b'{"what": 1}',
    "version 2 of the format": b'{"fastio-trace": 2}',
    "header: host is None": b'{"fastio-trace": 1}',
    "a second header": b'{"fastio-trace": 1, "host": "x", "pid": 1, "monotonic": 1, "wall": 1}',
    "longer than": b'["' + b"x" * (2 * reading.LONGEST_LINE) + b'"]',
    "kind is not": b'[{"a": [1]}, 1, 1, null, "a", 1, {}]',
    "not JSON: ": b"[" * 200_000,
    "monotonic time": b'["B", 99999999999999999999999, 1, null, "a", 1, {}]',
}


@pytest.mark.parametrize("what", BAD_LINES)
def test_a_bad_line_is_named_with_its_file_and_number(files, whole, tmp_path, what):
    paths = copied(files, str(tmp_path))
    lines = paths[0].read_bytes().splitlines(keepends=True)
    lines.insert(5, BAD_LINES[what] + b"\n")
    paths[0].write_bytes(b"".join(lines))
    trace = reading.read([tmp_path])
    assert content(trace) == whole
    [problem] = trace.problems
    assert str(problem).startswith(f"{paths[0]}:6: ")
    assert what in problem.what


def test_a_file_without_its_first_line_belongs_to_the_process_in_its_name(files, whole, tmp_path):
    paths = copied(files, str(tmp_path))
    paths[0].write_bytes(paths[0].read_bytes().partition(b"\n")[2])
    trace = reading.read([tmp_path])
    assert content(trace) == whole
    # Nothing else is known of this one.
    for path in paths:
        if path.name.startswith("client1"):
            lines = path.read_bytes().splitlines(keepends=True)
            path.write_bytes(b"".join(line for line in lines if b"fastio-trace" not in line))
    trace = reading.read([tmp_path])
    assert [process.host for process in trace.processes] == ["api1", "api2", "api2"]
    assert any("no first line that tells the process" in each.what for each in trace.problems)


def test_a_damaged_gz_counts_up_to_the_damage(files, tmp_path):
    lines = files[0].read_bytes()
    packed = gzip.compress(lines)
    path = tmp_path / (files[0].name + ".gz")
    path.write_bytes(packed[: len(packed) // 2])
    trace = reading.read([path])
    assert trace.counts["events"] > 0
    assert trace.counts["truncated files"] == 1
    assert "cannot be read on from here: EOFError" in str(trace.problems[0])


def test_many_bad_lines_are_counted_but_not_all_listed(files, tmp_path):
    path = Path(shutil.copy(files[0], tmp_path))
    path.write_bytes(path.read_bytes() + b"\0\n" * 500)
    trace = reading.read([path])
    assert trace.counts["unreadable lines"] == 500
    assert len(trace.problems) == reading.MOST_PROBLEMS + 1


def test_lost_events_are_counted_once(files, tmp_path):
    path = Path(shutil.copy(files[0], tmp_path))
    lost = b'{"lost": 3, "monotonic": 5}\n'
    path.write_bytes(path.read_bytes() + lost + lost + b'{"lost": 4, "monotonic": 6}\n')
    trace = reading.read([path])
    assert trace.counts["lost events"] == 7
    assert trace.counts["processes without an end"] == 1
    path.write_bytes(path.read_bytes() + b'{"end": true, "monotonic": 7, "events": 1, "lost": 9}\n')
    trace = reading.read([path])
    assert trace.counts["lost events"] == 9
    assert trace.counts["processes without an end"] == 0


def test_a_number_that_a_process_had_before_is_another_process(files, tmp_path):
    first = Path(shutil.copy(files[0], tmp_path))
    header, _, rest = first.read_bytes().partition(b"\n")
    name = first.name.split("-")
    later = json.loads(header) | {"monotonic": 10**15, "wall": 10**18}
    (tmp_path / "-".join([name[0], name[1], "1799999999999", "0.jsonl"])).write_bytes(
        json.dumps(later).encode() + b"\n" + rest
    )
    trace = reading.read([tmp_path])
    assert trace.counts["processes"] == 2
    assert trace.counts["duplicate lines"] == 0


@pytest.mark.parametrize("make, said", [
    (lambda path: path / "missing", "no such file or directory"),
    (lambda path: path, "no files of a trace"),
])  # fmt: skip
def test_nothing_to_read_is_an_error(tmp_path, make, said):
    with pytest.raises(TraceError, match=said):
        reading.read([make(tmp_path)])


def test_files_without_events_are_an_error_that_names_the_reason(tmp_path):
    (tmp_path / "a.jsonl").write_text("nonsense\n")
    with pytest.raises(TraceError, match=r"no events in 1 files\n.*a\.jsonl:1: not JSON"):
        reading.read([tmp_path])
