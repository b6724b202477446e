"""Diffs: applied to a source tree by git, strictly, and then to what is installed of it."""

import filecmp
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from .errors import ValidateError

#: Variables that a hook of git's sets; they would decide on the repository.
_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


def git(directory: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in a directory, with these variables of its environment, and messages in English.

    :raises ValidateError: if it is not installed
    """
    if shutil.which("git") is None:
        raise ValidateError("git, which applies diffs and reads clones, is not installed")
    env = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    return subprocess.run(
        ["git", *arguments], cwd=directory.resolve(), env={**env, **variables, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode(errors="replace").strip()


def apply(
    diff: Path, tree: Path, parts: Sequence[str], name: str, without: Sequence[str] = (), called: str = ""
) -> None:
    """Apply to ``tree`` what ``diff`` changes in these ``parts`` of it, the directories that matter.

    A change upstream also touches news, documentation and CI, which a release may not have, or not in that state.

    :param name: of the tree, for messages
    :param without: patterns of paths in the parts that are left out as well
    :param called: how messages call the diff, if not by its file
    :raises ValidateError: if it does not apply, or changes nothing in the parts
    """
    called = called or str(diff)
    listed = {strip: _apply(tree, "--numstat", f"-p{strip}", str(diff.resolve())) for strip in (1, 0)}
    paths = {strip: _paths(done.stdout) for strip, done in listed.items() if done.returncode == 0}
    if not paths:
        raise ValidateError(f"{called} is no diff that git reads: {said(listed[1])}")
    inside = {strip: [path for path in found if path.partition("/")[0] in parts] for strip, found in paths.items()}
    strip = next((strip for strip, found in inside.items() if found), None)
    if strip is None:
        raise ValidateError(
            f"{called} changes nothing of {name} that is used: it changes {', '.join(next(iter(paths.values())))}, "
            f"and looked at are {', '.join(part + '/' for part in parts)}"
        )
    # The first that matches counts.
    chosen = [*(f"--exclude={pattern}" for pattern in without), *(f"--include={part}/*" for part in parts)]
    applied = _apply(tree, f"-p{strip}", "--whitespace=nowarn", *chosen, str(diff.resolve()))
    if applied.returncode:
        raise ValidateError(f"{called} does not apply to {name}:\n{said(applied)}")


def _paths(numstat: bytes) -> list[str]:
    return [line.split("\t")[2] for line in numstat.decode(errors="replace").splitlines()]


def _apply(tree: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    # Below a ceiling git does not look for a repository, whose paths it would take those of the diff to be.
    return git(tree, "apply", *arguments, GIT_CEILING_DIRECTORIES=str(tree.resolve().parent))


def changed(before: Path, after: Path, part: str) -> list[str]:
    """The files of directory ``part`` that are not the same in both trees, as paths relative to them."""
    names = dict.fromkeys([*_files(before, part), *_files(after, part)])
    return [
        name for name in sorted(names)
        if not ((before / name).exists() and (after / name).exists())
        or not filecmp.cmp(before / name, after / name, shallow=False)
    ]  # fmt: skip


def _files(tree: Path, part: str) -> Iterator[str]:
    for path in (tree / part).rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield str(path.relative_to(tree))


def overlay(names: list[str], before: Path, after: Path, installed: Path) -> None:
    """Change the ``installed`` files of these names from what is in ``before`` to what is in ``after``.

    :raises ValidateError: if one of them is not what is in ``before``, or a link
    """
    check_no_links(names, after)
    for name in names:
        old, new, own = before / name, after / name, installed / name
        if old.exists() and not (own.exists() and filecmp.cmp(old, own, shallow=False)):
            raise ValidateError(f"{name} of the sdist is not what the release installs: give a source tree instead")
        if new.exists():
            own.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(new, own)
        else:
            own.unlink()


def check_no_links(names: list[str], tree: Path) -> None:
    """:raises ValidateError: if one of these files is a link: its copy would be of whatever it leads to"""
    for name in names:
        if (tree / name).is_symlink():
            raise ValidateError(f"the candidate makes {name} a symbolic link; allowed are plain files")
