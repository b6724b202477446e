"""Loads from any process: alone, or as suites have them, with what was used meanwhile and the bottleneck.

Locust patches the process that imports it, so a load runs in a separate one.

Parameters that all suites with loads have:

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
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.load import Failed
from benchmarks.load.plan import Plan

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDS = ROOT / "results" / "records"

#: Seconds between two looks at whether a load is to be stopped.
LOOK = 0.2
#: Seconds that a generator has to end after it was asked to.
GRACE = 15.0


def carry_out(plan: Plan, directory: Path, stop: threading.Event | None = None, longest: float = 0) -> Path:
    """Carry out a plan; its records are then in ``directory``, which is made.

    With worker processes, or with workers elsewhere, according to the environment: ``FASTIO_LOAD_PROCESSES`` and the
    other variables of ``python -m benchmarks.load run``.

    :param stop: ends it when it is set
    :param longest: seconds after which it is ended in any case; 0: never
    :raises Failed: if it could not be done, or was ended
    """
    with Generator(directory) as generator:
        return generator.carry_out(plan, stop, longest)


class Generator:
    """A load generator that gets ready, which takes a second or two, while others do; for one plan.

    :param directory: where the records will be
    :param environment: wins over this process's
    """

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None) -> None:
        # It has another current directory, from which it can be imported.
        self._directory = directory.absolute()
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load", "run", "-", "--output", str(self._directory), "--quiet"],
            cwd=ROOT, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(environment or {})},
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def carry_out(self, plan: Plan, stop: threading.Event | None = None, longest: float = 0) -> Path:
        """As the function :func:`carry_out`."""
        deadline = time.monotonic() + longest if longest else float("inf")
        given: str | None = json.dumps(plan.to_dict())
        while True:
            try:
                errors = self._process.communicate(given, timeout=LOOK)[1]
                break
            except subprocess.TimeoutExpired:
                # The rest of it goes on, and is not sent again.
                given = None
            if stop is not None and stop.is_set():
                raise Failed("the load was stopped")
            if time.monotonic() > deadline:
                raise Failed(f"the load generator did not end in {longest:g} s")
        if self._process.returncode:
            raise Failed(errors.strip() or f"exit status {self._process.returncode} of the load generator")
        return self._directory

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        """End it, and it its workers, if it has not been used or what it did was stopped."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.communicate(timeout=GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        # Workers that it could not end may hold the other ends for as long as they wait for a master.
        for stream in (self._process.stdin, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


class Load(Generator):
    """The load of a suite's run.

    :param records: the directory of its records, below those of the results, where they stay; empty: they are not kept
    """

    def __init__(self, records: str = "", environment: Mapping[str, str] | None = None) -> None:
        self._temporary, self._records = tempfile.TemporaryDirectory(prefix="load-"), records
        name = f"{datetime.datetime.now().strftime('%Y%m%d-%H%M%S.%f')}-{os.getpid()}"
        super().__init__(RECORDS / records / name if records else Path(self._temporary.name, "run"), environment)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._temporary.cleanup()

    def run(self, plan: Plan) -> Any:
        """Carry it out; returns the :class:`~benchmarks.load.analysis.Run`."""
        from benchmarks.load import analysis

        return analysis.read(self.carry_out(plan))

    def measured(
        self, plan: Plan, pids: Sequence[int], limits: Any = None, part: Callable[[Any], Any] | None = None
    ) -> dict[str, Any]:
        """Do it while servers and this machine are sampled; returns the figures of a suite's run.

        :param pids: the servers' processes here
        :param limits: :class:`~benchmarks.load.bottleneck.Limits`
        :param part: gives of the operations the part that counts; :func:`~benchmarks.load.analysis.window` by default
        """
        from benchmarks.load import agent, analysis, report, usage
        from benchmarks.load.bottleneck import Limits

        samples = Path(self._temporary.name, "samples")
        samples.mkdir()
        with agent.everywhere(samples, pids, (), {}):
            run = self.run(plan)
        counted, limits = (part or analysis.window)(run.operations), limits or Limits(users=plan.users)
        figures, details = report.measured(run, counted, usage.read(samples), limits)
        if not self._records:
            return {**figures, **details}
        for path in samples.iterdir():
            shutil.move(path, self._directory / path.name)
        return {**figures, "records": os.path.relpath(self._directory, ROOT), **details}


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
