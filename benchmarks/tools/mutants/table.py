"""The kill table: what became of each mutant, kept as JSON with a line for each; and what has changed since."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.tools.mutants.listed import AREAS, Mutant

#: That of the list, in the repository.
KEPT = Path(__file__).with_name("killed.json")

FORMAT = "fastio-mutants"
VERSION = 1

#: Of a mutant that a test has seen, and of one that cannot be tried here. Whatever else it is, no test has seen it.
KILLED, SKIPPED = "killed", "skipped"


class TableError(ValueError):
    """A file that is no kill table."""


@dataclass(frozen=True)
class Row:
    """What became of one mutant.

    :param verdict: as :class:`~benchmarks.tools.mutants.trial.Verdict` has it
    :param by: the test that has seen it
    :param seconds: that the run of its tests took
    """

    name: str
    area: str
    verdict: str
    by: str
    seconds: float


def read(path: Path) -> dict[str, Row]:
    """The rows of a table, by the names of the mutants.

    :raises TableError: if the file is none
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if (data["format"], data["version"]) != (FORMAT, VERSION):
            raise ValueError(f"format {data['format']!r}, version {data['version']!r}")
        rows = [Row(**each) for each in data["mutants"]]
    except (ValueError, KeyError, TypeError) as error:
        raise TableError(f"{path}: no table of mutants ({FORMAT}, version {VERSION}): {error}") from None
    return {row.name: row for row in rows}


def write(path: Path, rows: Iterable[Row]) -> None:
    lines = ",\n".join(json.dumps(asdict(row)) for row in rows)
    head = json.dumps({"format": FORMAT, "version": VERSION})[:-1]
    path.write_text(f'{head}, "mutants": [\n{lines}\n]}}\n', encoding="utf-8")


def merged(mutants: Sequence[Mutant], before: Mapping[str, Row], now: Mapping[str, Row]) -> list[Row]:
    """A row for each mutant of the list, in its order: that of now, or that of before if it was not tried."""
    tried = {name: row for name, row in now.items() if row.verdict != SKIPPED or name not in before}
    rows = {**before, **tried}
    return [rows[mutant.name] for mutant in mutants if mutant.name in rows]


def new_survivors(before: Mapping[str, Row], now: Mapping[str, Row], known: Iterable[str]) -> list[str]:
    """What is seen no more, or is new and not seen: a line for each.

    :param known: the names of the list. One that is gone from it is seen no more
    """
    known = set(known)
    found = []
    for name, row in before.items():
        if row.verdict == KILLED and name not in known:
            found.append(f"{name}: killed by {row.by}, and gone from the list")
    for name, row in now.items():
        was = before.get(name)
        if row.verdict in (KILLED, SKIPPED) or (was is not None and was.verdict not in (KILLED, SKIPPED)):
            continue
        then = "not in the table" if was is None else f"killed by {was.by}" if was.verdict == KILLED else was.verdict
        found.append(f"{name}: {then}, now {row.verdict}")
    return found


def by_area(rows: Iterable[Row]) -> str:
    """How many of each area are seen, of those that were tried."""
    tried = [row for row in rows if row.verdict != SKIPPED]
    of = Counter(row.area for row in tried)
    seen = Counter(row.area for row in tried if row.verdict == KILLED)
    return ", ".join(f"{area} {seen[area]} of {of[area]}" for area in AREAS if of[area])
