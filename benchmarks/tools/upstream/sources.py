"""The source trees of releases, fetched and unpacked once, and directories from which their tests find their data."""

import contextlib
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.tools.pythons import Unavailable

#: Seconds for fetching an sdist.
DOWNLOAD_LIMIT = 300

#: Files that the tests of a package read by relative paths, in its directory of tests.
_DATA = {"glance_store": ("etc",), "glance": ("etc", "var"), "openstack": ("unit/fixtures",)}


def fetch(project: str, version: str, cache: Path) -> Path:
    """The source tree of a release.

    :raises Unavailable: if there is no sdist of it
    """
    tree = cache / "sources" / f"{project}-{version}"
    if not tree.is_dir():
        tree.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=tree.parent) as scratch:
            unpacked = unpack(_download(project, version, Path(scratch)), Path(scratch) / "tree")
            # Another run may have been faster.
            with contextlib.suppress(OSError):
                os.rename(unpacked, tree)
    return tree


def _download(project: str, version: str, directory: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", project, "--no-deps"]
    try:
        subprocess.run(
            [*command, "--dest", str(directory.resolve()), f"{project}=={version}"],
            check=True, timeout=DOWNLOAD_LIMIT, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=directory,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"no sdist of {project} {version}: {error.stderr.strip()[-500:]}") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"no sdist of {project} {version} within {DOWNLOAD_LIMIT} s") from None
    return next(directory.glob("*.tar.gz"))


def unpack(archive: Path, directory: Path) -> Path:
    """Unpack an sdist into ``directory``; returns the tree in it.

    :raises Unavailable: if it is no sdist
    """
    try:
        with tarfile.open(archive) as tar:
            safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            tar.extractall(directory, **safely)
    except (OSError, tarfile.TarError) as error:
        raise Unavailable(f"{archive} cannot be unpacked: {error}") from None
    trees = [path for path in directory.iterdir() if path.is_dir()]
    if len(trees) != 1:
        raise Unavailable(f"{archive} is no sdist: it holds {len(trees)} directories and not one")
    return trees[0]


def data_of(package: Path) -> dict[str, Path]:
    """Return the files that the tests of an installed package read by relative paths: where they look, and the source.

    :raises Unavailable: if it was packaged without
    """
    found = {f"{package.name}/tests/{name}": package / "tests" / name for name in _DATA[package.name]}
    for data in found.values():
        if not data.is_dir():
            raise Unavailable(f"{data} is not there: this {package.name} was packaged without its tests' data")
    return found


def linked(directory: Path, links: Mapping[str, Path]) -> Path:
    """Make ``directory`` one in which these links lead there, and nothing else is found; returns it.

    Without an ``__init__.py`` beside a link the installed package is the one that is imported.
    """
    for name, place in links.items():
        link = directory / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists() or link.resolve() != place.resolve():
            link.unlink(missing_ok=True)
            # Another run may have been faster.
            with contextlib.suppress(FileExistsError):
                link.symlink_to(place.resolve())
    return directory
