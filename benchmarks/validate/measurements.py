"""The benchmarks that touch a project, with the variants interleaved, and what they say against stock."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.backends import SERVICES
from benchmarks.harness import compare, engine, statistics
from benchmarks.harness.engine import Case
from benchmarks.harness.results import COSTS, CaseResult, Result, VariantResult

from .environments import STOCK, Variant

#: A row whose whole confidence interval is not beyond this share of stock's figure is noise, whatever its p-value:
#: with many rows chance alone makes one of them look significant.
MARGIN = 0.03
#: A row that is slower, and by its medians this many times, fails the validation.
TOO_SLOW = 1.25

#: Costs where commands are run and nothing to speak of is moved: heading, of a run, times what.
BY_COMMAND = (
    ("CPU ms/command", "cpu_seconds", 1000),
    ("reads/command", "reads", 1),
    ("waits/command", "waits", 1),
)
#: Lateness of other greenlets, in milliseconds.
LATENESS = "p99_ms"


@dataclass
class Row:
    """One variant of one case against stock."""

    variant: str
    #: SUITE/CASE
    case: str
    title: str
    #: ``native`` or ``eventlet``
    mode: str
    unit: str
    #: medians
    stock: float | None = None
    figure: float | None = None
    #: how many times better it is, more than 1 is better
    better: statistics.Interval | None = None
    p: float | None = None
    #: ``faster``, ``slower``, ``noise …``, or why there is none
    verdict: str = ""
    #: heading -> stock's and its own
    figures: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)
    #: whether it was skipped, so that it says nothing
    skipped: bool = False
    #: whether it is a reason to fail
    failure: bool = False

    def __str__(self) -> str:
        better = f" ({self.better} x)" if self.better else ""
        nothing = ", as was every benchmark, which shows nothing" if self.skipped and self.failure else ""
        return f"{self.variant}: {self.case} ({self.mode}): {self.verdict}{better}{nothing}"


def adapt(case: Case, suite: str, variants: Sequence[Variant], modes: Sequence[str]) -> Case | None:
    """A case whose rows are the variants, in those of ``modes`` that it has; None if it has none of them."""
    if case.backend in SERVICES:
        case = _serve(case, variants, modes[0])
        rows = case.all_variants()
    else:
        rows = list(_in_environments(case, variants, modes))
    if not rows:
        return None
    name = f"{suite}/{case.name}"
    return dataclasses.replace(
        case, name=name, variants=rows, baseline=rows[0].title, title=f"{name}: {case.title}",
        # Without a backend, nothing of it runs here: what it needs is in the environments.
        needs=case.needs if case.backend else (),
    )  # fmt: skip


def _in_environments(case: Case, variants: Sequence[Variant], modes: Sequence[str]) -> Iterator[engine.Variant]:
    known = {each.name: each for each in case.all_variants()}
    for mode in modes:
        for variant in variants:
            row = known.get(f"{mode}-{'fastio' if variant.patched else 'stock'}")
            if row is not None:
                python = str(variant.environment.python)
                label, against = f"{mode}-{variant.name}", f"{mode}-{STOCK}"
                yield dataclasses.replace(row, label=label, python=python, against=against)


def _serve(case: Case, variants: Sequence[Variant], mode: str) -> Case:
    """A case of a service with a server for each variant; the clients are the same for all.

    The first, stock's, is the case's own backend.
    """
    (row,) = case.all_variants()
    stock, *others = variants
    against = f"{mode}-{stock.name}"
    rows = [dataclasses.replace(row, label=against)]
    rows += [
        dataclasses.replace(row, label=f"{mode}-{variant.name}", against=against, parameters={"server": variant.name})
        for variant in others
    ]
    beside = {variant.name: (case.backend, _parameters(case, variant)) for variant in others}
    return dataclasses.replace(case, variants=rows, backend_parameters=_parameters(case, stock), beside=beside)


def _parameters(case: Case, variant: Variant) -> dict[str, Any]:
    """Of the backend that runs from the variant's environment."""
    own = {"python": str(variant.environment.python), "fastio": "on" if variant.patched else "off"}
    return {**case.backend_parameters, **own}


def rows(result: Result) -> list[Row]:
    """Every row but stock's own; those of a variant of which all are skipped are reasons to fail."""
    found = [row for case in result.cases for row in _rows(case)]
    shown = {row.variant for row in found if not row.skipped}
    for row in found:
        # A gate that measured nothing must not be taken for one that found nothing.
        if row.variant not in shown:
            row.failure = True
    return found


def _rows(case: CaseResult) -> Iterator[Row]:
    for title, variant in case.variants.items():
        mode, _, name = title.partition("-")
        against = case.against(title)
        if name == STOCK or against not in case.variants:
            continue
        row = Row(name, case.name, case.title, mode, case.unit)
        stock = case.variants[against]
        own = trouble(variant)
        row.skipped = bool(variant.skipped or stock.skipped)
        if own:
            row.verdict = own
            # A variant is not to blame if stock cannot do it either, or if it cannot be done here at all.
            row.failure = not variant.skipped and not trouble(stock)
        elif trouble(stock):
            row.verdict = f"stock: {trouble(stock)}"
        else:
            _judge(row, case, title, against)
        yield row


def _judge(row: Row, case: CaseResult, title: str, against: str) -> None:
    before, after = case.figures(against), case.figures(title)
    row.stock, row.figure = statistics.median(before), statistics.median(after)
    own, others = case.variants[title], case.variants[against]
    for name, heading, *_ in COSTS:
        row.figures[heading] = (others.costs().get(name), own.costs().get(name))
    for heading, name, factor in BY_COMMAND:
        row.figures[heading] = (_by_command(others, name, factor), _by_command(own, name, factor))
    row.figures["p99 ms"] = (others.median(LATENESS), own.median(LATENESS))
    if not all(before) or not all(after):
        row.verdict = "not compared: a figure is 0"
        return
    found = compare.judge(case, title, before, after)
    row.better, row.p, row.verdict = found.better, found.p, found.verdict
    little = found.better.low < 1 + MARGIN and found.better.high > 1 - MARGIN
    if row.verdict in (compare.FASTER, compare.SLOWER) and little:
        row.verdict = f"{compare.NOISE} (within {MARGIN:.0%})"
    row.failure = row.verdict == compare.SLOWER and found.better.ratio < 1 / TOO_SLOW


def _by_command(variant: VariantResult, name: str, factor: int) -> float | None:
    commands, figure = variant.median("commands"), variant.median(name)
    return figure * factor / commands if commands and figure is not None else None


def trouble(variant: VariantResult) -> str:
    """Why a variant has no figures that can be trusted."""
    found = [*variant.troubles(), "" if variant.measured() else "not run"][0]
    return found.replace("failed: ", "FAILED: ", 1) if variant.failure else found
