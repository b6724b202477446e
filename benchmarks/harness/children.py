"""Other Python processes of a run, which answer lines with lines, and end when their standard input does.

The imports of a measured process are part of the measurement, so this imports next to nothing.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def end_of_input(then: Callable[[], object]) -> None:
    """Call it once the standard input of this process has ended. Nothing more may be read from there."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        then()

    threading.Thread(target=wait, daemon=True).start()


class Child:
    """``python -m MODULE ARGUMENT…``, as a context manager. If its parent is killed, its input ends as well.

    :param name: of it, in errors
    :param prefix: runs the command
    """

    def __init__(
        self, module: str, *arguments: str, name: str = "", prefix: Callable[[list[str]], list[str]] = list
    ) -> None:
        import subprocess

        self._name = name or module
        self._ended = False
        self.process = subprocess.Popen(
            prefix([sys.executable, "-m", module, *arguments]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=ROOT,
        )  # fmt: skip

    def __enter__(self) -> Any:
        return self

    def read(self) -> str:
        """Its next line; raises RuntimeError if it ends without one."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name}: it ended without an answer; its errors are above")
        return line.strip()

    def started(self) -> str:
        """Its first line; if it ends without one, nothing of it is left."""
        try:
            return self.read()
        except RuntimeError:
            self.__exit__(RuntimeError)
            raise

    def ask(self, line: str = "") -> str:
        self.write(line)
        return self.read()

    def write(self, line: str = "") -> None:
        """Tell it a line. If it has ended, :meth:`read` raises."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def end(self) -> str:
        """End its input, and wait for it; returns the rest of its output. Raises RuntimeError if it has failed."""
        self._ended = True
        output, _ = self.process.communicate()
        if self.process.returncode:
            raise RuntimeError(f"{self._name}: exit status {self.process.returncode}; its errors are above")
        return str(output)

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        if kind is None and not self._ended:
            self.end()
        self.process.kill()
        self.process.communicate()
