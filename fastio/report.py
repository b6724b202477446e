"""Reports on what became of every patch, for people and for programs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from fastio.config import SETTINGS, Settings

if TYPE_CHECKING:
    from fastio.tables import Table


class Outcome(str, Enum):  # noqa: UP042 - StrEnum came with Python 3.11
    """Outcomes of a patch at one of its targets. There are no other values."""

    APPLIED = "applied"
    WAITING = "waiting for import"
    ABSENT = "absent"
    UNSUPPORTED = "unsupported version"
    CHANGED = "changed upstream code"
    FAILED = "failed"
    OFF = "off"

    def __str__(self) -> str:
        return self.value


#: The meaning of each outcome, in the order in which they are explained.
MEANING = {
    Outcome.APPLIED: "fastio's function is called, directly or through wrappers of other tools, which the report names",
    Outcome.WAITING: "the patch will be applied when the module is imported",
    Outcome.ABSENT: "the library is not installed, or the class is not used in this process",
    Outcome.UNSUPPORTED: "the installed version is outside the supported range",
    Outcome.CHANGED: "fastio does not know the code that stands there: upstream changed it, or something else has "
    "replaced fastio's function since",
    Outcome.FAILED: "fastio raised an error; the original is in place",
    Outcome.OFF: "the patch was not asked for, is not in the profile, is disabled or was taken back, or the installed "
    "release does not need it; the report says which",
}

#: States of a patch as a whole, besides the outcomes.
IN_EFFECT, NOT_USED = "in effect", "not used here"
_LEFT_ALONE = frozenset({Outcome.UNSUPPORTED, Outcome.CHANGED, Outcome.FAILED})


class Entry(NamedTuple):
    """One target of one patch."""

    #: name of the patch
    name: str
    #: ``module:qualified.attribute``
    target: str
    outcome: Outcome
    #: the finding
    found: str
    #: action to take; empty if there is none
    advice: str = ""
    #: how upstream's code was recognised: ``source``, ``accept_code`` where the setting accepts one of the functions,
    #: ``uses`` where one goes on running and has what the patch uses; empty unless in effect
    known_by: str = ""

    @property
    def in_effect(self) -> bool:
        """Whether fastio's function is called."""
        return self.outcome is Outcome.APPLIED

    @property
    def left_alone(self) -> bool:
        """Whether the patch is not in effect although it was asked for and its target exists."""
        return self.outcome in _LEFT_ALONE


class Report(NamedTuple):
    """The entries, the settings in effect, and what else an operator should know."""

    entries: Sequence[Entry]
    settings: Settings
    #: looks up the versions of distributions
    versions: Callable[[], Mapping[str, str]]
    #: modules and classes that bypass a patch, for example because they took ``Popen`` before ``monkey_patch()``
    late_holders: Sequence[str] = ()
    #: further remarks, for example on the trace
    notes: Sequence[str] = ()
    #: why a patch that is applied gets no calls here, by its name: the service has no such store, or another server
    unused: Mapping[str, str] = MappingProxyType({})

    def problems(self) -> list[Entry]:
        """Return the entries that ``strict=True`` does not accept."""
        return [entry for entry in self.entries if entry.left_alone]

    def outcome(self, name: str, target: str | None = None) -> Outcome:
        """Return the outcome of the patch ``name`` at ``target``, by default at its first target."""
        for entry in self.entries:
            if entry.name == name and target in (None, entry.target):
                return entry.outcome
        raise KeyError(name if target is None else f"{name} {target}")

    def summary(self) -> str:
        """Return a summary of one line, for the log, with the numbers of :meth:`counts`."""
        return f"fastio: {self.counts()}" if self.entries else "fastio: nothing asked for"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as ``fastio status --json`` prints it."""
        return {
            "versions": dict(self.versions()),
            "settings": {
                setting.name: {
                    "value": _plain(getattr(self.settings, setting.name)),
                    "source": self.settings.sources.get(setting.name, ""),
                }
                for setting in SETTINGS
            },
            "patches": [{**entry._asdict(), "outcome": entry.outcome.value} for entry in self.entries],
            "late_holders": list(self.late_holders),
            "notes": list(self.notes),
            "unused": dict(self.unused),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Report":
        """Return the report that :meth:`to_dict` was made from, in this or another process of the same release."""
        settings = {name: each["value"] for name, each in data["settings"].items()}
        sources = {name: each["source"] for name, each in data["settings"].items()}
        entries = [Entry(**{**each, "outcome": Outcome(each["outcome"])}) for each in data["patches"]]
        versions, holders = dict(data["versions"]), data["late_holders"]
        given = Settings(**settings, sources=sources)
        return cls(entries, given, lambda: versions, holders, data["notes"], data["unused"])

    def to_json(self) -> str:
        import json

        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        # Each interactive Python shows patch()'s result.
        return f"<{type(self).__name__}: {self.counts()}; print() shows more>"

    def only(self, patch: str) -> "Report":
        """The report on the one patch of this name."""
        return self._replace(entries=[entry for entry in self.entries if entry.name == patch])

    def numbers(self) -> "Counter[str]":
        """Return how many patches there are, by what became of them; status, check, log and metrics have the same."""
        return Counter(patch.word for patch in self.patches())

    def counts(self) -> str:
        """Return these numbers as text: ``30 in effect, 5 absent``."""
        return ", ".join(f"{count} {word}" for word, count in self.numbers().most_common()) or "no patches"

    def patches(self) -> "list[Patch]":
        """The patches, each with all its entries."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.name, []).append(entry)
        return [Patch(name, entries, self.unused.get(name, "")) for name, entries in found.items()]

    def text(self, everything: bool = False, width: int | None = None) -> str:
        """Return the text of ``fastio status``: a summary, what needs attention, and a line for each patch.

        :param everything: also patches of which nothing is installed, each target, and all settings
        :param width: columns of the terminal; None: as wide as the tables are
        """
        settings = _settings(self, everything)
        parts = [
            _lines(_about(self), width),
            *(_list(title, notes, width) for title, notes in _attention(self) if notes),
            (_targets(self) if everything else _patches(self)).text(width),
            settings.text(width) if settings.rows else "All settings have their defaults.",
        ]
        return "\n\n".join(parts if everything else [*parts, _lines([_MORE], width, "")])


