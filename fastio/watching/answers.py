"""The socket at which a process tells ``fastio status --pid`` what is in effect in it, and what it counts.

Whoever connects gets the whole answer, and sends nothing. The socket never blocks: of an answer that does not fit at
once, the rest is not sent.
"""

from __future__ import annotations

import _socket  # C, and native also where eventlet has replaced socket's
import contextlib
import json
import os
import posix
import struct

from fastio.patching import patcher
from fastio.watching import metrics
from fastio.watching.processes import identity, is_gone

PREFIX, END = "fastio-", ".sock"
#: Bytes of an answer that the kernel takes at once, if it lets us choose: many times what one has.
_ROOM = 1 << 20
#: of the kernel's ``struct ucred``: pid, uid, gid
CREDENTIALS = struct.Struct("iII")


class Answers:
    """The socket of this process in ``directory``, which only its owner can enter."""

    def __init__(self, directory: str) -> None:
        for name in posix.listdir(directory):
            if name.startswith(PREFIX) and name.endswith(END) and is_gone(name[len(PREFIX) : -len(END)]):
                with contextlib.suppress(OSError):
                    posix.unlink(os.path.join(directory, name))
        self._path = os.path.join(directory, f"{PREFIX}{identity()}{END}")
        self._pid = os.getpid()
        kind = _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC
        self._socket = _socket.socket(_socket.AF_UNIX, kind)
        try:
            with contextlib.suppress(FileNotFoundError):
                posix.unlink(self._path)
            self._socket.bind(self._path)
            posix.chmod(self._path, 0o600)
            self._socket.listen(16)
        except BaseException:
            self._socket.close()
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    def answer(self) -> None:
        """Answer whoever has connected, if it is the process's own user or root."""
        try:
            fd, _ = self._socket._accept()  # type: ignore[attr-defined]
        except OSError:
            return
        asking = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)
        try:
            with contextlib.suppress(OSError):
                asking.setblocking(False)
                _, user, _ = CREDENTIALS.unpack(
                    asking.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, CREDENTIALS.size)
                )
                if user in (0, os.geteuid()):
                    asking.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, _ROOM)
                    found = {"report": patcher.status().to_dict(), "metrics": metrics.read().to_dict()}
                    asking.send(json.dumps(found).encode() + b"\n")
        finally:
            asking.close()

    def close(self) -> None:
        self._socket.close()
        if os.getpid() == self._pid:
            with contextlib.suppress(OSError):
                posix.unlink(self._path)
