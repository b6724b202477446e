"""Reading what was recorded, as a test needs it."""

from __future__ import annotations

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


def read(directory: str | pathlib.Path) -> list[File]:
    """All files, by name; every line has to be whole."""
    return [read_file(path) for path in sorted(pathlib.Path(directory).glob("*.jsonl"))]


def read_file(path: pathlib.Path) -> File:
    content = path.read_text(encoding="utf-8")
    assert content.endswith("\n")
    head, *lines = [json.loads(line) for line in content.splitlines()]
    assert head["fastio-trace"] == 1
    events = [Event(*line) for line in lines if isinstance(line, list)]
    return File(path, head, events, [line for line in lines if isinstance(line, dict)])


def events(directory: str | pathlib.Path, kind: str = "BEP", resources: bool = False) -> list[Event]:
    """The events of all files, samples of the resources left out."""
    found = [event for file in read(directory) for event in file.events if event.kind in kind]
    return found if resources else [event for event in found if event.name != "process.resources"]


def ends(directory: str | pathlib.Path, name: str) -> list[dict[str, Any]]:
    """The values of the ends of the spans ``name``, with those of their beginnings."""
    found = events(directory)
    begun = {event.span: event.values for event in found if event.kind == "B"}
    return [
        {**begun.get(event.span, {}), **event.values} for event in found if (event.kind, event.name) == ("E", name)
    ]


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
