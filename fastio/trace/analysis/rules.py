"""The tables of ``rules.toml``: kinds of requests, their state machines, and categories of errors.

A file of the same form can be given to the analysis: what is in it comes before what is built in.
"""

import importlib
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastio.trace.analysis import extra
from fastio.trace.analysis.model import TraceError

#: The state before the first event and that in which nothing counts any more.
NEW, DONE = "new", "done"
#: In transitions: the same state, and any state.
STAY, ANY = "=", "*"
OTHER = "other"
_OUTCOMES = ("ok", "error", "aborted")


@dataclass(frozen=True)
class Transition:
    """At this event, a request in one of these states comes into that one."""

    #: "begin" or "end"
    event: str
    name: str
    #: of the span; empty: any
    outcome: str
    states: Sequence[str]
    to: str

    def of(self, event: str, name: str, outcome: str) -> bool:
        return self.event == event and self.outcome in ("", outcome) and fnmatchcase(name, self.name)

    def allowed_in(self, state: str) -> bool:
        return ANY in self.states or state in self.states


@dataclass(eq=False)
class Machine:
    """The states of a kind of request, by its transitions; the first that fits counts."""

    name: str
    transitions: Sequence[Transition]
    #: those of each event, as they were found
    _relevant: dict[tuple[str, str, str], list[Transition]] = field(default_factory=dict)

    @cached_property
    def states(self) -> list[str]:
        """In the order in which the table names them."""
        named = [state for each in self.transitions for state in (*each.states, each.to)]
        return [state for state in dict.fromkeys(named) if state not in (ANY, STAY)]

    def following(self, state: str, event: str, name: str, outcome: str) -> str | None:
        """The state after an event, which may be the same; None if the event must not come in ``state``."""
        if state == DONE:
            return state
        key = (event, name, outcome)
        if key not in self._relevant:
            self._relevant[key] = [each for each in self.transitions if each.of(*key)]
        relevant = self._relevant[key]
        for each in relevant:
            if each.allowed_in(state):
                return state if each.to == STAY else each.to
        return None if relevant else state


@dataclass(frozen=True)
class Kind:
    """Requests of this method and path."""

    name: str
    machine: Machine
    #: empty: any
    method: str = ""
    path: re.Pattern[str] | None = None

    def of(self, method: str, path: str) -> bool:
        return self.method in ("", method) and (self.path is None or self.path.fullmatch(path) is not None)


@dataclass(frozen=True)
class Category:
    """Errors of these components in whose text one of these patterns is found."""

    name: str
    patterns: Sequence[re.Pattern[str]]
    component: str = ANY

    def of(self, component: str, text: str) -> bool:
        return fnmatchcase(component, self.component) and any(each.search(text) for each in self.patterns)


@dataclass
class Rules:
    """All tables; the first row that fits counts."""

    kinds: list[Kind] = field(default_factory=list)
    categories: list[Category] = field(default_factory=list)

    def kind(self, method: str, path: str) -> Kind:
        return next(kind for kind in self.kinds if kind.of(method, path))

    def category(self, component: str, text: str) -> str:
        """Of an error of a component."""
        return next((each.name for each in self.categories if each.of(component, text)), OTHER)


def load(own: Path | None = None) -> Rules:
    """The built-in rules, after those of a file.

    :raises TraceError: if the file is not there, is no TOML, or has something in it that is not known
    """
    built_in = files(__package__).joinpath("rules.toml")
    sources = [(str(built_in), built_in.read_bytes())]
    if own is not None:
        try:
            sources.insert(0, (str(own), own.read_bytes()))
        except OSError as error:
            raise TraceError(f"rules: {own}: {error.strerror or error}") from error
    parsed = [(name, _parse(name, text)) for name, text in sources]
    # A kind may use a machine of the other file.
    machines: dict[str, Machine] = {}
    for name, tables in reversed(parsed):
        machines.update((each.name, each) for each in (_machine(name, entry) for entry in tables["machine"]))
    rules = Rules()
    for name, tables in parsed:
        rules.kinds += [_kind(name, entry, machines) for entry in tables["kind"]]
        rules.categories += [_category(name, entry) for entry in tables["category"]]
    return rules


def _parse(name: str, text: bytes) -> dict[str, list[dict[str, Any]]]:
    # Python 3.10 has no tomllib; tomli, which became it, is in the extra there.
    toml = importlib.import_module("tomllib") if sys.version_info >= (3, 11) else extra.needed("tomli")
    try:
        tables = toml.loads(text.decode())
    except ValueError as error:
        raise TraceError(f"rules: {name}: not TOML: {error}") from error
    allowed = ("machine", "kind", "category")
    for key, value in tables.items():
        if key not in allowed or not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise TraceError(f"rules: {name}: {key}: allowed are [[machine]], [[kind]] and [[category]]")
    return {key: tables.get(key, []) for key in allowed}


def _fields(file: str, table: str, entry: dict[str, Any], required: Iterable[str], optional: Iterable[str]) -> str:
    """Check which fields there are; returns how messages call the entry."""
    where = f"rules: {file}: [[{table}]] {entry.get('name', '')!r}"
    known = {*required, *optional}
    for name in required:
        if name not in entry:
            raise TraceError(f"{where}: {name} is missing")
    for name, value in entry.items():
        if name not in known:
            raise TraceError(f"{where}: {name}: known are {', '.join(sorted(known))}")
        if name not in ("transitions", "patterns") and not isinstance(value, str):
            raise TraceError(f"{where}: {name} = {value!r}: a text is needed")
    return where


def _machine(file: str, entry: dict[str, Any]) -> Machine:
    where = _fields(file, "machine", entry, ("name", "transitions"), ())
    transitions = []
    for row in entry["transitions"]:
        if not (isinstance(row, list) and len(row) == 3 and all(isinstance(cell, str) for cell in row)):
            raise TraceError(f"{where}: {row!r}: a transition is [event, from, to]")
        event, name, outcome = [*row[0].split(), "", ""][:3]
        if event not in ("begin", "end") or not name or outcome not in ("", *_OUTCOMES) or len(row[0].split()) > 3:
            raise TraceError(f"{where}: {row[0]!r}: an event is 'begin NAME', 'end NAME' or 'end NAME OUTCOME'")
        states = [state.strip() for state in row[1].split("|")]
        transitions.append(Transition(event, name, outcome, states, row[2]))
    return Machine(entry["name"], transitions)


def _kind(file: str, entry: dict[str, Any], machines: dict[str, Machine]) -> Kind:
    where = _fields(file, "kind", entry, ("name", "machine"), ("method", "path"))
    if entry["machine"] not in machines:
        raise TraceError(f"{where}: machine {entry['machine']!r}: known are {', '.join(machines)}")
    path = _pattern(where, entry["path"]) if "path" in entry else None
    return Kind(entry["name"], machines[entry["machine"]], entry.get("method", ""), path)


def _category(file: str, entry: dict[str, Any]) -> Category:
    where = _fields(file, "category", entry, ("name", "patterns"), ("component",))
    if not isinstance(entry["patterns"], list):
        raise TraceError(f"{where}: patterns: a list is needed")
    patterns = [_pattern(where, pattern, re.IGNORECASE) for pattern in entry["patterns"]]
    return Category(entry["name"], patterns, entry.get("component", ANY))


def _pattern(where: str, pattern: Any, flags: int = 0) -> re.Pattern[str]:
    try:
        return re.compile(pattern, flags)
    except (re.error, TypeError) as error:
        raise TraceError(f"{where}: {pattern!r}: no regular expression: {error}") from error
