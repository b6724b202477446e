"""The directory of the payload files."""

import os
import pathlib
import tempfile

import pytest

from benchmarks.harness import worker


@pytest.fixture
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Where it is by default, in a temporary directory of the test's own."""
    monkeypatch.delenv(worker.CACHE_VARIABLE, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"fastio-benchmarks-{os.getuid()}"


def test_the_directory_is_this_user_s_only(place: pathlib.Path) -> None:
    assert worker.cache_directory() == worker.cache_directory() == place
    assert place.stat().st_mode & 0o777 == 0o700


def test_a_link_in_its_place_is_refused(place: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match=worker.CACHE_VARIABLE):
        worker.cache_directory()


def test_a_directory_that_others_may_write_to_is_refused(place: pathlib.Path) -> None:
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(PermissionError, match="no other user"):
        worker.cache_directory()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(place: pathlib.Path) -> None:
    place.mkdir(mode=0o700)
    os.chown(place, 65534, 65534)
    with pytest.raises(PermissionError, match="belongs to this user"):
        worker.cache_directory()
