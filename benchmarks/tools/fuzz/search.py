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
        #: how many programs were run and how many hang in stock, and what became of differences
        self.tally: collections.Counter[str] = collections.Counter()
        #: those found, by kind; one program of each kind is made small
        self.failures: dict[str, Failure] = {}

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
                            self._failed(failure, path)

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

        def fails(program: Program) -> bool:
            nonlocal end
            key = json.dumps(program)
            if key not in judged:
                if time.monotonic() > end:
                    return False
                found = any(judged.values())
                judged[key] = self._run(team, program)
                if judged[key] and not found:
                    end = time.monotonic() + self._shrinking
            return judged[key] is not None

        phases = hypothesis.Phase.generate, hypothesis.Phase.shrink
        settings = hypothesis.settings(max_examples=TURN, database=None, deadline=None, phases=phases)
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
            self._failed(failure, path)

    def _failed(self, failure: Failure, path: pathlib.Path) -> None:
        self.failures[failure.kind] = failure
        print(f"FAILED {failure.kind}  ({len(failure.stock['ops'])} operations)  {path}", flush=True)

    def _run(self, team: Team, program: Program) -> Failure | None:
        """The failure that a program shows, of a kind that is not known."""
        seen = team.run(program, ("stock", *SIDES))
        self.tally[f"programs in {team.group}"] += 1
        if "ops" not in seen["stock"]:
            self.tally["programs that hang in stock"] += 1
            return None
        for side in SIDES:
            found = _judged(team, program, side, seen)
            if isinstance(found, str):
                self.tally[f"differences that are there for {found}"] += 1
            elif found is not None and _kind(team, side, found) not in self.failures:
                failure = _confirmed(team, program, side, PATIENT // 2 if found.field == "hang" else PATIENT)
                if failure is None:
                    self.tally["differences that did not come again"] += 1
                elif failure.kind not in self.failures:
                    return failure
        return None


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
    return Failure(_kind(team, side, found), side, runs[0]["stock"], runs[0][side])


def _fits(program: Program, group: Group) -> bool:
    return runs_natively(program) if group.kind == "native" else group.kind == "green"
