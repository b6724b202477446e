"""Start a backend by hand, or see which there are::

    python -m benchmarks.backends list
    python -m benchmarks.backends up swift
    python -m benchmarks.backends up swift --directory /dev/shm -p workers=2 -p disk_chunk_size=1MiB

``up`` prints how to reach it and runs until Ctrl-C or SIGTERM; then nothing of it is left.
"""

import argparse
import json
import signal
import sys
import threading
from collections.abc import Sequence

from benchmarks.backends import BACKENDS, SERVICES, backend
from benchmarks.backends.base import Backend, BackendError
from benchmarks.backends.stores import snippet
from fastio import terminal
from fastio.arguments import Parser
from fastio.config import parse_size


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.command == "list":
        return _list()
    kind = backend(options.backend)
    try:
        parameters = dict(_parameter(kind, text) for text in options.parameter)
        return _up(kind(options.directory, **parameters))
    except BackendError as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m benchmarks.backends", description="Real backends of glance_store, and glance, on loopback."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="which there are, what is missing here and how to install it")
    up = commands.add_parser("up", help="start one, and stop it at Ctrl-C or SIGTERM")
    up.add_argument("backend", choices=[*BACKENDS, *SERVICES])
    up.add_argument(
        "--directory", metavar="DIR",
        help="parent of the backend's directory, which is removed at the end; default: that of temporary files",
    )  # fmt: skip
    up.add_argument(
        "-p", "--parameter", metavar="NAME=VALUE", action="append", default=[],
        help="one of those that `list` shows; sizes may be written 64KiB or 1MiB; may be given several times",
    )  # fmt: skip
    return parser


def _list() -> int:
    for name in (*BACKENDS, *SERVICES):
        kind = backend(name)
        print(f"{name:11}{kind().why_not() or 'ready'}")
        if kind.parameters:
            shown = ", ".join(f"{parameter}={default}" for parameter, default in kind.parameters.items())
            print(f"{'':11}parameters: {shown}")
    return 0


def _parameter(kind: type[Backend], text: str) -> tuple[str, int | str]:
    """The name and the value of ``NAME=VALUE``. Raises :class:`BackendError` that says what is wrong."""
    name, equals, value = text.partition("=")
    if not equals:
        raise BackendError(f"-p {text}: not NAME=VALUE")
    try:
        return name, parse_size(value) if isinstance(kind.parameters.get(name), int) else value
    except ValueError:
        raise BackendError(f"-p {text}: {value!r} is neither a number nor a size such as 64KiB") from None


def _up(chosen: Backend) -> int:
    """Start it, say how to reach it, wait for a signal, stop it."""
    stop = threading.Event()
    with chosen:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        _print_access(chosen)
        # A server that dies is noticed within a second.
        while not stop.wait(1):
            chosen.check()
    return 0


def _print_access(chosen: Backend) -> None:
    for name, value in chosen.details().items():
        print(f"{name}: {value if isinstance(value, str) else json.dumps(value)}")
    if chosen.driver:
        print(f"\nglance-api.conf:\n\n{snippet(chosen.access())}")
    print(f"\nLogs are in {chosen.logs}, processes {' '.join(map(str, chosen.pids())) or 'none'}.")
    print("It runs until Ctrl-C or SIGTERM.", flush=True)


if __name__ == "__main__":
    sys.exit(main())
