"""The upstream code that fastio knows.

The private code that fastio replaces changes without notice. So each function is looked up in ``fingerprints.json``,
which ``python -m benchmarks.tools.fingerprints`` writes from upstream's releases. Its bytecode is looked up first, as
that is quick, and its source if another compiler made the bytecode. If neither is there, nobody has read this code. The
target is then left alone, unless it relies on no more than a contract; see :mod:`fastio.patching.contracts`.

Only :mod:`fastio.patching.hooks` looks code up, for the functions that a target declares.
"""

from __future__ import annotations

import json
import pkgutil
import re
import sys
from collections.abc import Iterable
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from fastio import config
from fastio.patching import distributions, fingerprint

if TYPE_CHECKING:
    from fastio.patching.syntax import Source

#: In the name of a Python whose threads run without the global interpreter lock, as in ``python3.14t``.
FREE_THREADED = "t"
#: Minor version of the running Python, the second key of the table: bytecode differs from one to the next.
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}{FREE_THREADED if FREE_THREADED in sys.abiflags else ''}"
#: The second key of the table for fingerprints of sources, which are the same for every Python.
SOURCE = "source"
#: What the standard library is called in the table.
CPYTHON = "CPython"
#: What has recognised code that the setting of this name accepts.
ACCEPTED = "accept_code"


@cache
def table() -> dict[str, dict[str, dict[str, str]]]:
    """``{"module:qualified.name": {python minor or SOURCE: {fingerprint: releases}}}``, as generated."""
    # importlib.resources would do the same, and bring 30 modules with it.
    text = pkgutil.get_data("fastio.patching", "fingerprints.json")
    assert text is not None
    return json.loads(text)


def known_python(key: str) -> bool:
    """Whether the table has anything for ``key`` that may be met under the running Python."""
    known = table().get(key, {})
    return PYTHON in known or SOURCE in known and any(PYTHON in others for others in table().values())


class Known(NamedTuple):
    """Code that is known."""

    #: upstream's releases that have it
    releases: str
    #: what has recognised it: ``bytecode``, ``source`` or ``accept_code``
    by: str
    #: the entry of the setting ``accept_code``, if that has
    accepted: str = ""


def recognise(key: str, function: Any) -> Known | None:
    """The upstream releases in which ``key`` has exactly this code, or None."""
    # type() and not isinstance(): a proxy around a function claims to be one.
    if type(function) is not FunctionType or not known_python(key):
        return None
    releases = table()[key].get(PYTHON, {}).get(fingerprint.fingerprint(function))
    if releases is not None:
        return Known(releases, "bytecode")
    digest = of_source(function)
    releases = None if digest is None else table()[key].get(SOURCE, {}).get(digest)
    if releases is not None:
        return Known(releases, "source")
    for entry in accepted():
        code, _, release = entry.partition("=")
        if code == f"{key}@{digest}":
            return Known(release or _nearest(key), ACCEPTED, entry)
    return None


def accepted() -> tuple[str, ...]:
    """The entries of ``accept_code`` in force: ``key@fingerprint`` or ``key@fingerprint=release``."""
    settings = config.in_force()
    return settings.accept_code if settings is not None and settings.enabled else ()


def _nearest(key: str) -> str:
    """The newest known release that is not newer than the installed one; if there is none, the oldest."""
    known = [release.rpartition(" ") for release in releases(key)]
    name = known[0][0]
    installed = sys.version.partition(" ")[0] if name == CPYTHON else distributions.version(name) or ""
    versions = ordered(version for _, _, version in known)
    older = [version for version in versions if ordered([version, installed])[0] == version]
    return f"{name} {(older or versions[:1])[-1]}"


def releases(key: str) -> list[str]:
    """The releases of which the code of ``key`` is known, under any Python."""
    found = {release for hashes in table()[key].values() for text in hashes.values() for release in text.split(", ")}
    return sorted(found)


def source(function: FunctionType) -> Source | None:
    """The source of a function that has the name of one in the table; None if there is none, or of other code."""
    # Imported here because few need it: compilers whose bytecode is in the table are the rule.
    from fastio.patching import syntax

    return syntax.find(function, _names())


def of_source(function: FunctionType) -> str | None:
    """The fingerprint of that source, with the defaults that the function has now."""
    from fastio.patching import syntax

    return syntax.of_function(function, _names())


@cache
def _names() -> frozenset[str]:
    """The names of all functions in the table."""
    return frozenset(key.rpartition(":")[2].rpartition(".")[2] for key in table())


def ordered(versions: Iterable[str]) -> list[str]:
    """Versions such as ``4.10.1`` or ``4.10.1+2.deb13u1``, the oldest first."""
    return sorted(versions, key=lambda version: [int(number) for number in re.findall(r"\d+", version)])


def span(releases: str) -> str:
    """A list of releases as people read it: ``eventlet 0.34.3 to 0.41.3``."""
    listed = [release.rpartition(" ") for release in releases.split(", ")]
    name = listed[0][0]
    versions = ordered(version for _, _, version in listed)
    return f"{name} {versions[0]}" if len(versions) == 1 else f"{name} {versions[0]} to {versions[-1]}"
