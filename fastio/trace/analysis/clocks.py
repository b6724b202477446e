"""One time for all hosts: offset and drift of their clocks, from what cannot have happened before what.

Each clock's wall time, as its files tell it, is corrected by a straight line: ``offset + drift * (time - middle)``. A
message from one clock to another says that a difference of two such lines is not negative, so all messages together are
difference constraints, linear in the offsets and drifts: a linear program. Of a pair of clocks with messages in both
directions the solution is in the middle of what they allow (the two directions take the same least time); with messages
in one direction only, or none, the wall clocks are believed as far as the messages let them.

If no lines fit, some data is impossible: those messages are found whose times would have to change least in sum, are
named together with the messages that they contradict, and count no more.

Of the messages of a direction only those matter that lie on the lower convex hull of (sent, received): any line that
suits them suits all. So the program is small, however many messages there are.
"""

import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastio.trace.analysis import extra
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
#: What a µs of distance to the wall clock, and of drift at the end of the trace, costs beside one of the middle.
_WALL_COST, _DRIFT_COST = 1e-4, 1e-3


@dataclass
class Correction:
    """What is added to the wall time of a clock, and how far the messages settle that."""

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

    @property
    def width(self) -> int | None:
        """The width of the interval that the messages leave for the offset, in ns."""
        return None if self.low is None or self.high is None else self.high - self.low


@dataclass
class Contradiction:
    """A message that no correction of the clocks makes possible."""

    message: Message
    #: by how much it arrives too early, in ns
    by: int
    #: messages that it cannot be true together with
    against: list[Message] = field(default_factory=list)

    def __str__(self) -> str:
        against = "".join(f"; contradicts {message}" for message in self.against)
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
    """Find the corrections, and write the times of all spans and points into them.

    :raises TraceError: if there are messages between different clocks, and scipy is not installed
    """
    alignment = _align(trace, [each for each in messages if each.sender.clock != each.receiver.clock])
    for process in trace.processes:
        correction = alignment.corrections[process.clock]
        for span in process.spans.values():
            span.start, span.finish = correction.time(span.begin), correction.time(span.end)
        for point in process.points:
            point.time = correction.time(point.monotonic)
    return alignment


def _align(trace: Trace, messages: Sequence[Message]) -> Alignment:
    corrections = _uncorrected(trace, messages)
    alignment = Alignment(corrections, len(messages))
    early = [-gap for gap in _gaps(messages, corrections) if gap < 0]
    alignment.wrong_before, alignment.worst_before = len(early), max(early, default=0)
    if not messages:
        return alignment
    for each in messages:
        for process in (each.sender, each.receiver):
            corrections[process.clock].messages += 1
    for group in _connected(corrections, messages):
        if len(group) > 1:
            among = [each for each in messages if each.sender.clock in group]
            alignment.contradictions += _Problem(group, corrections, among).solve()
    wrong = {id(each.message) for each in alignment.contradictions}
    kept = [each for each in messages if id(each) not in wrong]
    alignment.residual = max((-gap for gap in _gaps(kept, corrections)), default=0)
    alignment.residual = max(alignment.residual, 0)
    return alignment


def _gaps(messages: Sequence[Message], corrections: dict[str, Correction]) -> list[int]:
    """How long each took, in ns."""
    return [
        corrections[each.receiver.clock].time(each.received) - corrections[each.sender.clock].time(each.sent)
        for each in messages
    ]


def _uncorrected(trace: Trace, messages: Sequence[Message]) -> dict[str, Correction]:
    """The wall clocks as they are."""
    times: dict[str, list[int]] = {}
    for each in messages:
        times.setdefault(each.sender.clock, []).append(each.sent)
        times.setdefault(each.receiver.clock, []).append(each.received)
    corrections = {}
    for clock in sorted({process.clock for process in trace.processes}):
        of_clock = [process for process in trace.processes if process.clock == clock]
        # A wall clock that was set meanwhile has several; the middle one is of most processes.
        wall = statistics.median_low([process.clock_offset for process in of_clock])
        own = times.get(clock) or [span.begin for process in of_clock for span in process.spans.values()] or [0]
        corrections[clock] = Correction(clock, clock, wall, statistics.median_low(own))
    return corrections


