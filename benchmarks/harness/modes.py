"""Shared by the workloads: the modes, the children, and the check that fastio was at work."""

from __future__ import annotations

import functools
import importlib
import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import subprocess

    from benchmarks.harness.worker import Payload

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

#: Capacity of the pipe of the reference rows: Linux's limit for any user (``/proc/sys/fs/pipe-max-size``).
REFERENCE_PIPE = MIB


class Mode(NamedTuple):
    """How Python runs commands in a process: native or green, stock or with fastio."""

    green: bool
    fast: bool


#: The four that every suite compares.
MODES = {
    "native-stock": Mode(green=False, fast=False),
    "native-fastio": Mode(green=False, fast=True),
    "eventlet-stock": Mode(green=True, fast=False),
    "eventlet-fastio": Mode(green=True, fast=True),
}


#: Names of those under eventlet.
GREEN = tuple(name for name, mode in MODES.items() if mode.green)

#: A variant: it is given the parameters, and returns a result.
Run: TypeAlias = "Callable[[Mapping[str, Any]], dict[str, Any]]"


def variants(
    run: Callable[[Mode, Mapping[str, Any]], dict[str, Any]], more: Mapping[str, Run] | None = None
) -> dict[str, Run]:
    """``run`` in each of the modes, and more variants."""
    return {**{name: functools.partial(run, mode) for name, mode in MODES.items()}, **(more or {})}


def choice(parameters: Mapping[str, Any], name: str, *allowed: str) -> str:
    """The parameter of that name; the first of the allowed values if it is not given.

    :raises ValueError: if it is none of them
    """
    value = parameters.get(name, allowed[0])
    if value not in allowed:
        raise ValueError(f"parameter {name} {value!r}: allowed are {', '.join(allowed)}")
    return value


def enter(
    mode: Mode, parameters: Mapping[str, Any],
    imported: Sequence[str] = ("oslo_concurrency.processutils",), patches: Sequence[str] | None = None,
) -> None:  # fmt: skip
    """Make this process a service in this mode, with the fastio settings among the parameters (``settings``).

    :param imported: its modules, which come before the patches: what they cost is not what is measured
    :param patches: those that have to be in effect; by default those of commands
    :raises RuntimeError: if one is not
    """
    if mode.green:
        import eventlet

        eventlet.monkey_patch()
    for name in imported:
        importlib.import_module(name)
    if not mode.fast:
        return
    import fastio

    fastio.patch(**parameters.get("settings", {}))
    if patches is None:
        patches = ("green_communicate", "green_wait", "green_pipe") if mode.green else ("communicate", "wait")
        patches = (*patches, "oslo_spawn")
    require(*patches)


def require(*names: str) -> None:
    """Check that these patches of fastio's are in effect.

    :raises RuntimeError: if one is not: stock under the name of fastio would be a wrong result
    """
    import fastio
    from fastio.patching.state import STATE
    from fastio.report import Outcome

    report = fastio.status()
    for name in names:
        # A patch may also be for what this process does not have: a native Popen, or eventlet.
        outcomes = {entry.outcome for entry in report.entries if entry.name == name}
        # Of a patch that was asked for, a target is off only where it is not needed.
        fine = {Outcome.APPLIED, *([Outcome.OFF] if name in STATE.wanted else [])}
        if not outcomes & fine or outcomes - {*fine, Outcome.ABSENT, Outcome.WAITING}:
            raise RuntimeError(f"fastio's {name} is not applied here:\n{report}")


def check_fast(mode: Mode, size: int) -> None:
    """Check that fastio has moved at least ``size`` bytes by its own code.

    :raises RuntimeError: if it has not
    """
    if not mode.fast:
        return
    from fastio import counters

    if counters.bytes_in + counters.bytes_out < size:
        raise RuntimeError(f"fastio's own code moved {counters.bytes_in + counters.bytes_out} of {size} bytes")


def warmed(payload: Payload) -> Payload:
    """``payload``, once all of its file is in the page cache: a disk is not what is measured."""
    buffer = bytearray(256 * KIB)
    with open(payload.path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return payload


def discard_command() -> list[str]:
    """A reader at the speed of C that throws away what it reads, and says at its end how many bytes it was."""
    return ["dd", "of=/dev/null", "bs=1M"]


def discarded(said: bytes | str) -> int:
    """How many bytes :func:`discard_command` says that it has read."""
    text = said.decode() if isinstance(said, bytes) else said
    return next(int(line.split()[0]) for line in text.splitlines() if " bytes " in line)


def read_all(command: list[str], pipe_size: int) -> bytes:
    """The reference for one bytes object: the standard library's C loop on a pipe of ``pipe_size``.

    :raises subprocess.CalledProcessError: if the command fails: what it has said then is not all
    """
    import subprocess

    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0, pipesize=pipe_size) as child:
        assert isinstance(child.stdout, io.FileIO)
        output = child.stdout.readall()
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return output


def write_all(child: subprocess.Popen[bytes], payload: bytes, chunk_size: int) -> None:
    """The reference for input: a plain loop of blocking writes, then the end of file."""
    import os

    assert child.stdin is not None
    fd, view = child.stdin.fileno(), memoryview(payload)
    while view:
        view = view[os.write(fd, view[:chunk_size]) :]
    child.stdin.close()
