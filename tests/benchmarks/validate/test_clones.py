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
        path.mkdir()
        self("init", "-q", "-b", "main")
        self.commit(files)

    def __call__(self, *arguments):
        # Nothing of the user's own decides on it.
        env = {"PATH": os.environ["PATH"], "HOME": str(self.path), "GIT_CONFIG_NOSYSTEM": "1"}
        names = ("-c", "user.name=A", "-c", "user.email=a@b")
        command = ["git", *names, *arguments]
        done = subprocess.run(command, cwd=self.path, env=env, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.strip()

    def commit(self, files, *tags):
        """Commit these files, and name it by tags; returns its hash."""
        write(self.path, files)
        self("add", "-A")
        self("commit", "-q", "--allow-empty", "-m", "Better")
        for tag in tags:
            self("tag", tag)
        return self("rev-parse", "HEAD")


@pytest.fixture
def upstream(tmp_path):
    """A project with releases on the main branch and on a stable one."""
    made = Repository(tmp_path / "upstream", **BASE)
    made.commit({"NEWS": "1.1\n"}, "1.1", "not-a-release")
    made("checkout", "-q", "-b", "stable/1")
    made.commit({"NEWS": "1.1 and more\n"})
    made("checkout", "-q", "main")
    made.commit({"project/other.py": "newer\n"})
    return made


@pytest.fixture
def clone(tmp_path, upstream):
    subprocess.run(["git", "clone", "-q", str(upstream.path), str(tmp_path / "clone")], check=True, timeout=60)
    made = Repository.__new__(Repository)
    made.path = tmp_path / "clone"
    return made


def find(clone, ref, release=""):
    change, diff = clones.find(str(clone.path), ref, release)
    return change, diff.decode()


def test_a_change_on_the_main_branch(clone):
    start = clone("rev-parse", "HEAD")
    clone("checkout", "-q", "-b", "topic")
    clone.commit({"project/module.py": "1\n"})
    commit = clone.commit({"project/module.py": "2\n"})
    change, diff = find(clone, "topic")
    assert (change.base, change.base_commit, change.commit, change.commits) == ("origin/main", start, commit, 2)
    # Not what the main branch has had since the release.
    assert "+2\n" in diff and "newer" not in diff
    assert change.name == f"topic@{commit[:12]}"
    assert str(change) == f"topic of {clone.path} (2 commits since origin/main, {start[:12]})"
    # Any other name of the same commit, from any directory of the clone.
    assert clones.find(str(clone.path / "project"), commit)[1].decode() == diff
    assert find(clone, commit[:10])[0].name == commit[:12]


def test_a_change_on_a_stable_branch(clone):
    clone("checkout", "-q", "-b", "topic", "origin/stable/1")
    clone.commit({"project/module.py": "1\n"})
    change, diff = find(clone, "HEAD")
    assert change.base == "origin/stable/1"
    assert "module.py" in diff and "NEWS" not in diff


def test_a_change_that_has_been_fetched(clone, upstream):
    """As one of Gerrit's or of GitHub's: no branch of the clone has it."""
    upstream("checkout", "-q", "-b", "elsewhere")
    commit = upstream.commit({"project/module.py": "1\n"})
    upstream("update-ref", "refs/changes/45/12345/1", "HEAD")
    upstream("checkout", "-q", "main")
    upstream("branch", "-q", "-D", "elsewhere")
    clone("fetch", "-q", "origin", "refs/changes/45/12345/1")
    change, _ = find(clone, "FETCH_HEAD")
    assert (change.base, change.commit, change.commits) == ("origin/main", commit, 1)
    clone("update-ref", "refs/pull/7/head", "FETCH_HEAD")
    assert find(clone, "refs/pull/7/head")[0].commit == commit
    # The merge that GitHub makes: what the change brings to the branch.
    clone("checkout", "-q", "--detach", "origin/main")
    clone("merge", "-q", "--no-ff", "-m", "Merge", commit)
    clone("update-ref", "refs/pull/7/merge", "HEAD")
    merged, diff = find(clone, "refs/pull/7/merge")
    assert merged.base == "origin/main" and "+1\n" in diff


def test_what_is_merged_is_judged_from_the_last_release_on(clone, upstream):
    """Also where the branch is one's own, as in Zuul's clones, which have no remotes."""
    change, diff = find(clone, "origin/main")
    assert (change.base, change.commits) == ("1.1", 1)
    assert "newer" in diff
    assert find(upstream, "main")[0].base == "1.1"
    upstream.commit({"project/module.py": "1\n"}, "v1.2")
    assert find(upstream, "main")[0].base == "1.1", "a release does not build on itself"
    upstream.commit({"project/module.py": "2\n"}, "nonsense-9.9")
    assert find(upstream, "main")[0].base == "v1.2"
    # Another release is asked for by --stock.
    assert find(upstream, "main", release="1.1")[0].base == "1.1"
    assert find(upstream, "main", release="1.2")[0].base == "v1.2"


def test_commits_of_ones_own_on_the_main_branch(clone):
    commit = clone.commit({"project/module.py": "1\n"})
    change, diff = find(clone, "main")
    assert (change.base, change.commit, change.commits) == ("origin/main", commit, 1)
    assert "newer" not in diff


def test_a_range(clone):
    start = clone("rev-parse", "HEAD")
    clone.commit({"project/module.py": "1\n"})
    clone.commit({"project/other.py": "2\n"})
    for ref in ("HEAD~1..HEAD", "HEAD~1..", "HEAD~1...HEAD"):
        change, diff = find(clone, ref)
        assert change.commits == 1 and "other.py" in diff and "module.py" not in diff
    clone("checkout", "-q", "-b", "topic", "HEAD~1")
    clone.commit({"project/third.py": "3\n"})
    # From the place where the two have parted, and not with the other's commits taken back.
    assert "other.py" not in find(clone, "main...topic")[1]
    assert "other.py" in find(clone, "main..topic")[1]
    assert find(clone, f"{start}..topic")[0].base == start


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("topc", "has no commit 'topc'.*has to be fetched first; did you mean 'topic'"),
        ("--all", "has no commit '--all'"),
        ("", "has no commit ''"),
        ("nothing..topic", "has no commit 'nothing'"),
        ("HEAD:NEWS", "has no commit 'HEAD:NEWS'"),
        ("main..main", "it has no difference from main"),
        ("empty", "it has no difference from origin/main"),
        ("orphan", "no main or stable branch and no release's tag that it builds on; give a range, BASE..REF$"),
        ("main...orphan", "the two have no commit in common$"),
    ],
)
def test_what_there_is_not(clone, ref, said):
    clone("checkout", "-q", "-b", "topic")
    clone.commit({"project/module.py": "1\n"})
    clone("checkout", "-q", "-b", "empty", "main")
    clone.commit({})
    clone("checkout", "-q", "--orphan", "orphan")
    clone.commit({"project/module.py": "1\n"})
    with pytest.raises(ValidateError, match=said) as caught:
        find(clone, ref)
    assert str(caught.value).startswith(f"--git {clone.path} {ref}: ")


