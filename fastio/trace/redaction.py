"""The filter: what is recorded is what is known to be harmless.

Everything that goes into a file passes :func:`events` or :func:`record`, which know each field by its name and what it
may look like. What is unknown, or looks different, becomes ``***``. Texts of errors and paths keep the words of
``vocabulary.ini`` and lose everything else, so that nobody has to know what a secret looks like.
"""

import configparser
import errno
import functools
import http
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any


def words(text: str) -> frozenset[str]:
    """Those in ``text``, with blanks between them."""
    return frozenset(text.split())


_VOCABULARY = configparser.ConfigParser(interpolation=None)
_VOCABULARY.read_string(Path(__file__).with_name("vocabulary.ini").read_text(encoding="utf-8"))
WORDS, NAMES, SEGMENTS, COLLECTIONS = map(words, _VOCABULARY["vocabulary"].values())
SEGMENTS |= {f"v2.{minor}" for minor in range(20)}
#: Numbers that tell what happened.
STATUSES = frozenset(str(int(status)) for status in http.HTTPStatus)

#: Stands for what was taken out.
MASK = "***"

#: Characters of a text that are looked at, and that are kept.
_CONSIDERED = 2000
_KEPT = 400
#: The longest chain of exceptions, each the cause of the one before.
_CHAIN = 10


class Harmless(str):
    """A text that has been through one of the functions here."""

    __slots__ = ()


# Texts. No pattern takes more than linear time: a client may have made the text.

#: Words with little between them: nothing can hide in so few marks.
_TOKEN = re.compile(
    r"[\"'(\[{<]{0,3}-?[A-Za-z0-9]+(?:'[a-z]{1,2}(?![A-Za-z0-9]))?"
    r"(?:[-._/:=,()'\"<>\[\]]{1,3}[A-Za-z0-9]+(?:'[a-z]{1,2}(?![A-Za-z0-9]))?)*[\"')\]}>,.:;!?]{0,4}"
)
_PIECE = re.compile(r"[A-Za-z0-9]+(?:'[a-z]{1,2}(?![A-Za-z0-9]))?")
#: After the word errno.
_NUMBER = re.compile(r"-?[0-9]{1,3}\]")
#: What is added to an error of the database: whatever was to be written.
_STATEMENT = re.compile(r"\[(?:SQL|parameters): ")
#: What a database has before a value in its message, and what it has behind it.
_VALUE, _BEHIND = re.compile(r"(?<!\w)['\"]|(?<==)\(|(?<=contains )\("), "'\")"
#: The end of a message that names a key or a column.
_KEY = re.compile(r" for (?:key|column) ['\"][\w.]{1,80}['\"][^'\"]*$")
#: Libraries whose errors are those of a database. The numbers of MySQL's client are of errors that quote no values.
_DATABASES = {"sqlite3", "pymysql", "MySQLdb", "mysql", "psycopg2", "psycopg"}
_CLIENTS = range(2000, 3000)
#: Of an address that is otherwise left out: it tells which service was meant.
_SERVICES = (":5000", ":35357", "/identity", "/v3")


def text(value: str) -> Harmless:
    """``value`` in one line of at most 400 characters, with known words only."""
    kept: list[str] = []
    before = ""
    value, *statement = _STATEMENT.split(value, maxsplit=1)
    for token in (_without_values(value) if statement else value)[:_CONSIDERED].split():
        known = _known(token) or (before.lower().endswith("errno") and _NUMBER.fullmatch(token) is not None)
        before = token
        shown = token if known else _address(token) if "://" in token else MASK
        if shown != MASK or kept[-1:] != [MASK]:
            kept.append(shown)
    found = " ".join(kept)
    return Harmless(found if len(found) <= _KEPT else found[: _KEPT - 3] + "...")


def _without_values(message: str) -> str:
    """A database's message without the values in it, whose words may be known: from the first mark to the last one.

    A value may have such marks itself. The key or column that the message names at its end is none.
    """
    key = _KEY.search(message)
    end = key.start() if key else len(message)
    first = _VALUE.search(message, 0, end)
    if first is None:
        return message
    last = max(message.rfind(mark, first.end(), end) for mark in _BEHIND)
    return message[: first.start()] + MASK + message[last + 1 if last >= 0 else end :]


def _known(token: str) -> bool:
    return token in (MASK, "-") or (_TOKEN.fullmatch(token) is not None and all(map(_harmless, _PIECE.findall(token))))


def _harmless(word: str) -> bool:
    if word in NAMES or word in STATUSES:
        return True
    lower = word.lower()
    return lower in WORDS and word in (lower, lower.capitalize(), lower.upper())


def _address(token: str) -> str:
    return MASK + "".join(mark for mark in _SERVICES if re.search(re.escape(mark) + r"(?![0-9])", token))


