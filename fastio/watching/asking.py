"""``fastio status --pid``: asks a process at its socket; see :mod:`fastio.watching.answers`."""

import json
import os
import socket
from collections.abc import Iterator
from typing import Any

from fastio.errors import FastioError
from fastio.watching.answers import CREDENTIALS, END, PREFIX
from fastio.watching.processes import start

#: Seconds that the process may take.
LIMIT = 10.0


class AskingError(FastioError):
    """The process cannot be asked, or does not answer. The message says why."""


def ask(pid: int, limit: float = LIMIT) -> dict[str, Any]:
    """What is in effect in the process (``report``), and what it counts (``metrics``).

    :param limit: seconds that it may take
    :raises AskingError: if it cannot be asked, is not there or does not answer
    """
    _user(pid)
    for path in _sockets(pid):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.settimeout(limit)
            try:
                asked.connect(path)
                if _is_its(asked, pid):
                    return _answer(asked, pid)
            except PermissionError:
                raise AskingError(f"only the user of process {pid}, and root, may ask it") from None
            except TimeoutError:
                raise AskingError(
                    f"process {pid} did not answer within {limit:g} s: it is busy or stopped, or has a hub of "
                    "eventlet and has not served anything yet"
                ) from None
            except OSError:
                # Left by a process that has ended.
                continue
    _user(pid)
    raise AskingError(
        f"process {pid} has no socket: start the service with the setting run_dir (FASTIO_RUN_DIR), or wait until it "
        "has served something"
    )


def _user(pid: int) -> int:
    try:
        if start(pid):
            return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        pass
    raise AskingError(f"there is no process {pid}")


def _sockets(pid: int) -> Iterator[str]:
    """The paths of all sockets of fastio's that the process can see, as seen from here; first those with its pid."""
    try:
        with open(f"/proc/{pid}/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            paths = [line.split(maxsplit=7)[-1].rstrip("\n") for line in file]
    except OSError:
        return
    # The name has the process's pid, as its own container numbers it. Outside containers this is the pid that is asked
    # for, so no other process is disturbed.
    for path in sorted(paths, key=lambda path: f"-{pid}-" not in os.path.basename(path)):
        directory, name = os.path.split(path)
        if directory.startswith("/") and name.startswith(PREFIX) and name.endswith(END):
            yield path if os.path.exists(path) else f"/proc/{pid}/root{path}"


def _is_its(asked: socket.socket, pid: int) -> bool:
    """Whether it was this process who made the socket; who made a file of that name is no matter."""
    credentials = asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    its, user, _ = CREDENTIALS.unpack(credentials)
    return bool(its == pid and user == _user(pid))


def _answer(asked: socket.socket, pid: int) -> dict[str, Any]:
    text = b"".join(iter(lambda: asked.recv(1 << 16), b""))
    if not text.endswith(b"\n"):
        raise AskingError(f"process {pid} did not answer: it refused, or has ended meanwhile")
    found: dict[str, Any] = json.loads(text)
    return found
