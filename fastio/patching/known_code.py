"""Which of upstream's code fastio knows, and what a wrapper relies on in code that it need not know.

The private code that fastio replaces changes without notice, so its source is hashed and looked up in
``fingerprints.json``, which ``python -m benchmarks.tools.fingerprints`` writes from upstream's releases. A hash that is
not there means unread code: the target is then left alone, unless the setting ``accept_code`` has it.
Of a function that goes on running, a patch declares the parameters and the names that it relies on, see :class:`Uses`.

Only :mod:`fastio.patching.hooks` looks code up, for the functions that a target declares.
"""

import importlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from fastio import config
from fastio.patching import distributions

#: In the name of a Python whose threads run without the global interpreter lock, as in ``python3.14t``.
FREE_THREADED = "t"
#: Minor version of the running Python.
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}{FREE_THREADED if FREE_THREADED in sys.abiflags else ''}"
#: The name of the standard library in the table.
CPYTHON = "CPython"
#: How code is recognised: by its hash, by an entry of the setting, by the parameters and names that are used.
SOURCE, ACCEPTED, USES = "source", "accept_code", "uses"

#: Flags of code: variable positional and keyword arguments, generators, and all that is called or iterated otherwise.
_VARARGS, _VARKEYWORDS, _GENERATOR, _KIND = 0x4, 0x8, 0x20, 0x20 | 0x80 | 0x200


class Uses(NamedTuple):
    """The parts of a function that a target relies on while it goes on running; that of a bare one has to be known."""

    #: its parameters as in a ``def`` without annotations, ``*_`` for any further ones; None: the code has to be known
    parameters: str | None = None
    #: names that its code has, separated by spaces: variables, attributes, arguments by keyword. It is a generator
    #: exactly if ``yield`` is one of them
    names: str = ""
    #: the Pythons in which upstream has the function, such as ``>= 3.15``
    python: str = ""


#: The code has to be known.
KNOWN = Uses()


class Known(NamedTuple):
    """Code that is known, or has what is used."""

    #: how it was recognised: one of ``SOURCE``, ``ACCEPTED`` and ``USES``
    by: str
    #: upstream's releases that have it, such as ``eventlet 0.37.0 0.38.2``; empty if it only has what is used
    releases: str = ""
    #: the entry of ``accept_code``, if that has it
    accepted: str = ""


@cache
def table() -> dict[str, dict[str, str]]:
    """``{"module:qualified.name": {hash: releases}}``, as generated; releases are ``eventlet 0.37.0 0.38.2``."""
    # Imported when it is wanted, for code that is replaced.
    import json

    # It may be in an archive.
    loader: Any = sys.modules[__name__].__loader__
    return json.loads(loader.get_data(os.path.join(os.path.dirname(__file__), "fingerprints.json")))


def prepare() -> None:
    """Import and read what it takes to recognise code, which must not come with a lock held."""
    table()
    importlib.import_module("fastio.patching.sources")


@cache
def known_pythons() -> set[str]:
    """The minor versions of Python of which a release is in the table."""
    known = (text.split(" ") for of_key in table().values() for text in of_key.values())
    return {version.rpartition(".")[0] for name, *versions in known if name == CPYTHON for version in versions}


def releases(key: str) -> dict[str, list[str]]:
    """``{distribution: versions}`` of which the code of ``key`` is known, the oldest first."""
    found: dict[str, set[str]] = {}
    for text in table().get(key, {}).values():
        name, *versions = text.split(" ")
        found.setdefault(name, set()).update(versions)
    return {name: ordered(versions) for name, versions in found.items()}


def recognise(key: str, function: FunctionType) -> Known | None:
    """How the function is known as ``key``; None if it is not."""
    # Imported when it is wanted: where no library is imported yet, no code is looked at.
    from fastio.patching import sources

    hashed = sources.hash_of(function)
    known = table().get(key, {}).get(hashed or "")
    if known is not None:
        return Known(SOURCE, known)
    entry = f"{key}@{hashed}"
    return Known(ACCEPTED, _nearest(key), entry) if entry in accepted() else None


def accepted() -> tuple[str, ...]:
    """The entries of ``accept_code`` in force, each ``key@hash``."""
    settings = config.in_force()
    return settings.accept_code if settings is not None and settings.enabled else ()


def _nearest(key: str) -> str:
    """The newest known release that is not newer than the installed one; if there is none, the oldest."""
    ((name, versions),) = releases(key).items()
    installed = sys.version.partition(" ")[0] if name == CPYTHON else distributions.version(name) or ""
    older = [version for version in versions if ordered([version, installed])[0] == version]
    return f"{name} {(older or versions[:1])[-1]}"


def ordered(versions: Iterable[str]) -> list[str]:
    """Versions such as ``4.10.1`` or ``4.10.1+2.deb13u1``, the oldest first."""
    return sorted(versions, key=lambda version: [int(number) for number in re.findall(r"\d+", version)])


def span(releases: str) -> str:
    """Releases as people read them: ``eventlet 0.34.3 to 0.41.3``."""
    name, *versions = releases.split(" ")
    return f"{name} {versions[0]}" if len(versions) == 1 else f"{name} {versions[0]} to {versions[-1]}"


# Parts used of code that goes on running.


def lacks(uses: Uses, code: CodeType, defaults: Any) -> str:
    """Return the used parts that the function lacks; empty if it has all.

    :param defaults: from :func:`fastio.patching.sources.defaults`
    """
    from fastio.patching import sources

    wanted, found = f"{uses.parameters}, ", ", ".join(_parameters(code, *defaults)) + ", "
    if not (found.startswith(wanted[:-4]) if wanted.endswith("*_, ") else found == wanted):
        return f"takes ({found[:-2]}), not ({uses.parameters})"
    names = uses.names.split()
    if code.co_flags & _KIND != (_GENERATOR if "yield" in names else 0):
        return "is a generator or a coroutine now, or no longer one"
    missing = set(names) - {"yield"} - {name for each in sources.codes(code) for name in _names(each)}
    return f"has no {', '.join(sorted(missing))}" if missing else ""


def _names(code: CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
    for constant in code.co_consts:
        # The names of arguments are a tuple.
        yield from (each for each in (constant if type(constant) is tuple else (constant,)) if type(each) is str)


def _parameters(code: CodeType, positional: Sequence[str], keyword: dict[str, str]) -> list[str]:
    """The parameters in the spelling of a ``def``, without annotations."""

    def spelled(name: str, default: str | None) -> str:
        return name if default is None else f"{name}={default}"

    names = iter(code.co_varnames)
    missing = code.co_argcount - len(positional)
    found = [spelled(next(names), value) for value in (*[None] * missing, *positional)]
    if code.co_posonlyargcount:
        found.insert(code.co_posonlyargcount, "/")
    only_keyword = [spelled(name, keyword.get(name)) for name in islice(names, code.co_kwonlyargcount)]
    if code.co_flags & _VARARGS:
        found.append(f"*{next(names)}")
    elif only_keyword:
        found.append("*")
    found += only_keyword
    if code.co_flags & _VARKEYWORDS:
        found.append(f"**{next(names)}")
    return found
