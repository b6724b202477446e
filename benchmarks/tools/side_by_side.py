"""Runs commands side by side: two more than there are processors, as tests often wait for something else.

    python -m benchmarks.tools.side_by_side COMMAND… [// COMMAND…]…

They begin in the order in which they are given, and a command that is given twice is run once. The output of each is
printed when it has ended. The exit status is 1 if one of them fails.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from fastio import terminal

#: The separator of two commands.
BETWEEN = "//"


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    commands = dict.fromkeys(tuple(group) for between, group in groupby(words, BETWEEN.__eq__) if not between)
    running: list[subprocess.Popen[bytes]] = []

    def run(command: Sequence[str]) -> tuple[int, bytes]:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        running.append(process)
        output, _ = process.communicate()
        return process.returncode, output

    def end(*_: object) -> None:
        # tox ends what it runs so.
        for process in running:
            process.terminate()
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    failed = []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 2) as pool:
        for command, (status, output) in zip(commands, pool.map(run, commands), strict=True):
            sys.stdout.buffer.write(f"$ {shlex.join(command)}\n".encode() + output)
            sys.stdout.buffer.flush()
            failed += [f"exit status {status} of {shlex.join(command)}"] if status else []
    print("\n".join(failed))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
