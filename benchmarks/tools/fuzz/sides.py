"""The sides of a comparison, and the processes that run programs for them."""

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
HUBS = ("epolls", "poll", "selects", "asyncio")

#: How a program comes by Popen: ``plain`` natively; under a hub through ``monkey_patch()``, as
#: ``eventlet.green.subprocess`` without it, or as the native class that was taken before it.
FLAVOURS = ("monkey", "explicit", "taken")

#: Seconds after which a program that tells nothing hangs, times ``scale``; one that runs is done within a second.
LIMIT = 3.0


@dataclass(frozen=True)
class Group:
    """Where programs run: natively or under one hub, with one flavour of Popen."""

    hub: str
    flavour: str

    def __str__(self) -> str:
        return self.hub if self.hub == "native" else f"{self.hub}/{self.flavour}"

    @property
    def kind(self) -> str:
        """What programs are made for it: ``native``, ``green`` or ``taken``."""
        return {"plain": "native", "taken": "taken"}.get(self.flavour, "green")


NATIVE = Group("native", "plain")
GROUPS = (NATIVE, *(Group(hub, flavour) for flavour in FLAVOURS for hub in HUBS))


@dataclass(frozen=True)
class Installation:
    """What the sides are run with."""

    python: str = sys.executable
    #: the checkout whose fastio is used; by default, that of this file
    fastio_path: str = str(ROOT)
    #: a file of Python that the patched sides run once they are patched, to break them on purpose
    plant: str = ""
    directory: str = "/tmp"


@dataclass(frozen=True)
class Side:
    """One side: which group, and patched how."""

    group: Group
    #: ``stock``, ``strict`` (patched without the ``fix_`` patches) or ``fixed`` (patched as by default)
    name: str


class Worker:
    """A process that runs programs for a side; it is started when there is one to run."""

    def __init__(self, side: Side, installation: Installation) -> None:
        self.side = side
        self._installation = installation
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._deadline = 0.0
        self._progress = -1
        #: the ``fix_`` patches that are applied, once it runs
        self.fixes: frozenset[str] = frozenset()

    def start(self) -> None:
        """Start the process, unless it runs."""
        if self._process is not None:
            return
        group, patched = self.side.group, self.side.name != "stock"
        config = {
            **asdict(self._installation), "hub": group.hub, "flavour": group.flavour, "patched": patched,
            "fixes": self.side.name == "fixed", "plant": self._installation.plant if patched else "",
            "child": str(HERE / "child.py"), "python": os.path.realpath(self._installation.python),
        }  # fmt: skip
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith(("FASTIO", "PYTHON", "EVENTLET"))
        }
        environ["PYTHONPATH"] = self._installation.fastio_path
        environ["PYTHONDONTWRITEBYTECODE"] = "1"
        self._progress = os.memfd_create("progress")
        config["progress"] = self._progress
        self._process = subprocess.Popen(
            [self._installation.python, str(HERE / "worker.py"), json.dumps(config)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, start_new_session=True,
            pass_fds=(self._progress,),
        )  # fmt: skip
        self._rest = b""
        self._deadline = time.monotonic() + 60
        ready = self.receive()
        if not ready.get("ready"):
            raise RuntimeError(f"the worker for {self.side.group} ({self.side.name}) does not start: {ready}")
        self.fixes = frozenset(ready["fixes"])

    def send(self, program: dict[str, Any], scale: int) -> None:
        """Have a program run; :meth:`receive` returns its outcome."""
        self.start()
        assert self._process is not None and self._process.stdin is not None
        self._deadline = time.monotonic() + LIMIT * scale
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"program": program, "scale": scale}).encode() + b"\n")
            self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """What the process tells next; ``{"hang": …}`` or ``{"died": …}`` if it tells nothing more."""
        assert self._process is not None and self._process.stdout is not None
        fd = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            if not select.select([fd], [], [], max(0.0, self._deadline - time.monotonic()))[0]:
                index = int(os.pread(self._progress, 6, 0) or -1)
                self.stop()
                return {"hang": index}
            data = os.read(fd, 1 << 20)
            if not data:
                process = self._process
                self.stop()
                return {"died": process.returncode}
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        if "hang" in told:
            self.stop()
        return told

    def stop(self) -> None:
        """End the process and what it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(self._progress)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


class Team:
    """The workers of one group, which run the same program at the same time."""

    def __init__(self, group: Group, installation: Installation) -> None:
        self.group = group
        self._installation = installation
        self._workers: dict[Side, Worker] = {}

    def run(self, program: dict[str, Any], names: tuple[str, ...], scale: int = 1) -> dict[str, dict[str, Any]]:
        """Run a program on some sides; ``native`` is stock on native threads."""
        sides = {name: Side(NATIVE, "stock") if name == "native" else Side(self.group, name) for name in names}
        workers = {}
        for name, side in sides.items():
            workers[name] = self._workers.setdefault(side, Worker(side, self._installation))
        for worker in workers.values():
            worker.start()
        for worker in workers.values():
            worker.send(program, scale)
        return {name: worker.receive() for name, worker in workers.items()}

    def fixes(self, name: str) -> frozenset[str]:
        """The ``fix_`` patches that are applied on a side, once it has run something."""
        return self._workers[Side(self.group, name)].fixes

    def stop(self) -> None:
        """End the workers."""
        for worker in self._workers.values():
            worker.stop()
        self._workers.clear()
