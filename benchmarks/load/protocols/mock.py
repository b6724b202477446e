"""No service at all, as COSBench's storage of the same name: an operation takes its time, and some of them fail.

It shows what the load generator itself can do, and a workload can be tried on it. ``server`` may have ``delay``
(seconds that an operation takes), ``errors`` (the part that fails, from 0 to 1) and ``size`` (bytes that are read).
"""

import time
from typing import Any

from benchmarks.load.content import Content
from benchmarks.load.exchange import Exchange
from benchmarks.load.plan import Plan, PlanError
from benchmarks.load.protocols import Client
from benchmarks.load.schedule import UNKNOWN_SIZE, Step
from benchmarks.load.selectors import mixed

DELAY, ERRORS, SIZE = 0.01, 0.0, 1000


class Mock(Client):
    def __init__(self, plan: Plan, content: Content, shared: Any) -> None:
        # There is nothing to connect to.
        self.plan, self.content = plan, content
        self._delay = plan.server.get("delay", DELAY)
        self._errors = plan.server.get("errors", ERRORS)
        self._done = shared

    @classmethod
    def check(cls, plan: Plan) -> None:
        super().check(plan)
        for name, most in (("delay", None), ("errors", 1), ("size", None)):
            value = plan.server.get(name, 0)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0 or (most and value > most):
                raise PlanError(
                    f"server of mock: {name} {value!r} is not a number from 0 {f'to {most}' if most else 'on'}"
                )

    @classmethod
    def shared(cls, plan: Plan) -> list[int]:
        """How many operations there were so far: each fails or not by its number."""
        return [0]

    def do(self, step: Step, found: Exchange) -> str:
        number = self._done[0]
        self._done[0] += 1
        found.sent = time.perf_counter()
        time.sleep(self._delay)
        found.first_byte = found.end = time.perf_counter()
        if mixed(self.plan.seed, number) / (1 << 64) < self._errors:
            return "error injected"
        found.status = 200
        if step.kind == "write":
            found.bytes = step.size
        elif step.kind == "read":
            found.bytes = self.plan.server.get("size", SIZE) if step.size == UNKNOWN_SIZE else step.size
        return ""

    def make_container(self, name: str) -> None:
        time.sleep(self._delay)

    def remove_container(self, name: str) -> None:
        time.sleep(self._delay)

    def close(self) -> None:
        pass
