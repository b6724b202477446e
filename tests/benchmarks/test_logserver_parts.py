"""The parts of the log server: paths and files, with arbitrary input."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("eventlet", reason="the log server needs the extra 'eventlet'")
pytest.importorskip("swiftclient", reason="the log server needs the extra 'stores'")

from benchmarks.logserver import paths
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


@pytest.fixture
def root(tmp_path) -> Path:
    directory = tmp_path / "root"
    (directory / "a").mkdir(parents=True)
    (directory / "a" / "log").write_bytes(b"0123456789")
    (tmp_path / "secret").write_bytes(b"secret")
    return directory


@pytest.mark.parametrize("chunks", [[b"0123", b"4567", b"89"], []], ids=["read", "unused"])
def test_a_file_of_the_disk(root, chunks) -> None:
    before = descriptors()
    log = Disk(str(root), 4).open("a/log")
    assert log is not None and log.size == 10
    assert len(descriptors() - before) == 1
    assert [next(log.chunks) for _ in chunks] == chunks
    log.chunks.close()
    log.chunks.close()
    assert not descriptors() - before


@pytest.mark.parametrize("name", ["a", "b", "a/log/x", "a/none", "link", "linked/secret", "pipe", "socket", "x" * 255])
def test_names_that_are_no_file_of_the_disk(root, name, monkeypatch) -> None:
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
