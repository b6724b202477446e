"""What is to be done: a load, as plain data that every worker understands, wherever it runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = "fastio-load-plan"
#: Grows when an older worker would do something else than a newer one is told.
VERSION = 1

KINDS = ("read", "write", "delete", "list")
SELECTIONS = ("each", "random")
PROTOCOLS = ("glance", "swift", "s3", "logs")
CONTENTS = ("random", "log")


class PlanError(ValueError):
    """A plan that can not be carried out as it is written."""


@dataclass(frozen=True)
class Operation:
    """One kind of operation of a plan, and the objects that it is done to.

    :param kind: one of :data:`KINDS`
    :param weight: how often, beside the other operations of the plan
    :param first: number of the first object
    :param count: how many objects there are; they have the numbers from ``first`` on
    :param selection: ``each``: one after the other, none a second time before the last of them; ``random``: any
    """

    kind: str
    weight: float = 1
    first: int = 0
    count: int = 1
    selection: str = "each"

    def __post_init__(self) -> None:
        _one_of("operation", self.kind, KINDS)
        _one_of(f"{self.kind}: selection", self.selection, SELECTIONS)
        _number(f"{self.kind}: weight", self.weight, 0, more=True)
        _number(f"{self.kind}: first", self.first, 0, whole=True)
        _number(f"{self.kind}: count", self.count, 1, whole=True)


@dataclass(frozen=True)
class Plan:
    """A load.

    :param protocol: one of :data:`PROTOCOLS`
    :param target: how the service is reached, see the module of the protocol in :mod:`benchmarks.load.protocols`
    :param operations: those that are mixed
    :param users: how many do one operation after the other, all at a time
    :param total: operations, of all users together; 0: as many as there is time for
    :param seconds: after which no operation is begun any more; 0: no limit
    :param container: of the objects (a bucket, a directory)
    :param prefix: of their names; the number of the object follows
    :param suffix: of their names
    :param size: bytes of each object
    :param content: ``random`` bytes, or lines of a ``log``
    :param seed: of the content and of all that is chosen at random
    :param keep_alive: a user keeps its connection; else each operation has a new one
    :param patience: seconds that an operation may take; then it has failed
    :param verify: every byte that is read is compared with what it should be; else only their number
    """

    protocol: str
    target: Mapping[str, Any]
    operations: tuple[Operation, ...]
    users: int = 1
    total: int = 0
    seconds: float = 0
    container: str = "load"
    prefix: str = "object-"
    suffix: str = ""
    size: int = 0
    content: str = "random"
    seed: int = 0
    keep_alive: bool = True
    patience: float = 60
    verify: bool = True
    #: What a report says of the run beside the plan: what the server was, say.
    labels: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _one_of("protocol", self.protocol, PROTOCOLS)
        _one_of("content", self.content, CONTENTS)
        _number("users", self.users, 1, whole=True)
        _number("total", self.total, 0, whole=True)
        _number("seconds", self.seconds, 0)
        _number("size", self.size, 0, whole=True)
        _number("seed", self.seed, 0, whole=True)
        _number("patience", self.patience, 0, more=True)
        if not self.operations:
            raise PlanError("operations: there is none")
        if not self.total and not self.seconds:
            raise PlanError("total and seconds are both 0: the load would never end")

    def name(self, number: int) -> str:
        """Of an object, without its container."""
        return f"{self.prefix}{number:06d}{self.suffix}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, from which :func:`from_dict` makes the same plan."""
        return {"format": FORMAT, "version": VERSION, **dataclasses.asdict(self)}


def from_dict(data: Any) -> Plan:
    """The plan in plain data.

    :raises PlanError: that names what is wrong
    """
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise PlanError(f"not a plan of a load (no format {FORMAT!r} in it)")
    if data.get("version") != VERSION:
        raise PlanError(f"plan version {data.get('version')!r}, but this program knows version {VERSION}")
    fields = {name: value for name, value in data.items() if name not in ("format", "version")}
    _known("plan", fields, Plan)
    operations = fields.get("operations")
    if not isinstance(operations, (list, tuple)):
        raise PlanError(f"operations: {operations!r} is not a list")
    for each in operations:
        if not isinstance(each, Mapping):
            raise PlanError(f"operations: {each!r} is not an object")
        _known("operation", each, Operation)
    try:
        return Plan(**{**fields, "operations": tuple(Operation(**each) for each in operations)})
    except TypeError as error:
        raise PlanError(f"plan: {error}") from error


def read(path: Path | str) -> Plan:
    """The plan in a JSON file.

    :raises PlanError: if there is none in it
    :raises OSError: if it can not be read
    """
    return parse(str(path), Path(path).read_bytes())


def parse(source: str, text: str | bytes) -> Plan:
    """The plan in JSON.

    :param source: where it comes from, for the message
    :raises PlanError: if there is none in it
    """
    try:
        return from_dict(json.loads(text))
    except ValueError as error:
        raise PlanError(f"{source}: {error}") from error


def _known(what: str, given: Mapping[str, Any], kind: type) -> None:
    known = [each.name for each in dataclasses.fields(kind)]
    for name in given:
        if name not in known:
            raise PlanError(f"{what}: there is no {name!r}, only {', '.join(known)}")


def _one_of(what: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise PlanError(f"{what} {value!r} is not one of {', '.join(allowed)}")


def _number(what: str, value: Any, least: float, *, more: bool = False, whole: bool = False) -> None:
    """Check that it is a number of at least ``least``, or more than that."""
    kinds = (int,) if whole else (int, float)
    enough = isinstance(value, kinds) and not isinstance(value, bool) and (value > least if more else value >= least)
    if not enough:
        kind = "whole number" if whole else "number"
        allowed = f"above {least:g}" if more else f"from {least:g} on"
        raise PlanError(f"{what} {value!r} is not a {kind} {allowed}")
