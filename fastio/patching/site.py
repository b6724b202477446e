"""Code that a site has read and signed: the file that the setting ``site_fingerprints`` names.

A distribution's fix can make a function unknown that a patch replaces. Whoever has read it can say that the patch does
the same as the fixed function, with a name, a date and a reason. This holds for exactly this code, and the report shows
it. ``fastio fingerprint add`` writes the file.
"""

import datetime
import json
import os
import re
import stat
from collections.abc import Iterable
from typing import Any

from fastio.patching import catalogue
from fastio.patching.catalogue import Signed

FORMAT = {"format": "fastio-fingerprints", "version": 1}


def read(path: str) -> tuple[Signed, ...]:
    """What the file at ``path`` has.

    :raises ValueError: if it is not such a file; the text says what is wrong
    :raises OSError: if it cannot be read
    """
    with open(path, encoding="utf-8") as file:
        if os.fstat(file.fileno()).st_mode & stat.S_IWOTH:
            raise ValueError("everybody can write to it")
        data = json.load(file)
    if not isinstance(data, dict) or {name: data.get(name) for name in FORMAT} != FORMAT:
        raise ValueError(f"it does not begin with {json.dumps(FORMAT)[1:-1]}")
    entries = data.get("functions")
    if data.keys() != {*FORMAT, "functions"} or not isinstance(entries, list):
        raise ValueError("it has something else than a list of functions")
    found = tuple(_read_entry(number, entry) for number, entry in enumerate(entries, 1))
    if len({(signed.key, signed.fingerprint) for signed in found}) < len(found):
        raise ValueError("the same code is signed twice")
    return found


def write(path: str, signed: Iterable[Signed]) -> None:
    """Replace the file in one step.

    :raises ValueError: if :func:`read` would refuse it
    """
    functions = [each._asdict() for each in signed]
    for number, entry in enumerate(functions, 1):
        _read_entry(number, entry)
    new = f"{path}.new"
    with open(new, "w", encoding="utf-8") as file:
        json.dump({**FORMAT, "functions": functions}, file, indent=1)
        file.write("\n")
    os.chmod(new, 0o644)
    os.replace(new, path)


def _read_entry(number: int, entry: Any) -> Signed:
    if not isinstance(entry, dict) or entry.keys() != set(Signed._fields):
        raise ValueError(f"entry {number}: not {', '.join(Signed._fields)}")
    signed = Signed(**entry)
    for name, value in entry.items():
        if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > 200:
            raise ValueError(f"entry {number}: {name}: not a line of text of at most 200 characters")
    if signed.key not in catalogue.table():
        raise ValueError(f"entry {number}: no patch relies on {signed.key}")
    if not re.fullmatch("[0-9a-f]{16}", signed.fingerprint):
        raise ValueError(f"entry {number}: fingerprint: not 16 hexadecimal digits")
    known = catalogue.releases(signed.key)
    if signed.like not in known:
        raise ValueError(f"entry {number}: like: {signed.like} is not one of {', '.join(known)}")
    try:
        datetime.date.fromisoformat(signed.date)
    except ValueError:
        raise ValueError(f"entry {number}: date: {signed.date} is not of the form 2026-11-23") from None
    return signed