class Patch(NamedTuple):
    """The outcomes of a patch at all its targets."""

    name: str
    entries: Sequence[Entry]
    unused: str

    @property
    def word(self) -> str:
        """``left alone`` if it is at one target, ``in effect`` if it is at one, otherwise waiting, off or absent.

        ``not used here`` where it would be in effect, but no call comes to it.
        """
        if any(entry.left_alone for entry in self.entries):
            return "left alone"
        if any(entry.in_effect for entry in self.entries):
            return NOT_USED if self.unused else IN_EFFECT
        found = {entry.outcome for entry in self.entries}
        return next(each.value for each in (Outcome.WAITING, Outcome.OFF, Outcome.ABSENT, *found) if each in found)

    @property
    def why(self) -> str:
        """Why it is not used here, or what it is waiting for; else empty."""
        waiting = [entry.found for entry in self.entries if entry.outcome is Outcome.WAITING]
        return self.unused if self.word == NOT_USED else waiting[0] if self.word == Outcome.WAITING else ""


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# A report as people read it: what needs attention first, and details for those who ask.

_MORE = "fastio status --all shows every target and every setting; --patch NAME shows one patch."


def _lines(lines: Sequence[str], width: int | None, indent: str = "  ") -> str:
    from fastio.tables import wrap

    return "\n".join(piece for line in lines for piece in wrap(line, width, indent))


def _list(title: str, notes: Sequence[str], width: int | None) -> str:
    return f"{title}:\n" + _lines([f"  {note}" for note in dict.fromkeys(notes)], width, "    ")


def _about(report: Report) -> list[str]:
    """Return the installed releases, and the number of patches for each outcome."""
    versions = report.versions()
    absent = [name for name, version in versions.items() if version == Outcome.ABSENT]
    found = [f"{name} {version}" for name, version in versions.items() if name not in absent]
    lines = [", ".join(found), "not installed: " + ", ".join(absent), "patches: " + report.counts()]
    return lines if absent else [lines[0], lines[2]]


def _attention(report: Report) -> list[tuple[str, Sequence[str]]]:
    problems = [f"{each.name} ({each.target}): {each.outcome}: {each.found}" for each in report.problems()]
    advice = [f"{each.name}: {each.advice}" for each in report.entries if each.advice]
    return [
        ("Problems", problems),
        ("What to do", advice),
        ("Late holders", report.late_holders),
        ("Notes", report.notes),
    ]


def _targets(report: Report) -> "Table":
    from fastio.tables import Table

    unused = {patch.name: f"; {NOT_USED}: {patch.why}" for patch in report.patches() if patch.word == NOT_USED}
    rows = [
        [each.name, each.target, each.outcome.value, each.found + unused.get(each.name, "")] for each in report.entries
    ]
    return Table("", ["patch", "target", "outcome", "found"], rows)


def _patches(report: Report) -> "Table":
    """Return the patches of which something is installed."""
    from fastio.tables import Table

    here = [each for each in report.patches() if each.word != Outcome.ABSENT]
    return Table("", ["patch", "", "targets"], [[each.name, each.word, _outcomes(each)] for each in here])


def _outcomes(patch: Patch) -> str:
    counted = Counter(entry.outcome.value for entry in patch.entries).items()
    return patch.why or ", ".join(outcome if count == 1 else f"{outcome} ({count})" for outcome, count in counted)


def _settings(report: Report, everything: bool) -> "Table":
    """The settings, or only those that do not have their defaults."""
    from fastio.tables import Table

    rows = [
        [each.name, each.show(getattr(report.settings, each.name)), report.settings.sources.get(each.name, "")]
        for each in SETTINGS
    ]
    return Table("", ["setting", "value", "from"], [row for row in rows if everything or row[2] != "default"])
