"""The parts of the log server: paths, files, gzip and lines, with whatever anybody may send."""

import gzip
import itertools
import os
import socket
import zlib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("eventlet", reason="the log server needs the extra 'eventlet'")
pytest.importorskip("swiftclient", reason="the log server needs the extra 'stores'")

from benchmarks.logserver import markup, paths
from benchmarks.logserver.application import Application, Source
from benchmarks.logserver.inflate import WINDOW, BadGzip, inflate
from benchmarks.logserver.paths import BadPath, name_of
from benchmarks.logserver.sources import Disk, Unreachable
from tests.descriptors import descriptors


def wire(text: str) -> str:
    """A path as WSGI has it."""
    return text.encode("utf-8", "surrogatepass").decode("iso-8859-1")


PART = st.text(st.characters(codec="utf-8"), max_size=12)
HOSTILE = st.sampled_from(
    ["..", ".", "", "...", "..\\", "%2e%2e", "\0", "a\nb", "~", "-", "\u202e", "\u2215", "\uff0e"]
)


@given(st.lists(st.one_of(PART, HOSTILE), min_size=1, max_size=6).map("/".join).map("/".__add__))
@example("/../etc/passwd")
@example("/logs/../../etc/passwd")
@example("//etc/passwd")
@example("/logs//x")
@example("/logs/./x")
@example("/logs/x/")
def test_a_name_never_leads_out(text) -> None:
    try:
        name = name_of(wire(text))
    except BadPath:
        return
    assert text == "/" + name
    root = "/srv/logs"
    assert os.path.normpath(os.path.join(root, name)) == f"{root}/{name}"
    assert name.isprintable() and "\\" not in name and len(name.encode()) <= paths.MOST


@given(st.text(st.characters(max_codepoint=255), max_size=40))
def test_any_bytes_are_taken_or_refused(text) -> None:
    try:
        assert wire("/" + name_of(text)) == text
    except BadPath:
        pass


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "no name"), ("/", "no name"), ("logs/x", "no name"), ("/../x", "'..' is no part"), ("/a/..", "'..' is no"),
        ("/a/./b", "'.' is no part"), ("//x", "'' is no part"), ("/x/", "'' is no part"), ("/a\\b", "backslash"),
        ("/a\0b", "printed"), ("/a\r\nb", "printed"), ("/\xff", "UTF-8"), ("/" + "a/" * 600 + "a", "longer than 1024"),
        ("/" + "a" * 256, "part longer than 255"),
    ],
)  # fmt: skip
def test_what_is_refused(path, why) -> None:
    with pytest.raises(BadPath, match=why):
        name_of(path)


@pytest.fixture
def root(tmp_path) -> Path:
    directory = tmp_path / "root"
    (directory / "a").mkdir(parents=True)
    (directory / "a" / "log").write_bytes(b"0123456789")
    (tmp_path / "secret").write_bytes(b"secret")
    return directory


def test_a_file_of_the_disk(root) -> None:
    log = Disk(str(root), 4).open("a/log")
    assert log is not None and log.size == 10
    assert list(log.chunks) == [b"0123", b"4567", b"89"]
    log.chunks.close()
    log.chunks.close()


@pytest.mark.parametrize("name", ["a", "b", "a/log/x", "a/none", "link", "linked/secret", "pipe", "socket", "x" * 255])
def test_what_is_no_file_of_the_disk(root, name, monkeypatch) -> None:
    # The address of such a socket may be too long.
    monkeypatch.chdir(root)
    (root / "link").symlink_to(root.parent / "secret")
    (root / "linked").symlink_to(root.parent, target_is_directory=True)
    os.mkfifo(root / "pipe")
    before = descriptors()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert Disk(str(root), 4).open(name) is None
    assert not descriptors() - before


def test_an_unused_log_is_closed(root) -> None:
    before = descriptors()
    log = Disk(str(root), 4).open("a/log")
    assert log is not None
    assert len(descriptors() - before) == 1
    log.chunks.close()
    assert not descriptors() - before


