"""Every operation that was recorded can be read, whatever became of the worker."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load import records
from benchmarks.load.records import Reader, Record, RecordError, Writer

MOMENTS = st.one_of(st.just(-1.0), st.integers(0, 10**9).map(lambda number: number / 1e6))
TEXT = st.text(max_size=300)
RECORDS = st.lists(
    st.builds(
        Record, st.sampled_from(["read", "write", "a,b", 'q"']), st.integers(0, 10**6), st.integers(0, 10**4),
        st.integers(10**15, 2 * 10**15).map(lambda number: number / 1e6), MOMENTS, MOMENTS, MOMENTS,
        st.integers(0, 10**13), st.integers(0, 599), TEXT, MOMENTS,
    ),
    max_size=40,
)  # fmt: skip


def written(path: Path, given_records: list[Record], every: int = 1000) -> Path:
    writer = Writer(path, {"worker": 3})
    for number, record in enumerate(given_records, 1):
        writer.add(record)
        if number % every == 0:
            writer._file.flush()
    writer.close()
    return path


def as_kept(record: Record) -> Record:
    return record._replace(error=" ".join(record.error.replace("\0", " ").split())[: records.ERROR_LENGTH])


def same(found: list[Record], wanted: list[Record]) -> bool:
    return [each._replace(start=0) for each in found] == [each._replace(start=0) for each in wanted] and all(
        abs(one.start - other.start) < 1e-6 for one, other in zip(found, wanted, strict=True)
    )


@given(RECORDS, st.integers(1, 10))
def test_what_was_written_is_read(tmp_path_factory, given_records, every) -> None:
    path = written(tmp_path_factory.mktemp("records") / "worker-3.csv.gz", given_records, every)
    reader = Reader(path)
    assert same(list(reader), [as_kept(each) for each in given_records])
    assert reader.about == {"format": records.FORMAT, "version": records.VERSION, "worker": 3}
    assert not reader.truncated


@given(RECORDS.filter(bool), st.integers(1, 10), st.data())
def test_a_file_that_ends_early_is_read_up_to_there(tmp_path_factory, given_records, every, data) -> None:
    path = written(tmp_path_factory.mktemp("records") / "worker-3.csv.gz", given_records, every)
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    try:
        reader = Reader(path)
        found = list(reader)
    except RecordError as error:
        # Not even the first line.
        assert "no records of a load" in str(error)
        return
    wanted = [as_kept(each) for each in given_records]
    assert same(found, wanted[: len(found)])
    assert reader.truncated


def test_what_is_there_can_be_read_meanwhile(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(records, "FLUSH_SECONDS", 0)
    writer = Writer(tmp_path / "r.gz", {})
    record = Record("read", 1, 2, 3.0, 0.1, 0.2, 0.3, 4, 200, "")
    writer.add(record)
    reader = Reader(tmp_path / "r.gz")
    assert list(reader) == [record]
    assert reader.truncated
    writer.close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no records of a load"),
        (b"hello\n", "no records of a load"),
        (b'{"format": "other"}\n', "no format"),
        (b'{"format": "fastio-load-records", "version": 7}\n', "version 7"),
    ],
)
def test_other_files(tmp_path, content, message) -> None:
    path = tmp_path / "r.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(RecordError, match=message):
        Reader(path)


def test_a_broken_line_is_named(tmp_path) -> None:
    path = written(tmp_path / "r.gz", [Record("read", 1, 2, 3.0, 0.1, 0.2, 0.3, 4, 200, "")])
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"read,x\n"))
    with pytest.raises(RecordError, match="line 4"):
        list(Reader(path))
