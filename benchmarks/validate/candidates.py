"""What a user gives as a candidate: a source tree, an sdist, a wheel, a diff, or the version of a release."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import ValidateError

ALLOWED = (
    "a directory with a source tree, an sdist (.tar.gz), a wheel (.whl), a diff (.diff, .patch) or a version; "
    "for cpython a diff or a module (subprocess.py)"
)

#: File names' ends, and what such a file is.
_KINDS = {".tar.gz": "sdist", ".whl": "wheel", ".diff": "diff", ".patch": "diff", ".py": "module"}
#: What is no part of a source tree, although it may lie in one.
_NOT_SOURCE = frozenset({".git", ".tox", ".venv", "__pycache__", "build", "dist", ".mypy_cache", ".pytest_cache"})


@dataclass(frozen=True)
class Candidate:
    """One candidate."""

    #: as the user gave it
    text: str
    #: ``path``, ``sdist``, ``wheel``, ``diff``, ``version`` or ``module``
    kind: str
    #: of its content, in hexadecimal: another content is another candidate
    digest: str

    @property
    def path(self) -> Path:
        return Path(self.text).resolve()


def parse(text: str) -> Candidate:
    """The candidate that a text names.

    :raises ValidateError: if it names none
    """
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