def _connected(corrections: dict[str, Correction], messages: Sequence[Message]) -> list[list[str]]:
    """The clocks in groups that messages connect; in each, the one with the most messages comes first."""
    index = {clock: index for index, clock in enumerate(corrections)}
    numbers = _components(len(index), ((index[m.sender.clock], index[m.receiver.clock]) for m in messages), "weak")
    groups: dict[int, list[str]] = {}
    for clock in sorted(corrections, key=lambda clock: (-corrections[clock].messages, clock)):
        groups.setdefault(numbers[index[clock]], []).append(clock)
    return [groups[number] for number in sorted(groups)]


def _components(count: int, edges: Iterable[tuple[int, int]], connection: str) -> list[int]:
    """For each of ``count`` nodes, the number of what it is connected with."""
    numpy, graph = extra.needed("numpy"), extra.needed("scipy.sparse.csgraph")
    matrix = numpy.zeros((count, count))
    for edge in edges:
        matrix[edge] = 1
    numbers: list[int] = graph.connected_components(matrix, connection=connection)[1].tolist()
    return numbers


@dataclass
class _Constraint:
    """``gap`` + the corrections' difference at these places must not be negative; in µs."""

    sender: int
    receiver: int
    #: µs that the message took before the correction
    gap: float
    #: (time - middle) / half of the trace, of each side
    sent: float
    received: float
    message: Message


