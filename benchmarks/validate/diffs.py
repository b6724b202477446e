"""Applies a unified diff to a source tree, by git: strictly, and mails of ``git format-patch`` as well."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import git
from .errors import UnusedError, ValidateError


def apply(
    diff: Path, tree: Path, parts: Sequence[str], name: str, without: Sequence[str] = (), called: str = ""
) -> list[str]:
    """Apply to ``tree`` what ``diff`` changes in these ``parts`` of it, the directories that matter.

    A change upstream also touches news, documentation and CI, which a release may not have, or not in that state.

    :param name: of the tree, for messages
    :param without: patterns of paths in the parts that are left out as well
    :param called: how messages call the diff, if not by its file
    :returns: the paths in the parts that the diff changes
    :raises ValidateError: if it does not apply, or changes nothing in the parts
    """
    git.check("applying a diff")
    called = called or str(diff)
    listed = {strip: _git(tree, "--numstat", f"-p{strip}", str(diff.resolve())) for strip in (1, 0)}
    paths = {strip: _paths(done.stdout) for strip, done in listed.items() if done.returncode == 0}
    if not paths:
        raise ValidateError(f"{called} is no diff that git reads: {git.said(listed[1])}")
    inside = {strip: [path for path in found if path.partition("/")[0] in parts] for strip, found in paths.items()}
    strip = next((strip for strip, found in inside.items() if found), None)
    if strip is None:
        raise UnusedError(
            f"{called} changes nothing of {name} that is used: it changes {', '.join(next(iter(paths.values())))}, "
            f"and looked at are {', '.join(part + '/' for part in parts)}"
        )
    # The first that matches counts.
    chosen = [*(f"--exclude={pattern}" for pattern in without), *(f"--include={part}/*" for part in parts)]
    applied = _git(tree, f"-p{strip}", "--whitespace=nowarn", *chosen, str(diff.resolve()))
    if applied.returncode:
        raise ValidateError(f"{called} does not apply to {name}:\n{git.said(applied)}")
    return inside[strip]


def _paths(numstat: bytes) -> list[str]:
    return [line.split("\t")[2] for line in numstat.decode(errors="replace").splitlines()]


def _git(tree: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    # Below a ceiling git does not look for a repository, whose paths it would take those of the diff to be.
    return git.run(tree, "apply", *arguments, GIT_CEILING_DIRECTORIES=str(tree.resolve().parent))
