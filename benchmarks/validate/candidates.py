"""A candidate: a diff, a ref of a clone, or the version of a release.

The release itself can be one, too: all that is said of it is a false alarm.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from . import clones
from .clones import Change
from .errors import ValidateError

ALLOWED = "a diff (.diff, .patch) or a version; stock is the release itself"
#: The release itself, as a candidate.
STOCK = "stock"


@dataclass(frozen=True)
class Candidate:
    """One candidate."""

    #: as the user gave it, or what a ref is
    text: str
    #: ``diff``, ``version`` or ``stock``
    kind: str
    #: of its content, in hexadecimal: another content is another candidate
    digest: str
    #: of a diff
    path: Path = Path()
    #: the change of a ref
    change: Change | None = None

    @property
    def name(self) -> str:
        """Its short name."""
        if self.change is not None:
            return self.change.name
        return self.path.name or self.text


def parse(text: str) -> Candidate:
    """The candidate that a text names.

    :raises ValidateError: if it names none
    """
    path = Path(text)
    if path.suffix in (".diff", ".patch"):
        if not path.is_file():
            raise ValidateError(f"--candidate {text}: there is no such file")
        return Candidate(text, "diff", hashlib.sha256(path.read_bytes()).hexdigest(), path.resolve())
    if text != STOCK:
        try:
            Version(text)
        except InvalidVersion:
            raise ValidateError(
                f"--candidate {text}: it is neither a diff nor a version; allowed are {ALLOWED}; git diff makes a diff "
                "of a source tree"
            ) from None
    return Candidate(text, "stock" if text == STOCK else "version", hashlib.sha256(text.encode()).hexdigest())


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
    return Candidate(str(change), "diff", digest, kept.resolve(), change)