class _Problem:
    """The linear program of clocks that are connected. The first is the reference."""

    def __init__(self, clocks: Sequence[str], corrections: dict[str, Correction], messages: Sequence[Message]) -> None:
        self.numpy, self.optimize = extra.needed("numpy"), extra.needed("scipy.optimize")
        self.clocks = list(clocks)
        self.index = {clock: index for index, clock in enumerate(self.clocks)}
        self.corrections = [corrections[clock] for clock in self.clocks]
        self.messages = list(messages)
        self.base = self._bases()
        #: what no drift explains is left out from the beginning: it would spoil the scale of all the rest
        self.near = [each for each in self.messages if abs(self._from_base(each)) <= _FAR]
        #: ns; drift is counted as what it makes of this
        self.half = self._scale()
        #: columns: offset and drift of each clock but the reference
        self.columns = 2 * (len(self.clocks) - 1)

    # -- what goes in

    def _directions(self, messages: Sequence[Message]) -> dict[tuple[int, int], list[Message]]:
        found: dict[tuple[int, int], list[Message]] = {}
        for each in messages:
            found.setdefault((self.index[each.sender.clock], self.index[each.receiver.clock]), []).append(each)
        return found

    def _gap(self, message: Message) -> int:
        """How long it took by the wall clocks, in ns."""
        sender, receiver = (self.corrections[self.index[p.clock]] for p in (message.sender, message.receiver))
        return message.received + receiver.wall - message.sent - sender.wall

    def _bases(self) -> list[int]:
        """A first offset of each clock, in ns, that a few wrong messages do not spoil; the program does the rest."""
        usual = {
            direction: statistics.median_low(sorted(self._gap(each) for each in messages))
            for direction, messages in self._directions(self.messages).items()
        }
        base: dict[int, int] = {0: 0}
        while len(base) < len(self.clocks):
            # First to those with messages in both directions: theirs is settled by the messages.
            steps = [
                ((new, old) not in usual or (old, new) not in usual, old, new)
                for direction in usual
                for old, new in (direction, direction[::-1])
                if old in base and new not in base
            ]
            _, old, new = min(steps)
            there, back = usual.get((old, new)), usual.get((new, old))
            if there is not None and back is not None:
                base[new] = base[old] + (back - there) // 2
            elif there is not None:
                base[new] = max(0, base[old] - there)
            else:
                base[new] = min(0, base[old] + (back or 0))
        return [base[index] for index in range(len(self.clocks))]

    def _from_base(self, message: Message) -> float:
        """How long it took by the first offsets, in µs."""
        sender, receiver = self.index[message.sender.clock], self.index[message.receiver.clock]
        return (self._gap(message) + self.base[receiver] - self.base[sender]) / 1000

    def _scale(self) -> int:
        """Half of the longest time that messages of a clock span; sets the clocks' middles."""
        times: dict[int, list[int]] = {}
        for each in self.near:
            times.setdefault(self.index[each.sender.clock], []).append(each.sent)
            times.setdefault(self.index[each.receiver.clock], []).append(each.received)
        for clock, moments in times.items():
            self.corrections[clock].middle = (min(moments) + max(moments)) // 2
        return max([1, *((max(moments) - min(moments)) // 2 for moments in times.values())])

    def _constraint(self, message: Message) -> _Constraint:
        sender, receiver = self.index[message.sender.clock], self.index[message.receiver.clock]
        sent = (message.sent - self.corrections[sender].middle) / self.half
        received = (message.received - self.corrections[receiver].middle) / self.half
        return _Constraint(sender, receiver, self._from_base(message), sent, received, message)

    def _matrix(self, constraints: Sequence[_Constraint]) -> Any:
        """A row for each; ``row @ x + gap`` is how long the message takes, in µs."""
        rows = self.numpy.zeros((len(constraints), self.columns))
        for row, each in zip(rows, constraints, strict=True):
            for clock, sign, place in ((each.receiver, 1, each.received), (each.sender, -1, each.sent)):
                if clock:
                    row[2 * clock - 2] += sign
                    row[2 * clock - 1] += sign * place
        return rows

    def _bounds(self) -> list[tuple[float, float]]:
        return [(-_OPEN, _OPEN), (-MOST_DRIFT * self.half / 1000, MOST_DRIFT * self.half / 1000)] * (
            len(self.clocks) - 1
        )

    # -- what comes out

    def solve(self) -> list[Contradiction]:
        """Fill in the corrections; returns what does not fit any."""
        possible, impossible, solution = self._sift()
        constraints = [
            self._constraint(each)
            for messages in self._directions([each.message for each in possible]).values()
            for each in hull(messages)
        ]
        solution = self._middle(constraints, solution)
        for index, correction in enumerate(self.corrections):
            correction.reference = self.clocks[0]
            if index:
                correction.offset = self.base[index] + round(1000 * solution[2 * index - 2])
                correction.drift = float(solution[2 * index - 1]) * 1000 / self.half
                self._interval(index, correction, constraints)
        found = []
        lengths = self._lengths(impossible, solution)
        for each, length in zip(impossible, lengths, strict=True):
            found.append(Contradiction(each.message, round(-1000 * length), self._against(each, constraints, solution)))
        return sorted(found, key=lambda each: -each.by)

    def _lengths(self, constraints: Sequence[_Constraint], solution: Any) -> Any:
        gaps = self.numpy.array([each.gap for each in constraints])
        return self._matrix(constraints) @ solution + gaps if constraints else gaps

    def _sift(self) -> tuple[list[_Constraint], list[_Constraint], Any]:
        """The messages that can be true together, those that cannot, and corrections that show it."""
        near = [self._constraint(each) for each in self.near]
        for count in (1, _LAYERS):
            chosen = [each for own in self._directions(self.near).values() for each in layers(own, count)]
            solution = self._least_slack([self._constraint(each) for each in chosen])
            if min(self._lengths(near, solution), default=0) >= -TOLERANCE:
                # Mostly: the hulls stand for all messages if all are possible.
                break
        possible: list[_Constraint] = []
        impossible: list[_Constraint] = []
        for each, length in zip(near, self._lengths(near, solution), strict=True):
            (possible if length >= -TOLERANCE else impossible).append(each)
        # One that took an hour is possible, and says nothing.
        impossible += [self._constraint(each) for each in self.messages if self._from_base(each) < -_FAR]
        return possible, impossible, solution

    def _least_slack(self, constraints: Sequence[_Constraint]) -> Any:
        """The corrections for which the messages' times have to be changed least, in sum.

        The sum alone may be the same if one message is wrong by all or two by a part each. So it is taken again, with
        little weight on those that are far off: that leaves as few as possible.
        """
        numpy, count = self.numpy, len(constraints)
        rows = numpy.hstack([-self._matrix(constraints), -numpy.eye(count)])
        weights = numpy.ones(count)
        bounds = self._bounds() + [(0, None)] * count
        for _ in range(_REWEIGHTED):
            cost = numpy.concatenate([numpy.zeros(self.columns), weights])
            found = self._linear(cost, rows, [each.gap for each in constraints], bounds)
            if found is None:
                raise TraceError(f"no corrections can be found for the clocks {', '.join(self.clocks)}")
            slack = found[self.columns :]
            if slack.max(initial=0) <= TOLERANCE:
                break
            weights = _USUAL / (_USUAL + slack)
        return found[: self.columns]

    def _middle(self, constraints: Sequence[_Constraint], known: Any) -> Any:
        """The corrections in the middle of what the messages allow; ``known`` ones if rounding leaves no such."""
        numpy = self.numpy
        pairs = sorted({tuple(sorted((each.sender, each.receiver))) for each in constraints} & self._two_way())
        count, columns = len(pairs), self.columns
        # Columns: corrections, the least time of each pair in both directions, sizes of the corrections.
        rows = numpy.hstack([-self._matrix(constraints), numpy.zeros((len(constraints), count + columns))])
        for row, each in zip(rows, constraints, strict=True):
            pair = tuple(sorted((each.sender, each.receiver)))
            if pair in pairs:
                row[columns + pairs.index(pair)] = 1
        sizes = numpy.zeros((2 * columns, 2 * columns + count))
        shift = numpy.zeros(2 * columns)
        for column in range(columns):
            for part, sign in enumerate((1, -1)):
                sizes[2 * column + part, column] = sign
                sizes[2 * column + part, columns + count + column] = -1
                if column % 2 == 0:
                    # The offset's distance to the wall clock, which is at minus the base.
                    shift[2 * column + part] = sign * -self.base[column // 2 + 1] / 1000
        cost = numpy.concatenate([numpy.zeros(columns), -numpy.ones(count), [_WALL_COST, _DRIFT_COST] * (columns // 2)])
        # The messages that were selected with the tolerance must still fit.
        limits = numpy.concatenate([[each.gap + TOLERANCE for each in constraints], shift])
        bounds = self._bounds() + [(-2 * TOLERANCE, None)] * count + [(0, None)] * columns
        found = self._linear(cost, numpy.vstack([rows, sizes]), limits, bounds)
        return known if found is None else found[:columns]

    def _two_way(self) -> set[tuple[int, int]]:
        """Pairs of clocks between which messages go round, if not back directly."""
        numbers = _components(len(self.clocks), self._directions(self.messages), "strong")
        return {(a, b) for a, b in itertools.combinations(range(len(numbers)), 2) if numbers[a] == numbers[b]}

    def _interval(self, index: int, correction: Correction, constraints: Sequence[_Constraint]) -> None:
        """What the messages leave for the clock's offset."""
        rows, gaps = -self._matrix(constraints), [each.gap + TOLERANCE for each in constraints]
        edges: list[int | None] = []
        column = 2 * index - 2
        for sign in (1, -1):
            cost = self.numpy.zeros(self.columns)
            cost[column] = sign
            found = self._linear(cost, rows, gaps, self._bounds())
            is_open = found is None or abs(found[column]) >= _OPEN * 0.999
            edges.append(None if is_open else self.base[index] + round(float(found[column]) * 1000))
        correction.low, correction.high = edges

    def _linear(self, cost: Any, rows: Any, limits: Any, bounds: Any) -> Any:
        """The solution; None if there is none."""
        return self.optimize.linprog(cost, A_ub=rows, b_ub=limits, bounds=bounds, method="highs").x

    def _against(self, wrong: _Constraint, constraints: Sequence[_Constraint], solution: Any) -> list[Message]:
        """The messages on the shortest way back, which say that ``wrong`` cannot be."""
        best: dict[tuple[int, int], tuple[float, Message]] = {}
        for each, length in zip(constraints, self._lengths(constraints, solution), strict=True):
            known = best.get((each.sender, each.receiver))
            if known is None or length < known[0]:
                # Below 0 by rounding only.
                best[each.sender, each.receiver] = (max(float(length), 0.0), each.message)
        # Bellman-Ford, from the receiver back to the sender.
        ways: dict[int, tuple[float, list[Message]]] = {wrong.receiver: (0.0, [])}
        for _ in self.clocks:
            for (sender, receiver), (length, message) in best.items():
                if sender in ways:
                    total = ways[sender][0] + length
                    if receiver not in ways or total < ways[receiver][0] - 1e-9:
                        ways[receiver] = (total, [*ways[sender][1], message])
        return ways.get(wrong.sender, (0.0, []))[1]


def hull(messages: Sequence[Message]) -> list[Message]:
    """Those of one direction on the lower convex hull of (sent, received): exact, by whole numbers."""
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
