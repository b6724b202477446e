"""The tables and plots of the documentation, of the results that are kept in ``doc/source/results``.

A page includes or shows what it wants from ``generated/results``, and it is made when the documentation is built. Of
the run ``NAME`` of one of the files there are

- ``NAME.rst``: a table for each case, and what the figures depend on,
- ``NAME-judged.rst``: what the suite says of the figures,
- ``NAME.png``: what fastio gains and loses in each case,
- ``NAME-CASE.png``: the rows of a case,
- ``NAME-PLOT.png``: what only the suite draws, such as requests/s by their concurrency,

and of all runs together there is ``overview.rst``, and of those of candidates ``candidates.rst``. A sentence has a
figure of them by the role ``fig`` (:mod:`benchmarks.quoted`).
"""

import re
from collections.abc import Mapping
from pathlib import Path

from benchmarks.harness import keep, markup, overview, tables
from benchmarks.harness.results import ROOT, ResultError
from benchmarks.harness.summaries import Summary
from benchmarks.validate import figures

SOURCE = ROOT / "doc" / "source"
#: Where the pages find what is made.
MADE = "generated/results"
CANDIDATES, OVERVIEW = "candidates", "overview"

_DIRECTIVE = re.compile(rf"^ *\.\. (?:include|image):: /{MADE}/(\S+)$", re.MULTILINE)


def shown(source: Path = SOURCE) -> list[str]:
    """The names of what the pages show of the results."""
    pages = (page for page in source.rglob("*.rst") if "generated" not in page.relative_to(source).parts)
    return sorted({name for page in pages for name in _DIRECTIVE.findall(page.read_text(encoding="utf-8"))})


def make_all(source: Path = SOURCE) -> None:
    """Make what the pages show, and nothing else."""
    directory = source / MADE
    directory.mkdir(parents=True, exist_ok=True)
    runs = keep.runs()
    for name in shown(source):
        make(name, directory, runs)


def make(name: str, directory: Path, runs: Mapping[str, Summary]) -> None:
    """Make one file.

    :raises ResultError: if there is no run that it could be of, or if that has nothing of the kind
    """
    stem, suffix = Path(name).stem, Path(name).suffix
    run, part = split(stem, runs)
    if suffix == ".png":
        from benchmarks.harness import plots

        if directory / name in plots.draw(runs[run], directory, run, part):
            return
    text = _text(run, part, runs) if suffix == ".rst" else ""
    if not text:
        raise ResultError(f"{name}: the run has nothing of the kind")
    (directory / name).write_text(f"{text.rstrip()}\n", encoding="utf-8")


def split(stem: str, runs: Mapping[str, Summary]) -> tuple[str, str]:
    """The run that a file is of, and what it has of it."""
    # The longest that fits: a run may have the name of another, and more.
    for run in sorted([*runs, OVERVIEW, CANDIDATES], key=len, reverse=True):
        if stem == run or stem.startswith(f"{run}-"):
            return run, stem.removeprefix(run).removeprefix("-")
    raise ResultError(f"{stem}: there is no such run, only {', '.join(runs)}")


def _text(run: str, part: str, runs: Mapping[str, Summary]) -> str:
    if run == OVERVIEW:
        made = [folded(each.title, markup.rst(each)) for each in overview.tables(runs)]
        return "\n\n".join([f"{overview.finding(runs)}.", *made])
    if run == CANDIDATES:
        return folded("All tables of the candidates", figures.page())
    if part == "judged":
        # Without cases there is nothing else on the page that says what the figures depend on.
        notes = [] if runs[run].cases else tables.summary(runs[run])
        made = [*(markup.rst(each) for each in runs[run].judged), *notes]
        return folded("Goals and comparisons", "\n\n".join(made)) if runs[run].judged else ""
    return "" if part or not runs[run].cases else folded(f"All tables of {run}", tables.rst(runs[run]))


def folded(title: str, text: str) -> str:
    """A part of a page that is closed until the reader opens it."""
    lines = [f".. dropdown:: {title}", "", *text.splitlines()]
    return "\n".join(f"   {line}" if number and line else line for number, line in enumerate(lines))