def test_a_log_that_grows_or_shrinks(root) -> None:
    disk = Disk(str(root), 4)
    path = root / "a" / "log"
    for change, outcome in ((b"0123456789abc", b"0123456789"), (b"01234", None)):
        path.write_bytes(b"0123456789")
        log = disk.open("a/log")
        assert log is not None
        path.write_bytes(change)
        if outcome is not None:
            assert b"".join(log.chunks) == outcome
        else:
            with pytest.raises(Unreachable, match="5 bytes shorter"):
                list(log.chunks)
        log.chunks.close()


def test_a_root_that_is_gone(tmp_path) -> None:
    with pytest.raises(Unreachable, match="disk"):
        Disk(str(tmp_path / "none"), 4).open("x")


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """``data`` in pieces of these sizes; the last one has what is left."""
    pieces, offset = [], 0
    for size in sizes:
        pieces.append(data[offset : offset + size])
        offset += size
    return [*pieces, data[offset:]]


CONTENT = st.one_of(st.binary(max_size=3000), st.tuples(st.binary(min_size=1, max_size=3), st.integers(1, 30_000)).map(
    lambda each: each[0] * each[1]))  # fmt: skip
SIZES = st.lists(st.integers(0, 500), max_size=30)


@given(st.lists(CONTENT, min_size=1, max_size=4), SIZES, st.integers(1, 4000), st.integers(0, 20))
def test_inflating_gives_what_was_compressed(members, sizes, most, padding) -> None:
    data = b"".join(map(gzip.compress, members)) + b"\0" * padding
    found = list(inflate(cut(data, sizes), most))
    assert b"".join(found) == b"".join(members)
    assert all(len(chunk) <= most for chunk in found)


@given(CONTENT, SIZES, st.data())
def test_what_ends_early_is_an_error(content, sizes, data) -> None:
    whole = gzip.compress(content)
    short = whole[: data.draw(st.integers(0, len(whole) - 1))]
    found = b""
    with pytest.raises(BadGzip):
        for chunk in inflate(cut(short, sizes), 1000):
            found += chunk
    assert content.startswith(found)


@given(CONTENT, st.binary(min_size=1, max_size=50).filter(lambda tail: tail.strip(b"\0")), SIZES)
def test_garbage_is_an_error(content, tail, sizes) -> None:
    with pytest.raises(BadGzip):
        list(inflate(cut(gzip.compress(content) + b"\0\0" + tail.lstrip(b"\0"), sizes), 1000))
    with pytest.raises(BadGzip):
        list(inflate([b"plain text"], 1000))


def test_a_bomb_is_inflated_little_by_little() -> None:
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(64)) + compressor.flush()
    assert len(bomb) < 100_000
    total = 0
    for chunk in inflate([bomb], 1 << 16):
        assert len(chunk) <= 1 << 16
        total += len(chunk)
    assert total == 64 << 20


LINES = st.lists(
    st.one_of(
        st.binary(max_size=60),
        st.builds(
            lambda severity, text: f"2014-10-01 12:00:00.123 99 {severity} {text}".encode(),
            st.sampled_from(markup.SEVERITIES), st.text(max_size=20),
        ),
    ),
    max_size=20,
)  # fmt: skip


@given(st.binary(max_size=2000), SIZES)
def test_lines_lose_nothing(data, sizes) -> None:
    found = list(itertools.chain(*markup.lines(cut(data, sizes))))
    assert found == data.splitlines(keepends=True) or b"".join(found) == data
    assert all(line.count(b"\n") <= 1 and line.find(b"\n") in (-1, len(line) - 1) for line in found)


@given(LINES.map(b"\n".join), SIZES, st.integers(1, 300))
def test_without_a_filter_all_is_there(data, sizes, chunk_size) -> None:
    assert b"".join(markup.marked(cut(data, sizes), 0, False, chunk_size)) == data


