"""The user of Locust, for all services. Importing this module monkey patches the process (gevent)."""

import http.client
import time
from collections.abc import Callable, Iterator

import gevent
import gevent.event
import locust
from locust.exception import StopUser

from benchmarks.load.content import Content
from benchmarks.load.exchange import Exchange
from benchmarks.load.plan import Plan
from benchmarks.load.protocols import Client, Refused, client_class
from benchmarks.load.records import NOT_REACHED, Record
from benchmarks.load.schedule import Schedule, Step

#: Seconds that a user waits after a request that could not be sent.
UNREACHABLE = 0.1


class Work:
    """State that the users of this process share: the operations that are left, and where each is recorded.

    :param plan: of all workers together
    :param worker: number of this one among ``workers``
    :param record: is called with each operation when it has ended
    """

    def __init__(self, plan: Plan, worker: int, workers: int, record: Callable[[Record], None]) -> None:
        self.plan = plan
        self.record = record
        kind = client_class(plan.protocol)
        kind.check(plan)
        self._kind = kind
        self._shared = kind.shared(plan)
        self._content = Content(plan)
        # An operation that none of the users can do is reported before they start.
        kind(plan, self._content, self._shared).close()
        self._steps: Iterator[Step] = Schedule(plan).share(worker, workers)
        #: perf_counter() when the first user began
        self._begun: float | None = None
        self._users = 0
        #: set when the users have been started, which Locust does with all of a worker's at once
        self.started = gevent.event.Event()
        #: seconds since the epoch when perf_counter() was 0
        self.epoch = time.time() - time.perf_counter()

    def client(self) -> tuple[int, Client]:
        """The client of a new user, and the user's number in this process."""
        self._users += 1
        self.started.set()
        return self._users - 1, self._kind(self.plan, self._content, self._shared)

    def next(self) -> tuple[Step, float | None]:
        """The next operation, and when it was due by perf_counter(), which is None in a closed loop.

        In an open loop this waits until then. Raises Locust's StopUser when there is no operation left, or no time.
        """
        now = time.perf_counter()
        if self._begun is None:
            self._begun = now
        if self.plan.seconds and not self.plan.rate and now >= self._begun + self.plan.seconds:
            raise StopUser
        step = next(self._steps, None)
        if step is None:
            raise StopUser
        if step.due is None:
            return step, None
        due = self._begun + step.due
        if due > now:
            gevent.sleep(due - now)
        return step, due


class StorageUser(locust.User):
    """Does one operation after the other, until none is left."""

    def wait_time(self) -> float:
        return self._work.plan.think

    def on_start(self) -> None:
        # None if this worker cannot take part.
        self._work: Work = self.environment.work.get()
        self._number = 0
        self._client: Client | None = None
        if self._work is not None:
            self._number, self._client = self._work.client()

    def on_stop(self) -> None:
        if self._client is not None:
            self._client.close()

    @locust.task
    def operate(self) -> None:
        if self._client is None:
            raise StopUser
        step, due = self._work.next()
        found = Exchange()
        late = NOT_REACHED if due is None else max(0.0, found.start - due)
        problem = self._done(step, found, max(0.0, late))
        assert found.end is not None
        seconds = found.end - found.start
        self._work.record(
            Record(
                step.kind, step.number, self._number, self._work.epoch + found.start, _since(found.start, found.sent),
                _since(found.start, found.first_byte), seconds, found.bytes, found.status, problem,
                late,
            )
        )  # fmt: skip
        self.environment.events.request.fire(
            request_type=step.kind, name=self._work.plan.protocol, response_time=seconds * 1000,
            response_length=found.bytes, exception=OperationFailed(_kind(problem)) if problem else None, context={},
        )  # fmt: skip

    def _done(self, step: Step, found: Exchange, late: float) -> str:
        """Do it; what went wrong, whatever that was, is what is returned, and ``found`` has an end."""
        patience = self._work.plan.patience
        if late >= patience:
            # A client would have gone away. The operation counts as failed, and those that follow catch up.
            found.end = found.start
            return f"not begun within {patience:g} s: no user was free"
        assert self._client is not None
        try:
            with gevent.Timeout(patience - late):
                return self._client.do(step, found)
        except gevent.Timeout:
            problem = f"no end after {patience:g} s"
        except (OSError, http.client.HTTPException, Refused) as error:
            problem = f"{type(error).__name__}: {error}".rstrip(": ")
        found.end = time.perf_counter()
        if found.sent is None:
            # There is no server: without a pause, there would be thousands of failures a second until the end.
            gevent.sleep(UNREACHABLE)
        return problem


class OperationFailed(Exception):
    """An operation that has failed, for Locust's own statistics."""


def _kind(problem: str) -> str:
    """The kind of a problem: Locust keeps each different text, and a server's text has the number of the request."""
    return problem.partition(":")[0]


def _since(start: float, moment: float | None) -> float:
    return NOT_REACHED if moment is None else moment - start
