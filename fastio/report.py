"""Reports on what became of every patch, for people and for programs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from fastio import renames
from fastio.config import SETTINGS, Settings, format_size
from fastio.tables import Table


class Outcome(str, Enum):  # noqa: UP042 - StrEnum came with Python 3.11
    """What became of a patch at one of its targets. There are no other values."""

    APPLIED = "applied"
    ALREADY = "already"
    NOT_NEEDED = "not needed"
    WAITING = "waiting for import"
    ABSENT = "absent"
    UNSUPPORTED = "unsupported version"
    CHANGED = "changed upstream code"
    SHADOWED = "shadowed by another wrapper"
    REVERTED = "reverted"
    FAILED = "failed"
    OFF = "off"

    def __str__(self) -> str:
        return self.value


#: What each outcome says, in the order in which they are explained.
MEANING = {
    Outcome.APPLIED: "fastio's function is called",
    Outcome.ALREADY: "the patch was applied before (only in the report of patch())",
    Outcome.NOT_NEEDED: "the installed release does by itself what the patch is for, or does not have what it is for; "
    "the report names the releases",
    Outcome.WAITING: "the patch will be applied when the module is imported",
    Outcome.ABSENT: "the library is not installed, or the class is not used in this process",
    Outcome.UNSUPPORTED: "the installed version is outside the supported range",
    Outcome.CHANGED: "fastio does not know the installed code, so it left it alone",
    Outcome.SHADOWED: "another tool has wrapped fastio's function, which is still called if the report says how",
    Outcome.REVERTED: "the patch was applied, and the original is back",
    Outcome.FAILED: "fastio raised an error; the original is in place",
    Outcome.OFF: "the patch was not asked for, is not in the default, or is disabled",
}

_LEFT_ALONE = frozenset({Outcome.UNSUPPORTED, Outcome.CHANGED, Outcome.FAILED})


@dataclass(frozen=True)
class Entry:
    """One target of one patch."""

    #: name of the patch
    name: str
    #: ``module:qualified.attribute``
    target: str
    outcome: Outcome
    #: what was found
    found: str
    #: what to do about it; empty if there is nothing to do
    advice: str = ""
    #: whether fastio's function is called
    in_effect: bool = False
    #: what has recognised upstream's code: ``bytecode``, ``source``, ``site`` where one of the functions is known only
    #: from ``site_fingerprints``, ``contract`` where one is unknown but keeps to what the patch relies on; empty unless
    #: in effect
    known_by: str = ""

    @property
    def left_alone(self) -> bool:
        """Whether the patch is not in effect although it was asked for and its target exists."""
        return self.outcome in _LEFT_ALONE or self.outcome is Outcome.SHADOWED and not self.in_effect


@dataclass(frozen=True)
class Report:
    """The entries, the settings in effect, and what else an operator should know."""

    entries: Sequence[Entry]
    settings: Settings
    versions: dict[str, str]
    #: modules and classes that bypass a patch, for example because they took ``Popen`` before ``monkey_patch()``
    late_holders: Sequence[str] = ()
    #: further remarks, for example what has been traced
    notes: Sequence[str] = ()

    def problems(self) -> list[Entry]:
        """Return the entries that ``strict=True`` does not accept."""
        return [entry for entry in self.entries if entry.left_alone]

    def outcome(self, name: str, target: str | None = None) -> Outcome:
        """Return the outcome of the patch ``name`` at ``target``, by default at its first target."""
        wanted = renames.current(name)
        for entry in self.entries:
            if entry.name == wanted and target in (None, entry.target):
                return entry.outcome
        raise KeyError(name if target is None else f"{name} {target}")

    def summary(self) -> str:
        """Return a summary of one line, for the log."""
        counts: dict[str, int] = {}
        for entry in self.entries:
            counts[entry.outcome.value] = counts.get(entry.outcome.value, 0) + 1
        parts = [f"{count} {outcome}" for outcome, count in counts.items()]
        return "fastio: " + (", ".join(parts) or "nothing asked for")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as ``fastio status --json`` prints it."""
        return {
            "versions": self.versions,
            "settings": {
                setting.name: {
                    "value": _plain(getattr(self.settings, setting.name)),
                    "source": self.settings.sources.get(setting.name, ""),
                }
                for setting in SETTINGS
            },
            "patches": [{**asdict(entry), "outcome": entry.outcome.value} for entry in self.entries],
            "late_holders": list(self.late_holders),
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        settings = [
            [setting.name, _show(setting.name, getattr(self.settings, setting.name)),
             self.settings.sources.get(setting.name, "")]
            for setting in SETTINGS
        ]  # fmt: skip
        entries = [[entry.name, entry.target, entry.outcome.value, entry.found] for entry in self.entries]
        lines = ["  ".join(f"{name} {version}" for name, version in self.versions.items()), ""]
        lines += [Table("", ["setting", "value", "from"], settings).text(), ""]
        lines += [Table("", ["patch", "target", "outcome", "found"], entries).text()]
        advice = [f"{entry.name}: {entry.advice}" for entry in self.entries if entry.advice]
        for title, notes in (("What to do", advice), ("Late holders", self.late_holders), ("Notes", self.notes)):
            if notes:
                lines += ["", title + ":"] + [f"  {note}" for note in dict.fromkeys(notes)]
        return "\n".join(lines)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _show(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return format_size(value)
    if isinstance(value, Mapping):
        value = [f"{store}={format_size(size)}" for store, size in value.items()]
    if isinstance(value, str):
        return value
    return ", ".join(value or ()) or "-"
