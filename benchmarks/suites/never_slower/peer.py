"""One of the two processes of a pair: it makes an operation ready once, and then does batches of calls when asked.

``python -m benchmarks.suites.never_slower.peer JSON`` has ``operation``, ``green`` and ``fast``, and what the operation
needs. Each line of its standard input is a question, and it writes a line for each answer, the first when it is ready.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.harness.children import Child
from benchmarks.harness.modes import Mode
from benchmarks.harness.worker import random_payload, recorded
from benchmarks.operations.base import Crowd


class Peer(Child):
    """Such a process.

    :param told: as described in the module
    :param prefix: runs the command
    """

    def __init__(self, told: Mapping[str, Any], prefix: Callable[[list[str]], list[str]] = list) -> None:
        name = f"{told['operation']} {'with fastio' if told.get('fast') else 'stock'}"
        super().__init__(__name__, json.dumps(told), name=name, prefix=prefix)

    def ready(self) -> dict[str, Any]:
        """Wait until it is; returns what it says of itself."""
        return json.loads(self.read())

    def batch(self, size: int, at_once: int, calls: int, side: str = "") -> float:
        return self._asked(size=size, at_once=at_once, calls=calls, side=side)["seconds"]

    def check(self, size: int, at_once: int, side: str = "") -> bool:
        return self._asked(size=size, at_once=at_once, calls=0, side=side)["verified"]

    def _asked(self, **question: Any) -> dict[str, Any]:
        return json.loads(self.ask(json.dumps(question)))


class Half(NamedTuple):
    """One of the two sides, where a process is both."""

    peer: Peer
    side: str

    def batch(self, size: int, at_once: int, calls: int) -> float:
        return self.peer.batch(size, at_once, calls, self.side)

    def check(self, size: int, at_once: int) -> bool:
        return self.peer.check(size, at_once, self.side)


def serve(work: Any, green: bool, questions: Iterable[str], answer: Callable[[dict[str, Any]], None]) -> None:
    """Answer the questions."""
    crowd = Crowd(green)
    for question in questions:
        asked = json.loads(question)
        work.side = asked.get("side", "")
        answer(_answered(work, crowd, asked["size"], asked["at_once"], asked["calls"]))


def _answered(work: Any, crowd: Crowd, size: int, at_once: int, calls: int) -> dict[str, Any]:
    work.before(size, at_once * max(1, calls))
    try:
        if not calls:
            known = random_payload(size).sha256
            return {"verified": set(crowd.each(lambda: work.sha256(size), at_once)) == {known}}
        start = time.perf_counter()
        moved = sum(crowd.each(lambda: sum([work.once(size) for _ in range(calls)]), at_once))
        seconds = time.perf_counter() - start
    finally:
        work.after()
    if moved != size * at_once * calls:
        raise RuntimeError(f"{moved} bytes came of {size * at_once * calls}")
    return {"seconds": seconds}


def main(arguments: Sequence[str]) -> None:
    from benchmarks.operations.catalogue import OPERATIONS

    # Whatever a library prints is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(said: dict[str, Any]) -> None:
        answers.write(json.dumps(said) + "\n")
        answers.flush()

    told = json.loads(arguments[0])
    mode = Mode(green=told["green"], fast=told["fast"])
    with OPERATIONS[told["operation"]](mode, told) as work:
        answer(_status(mode))
        serve(work, mode.green and not work.threads, sys.stdin, answer)


def _status(mode: Mode) -> dict[str, Any]:
    """fastio's, if it is there."""
    if not mode.fast or "fastio" not in sys.modules:
        return {}
    import fastio

    return {"fastio": recorded(fastio.status().to_dict())}


if __name__ == "__main__":
    main(sys.argv[1:])
