"""The versions of what is installed."""

import pathlib

import pytest

from fastio.patching import distributions


def test_an_installed_version(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "Made_Up-1.2rc1+deb13u1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Made.Up\nVersion: 1.2rc1+deb13u1\n\nVersion: 9\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert distributions.version.__wrapped__("made-up") == "1.2rc1+deb13u1"
    assert distributions.version.__wrapped__("no-such-distribution") is None