def test_a_very_long_line_is_not_kept(monkeypatch) -> None:
    monkeypatch.setattr(markup, "LONGEST_LINE", 10)
    found = list(itertools.chain(*markup.lines([b"x" * 7] * 9)))
    assert b"".join(found) == b"x" * 63 and max(map(len, found)) <= 10
    assert b"".join(itertools.chain(*markup.lines([b"x" * 25 + b"\nrest"]))) == b"x" * 25 + b"\nrest"


class Counted:
    """In the place of zlib.decompressobj: counts the bytes that inflaters get, of which they copy those they leave."""

    total = 0

    def __init__(self, wbits: int) -> None:
        self._own = self._inflater(wbits)

    _inflater = staticmethod(zlib.decompressobj)

    def decompress(self, data: bytes, most: int) -> bytes:
        Counted.total += len(data)
        return self._own.decompress(data, most)

    def __getattr__(self, name: str):
        return getattr(self._own, name)


def test_the_work_between_two_pieces_is_bounded(monkeypatch) -> None:
    """Whatever is in a log: others get their turn, and twice as much takes twice the work."""
    monkeypatch.setattr(zlib, "decompressobj", Counted)
    work = []
    for count in (3000, 6000):
        monkeypatch.setattr(Counted, "total", 0)
        data = gzip.compress(b"x") * count
        most_at_once = before = 0
        for _ in inflate([data], 1 << 16):
            before, most_at_once = Counted.total, max(most_at_once, Counted.total - before)
        # What a window has are members of 21 bytes.
        assert most_at_once <= WINDOW * (WINDOW // 21 + 2)
        work.append(Counted.total)
    assert work[1] < 2.1 * work[0]
    assert len(list(markup.marked([b"x"] * 500, 0, False, 1 << 16))) > 500
    hidden = b"2014-10-01 12:00:00.1 7 DEBUG a\n" * 10_000
    pieces = list(markup.marked([hidden], markup.rank("CRITICAL"), False, 1 << 16))
    assert len(pieces) > len(hidden.splitlines()) / markup.TURN and not any(pieces)


def test_others_run_while_a_log_of_nothing_is_looked_through(tmp_path, monkeypatch) -> None:
    (tmp_path / "log.gz").write_bytes(gzip.compress(b"2014-10-01 12:00:00.1 7 DEBUG a\n" * 50_000))
    turns: list[float] = []
    monkeypatch.setattr("eventlet.sleep", turns.append)
    sources: dict[str, Source] = {"disk": Disk(str(tmp_path), 1 << 16)}
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/log.gz", "QUERY_STRING": "level=CRITICAL"}
    assert list(Application(sources, 1 << 16)(environ, lambda *_: None)) == []
    assert len(turns) > 50 and set(turns) == {0}


def test_the_filter() -> None:
    text = (
        b"head\n2014-10-01 12:00:00.1 7 DEBUG a\n detail\n2014-10-01 12:00:01 WARNING b\n"
        b"2014-10-01 12:00:02,3 7 ERROR c\nTraceback\n2014-10-01 12:00:03 INFO d\nDEBUG\n"
    )
    found = b"".join(markup.marked([text], markup.rank("WARNING"), False, 10))
    assert found == (b"head\n2014-10-01 12:00:01 WARNING b\n2014-10-01 12:00:02,3 7 ERROR c\nTraceback\n")
    with pytest.raises(ValueError, match="severity 'LOUD' is not one of DEBUG"):
        markup.rank("LOUD")


def test_anchors_and_escapes() -> None:
    text = b"2014-10-01 12:00:00.123 7 ERROR <script>&\n\xff\n"
    found = b"".join(markup.marked([text], 0, True, 10)).decode()
    assert '<a name="_2014_10_01_12_00_00_123"></a><a name="l1" href="#l1"></a><span class="ERROR">' in found
    assert "&lt;script&gt;&amp;" in found and "<script>" not in found
    assert found.startswith("<html>") and found.endswith("</html>\n") and '<a name="l2"' in found
