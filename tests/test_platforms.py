"""The platforms of the documentation: what is kept of ``fastio status``."""

from __future__ import annotations

from typing import Any

from benchmarks.tools import debian, platforms
from benchmarks.tools.platforms import Platform
from fastio.report import Outcome

DEBIAN = Platform("Debian 12", "2022.2 Zed", "packages", {})


def status(**outcomes: str) -> dict[str, Any]:
    """Return the output of ``fastio status --json``, by the names of patches."""
    patches = [
        {"name": name, "target": f"library:{name}", "outcome": each, "found": "1.0"} for name, each in outcomes.items()
    ]
    return {"versions": {"CPython": "3.11.2", "glance": "25.1.0", "eventlet": "absent"}, "patches": patches}


def test_patches_in_effect_and_reasons_for_the_others() -> None:
    said = status(
        one="applied", two="applied", old="unsupported version", gone="absent", quiet="off", new="changed upstream code"
    )
    found = DEBIAN.with_status(said)
    effect, reasons = platforms.tables([found])
    assert effect.rows == [["2022.2 Zed", "Debian 12", "packages", "3.11.2", "25.1.0", "–", "–", "2 of 4"]]
    assert reasons.rows == [
        ["2022.2 Zed", "Debian 12", "old (unsupported version: 1.0); new (changed upstream code: 1.0)", "gone"]
    ]
    assert platforms.unsupported(said) == "old"
    assert found.text().startswith("Debian 12, 2022.2 Zed: 2 of 4 in effect\n  CPython 3.11.2\n")


def test_every_outcome_is_reported() -> None:
    """Either it is in effect, or off on purpose, or in one of the two columns."""
    for outcome in Outcome:
        (row,) = platforms.tables([DEBIAN.with_status(status(it=outcome.value))])[1].rows
        assert any("it" in cell for cell in row[2:]) or outcome in (Outcome.APPLIED, Outcome.OFF)


def test_kept_platforms() -> None:
    """All but 2 % is in effect on Debian 13 and sid, all but 10 % on Debian 12, and the others say where from."""
    found = {each.name: each for each in platforms.kept()}
    assert set(debian.SUITES.values()) == {name for name, each in found.items() if each.of == "packages"}
    for name, goal in (("Debian 12", 0.9), ("Debian 13", 0.98), ("Debian sid", 0.98)):
        applied, _, all_ = found[name].in_effect().partition(" of ")
        assert int(applied) / int(all_) >= goal
    assert all(each.sources and each.requirements for each in found.values() if each.of == "PyPI")
