"""The reference tables of the documentation have all that there is."""

import re
import subprocess
import sys

import pytest

pytest.importorskip("numpy", reason="the parser of fastio trace needs the extra 'trace'")

from benchmarks import reference
from fastio import config
from fastio.patching import registry
from fastio.report import MEANING, Outcome


def rows(text: str) -> dict[str, list[str]]:
    """The cells of the rows of list-tables, by the first one."""
    found = re.split(r"^ *\* - ", text.partition("\n\n")[2], flags=re.MULTILINE)[1:]
    cells = [[cell.strip() for cell in re.split(r"\n +- ", row.partition("\n\n")[0])] for row in found]
    return {first: others for first, *others in cells}


def test_each_setting_has_its_meaning_default_unit_and_variable() -> None:
    found = rows(reference.settings())
    assert found.pop("setting") == ["meaning", "default", "unit", "variable", "allowed"]
    assert list(found) == [f"``{each.name}``" for each in config.SETTINGS]
    assert found["``chunk_size``"][1:4] == ["1 MiB", "bytes", "``FASTIO_CHUNK_SIZE``"]
    assert found["``enabled``"][1:4] == ["1", "–", "``FASTIO``"]
    assert found["``store_chunk_sizes``"][1:3] == ["–", "bytes"]
    for each in config.SETTINGS:
        assert found[f"``{each.name}``"][0] == each.help and each.help


def test_each_outcome_has_its_meaning() -> None:
    assert set(MEANING) == set(Outcome)
    assert {*rows(reference.outcomes())} == {"outcome", *map(str, Outcome)}


def test_each_patch_is_in_the_table_and_explained() -> None:
    text = reference.patches()
    found = rows(text)
    for patch in registry.patches():
        meaning, applied, _ = found[f"``{patch.name}``"]
        assert meaning == patch.summary
        assert all(str(each) in applied for each in patch.requirements(patch.targets[0]))
        (explained,) = re.findall(rf"^\.\. dropdown:: {patch.name}\n\n((?:   .*\n|\n)+)", f"{text}\n", re.MULTILINE)
        assert all(f"``{target.key}``" in explained for target in patch.targets)
    assert "CPython 3.15, and later" in found["``wait``"]


@pytest.mark.parametrize(
    "command",
    ["fastio status", "fastio run", "fastio trace report", "fastio trace waterfall"],
)
def test_each_option_of_a_command_is_there(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command.split(), "--help"], capture_output=True, text=True, check=True
    )
    options = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", done.stdout.partition("options:")[2])) - {"-h", "--help"}
    text = reference.commands()
    section = text.partition(f"{command}\n{'=' * len(command)}\n")[2].partition("\n===")[0]
    named = {name for first in rows(section) for name in re.findall(r"(?<![\w-])--?[a-z][\w-]*", first)}
    if command == "fastio run":
        assert all(f"--{each.name.replace('_', '-')}" in section for each in config.SETTINGS if each.name != "enabled")
    assert named and named >= {option for option in options if f"\n  {option}" in done.stdout}
