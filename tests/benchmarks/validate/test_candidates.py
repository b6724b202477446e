"""What a user can give as a candidate."""

import pytest

from benchmarks.validate import candidates
from benchmarks.validate.errors import ValidateError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("my.diff", "diff"), ("my.patch", "diff"), ("eventlet-1.tar.gz", "sdist"), ("subprocess.py", "module"),
        ("eventlet-1-py3-none-any.whl", "wheel"),
    ],
)  # fmt: skip
def test_a_file_is_known_by_its_name(tmp_path, name, kind):
    file = tmp_path / name
    file.write_text("a")
    found = candidates.parse(str(file))
    assert (found.kind, found.path) == (kind, file)
    file.write_text("b")
    assert candidates.parse(str(file)).digest != found.digest


def test_a_source_tree(tmp_path):
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "package").mkdir()
    source = tmp_path / "package" / "module.py"
    source.write_text("a = 1\n")
    found = candidates.parse(str(tmp_path))
    assert found.kind == "path"
    (tmp_path / ".tox").mkdir()
    (tmp_path / ".tox" / "log").write_text("x")
    assert candidates.parse(str(tmp_path)) == found
    source.write_text("a = 2\n")
    assert candidates.parse(str(tmp_path)).digest != found.digest


@pytest.mark.parametrize("text", ["0.41.2", "1.0.0rc1", "2026.1"])
def test_a_version(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    assert candidates.parse(text).kind == "version"


def test_the_release_itself(tmp_path, monkeypatch):
    """Also where a directory has that name, which can be given by its path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stock").mkdir()
    (tmp_path / "stock" / "setup.py").write_text("")
    found = candidates.parse("stock")
    assert (found.kind, found.name) == ("stock", "stock")
    assert candidates.parse("./stock").kind == "path"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no/such/tree", "no such file or directory"), ("missing.diff", "no such file or directory"),
        ("newest", "no version"), ("notes.txt", "a wheel"), ("empty", "no pyproject.toml"),
    ],
)  # fmt: skip
def test_what_is_none_of_them(tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValidateError, match=said) as caught:
        candidates.parse(text)
    assert text in str(caught.value)
