"""The findings as lines that GitHub's runner makes annotations of: workflow commands, printed to the log."""

from collections.abc import Iterable, Iterator

from .changes import Changes
from .findings import ERROR, NOTE, WARNING, Finding

#: Who reads the lines.
READERS = ("github",)
#: GitHub shows no more of a level for each step of a job.
MOST = 10

_COMMANDS = {ERROR: "error", WARNING: "warning", NOTE: "notice"}


def github(found: Iterable[Finding]) -> Iterator[str]:
    """The lines, the worst level first; the last one that GitHub shows says how many there are more."""
    findings = list(found)
    for level, command in _COMMANDS.items():
        own = [each for each in findings if each.rule.level == level]
        for each in own if len(own) <= MOST else own[: MOST - 1]:
            place = f"file={_property(each.file)},line={each.line},title={_property(each.rule.text.rstrip('.'))}"
            said = f"{each}, since {each.since}" if each.since else str(each)
            yield f"::{command} {place}::{_data(said)}"
        if len(own) > MOST:
            yield f"::{command}::and {len(own) - MOST + 1} more, in the report"


def of_changes(changes: Changes | None) -> Iterator[str]:
    """A line for all that has become worse since the last verdict, and one for the rest."""
    if changes is None:
        return
    for command, title, lines in (
        ("warning", "Worse than at the last verdict", changes.worse),
        ("notice", "Other than at the last verdict", changes.differs + changes.better),
    ):
        if lines:
            yield f"::{command} title={_property(title)}::{_data(chr(10).join([changes.since, *lines]))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
