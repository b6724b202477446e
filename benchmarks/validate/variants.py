"""What is compared: the release (stock), the candidate, and the release with fastio, each in an environment."""

from dataclasses import dataclass, field
from pathlib import Path

from .environments import Environment

STOCK, CANDIDATE, FASTIO = "stock", "candidate", "fastio"


@dataclass(frozen=True)
class Variant:
    """One of the things compared."""

    #: ``stock``, ``candidate`` or ``fastio``
    name: str
    environment: Environment
    #: of the project
    version: str
    #: directory with the tests that the project does not install; None if it installs them
    tests: Path | None
    #: files of the project's package that are not stock's
    changed: list[str] = field(default_factory=list)

    @property
    def patched(self) -> bool:
        """Whether fastio patches the processes that run in it."""
        return self.name == FASTIO
