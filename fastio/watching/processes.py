"""Which process a file belongs to, and whether that process is still there."""

import os
import posix


def identity() -> str:
    """The name of this process: no other one on the machine has it, in whatever container, before or after it."""
    return f"{_namespace()}-{os.getpid()}-{start(os.getpid())}"


def is_gone(identity: str) -> bool:
    """Whether the process of that name has ended; False for one of another container, of which nothing is known."""
    namespace, pid, began = identity.split("-")
    return namespace == _namespace() and start(int(pid)) != began


def _namespace() -> str:
    return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))


def start(pid: int) -> str:
    """When the process began, in ticks since the machine did; empty if there is none, or only what is left of one."""
    try:
        fd = posix.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fields = posix.read(fd, 4096).rpartition(b")")[2].split()
    except ProcessLookupError:
        return ""
    finally:
        posix.close(fd)
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
