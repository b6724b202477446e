"""The tables and plots of the documentation, of the results that are kept in ``doc/source/results``.

A page includes or shows what it wants from ``generated/results``, and it is made when the documentation is built. Of
``NAME.json`` there are

- ``NAME.rst``: a table for each case, and what the figures depend on,
- ``NAME-judged.rst``: what the suite says of the figures,
- ``NAME.png``: what fastio gains and loses in each case,
- ``NAME-CASE.png``: the rows of a case,
- ``NAME-PLOT.png``: what only the suite draws, such as the CPU load over time,

and of all results together there is ``overview.rst``, and of those of candidates ``candidates.rst``.

``python -m benchmarks.documentation results/NAME.json …`` keeps results, without what names this machine's directories.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import overview, results, tables
from benchmarks.harness.engine import ROOT
from benchmarks.harness.results import Result, ResultError
from benchmarks.harness.suites import Suite
from benchmarks.validate import figures
from fastio import terminal
from fastio.arguments import Parser

SOURCE = ROOT / "doc" / "source"
#: The results that are kept.
KEPT = SOURCE / "results"
#: Where the pages find what is made.
MADE = "generated/results"
CANDIDATES = "candidates.rst"
OVERVIEW = "overview.rst"

_DIRECTIVE = re.compile(rf"^ *\.\. (?:include|image):: /{MADE}/(\S+)$", re.MULTILINE)


def included(text: str) -> list[str]:
    """The names of what a page, or a part of it, shows of the results."""
    return _DIRECTIVE.findall(text)


def pages(source: Path = SOURCE) -> list[Path]:
    """The pages that are written by hand."""
    return sorted(page for page in source.rglob("*.rst") if "generated" not in page.relative_to(source).parts)


def shown(source: Path = SOURCE) -> list[str]:
    """The same of all pages."""
    return sorted({name for page in pages(source) for name in included(page.read_text(encoding="utf-8"))})


def make_all(source: Path = SOURCE) -> None:
    """Make what the pages show, and nothing else."""
    directory = source / MADE
    directory.mkdir(parents=True, exist_ok=True)
    for name in shown(source):
        make(name, directory)


def make(name: str, directory: Path, kept: Path = KEPT) -> None:
    """Make one file.

    :raises ResultError: if there is no result that it could be of, or if that has nothing of the kind
    """
    path = directory / name
    if name == CANDIDATES:
        text = folded("All tables of the candidates", figures.page())
    elif name == OVERVIEW:
        of = overview.kept()
        made = [folded(each.title, each.rst()) for each in overview.tables(of)]
        text = "\n\n".join([f"{overview.finding(of)}.", *made])
    else:
        stem, part = _split(name, kept)
        result = results.read(kept / f"{stem}.json")
        if path.suffix == ".png":
            from benchmarks.harness import plots

            if path in plots.draw(result, directory, stem, part):
                return
        text = _text(result, part) if path.suffix == ".rst" else ""
    if not text:
        raise ResultError(f"{name}: the result has nothing of the kind")
    path.write_text(f"{text.rstrip()}\n", encoding="utf-8")


def folded(title: str, text: str) -> str:
    """A part of a page that is closed until somebody opens it."""
    lines = [f".. dropdown:: {title}", "", *text.splitlines()]
    return "\n".join(f"   {line}" if number and line else line for number, line in enumerate(lines))


def _split(name: str, kept: Path) -> tuple[str, str]:
    """The result that a file is of, and what it has of it."""
    stems = {path.stem for path in kept.glob("*.json")}
    whole = Path(name).stem
    # The longest that fits: a result may have the name of another, and more.
    for stem in sorted(stems, key=len, reverse=True):
        if whole == stem or whole.startswith(f"{stem}-"):
            return stem, whole.removeprefix(stem).removeprefix("-")
    raise ResultError(f"{name}: there is no such result in {kept}, only {', '.join(sorted(stems))}")


def _text(result: Result, part: str) -> str:
    if part == "judged":
        judged = Suite(result.suite).judgement(result)
        return folded("Goals and comparisons", "\n\n".join(each.rst() for each in judged)) if judged else ""
    return "" if part else folded(f"All tables of {result.suite}", tables.rst(result))


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="python -m benchmarks.documentation", description="Keep results for the documentation.")
    parser.add_argument("results", metavar="RESULT", nargs="+", type=Path, help="a JSON result of any suite")
    try:
        for path in parser.parse_args(arguments).results:
            (KEPT / path.name).write_text(results.read(path).portable(), encoding="utf-8")
    except (OSError, ResultError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
