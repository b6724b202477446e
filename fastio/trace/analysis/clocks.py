"""One time for all hosts: offset and drift of their clocks, from what cannot have happened before what.

Each clock's wall time, as its files tell it, is corrected by a straight line: ``offset + drift * (time - middle)``. A
message from one clock to another says that a difference of two such lines is not negative, so all messages together are
difference constraints, linear in the offsets and drifts: a linear program. Of a pair of clocks with messages in both
directions the solution is in the middle of what they allow (the two directions take the same least time); with messages
in one direction only, or none, the wall clocks are believed as far as the messages let them.

If no lines fit, some data is impossible: those messages are found whose times would have to change least in sum, are
named together with the messages that they contradict, and count no more.

Of the messages of a direction only those matter that lie on the lower convex hull of (sent, received): any line that
suits them suits all. The program is therefore small, however many messages there are.
"""

import importlib
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fastio.trace.analysis.messages import Message
from fastio.trace.analysis.model import Trace, TraceError

#: Two clocks that differ by more than this much in speed are broken: NTP may slew each by 500 ppm.
MOST_DRIFT = 1e-3
#: µs by which times may be wrong without being called impossible: the resolution of the sums here.
TOLERANCE = 0.5
#: µs that a message may take, to either side, so that it goes into the linear program at all.
_FAR = 3.6e9
#: Hulls of each direction that are looked at for what is impossible: so many wrong messages can lie outside the rest.
_LAYERS = 25
#: How often what is impossible is looked for, and the µs off at which a message counts half the next time.
_REWEIGHTED, _USUAL = 3, 100.0
#: µs of offset at which the messages leave it open.
_OPEN = 1e10
#: The costs of a µs of distance to the wall clock, and of drift at the end of the trace, beside one of the middle.
_WALL_COST, _DRIFT_COST = 1e-4, 1e-3


@dataclass
class Correction:
    """The correction of a clock's wall time, and how far the messages settle it."""

    clock: str
    #: the clock that this one is set by
    reference: str
    #: wall clock minus monotonic clock, in ns
    wall: int
    #: monotonic, in ns: where ``offset`` holds
    middle: int
    #: ns to add at ``middle``: positive for a clock that is slow
    offset: int = 0
    #: ns to add for each ns after it
    drift: float = 0.0
    #: the offsets that the messages allow, in ns; None: they do not say
    low: int | None = None
    high: int | None = None
    messages: int = 0

    def time(self, monotonic: int) -> int:
        """A time of the clock as ns since 1970 on the clock that all share."""
        return monotonic + self.wall + self.offset + round(self.drift * (monotonic - self.middle))


@dataclass
class Contradiction:
    """A message that no correction of the clocks makes possible."""

    message: Message
    #: by how much it arrives too early, in ns
    by: int
    #: the message back that it cannot be true together with
    against: Message | None

    def __str__(self) -> str:
        against = f"; contradicts {self.against}" if self.against else ""
        return f"{self.message}: arrives {self.by / 1e6:.3f} ms before it was sent{against}"


@dataclass
class Alignment:
    """The corrections, by clock, and how well they fit."""

    corrections: dict[str, Correction]
    #: messages between different clocks
    messages: int = 0
    #: how many of them arrive before they were sent by the wall clocks, and by how much at most, in ns
    wrong_before: int = 0
    worst_before: int = 0
    #: the same after the correction, without those of ``contradictions``: 0 but for rounding
    residual: int = 0
    contradictions: list[Contradiction] = field(default_factory=list)


def align(trace: Trace, messages: Sequence[Message]) -> Alignment:
    """Find the corrections, and write the times of all spans into them.

    :raises TraceError: if there are messages between different clocks, and scipy is not installed
    """
    messages = [each for each in messages if each.sender.clock != each.receiver.clock]
    corrections = _uncorrected(trace, messages)
    alignment = Alignment(corrections, len(messages))
    early = [-gap for each in messages if (gap := _gap(each, corrections)) < 0]
    alignment.wrong_before, alignment.worst_before = len(early), max(early, default=0)
    for group in _connected(corrections, messages):
        if len(group) > 1:
            among = [each for each in messages if each.sender.clock in group]
            alignment.contradictions += _Problem(group, corrections, among).solve()
    wrong = {id(each.message) for each in alignment.contradictions}
    kept = [-_gap(each, corrections) for each in messages if id(each) not in wrong]
    alignment.residual = max([0, *kept])
    for span in trace.spans():
        correction = corrections[span.process.clock]
        span.start, span.finish = correction.time(span.begin), correction.time(span.end)
    return alignment


