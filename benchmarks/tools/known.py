"""The text of upstream's functions that fastio knows, so that new code can be shown beside it.

``known.json`` has each text once, with the first release that it was read in. Who writes the fingerprints adds to it.
"""

import difflib
import json
import pathlib
from collections.abc import Container, Sequence
from functools import cache

FILE = pathlib.Path(__file__).with_suffix(".json")
#: Lines around a change that are shown.
AROUND = 1


@cache
def texts() -> dict[str, dict[str, list[str]]]:
    """``{key: {release: texts}}``: a name that is defined more than once has several."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def add(key: str, text: str, release: str) -> None:
    """Note a function of ``release``, if no other release has that text."""
    found = texts().setdefault(key, {})
    if all(text not in known for known in found.values()):
        found.setdefault(release, []).append(text)


def write(keys: Container[str]) -> None:
    """Write the texts of these functions; others are not declared any more."""
    kept = {key: found for key, found in texts().items() if key in keys}
    FILE.write_text(json.dumps(kept, indent=0, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def nearest(key: str, text: str, release: str) -> tuple[str, list[str]]:
    """The known release whose ``key`` differs in the fewest lines, and a unified diff; both empty if there is none."""
    differences = [
        (known, difference(key, known, old, release, text))
        for known, several in texts().get(key, {}).items()
        for old in several
    ]
    return min(differences, key=lambda each: changed(each[1]), default=("", []))


def difference(key: str, old_release: str, old: str, release: str, text: str) -> list[str]:
    names = f"{key} ({old_release})", f"{key} ({release})"
    return list(difflib.unified_diff(old.splitlines(), text.splitlines(), names[0], names[1], n=AROUND, lineterm=""))


def changed(lines: Sequence[str]) -> int:
    """How many lines of a unified diff were taken away or are new."""
    return sum(line[0] in "+-" for line in lines[2:])
