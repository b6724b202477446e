"""The WSGI application: check the path, find the log, send it as it comes."""

import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from benchmarks.logserver import paths
from benchmarks.logserver.sources import Log, Unreachable

LOGGER = logging.getLogger(__name__)

StartResponse = Callable[..., Any]


class Source(Protocol):
    """Where logs may be."""

    def open(self, name: str) -> Log | None: ...


class BadQuery(ValueError):
    """A query that means nothing here."""


class Application:
    """Logs over HTTP.

    :param sources: by name, in the order in which they are asked; ``?source=NAME`` begins with that one
    """

    def __init__(self, sources: dict[str, Source]) -> None:
        self._sources = sources

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        if method not in ("GET", "HEAD"):
            return _answer(start_response, "405 Method Not Allowed", f"{method} is not known here", Allow="GET, HEAD")
        try:
            name = paths.name_of(environ["PATH_INFO"])
            first = _first_source(environ.get("QUERY_STRING", ""), tuple(self._sources))
        except (paths.BadPath, BadQuery) as error:
            return _answer(start_response, "400 Bad Request", str(error))
        try:
            log = self._find(name, first)
        except Unreachable as error:
            LOGGER.error("%s: %s", name, error)
            return _answer(start_response, "503 Service Unavailable", "a source of logs does not answer")
        if log is None:
            return _answer(start_response, "404 Not Found", "there is no such log")
        headers = [("Content-Type", "text/plain; charset=utf-8")]
        if log.size is not None:
            headers.append(("Content-Length", str(log.size)))
        start_response("200 OK", headers)
        if method == "HEAD":
            log.chunks.close()
            return []
        return log.chunks

    def _find(self, name: str, first: str) -> Log | None:
        names = list(self._sources)
        for each in names[names.index(first) :]:
            log = self._sources[each].open(name)
            if log is not None:
                return log
        return None


def _first_source(text: str, sources: tuple[str, ...]) -> str:
    """The source that a query names; raises :class:`BadQuery` that says what is allowed."""
    if not text:
        return sources[0]
    name, _, value = text.partition("=")
    if name != "source" or value not in sources:
        raise BadQuery(f"the query may be source={' or source='.join(sources)}")
    return value


def _answer(start_response: StartResponse, status: str, text: str, **headers: str) -> list[bytes]:
    body = (text + "\n").encode()
    start_response(
        status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *headers.items()]
    )
    return [body]
