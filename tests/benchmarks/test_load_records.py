"""Every operation that was recorded can be read."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load import Wrong, records
from benchmarks.load.records import Record, Writer

MOMENTS = st.one_of(st.just(-1.0), st.integers(0, 10**9).map(lambda number: number / 1e6))
RECORDS = st.lists(
    st.builds(
        Record, st.sampled_from(["read", "write", "a,b", 'q"']), st.integers(0, 10**6), st.integers(0, 10**4),
        st.integers(10**15, 2 * 10**15).map(lambda number: number / 1e6), MOMENTS, MOMENTS, MOMENTS,
        st.integers(0, 10**13), st.integers(0, 599), st.text(max_size=300), MOMENTS,
    ),
    max_size=40,
)  # fmt: skip


def written(path: Path, given_records: list[Record], every: int = 1000) -> Path:
    writer = Writer()
    with open(path, "wb") as file:
        for number, record in enumerate(given_records, 1):
            writer.add(record)
            if number % every == 0:
                file.write(writer.piece())
        file.write(writer.piece())
    return path


@given(RECORDS, st.integers(1, 10))
def test_written_records_are_read(tmp_path_factory, given_records, every) -> None:
    path = written(tmp_path_factory.mktemp("records") / "worker-3.csv.gz", given_records, every)
    found = list(records.read(path))
    assert [each.start for each in found] == pytest.approx([each.start for each in given_records], abs=1e-6)
    for read, wanted in zip(found, given_records, strict=True):
        error = " ".join(wanted.error.replace("\0", " ").split())[: records.ERROR_LENGTH]
        assert read._replace(start=0) == wanted._replace(start=0, error=error)


HEAD = ",".join(Record._fields).encode() + b"\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"hello\n"), "other columns than operation, number"),
        (gzip.compress(HEAD + b"read,x\n"), "line 2"),
        (gzip.compress(HEAD * 9)[:-20], "end-of-stream|Error"),
        (b"hello", "Not a gzipped file"),
    ],
)
def test_other_files(tmp_path, content, message) -> None:
    (tmp_path / "r.gz").write_bytes(content)
    with pytest.raises(Wrong, match=message):
        list(records.read(tmp_path / "r.gz"))
