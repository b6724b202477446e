"""The search: programs are made, run on all sides, compared; what differs is confirmed, made small and kept."""

import collections
import json
import pathlib
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.tools.fuzz import compare, programs, rules
from benchmarks.tools.fuzz.shrink import shrink
from benchmarks.tools.fuzz.sides import Group, Installation, Team

#: The patched sides: without the ``fix_`` patches nothing may differ, with them only what they are there for.
SIDES = ("strict", "fixed")
#: Programs that a group runs before it is another one's turn.
TURN = 25
#: A difference is tried again with time-outs and patience this many times as long.
PATIENT = 4
#: Seconds that making one failure smaller may take.
SHRINKING = 60.0

Program = dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """A difference that no rule explains, in the smallest program found."""

    group: Group
    side: str
    kind: str
    program: Program
    stock: dict[str, Any]
    patched: dict[str, Any]
    #: where the program came from: ``seed:number``, or a file's name
    origin: str
    #: seconds since the search began
    after: float

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "hub": self.group.hub, "flavour": self.group.flavour, "side": self.side,
            "origin": self.origin, "program": self.program, "stock": self.stock, "patched": self.patched,
        }  # fmt: skip


@dataclass
class Tally:
    """What a search has seen."""

    programs: collections.Counter[str] = field(default_factory=collections.Counter)
    explained: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: list[Failure] = field(default_factory=list)
    #: how often a failure of a kind came again
    again: collections.Counter[str] = field(default_factory=collections.Counter)
    unstable: int = 0
    #: programs that hang in stock, so that there is nothing to compare with
    stock_hangs: int = 0
    seconds: float = 0.0


