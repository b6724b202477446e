"""Filters for the pipeline of Swift's proxy, so that Swift runs without memcached and without Keystone.

The proxy imports this module in Swift's own environment: it uses nothing but the standard library, and fastio where
that runs.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Cache:
    """The part of a memcache client that Swift's proxy uses, in memory. Times are in seconds; 0 is for ever."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[float, Any]] = {}

    def get(self, key: str, raise_on_error: bool = False) -> Any:
        expires, value = self._entries.get(key, (0.0, None))
        if expires and expires <= time.time():
            del self._entries[key]
            return None
        return value

    def set(self, key: str, value: Any, serialize: bool = True, time: float = 0, **ignored: Any) -> None:
        self._entries[key] = (_deadline(time), value)

    def delete(self, key: str, server_key: str | None = None) -> None:
        self._entries.pop(key, None)


def _deadline(seconds: float) -> float:
    return time.time() + seconds if seconds else 0.0


def cache(global_conf: Mapping[str, str], **conf: str) -> Callable[[Application], Application]:
    """paste.deploy's factory of the filter that gives each request one shared :class:`Cache`."""
    shared = Cache()

    def make(application: Application) -> Application:
        def respond(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            environ["swift.cache"] = shared
            return application(environ, start_response)

        return respond

    return make


#: Where :func:`patched` answers.
PATCHED_PATH = "/fastio"


def patched(global_conf: Mapping[str, str], **conf: str) -> Callable[[Application], Application]:
    """paste.deploy's factory of a filter that reports which of fastio's patches are in effect in the server."""

    def make(application: Application) -> Application:
        def respond(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            if environ["PATH_INFO"] != PATCHED_PATH:
                return application(environ, start_response)
            import fastio

            names = {entry.name for entry in fastio.status().entries if entry.in_effect}
            return _answer(start_response, "200 OK", sorted(names))

        return respond

    return make


def keystone(global_conf: Mapping[str, str], **conf: str) -> Callable[[Application], Application]:
    """paste.deploy's factory of a filter that answers as Keystone v3, with what tempauth, behind it, knows.

    ``GET /v3`` and ``POST /v3/auth/tokens`` with a password and a project, which is the account. The token is
    tempauth's, and the catalog has the object store's URL.
    """
    return lambda application: _Keystone(application)


class _Keystone:
    def __init__(self, application: Application) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = (environ["REQUEST_METHOD"], environ["PATH_INFO"].rstrip("/"))
        if request == ("GET", "/v3"):
            link = {"rel": "self", "href": f"http://{environ['HTTP_HOST']}/v3/"}
            version = {"id": "v3.14", "status": "stable", "links": [link], "media-types": []}
            return _answer(start_response, "200 OK", {"version": version})
        if request == ("POST", "/v3/auth/tokens"):
            return self._token(environ, start_response)
        if request[1].startswith("/v3/") or request[1] == "/v3":
            return _refuse(start_response, 404, "Not Found")
        return self._application(environ, start_response)

    def _token(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            body = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
            user = body["auth"]["identity"]["password"]["user"]
            project = body["auth"]["scope"]["project"]["name"]
            name, password = user["name"], user["password"]
        except (ValueError, KeyError, TypeError):
            return _refuse(start_response, 400, "Bad Request")
        status, headers = self._ask_tempauth(environ, f"{project}:{name}", password)
        if status != 200:
            return _refuse(start_response, 401, "Unauthorized")
        now = time.time()
        lifetime = int(headers.get("x-auth-token-expires", 3600))
        domain = {"id": "default", "name": "Default"}
        endpoints = [
            {"id": each, "interface": each, "region": "region", "region_id": "region", "url": headers["x-storage-url"]}
            for each in ("public", "internal", "admin")
        ]
        token = {
            "methods": ["password"],
            "issued_at": _timestamp(now),
            "expires_at": _timestamp(now + lifetime),
            "audit_ids": ["audit"],
            "user": {"id": name, "name": name, "domain": domain},
            "project": {"id": project, "name": project, "domain": domain},
            "roles": [{"id": "member", "name": "member"}],
            "catalog": [{"id": "swift", "type": "object-store", "name": "swift", "endpoints": endpoints}],
        }
        return _answer(start_response, "201 Created", {"token": token}, ("X-Subject-Token", headers["x-auth-token"]))

    def _ask_tempauth(self, environ: dict[str, Any], user: str, password: str) -> tuple[int, dict[str, str]]:
        """The status and the headers of tempauth's answer to a login by tempauth's protocol."""
        answer: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            answer["status"] = int(status.split()[0])
            answer["headers"] = {name.lower(): value for name, value in headers}

        path = "/auth/v1.0"
        request = {
            **environ, "REQUEST_METHOD": "GET", "PATH_INFO": path, "RAW_PATH_INFO": path, "CONTENT_LENGTH": "0",
            "HTTP_X_AUTH_USER": user, "HTTP_X_AUTH_KEY": password,
        }  # fmt: skip
        for _ in self._application(request, start_response):
            pass
        return answer["status"], answer["headers"]


def _timestamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(seconds))


def _answer(
    start_response: Callable[..., Any], status: str, content: Mapping[str, Any] | list[str], *headers: tuple[str, str]
) -> list[bytes]:
    body = json.dumps(content).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body))), *headers])
    return [body]


def _refuse(start_response: Callable[..., Any], code: int, title: str) -> list[bytes]:
    return _answer(start_response, f"{code} {title}", {"error": {"code": code, "title": title, "message": title}})
