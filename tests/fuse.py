"""A file system whose files are in a process's memory, and that hangs, is slow or fails when it is asked to.

``python -m tests.fuse DIRECTORY`` mounts and serves it, and takes what to do from its standard input. It speaks the
kernel's protocol (``linux/fuse.h``) by itself. :func:`mounted` starts it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import queue
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

DEVICE = "/dev/fuse"
ROOT = 1
#: Bytes that the kernel asks for in one read, at most.
MOST = 64 << 10
#: Operations by their numbers, as far as something is done with them. The others are unknown to the file system.
OPERATIONS = {
    1: "lookup", 3: "getattr", 4: "setattr", 10: "unlink", 12: "rename", 14: "open", 15: "read", 16: "write",
    17: "statfs", 18: "release", 20: "fsync", 25: "flush", 26: "init", 27: "opendir", 28: "readdir", 29: "releasedir",
    34: "access", 35: "create", 45: "rename2",
}  # fmt: skip
#: Requests without an answer: forget, interrupt, batch_forget.
UNANSWERED = {2, 36, 42}

_IN = struct.Struct("=IIQQIIII")
_OUT = struct.Struct("=IiQ")
_LIBC = ctypes.CDLL(None, use_errno=True)


class Failed(OSError):
    """The error of an operation."""


class Server:
    """The file system: one directory of files."""

    def __init__(self, device: int) -> None:
        self._device = device
        self._names: dict[str, int] = {}
        self._files: dict[int, bytearray] = {}
        #: operation, or ``*`` for all -> what is wrong with it
        self.faults: dict[str, dict[str, Any]] = {}
        self._slow: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._hung: list[Callable[[], None]] = []

    def run(self) -> None:
        threading.Thread(target=self._take_faults, daemon=True).start()
        threading.Thread(target=self._be_slow, daemon=True).start()
        while True:
            try:
                request = os.read(self._device, MOST + (1 << 16))
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                continue
            self._serve(request)

    def _take_faults(self) -> None:
        for line in sys.stdin:
            self.faults = json.loads(line)
            hung, self._hung = self._hung, []
            for go_on in hung:
                go_on()
            print("done", flush=True)
        os._exit(0)

    def _be_slow(self) -> None:
        while True:
            self._slow.get()()

    def _serve(self, request: bytes) -> None:
        _, number, unique, node, *_ = _IN.unpack_from(request)
        if number in UNANSWERED:
            return
        name = OPERATIONS.get(number, "")
        body = request[_IN.size :]
        fault = self.faults.get(name) or (self.faults.get("*") if name != "init" else None) or {}

        def answer() -> None:
            self._answer(unique, name, node, body)

        if fault.get("hang"):
            self._hung.append(answer)
        elif "errno" in fault:
            self._reply(unique, fault["errno"])
        elif "seconds" in fault:

            def later() -> None:
                time.sleep(fault["seconds"])
                answer()

            self._slow.put(later)
        else:
            answer()

    def _answer(self, unique: int, name: str, node: int, body: bytes) -> None:
        try:
            operation = getattr(self, f"_{name}", None)
            if not name or operation is None:
                raise Failed(errno.ENOSYS, name)
            self._reply(unique, 0, operation(node, body) or b"")
        except Failed as error:
            self._reply(unique, error.errno or errno.EIO)

    def _reply(self, unique: int, error: int, data: bytes = b"") -> None:
        with contextlib.suppress(OSError):
            # The caller may have been interrupted.
            os.write(self._device, _OUT.pack(_OUT.size + len(data), -error, unique) + data)

    def _init(self, node: int, body: bytes) -> bytes:
        major, minor, ahead, _ = struct.unpack_from("=IIII", body)
        # FUSE_ASYNC_READ: otherwise a process that waits for a read cannot be killed.
        return struct.pack("=IIIIHHIIHHI28x", major, min(minor, 31), ahead, 1, 12, 10, MOST, 1, 0, 0, 0)

    def _attributes(self, node: int) -> bytes:
        if node != ROOT and node not in self._files:
            raise Failed(errno.ENOENT, "")
        mode = stat.S_IFDIR | 0o777 if node == ROOT else stat.S_IFREG | 0o666
        size = 0 if node == ROOT else len(self._files[node])
        return struct.pack(
            "=QQQQQQIIIIIIIIII", node, size, -(-size // 512), 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0
        )

    def _entry(self, node: int) -> bytes:
        return struct.pack("=QQQQII", node, 0, 0, 0, 0, 0) + self._attributes(node)

    def _lookup(self, node: int, body: bytes) -> bytes:
        return self._entry(self._node(body))

    def _node(self, name: bytes) -> int:
        found = self._names.get(name.rstrip(b"\0").decode())
        if found is None:
            raise Failed(errno.ENOENT, "")
        return found

    def _getattr(self, node: int, body: bytes) -> bytes:
        return struct.pack("=QII", 0, 0, 0) + self._attributes(node)

    def _setattr(self, node: int, body: bytes) -> bytes:
        valid, _, _, size = struct.unpack_from("=IIQQ", body)
        if valid & 8:
            file = self._files[node]
            del file[size:]
            file.extend(bytes(size - len(file)))
        return self._getattr(node, body)

    def _create(self, node: int, body: bytes) -> bytes:
        name = body[16:].rstrip(b"\0").decode()
        made = self._names[name] = max([ROOT, *self._files]) + 1
        self._files[made] = bytearray()
        return self._entry(made) + self._open(made, body)

    def _open(self, node: int, body: bytes) -> bytes:
        # Cached pages stay in memory (FOPEN_KEEP_CACHE): else whoever opens a file would wait for all its reads.
        return struct.pack("=QII", 0, 2, 0)

    _opendir = _open

    def _read(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("=QQI", body)
        return bytes(self._files[node][offset : offset + size])

    def _write(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("=QQI", body)
        file = self._files[node]
        file.extend(bytes(max(0, offset - len(file))))
        file[offset : offset + size] = body[40 : 40 + size]
        return struct.pack("=II", size, 0)

    def _readdir(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("=QQI", body)
        data = b""
        for at, (name, file) in enumerate(list(self._names.items())[offset:], offset + 1):
            encoded = name.encode()
            entry = struct.pack("=QQII", file, at, len(encoded), stat.S_IFREG >> 12) + encoded
            entry += bytes(-len(entry) % 8)
            if len(data) + len(entry) > size:
                break
            data += entry
        return data

    def _unlink(self, node: int, body: bytes) -> None:
        # Processes that have it open may go on.
        self._node(body)
        del self._names[body.rstrip(b"\0").decode()]

    def _rename(self, node: int, body: bytes, head: int = 8) -> None:
        old, new, _ = body[head:].decode().split("\0")
        self._names[new] = self._names.pop(old)

    def _rename2(self, node: int, body: bytes) -> None:
        self._rename(node, body, 16)

    def _statfs(self, node: int, body: bytes) -> bytes:
        return struct.pack("=QQQQQIIIIIIIIII", 1 << 20, 1 << 20, 1 << 20, 99, 99, 4096, 255, 4096, *[0] * 7)

    def _release(self, node: int, body: bytes) -> None:
        """Nothing."""

    _releasedir = _flush = _fsync = _access = _release


class FileSystem(NamedTuple):
    """A file system that is mounted."""

    directory: Path
    process: subprocess.Popen[str]

    def fault(self, **faults: dict[str, Any]) -> None:
        """Have operations hang (``hang=True``), fail (``errno=``) or each take ``seconds``; ``all`` is each of them.

        Hanging operations go on, and only these faults remain.
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        named = {"*" if name == "all" else name: fault for name, fault in faults.items()}
        self.process.stdin.write(json.dumps(named) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def forget(self) -> None:
        """Have nothing of its files be in memory."""
        for path in self.directory.iterdir():
            file = os.open(path, os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)

    def die(self) -> None:
        """End the process, as daemons of file systems do: whoever has a file open then gets ENOTCONN."""
        self.process.kill()
        self.process.wait()


def missing() -> str:
    """Why there can be none; empty if there can."""
    usable = os.access(DEVICE, os.R_OK | os.W_OK) and not os.geteuid()
    return "" if usable else f"no file system can be mounted without {DEVICE} and root"


@contextlib.contextmanager
def mounted(directory: Path) -> Iterator[FileSystem]:
    """One at ``directory``; the test is skipped where there can be none."""
    if reason := missing():
        pytest.skip(reason)
    directory.mkdir(exist_ok=True)
    command = [sys.executable, "-m", __name__, str(directory)]
    root = Path(__file__).parents[1]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        if said != "mounted\n":
            pytest.skip(f"no file system can be mounted: {said}")
        yield FileSystem(directory, process)
    finally:
        process.kill()
        process.wait()
        _LIBC.umount2(os.fsencode(directory), 2)


def main(directory: str) -> None:
    device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,max_read={MOST}"
    if _LIBC.mount(b"tests", os.fsencode(directory), b"fuse", 0, options.encode()):
        print(os.strerror(ctypes.get_errno()), flush=True)
        return
    print("mounted", flush=True)
    Server(device).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
