"""OpenStack Swift: objects in a container.

``server`` has ``user`` (``account:user``), ``key`` and where to log in: ``auth_v1`` or ``auth_v3``, as the access of
the backend has them. A token that is refused is renewed, once for all users of a worker. Or it has ``storage_url`` and
``token``: then there is no login. ``policy`` is that of containers that are made.
"""

import json
import threading
import urllib.parse
from collections.abc import Callable
from typing import Any

from benchmarks.load import Wrong
from benchmarks.load.exchange import Connection, Exchange
from benchmarks.load.plan import Plan
from benchmarks.load.protocols import Client, Refused, failure, quoted
from benchmarks.load.schedule import Step

#: How often an operation is tried if its token is refused: a new one may be shared, and near its end already.
TRIES = 3


class Login:
    """Where the account is, and the token; shared by the users of a worker."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self.storage_url = ""
        self.token = ""
        #: logins so far
        self.count = 0
        self.renew("")

    def renew(self, refused: str) -> None:
        """Get a new token, unless another user has since ``refused`` was used. Raises :class:`Refused`."""
        with self._lock:
            if self.token == refused and "token" in self._plan.server:
                if refused:
                    raise Refused("the token is refused, and there is no login for another one")
                self.storage_url, self.token = self._plan.server["storage_url"], self._plan.server["token"]
            elif self.token == refused:
                how = _version_1 if "auth_v1" in self._plan.server else _version_3
                self.storage_url, self.token = how(self._plan)
                self.count += 1


def _version_1(plan: Plan) -> tuple[str, str]:
    server = plan.server
    parts = urllib.parse.urlsplit(server["auth_v1"])
    connection = Connection(server["auth_v1"], keep_alive=False, patience=plan.patience)
    found = connection.exchange("GET", parts.path, {"X-Auth-User": server["user"], "X-Auth-Key": server["key"]})
    if found.status not in (200, 204) or found.headers is None:
        raise Refused(f"login to {server['auth_v1']}: {failure(found, 200)}")
    return found.headers["X-Storage-Url"], found.headers["X-Auth-Token"]


def _version_3(plan: Plan) -> tuple[str, str]:
    server = plan.server
    project, _, user = server["user"].partition(":")
    domain = {"id": server.get("domain", "default")}
    identity = {
        "methods": ["password"],
        "password": {"user": {"name": user, "domain": domain, "password": server["key"]}},
    }
    scope = {"project": {"name": project, "domain": domain}}
    request = json.dumps({"auth": {"identity": identity, "scope": scope}}).encode()
    path = urllib.parse.urlsplit(server["auth_v3"]).path.rstrip("/") + "/auth/tokens"
    connection = Connection(server["auth_v3"], keep_alive=False, patience=plan.patience)
    content: list[bytes | memoryview] = []
    found = connection.exchange(
        "POST", path, {"Content-Type": "application/json"}, lambda: [request], len(request), content.append
    )
    if found.status != 201 or found.headers is None:
        raise Refused(f"login to {server['auth_v3']}: {failure(found, 201)}")
    catalog = json.loads(b"".join(content))["token"]["catalog"]
    for service in catalog:
        if service["type"] == "object-store":
            for endpoint in service["endpoints"]:
                if endpoint["interface"] == server.get("interface", "public"):
                    return endpoint["url"], found.headers["X-Subject-Token"]
    raise Refused(f"login to {server['auth_v3']}: no object store in the catalog")


class Swift(Client):
    def __init__(self, plan: Plan, content: Any, shared: Login) -> None:
        super().__init__(plan, content, shared)
        self._login = shared

    @classmethod
    def required(cls, plan: Plan) -> tuple[str, ...]:
        return ("storage_url",) if "token" in plan.server else ("user", "key")

    @classmethod
    def check(cls, plan: Plan) -> None:
        super().check(plan)
        if not {"auth_v1", "auth_v3", "token"} & set(plan.server):
            raise Wrong(f"server of swift: needs auth_v1 or auth_v3; it has {', '.join(plan.server)}")

    @classmethod
    def shared(cls, plan: Plan) -> Login:
        return Login(plan)

    @classmethod
    def url(cls, plan: Plan, shared: Login) -> str:
        return shared.storage_url

    def _path(self, container: str, name: str = "") -> str:
        return quoted(urllib.parse.urlsplit(self._login.storage_url).path, container, name)

    def _logged_in(self, request: Callable[[dict[str, str]], str], found: Exchange) -> str:
        """The request with the token, and with a new one if that is refused."""
        for _ in range(TRIES):
            token = self._login.token
            found.text = b""
            problem = request({"X-Auth-Token": token})
            if found.status != 401:
                break
            self._login.renew(token)
        return problem

    def read(self, step: Step, found: Exchange) -> str:
        path = self._path(step.container, step.name)
        return self._logged_in(lambda headers: self.get(path, step, found, headers), found)

    def write(self, step: Step, found: Exchange) -> str:
        path = self._path(step.container, step.name)
        # 202: taken as well, but another user has written the same object since.
        return self._logged_in(lambda headers: self.put(path, step, found, headers, 201, 202), found)

    def delete(self, step: Step, found: Exchange) -> str:
        path = self._path(step.container, step.name)
        return self._logged_in(lambda headers: self.ask("DELETE", path, found, headers, 204), found)

    def list(self, step: Step, found: Exchange) -> str:
        path = self._path(step.container) + "?limit=1000"
        return self._logged_in(lambda headers: self.ask("GET", path, found, headers, 200, 204), found)

    def make_container(self, name: str) -> None:
        self._container("PUT", name, 201, 202)

    def remove_container(self, name: str) -> None:
        self._container("DELETE", name, 204, 404)

    def _container(self, method: str, name: str, *good: int) -> None:
        found = Exchange()
        policy = self.plan.server.get("policy") if method == "PUT" else None
        more = {"X-Storage-Policy": policy} if policy else {}
        path = self._path(name)
        problem = self._logged_in(lambda headers: self.ask(method, path, found, headers | more, *good), found)
        self.close()
        if problem:
            raise Refused(f"{method} of container {name}: {problem}")