class Search:
    """Programs over some groups, for some time or some number of them."""

    def __init__(
        self,
        installation: Installation,
        groups: Sequence[Group],
        seed: int,
        tell: Callable[[str], None] = lambda _: None,
        keep: pathlib.Path | None = None,
        shrinking: float = SHRINKING,
        sides: Sequence[str] = SIDES,
    ) -> None:
        self.tally = Tally()
        self._installation = installation
        self._groups = groups
        self._seed = seed
        self._tell = tell
        self._keep = keep
        self._shrinking = shrinking
        self._sides = sides
        self._began = time.monotonic()
        self._lock = threading.Lock()
        #: kinds of failures that have been made smaller once, which is enough
        self._kinds: set[tuple[str, str]] = set()

    def replay(self, seeds: Sequence[tuple[str, Program, Group | None]], jobs: int) -> None:
        """Run given programs, each in the group that it names, or in all that it has a meaning in."""
        work = [
            (name, program, group)
            for name, program, only in seeds
            for group in self._groups
            if (only == group if only is not None else _fits(program, group))
        ]
        work.sort(key=lambda item: str(item[2]))
        self._in_threads(jobs, iter(_by_group(work)))

    def search(self, seconds: float, count: int | None, jobs: int) -> None:
        """Run random programs until ``seconds`` are over, or ``count`` of them."""
        end = time.monotonic() + seconds

        def turns() -> Any:
            number = 0
            while True:
                for group in self._groups:
                    turn = TURN if count is None else min(TURN, count - number)
                    if turn <= 0 or time.monotonic() > end:
                        return
                    yield group, self._made(group, number, turn, end)
                    number += turn

        self._in_threads(jobs, turns())
        self.tally.seconds = time.monotonic() - self._began

    def _made(self, group: Group, first: int, turn: int, end: float) -> Any:
        for number in range(first, first + turn):
            if time.monotonic() > end:
                return
            origin = f"{self._seed}:{number}"
            yield origin, programs.generate(random.Random(origin), group.kind)

    def _in_threads(self, jobs: int, turns: Any) -> None:
        errors: list[BaseException] = []

        def work() -> None:
            try:
                while not errors:
                    with self._lock:
                        group, made = next(turns, (None, ()))
                    if group is None:
                        return
                    team = Team(group, self._installation)
                    try:
                        for origin, program in made:
                            self._one(team, program, origin)
                    finally:
                        team.stop()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def _one(self, team: Team, program: Program, origin: str) -> None:
        seen = team.run(program, ("stock", *self._sides))
        with self._lock:
            self.tally.programs[str(team.group)] += 1
            if "ops" not in seen["stock"]:
                self.tally.stock_hangs += 1
                return
        for side in self._sides:
            found = _judged(team, program, side, seen)
            if isinstance(found, str):
                with self._lock:
                    self.tally.explained[found] += 1
            elif found is not None:
                self._failed(team, program, side, found, origin)

    def _failed(self, team: Team, program: Program, side: str, found: compare.Difference, origin: str) -> None:
        if self._at_hand(team, side, found):
            return
        confirmed = _confirmed(team, program, side, PATIENT // 2 if found.field == "hang" else PATIENT)
        if confirmed is None:
            with self._lock:
                self.tally.unstable += 1
            return
        if self._at_hand(team, side, confirmed, note=True):
            return
        wanted = confirmed.kind
        kind = f"{side}, {wanted}"

        def fails(candidate: Program) -> bool:
            for scale in (1, 2, 2):
                # A smaller program may have become a matter of chance.
                again = judge(team, candidate, side, scale)
                if not isinstance(again, compare.Difference) or again.kind != wanted:
                    return False
            return True

        small = shrink(program, fails, self._shrinking, confirmed.index)
        outcomes: dict[str, dict[str, Any]] = {}
        for candidate in (small, program):
            outcomes = team.run(candidate, ("stock", side), PATIENT // 2)
            last = _judged(team, candidate, side, outcomes, PATIENT // 2)
            if isinstance(last, compare.Difference) and last.kind == wanted:
                small = candidate
                break
        else:
            with self._lock:
                self.tally.unstable += 1
                self._kinds.discard((kind, team.group.kind))
            return
        failure = Failure(
            team.group, side, kind, small, outcomes["stock"], outcomes[side], origin, time.monotonic() - self._began
        )
        with self._lock:
            self.tally.failures.append(failure)
        path = self._write(failure)
        self._tell(f"{failure.after:7.1f} s  {team.group}  {kind}  ({len(small['ops'])} operations)  {path}")

    def _at_hand(self, team: Team, side: str, found: compare.Difference, note: bool = False) -> bool:
        """Whether there is a failure of this kind, which is counted then; if not, there may be one from now on."""
        kind = f"{side}, {found.kind}"
        with self._lock:
            if (kind, team.group.kind) in self._kinds:
                self.tally.again[kind] += 1
                return True
            if note:
                self._kinds.add((kind, team.group.kind))
            return False

    def _write(self, failure: Failure) -> str:
        if self._keep is None:
            return ""
        self._keep.mkdir(parents=True, exist_ok=True)
        name = f"{failure.side}-{str(failure.group).replace('/', '-')}-{failure.origin.replace(':', '-')}.json"
        path = self._keep / pathlib.Path(name).name
        path.write_text(json.dumps(failure.as_json(), indent=1) + "\n")
        return str(path)


def judge(team: Team, program: Program, side: str, scale: int = 1) -> compare.Difference | str | None:
    """What a side differs in from stock: nothing, the name of the fix that explains it, or the difference."""
    return _judged(team, program, side, team.run(program, ("stock", side), scale), scale)


def _judged(
    team: Team, program: Program, side: str, seen: dict[str, dict[str, Any]], scale: int = 1
) -> compare.Difference | str | None:
    found = compare.difference(program, seen["stock"], seen[side])
    if found is None or side == "strict":
        return found
    native: dict[str, Any] = {}
    if team.group.kind == "green" and programs.runs_natively(program):
        native = team.run(program, ("native",), scale)["native"]
    while True:
        rule = rules.explained(rules.Case(program, found, seen["stock"], seen[side], native, team.fixes(side)))
        if rule not in rules.PASSING or found.index is None:
            return rule or found
        found = compare.difference(program, seen["stock"], seen[side], found.index + 1)
        if found is None:
            return rule


def _confirmed(team: Team, program: Program, side: str, scale: int) -> compare.Difference | None:
    """The difference, if it is there again twice, and each side does the same twice."""
    first = team.run(program, ("stock", side), scale)
    second = team.run(program, ("stock", side), scale // 2)
    for name in ("stock", side):
        if compare.difference(program, first[name], second[name]) or compare.difference(
            program, second[name], first[name]
        ):
            return None
    found = _judged(team, program, side, first, scale)
    return found if isinstance(found, compare.Difference) else None


def _fits(program: Program, group: Group) -> bool:
    if group.kind == "native":
        return programs.runs_natively(program)
    return group.kind == "green"


def _by_group(work: list[tuple[str, Program, Group]]) -> Any:
    by_group: dict[Group, list[tuple[str, Program]]] = {}
    for name, program, group in work:
        by_group.setdefault(group, []).append((name, program))
    return by_group.items()
