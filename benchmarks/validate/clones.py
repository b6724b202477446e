"""A candidate in a clone of the project: a ref, as a diff from the commit that it builds on.

Whatever is to be judged has been fetched before, by its owner's own git: a change of Gerrit's (``refs/changes/…``), a
pull request of GitHub's (``refs/pull/…``), or what was fetched last (``FETCH_HEAD``). The clone is only read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from fastio.errors import meant

from . import git
from .errors import ValidateError

#: Branches that releases are made from, as OpenStack, CPython and others call them.
_BRANCH = re.compile(r"(main|master|(stable|unmaintained)/.+|\d+\.\d+)")
#: The diff is made for ``git apply``, whatever is set in the user's configuration.
_DIFF = (
    "diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv",
    "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip


@dataclass(frozen=True)
class Change:
    """What a ref changes."""

    #: as the user gave them
    clone: str
    ref: str
    #: branch or tag that it builds on, or what the user gave
    base: str
    #: in hexadecimal
    base_commit: str
    commit: str
    #: how many there are from the base on
    commits: int

    @property
    def name(self) -> str:
        short = self.commit[:12]
        return short if self.commit.startswith(self.ref) else f"{self.ref}@{short}"

    def __str__(self) -> str:
        several = "s" * (self.commits != 1)
        since = f"{self.commits} commit{several} since {self.base}, {self.base_commit[:12]}"
        return f"{self.ref} of {self.clone} ({since})"


def find(clone: str, ref: str, release: str = "") -> tuple[Change, bytes]:
    """What ``ref`` changes, and the diff.

    :param ref: any name of a commit that git knows, or a range BASE..REF (from BASE) or BASE...REF (from where the two
        have parted)
    :param release: that stock is; empty for the newest
    :raises ValidateError: if there is no such repository or ref, nothing that it builds on, or no difference
    """
    git.check("--git")
    found = _Clone(clone, ref)
    start, dots, end = _range(ref)
    commit = found.commit(end)
    if dots:
        base, base_commit = start, found.commit(start)
        if dots == "...":
            base_commit = found.merge_base(base_commit, commit) or found.nothing_in_common()
    else:
        base, base_commit = found.base(commit, release)
    diff = found.git(*_DIFF, base_commit, commit)
    if not diff:
        raise ValidateError(f"{found}: it has no difference from {base} ({base_commit[:12]})")
    return Change(clone, ref, base, base_commit, commit, found.count(base_commit, commit)), diff


def _range(ref: str) -> tuple[str, str, str]:
    """Its two ends, where git takes HEAD for an empty one, and the dots; without any there is only an end."""
    dots = "..." if "..." in ref else ".." if ".." in ref else ""
    if not dots:
        return "", "", ref
    start, _, end = ref.partition(dots)
    return start or "HEAD", dots, end or "HEAD"


class _Clone:
    def __init__(self, clone: str, ref: str) -> None:
        self._path = Path(clone)
        self._asked = f"--git {clone} {ref}"
        if not self._path.is_dir():
            raise ValidateError(f"{self}: there is no such directory")
        done = git.run(self._path, "rev-parse", "--git-dir")
        if done.returncode:
            raise ValidateError(f"{self}: the directory is no git repository: {git.said(done)}")

    def __str__(self) -> str:
        return self._asked

    def git(self, *arguments: str) -> bytes:
        done = git.run(self._path, *arguments)
        if done.returncode:
            raise ValidateError(f"{self}: git {arguments[0]} failed: {git.said(done)}")
        return done.stdout

    def commit(self, name: str) -> str:
        """:raises ValidateError: if there is none of that name"""
        done = git.run(self._path, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        # git takes a dash for an option.
        if done.returncode or name.startswith("-"):
            known = [name for _, name, _ in self._refs()]
            raise ValidateError(
                f"{self}: the clone has no commit {name!r}; a change on a server has to be fetched first"
                f"{meant(name, known)}{self._shallow()}"
            )
        return done.stdout.decode().strip()

    def merge_base(self, one: str, other: str) -> str:
        """Empty if the two have nothing in common."""
        return git.run(self._path, "merge-base", one, other).stdout.decode().strip()

    def count(self, base: str, commit: str) -> int:
        return int(self.git("rev-list", "--count", f"{base}..{commit}"))

    def nothing_in_common(self) -> str:
        raise ValidateError(f"{self}: the two have no commit in common{self._shallow()}")

    def base(self, commit: str, release: str) -> tuple[str, str]:
        """What a commit builds on, and the commit where it has parted: the nearest branch, or release's tag.

        A commit that is on such a branch itself is judged from the last release on.
        """
        found: list[tuple[str, str]] = []
        for name, tip in self._branches():
            base = self.merge_base(commit, tip)
            if base == commit:
                found = []
                break
            if base:
                found.append((name, base))
        found += [(name, base) for name, base in self._release(commit, release) if base != commit]
        if not found:
            raise ValidateError(
                f"{self}: the clone has no main or stable branch and no release's tag that it builds on; give a range, "
                f"BASE..REF{self._shallow()}"
            )
        return min(found, key=lambda each: self.count(each[1], commit))

    def _branches(self) -> list[tuple[str, str]]:
        """Name and tip of each branch that releases are made from: the remotes', or one's own if there are none."""
        for kind, own in (("refs/remotes/", False), ("refs/heads/", True)):
            found = [
                (name, commit)
                for full, name, commit in self._refs()
                if full.startswith(kind) and _BRANCH.fullmatch(name if own else name.partition("/")[2])
            ]
            if found:
                return found
        return []

    def _release(self, commit: str, release: str) -> Iterator[tuple[str, str]]:
        """The tag of this release, or else of the newest one that a commit has, and where the commit has parted."""
        merged = () if release else (f"--merged={commit}",)
        tags = [(version, name) for name in self._tags(*merged) if (version := _version(name)) is not None]
        if release:
            asked = _version(release)
            tags = [each for each in tags if each[0] == asked]
        # One that names the commit itself is not what it builds on.
        for _, name in sorted(tags, reverse=True):
            base = self.merge_base(commit, name)
            if base and base != commit:
                yield name, base
                return

    def _tags(self, *options: str) -> list[str]:
        return self.git("tag", "--list", *options).decode().split()

    def _refs(self) -> list[tuple[str, str, str]]:
        """Of each: its full name, its short one, and its commit."""
        listed = self.git("for-each-ref", "--format=%(refname) %(objectname)").decode(errors="replace")
        refs = [line.split(" ") for line in listed.splitlines()]
        return [(full, full.split("/", 2)[-1], commit) for full, commit in refs]

    def _shallow(self) -> str:
        """What to do, if the clone has only the last commits."""
        shallow = self.git("rev-parse", "--is-shallow-repository").decode().strip() == "true"
        return "; the clone is shallow: fetch all of it (git fetch --unshallow, fetch-depth: 0)" if shallow else ""


def _version(name: str) -> Version | None:
    try:
        return Version(name)
    except InvalidVersion:
        return None
