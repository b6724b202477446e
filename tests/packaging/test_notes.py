"""The release notes: a page for operators and one for developers, each release with its version and its date."""

import os
import subprocess
from pathlib import Path

import pytest

import fastio

yaml = pytest.importorskip("yaml", reason="yaml is not installed: it comes with tox -e package")

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "releasenotes" / "config.yaml").read_text(encoding="utf-8"))
NOTE = "features:\n  - |\n    {0} for operators,\n    on two lines\ndevelopers:\n  - {0} for developers\n"


@pytest.mark.parametrize("path", sorted((ROOT / "releasenotes" / "notes").iterdir()), ids=lambda path: path.stem)
def test_each_note_is_for_somebody(path: Path) -> None:
    note = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(note) <= {"prelude", *(name for name, _ in CONFIG["sections"])}


def test_what_only_developers_notice_is_not_on_the_page_for_operators() -> None:
    for path in (ROOT / "releasenotes" / "notes").iterdir():
        note = yaml.safe_load(path.read_text(encoding="utf-8"))
        for name, entries in note.items():
            if name not in ("prelude", "developers"):
                assert not [entry for entry in entries if entry.startswith(("``tox -e", "``python -m benchmarks"))]


def test_the_pages_of_a_repository(tmp_path: Path) -> None:
    pytest.importorskip("reno", reason="reno is not installed: it comes with tox -e docs and tox -e package")
    from benchmarks import release_notes

    notes = tmp_path / "releasenotes" / "notes"
    notes.mkdir(parents=True)
    (notes.parent / "config.yaml").write_bytes((ROOT / "releasenotes" / "config.yaml").read_bytes())

    def git(*arguments: str) -> None:
        moment = "2026-02-03T23:30:00+0000"
        who = {f"GIT_{role}_{what}": what for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environment = {**os.environ, **who, "GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, env=environment, timeout=60)

    def commit(name: str) -> None:
        (notes / f"{name}-{name * 16}.yaml").write_text(NOTE.format(name))
        git("add", ".")
        git("commit", "-qm", name)

    git("init", "-q")
    commit("a")
    git("tag", "-a", "0.0.9", "-m", "0.0.9")
    commit("b")
    (notes / f"c-{'c' * 16}.yaml").write_text("developers:\n  - c for developers\n")
    git("add", ".")
    operators, developers = release_notes.pages(tmp_path)
    version = fastio.__version__
    assert operators.split("\n\n") == [
        f"{version}\n{'=' * len(version)}", "Not released yet.", "New features\n------------",
        "* b for operators,\n  on two lines", "0.0.9\n=====", "Released on 2026-02-03.", "New features\n------------",
        "* a for operators,\n  on two lines\n",
    ]  # fmt: skip
    assert "* b for developers\n" in developers and "operators" not in developers
    # What is not committed yet belongs to the same version.
    assert developers.count(version) == 1 and "* c for developers\n" in developers
    assert developers.index("b for") < developers.index("0.0.9") < developers.index("a for")


def test_a_source_distribution_has_no_history(tmp_path: Path) -> None:
    pytest.importorskip("reno", reason="reno is not installed: it comes with tox -e docs and tox -e package")
    from benchmarks import release_notes

    notes = tmp_path / "releasenotes" / "notes"
    notes.mkdir(parents=True)
    (notes / "a.yaml").write_text(NOTE.format("a"))
    assert [page.split()[0] for page in release_notes.pages(tmp_path)] == [fastio.__version__] * 2
