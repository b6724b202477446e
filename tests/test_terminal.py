"""The output of commands: at each width, into a pipe without readers, and with suggestions."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import fastio
from fastio import terminal

ROOT = Path(fastio.__file__).parent.parent


SHOW = """
from fastio import terminal
from fastio.tables import Table
terminal.show([Table("T", ["", "what"], [["a", "word " * 20]])], ["below " * 20])
"""


def on_a_terminal(columns: int, *command: str, **env: str) -> str:
    """Return the output of the command on a terminal of so many columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environ = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "TERM")}
    with subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, cwd=ROOT, env={**environ, "TERM": "xterm", **env}
    ) as process:
        os.close(follower)
        parts = []
        # A terminal whose last writer has gone is an error on Linux, not an end.
        while part := _read(leader):
            parts.append(part)
        assert process.wait(60) == 0, b"".join(parts)
    os.close(leader)
    return b"".join(parts).decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""


def test_a_table_is_as_wide_as_the_terminal() -> None:
    lines = on_a_terminal(70, sys.executable, "-c", SHOW).split("\n")
    assert max(map(len, lines)) <= 70
    assert [len([line for line in lines if word in line]) for word in ("word", "below")] == [2, 2]
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-c", SHOW]
    piped = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=100).stdout
    assert (
        piped == "\nT\n\n   what\n-  " + "-" * 100 + "\na  " + ("word " * 20).rstrip() + "\n\n" + "below " * 20 + "\n"
    )


@pytest.mark.parametrize("columns", [80, 100])
def test_the_status_on_a_terminal(columns: int) -> None:
    lines = on_a_terminal(columns, sys.executable, "-S", "-m", "fastio", "status").split("\n")
    assert lines[0].startswith(f"fastio {fastio.__version__}, ")
    assert max(map(len, lines)) <= columns
    for name in ("communicate", "wait"):
        assert [line for line in lines if re.fullmatch(f"{name} +in effect +applied", line)]


COMMANDS = [
    ["fastio", "--help"],
    ["fastio", "status"],
    ["fastio", "status", "--all"],
    ["fastio", "status", "--json"],
    ["fastio", "trace", "--help"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_closed_pipe_is_no_error(arguments: list[str]) -> None:
    """The output goes to a pipe without readers, from its first line on."""
    reader, writer = os.pipe()
    os.close(reader)
    # Without the libraries, as it takes seconds to import them.
    command = [sys.executable, "-S", "-m", *arguments]
    # argparse does not mind whether its help can be written at once.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env, timeout=100)
    os.close(writer)
    assert (done.returncode, done.stderr) == (terminal.CLOSED, "")


def test_a_pipe_of_ours_that_breaks_is_one() -> None:
    @terminal.command
    def main() -> int:
        raise BrokenPipeError("of a child process")

    with pytest.raises(BrokenPipeError):
        main()


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        (["statsu"], {}, "did you mean 'status'?"),
        (["status", "--jsno"], {}, "did you mean '--json'?"),
        (["status", "--patch", "wiat"], {}, "there is no patch named 'wiat'; did you mean 'wait'? known: "),
        (["run", "--chunksize", "1M", "--", "x"], {}, "did you mean '--chunk-size'?"),
        (["status"], {"FASTIO_DISABLED": "wiat"}, "is not allowed; did you mean 'wait'? allowed: "),
        (["status"], {"FASTIO_ALSO": "green_pip"}, "is not allowed; did you mean 'green_pipe'? allowed: "),
        (["status"], {"FASTIO_DISABLED": "zzz"}, "is not allowed; allowed: "),
        (["check", "--config-fiel", "x"], {}, "did you mean '--config-file'?"),
        (["trace", "report", "--jsno", "x"], {}, "did you mean '--json'?"),
    ],
)
def test_suggestions(arguments: list[str], env: dict[str, str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fastio", *arguments], capture_output=True, text=True, timeout=100, cwd=ROOT,
        env={**os.environ, **env},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_suggestions_for_a_program() -> None:
    with pytest.raises(fastio.errors.UnknownPatchError, match="did you mean 'green_wait'?"):
        fastio.patch("gren_wait")
    with pytest.raises(fastio.errors.SettingError, match="did you mean 'chunk_size'?"):
        fastio.patch(chunksize=1)  # type: ignore[call-arg]


def test_the_version() -> None:
    done = subprocess.run([sys.executable, "-m", "fastio", "--version"], capture_output=True, text=True, timeout=100)
    assert done.stdout == f"fastio {fastio.__version__}\n"
