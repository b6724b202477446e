"""A ref of a clone as a candidate: what it builds on is found, and what cannot be judged is named."""

import os
import shutil
import subprocess

import pytest

from benchmarks.validate import candidates, clones, diffs
from benchmarks.validate.errors import ValidateError
from tests.benchmarks.validate.test_diffs import write

if shutil.which("git") is None:
    pytest.skip("git is not installed", allow_module_level=True)

BASE = {"project/module.py": "one\n", "project/other.py": "other\n", "NEWS": "1.0\n"}


class Repository:
    """One that is made as the tests need it."""

    def __init__(self, path, **files: str):
        self.path = path
        if files:
            path.mkdir()
            self("init", "-q", "-b", "main")
            self.commit(files)

    def __call__(self, *arguments):
        # Nothing of the user's own decides on it.
        env = {"PATH": os.environ["PATH"], "HOME": str(self.path), "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@b", *arguments]
        done = subprocess.run(command, cwd=self.path, env=env, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.strip()

    def commit(self, files):
        """Commit these files; returns the hash."""
        write(self.path, files)
        self("add", "-A")
        self("commit", "-q", "--allow-empty", "-m", "Better")
        return self("rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path):
    """Of a project whose main branch has a commit since the release; ``topic`` has two more."""
    upstream = Repository(tmp_path / "upstream", **BASE)
    upstream("tag", "1.1")
    upstream.commit({"project/other.py": "newer\n"})
    subprocess.run(["git", "clone", "-q", str(upstream.path), str(tmp_path / "clone")], check=True, timeout=60)
    made = Repository(tmp_path / "clone")
    made("checkout", "-q", "-b", "topic")
    made.commit({"project/module.py": "1\n"})
    made.commit({"project/module.py": "2\n", "project/third.py": "3\n"})
    # The branch goes on.
    upstream.commit({"NEWS": "2.0\n"})
    made("fetch", "-q", "origin")
    return made


@pytest.mark.parametrize(
    ("ref", "base", "has", "has_not"),
    [
        ("topic", "origin/HEAD", "+2", "newer"),
        ("refs/pull/7/head", "origin/HEAD", "third.py", "NEWS"),
        ("FETCH_HEAD", "origin/HEAD", "+2", "NEWS"),
        ("HEAD~1..HEAD", "HEAD~1", "third.py", "-one"),
        ("HEAD~1..", "HEAD~1", "third.py", "-one"),
        ("1.1..topic", "1.1", "newer", "NEWS"),
        ("origin/main...topic", "origin/main", "+2", "NEWS"),
        ("origin/main..topic", "origin/main", "NEWS", "newer"),
    ],
)
def test_the_changes_of_a_ref(clone, ref, base, has, has_not):
    clone("update-ref", "refs/pull/7/head", "topic")
    clone("fetch", "-q", ".", "topic")
    change, diff = clones.find(str(clone.path / "project"), ref)
    assert change.base == base and change.commit == clone("rev-parse", "topic")
    assert has in diff.decode() and has_not not in diff.decode()
    assert change.name == f"{ref}@{change.commit[:12]}"
    assert str(change) == f"{ref} of {clone.path}/project (since {base}, {change.base_commit[:12]})"


def test_a_merge_without_a_branch(clone):
    """As actions/checkout leaves it."""
    clone("checkout", "-q", "--detach", "origin/main")
    clone("merge", "-q", "--no-ff", "-m", "Merge", "topic")
    clone("remote", "set-head", "origin", "--delete")
    change, diff = clones.find(str(clone.path), "HEAD")
    assert change.base == "origin/main"
    assert "third.py" in diff.decode() and "NEWS" not in diff.decode()


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("topc", "has no commit 'topc'; a change on a server has to be fetched first"),
        ("--all", "has no commit '--all'"),
        ("nothing..topic", "has no commit 'nothing'"),
        ("HEAD:NEWS", "has no commit 'HEAD:NEWS'"),
        ("main..main", "it has no difference from main"),
        ("origin/main", "it has no difference from origin/HEAD .*; give a range, BASE..REF"),
        ("orphan", "it has no commit in common with origin/HEAD$"),
    ],
)
def test_missing_refs(clone, ref, said):
    clone("checkout", "-q", "--orphan", "orphan")
    clone.commit({"project/module.py": "1\n"})
    with pytest.raises(ValidateError, match=said) as caught:
        clones.find(str(clone.path), ref)
    assert str(caught.value).startswith(f"--git {clone.path} {ref}: ")


def test_directories_that_are_no_clone(clone, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", f"file://{tmp_path}/upstream", str(tmp_path / "shallow")],
        check=True, timeout=60,
    )  # fmt: skip
    other = Repository(tmp_path / "other", **BASE)
    other("branch", "-q", "-m", "main", "trunk")
    for name, said in (
        ("nothing", "there is no such directory"), ("empty", "not a git repository"),
        ("shallow", "give a range, BASE..REF$"), ("other", "has none of origin/HEAD, .*; give a range"),
    ):  # fmt: skip
        with pytest.raises(ValidateError, match=f"--git .*{name} HEAD: .*{said}"):
            clones.find(str(tmp_path / name), "HEAD")
    with pytest.raises(ValidateError, match="the clone is shallow: fetch all of it"):
        clones.find(str(tmp_path / "shallow"), "HEAD~1..HEAD")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValidateError, match="git, which applies diffs and reads clones, is not installed"):
        clones.find(str(clone.path), "topic")


def test_the_diff_applies_whatever_the_user_has_set(clone, tmp_path):
    clone("checkout", "-q", "-B", "topic", "1.1")
    clone("mv", "project/other.py", "project/renämed.py")
    clone.commit({"project/module.py": "one\r\ntwo"})
    (clone.path / "project" / "bytes.dat").write_bytes(b"\0\xff\r\n")
    (clone.path / "project" / "latin.py").write_bytes(b"# \xe4\n")
    clone.commit({})
    for name, value in {
        "diff.noprefix": "true", "color.ui": "always", "diff.external": "false", "diff.renames": "copies",
        "core.quotePath": "true", "diff.context": "0",
    }.items():  # fmt: skip
        clone("config", name, value)
    tree = write(tmp_path / "tree", BASE)
    candidate = candidates.of_ref(str(clone.path), "1.1..topic", tmp_path / "cache")
    assert candidate.kind == "diff" and candidate.change is not None
    diffs.apply(candidate.path, tree, ["project"], "project 1.1")
    for file in (clone.path / "project").iterdir():
        assert (tree / "project" / file.name).read_bytes() == file.read_bytes()
    assert not (tree / "project" / "other.py").exists()
    # Other words in the commit are the same candidate, by another name.
    clone("commit", "-q", "--amend", "-m", "Other words")
    again = candidates.of_ref(str(clone.path), "1.1..topic", tmp_path / "cache")
    assert (again.digest, again.path) == (candidate.digest, candidate.path) and again.name != candidate.name