def error(exception: BaseException) -> Harmless:
    """Class and message of an exception and of its causes."""
    found = _one(exception)
    first = _first(exception)
    return Harmless(found if first is exception else f"{found} (from {_one(first)})")


def status(code: int) -> Harmless:
    """A status that a server has answered with, and what the standard calls it."""
    try:
        return Harmless(f"HTTP {code} {http.HTTPStatus(code).phrase}")
    except ValueError:
        return Harmless(f"HTTP {code}")


def _one(exception: BaseException) -> str:
    name = _class(type(exception).__name__)
    try:
        message = _message(exception)
    except Exception:
        message = "its text cannot be had"
    return f"{name}: {message}" if message else name


def _message(exception: BaseException) -> str:
    """What is known to be harmless of an exception's text."""
    inner = getattr(exception, "inner_exception", None)
    if isinstance(inner, BaseException) and inner is not exception:
        # Those of oslo.db have the text of the one within.
        return _message(inner)
    if hasattr(exception, "cmd"):
        return _of_command(exception)
    driver = getattr(exception, "orig", None)
    if isinstance(driver, BaseException) and driver is not exception:
        return _of_database(driver)
    if type(exception).__module__.partition(".")[0] in _DATABASES:
        return _said_by_database(exception)
    number = getattr(exception, "errno", None)
    if isinstance(exception, OSError) and isinstance(number, int) and number in errno.errorcode:
        meaning = os.strerror(number)
        # Not SSL's errors, which have numbers of their own.
        if exception.strerror in (meaning, errno.errorcode[number]):
            return f"[Errno {number}] {meaning}"
    # Of a webob.exc.HTTPException, the standard's sentence on the status is shown.
    return text(str(getattr(exception, "explanation", None) or str(exception)))


def _of_command(exception: Any) -> str:
    """Of a command that failed: its text has all arguments, which may be secret, and what the command wrote."""
    limit = getattr(exception, "timeout", None)
    if type(limit) in (int, float):
        return f"timed out after {limit} seconds"
    code = getattr(exception, "returncode", getattr(exception, "exit_code", None))
    return f"exit status {code}" if type(code) is int else ""


def _of_database(driver: BaseException) -> str:
    """Of the error of a database's driver that SQLAlchemy has wrapped, with the statement and its values."""
    cls = type(driver)
    return f"({_class(f'{cls.__module__}.{cls.__name__}')}) {_said_by_database(driver)}"


def _said_by_database(driver: BaseException) -> str:
    """Number and message of an error of a database's driver."""
    number = next(iter(driver.args), None)
    messages = [each for each in driver.args if isinstance(each, str)]
    if number not in _CLIENTS:
        messages = [*map(_without_values, messages)]
    return f"{number}, " * (type(number) is int) + " ".join(map(text, messages))


_CLASS = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,79}")


def _class(name: str) -> str:
    return name if _CLASS.fullmatch(name) else MASK


def _first(exception: BaseException) -> BaseException:
    """The exception that began it; a cycle, or a long chain, ends somewhere."""
    for _ in range(_CHAIN):
        before = exception.__cause__ or (None if exception.__suppress_context__ else exception.__context__)
        if before is None:
            break
        exception = before
    return exception


# Paths

_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_IS_UUID = re.compile(_UUID)
#: Segments, at the most.
_DEPTH = 12
_IMAGE = f"(?:{'|'.join(COLLECTIONS)})/{_UUID}"
#: The data of an image, which most bytes are of: a pattern so short that little memory is touched to try it.
_IMAGE_DATA = re.compile(f"/v2/images/{_UUID}/file")
# Those of most requests first, which is what is tried first.
_SEGMENT = "|".join(map(re.escape, ("v2", "images", "file", *sorted(SEGMENTS))))
_USUAL_PATH = re.compile(f"(?:/(?:{_IMAGE}|(?:{_SEGMENT})?(?![^/]))){{1,{_DEPTH}}}")


def path(value: str) -> Harmless:
    """The part of a request's path that belongs to a known route, up to a ``?`` or ``;``."""
    if _IMAGE_DATA.fullmatch(value) or _USUAL_PATH.fullmatch(value):
        return Harmless(value)
    kept: list[str] = []
    before = ""
    for segment in re.split(r"[?;#]", value[:_CONSIDERED], maxsplit=1)[0].split("/", _DEPTH)[:_DEPTH]:
        known = not segment or segment in SEGMENTS or (before in COLLECTIONS and _IS_UUID.fullmatch(segment))
        kept.append(segment if known else MASK)
        before = segment
    return Harmless("/".join(kept))


# What is known by its form