def _gap(message: Message, corrections: dict[str, Correction]) -> int:
    """How long it took, in ns."""
    sender, receiver = corrections[message.sender.clock], corrections[message.receiver.clock]
    return receiver.time(message.received) - sender.time(message.sent)


def _uncorrected(trace: Trace, messages: Sequence[Message]) -> dict[str, Correction]:
    """The uncorrected wall clocks."""
    times = _times(messages)
    corrections = {}
    for clock in sorted({process.clock for process in trace.processes}):
        of_clock = [process for process in trace.processes if process.clock == clock]
        # A wall clock that was set meanwhile has several; the middle one is of most processes.
        wall = statistics.median_low([process.clock_offset for process in of_clock])
        own = times.get(clock) or [span.begin for process in of_clock for span in process.spans.values()] or [0]
        corrections[clock] = Correction(
            clock, clock, wall, statistics.median_low(own), messages=len(times.get(clock, ()))
        )
    return corrections


def _times(messages: Sequence[Message]) -> dict[str, list[int]]:
    """The moments of messages, by clock."""
    times: dict[str, list[int]] = {}
    for each in messages:
        times.setdefault(each.sender.clock, []).append(each.sent)
        times.setdefault(each.receiver.clock, []).append(each.received)
    return times


def _connected(corrections: dict[str, Correction], messages: Sequence[Message]) -> list[list[str]]:
    """The clocks in groups that messages connect; in each, the one with the most messages comes first."""
    groups = {clock: [clock] for clock in corrections}
    for each in messages:
        group, other = groups[each.sender.clock], groups[each.receiver.clock]
        if group is not other:
            group += other
            groups.update(dict.fromkeys(other, group))
    found = {
        id(group): sorted(group, key=lambda clock: (-corrections[clock].messages, clock)) for group in groups.values()
    }
    return list(found.values())