def test_what_is_no_clone(tmp_path):
    for name, said in (("nothing", "there is no such directory"), ("empty", "the directory is no git repository")):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(ValidateError, match=f"--git .*{name} HEAD: {said}"):
            clones.find(str(tmp_path / name), "HEAD")


def test_without_git(monkeypatch, clone):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValidateError, match="--git needs git, which is not installed"):
        find(clone, "HEAD")


def test_a_shallow_clone_lacks_what_it_builds_on(tmp_path, upstream):
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", "--no-tags", f"file://{upstream.path}", str(tmp_path / "shallow")],
        check=True, timeout=60,
    )  # fmt: skip
    with pytest.raises(ValidateError, match="the clone is shallow: fetch all of it"):
        clones.find(str(tmp_path / "shallow"), "HEAD")


@pytest.mark.parametrize(
    "settings",
    [
        {"diff.noprefix": "true"}, {"diff.mnemonicPrefix": "true"}, {"color.ui": "always"}, {"diff.external": "false"},
        {"diff.renames": "copies"}, {"core.quotePath": "true"}, {"diff.context": "0"},
    ],
    ids=lambda settings: next(iter(settings)),
)  # fmt: skip
def test_the_diff_applies_whatever_the_user_has_set(clone, tmp_path, settings):
    tree = write(tmp_path / "tree", BASE)
    clone("checkout", "-q", "-b", "topic", "1.1")
    clone("mv", "project/other.py", "project/renämed.py")
    clone.commit({"project/module.py": "one\r\ntwo"})
    (clone.path / "project" / "bytes.dat").write_bytes(b"\0\xff\r\n")
    (clone.path / "project" / "latin.py").write_bytes(b"# \xe4\n")
    clone.commit({})
    for name, value in settings.items():
        clone("config", name, value)
    candidate = candidates.of_ref(str(clone.path), "topic", "", tmp_path / "cache")
    assert candidate.kind == "diff" and candidate.change is not None
    diffs.apply(candidate.path, tree, ["project"], "project 1.1")
    for file in (clone.path / "project").iterdir():
        assert (tree / "project" / file.name).read_bytes() == file.read_bytes()
    assert not (tree / "project" / "other.py").exists()


def test_another_commit_with_the_same_difference_is_the_same_candidate(clone, tmp_path):
    clone("checkout", "-q", "-b", "topic")
    clone.commit({"project/module.py": "1\n"})
    found = candidates.of_ref(str(clone.path), "topic", "", tmp_path / "cache")
    clone("commit", "-q", "--amend", "-m", "Other words")
    again = candidates.of_ref(str(clone.path), "topic", "", tmp_path / "cache")
    assert (again.digest, again.path) == (found.digest, found.path)
    assert again.name != found.name
    clone.commit({"project/module.py": "2\n"})
    assert candidates.of_ref(str(clone.path), "topic", "", tmp_path / "cache").digest != found.digest


def test_a_series_of_mails_of_git_format_patch(clone, tmp_path):
    clone("checkout", "-q", "-b", "topic", "1.1")
    clone.commit({"project/module.py": "one\ntwo\n"})
    clone.commit({"project/module.py": "one\ntwo\nthree\n", "project/other.py": "again\n"})
    series = tmp_path / "series.patch"
    series.write_text(clone("format-patch", "--stdout", "1.1..topic") + "\n")
    assert candidates.parse(str(series)).kind == "diff"
    tree = write(tmp_path / "tree", BASE)
    diffs.apply(series, tree, ["project"], "project 1.1")
    assert (tree / "project/module.py").read_text() == "one\ntwo\nthree\n"
    assert (tree / "project/other.py").read_text() == "again\n"
