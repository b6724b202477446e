"""The first bad commit of a candidate: the commits of a series, and the search for what each of them has brought.

``test_flow.py`` has a search in a repository from its beginning to the report.
"""

import itertools
import shutil
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.validate import candidates, diffs, findings, search, series
from benchmarks.validate.errors import UnusedError, ValidateError
from benchmarks.validate.findings import BENCHMARK, CHANGED, FLAKY, NEWLY_FAILS, SLOWER, SUITE, TOO_SLOW_RULE, Finding
from benchmarks.validate.series import Commit
from tests.benchmarks.validate.test_clones import BASE, Repository
from tests.benchmarks.validate.test_diffs import write

if shutil.which("git") is None:
    pytest.skip("git is not installed", allow_module_level=True)


# --- the commits


@pytest.fixture
def repository(tmp_path):
    """A branch ``topic`` with three commits since the release, of which the second one changes nothing."""
    made = Repository(tmp_path / "repository", **BASE)
    made("tag", "1.0")
    made("checkout", "-q", "-b", "topic")
    write(made.path, {"project/module.py": "1\n"})
    long = "with a subject that is longer than a line of a mail may be, so that it goes on"
    made("commit", "-q", "-a", "-m", f"The first: grün, {long}")
    made("commit", "-q", "--allow-empty", "-m", "The second\n\nFrom here on\n\nFrom nothing Mon Sep 17 00:00:00 2001\n")
    write(made.path, {"project/module.py": "1\n2\n", "project/other.py": "more\n"})
    made("commit", "-q", "-a", "-m", "[PATCH] The third")
    return made


def ids(repository, what="1.0..topic"):
    return repository("rev-list", "--reverse", what).split()


def after(made, number, tmp_path):
    """The files of the project after so many commits of a series."""
    tree = write(tmp_path / f"tree-{number}", BASE)
    candidate = made.first(number)
    diffs.apply(candidate.path, tree, ["project"], "project 1.0")
    return {path.name: path.read_text() for path in (tree / "project").iterdir()}


def test_the_commits_of_a_ref(repository, tmp_path):
    candidate = candidates.of_ref(str(repository.path), "topic", "", tmp_path / "cache")
    made = series.of(candidate, tmp_path / "cache")
    assert [each.id for each in made.commits] == ids(repository)
    assert made.commits[0].subject.startswith("The first: grün, with") and made.commits[0].subject.endswith("goes on")
    assert str(made.commits[1]) == f"{ids(repository)[1][:12]} The second"
    assert after(made, 1, tmp_path) == {"module.py": "1\n", "other.py": "other\n"}
    assert after(made, 3, tmp_path) == {"module.py": "1\n2\n", "other.py": "more\n"}
    # What a commit changes nothing of is the same candidate, which has been judged.
    first, second, third = map(made.first, (1, 2, 3))
    assert first and second and third and first.digest == second.digest != third.digest
    assert third.digest == candidate.digest


def test_the_mails_of_git_format_patch(repository, tmp_path):
    """With a letter before them; an empty commit has no mail."""
    mails = repository("format-patch", "--stdout", "--cover-letter", "1.0..topic")
    (tmp_path / "my.patch").write_text(mails + "\n")
    made = series.of(candidates.parse(str(tmp_path / "my.patch")), tmp_path / "cache")
    first, _, third = ids(repository)
    assert [each.id for each in made.commits] == [first, third]
    assert made.commits[0].subject.startswith("The first: grün, with") and made.commits[0].subject.endswith("goes on")
    assert made.commits[1].subject == "[PATCH] The third"
    assert after(made, 1, tmp_path) == {"module.py": "1\n", "other.py": "other\n"}
    assert after(made, 2, tmp_path) == {"module.py": "1\n2\n", "other.py": "more\n"}


def test_commits_that_take_all_back_are_no_candidate(repository, tmp_path):
    repository.commit({**BASE})
    repository.commit({"project/module.py": "3\n"})
    made = series.of(candidates.of_ref(str(repository.path), "topic", "", tmp_path / "cache"), tmp_path / "cache")
    assert made.first(4) is None and made.first(5) is not None


@pytest.mark.parametrize("setting", ["log.showSignature=true", "i18n.logOutputEncoding=latin1", "log.date=relative"])
def test_the_users_settings_do_not_matter(repository, tmp_path, setting):
    repository("config", *setting.split("="))
    made = series.of(candidates.of_ref(str(repository.path), "topic", "", tmp_path / "cache"), tmp_path / "cache")
    assert [each.id for each in made.commits] == ids(repository) and "grün" in made.commits[0].subject


