"""The tables of kinds of requests, of their states, and of classes of errors. The first row that fits counts.

A machine begins in the state ``new`` and is at its end in ``done``. Each event of a request, in the order of time, is
looked for among its transitions: ``begin NAME`` or ``end NAME``, the states that it may come in, and the state after
it. ``end NAME error`` and ``end NAME aborted`` are of those outcomes alone, and come before ``end NAME``. NAME may have
``*`` in it. An event that has transitions, but none from the state of the request, is reported as unexpected; one
without any transition changes nothing.
"""

import functools
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

#: The state before the first event and that in which nothing counts any more.
NEW, DONE = "new", "done"
#: In transitions: the same state, and any state.
STAY, ANY = "=", "*"
OTHER = "other"

_Rows = Sequence[tuple[str, str, str]]


class Machine:
    """The states of a kind of request."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = [([*event.split(), ""][:3], states.split(" | "), to) for event, states, to in rows]
        named = [state for _, states, to in self._rows for state in (*states, to)]
        #: in the order in which the table names them
        self.states = [state for state in dict.fromkeys(named) if state not in (ANY, STAY)]

    def following(self, state: str, event: str, name: str, outcome: str) -> str | None:
        """The state after an event, which may be the same; None if the event must not come in ``state``."""
        if state == DONE:
            return state
        relevant = self._relevant(event, name, outcome)
        for states, to in relevant:
            if ANY in states or state in states:
                return state if to == STAY else to
        return None if relevant else state

    @functools.cache  # noqa: B019 - there are a few machines, which stay
    def _relevant(self, event: str, name: str, outcome: str) -> list[tuple[list[str], str]]:
        return [
            (states, to)
            for (kind, pattern, only), states, to in self._rows
            if kind == event and only in ("", outcome) and fnmatchcase(name, pattern)
        ]


_BEFORE: _Rows = (
    ("begin client.request", "new", "to the server"),
    ("begin *.request", "new | to the server", "middleware"),
    ("begin glance.*.*", "middleware", "controller"),
)
_AFTER: _Rows = (
    ("end *.body", "body", "finishing"),
    ("end client.request", "*", "done"),
    ("end *.request", "*", "answered"),
)
_DOWNLOAD = Machine(
    (
        *_BEFORE,
        ("end glance.*.*", "controller | store: opening | store: open | store failed", "serializing"),
        ("begin store.*.get", "middleware | controller | serializing | store failed", "store: opening"),
        ("begin store.*.get", "body | store: opening | store: open", "="),
        ("end store.*.get error", "store: opening", "store failed"),
        ("end store.*.get", "*", "="),
        ("begin *.body", "middleware | controller | serializing | store: opening | store failed", "body"),
        *_AFTER,
    )
)
_UPLOAD = Machine(
    (
        *_BEFORE,
        ("end glance.*.*", "controller | saving | store failed", "serializing"),
        ("begin store.*.add", "middleware | controller | saving | store failed", "store: adding"),
        ("begin store.*.add", "store: adding", "="),
        ("end store.*.add error", "store: adding", "store failed"),
        ("end store.*.add", "store: adding", "saving"),
        ("begin *.body", "*", "body"),
        *_AFTER,
    )
)
_PLAIN = Machine(
    (
        *_BEFORE,
        ("end glance.*.*", "controller", "serializing"),
        ("begin *.body", "middleware | controller | serializing", "body"),
        *_AFTER,
    )
)


class Kind(NamedTuple):
    """Requests of a method, empty for any, whose whole path matches."""

    name: str
    machine: Machine
    method: str = ""
    path: str = ".*"


_IMAGES = "(/[^/]+)*/v2/images"
KINDS = (
    Kind("download", _DOWNLOAD, "GET", f"{_IMAGES}/[^/]+/file"),
    Kind("upload", _UPLOAD, "PUT", f"{_IMAGES}/[^/]+/(file|stage)"),
    Kind("import", _PLAIN, "POST", f"{_IMAGES}/[^/]+/import"),
    Kind("create", _PLAIN, "POST", f"{_IMAGES}/?"),
    Kind("list", _PLAIN, "GET", f"{_IMAGES}/?"),
    Kind("show", _PLAIN, "GET", f"{_IMAGES}/[^/]+"),
    Kind("delete", _PLAIN, "DELETE", f"{_IMAGES}/[^/]+"),
    Kind(OTHER, _PLAIN),
)


@functools.lru_cache(maxsize=1024)
def kind(method: str, path: str) -> Kind:
    """Of a request."""
    return next(each for each in KINDS if each.method in ("", method) and re.fullmatch(each.path, path))


#: Said of a request that was aborted, behind the error in it.
ABORTED = " (request aborted)"
_GONE = (
    "EPIPE|ECONNRESET|ECONNABORTED|ClientDisconnect|DisconnectionError|GeneratorExit|GreenletExit|ChunkReadError"
    r"|(^|< )OSError(?= <|$| \()"
)
_MYSQL = r"\b(pymysql|MySQLdb|mysql)\.\S* "
#: Category, components, and a part of the classes and codes of the error and its causes.
CATEGORIES = tuple(
    (name, component, re.compile(pattern))
    for name, component, pattern in (
        ("client gone", "store.*", rf"({_GONE}|Connection|Timeout|IncompleteRead|Invalid).*\(request aborted\)"),
        ("database locked", ANY, rf"SQLITE_(BUSY|LOCKED)|DBDeadlock|DeadlockDetected|{_MYSQL}(1020|1205|1213)\b"),
        ("database pool exhausted", ANY, rf"sqlalchemy\.exc\.TimeoutError|TooManyConnections|{_MYSQL}(1040|1203)\b"),
        ("database down", ANY,
         rf"DBConnectionError|CantStartEngineError|SQLITE_(CANTOPEN|IOERR)|{_MYSQL}20[0-9]{{2}}\b"
         r"|psycopg2?\.OperationalError"),
        ("disk full", ANY, "ENOSPC|EDQUOT|StorageFull|SQLITE_FULL|HTTP 507"),
        ("quota exceeded", ANY, "StorageQuotaFull|LimitExceeded|OverLimit"),
        ("identity service down", ANY,
         r"keystonemiddleware\.\S*ServiceError|AuthUrlNotFound"
         r"|keystone(auth1|client)\.\S*(ConnectFailure|ConnectTimeout|UnknownConnection|DiscoveryFailure|HTTP 50)"),
        ("authentication failure", ANY,
         r"HTTP 401|Unauthorized|NotAuthenticated|InvalidToken|AuthorizationFailure|MissingCredential|NoCredentials"
         r"|rados\.Permission"),
        ("not allowed", ANY, "HTTP 403|Forbidden|AccessDenied"),
        ("client gone", "store.*", r"ClientDisconnect|GeneratorExit|GreenletExit|ChunkReadError|^OSError(?= <|$)"),
        ("store down", "store.*",
         r"ECONN|EPIPE|EHOSTUNREACH|ENETUNREACH|ENOTCONN|ESTALE|EIO\b|gaierror|RemoteDisconnected|ConnectionError"
         r"|MaxRetryError|NewConnectionError|ConnectionClosedError|RemoteServiceUnavailable|HTTP 50|IncompleteRead"
         r"|ProtocolError|ConnectFail|rados\.ObjectNotFound|BackendException|ClientException(?! HTTP)"),
        ("store down", ANY,
         "RemoteServiceUnavailable|EndpointConnectionError|MaxRetryError|NewConnectionError|BackendException"
         "|StoreAddDisabled"),
        ("time-out", ANY, "Timeout|TimedOut|ETIMEDOUT|HTTP (408|504)"),
        # glanceclient reports data whose hash is wrong by an OSError with another's number.
        ("wrong data", "client", "BrokenPipeError(?! EPIPE)"),
        ("server not reached", "client",
         "ECONN|EPIPE|EHOSTUNREACH|ENETUNREACH|gaierror|Connection|RemoteDisconnected|CommunicationError|IncompleteRead"
         "|ChunkedEncodingError|ProtocolError|InvalidEndpoint"),
        ("client gone", ANY, f"{_GONE}|EBADF|^aborted"),
        ("image not found", ANY, "HTTP (404|410)|NotFound|NoSuchKey|HTTPGone|ENOENT"),
        ("conflict", ANY, "HTTP 409|Conflict|Duplicate|InvalidImageStatusTransition|InUseByStore|HasSnapshot"),
        ("out of resources", ANY, "EMFILE|ENFILE|ENOMEM|EAGAIN|MemoryError"),
        ("no permission on the store", ANY, "StorageWriteDenied|EACCES|EPERM|EROFS"),
        ("wrong data", ANY, "SignatureVerification|InvalidImageData|Checksum"),
        ("child process failed", ANY, "exit status|ProcessExecutionError|CalledProcessError"),
        ("bad request", ANY, "HTTP 4(00|13|15)|BadRequest|Invalid"),
        ("service unavailable", ANY, "HTTP 50[234]|ServiceUnavailable"),
        ("database error", ANY, r"\b(oslo_db|sqlalchemy|sqlite3|psycopg2?|pymysql|MySQLdb)\."),
        ("internal error", ANY, "HTTP 500|InternalServerError"),
    )
)  # fmt: skip


def category(component: str, error: str) -> str:
    """Of an error of a component."""
    found = (name for name, of, pattern in CATEGORIES if fnmatchcase(component, of) and pattern.search(error))
    return next(found, OTHER)
