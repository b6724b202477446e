"""A candidate in a clone of the project: a ref, as a diff from the commit that it builds on. The clone is only read.

Whatever is to be judged has been fetched before, by its owner's own git: a change of Gerrit's (``refs/changes/…``), a
pull request of GitHub's (``refs/pull/…``), or what was fetched last (``FETCH_HEAD``).
"""

from dataclasses import dataclass
from pathlib import Path

from .diffs import git, said
from .errors import ValidateError

#: The base of a ref without one: the first of these that exists.
BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
#: The diff is made for ``git apply``, whatever is set in the user's configuration.
_DIFF = (
    "diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv",
    "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip


@dataclass(frozen=True)
class Change:
    """The change of a ref."""

    #: as the user gave them
    clone: str
    ref: str
    #: branch or commit that it builds on
    base: str
    #: in hexadecimal
    base_commit: str
    commit: str

    @property
    def name(self) -> str:
        short = self.commit[:12]
        return short if self.commit.startswith(self.ref) else f"{self.ref}@{short}"

    def __str__(self) -> str:
        return f"{self.ref} of {self.clone} (since {self.base}, {self.base_commit[:12]})"


def find(clone: str, ref: str) -> tuple[Change, bytes]:
    """Return the change of ``ref``, and the diff.

    :param ref: any name of a commit that git knows, since it has parted from the main branch; or a range BASE..REF
        (from BASE) or BASE...REF (from where the two have parted)
    :raises ValidateError: if there is no such repository or ref, nothing that it builds on, or no difference
    """
    asked, path = f"--git {clone} {ref}", Path(clone)
    if not path.is_dir():
        raise ValidateError(f"{asked}: there is no such directory")

    def run(*arguments: str) -> bytes:
        done = git(path, *arguments)
        if done.returncode:
            raise ValidateError(f"{asked}: git {arguments[0]} failed: {said(done)}")
        return done.stdout

    def commit_of(name: str) -> str:
        # git takes a dash for an option.
        done = git(path, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return "" if done.returncode or name.startswith("-") else done.stdout.decode().strip()

    shallow = run("rev-parse", "--is-shallow-repository").strip() == b"true"
    advice = "; the clone is shallow: fetch all of it (git fetch --unshallow, fetch-depth: 0)" if shallow else ""
    dots = "..." if "..." in ref else ".." if ".." in ref else ""
    base, end = (each or "HEAD" for each in ref.split(dots, 1)) if dots else ("", ref)
    base = base or next((each for each in BRANCHES if commit_of(each)), "")
    if not base:
        raise ValidateError(f"{asked}: the clone has none of {', '.join(BRANCHES)}; give a range, BASE..REF{advice}")
    for name in (end, base):
        if not commit_of(name):
            raise ValidateError(
                f"{asked}: the clone has no commit {name!r}; a change on a server has to be fetched first{advice}"
            )
    commit, start = commit_of(end), commit_of(base)
    if dots != "..":
        start = git(path, "merge-base", start, commit).stdout.decode().strip()
        if not start:
            raise ValidateError(f"{asked}: it has no commit in common with {base}{advice}")
    diff = run(*_DIFF, start, commit)
    if not diff:
        raise ValidateError(f"{asked}: it has no difference from {base} ({start[:12]}); give a range, BASE..REF")
    return Change(clone, ref, base, start, commit), diff