def refused(candidate, tmp_path, said):
    with pytest.raises(ValidateError, match=said) as caught:
        series.of(candidate, tmp_path / "cache")
    return str(caught.value)


def test_what_is_no_series(repository, tmp_path):
    refused(None, tmp_path, "^--bisect looks for a commit, and there is no candidate; allowed are --git CLONE REF and")
    refused(candidates.parse("0.41.2"), tmp_path, "and --candidate 0.41.2 is no diff; allowed are")
    (tmp_path / "my.whl").write_text("")
    refused(candidates.parse(str(tmp_path / "my.whl")), tmp_path, "my.whl is no diff; allowed are")
    (tmp_path / "my.diff").write_text(repository("diff", "1.0..topic") + "\n")
    refused(candidates.parse(str(tmp_path / "my.diff")), tmp_path, "my.diff is a diff without commits; allowed are")
    (tmp_path / "one.patch").write_text(repository("format-patch", "--stdout", "-1", "topic") + "\n")
    one = refused(candidates.parse(str(tmp_path / "one.patch")), tmp_path, "one.patch has a single commit, ")
    assert f"{ids(repository)[-1][:12]} [PATCH] The third: there is no other" in one
    single = candidates.of_ref(str(repository.path), "topic~1..topic", "", tmp_path / "cache")
    refused(single, tmp_path, "topic~1..topic of .* has a single commit")


def test_commits_that_do_not_follow_one_on_the_other(repository, tmp_path):
    """What is merged has two first commits, and a range may take another branch's back."""
    repository("checkout", "-q", "main")
    repository.commit({"project/third.py": "3\n"})
    repository("checkout", "-q", "topic")
    other = candidates.of_ref(str(repository.path), "main..topic", "", tmp_path / "cache")
    said = refused(other, tmp_path, "its commits do not follow one on the other from main on")
    assert f"{ids(repository)[0][:12]} does not build on {repository('rev-parse', 'main')[:12]}" in said
    repository("merge", "-q", "--no-ff", "-m", "Merge", "main")
    merged = candidates.of_ref(str(repository.path), "topic", "", tmp_path / "cache")
    refused(merged, tmp_path, "does not build on|is a merge; give a range of commits without merges, BASE..REF")
    # As a CI system has it: one merge.
    repository("checkout", "-q", "--detach", "main")
    repository("merge", "-q", "--no-ff", "-m", "Merge", "topic~1")
    refused(
        candidates.of_ref(str(repository.path), "HEAD", "", tmp_path / "cache"), tmp_path, "is a merge; give a range"
    )


# --- the search


def finding(rule=NEWLY_FAILS, subject="tests.Some.test_a", within="suite", python="3.13.1", variant="candidate"):
    return Finding(rule, python, variant, within, subject, f"{variant}: {within}: {subject}: pass -> fail", "f.py", 1)


class Judged:
    """Commits, and how many of them bring what; those that are not known cannot be judged."""

    def __init__(self, monkeypatch, length, brought, unknown=(), unused=()):
        self.commits = [Commit(f"{number:040x}", f"Number {number}") for number in range(1, length + 1)]
        self._brought, self._unknown, self._unused = brought, unknown, unused
        self.judged: list[int] = []
        self.parts: Any = None
        self.said: list[str] = []
        monkeypatch.setattr(search.findings, "of", lambda outcome: outcome)

    def first(self, number):
        return SimpleNamespace(number=number)

    def judge(self, candidate, parts):
        self.judged.append(candidate.number)
        self.parts = parts
        if candidate.number in self._unknown:
            raise ValidateError("it does not apply")
        if candidate.number in self._unused:
            raise UnusedError("changes nothing")
        return [each for since, each in self._brought if candidate.number >= since]

    def search(self, found):
        made: Any = self
        return search.search(made, found, made.judge, self.said.append)


@pytest.mark.parametrize("length", range(2, 10))
def test_the_first_bad_commit_is_found(monkeypatch, length):
    """Each one, with few of them judged, and none twice."""
    for bad in range(1, length + 1):
        judged = Judged(monkeypatch, length, [(bad, finding())])
        made = judged.search([finding()])
        (culprit,) = made.culprits
        assert culprit.commits == [judged.commits[bad - 1]] and list(culprit.brought) == [finding().key]
        assert len(judged.judged) == len(set(judged.judged)) <= 1 + (length - 1).bit_length()
        assert [number for number, *_ in made.judged] == sorted(judged.judged)
        assert all((verdict == "bad") == (number >= bad) for number, verdict, _ in made.judged)


