"""Reading what was recorded, as a test needs it."""

import json
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple


class Event(NamedTuple):
    kind: str
    when: int
    span: int
    parent: int | None
    name: str
    thread: int
    values: dict[str, Any]


class File(NamedTuple):
    path: pathlib.Path
    head: dict[str, Any]
    events: list[Event]
    #: the other objects: what was lost, and the end
    notes: list[dict[str, Any]]

    @property
    def ended(self) -> bool:
        return bool(self.notes and self.notes[-1].get("end"))

    @property
    def lost(self) -> int:
        return sum(note["lost"] for note in self.notes if "end" not in note)


def read(directory: str | pathlib.Path, writing: bool = False) -> list[File]:
    """All files, by name; every line has to be whole.

    :param writing: a process still writes: it may be in the middle of a line, or have a new file with nothing in it
    """
    found = []
    for path in sorted(pathlib.Path(directory).glob("*.jsonl")):
        content = path.read_text(encoding="utf-8")
        if writing:
            content = content[: content.rfind("\n") + 1]
        if content or not writing:
            found.append(_file(path, content))
    return found


def read_file(path: pathlib.Path) -> File:
    return _file(path, path.read_text(encoding="utf-8"))


def _file(path: pathlib.Path, content: str) -> File:
    assert content.endswith("\n")
    head, *lines = [json.loads(line) for line in content.splitlines()]
    assert head["fastio-trace"] == 1
    events = [Event(*line) for line in lines if isinstance(line, list)]
    return File(path, head, events, [line for line in lines if isinstance(line, dict)])


def events(
    directory: str | pathlib.Path, kind: str = "BEP", resources: bool = False, writing: bool = False
) -> list[Event]:
    """The events of all files, samples of the resources left out."""
    found = [event for file in read(directory, writing) for event in file.events if event.kind in kind]
    return found if resources else [event for event in found if event.name != "process.resources"]


def ends(directory: str | pathlib.Path, name: str, writing: bool = False) -> list[dict[str, Any]]:
    """The values of the ends of the spans ``name``, with those of their beginnings."""
    found = events(directory, writing=writing)
    begun = {event.span: event.values for event in found if event.kind == "B"}
    return [{**begun.get(event.span, {}), **event.values} for event in found if (event.kind, event.name) == ("E", name)]


def well_formed(found: Sequence[Event]) -> None:
    """Each span of one process begins once, and ends once and afterwards, within the one that it is part of."""
    begun: dict[int, Event] = {}
    ended: dict[int, Event] = {}
    for event in found:
        if event.kind == "B":
            assert event.span not in begun
            begun[event.span] = event
        elif event.kind == "E":
            assert event.span not in ended
            ended[event.span] = event
            assert event.name == begun[event.span].name
            assert event.parent == begun[event.span].parent
            assert event.when >= begun[event.span].when
    assert set(ended) == set(begun)
    for event in begun.values():
        if event.parent is not None:
            assert begun[event.parent].when <= event.when
