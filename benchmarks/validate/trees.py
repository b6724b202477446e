"""What differs between two trees of files."""

import filecmp
import shutil
from collections.abc import Iterator
from pathlib import Path

from .errors import ValidateError


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
