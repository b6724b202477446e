"""Recordable values: classes of errors, codes, routes, and names that the code or the operator has chosen.

No text of a client or a server is recorded, so secrets need not be recognised. Of texts, only a
:class:`Recordable` is written, and only the functions here make one.
"""

import errno
import functools
import os
import re
import shutil
from typing import Any

#: Stands for a name that may not be recorded.
MASK = "***"
#: The longest chain of exceptions, each the cause of the one before.
_CHAIN = 8


class Recordable(str):
    """A text that one of the functions here has made."""

    __slots__ = ()


# Errors.

_CLASS = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,119}")
_SYMBOL = re.compile(r"[A-Z][A-Z0-9_]{2,40}")
#: Libraries whose errors have their number first: those of MySQL.
_NUMBERED = ("pymysql", "MySQLdb", "mysql")
#: Attributes by which libraries give the status of an HTTP answer.
_STATUSES = ("status_code", "http_status", "code", "status")


def error(exception: BaseException) -> Recordable:
    """The classes of an exception and of its causes, each with its code: ``StorageFull < OSError ENOSPC``."""
    chain: list[str] = []
    found: BaseException | None = exception
    for _ in range(_CHAIN):
        if found is None:
            break
        try:
            code, cause = _code(found), _cause(found)
        except Exception:
            # Attributes of an exception may be properties, which may fail.
            code, cause = "", found.__cause__
        link = f"{_class(type(found))} {code}".rstrip()
        if link not in chain:
            chain.append(link)
        found = cause
    return Recordable(" < ".join(chain))


def status(code: int) -> Recordable:
    """An answer that is an error by its status alone."""
    return Recordable(f"HTTP {code}")


def _cause(exception: BaseException) -> BaseException | None:
    # Of oslo.db, SQLAlchemy and urllib3, whose exceptions are raised in place of these.
    for name in ("inner_exception", "orig", "reason"):
        found = getattr(exception, name, None)
        if isinstance(found, BaseException) and found is not exception:
            return found
    return exception.__cause__ or (None if exception.__suppress_context__ else exception.__context__)


def _class(cls: type) -> str:
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    return name if _CLASS.fullmatch(name) else MASK


def _code(exception: Any) -> str:
    """The number or symbol of an error, empty if it has none."""
    if not isinstance(exception, Exception):
        # Such as SystemExit, whose code is no status.
        return ""
    number = getattr(exception, "errno", None)
    if isinstance(exception, OSError) and type(number) is int and number in errno.errorcode:
        # Some libraries, such as SSL, put their own texts and numbers into an OSError.
        name = errno.errorcode[number]
        return name if exception.strerror in (os.strerror(number), name) else ""
    exit_status = getattr(exception, "returncode", getattr(exception, "exit_code", None))
    if type(exit_status) is int:
        return f"exit status {exit_status}"
    symbol = getattr(exception, "sqlite_errorname", None)
    if isinstance(symbol, str) and _SYMBOL.fullmatch(symbol):
        return symbol
    first = next(iter(getattr(exception, "args", ())), None)
    if type(first) is int and type(exception).__module__.partition(".")[0] in _NUMBERED:
        return str(first)
    answer = getattr(exception, "response", None)
    if isinstance(answer, dict):
        # botocore's.
        metadata = answer.get("ResponseMetadata")
        answered = metadata.get("HTTPStatusCode") if isinstance(metadata, dict) else None
    else:
        owners = (exception, answer)
        answered = next((value for owner in owners for name in _STATUSES if (value := _status_of(owner, name))), None)
    return f"HTTP {answered}" if type(answered) is int and 100 <= answered < 600 else ""


def _status_of(owner: Any, name: str) -> int | None:
    value = getattr(owner, name, None)
    return value if type(value) is int and value else None


# Requests.

_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_REQUEST_ID = re.compile(f"req-{_UUID}")
_METHODS = {name: Recordable(name) for name in ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS")}
_OTHER_METHOD = Recordable("other")
#: Segments of the image API's routes, and of those of the services beside it.
_SEGMENTS = frozenset(
    re.findall(
        r"\S+",
        """
    actions cache clear deactivate detail discovery file files glance healthcheck identity image image-api images
    import info locations log members metadefs namespaces objects properties quota reactivate reload resource_types
    schema schemas stage storage stores tags task tasks usage versions
    """,
    )
)
_VERSION = re.compile("v[0-9](?:[.][0-9]{1,2})?")
#: The paths of most requests, and their templates.
_USUAL = re.compile(f"/v2/images/{_UUID}(/file)?")
_IMAGE, _DATA = Recordable("/v2/images/{id}"), Recordable("/v2/images/{id}/file")
#: Segments, and characters of a path, that are looked at.
_DEPTH, _CONSIDERED = 12, 2000


def route(path: str) -> Recordable:
    """The template of a request's path, such as ``/v2/images/{id}/file``."""
    found = _USUAL.fullmatch(path)
    if found is not None:
        return _DATA if found[1] else _IMAGE
    path = re.split("[?;#]", path[:_CONSIDERED], maxsplit=1)[0]
    segments = path.split("/", _DEPTH)[:_DEPTH]
    known = (each if not each or each in _SEGMENTS or _VERSION.fullmatch(each) else "{id}" for each in segments)
    return Recordable("/".join(known))


def method(value: object) -> Recordable:
    """The method of a request, ``other`` for any that HTTP does not have."""
    return _METHODS.get(str(value).upper(), _OTHER_METHOD)


def request_id(value: object) -> Recordable | None:
    """A request id of OpenStack, ``req-`` and a UUID; None for anything else, which a client may have sent."""
    return Recordable(value) if isinstance(value, str) and _REQUEST_ID.fullmatch(value) else None


# Names.

_NAME = re.compile(r"[A-Za-z0-9._+-]{1,64}")


@functools.lru_cache(maxsize=256)
def name(value: str) -> Recordable:
    """The name of a store, a host or a service."""
    return Recordable(value if _NAME.fullmatch(value) else MASK)


def program(args: Any) -> Recordable:
    """The name of the program that a child process runs, from the ``args`` of its Popen, without its arguments."""
    whole = isinstance(args, (str, bytes, os.PathLike))
    if not (whole or isinstance(args, (list, tuple))):
        # An iterator can be read only once, by Popen.
        return Recordable(MASK)
    first = os.fsdecode(args if whole else next(iter(args), ""))
    if _is_program(first):
        return Recordable(os.path.basename(first))
    # A single text with blanks is a command line, which only a shell runs.
    return Recordable("sh" if whole and " " in first.strip() else MASK)


@functools.lru_cache(maxsize=256)
def _is_program(name: str) -> bool:
    """Whether it is the name of an executable or a script, which is no secret."""
    known = shutil.which(name) is not None or os.path.isfile(name)
    return known and _NAME.fullmatch(os.path.basename(name)) is not None