@pytest.mark.parametrize("length", range(2, 7))
def test_commits_that_cannot_be_judged(monkeypatch, length):
    """All that stand between the last good one and the first bad one may have brought it, and no others."""
    for bad in range(1, length + 1):
        for count in range(length):
            for unknown in itertools.combinations(range(1, length), count):
                judged = Judged(monkeypatch, length, [(bad, finding())], unknown)
                (culprit,) = judged.search([finding()]).culprits
                known = [0, *(number for number in range(1, length + 1) if number not in unknown)]
                good = max(number for number in known if number < bad)
                first = min(number for number in known if number >= bad)
                assert culprit.commits == judged.commits[good:first]
                assert len(judged.judged) == len(set(judged.judged))


def test_each_commit_with_what_it_has_brought(monkeypatch):
    one, other, slow = (
        finding(),
        finding(subject="tests.Some.test_b"),
        finding(TOO_SLOW_RULE, "commands/true", "native"),
    )
    judged = Judged(monkeypatch, 8, [(6, one), (3, slow), (6, other)])
    made = judged.search([one, other, slow])
    assert [(each.commits, list(each.brought)) for each in made.culprits] == [
        ([judged.commits[2]], [slow.key]), ([judged.commits[5]], [one.key, other.key])
    ]  # fmt: skip
    assert made.since(one.key) == str(judged.commits[5]) and made.since(("", "", "")) == ""
    assert len(judged.judged) == len(set(judged.judged)) <= 6
    assert made.lines()[0] == f"first bad commit: {judged.commits[2]}: {slow}"
    assert judged.said[0] == f"commit 8 of 8, {judged.commits[7]}: bad"


def test_what_does_not_come_again_is_nobodys(monkeypatch):
    """The last commit would be blamed for it."""
    judged = Judged(monkeypatch, 4, [(2, finding())])
    made = judged.search([finding(), finding(subject="tests.Some.test_b")])
    assert [each.commits for each in made.culprits] == [[judged.commits[1]]]
    (lost,) = made.lost
    assert "test_b" in lost and f"did not come again when it was run alone: {lost}" in made.lines()[-1]


def test_commits_of_which_nothing_is_used_are_good(monkeypatch):
    judged = Judged(monkeypatch, 4, [(3, finding())], unused=(1, 2))
    made = judged.search([finding()])
    assert made.culprits[0].commits == [judged.commits[2]]
    assert {number: verdict for number, verdict, _ in made.judged if number < 3} == {2: "good"}


def test_what_cannot_be_judged_at_all(monkeypatch):
    judged = Judged(monkeypatch, 3, [], unknown=(3,))
    made = judged.search([finding()])
    assert not made.culprits and len(made.lost) == 1 and judged.judged == [3]
    assert made.judged == [(3, "cannot be judged", "it does not apply")]


@pytest.mark.parametrize(
    ("looked_for", "there", "same"),
    [
        (SLOWER, TOO_SLOW_RULE, True), (TOO_SLOW_RULE, SLOWER, False), (SLOWER, SLOWER, True),
        (CHANGED, NEWLY_FAILS, True), (NEWLY_FAILS, CHANGED, False), (NEWLY_FAILS, FLAKY, False),
    ],
)  # fmt: skip
def test_what_is_worse_is_the_same(monkeypatch, looked_for, there, same):
    made = Judged(monkeypatch, 2, [(1, finding(there))]).search([finding(looked_for)])
    assert bool(made.culprits) == same


def test_only_what_was_found_is_run(monkeypatch):
    found = [
        finding(), finding(subject="tests.Some.test_b"), finding(subject="tests.Some.test_b", python="3.10.2"),
        finding(SUITE, "other", "other"), finding(subject="tests.Some.test_c", within="other"),
        finding(subject="setUpClass (tests.Some)", within="third"),
        finding(TOO_SLOW_RULE, "commands/true", "native"), finding(BENCHMARK, "commands/true", "eventlet"),
    ]  # fmt: skip
    made = search.parts(found)
    assert made["3.10.2"] == search.Part({"suite": ["tests.Some.test_b"]})
    tests = {"suite": ["tests.Some.test_a", "tests.Some.test_b"], "other": None, "third": None}
    assert made["3.13.1"] == search.Part(tests, ["commands/true"])


def test_what_is_looked_for(monkeypatch):
    fails, slower, flaky = finding(), finding(SLOWER, "commands/true", "native"), finding(FLAKY, "tests.Some.test_b")
    fastios = finding(variant="fastio")
    monkeypatch.setattr(findings, "of", lambda outcome: [fails, slower, flaky, fastios])
    outcome: Any = None
    assert search.sought(outcome) == [fails]
    assert search.sought(outcome, "COMMANDS/true") == [slower]
    assert search.sought(outcome, "test_b") == []