def _needed(module: str) -> Any:
    """A library of the extra ``trace``: reading needs none of them, and one clock needs no correction.

    :raises TraceError: if it is not installed
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise TraceError(
            f"this needs {name}, which cannot be imported ({error}); in a checkout: pip install '.[trace]'"
        ) from error


class _Problem:
    """The linear program of clocks that are connected. The first is the reference."""

    def __init__(self, clocks: Sequence[str], corrections: dict[str, Correction], messages: Sequence[Message]) -> None:
        self.numpy, self.optimize = _needed("numpy"), _needed("scipy.optimize")
        self.index = {clock: index for index, clock in enumerate(clocks)}
        self.corrections = [corrections[clock] for clock in clocks]
        self.messages = list(messages)
        self.base = self._bases()
        #: messages that no drift explains are left out from the beginning: they would spoil the scale of all the rest
        self.near = [each for each in self.messages if abs(self._length(each)) <= _FAR]
        #: half of the longest time that messages of a clock span, in ns; drift is counted as what it makes of this
        self.half = 1
        for clock, moments in _times(self.near).items():
            corrections[clock].middle = (min(moments) + max(moments)) // 2
            self.half = max(self.half, (max(moments) - min(moments)) // 2)
        #: columns: offset and drift of each clock but the reference
        self.columns = 2 * (len(clocks) - 1)
        drift = MOST_DRIFT * self.half / 1000
        self.bounds = [(-_OPEN, _OPEN), (-drift, drift)] * (len(clocks) - 1)

    # -- what goes in

    def _direction(self, message: Message) -> tuple[int, int]:
        return self.index[message.sender.clock], self.index[message.receiver.clock]

    def _directions(self, messages: Sequence[Message]) -> dict[tuple[int, int], list[Message]]:
        found: dict[tuple[int, int], list[Message]] = {}
        for each in messages:
            found.setdefault(self._direction(each), []).append(each)
        return found

    def _bases(self) -> list[int]:
        """A first offset of each clock, in ns, that a few wrong messages do not spoil; the program does the rest."""
        self.base = [0] * len(self.corrections)
        usual = {
            direction: statistics.median_low([round(1000 * self._length(each)) for each in messages])
            for direction, messages in self._directions(self.messages).items()
        }
        base = {0: 0}
        while len(base) < len(self.corrections):
            # First to those with messages in both directions: theirs is settled by the messages.
            _, old, new = min(
                (not {(old, new), (new, old)} <= usual.keys(), old, new)
                for direction in usual
                for old, new in (direction, direction[::-1])
                if old in base and new not in base
            )
            there, back = usual.get((old, new)), usual.get((new, old))
            if there is None or back is None:
                base[new] = max(0, base[old] - there) if there is not None else min(0, base[old] + (back or 0))
            else:
                base[new] = base[old] + (back - there) // 2
        return [base[index] for index in range(len(base))]

    def _length(self, message: Message) -> float:
        """How long it took by the first offsets, in µs."""
        sender, receiver = self._direction(message)
        walls = self.corrections[receiver].wall - self.corrections[sender].wall
        return (message.received - message.sent + walls + self.base[receiver] - self.base[sender]) / 1000

    def _system(self, messages: Sequence[Message]) -> tuple[Any, Any]:
        """A row and a gap for each message: ``rows @ solution + gaps`` is how long each takes, in µs."""
        rows = self.numpy.zeros((len(messages), self.columns))
        for row, each in zip(rows, messages, strict=True):
            sender, receiver = self._direction(each)
            for clock, sign, time in ((receiver, 1, each.received), (sender, -1, each.sent)):
                if clock:
                    row[2 * clock - 2] = sign
                    row[2 * clock - 1] = sign * (time - self.corrections[clock].middle) / self.half
        return rows, self.numpy.array([self._length(each) for each in messages])

    # -- what comes out

    def solve(self) -> list[Contradiction]:
        """Fill in the corrections; returns what does not fit any."""
        solution, possible, impossible = self._sift()
        hulls = [each for own in self._directions(possible).values() for each in hull(own)]
        rows, gaps = self._system(hulls)
        solution = self._middle(hulls, rows, gaps, solution)
        for index, correction in enumerate(self.corrections):
            correction.reference = self.corrections[0].clock
            if index:
                correction.offset = self.base[index] + round(1000 * solution[2 * index - 2])
                correction.drift = float(solution[2 * index - 1]) * 1000 / self.half
                correction.low, correction.high = (self._edge(index, sign, rows, gaps) for sign in (1, -1))
        tightest: dict[tuple[int, int], tuple[float, Message]] = {}
        for each, length in zip(hulls, rows @ solution + gaps, strict=True):
            known = tightest.get(self._direction(each), (length, each))
            tightest[self._direction(each)] = min(known, (length, each), key=lambda pair: pair[0])
        rows, gaps = self._system(impossible)
        found = [
            Contradiction(each, round(-1000 * length), tightest.get(self._direction(each)[::-1], (0, None))[1])
            for each, length in zip(impossible, rows @ solution + gaps, strict=True)
        ]
        return sorted(found, key=lambda each: -each.by)

    def _sift(self) -> tuple[Any, list[Message], list[Message]]:
        """Corrections, the messages that can be true together with them, and those that cannot."""
        rows, gaps = self._system(self.near)
        directions = self._directions(self.near).values()
        for count in (1, _LAYERS):
            solution = self._least_slack([each for own in directions for each in layers(own, count)])
            fits = rows @ solution + gaps >= -TOLERANCE
            if fits.all():
                # Mostly: the hulls stand for all messages if all are possible.
                break
        possible = [each for each, fit in zip(self.near, fits, strict=True) if fit]
        impossible = [each for each, fit in zip(self.near, fits, strict=True) if not fit]
        # One that took an hour is possible, and says nothing.
        return solution, possible, impossible + [each for each in self.messages if self._length(each) < -_FAR]

    def _least_slack(self, messages: Sequence[Message]) -> Any:
        """The corrections for which the messages' times have to be changed least, in sum.

        The sum alone may be the same if one message is wrong by all or two by a part each. It is therefore taken again,
        with little weight on those that are far off: that leaves as few as possible.
        """
        numpy, count = self.numpy, len(messages)
        rows, gaps = self._system(messages)
        weights = numpy.ones(count)
        for _ in range(_REWEIGHTED):
            cost = numpy.concatenate([numpy.zeros(self.columns), weights])
            found = self._linear(cost, numpy.hstack([-rows, -numpy.eye(count)]), gaps, [(0, None)] * count)
            if found is None:
                clocks = ", ".join(each.clock for each in self.corrections)
                raise TraceError(f"no corrections can be found for the clocks {clocks}")
            slack = found[self.columns :]
            if slack.max(initial=0) <= TOLERANCE:
                break
            weights = _USUAL / (_USUAL + slack)
        return found[: self.columns]

    def _middle(self, messages: Sequence[Message], rows: Any, gaps: Any, known: Any) -> Any:
        """The corrections in the middle of what the messages allow; ``known`` ones if rounding leaves no such."""
        numpy, columns = self.numpy, self.columns
        directions = [self._direction(each) for each in messages]
        pairs = sorted({(a, b) for a, b in directions if a < b and (b, a) in directions})
        count = len(pairs)
        # Columns: corrections, the least time of each pair in both directions, sizes of the corrections.
        least = numpy.array([[float(pair in (each, each[::-1])) for pair in pairs] for each in directions])
        rows = numpy.hstack([-rows, least.reshape(len(rows), count), numpy.zeros((len(rows), columns))])
        one, none = numpy.eye(columns), numpy.zeros((columns, count))
        # An offset's size is its distance to the wall clock, which is at minus the base.
        wall = numpy.zeros(columns)
        wall[::2] = [-base / 1000 for base in self.base[1:]]
        rows = numpy.vstack([rows, numpy.hstack([one, none, -one]), numpy.hstack([-one, none, -one])])
        # The messages that were selected with the tolerance must still fit.
        limits = numpy.concatenate([gaps + TOLERANCE, wall, -wall])
        cost = numpy.concatenate([numpy.zeros(columns), -numpy.ones(count), [_WALL_COST, _DRIFT_COST] * (columns // 2)])
        found = self._linear(cost, rows, limits, [(-2 * TOLERANCE, None)] * count + [(0, None)] * columns)
        return known if found is None else found[:columns]

    def _edge(self, index: int, sign: int, rows: Any, gaps: Any) -> int | None:
        """The least or greatest offset, by ``sign``, that the messages leave for a clock; None if it is open."""
        cost = self.numpy.zeros(self.columns)
        cost[2 * index - 2] = sign
        found = self._linear(cost, -rows, gaps + TOLERANCE)
        if found is None or abs(found[2 * index - 2]) >= _OPEN * 0.999:
            return None
        return self.base[index] + round(float(found[2 * index - 2]) * 1000)

    def _linear(self, cost: Any, rows: Any, limits: Any, more: Sequence[Any] = ()) -> Any:
        """The solution; None if there is none.

        :param more: the bounds of the columns behind the corrections
        """
        bounds = [*self.bounds, *more]
        return self.optimize.linprog(cost, A_ub=rows, b_ub=limits, bounds=bounds, method="highs").x


def hull(messages: Sequence[Message]) -> list[Message]:
    """Return the messages of one direction on the lower convex hull of (sent, received): exact, by whole numbers."""
    found: list[Message] = []
    for each in sorted(messages, key=lambda each: (each.sent, each.received)):
        if found and found[-1].sent == each.sent:
            continue
        while len(found) > 1 and _left_of(found[-2], found[-1], each) <= 0:
            found.pop()
        found.append(each)
    return found


def layers(messages: Sequence[Message], count: int) -> list[Message]:
    """The hull, the hull of the others, and so on, ``count`` times."""
    left, found = list(messages), []
    for _ in range(count):
        outer = hull(left)
        found += outer
        taken = set(map(id, outer))
        left = [each for each in left if id(each) not in taken]
        if not left:
            break
    return found


def _left_of(first: Message, second: Message, third: Message) -> int:
    return (second.sent - first.sent) * (third.received - first.received) - (second.received - first.received) * (
        third.sent - first.sent
    )
