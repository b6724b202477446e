"""The list of mutants."""

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastio.errors import meant

ROOT = Path(__file__).resolve().parents[3]

LIST = Path(__file__).with_name("mutants.toml")

#: The layers of the tree that the faults are in, for the table: what of each is seen.
AREAS = ("public", "patching", "io", "concurrency", "patches", "drivers", "tracing", "benchmarks")

_REQUIRED = {"name", "area", "file", "old", "new", "tests"}
_KEYS = _REQUIRED | {"eventlet", "needs", "python"}


class ListError(ValueError):
    """The list is not as it must be, or not about the code that is here."""


@dataclass(frozen=True)
class Mutant:
    """One fault.

    :param name: unique, of letters, digits and hyphens
    :param area: one of :data:`AREAS`
    :param file: from the root of the checkout
    :param old: text that is in the file exactly once
    :param new: what the fault has there
    :param tests: what pytest is given; at least one of these tests must fail
    :param eventlet: the tests run monkey patched (TEST_EVENTLET=1)
    :param needs: modules that the tests need, and without which they are skipped
    :param python: the oldest Python that shows the fault, such as ``3.13``
    """

    name: str
    area: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    eventlet: bool = False
    needs: tuple[str, ...] = ()
    python: str = "3.10"

    def why_not(self) -> str:
        """Why its tests cannot be run here; empty if they can."""
        if sys.version_info[:2] < tuple(map(int, self.python.split("."))):
            return f"only Python {self.python} and later show it"
        missing = [name for name in self.needs if importlib.util.find_spec(name) is None]
        return f"its tests need {', '.join(missing)}" if missing else ""

    def applied(self, text: str) -> str:
        """The text of the file with the fault.

        :raises ListError: the code has changed
        """
        found = text.count(self.old)
        if found != 1:
            raise ListError(f"{self.name}: {self.file} has its old text {found} times, not once")
        return text.replace(self.old, self.new)


def read(path: Path = LIST) -> list[Mutant]:
    """The mutants of a file, in its order.

    :raises ListError: names the mutant, and what is wrong about it
    """
    # Python 3.10 has no tomllib; tomli became it.
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        entries = toml.loads(path.read_text(encoding="utf-8")).get("mutant", [])
    except ValueError as error:
        raise ListError(f"{path}: {error}") from None
    mutants = [_mutant(entry) for entry in entries]
    names = [mutant.name for mutant in mutants]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ListError(f"{path}: more than one mutant is called {', '.join(twice)}")
    return mutants


def select(mutants: Sequence[Mutant], names: Sequence[str]) -> list[Mutant]:
    """Those of these names; all of them without names.

    :raises ListError: names what is not among them
    """
    known = [mutant.name for mutant in mutants]
    unknown = sorted(set(names) - set(known))
    if unknown:
        like = meant(unknown[0], known)
        raise ListError(f"no mutant is called {', '.join(unknown)}; --list shows their names{like}")
    return [mutant for mutant in mutants if not names or mutant.name in names]


def _mutant(entry: dict[str, Any]) -> Mutant:
    name = entry.get("name", "a mutant without a name")
    missing, unknown = sorted(_REQUIRED - set(entry)), sorted(set(entry) - _KEYS)
    if missing or unknown:
        said = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has unknown {', '.join(unknown)}"] * bool(unknown)
        raise ListError(f"{name}: {' and '.join(said)}")
    if entry["area"] not in AREAS:
        raise ListError(f"{name}: area {entry['area']!r} is not one of {', '.join(AREAS)}")
    if not entry["tests"] or not entry["old"] or entry["old"] == entry["new"]:
        raise ListError(f"{name}: needs tests, an old text, and a new one that differs")
    return Mutant(**{**entry, "tests": tuple(entry["tests"]), "needs": tuple(entry.get("needs", ()))})
