"""The commits that a candidate consists of, in their order: those of a ref, or the mails of ``git format-patch``.

The first ones of them together are a candidate as well. That is what :mod:`.bisect` looks for the first bad one with.
"""

import email
import email.header
import email.policy
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from . import candidates, clones
from .candidates import Candidate
from .errors import ValidateError

#: As each mail of ``git format-patch`` begins, whatever the commit's message says.
_MAIL = re.compile(rb"^From (?P<commit>[0-9a-f]{40}) [A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]+ \d{4}$", re.MULTILINE)
#: What ``git format-patch`` puts before a subject.
_PREFIX = re.compile(r"^\[[^]]*PATCH[^]]*\]\s*")


@dataclass(frozen=True)
class Commit:
    """One of the commits."""

    #: in hexadecimal
    id: str
    subject: str

    def __str__(self) -> str:
        return f"{self.id[:12]} {self.subject}"


class Series:
    """The commits of a candidate."""

    def __init__(self, candidate: Candidate, commits: Sequence[Commit], diffs: Sequence[bytes], cache: Path) -> None:
        """
        :param diffs: what the first commit changes, the first two, and so on
        :param cache: where the diffs are kept
        """
        self.commits = list(commits)
        self._candidate = candidate
        self._diffs = diffs
        self._cache = cache

    def first(self, number: int) -> Candidate | None:
        """What the first so many commits change together; None if that is nothing."""
        diff = self._diffs[number - 1]
        if not diff.strip():
            return None
        digest, kept = candidates.keep(diff, self._cache)
        text = f"{self._candidate.name} up to {self.commits[number - 1].id[:12]}"
        return replace(self._candidate, text=text, digest=digest, kept=kept, change=None)


def of(candidate: Candidate | None, cache: Path) -> Series:
    """The commits of a candidate.

    :param cache: where diffs are kept
    :raises ValidateError: if it has none, or a single one, or if they do not follow one on the other
    """
    if candidate is None or candidate.kind != "diff":
        given = "there is no candidate" if candidate is None else f"--candidate {candidate.text} is no diff"
        raise ValidateError(
            f"--bisect looks for a commit, and {given}; allowed are --git CLONE REF and a file of "
            "git format-patch --stdout"
        )
    made = _of_mails(candidate, cache) if candidate.change is None else _of_change(candidate, cache)
    if len(made.commits) == 1:
        raise ValidateError(f"--bisect: {candidate.text} has a single commit, {made.commits[0]}: there is no other")
    return made


def _of_change(candidate: Candidate, cache: Path) -> Series:
    assert candidate.change is not None
    found = clones.commits(candidate.change)
    return Series(candidate, [Commit(*each) for each in found], clones.diffs(candidate.change, found), cache)


def _of_mails(candidate: Candidate, cache: Path) -> Series:
    content = candidate.path.read_bytes()
    starts = [(found.start(), found["commit"].decode()) for found in _MAIL.finditer(content)]
    ends = [start for start, _ in starts[1:]]
    commits: list[Commit] = []
    diffs: list[bytes] = []
    for (start, commit), end in zip_longest(starts, ends):
        mail = content[start:end]
        # A letter that goes before the series has no change.
        if b"\ndiff --git " in mail:
            commits.append(Commit(commit, _subject(mail)))
            diffs.append((diffs[-1] if diffs else b"") + mail)
    if not commits:
        raise ValidateError(
            f"--bisect: {candidate.text} is a diff without commits; allowed are --git CLONE REF and a file of "
            "git format-patch --stdout"
        )
    return Series(candidate, commits, diffs, cache)


def _subject(mail: bytes) -> str:
    header = email.message_from_bytes(mail.partition(b"\n")[2], policy=email.policy.default)
    return _PREFIX.sub("", " ".join(str(header.get("Subject", "")).split()))
