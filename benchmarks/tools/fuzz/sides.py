"""The sides of a comparison, and the processes that run programs for them."""

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

from benchmarks.tools.fuzz.compare import LATER

HERE = pathlib.Path(__file__).parent
HUBS = ("epolls", "poll", "selects", "asyncio")
#: Seconds after which a silent program hangs, times ``scale``; one that runs is done within a second.
LIMIT = 3.0


@dataclass(frozen=True)
class Group:
    """Where programs run: natively or under one hub.

    ``flavour`` is how a program comes by Popen: ``plain`` natively; under a hub ``monkey`` through ``monkey_patch()``,
    ``explicit`` as ``eventlet.green.subprocess`` without it, or ``taken``, the native class from before it.
    """

    hub: str
    flavour: str

    def __str__(self) -> str:
        return f"{self.hub}/{self.flavour}"

    @property
    def kind(self) -> str:
        """The kind of its programs: ``native``, ``green`` or ``taken``."""
        return {"plain": "native", "taken": "taken"}.get(self.flavour, "green")


NATIVE = Group("native", "plain")
GROUPS = (NATIVE, *(Group(hub, flavour) for flavour in ("monkey", "explicit", "taken") for hub in HUBS))


class Worker:
    """A process that runs programs for one side."""

    def __init__(self, **config: Any) -> None:
        removed = ("FASTIO", "PYTHON", "EVENTLET")
        environ = {name: value for name, value in os.environ.items() if not name.startswith(removed)}
        environ |= {"PYTHONPATH": str(HERE.parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), json.dumps(config)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, start_new_session=True,
        )  # fmt: skip
        ready = self._receive(60)
        if not ready.get("ready"):
            raise RuntimeError(f"the worker for {config} does not start: {ready}")
        #: the ``fix_`` patches that are applied
        self.fixes = frozenset(ready["fixes"])

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    def send(self, program: dict[str, Any], scale: int) -> None:
        """Have a program run; :meth:`receive` returns its outcome."""
        assert self._process.stdin is not None
        self._deadline = time.monotonic() + LIMIT * scale
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"program": program, "scale": scale}).encode() + b"\n")
            self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The outcome of the program; ``{"hang": …}`` or ``{"died": …}`` if there is none."""
        return self._receive(self._deadline - time.monotonic())

    def _receive(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], max(0.0, seconds))[0]:
            self.stop()
            return {"hang": -1}
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            return {"died": self.stop()}
        answer: dict[str, Any] = json.loads(line)
        if "hang" in answer:
            self.stop()
        return answer

    def stop(self) -> int:
        """End the process and what it has started; returns its exit status, -9 if it did not end by itself."""
        if not self.ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(BrokenPipeError):
                self._process.communicate()
        return self._process.wait()


class Team:
    """The workers of one group, which run the same program simultaneously.

    :param plant: a file of Python that the patched sides run once they are patched, to break them on purpose
    """

    def __init__(self, group: Group, plant: str = "") -> None:
        self.group = group
        self._plant = plant
        self._directory = tempfile.TemporaryDirectory(prefix="fastio-fuzz-")
        self._workers: dict[str, Worker] = {}

    def run(self, program: dict[str, Any], names: tuple[str, ...], scale: int = 1) -> dict[str, dict[str, Any]]:
        """Run a program on sides: ``stock``, ``strict`` (patched without the ``fix_`` patches), ``fixed`` (patched as
        by default), ``native`` (stock on native threads)."""
        for name in names:
            if name not in self._workers or self._workers[name].ended:
                group, patched = NATIVE if name == "native" else self.group, name in ("strict", "fixed")
                self._workers[name] = Worker(
                    hub=group.hub, flavour=group.flavour, patched=patched, fixes=name == "fixed",
                    plant=self._plant if patched else "", directory=self._directory.name,
                )  # fmt: skip
        for name in names:
            self._workers[name].send(program, scale)
        seen = {name: self._workers[name].receive() for name in names}
        for name in names:
            # Its hub has listeners of this program or an earlier one left, which decide what comes of the next.
            if LATER in json.dumps(seen[name]):
                self._workers[name].stop()
        return seen

    @property
    def fixes(self) -> frozenset[str]:
        """The ``fix_`` patches that are applied on the side ``fixed``, once it has run something."""
        return self._workers["fixed"].fixes

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers.values():
            worker.stop()
        self._directory.cleanup()
