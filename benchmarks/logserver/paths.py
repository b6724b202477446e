"""Which log a request asks for; whatever could be anything else than a name below the root is refused."""

#: Bytes: of Swift's names of objects, and of the names in a file system.
MOST = 1024
MOST_PART = 255


class BadPath(ValueError):
    """A path that no log has; the message says why."""


def name_of(path: str) -> str:
    """The name of the log of a request's path, without the slash before it.

    :param path: ``PATH_INFO`` of WSGI: unquoted, its bytes as ISO-8859-1
    :raises BadPath: if it is not a plain relative name in UTF-8: no empty, ``.`` or ``..`` part, no backslash and
        nothing that cannot be printed
    """
    try:
        text = path.encode("iso-8859-1").decode("utf-8")
    except UnicodeError:
        raise BadPath("not UTF-8") from None
    if not text.startswith("/") or text == "/":
        raise BadPath("no name")
    name = text[1:]
    if len(name.encode()) > MOST:
        raise BadPath(f"longer than {MOST} bytes")
    if not name.isprintable():
        raise BadPath("a character that cannot be printed")
    if "\\" in name:
        raise BadPath("a backslash")
    for part in name.split("/"):
        if part in ("", ".", ".."):
            raise BadPath(f"{part!r} is no part of a name")
        if len(part.encode()) > MOST_PART:
            raise BadPath(f"a part longer than {MOST_PART} bytes")
    return name
