"""In which component the time of a request went.

Each moment of a request is that of the span that began last of those that have not ended, so that all components
together are the request's duration. Three values of spans say more:

- ``wait_ns``: waiting in eventlet's hub, that of the spans within included; it is the component ``hub``;
- ``busy_ns`` of data that a store has opened: what the store took while the body went out, and what the body did not;
- ``input_ns`` of data that a store adds: waiting for what the client sends; it is the component ``input``.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from fastio.trace.analysis.model import Span
from fastio.trace.analysis.requests import Request

HUB, INPUT = "hub", "input"

#: Where the classes of concurrency begin.
LEVELS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


def level(concurrency: float) -> int:
    """The class of a number of requests in flight: where it begins."""
    return max(each for each in LEVELS if each <= max(concurrency + 0.5, 1))


def level_name(start: int) -> str:
    following = LEVELS.index(start) + 1
    last = LEVELS[following] - 1 if following < len(LEVELS) else None
    return f"{start}+" if last is None else str(start) if last == start else f"{start}–{last}"


def times(request: Request) -> Counter[str]:
    """Nanoseconds by component; together they are the request's duration."""
    own = _exclusive(request.spans)
    waits = _waits(request.spans)
    found: Counter[str] = Counter()
    for span in request.spans:
        left = own.get(id(span), 0)
        for component, value in ((HUB, waits.get(id(span), 0)), (INPUT, span.number_of("input_ns"))):
            taken = min(left, max(value, 0))
            found[component] += taken
            left -= taken
        found[span.component] += left
    for span in request.spans:
        _move_busy(request, span, own, waits, found)
    return Counter({component: time for component, time in found.items() if time > 0})


def _exclusive(spans: Sequence[Span]) -> dict[int, int]:
    """The time of each span, by its ``id()``, in which none that began later was there."""
    edges = []
    for order, span in enumerate(spans):
        if span.finish > span.start:
            edges += [(span.start, 1, order), (span.finish, 0, order)]
    edges.sort()
    found: dict[int, int] = {}
    active: list[int] = []
    last = 0
    for time, begins, order in edges:
        if active and time > last:
            innermost = id(spans[active[-1]])
            found[innermost] = found.get(innermost, 0) + time - last
        last = time
        if begins:
            active.append(order)
            active.sort()
        else:
            active.remove(order)
    return found


def _waits(spans: Iterable[Span]) -> dict[int, int]:
    """The hub waits of each span without those of the spans within it."""
    own = {(id(span.process), span.id): span.number_of("wait_ns") for span in spans}
    found = dict(own)
    for span in spans:
        outer = (id(span.process), span.parent)
        if outer in found and span.parent != span.id:
            found[outer] -= own[id(span.process), span.id]  # type: ignore[index]
    return {id(span): found[id(span.process), span.id] for span in spans}


def _move_busy(request: Request, span: Span, own: dict[int, int], waits: dict[int, int], found: Counter[str]) -> None:
    """Give a span the time that it was busy while a later one, the body, was there."""
    busy = span.number_of("busy_ns") - max(waits.get(id(span), 0), 0)
    missing = min(busy, span.finish - span.start) - own.get(id(span), 0)
    if missing <= 0:
        return
    for other in request.spans:
        within = other is not span and other.start < span.finish and other.finish > span.start
        if within and other.component != span.component and other.start >= span.start:
            taken = min(missing, found[other.component])
            found[other.component] -= taken
            found[span.component] += taken
            missing -= taken
