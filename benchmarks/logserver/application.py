"""The WSGI application: check the path, find the log, send it as it comes."""

import logging
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import eventlet

from benchmarks.logserver import markup, paths
from benchmarks.logserver.inflate import inflate
from benchmarks.logserver.sources import Chunks, Log, Unreachable

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
    :param chunk_size: bytes of what is inflated or marked up at a time; what is sent as it is comes in the source's
    """

    def __init__(self, sources: dict[str, Source], chunk_size: int) -> None:
        self._sources = sources
        self._chunk_size = chunk_size

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        if method not in ("GET", "HEAD"):
            return _answer(start_response, "405 Method Not Allowed", f"{method} is not known here", Allow="GET, HEAD")
        try:
            name = paths.name_of(environ["PATH_INFO"])
            query = _query(environ.get("QUERY_STRING", ""), tuple(self._sources))
        except (paths.BadPath, BadQuery) as error:
            return _answer(start_response, "400 Bad Request", str(error))
        try:
            log = self._find(name, query["source"])
        except Unreachable as error:
            LOGGER.error("%s: %s", name, error)
            return _answer(start_response, "503 Service Unavailable", "a source of logs does not answer")
        if log is None:
            return _answer(start_response, "404 Not Found", "there is no such log")
        return self._send(name, log, query, start_response, with_content=method == "GET")

    def _find(self, name: str, first: str) -> Log | None:
        names = list(self._sources)
        for each in names[names.index(first) :]:
            log = self._sources[each].open(name)
            if log is not None:
                return log
        return None

    def _send(
        self, name: str, log: Log, query: dict[str, str], start_response: StartResponse, with_content: bool
    ) -> Iterable[bytes]:
        chunks: Iterator[bytes] = log.chunks
        size = log.size
        if name.endswith(".gz"):
            chunks, size = inflate(chunks, self._chunk_size), None
        as_html, level = query["html"] == "1", query["level"]
        if as_html or level:
            least = markup.rank(level) if level else 0
            chunks, size = markup.marked(chunks, least, as_html, self._chunk_size), None
        if size is None:
            chunks = _turns(chunks)
        headers = [("Content-Type", f"text/{'html' if as_html else 'plain'}; charset=utf-8")]
        if size is not None:
            headers.append(("Content-Length", str(size)))
        start_response("200 OK", headers)
        if not with_content:
            log.chunks.close()
            return []
        return Chunks(chunks, lambda _: log.chunks.close())


def _turns(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Let other requests run after each piece, also after an empty one, which is not sent."""
    for piece in pieces:
        eventlet.sleep(0)
        if piece:
            yield piece


def _query(text: str, sources: tuple[str, ...]) -> dict[str, str]:
    """The query with its defaults; raises :class:`BadQuery` that says what is allowed."""
    allowed = {"source": sources, "html": ("0", "1"), "level": ("", *markup.SEVERITIES)}
    found = {name: values[0] for name, values in allowed.items()}
    try:
        given = urllib.parse.parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=8)
    except ValueError:
        raise BadQuery("the query is not NAME=VALUE&...") from None
    for name, value in given:
        if name not in allowed:
            raise BadQuery(f"the query may have {', '.join(allowed)}")
        if value not in allowed[name]:
            raise BadQuery(f"{name} may be {', '.join(filter(None, allowed[name]))}")
        found[name] = value
    return found


def _answer(start_response: StartResponse, status: str, text: str, **headers: str) -> list[bytes]:
    body = (text + "\n").encode()
    start_response(
        status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *headers.items()]
    )
    return [body]
