"""Taking secrets out of what is recorded: tokens, signatures, passwords, and all that follows the ``?`` of an address.

What is not known to be harmless goes: an error text serves to be grouped by its template, and there it makes no
difference whether a long opaque word was a checksum or a key.
"""

from __future__ import annotations

import re

#: Stands for what was taken out.
MASK = "***"

#: Characters of an error text that are looked at, and that are kept.
_CONSIDERED = 4096
_KEPT = 400

#: What the name of a secret has in it. No pattern here takes more than linear time: a client may have made the text.
_SENSITIVE = (
    r"(?:token|passw(?:or)?d|passphrase|pwd|secret|signature|credential|authorization|cookie|api[_-]?key"
    r"|access[_-]?key|private[_-]?key|account[_-]?key|session[_-]?key|temp_url_sig|x-amz-security)[\w.-]{0,60}"
)
_UUID = re.compile(r"(?:req-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RULES = (
    # The values that SQLAlchemy adds to an error of the database: whatever was to be written.
    (re.compile(r"\[parameters: .*", re.DOTALL), f"[parameters: {MASK}]"),
    # Header lines whose value has several words.
    (re.compile(r"(?i)((?:authorization|cookie)[\"']?\s*[:=]\s*)[^\r\n]+"), rf"\1{MASK}"),
    # user:password@ of an address; a password may have an @ itself
    (re.compile(r"([a-zA-Z0-9+.-]{1,30}://)[^\s/?#'\"<>]*@"), rf"\1{MASK}@"),
    # What follows the ? of an address, but not the ? of a statement of the database
    (re.compile(r"\?(?![],)])[^\s'\"<>]+"), f"?{MASK}"),
    # "password": "two words", token=..., X-Auth-Token: ...
    (
        re.compile(
            rf"(?i)({_SENSITIVE}[\"']?\s*(?:[:=]|=>|\bis\b)\s*)"
            r"(?:[bu]?\"(?:[^\"\\]|\\.)*\"?|[bu]?'(?:[^'\\]|\\.)*'?|[^\s,;&)}\]]+)"
        ),
        rf"\1{MASK}",
    ),
    (re.compile(r"(?i)\b(bearer|basic|digest)\s+[\w+/=.~:-]{8,}"), rf"\1 {MASK}"),
    # Keystone's tokens, JSON web tokens, and long words in hexadecimal
    (re.compile(r"gAAAA[\w=-]+"), MASK),
    (re.compile(r"eyJ[\w-]+(?:\.[\w-]*){0,2}"), MASK),
    (re.compile(r"(?<![\w-])[0-9a-fA-F]{32,}(?![\w-])"), MASK),
    (re.compile(r"AKIA[0-9A-Z]{12,}"), MASK),
)
_LONG = re.compile(r"[\w+=-]{40,}")


def text(value: str) -> str:
    """``value`` in one line of at most 400 characters, without secrets."""
    value = value[:_CONSIDERED]
    for pattern, replacement in _RULES:
        value = pattern.sub(replacement, value)
    value = " ".join(_LONG.sub(_opaque, value).split())
    return value if len(value) <= _KEPT else value[: _KEPT - 3] + "..."


def _opaque(match: re.Match[str]) -> str:
    """A long word that may be a key; not where all of it is of words and UUIDs."""
    word = match[0]
    rest = _UUID.sub("", word)
    mixed = any(c.isdigit() for c in rest) and any(c.isalpha() for c in rest)
    return MASK if mixed and len(rest) >= 20 else word


def error(exception: BaseException) -> str:
    """Class and message of an exception, and of the one that it came from, without secrets."""
    found = _one(exception)
    first = _first(exception)
    return found if first is exception else f"{found} (from {_one(first)})"


def _one(exception: BaseException) -> str:
    try:
        # What is shown of a webob.exc.HTTPException is the standard's sentence on the status.
        message = getattr(exception, "explanation", None) or str(exception)
    except Exception:
        message = "its text can not be had"
    name = type(exception).__name__
    return f"{name}: {text(str(message))}" if message else name


def _first(exception: BaseException) -> BaseException:
    """The exception that began it; a cycle, or a long chain, ends somewhere."""
    for _ in range(10):
        before = exception.__cause__ or (None if exception.__suppress_context__ else exception.__context__)
        if before is None:
            break
        exception = before
    return exception


#: Short words and UUIDs: nothing in it can be a secret, and each request has one.
#: UUIDs first, which short words would go back from letter by letter.
_USUAL_PATH = re.compile(
    r"(?:/(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[a-z0-9_.]{0,20})){1,8}"
)


def path(value: str) -> str:
    """The path of a request, without what follows a ``?`` or ``;``, in at most 200 characters."""
    if _USUAL_PATH.fullmatch(value):
        return value
    value = re.split(r"[?;#]", value, maxsplit=1)[0]
    return text(value)[:200]


_REQUEST_ID = re.compile(r"req-[0-9A-Za-z-]{1,60}")


def request_id(value: object) -> str | None:
    """A request id as OpenStack has it, ``req-…``; None for anything else, which a client may have put there."""
    return value if isinstance(value, str) and _REQUEST_ID.fullmatch(value) else None
