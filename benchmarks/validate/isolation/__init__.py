"""What the code of a candidate can reach: a sandbox of bubblewrap's, or all that the user of the validation can reach.

The variants of a validation all run in the same way, so that nothing else differs between them. What is inside is every
process that runs code of the environments: the suites, the benchmarks with their servers, and the look at what is
imported. Outside are git and the installer, and with it the build of a candidate that has to be built.
"""

import getpass
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.tools.pythons import Python
from benchmarks.tools.upstream.runner import Launcher
from benchmarks.validate.errors import ValidateError
from benchmarks.validate.variants import Variant

from . import bubblewrap
from .bubblewrap import Bubblewrap, Refused

AUTO, BUBBLEWRAP, NONE = "auto", "bubblewrap", "none"
ALLOWED = (AUTO, BUBBLEWRAP, NONE)


class Isolation:
    """How the code of the variants runs."""

    def __init__(self, asked: str, sandbox: Bubblewrap | None = None, reason: str = "") -> None:
        """
        :param asked: one of :data:`ALLOWED`
        :param sandbox: that it runs in; None if it runs as this user
        :param reason: why there is no sandbox
        """
        self.asked = asked
        self.sandbox = sandbox
        self.reason = reason

    @property
    def name(self) -> str:
        """``bubblewrap`` or ``none``."""
        return BUBBLEWRAP if self.sandbox else NONE

    def launcher(self, *variants: Variant) -> Launcher:
        """Starts processes that run code of these variants, and of no other."""
        return self.sandbox.launcher(*variants) if self.sandbox else Launcher()

    def line(self, candidate: bool, installed: bool) -> str:
        """What a reader of the verdict has to know, in one line.

        :param candidate: whether there is one, beside stock and fastio
        :param installed: whether the installer was given it
        """
        whose = "the candidate's code" if candidate else "what is compared"
        user = f"this user ({user_name()}) with this network"
        if self.sandbox is None:
            return f"isolation: none, so {whose} ran as {user}: {self.reason}"
        outside = f"; outside, as {user}: the candidate's build and installation" if candidate and installed else ""
        return (
            f"isolation: {self.sandbox.version}, for all variants: a user of their own, no network, files read-only "
            f"but their own; {self.sandbox.limits}{outside}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        limits = vars(self.sandbox.limits) if self.sandbox else None
        version = self.sandbox.version if self.sandbox else ""
        return {"asked": self.asked, "used": self.name, "version": version, "reason": self.reason, "limits": limits}


def choose(asked: str, pythons: Sequence[Python], cache: Path, trees: Sequence[Path]) -> Isolation:
    """The isolation that is asked for.

    :param asked: one of :data:`ALLOWED`
    :param pythons: that the environments are made of
    :param cache: where the environments and the sources of releases are kept
    :param trees: source trees that candidates' tests are in
    :raises ValidateError: if it is ``bubblewrap``, and that is not possible here
    """
    if asked == NONE:
        return Isolation(asked, reason="--isolation none was asked for")
    try:
        return Isolation(asked, bubblewrap.make(pythons, cache, trees))
    except Refused as refused:
        if asked == AUTO:
            return Isolation(asked, reason=str(refused))
        raise ValidateError(
            f"--isolation {asked}: {refused}; allowed are {', '.join(ALLOWED)}: auto does without it where it has to, "
            "and the verdict says so"
        ) from None


def user_name() -> str:
    """Who runs the validation."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
