"""Runs commands side by side: one more than there are processors, as tests often wait for something else.

    python -m benchmarks.tools.side_by_side COMMAND… [// COMMAND…]…

They begin in the order in which they are given, and their output comes in that order too: that of the first one as it
is written, and that of the others once those before them have ended. A command that is given twice is run once. The
exit status is 1 if one of them fails.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import BinaryIO

from fastio import terminal

#: What stands between two commands.
BETWEEN = "//"
#: Seconds between two looks at what is written.
INTERVAL = 0.1


def split(words: Sequence[str]) -> list[list[str]]:
    """The commands, each of them once."""
    commands: list[list[str]] = [[]]
    for word in words:
        if word == BETWEEN:
            commands.append([])
        else:
            commands[-1].append(word)
    return [list(command) for command in dict.fromkeys(map(tuple, commands)) if command]


def run(commands: Sequence[Sequence[str]], jobs: int, out: BinaryIO) -> list[int]:
    """Run them, so many at a time; their exit statuses. Those that still run end with this call."""
    begun: list[subprocess.Popen[bytes]] = []
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.NamedTemporaryFile("rb")) for _ in commands]
        stack.callback(_end, begun)
        for shown, (command, file) in enumerate(zip(commands, files, strict=True)):
            out.write(f"$ {shlex.join(command)}\n".encode())
            while True:
                if len(begun) < len(commands) and sum(each.poll() is None for each in begun) < jobs:
                    with open(files[len(begun)].name, "wb") as output:
                        begun.append(
                            subprocess.Popen(
                                commands[len(begun)], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
                            )
                        )
                # Looked at before the file is read: then what is read is all.
                ended = shown < len(begun) and begun[shown].poll() is not None
                data = file.read()
                out.write(data)
                out.flush()
                if ended:
                    break
                if not data:
                    time.sleep(INTERVAL)
        return [each.wait() for each in begun]


def _end(begun: Sequence[subprocess.Popen[bytes]]) -> None:
    for each in begun:
        each.terminate()
    for each in begun:
        each.wait()


@terminal.command
def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    # tox ends what it runs so.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    commands = split(sys.argv[1:] if arguments is None else arguments)
    statuses = run(commands, len(os.sched_getaffinity(0)) + 1, sys.stdout.buffer)
    for command, status in zip(commands, statuses, strict=True):
        if status:
            print(f"exit status {status} of {shlex.join(command)}")
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(main())
