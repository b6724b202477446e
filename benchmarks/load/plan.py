"""The plan of a load, as plain data that every worker understands, wherever it runs."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.load import Wrong, files, selectors

FORMAT = "fastio-load-plan"
#: Grows when an older worker would do something else with a plan than a newer one.
VERSION = 2

KINDS = ("read", "write", "delete", "list")
PROTOCOLS = ("glance", "swift", "logs")


@dataclass(frozen=True)
class Names:
    """Names that differ in a number, which is chosen as :mod:`benchmarks.load.selectors` has it."""

    selector: str
    prefix: str = ""
    suffix: str = ""

    def name(self, number: int) -> str:
        return f"{self.prefix}{number}{self.suffix}"


@dataclass(frozen=True)
class Operation:
    """One kind of operation of a plan, and the objects that it is done to.

    :param kind: one of :data:`KINDS`
    :param weight: how often, beside the other operations of the plan
    :param containers: of the objects (buckets, directories)
    :param objects: in each container; a ``list`` has none
    :param sizes: of what is written, such as ``c(64)KB``; what is read may have any size, or one that is constant
    :param scan: every object of every container once, in order; both are ``c(N)`` or ``r(LOW,HIGH)``
    """

    kind: str
    weight: int = 1
    containers: Names = Names("c(1)", "load")
    objects: Names | None = None
    sizes: str = ""
    scan: bool = False

    def __post_init__(self) -> None:
        _one_of("operation", self.kind, KINDS)
        _number(f"{self.kind}: weight", self.weight, 1, whole=True)
        if (self.objects is None) != (self.kind == "list"):
            raise Wrong(f"{self.kind}: " + ("has no objects" if self.kind == "list" else "needs objects"))
        if not self.sizes and self.kind == "write":
            raise Wrong("write: needs sizes")
        if self.sizes and self.kind not in ("read", "write"):
            raise Wrong(f"{self.kind}: has no sizes")
        for what, names in (("containers", self.containers), ("objects", self.objects)):
            with _named(f"{self.kind}: {what}"):
                if names and selectors.selector(names.selector).kind not in "cr" and self.scan:
                    raise Wrong(f"{names.selector!r} cannot be scanned, only c(N) and r(LOW,HIGH)")
        with _named(f"{self.kind}: sizes"):
            if self.sizes and selectors.size_selector(self.sizes)[0].kind != "c" and self.kind == "read":
                raise Wrong(f"{self.sizes!r} is not the size of all that is read, as c(64)KB is")

    def all_containers(self) -> tuple[str, ...]:
        """The containers that are scanned."""
        chosen = selectors.selector(self.containers.selector)
        return tuple(map(self.containers.name, range(chosen.low, chosen.high + 1)))

    @property
    def scanned(self) -> int:
        """How many objects there are to be scanned; containers, if it has no objects."""
        objects = selectors.selector(self.objects.selector).width if self.objects else 1
        return len(self.all_containers()) * objects


@dataclass(frozen=True)
class Plan:
    """A load.

    :param protocol: one of :data:`PROTOCOLS`
    :param server: how the service is reached, see the module of the protocol in :mod:`benchmarks.load.protocols`
    :param operations: those that are mixed
    :param users: how many do one operation after the other, all of them concurrently
    :param total: operations, of all users together; 0: as many as there is time for
    :param seconds: after which no operation is begun any more; 0: no limit
    :param seed: of the objects' content and of all that is chosen at random
    :param keep_alive: a user keeps its connection; else each operation has a new one
    :param patience: seconds that an operation may take; then it has failed
    :param verify: every byte that is read is compared with what it should be; else only their number
    :param think: seconds that a user waits after each operation
    :param rate: operations a second that are due at random moments, as from independent clients, of all workers
        together (an open loop); 0: a user begins an operation when its last one has ended (a closed loop)
    :param labels: shown in a report beside the plan: the server, for example
    """

    protocol: str
    server: Mapping[str, Any]
    operations: tuple[Operation, ...]
    users: int = 1
    total: int = 0
    seconds: float = 0
    seed: int = 0
    keep_alive: bool = True
    patience: float = 60
    verify: bool = True
    think: float = 0
    rate: float = 0
    labels: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _one_of("protocol", self.protocol, PROTOCOLS)
        _number("users", self.users, 1, whole=True)
        for name in ("total", "seed"):
            _number(name, getattr(self, name), 0, whole=True)
        for name in ("seconds", "think", "rate"):
            _number(name, getattr(self, name), 0)
        _number("patience", self.patience, 0, more=True)
        if self.think and self.rate:
            raise Wrong(f"think {self.think!r} goes without a rate {self.rate!r}, which says when to begin")
        if not self.operations:
            raise Wrong("operations: there is none")
        if not self.total and not self.seconds:
            raise Wrong("total and seconds are both 0: the load would never end")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, from which :func:`from_dict` makes the same plan."""
        return {"format": FORMAT, "version": VERSION, **dataclasses.asdict(self)}


def from_dict(data: Any) -> Plan:
    """The plan in plain data.

    :raises Wrong: that names what is wrong
    """
    files.check(data, "plan of a load", FORMAT, VERSION)
    fields = {name: value for name, value in data.items() if name not in ("format", "version")}
    operations = fields.get("operations")
    if not isinstance(operations, (list, tuple)):
        raise Wrong(f"operations: {operations!r} is not a list")
    try:
        return _made(Plan, "plan", {**fields, "operations": tuple(map(_operation, operations))})
    except TypeError as error:
        raise Wrong(f"plan: {error}") from error


def _operation(data: Any) -> Operation:
    if isinstance(data, Mapping):
        names = {key: _made(Names, key, data[key]) for key in ("containers", "objects") if data.get(key) is not None}
        data = {**data, **names}
    return _made(Operation, "operation", data)


def _made(kind: type, what: str, given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise Wrong(f"{what}: {given!r} is not an object")
    known = [each.name for each in dataclasses.fields(kind)]
    for name in given:
        if name not in known:
            raise Wrong(f"{what}: there is no {name!r}, only {', '.join(known)}")
    return kind(**given)


def read(path: Path | str) -> Plan:
    """The plan in a JSON file.

    :raises Wrong: if there is none in it
    :raises OSError: if it cannot be read
    """
    return parse(str(path), Path(path).read_bytes())


def parse(source: str, text: str | bytes) -> Plan:
    """The plan in JSON.

    :param source: where it comes from, for the message
    :raises Wrong: if there is none in it
    """
    try:
        return from_dict(json.loads(text))
    except json.JSONDecodeError as error:
        raise Wrong(f"{source}: not JSON: {error}") from error
    except ValueError as error:
        raise Wrong(f"{source}: {error}") from error


@contextlib.contextmanager
def _named(what: str) -> Iterator[None]:
    """Report an error of a selector as one of the plan, with its place."""
    try:
        yield
    except Wrong as error:
        raise Wrong(f"{what}: {error}") from error


def _one_of(what: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise Wrong(f"{what} {value!r} is not one of {', '.join(allowed)}")


def _number(what: str, value: Any, least: float, *, more: bool = False, whole: bool = False) -> None:
    """Check that it is a number of at least ``least``, or more than that."""
    kinds = (int,) if whole else (int, float)
    enough = isinstance(value, kinds) and not isinstance(value, bool) and (value > least if more else value >= least)
    if not enough:
        kind = "whole number" if whole else "number"
        allowed = f"above {least:g}" if more else f"from {least:g} on"
        raise Wrong(f"{what} {value!r} is not a {kind} {allowed}")
