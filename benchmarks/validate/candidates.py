"""What a user gives as a candidate: a source tree, an sdist, a wheel, a diff, a ref, or the version of a release.

The release itself can be one, too: all that is said of it is a false alarm.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import clones
from .clones import Change
from .errors import ValidateError

ALLOWED = (
    "a directory with a source tree, an sdist (.tar.gz), a wheel (.whl), a diff (.diff, .patch) or a version; "
    "for cpython a diff or a module (subprocess.py); stock is the release itself"
)
#: The release itself, as a candidate. A directory of this name is ``./stock``.
STOCK = "stock"

#: File names' ends, and what such a file is.
_KINDS = {".tar.gz": "sdist", ".whl": "wheel", ".diff": "diff", ".patch": "diff", ".py": "module"}
#: What is no part of a source tree, although it may lie in one.
_NOT_SOURCE = frozenset({".git", ".tox", ".venv", "__pycache__", "build", "dist", ".mypy_cache", ".pytest_cache"})


@dataclass(frozen=True)
class Candidate:
    """One candidate."""

    #: as the user gave it, or what a ref is
    text: str
    #: ``path``, ``sdist``, ``wheel``, ``diff``, ``version``, ``module`` or ``stock``
    kind: str
    #: of its content, in hexadecimal: another content is another candidate
    digest: str
    #: where the diff of a ref is kept
    kept: str = ""
    #: what a ref changes
    change: Change | None = None

    @property
    def path(self) -> Path:
        return Path(self.kept or self.text).resolve()

    @property
    def name(self) -> str:
        """What it is called in short."""
        if self.change is not None:
            return self.change.name
        return self.text if self.kind in ("version", "stock") else self.path.name


def parse(text: str) -> Candidate:
    """The candidate that a text names.

    :raises ValidateError: if it names none
    """
    if text == STOCK:
        return Candidate(text, "stock", hashlib.sha256(text.encode()).hexdigest())
    path = Path(text)
    if path.is_dir():
        if not any((path / name).exists() for name in ("pyproject.toml", "setup.py", "setup.cfg")):
            raise ValidateError(f"--candidate {text}: the directory has no pyproject.toml, setup.py or setup.cfg")
        return Candidate(text, "path", _digest(_source_files(path)))
    kind = next((kind for end, kind in _KINDS.items() if path.name.endswith(end)), "")
    if path.is_file() and kind:
        return Candidate(text, kind, _digest([path]))
    if path.is_file():
        raise ValidateError(f"--candidate {text}: allowed are {ALLOWED}")
    if kind or "/" in text:
        raise ValidateError(f"--candidate {text}: there is no such file or directory")
    if not _is_version(text):
        raise ValidateError(f"--candidate {text}: there is no such file, and it is no version; allowed are {ALLOWED}")
    return Candidate(text, "version", hashlib.sha256(text.encode()).hexdigest())


def of_ref(clone: str, ref: str, cache: Path) -> Candidate:
    """The candidate that a ref of a clone is: what it changes, as a diff.

    :param cache: where the diff is kept
    :raises ValidateError: see :func:`benchmarks.validate.clones.find`
    """
    change, diff = clones.find(clone, ref)
    digest = hashlib.sha256(diff).hexdigest()
    kept = cache / "changes" / f"{digest[:16]}.diff"
    kept.parent.mkdir(parents=True, exist_ok=True)
    # As a whole: another validation may read it.
    partial = kept.with_name(f"{kept.name}.{os.getpid()}")
    partial.write_bytes(diff)
    os.replace(partial, kept)
    return Candidate(str(change), "diff", digest, str(kept), change)


def _is_version(text: str) -> bool:
    from packaging.version import InvalidVersion, Version

    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _source_files(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        if path.name in _NOT_SOURCE or path.name.endswith(".egg-info"):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _source_files(path)
        elif path.is_file():
            yield path


def _digest(files: Iterator[Path] | list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{file.stat().st_size}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
