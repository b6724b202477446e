"""The search: programs are made, run on all sides and compared; what differs is confirmed, made small and kept."""

import collections
import contextlib
import itertools
import json
import pathlib
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import hypothesis

from benchmarks.tools.fuzz import compare, rules
from benchmarks.tools.fuzz.programs import Program, programs, runs_natively
from benchmarks.tools.fuzz.sides import Group, Team

#: The patched sides: without the ``fix_`` patches nothing may differ, with them only what they are there for.
SIDES = ("strict", "fixed")
#: Programs that a group runs before it is another one's turn.
TURN = 25
#: A difference is tried again with time-outs and patience this many times as long.
PATIENT = 4


@dataclass(frozen=True)
class Failure:
    """A difference that no rule explains."""

    kind: str
    side: str
    stock: dict[str, Any]
    patched: dict[str, Any]
    operations: int


class Search:
    """Programs over some groups.

    :param seed: the same seed makes the same programs
    :param keep: the directory for failures
    :param plant: a file of Python that breaks the patched sides on purpose
    :param shrinking: seconds that making one failure smaller may take
    """

    def __init__(
        self, groups: Sequence[Group], seed: int, keep: pathlib.Path, plant: str = "", shrinking: float = 60
    ) -> None:
        self._groups, self._seed, self._keep, self._plant, self._shrinking = groups, seed, keep, plant, shrinking
        self.programs: collections.Counter[str] = collections.Counter()
        self.explained: collections.Counter[str] = collections.Counter()
        #: those found, by kind; one program of each kind is made small
        self.failures: dict[str, Failure] = {}
        self.unstable = 0
        #: programs that hang in stock, so that there is nothing to compare with
        self.stock_hangs = 0

    def replay(self, paths: Sequence[pathlib.Path]) -> None:
        """Run the programs of files, each in the group that it names, or in all that it has a meaning in."""
        kept = [(path, json.loads(path.read_text())) for path in paths]
        for group in self._groups:
            with contextlib.closing(Team(group, self._plant)) as team:
                for path, data in kept:
                    only = Group(data["hub"], data["flavour"]) if "hub" in data else None
                    if only == group or (only is None and _fits(data["program"], group)):
                        failure = self._run(team, data["program"])
                        if failure is not None:
                            self._failed(failure, str(path))

    def search(self, seconds: float, turns: int | None = None) -> None:
        """Run random programs until ``seconds`` are over, a turn for each group in order."""
        end = time.monotonic() + seconds
        for number, group in zip(itertools.count() if turns is None else range(turns), itertools.cycle(self._groups)):
            if time.monotonic() > end:
                return
            with contextlib.closing(Team(group, self._plant)) as team:
                self._turn(team, number, end)

    def _turn(self, team: Team, number: int, end: float) -> None:
        # Hypothesis runs what fails again and expects the same: each program is judged once.
        judged: dict[str, Failure | None] = {}
        wanted: str | None = None

        def fails(program: Program) -> bool:
            nonlocal wanted, end
            key = json.dumps(program)
            if key not in judged:
                if time.monotonic() > end:
                    return False
                judged[key] = failure = self._run(team, program, wanted)
                if failure is not None and wanted is None:
                    wanted, end = failure.kind, time.monotonic() + self._shrinking
            return judged[key] is not None

        settings = hypothesis.settings(
            max_examples=TURN, database=None, deadline=None,
            phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        )  # fmt: skip
        origin = f"{self._seed}-{number}"
        with contextlib.suppress(hypothesis.errors.NoSuchExample):
            small = hypothesis.find(programs(team.group.kind), fails, settings=settings, random=random.Random(origin))
            failure = judged[json.dumps(small)]
            assert failure is not None
            self._keep.mkdir(parents=True, exist_ok=True)
            path = self._keep / f"{failure.side}-{team.group.hub}-{team.group.flavour}-{origin}.json"
            made = {
                "about": failure.kind, "hub": team.group.hub, "flavour": team.group.flavour, "program": small,
                "stock": failure.stock, "patched": failure.patched,
            }  # fmt: skip
            path.write_text(json.dumps(made, indent=1) + "\n")
            self._failed(failure, str(path))

    def _failed(self, failure: Failure, path: str) -> None:
        self.failures[failure.kind] = failure
        print(f"{failure.kind}  ({failure.operations} operations)  {path}", flush=True)

    def _run(self, team: Team, program: Program, wanted: str | None = None) -> Failure | None:
        """The failure that a program shows, of this kind or of any that is not known."""
        seen = team.run(program, ("stock", *SIDES))
        self.programs[str(team.group)] += 1
        if "ops" not in seen["stock"]:
            self.stock_hangs += 1
            return None
        for side in SIDES:
            found = _judged(team, program, side, seen)
            if isinstance(found, str):
                self.explained[found] += 1
            elif found is not None and self._counts(_kind(team, side, found), wanted):
                failure = _confirmed(team, program, side, PATIENT // 2 if found.field == "hang" else PATIENT)
                if failure is None:
                    self.unstable += 1
                elif self._counts(failure.kind, wanted):
                    return failure
        return None

    def _counts(self, kind: str, wanted: str | None) -> bool:
        return kind == wanted if wanted is not None else kind not in self.failures


def _kind(team: Team, side: str, found: compare.Difference) -> str:
    return f"{team.group.kind}, {side}, {found.kind}"


def _judged(
    team: Team, program: Program, side: str, seen: dict[str, dict[str, Any]], scale: int = 1
) -> compare.Difference | str | None:
    """The difference of a side from stock, or the name of the fix that explains it."""
    found = compare.difference(program, seen["stock"], seen[side])
    if found is None or side == "strict":
        return found
    native: dict[str, Any] = {}
    if team.group.kind == "green" and runs_natively(program):
        native = team.run(program, ("native",), scale)["native"]
    while True:
        rule = rules.explained(rules.Case(program, found, seen["stock"], seen[side], native, team.fixes))
        if rule not in rules.PASSING or found.index is None:
            return rule or found
        found = compare.difference(program, seen["stock"], seen[side], found.index + 1)
        if found is None:
            return rule


def _confirmed(team: Team, program: Program, side: str, scale: int) -> Failure | None:
    """The failure, if it is there again, and each side does the same each time."""
    runs = [team.run(program, ("stock", side), each) for each in (scale, scale // 2, scale)]
    for name in ("stock", side):
        for one, other in itertools.permutations([run[name] for run in runs], 2):
            if compare.difference(program, one, other):
                return None
    found = _judged(team, program, side, runs[0], scale)
    if not isinstance(found, compare.Difference):
        return None
    return Failure(_kind(team, side, found), side, runs[0]["stock"], runs[0][side], len(program["ops"]))


def _fits(program: Program, group: Group) -> bool:
    return runs_natively(program) if group.kind == "native" else group.kind == "green"
