"""The kinds of candidates that a user can give."""

import pytest

from benchmarks.validate import candidates
from benchmarks.validate.errors import ValidateError


@pytest.mark.parametrize("name", ["my.diff", "my.patch"])
def test_a_diff_is_known_by_its_name(tmp_path, name):
    file = tmp_path / name
    file.write_text("a")
    found = candidates.parse(str(file))
    assert (found.kind, found.path, found.name) == ("diff", file, name)
    file.write_text("b")
    assert candidates.parse(str(file)).digest != found.digest


@pytest.mark.parametrize("text", ["0.41.2", "1.0.0rc1", "2026.1", "stock"])
def test_a_version_or_stock_is_a_candidate(text):
    found = candidates.parse(text)
    assert (found.kind, found.name) == ("stock" if text == "stock" else "version", text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("missing.diff", "there is no such file"), ("newest", "neither a diff nor a version"),
        ("a/source/tree", "git diff makes a diff of a source tree"), ("notes.txt", r"allowed are a diff \(.diff"),
    ],
)  # fmt: skip
def test_texts_that_are_no_candidate(text, said):
    with pytest.raises(ValidateError, match=said) as caught:
        candidates.parse(text)
    assert text in str(caught.value)
