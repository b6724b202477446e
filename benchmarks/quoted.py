"""Figures in sentences: the role ``fig``, which has them from the results that are kept.

``:fig:`RUN | CASE | ROW | COLUMN``` is a cell of the table of a case, which is named as in the result. Without a column
it is how many times better the row is than another. In place of the case may stand the title of a table, of those that
the suite has as well. ``*`` stands for anything, ``min`` and ``max`` before it choose of all that fit, and ``A : B`` is
a ratio, also to a number. ``percent`` before all of it gives a share as a percentage, and ``less`` the rest to 100 %.
``cell`` gives how many times better the row is with the 95 % interval, or that of a ratio to another row
(``RUN | CASE | ROW : ROW``), ``dated`` adds the day of the run, and ``low`` gives the lower end of the interval. Of
several runs or cases that fit, these three take the one with the lowest end. ``change RUN | CASE | COLUMN`` gives the
figures of stock and fastio. A reference that does not name one figure is an error.
"""

import functools
import itertools
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from docutils import nodes

from benchmarks.harness import keep, tables
from benchmarks.harness.results import ResultError
from benchmarks.harness.statistics import Interval
from benchmarks.harness.summaries import Summary
from fastio.tables import Table, number

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]\d+)?")


@functools.cache
def _runs() -> dict[str, Summary]:
    return keep.runs()


def _fitting(run: str) -> list[str]:
    """The names of the runs that ``run`` fits."""
    return [name for name in _runs() if fnmatchcase(name, run)] or [run]


@functools.cache
def _tables(run: str) -> list[tuple[str, Table]]:
    """The tables of all runs that ``run`` fits, each with the case that it is of."""
    found = [_runs()[name] for name in _fitting(run)]
    of_cases = [(each.name, tables.table(each)) for summary in found for each in summary.cases]
    return [*of_cases, *(("", each) for summary in found for each in summary.judged)]


def _cells(reference: str) -> Iterator[str]:
    """The figures that a reference fits, as the tables have them."""
    for found in map(_NUMBER.search, _texts(reference)):
        if found:
            yield found.group()
    run, case, row, column = [*reference.split(" | "), "x *"][:4]
    for each in itertools.chain.from_iterable(_runs()[name].cases for name in _fitting(run)):
        middle = each.median(row, column) if each.name == case and column not in each.columns else None
        if middle is not None:
            yield f"{middle:.6g}"


def _texts(reference: str) -> Iterator[str]:
    """The first cell that a reference fits, of each row."""
    run, case, row, column = [*reference.split(" | "), "x *"][:4]
    for name, table in _tables(run):
        if not any(fnmatchcase(each, case) for each in (name, table.title)):
            continue
        for line in table.rows:
            if any(fnmatchcase(each, row) for each in (line[0], ", ".join(line[:2]))):
                cells = (cell for head, cell in zip(table.head, line, strict=True) if fnmatchcase(head, column))
                yield from [cell for cell in cells if _NUMBER.search(cell)][:1]


def _lowest(reference: str) -> tuple[Interval, str]:
    """How many times better a row is than another of its case, of all runs the one with the lowest end, and its day."""
    named, _, other = reference.partition(" : ")
    run, case, row = named.split(" | ")
    found = [
        (times, _runs()[name].started[:10])
        for name in _fitting(run)
        for each in _runs()[name].cases
        if fnmatchcase(each.name, case) and (times := each.better(row, other))
    ]
    return min(found, key=lambda each: each[0].low)


def figure(reference: str) -> str:
    """The figure that a reference names, as a sentence has it.

    :raises ResultError: if it names none, or several
    """
    word, _, named = reference.partition(" ")
    if word == "change":
        place, _, column = named.rpartition(" | ")
        return " → ".join(figure(f"{place} | {row} | {column}") for row in ("stock", "fastio"))
    if word in ("cell", "low", "dated"):
        try:
            times, day = _lowest(named)
        except (KeyError, ValueError) as error:
            raise _nothing(reference, error) from error
        return {"cell": str(times), "low": number(times.low), "dated": f"{times}, {day}"}[word]
    if word in ("percent", "less"):
        share = float(_figure(named))
        return f"{100 * (share if word == 'percent' else 1 - share):.0f} %"
    found = _figure(reference)
    return f"{float(found):,.0f}" if float(found) >= 1000 else found


def _figure(reference: str) -> str:
    if _NUMBER.fullmatch(reference):
        return reference
    if " : " in reference:
        above, below = map(_figure, reference.split(" : "))
        return number(float(above) / float(below))
    word, _, named = reference.partition(" ")
    choose = {"min": min, "max": max}.get(word)
    return _one(reference, _cells(named if choose else reference), choose)


def _one(reference: str, texts: Iterator[str], choose: Any = None) -> str:
    """The only text, or the one of several figures that is chosen."""
    try:
        found = [*texts]
    except (KeyError, ValueError) as error:
        raise _nothing(reference, error) from error
    if not found or (len(found) > 1 and choose is None):
        raise ResultError(f"{reference}: {len(found)} figures, where one is asked for")
    return choose(found, key=float) if choose else found[0]


def _nothing(reference: str, error: Exception) -> ResultError:
    return ResultError(f"{reference}: not RUN | CASE | ROW [| COLUMN] of a run that is kept ({error})")


def role(name: str, raw: str, text: str, line: int, inliner: Any, *_: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """The role of Sphinx."""
    try:
        return [nodes.Text(figure(" ".join(text.split())))], []
    except ResultError as error:
        message = inliner.reporter.error(str(error), line=line)
        return [inliner.problematic(raw, raw, message)], [message]
