"""A run under a sampling profiler, py-spy: ``python -m benchmarks.harness.profiled [--server] COMMAND …``.

The command is one of the engine's, and so is what is printed: the result of the run, with ``stacks`` beside its
figures, see :mod:`benchmarks.harness.stacks`. What is sampled is the command with its children or, with ``--server``,
the server that the run is of. Samples are of wall-clock time: a thread that waits counts as well, because what got
slower may wait.

A run that cannot be profiled fails, and the last line of its standard error says why.
"""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.backends.keeper import state_and_parent
from benchmarks.harness import stacks
from benchmarks.harness.worker import running

#: Samples of each thread in a second.
RATE = 100
#: Of py-spy. Line numbers would tell apart what the variants have in common.
_OPTIONS = ("--format", "speedscope", "--idle", "--subprocesses", "--nolineno", "--rate", str(RATE))
#: What py-spy prints as soon as it samples.
_READY = "Sampling process"
#: Seconds that py-spy may take to write what it has.
_WRITING = 60
_SERVER = "--server"
_OTHER_PYTHON = " (it knows only some versions of Python)"
#: What py-spy says, and what a reader has to know of it.
_MEANINGS = {
    "Permission Denied": " (the kernel does not let it look into that process: ptrace, kernel.yama.ptrace_scope)",
    "version": _OTHER_PYTHON,
    "No python processes found": _OTHER_PYTHON,
}


def command(server: bool) -> list[str]:
    """What a run's command is given to.

    :param server: whether the server is to be sampled, not the client
    """
    return [sys.executable, "-m", "benchmarks.harness.profiled", *([_SERVER] if server else [])]


def find() -> str | None:
    """The program, that of this environment first; None if it is not installed."""
    own = Path(sysconfig.get_path("scripts"), "py-spy")
    return str(own) if own.is_file() else shutil.which("py-spy")


def why_not() -> str:
    """Why nothing can be profiled here; empty if it can."""
    return "" if find() else "py-spy is not installed (pip install py-spy, or fastio's extra profile)"


class NotProfiled(Exception):
    """There is no profile of a run; the message says why."""


def main(arguments: Sequence[str]) -> None:
    program = find()
    if program is None:
        sys.exit(why_not())
    server = arguments[0] == _SERVER
    with tempfile.TemporaryDirectory(prefix="profile-") as directory:
        run = _with_server if server else _with_command
        try:
            result, found = run(program, arguments[server:], Path(directory))
        except NotProfiled as error:
            sys.exit(str(error))
    print(json.dumps({**result, "stacks": found}), flush=True)


def _with_command(program: str, own: Sequence[str], directory: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The result of the command, and where it and its children were."""
    file = directory / "profile.json"
    # As its child, which any user may look into, unlike other processes.
    whole = [program, "record", *_OPTIONS, "--output", str(file), "--", *own]
    done = subprocess.run(whole, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    sys.stderr.write(done.stderr)
    if done.returncode:
        raise NotProfiled(_reason(done.stderr))
    return _result(done.stdout), _read(file, done.stderr)


def _with_server(program: str, own: Sequence[str], directory: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The result of the command, and where the server that it uses was meanwhile."""
    pids = first(running(json.loads(own[-1]).get("server"))["pids"])
    files = [directory / f"{pid}.json" for pid in pids]
    with contextlib.ExitStack() as stack:
        for pid, file in zip(pids, files, strict=True):
            stack.enter_context(_sampled(program, pid, file))
        done = subprocess.run(own, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    sys.stderr.write(done.stderr)
    return _result(done.stdout), stacks.add(_read(file, "") for file in files)


@contextlib.contextmanager
def _sampled(program: str, pid: int, file: Path) -> Iterator[None]:
    """Sample a process and its children, from when the block begins."""
    whole = [program, "record", *_OPTIONS, "--output", str(file), "--pid", str(pid)]
    with subprocess.Popen(
        whole, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if _READY in line:
                break
        else:
            raise NotProfiled(_reason("".join(said)))
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=_WRITING)


def first(pids: Sequence[int]) -> list[int]:
    """Those processes that are no children of another one of them."""
    return [pid for pid in pids if state_and_parent(pid)[1] not in pids]


def _result(output: str) -> dict[str, Any]:
    """What the command has printed last; py-spy prints below it, and passes no exit status on.

    :raises NotProfiled: if there is no result
    """
    for line in reversed(output.splitlines()):
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                return found
    raise NotProfiled("the run that was profiled has no result: see above")


def _read(file: Path, said: str) -> dict[str, int]:
    try:
        return stacks.of_speedscope(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise NotProfiled(_reason(said)) from None


def _reason(said: str) -> str:
    """py-spy's own words, and what they mean."""
    errors = [line.strip() for line in said.splitlines() if line.startswith(("Error:", "Permission Denied"))]
    words = errors[0].removeprefix("Error: ") if errors else "it has written no profile"
    meant = next((meaning for part, meaning in _MEANINGS.items() if part in words), "")
    return f"py-spy: {words}{meant}"


if __name__ == "__main__":
    main(sys.argv[1:])
