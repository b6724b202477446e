"""Where the time goes of benchmarks that got slower: stock and another variant, each run again under a profiler."""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.backends import SERVICES
from benchmarks.harness import profiled, stacks
from benchmarks.harness.compare import SLOWER
from benchmarks.harness.engine import Case, Options
from benchmarks.harness.results import Result, VariantResult
from benchmarks.harness.stacks import Function, Stacks
from fastio.errors import meant

from . import measurements, projects
from .errors import ValidateError
from .measurements import Row
from .variants import STOCK, Variant

#: Measured runs of each variant under the profiler, at most. It is to show where, not by how much.
ROUNDS = 5
#: What can be asked for, beside names of benchmarks.
ALL_SLOWER, NONE = "slower", "none"

#: Measures a case under a profiler: a benchmark, variants, a mode and options.
Measure = Callable[[tuple[str, Case], Sequence[Variant], str, Options], Result]


@dataclass(frozen=True)
class Asked:
    """Which rows are to be profiled."""

    #: those that are slower
    slower: bool
    #: SUITE/CASE of those that are profiled whatever their verdict
    cases: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.slower or bool(self.cases)

    def wants(self, row: Row) -> bool:
        return row.case in self.cases or (self.slower and row.verdict == SLOWER)


@dataclass
class Profile:
    """Of one row: where stock and the variant were, or why that is not known."""

    case: str
    mode: str
    variant: str
    #: whether it is the server's; the client's otherwise
    server: bool
    #: why there is none
    reason: str = ""
    #: runs of each
    runs: int = 0
    before: Stacks = field(default_factory=dict)
    after: Stacks = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.variant}: {self.case} ({self.mode})"

    def functions(self) -> list[Function]:
        """All of them, in the order of their growth."""
        return stacks.difference(self.before, self.after)

    def seconds(self, samples: int) -> float:
        """What so many samples are of one run."""
        return samples / profiled.RATE / self.runs

    def files(self, place: str) -> dict[str, str]:
        """Its files, by their names, in the form that speedscope and flamegraph.pl read."""
        if self.reason:
            return {}
        own = re.sub(r"[^A-Za-z0-9.+-]+", "-", f"{place}-{self.case}-{self.mode}")
        sides = ((STOCK, self.before), (self.variant, self.after))
        return {f"profile-{own}-{name}.txt": stacks.text(found) for name, found in sides}

    def to_dict(self, place: str) -> dict[str, Any]:
        """The same as plain data."""
        found = dataclasses.asdict(self)
        del found["before"], found["after"]
        functions = [
            {
                "name": each.name,
                "self_seconds": list(map(self.seconds, each.own)),
                "total_seconds": list(map(self.seconds, each.total)),
            }
            for each in self.functions()
        ]
        return {**found, "samples_per_second": profiled.RATE, "functions": functions, "files": list(self.files(place))}


def asked(names: Sequence[str], cases: Sequence[tuple[str, Case]]) -> Asked:
    """What is asked for by ``slower``, ``none`` or names of benchmarks that are run, each SUITE or SUITE/CASE.

    :raises ValidateError: for a name that is none of them, or if no benchmark is run
    """
    if names in ([], [NONE]):
        return Asked(False)
    known = [f"{suite}/{case.name}" for suite, case in cases]
    if not known:
        raise ValidateError(f"--profile {','.join(names)} with --benchmarks none has nothing to profile")
    suites = list(dict.fromkeys(suite for suite, _ in cases))
    chosen: list[str] = []
    for name in names:
        if name not in (ALL_SLOWER, *suites, *known):
            allowed = ", ".join([*suites, *known])
            raise ValidateError(
                f"--profile {name!r}: allowed are {ALL_SLOWER}, {NONE} alone, and what --benchmarks runs: {allowed}"
                f"{meant(name, [ALL_SLOWER, NONE, *known])}"
            )
        chosen += [each for each in known if name in (each, each.partition("/")[0])]
    return Asked(ALL_SLOWER in names, frozenset(chosen))


def run(
    wanted: Asked, rows: Sequence[Row], cases: Sequence[tuple[str, Case]], variants: Sequence[Variant],
    options: Options, measure: Measure,
) -> list[Profile]:  # fmt: skip
    """Profile the rows that are wanted, all variants of a benchmark beside the same runs of stock.

    :param options: those of the benchmarks
    """
    by_case: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if wanted.wants(row):
            by_case.setdefault((row.case, row.mode), []).append(row)
    known = {f"{suite}/{case.name}": (suite, case) for suite, case in cases}
    rounds = ROUNDS if options.rounds is None else min(options.rounds, ROUNDS)
    found = []
    for (name, mode), own in by_case.items():
        server = known[name][1].backend in SERVICES
        profiles = [Profile(name, mode, row.variant, server, _why_not(row)) for row in own]
        able = {each.variant: each for each in profiles if not each.reason}
        if able:
            under = dataclasses.replace(options, rounds=rounds, under=profiled.command(server))
            chosen = [each for each in variants if each.name in (STOCK, *able)]
            try:
                _fill(able, mode, measure(known[name], chosen, mode, under))
            except ValidateError as error:
                # The verdict stands without it.
                for profile in able.values():
                    profile.reason = str(error)
        found += profiles
    return found


def _why_not(row: Row) -> str:
    if row.stock is None or row.figure is None:
        return row.verdict
    return profiled.why_not()


def _fill(profiles: Mapping[str, Profile], mode: str, measured: Result) -> None:
    """Give the profiles, by their variants, what was measured."""
    (case,) = measured.cases
    stock = case.variants[f"{mode}-{STOCK}"]
    for name, profile in profiles.items():
        own = case.variants[f"{mode}-{name}"]
        troubles = {STOCK: measurements.trouble(stock), name: measurements.trouble(own)}
        profile.reason = next((f"{whose}: {why}" for whose, why in troubles.items() if why), "")
        if profile.reason:
            continue
        profile.runs = len(own.measured())
        profile.before, profile.after = (_samples(each) for each in (stock, own))
        if not profile.before or not profile.after:
            profile.reason = "no sample: the runs are too short"


def _samples(variant: VariantResult) -> Stacks:
    """Those of all of its runs, with the names that stock's functions have."""
    found = stacks.add(run["stacks"] for run in variant.measured())
    # Where a candidate's modules of the standard library lie.
    return {stack.replace(f"({projects.CPYTHON.package}/", "("): count for stack, count in found.items()}
