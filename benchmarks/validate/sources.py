"""The source trees of releases: sdists, fetched and unpacked once."""

from __future__ import annotations

import contextlib
import os
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from benchmarks.tools.upstream.suites import Unavailable, download_sdist

from .errors import ValidateError


def fetch(project: str, version: str, cache: Path) -> Path:
    """The source tree of a release.

    :raises ValidateError: if there is no sdist of it
    """
    target = cache / "sources" / f"{project}-{version}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            try:
                archive = download_sdist(project, version, Path(scratch))
            except Unavailable as error:
                raise ValidateError(str(error)) from None
            tree = unpack(archive, Path(scratch) / "tree")
            # Another run may have been faster.
            with contextlib.suppress(OSError):
                os.rename(tree, target)
    return target


def unpack(archive: Path, directory: Path) -> Path:
    """Unpack an sdist into ``directory``; returns the tree in it.

    :raises ValidateError: if it is no sdist
    """
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as file:
                file.extractall(directory)
        else:
            with tarfile.open(archive) as tar:
                safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
                tar.extractall(directory, **safely)
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise ValidateError(f"{archive} can not be unpacked: {error}") from None
    trees = [path for path in directory.iterdir() if path.is_dir()]
    if len(trees) != 1:
        raise ValidateError(f"{archive} is no sdist: it holds {len(trees)} directories and not one")
    return trees[0]
