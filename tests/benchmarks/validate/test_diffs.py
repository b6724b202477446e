"""Applying diffs to source trees, and to what is installed."""

import difflib
import shutil
import subprocess

import pytest

from benchmarks.validate import diffs
from benchmarks.validate.errors import ValidateError

if shutil.which("git") is None:
    pytest.skip("git is not installed", allow_module_level=True)

BEFORE = {
    "project/module.py": "one\ntwo\nthree\n", "project/gone.py": "old\n", "tests/module_test.py": "tests\n",
    "NEWS": "news\n",
}  # fmt: skip
AFTER = {
    "project/module.py": "one\n2\nthree\n", "project/new.py": "new\n", "tests/module_test.py": "more tests\n",
    "NEWS": "newer news\n",
}  # fmt: skip


def write(tree, files):
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tree


def diff_of(before, after, prefixes=("a/", "b/")):
    lines: list[str] = []
    for name in sorted({**before, **after}):
        old, new = (files.get(name, "").splitlines(True) for files in (before, after))
        one, other = [
            prefix + name if name in files else "/dev/null"
            for prefix, files in zip(prefixes, (before, after), strict=True)
        ]
        lines += difflib.unified_diff(old, new, one, other)
    return "".join(lines)


@pytest.fixture
def tree(tmp_path):
    return write(tmp_path / "tree", BEFORE)


@pytest.fixture
def save(tmp_path):
    def save(text):
        path = tmp_path / "my.diff"
        path.write_text(text)
        return path

    return save


def apply(diff, tree, parts=("project", "tests")):
    return diffs.apply(diff, tree, parts, "project 1.0")


@pytest.mark.parametrize("prefixes", [("a/", "b/"), ("", ""), ("old/", "new/")])
def test_relevant_changes_are_applied_and_the_rest_left_out(tree, save, prefixes):
    apply(save(diff_of(BEFORE, AFTER, prefixes)), tree)
    assert (tree / "project/module.py").read_text() == "one\n2\nthree\n"
    assert (tree / "project/new.py").read_text() == "new\n"
    assert not (tree / "project/gone.py").exists()
    assert (tree / "tests/module_test.py").read_text() == "more tests\n"
    assert (tree / "NEWS").read_text() == "news\n"


def test_a_mail_of_git_format_patch(tree, save):
    mail = "From 0123456789 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nSubject: [PATCH] Better\n\nWhy.\n---\n"
    apply(save(mail + diff_of(BEFORE, AFTER) + "-- \n2.39.5\n"), tree)
    assert (tree / "project/module.py").read_text() == "one\n2\nthree\n"


def test_a_tree_in_a_repository(tree, save):
    """git would take the paths to be those of the repository, and apply nothing without a word."""
    subprocess.run(["git", "init", "-q", str(tree.parent)], check=True)
    apply(save(diff_of(BEFORE, AFTER)), tree)
    assert (tree / "project/module.py").read_text() == "one\n2\nthree\n"


def test_one_that_does_not_apply(tree, save):
    (tree / "project/module.py").write_text("something\nelse\n")
    with pytest.raises(ValidateError, match="does not apply to project 1.0") as caught:
        apply(save(diff_of(BEFORE, AFTER)), tree)
    assert "project/module.py" in str(caught.value)
    # As a whole or not at all.
    assert (tree / "project/gone.py").exists()


def test_one_that_changes_nothing_that_is_used(tree, save):
    with pytest.raises(ValidateError, match="changes nothing of project 1.0 that is used: it changes other/module.py"):
        apply(save(diff_of({"other/module.py": "news\n"}, {"other/module.py": "newer\n"})), tree)


@pytest.mark.parametrize("text", ["", "no diff at all\n"])
def test_texts_that_are_no_diff(tree, save, text):
    with pytest.raises(ValidateError, match="is no diff"):
        apply(save(text), tree)


def test_installed_files_follow(tree, save, tmp_path):
    installed = write(tmp_path / "site-packages", {**BEFORE, "project/_version.py": "made at build time\n"})
    after = shutil.copytree(tree, tmp_path / "after")
    apply(save(diff_of(BEFORE, AFTER)), after)
    names = diffs.changed(tree, after, "project")
    assert names == ["project/gone.py", "project/module.py", "project/new.py"]
    diffs.overlay(names, tree, after, installed)
    assert diffs.changed(installed, after, "project") == ["project/_version.py"]


def test_the_installed_file_is_something_else(tree, tmp_path):
    after = write(shutil.copytree(tree, tmp_path / "after"), {"project/module.py": "2\n"})
    installed = write(tmp_path / "site-packages", {**BEFORE, "project/module.py": "built\n"})
    with pytest.raises(ValidateError, match="project/module.py of the sdist is not what the release installs"):
        diffs.overlay(["project/module.py"], tree, after, installed)
