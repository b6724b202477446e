"""The release notes as the documentation shows them: a page for operators, and one for developers."""

import logging
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml
from dulwich.errors import NotGitRepository
from reno.config import Config
from reno.loader import Loader

from fastio import __version__

#: The section that is not on the operators' page.
DEVELOPERS = "developers"


def pages(root: Path) -> tuple[str, str]:
    """Both pages, with the notes of all versions, the newest first."""
    # It tells of each note in each commit.
    logging.getLogger("reno").setLevel(logging.WARNING)
    sections = Config(str(root)).sections
    operators: list[str] = []
    developers: list[str] = []
    # What is not committed is of the next version as well.
    for (version, date), found in groupby(_versions(root), key=lambda each: each[:2]):
        notes = [note for _, _, each in found for note in each]
        for lines in (operators, developers):
            lines += [version, "=" * len(version), "", f"Released on {date}." if date else "Not released yet.", ""]
        operators += [line for note in notes if "prelude" in note for line in (note["prelude"].strip(), "")]
        for section in sections:
            entries = [entry for note in notes for entry in note.get(section.name, [])]
            if section.name != DEVELOPERS and entries:
                operators += [section.title, "-" * len(section.title), ""]
            for entry in entries:
                first, *others = entry.strip().splitlines()
                lines = developers if section.name == DEVELOPERS else operators
                lines += [f"* {first}", *(f"  {line}".rstrip() for line in others), ""]
    return "\n".join(operators), "\n".join(developers)


def _versions(root: Path) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Each version with its date, which is empty before its tag is there, and its notes.

    What has no tag yet is headed by the version that it is to have. A source distribution has no history: there, all
    notes are those of its version.
    """
    try:
        loader = Loader(Config(str(root)), ignore_cache=True)
    except NotGitRepository:
        files = sorted((root / "releasenotes" / "notes").glob("*.yaml"))
        yield __version__, "", [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
        return
    with loader:
        for version in loader.versions:
            notes = [loader.parse_note_file(name, sha) for name, sha in loader[version]]
            stamp = loader._tags_to_dates.get(version)
            # reno itself dates by the zone of whoever builds the pages.
            date = datetime.fromtimestamp(stamp, timezone.utc).date().isoformat() if stamp else ""
            yield (version if stamp else __version__), date, notes
