"""The services that a load can be put on: one module for each, with one client, and one of ``plan.PROTOCOLS``.

A client belongs to one user. Shared state of a worker's users (a login) is made once per worker, by
:meth:`Client.shared`.
"""

import importlib
import urllib.parse
from collections.abc import Mapping
from typing import Any

from benchmarks.load import Failed, Wrong
from benchmarks.load.content import Check, Content
from benchmarks.load.exchange import Connection, Exchange
from benchmarks.load.plan import Plan
from benchmarks.load.schedule import Step


class Refused(Failed):
    """The service has refused what a load cannot do without: a login, a container."""


class Client:
    """One user's way to a service.

    :param shared: the result of :meth:`shared` in this process
    """

    #: keys that the plan's ``server`` must have
    needed: tuple[str, ...] = ()
    #: operations that the service has
    kinds: tuple[str, ...] = ("read", "write", "delete", "list")

    def __init__(self, plan: Plan, content: Content, shared: Any) -> None:
        self.plan = plan
        self.content = content
        source = plan.server.get("source_address", "")
        self.connection = Connection(self.url(plan, shared), plan.keep_alive, plan.patience, source)

    @classmethod
    def check(cls, plan: Plan) -> None:
        """Raise :class:`~benchmarks.load.Wrong` if the plan is none for this service."""
        missing = [name for name in cls.required(plan) if name not in plan.server]
        if missing:
            raise Wrong(f"server of {plan.protocol}: needs {', '.join(missing)}; it has {', '.join(plan.server)}")
        for operation in plan.operations:
            if operation.kind not in cls.kinds:
                raise Wrong(f"{plan.protocol} cannot {operation.kind}, only {', '.join(cls.kinds)}")

    @classmethod
    def required(cls, plan: Plan) -> tuple[str, ...]:
        """Keys that the server of this plan must have."""
        return cls.needed

    @classmethod
    def shared(cls, plan: Plan) -> Any:
        """Log in, or whatever is done once for all users of a worker; raises :class:`Refused`."""
        return None

    @classmethod
    def url(cls, plan: Plan, shared: Any) -> str:
        """Where the requests go."""
        return plan.server["url"]

    def do(self, step: Step, found: Exchange) -> str:
        """Do the operation; returns what was wrong with the answer, empty if nothing was.

        :raises OSError: or :class:`http.client.HTTPException`, if there was no whole answer
        """
        return getattr(self, step.kind)(step, found)

    def make_container(self, name: str) -> None:
        """Make a container; nothing happens if it is there. Raises :class:`Refused`."""

    def remove_container(self, name: str) -> None:
        """Remove it; it must be empty. Nothing happens if there is none. Raises :class:`Refused`."""

    def close(self) -> None:
        self.connection.close()

    # Shared by the clients.

    def get(self, path: str, step: Step, found: Exchange, headers: Mapping[str, str]) -> str:
        """Read an object and compare it."""
        check = Check(self.content, step.number, step.size, self.plan.verify)
        try:
            self.connection.exchange("GET", path, headers, into=check.add, found=found)
        finally:
            found.bytes = check.seen
        return failure(found, 200) or _cut_off(found) or check.problem()

    def put(self, path: str, step: Step, found: Exchange, headers: Mapping[str, str], *good: int) -> str:
        """Write an object."""
        size = step.size
        self.connection.exchange(
            "PUT", path, headers, body=lambda: self.content.pieces(step.number, size), length=size, found=found
        )
        problem = failure(found, *good)
        found.bytes = 0 if problem else size
        return problem

    def ask(self, method: str, path: str, found: Exchange, headers: Mapping[str, str], *good: int) -> str:
        """A request without content."""
        self.connection.exchange(method, path, headers, into=lambda _: None, found=found)
        return failure(found, *good)


def _cut_off(found: Exchange) -> str:
    """The failure of an answer that has fewer bytes than it announced."""
    length = found.headers.get("Content-Length", "") if found.headers is not None else ""
    if length.isdecimal() and int(length) != found.bytes:
        return f"{found.bytes} bytes instead of {length}"
    return ""


def failure(found: Exchange, *good: int) -> str:
    """Return what the answer says if its status is none of these."""
    if found.status in good:
        return ""
    return f"status {found.status}: {found.text.decode('utf-8', 'replace')}".rstrip(": ")


def quoted(*parts: str) -> str:
    """A path of these parts. The last ones may contain slashes."""
    return "/" + "/".join(urllib.parse.quote(part.strip("/")) for part in parts if part.strip("/"))


def client_class(protocol: str) -> type[Client]:
    """The client of a protocol: a class and a module have its name."""
    return getattr(importlib.import_module(f"{__name__}.{protocol}"), protocol.capitalize())


def once(plan: Plan) -> Client:
    """A client for what is done once, around a load. Raises :class:`Refused` if there is no login."""
    kind = client_class(plan.protocol)
    kind.check(plan)
    return kind(plan, Content(plan), kind.shared(plan))
