"""How others read and write a child's pipes, beside stock and fastio.

Every peer is used as its documentation shows it, with the same child and, where it has them, three pipes.

Parameters:

``size``
    bytes
``direction``
    ``"output"``: the child writes them; ``"input"``: it reads them
``stock_green_size``
    of ``input``, see :mod:`benchmarks.suites.input.workload`
``settings``
    of fastio
"""

import functools
from collections.abc import Awaitable, Callable, Mapping
from importlib.util import find_spec
from typing import Any

from benchmarks.harness.modes import Mode, choice, discard_command, discarded, variants
from benchmarks.harness.worker import Measured, measure
from benchmarks.suites.communicate import workload as communicate
from benchmarks.suites.input import writing

#: Runs a command with that input (None: no input) and returns its two outputs.
Run = Callable[[list[str], bytes | None], tuple[bytes, bytes]]
AsyncRun = Callable[[list[str], bytes | None], Awaitable[tuple[bytes, bytes]]]

#: What a peer needs beside the standard library.
NEEDS = {
    "gevent": ("gevent",),
    "uvloop": ("uvloop",),
    "trio": ("trio",),
    "anyio-asyncio": ("anyio",),
    "anyio-trio": ("anyio", "trio"),
    "eventlet-tpool": ("eventlet",),
}


def missing(variant: str) -> list[str]:
    """The packages that a variant needs and this Python does not have."""
    return [name for name in NEEDS.get(variant, ()) if find_spec(name) is None]


def why_not(variant: str) -> str:
    """Why a variant cannot run here, and what to do; empty if it can."""
    names = missing(variant)
    return f"not installed: {', '.join(names)} (the extra 'peers' has them)" if names else ""


def direction(parameters: Mapping[str, Any]) -> str:
    return choice(parameters, "direction", "output", "input")


class _Task:
    """The exchange of one direction: what to run, and how to tell that it was right."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.data: bytes | None = None
        #: a second exchange, not measured, for the hash of what cannot be hashed here
        self.check: list[str] | None = None
        if direction(parameters) == "output":
            self.payload = communicate.source(parameters)
            self.command = communicate.command(parameters, str(self.payload.path))
        else:
            self.payload, self.data = writing.source(parameters)
            self.command = discard_command()
            self.check = ["sha256sum"]

    def result(self, measured: Measured, out: bytes, err: bytes, hashed: bytes) -> dict[str, Any]:
        """The result of the measured exchange (``out`` and ``err``), and of the second one (``hashed``)."""
        if self.check is None:
            verified = communicate.sha256(out) == self.payload.sha256
        else:
            right_size = discarded(err or out) == self.payload.size
            verified = right_size and writing.right_hash(hashed, self.payload)
        return measured.result(bytes=self.payload.size, verified=verified)


def _measure(run: Run, parameters: Mapping[str, Any]) -> dict[str, Any]:
    task = _Task(parameters)
    with measure() as measured:
        out, err = run(task.command, task.data)
    hashed = run(task.check, task.data)[0] if task.check else b""
    return task.result(measured, out, err, hashed)


async def _measure_async(run: AsyncRun, parameters: Mapping[str, Any]) -> dict[str, Any]:
    # Inside the loop: what the loop's start and end cost is a service's once.
    task = _Task(parameters)
    with measure() as measured:
        out, err = await run(task.command, task.data)
    hashed = (await run(task.check, task.data))[0] if task.check else b""
    return task.result(measured, out, err, hashed)


def _mode(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    workload = {"output": communicate, "input": writing}[direction(parameters)]
    return workload.run(mode, {**parameters, "through": "oslo"})


def _reference(parameters: Mapping[str, Any]) -> dict[str, Any]:
    row = {"output": communicate.reference_one_object, "input": writing.reference}[direction(parameters)]
    return row(parameters)


def _one_pipe(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``subprocess.run`` with one pipe, which the standard library reads or writes without a selector."""
    import subprocess
    import tempfile

    def run(command: list[str], data: bytes | None) -> tuple[bytes, bytes]:
        if data is None:
            return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout, b""
        with tempfile.TemporaryFile() as said:
            subprocess.run(command, input=data, stdout=said, stderr=subprocess.STDOUT, check=True)
            said.seek(0)
            return said.read(), b""

    return _measure(run, parameters)


def _gevent(parameters: Mapping[str, Any]) -> dict[str, Any]:
    from gevent import subprocess

    def run(command: list[str], data: bytes | None) -> tuple[bytes, bytes]:
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as child:
            return child.communicate(data)

    return _measure(run, parameters)


def _tpool(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A native thread of eventlet's pool that runs the standard library's code."""
    import subprocess

    from eventlet import tpool

    def run(command: list[str], data: bytes | None) -> tuple[bytes, bytes]:
        source = {"stdin": subprocess.PIPE} if data is None else {"input": data}
        done = tpool.execute(
            subprocess.run, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, **source
        )
        return done.stdout, done.stderr

    # The pool's threads start with its first use.
    tpool.execute(len, b"")
    return _measure(run, parameters)


async def _asyncio_run(command: list[str], data: bytes | None) -> tuple[bytes, bytes]:
    import asyncio

    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    return await child.communicate(data)


def _asyncio(parameters: Mapping[str, Any]) -> dict[str, Any]:
    import asyncio

    return asyncio.run(_measure_async(_asyncio_run, parameters))


def _uvloop(parameters: Mapping[str, Any]) -> dict[str, Any]:
    import uvloop

    return uvloop.run(_measure_async(_asyncio_run, parameters))


def _trio(parameters: Mapping[str, Any]) -> dict[str, Any]:
    import trio

    async def run(command: list[str], data: bytes | None) -> tuple[bytes, bytes]:
        done = await trio.run_process(command, stdin=data or b"", capture_stdout=True, capture_stderr=True)
        return done.stdout, done.stderr

    return trio.run(_measure_async, run, parameters)


def _anyio(backend: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    import anyio

    async def run(command: list[str], data: bytes | None) -> tuple[bytes, bytes]:
        done = await anyio.run_process(command, input=data)
        return done.stdout, done.stderr

    return anyio.run(_measure_async, run, parameters, backend=backend)


VARIANTS = variants(
    _mode,
    {
        "subprocess-run": _one_pipe,
        "gevent": _gevent,
        "asyncio": _asyncio,
        "uvloop": _uvloop,
        "trio": _trio,
        "anyio-asyncio": functools.partial(_anyio, "asyncio"),
        "anyio-trio": functools.partial(_anyio, "trio"),
        "eventlet-tpool": _tpool,
        "reference": _reference,
    },
)
