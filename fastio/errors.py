"""The errors that fastio raises."""

import reprlib
from collections.abc import Iterable
from typing import Any


def meant(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'wait'?`` if one of the known names is like the unknown one, otherwise nothing."""
    import difflib

    found = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {found[0]!r}?" if found else ""


class FastioError(Exception):
    """The base of every error that fastio raises."""


class SettingError(FastioError, ValueError):
    """A setting has a value that is not allowed. Nothing was patched.

    :ivar setting: name of the setting, as the keyword of ``fastio.patch()``
    :ivar value: what was given
    :ivar source: where it was given, for example ``environment FASTIO_CHUNK_SIZE``
    :ivar allowed: what is allowed, in words
    :ivar meant: which name was meant, in words; empty unless there is one like the name that was given
    """

    def __init__(self, setting: str, value: Any, source: str, allowed: str, meant: str = "") -> None:
        super().__init__(setting, value, source, allowed, meant)
        self.setting = setting
        self.value = value
        self.source = source
        self.allowed = allowed
        self.meant = meant

    def __str__(self) -> str:
        said = f"{self.setting}: {_shown(self.value)} (from {self.source}) is not allowed{self.meant}"
        return f"{said}{'' if self.meant else ';'} allowed: {self.allowed}"


def _shown(value: Any) -> str:
    short = reprlib.Repr()
    short.maxstring = short.maxother = 80
    try:
        return short.repr(value)
    except ValueError:
        # int() has a limit to what it turns into text.
        return f"a number of {value.bit_length()} bits"


class UnknownPatchError(FastioError, ValueError):
    """fastio has no patch of this name. Nothing was patched."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = known

    def __str__(self) -> str:
        like = meant(self.name, self.known) if isinstance(self.name, str) else ""
        return f"there is no patch named {self.name!r}{like or ';'} known: {', '.join(self.known)}"


class PatchError(FastioError, RuntimeError):
    """``patch(strict=True)`` could not apply every patch that was asked for, and applied none of them.

    :ivar report: the :class:`fastio.report.Report` of the attempt
    """

    def __init__(self, report: Any) -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        lines = [f"{e.name} ({e.target}): {e.outcome.value}: {e.found}" for e in self.report.problems()]
        return "not everything could be patched: " + "; ".join(lines)
