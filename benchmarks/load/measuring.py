"""The loads of suites: one run with its records, with what was used meanwhile and the bottleneck.

Parameters that all of these suites have:

``size``, ``objects``
    bytes of an image, a log or another object, and how many there are
``users``, ``total``, ``seconds``
    concurrent requests, and requests in all; or how long new ones are begun
``patience``
    seconds that a request may take; then it has failed
``records``
    the directory of the records, below ``results/records``; empty: they are not kept
"""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.load.plan import Plan

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDS = ROOT / "results" / "records"


@contextlib.contextmanager
def ready(records: str = "", environment: Mapping[str, str] | None = None) -> Iterator[Load]:
    """A load whose generator gets ready at once, while servers do.

    :param records: the directory of its records, below those of the results, where they stay; empty: they are not kept
    :param environment: of the generator; wins over this process's
    """
    from benchmarks.load import client

    with tempfile.TemporaryDirectory(prefix="load-") as temporary:
        name = f"{datetime.datetime.now().strftime('%Y%m%d-%H%M%S.%f')}-{os.getpid()}"
        directory = RECORDS / records / name if records else Path(temporary, "run")
        with client.Generator(directory, environment) as generator:
            yield Load(generator, directory, Path(temporary, "samples"), bool(records))


@dataclass(frozen=True)
class Load:
    """A load that can be carried out once."""

    generator: Any
    #: of its records
    directory: Path
    samples: Path
    #: the records stay
    kept: bool

    def carry_out(self, plan: Plan) -> Any:
        """Do it; returns the :class:`~benchmarks.load.analysis.Run`."""
        from benchmarks.load import analysis

        return analysis.read(self.generator.carry_out(plan))

    def measured(
        self, plan: Plan, pids: Sequence[int], limits: Any = None, part: Callable[[Any], Any] | None = None,
        agents: Sequence[tuple[str, int]] = (), patterns: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Do it while servers and machines are sampled; returns the figures of a suite's run.

        :param pids: the servers' processes here
        :param limits: :class:`~benchmarks.load.bottleneck.Limits`
        :param part: gives of the operations the part that counts; :func:`~benchmarks.load.analysis.window` by default
        :param agents: of other machines
        :param patterns: of further processes, here and there
        """
        from benchmarks.load import agent, analysis, report, usage
        from benchmarks.load.bottleneck import Limits

        self.samples.mkdir()
        with agent.everywhere(self.samples, pids, agents, patterns or {}):
            run = self.carry_out(plan)
        counted, limits = (part or analysis.window)(run.operations), limits or Limits(users=plan.users)
        figures, details = report.measured(run, counted, usage.read(self.samples), limits)
        if not self.kept:
            return {**figures, **details}
        for path in self.samples.iterdir():
            shutil.move(path, self.directory / path.name)
        return {**figures, "records": os.path.relpath(self.directory, ROOT), **details}


def do_all(plan: Plan, *, make: str = "", remove: str = "", gone: int | None = None) -> None:
    """Do the operations of a plan one after the other, in this process: what prepares or cleans up.

    :param make: a container that is made before
    :param remove: one that is removed afterwards
    :param gone: status of an operation that is as good as done
    :raises RuntimeError: if one of them fails
    """
    from benchmarks.load import protocols
    from benchmarks.load.exchange import Exchange
    from benchmarks.load.schedule import Schedule

    with contextlib.closing(protocols.once(plan)) as client:
        if make:
            client.make_container(make)
        for step in Schedule(plan).share(0, 1):
            found = Exchange()
            problem = client.do(step, found)
            if problem and found.status != gone:
                raise RuntimeError(f"{step.name}: {problem}")
        if remove:
            client.remove_container(remove)


def servers(told: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Of the surroundings of a case its backend, and those beside it that run."""
    yield told
    yield from (each for each in told["beside"].values() if "failed" not in each)