_REQUEST_ID = re.compile(f"req-{_UUID}")
_NAME = re.compile(r"[A-Za-z0-9._+-]{1,40}")
_METHODS = {name: Harmless(name) for name in ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS")}
_OTHER_METHOD = Harmless("other")


def request_id(value: object) -> Harmless | None:
    """A request id as OpenStack has it, ``req-`` and a UUID; None for anything else: a client may have put it there."""
    return Harmless(value) if isinstance(value, str) and _REQUEST_ID.fullmatch(value) else None


def method(value: object) -> Harmless:
    """The method of a request; any that HTTP does not have may be anything."""
    return _METHODS.get(str(value).upper(), _OTHER_METHOD)


@functools.lru_cache(maxsize=1024)
def peer(value: str) -> Harmless:
    """An address of the Internet."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, value)
        except (OSError, ValueError):
            continue
        return Harmless(value)
    return Harmless(MASK if value else "")


@functools.lru_cache(maxsize=256)
def name(value: str) -> Harmless:
    """The name of a store, of a host, of a release."""
    return Harmless(value if _NAME.fullmatch(value) else MASK)


def program(args: Any) -> Harmless:
    """The name of the program that a child process runs, from the ``args`` of its Popen; no arguments."""
    whole = isinstance(args, (str, bytes, os.PathLike))
    if not (whole or isinstance(args, (list, tuple))):
        # What can be iterated over only once is Popen's.
        return Harmless(MASK)
    first = os.fsdecode(args if whole else next(iter(args), ""))
    if _is_program(first):
        return Harmless(os.path.basename(first))
    # One text with a blank in it: nothing but a shell has started that.
    return Harmless("sh" if whole and " " in first.strip() else MASK)


@functools.lru_cache(maxsize=256)
def _is_program(name: str) -> bool:
    """Whether it is the name of an executable, which is no secret."""
    return _NAME.fullmatch(os.path.basename(name)) is not None and shutil.which(name) is not None


def _versions(found: Any) -> Any:
    return {
        name(module): name(version) for module, version in found.items()
        if isinstance(module, str) and isinstance(version, str)
    }  # fmt: skip


def _form(pattern: str) -> Callable[[str], str]:
    matches = re.compile(pattern).fullmatch
    return lambda value: value if matches(value) else MASK


#: Fields that have a number.
_NUMBERS = words(
    """
    bytes chunks busy_ns input_ns waits wait_ns status code wall cpu_s rss threads fds read write net_received net_sent
    fastio-trace pid parent namespace monotonic file lost end events sampled
    """
)
#: Fields that have a text, and what becomes of it.
_TEXTS: dict[str, Callable[[str], str]] = {
    "outcome": _form("ok|error|aborted|unknown"),
    "method": method,
    "path": path,
    "peer": peer,
    **dict.fromkeys(("request", "global", "message"), lambda value: request_id(value) or MASK),
    **dict.fromkeys(("error", "recovered"), text),
    **dict.fromkeys(("store", "component", "program", "host", "os", "runtime", "arch", "kernel"), name),
    "boot": _form(f"{_UUID}|"),
    # Ids of W3C's Trace Context: of a trace, of the caller's span, of this one.
    "trace": _form("[0-9a-f]{32}"),
    **dict.fromkeys(("caller", "context"), _form("[0-9a-f]{16}")),
}


def _admitted(field: str, value: Any) -> Any:
    """What may be recorded of one field."""
    kind = type(value)
    if kind in (int, float, bool) and field in _NUMBERS:
        return value
    if isinstance(value, str) and field in _TEXTS:
        return value if kind is Harmless else _TEXTS[field](str(value))
    return MASK


def record(values: Mapping[str, Any]) -> dict[str, Any]:
    """What may be recorded of ``values``; a field that is not known keeps neither its name nor its value."""
    return {
        (field if field in _NUMBERS or field in _TEXTS else MASK): _admitted(field, value)
        for field, value in values.items()
    }


def head(values: Mapping[str, Any], versions: Mapping[str, str]) -> dict[str, Any]:
    """The first line of a file."""
    return {**record(values), "versions": _versions(versions)}


#: What nearly all values are: to look at the type is enough then.
_KINDS: dict[str, type] = {**dict.fromkeys(_NUMBERS, int), **dict.fromkeys(_TEXTS, Harmless)}
_EVENT_NAME = re.compile(r"[a-z][a-z0-9_-]{0,40}(?:\.[a-z0-9_-]{1,40}){1,3}")
#: Those that were seen.
_event_names: set[str] = set()
_MOST_NAMES = 1024


def events(found: Iterable[Any]) -> list[Any]:
    """What may be recorded of events; most often each is as it was."""
    kind_of, known = _KINDS.get, _event_names
    admitted = []
    for each in found:
        if each[4] in known:
            for field, value in each[6].items():
                if kind_of(field) is not type(value):
                    break
            else:
                admitted.append(each)
                continue
        admitted.append((*each[:4], _event_name(each[4]), each[5], record(each[6])))
    return admitted


def _event_name(name: str) -> str:
    if _EVENT_NAME.fullmatch(name) is None:
        return MASK
    if len(_event_names) < _MOST_NAMES:
        _event_names.add(name)
    return name
