"""The releases that fastio knows, and the releases that were tested together.

Nothing here is written by hand. The ranges come from the registry, the known releases from ``fingerprints.json``, and
the tested ones from ``tested.json``, which ``python -m benchmarks.tools.matrix`` writes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from fastio.patching import known_code, registry
from fastio.patching.registry import Target
from fastio.tables import Table

TESTED = Path(__file__).with_name("tested.json")
#: Distributions in which the environments differ, besides Python.
DISTRIBUTIONS = ("eventlet", "oslo.concurrency", "glance_store")


@dataclass(frozen=True)
class Environment:
    """Releases that were installed together, and the tests that passed there; none has failed."""

    python: str
    #: distribution: version
    versions: dict[str, str]
    #: how many tests passed and were skipped, natively and with ``eventlet.monkey_patch()`` before everything
    native: dict[str, int]
    monkey_patched: dict[str, int] = field(default_factory=dict)
    #: requirements for pip, and tests that are left out
    requirements: Sequence[str] = ()
    without: Sequence[str] = ()


def known_releases(target: Target) -> dict[str, list[str]]:
    """``{distribution: versions}`` in which all is known that has to be, of what ``target`` relies on."""
    known: dict[str, set[str]] = {}
    for key, uses in target.functions(None).items():
        for name, versions in known_code.releases(key).items() if uses.parameters is None and not uses.python else ():
            known[name] = known[name] & set(versions) if name in known else set(versions)
    return {name: known_code.ordered(versions) for name, versions in known.items()}


def all_releases() -> dict[str, list[str]]:
    """``{distribution: versions}`` of which some code is known."""
    known: dict[str, set[str]] = {}
    for key in known_code.table():
        for name, versions in known_code.releases(key).items():
            known.setdefault(name, set()).update(versions)
    return {name: known_code.ordered(known[name]) for name in sorted(known, key=str.lower)}


@lru_cache(maxsize=1)
def tested() -> list[Environment]:
    """The environments in which the tests have passed, as committed."""
    entries = json.loads(TESTED.read_text(encoding="utf-8"))
    return [Environment(**entry) for entry in entries]


def patches_table() -> Table:
    """The patches; the targets of a patch of which the same holds share a row."""
    alike: dict[tuple[str, ...], int] = {}
    for patch in registry.patches():
        for target in patch.targets:
            spans = (known_code.span(" ".join((name, *known))) for name, known in known_releases(target).items())
            ranges = ", ".join(map(str, patch.requirements(target))) or "-"
            cells = (patch.name, ", ".join(spans) or "-", ranges)
            alike[cells] = alike.get(cells, 0) + 1
    head = ["patch", "targets", "replaces code of", "applied to"]
    return Table("", head, [[patch, str(count), *others] for (patch, *others), count in alike.items()])


def tested_table() -> Table:
    """The environments."""
    title = "Tested together (tests that passed + that were skipped; none has failed):"
    head = ["Python", *DISTRIBUTIONS, "native", "monkey patched"]
    rows = [
        [
            environment.python,
            *(environment.versions.get(name, "-") for name in DISTRIBUTIONS),
            _counts(environment.native),
            _counts(environment.monkey_patched),
        ]
        for environment in tested()
    ]
    return Table(title, head, rows)


def _counts(run: dict[str, int]) -> str:
    return f"{run['passed']} + {run['skipped']}" if run else "-"
