"""The process that watches pytest from outside: it ends a run that is stuck, and says in what.

It reads which test has begun and how long that may take, and is sent the stacks of Python's threads when the time is
up. Where nothing in pytest's process runs any more, no stacks come; it waits a little longer, and tells what the kernel
knows. It ends when pytest does.

Standard library only, and imported by a Python in isolation, so that it starts fast.
"""

import contextlib
import os
import select
import signal
import sys
import time

from benchmarks.backends.keeper import descendants, state_and_parent
from benchmarks.tools.watchdog import RUN_VARIABLE

#: seconds after the limit until no stacks are expected any more; less for a short limit
_PATIENCE = 10.0

#: seconds between SIGTERM and SIGKILL for what the run has started; keepers of backends remove their files meanwhile
_GRACE = 8.0

#: seconds without another byte after which the stacks are complete
_QUIET = 0.5


def main() -> None:
    """Watch the process of the first argument; its run is the second, and the others are the descriptors to read."""
    if os.fork():
        os._exit(0)
    os.setsid()
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    pid, run, told, dumped = sys.argv[1:]
    Watch(int(pid), run, int(told), int(dumped)).run()


class Watch:
    """What is watched: the process, and what runs in it."""

    def __init__(self, pid: int, run: str, told: int, dumped: int) -> None:
        self._pid = pid
        self._run = run
        self._told = told
        self._dumped = dumped
        self._buffer = b""
        self._name = ""
        self._seconds = 0.0
        self._deadline: float | None = None

    def run(self) -> None:
        """Return when the process has ended, by itself or by us."""
        poll = select.poll()
        for fd in (self._told, self._dumped):
            poll.register(fd, select.POLLIN)
        try:
            process = os.pidfd_open(self._pid)
        except ProcessLookupError:
            return
        except OSError:
            # The kernel has none: the end of what is told has to do, though children of the process may have it open.
            process = self._told
        else:
            poll.register(process, select.POLLIN)
        while True:
            left = None
            if self._deadline is not None:
                left = max(self._deadline - time.monotonic(), 0)
            ready = dict(poll.poll(None if left is None else left * 1000))
            if ready.get(process, 0) & (select.POLLHUP if process == self._told else select.POLLIN):
                return
            if not ready or ready.get(self._dumped, 0) & select.POLLIN:
                self._end_all(self._stacks() if ready else "")
                return
            if ready.get(self._told, 0) & select.POLLIN:
                self._hear()
            for fd, events in ready.items():
                if not events & select.POLLIN:
                    # Its end: a process loses its descriptors before it has ended.
                    poll.unregister(fd)

    def _hear(self) -> None:
        """Take in what is sent."""
        data = os.read(self._told, 65536)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode().partition(" ")
            if word == "begin":
                seconds, _, self._name = rest.partition(" ")
                self._seconds = float(seconds)
                self._deadline = time.monotonic() + self._seconds + min(_PATIENCE, max(self._seconds, 1))
            else:
                self._deadline = None

    def _stacks(self) -> str:
        """What faulthandler writes, all of it."""
        found = b""
        while select.select([self._dumped], [], [], _QUIET)[0]:
            data = os.read(self._dumped, 65536)
            if not data:
                break
            found += data
        return found.decode(errors="replace")

    def _end_all(self, stacks: str) -> None:
        # Stopped first, so that it starts nothing more and nobody is reaped by it meanwhile.
        threads = _threads(self._pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGSTOP)
        started = self._started()
        # The same word as in pytest's own summary.
        _say(f"\n\n{'=' * 20} time limit {'=' * 20}")
        _say(f"FAILED {self._name} - not ended within its limit of {self._seconds:g} s")
        _say(stacks or "Python's stacks cannot be had: nothing runs in the process.")
        _say("What the kernel tells of its threads:")
        for line in threads:
            _say(f"  {line}")
        _say("The processes that it has started:" if started else "It has started no processes that are left.")
        for pid in started:
            _say(f"  {_described(pid)}")
        _say("The run ends here.")
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self._end(started)

    def _started(self) -> list[int]:
        """Descendants of the process, and those which only their environment tells, as they have lost their parents."""
        found = set(descendants(self._pid))
        for entry in os.listdir("/proc"):
            if entry.isdigit() and self._belongs(int(entry)):
                found.add(int(entry))
        return sorted(found - {self._pid, os.getpid()})

    def _belongs(self, pid: int) -> bool:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return f"{RUN_VARIABLE}={self._run}".encode() in file.read()
        except OSError:
            # Ended meanwhile, or another user's.
            return False

    def _end(self, pids: list[int]) -> None:
        """SIGTERM, then SIGKILL, to the processes and what they may start meanwhile."""
        deadline = time.monotonic() + _GRACE
        told: set[int] = set()
        while left := [pid for pid in {*pids, *self._started()} if state_and_parent(pid)[0] not in "ZX"]:
            late = time.monotonic() - deadline
            if late > _GRACE:
                _say(f"processes {left} cannot be ended")
                return
            for pid in left:
                if late > 0 or pid not in told:
                    told.add(pid)
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL if late > 0 else signal.SIGTERM)
            time.sleep(0.02)


def _threads(pid: int) -> list[str]:
    found = []
    with contextlib.suppress(OSError):
        for thread in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
            found.append(f"{_described(int(thread), f'/proc/{pid}/task/{thread}')}")
    return found


def _described(pid: int, directory: str = "") -> str:
    """A process or thread: its number, name, state, in which function of the kernel it is, and its command line."""
    directory = directory or f"/proc/{pid}"

    def read(name: str) -> str:
        try:
            with open(f"{directory}/{name}", "rb") as file:
                return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return ""

    state = next((line.partition(":")[2].strip() for line in read("status").splitlines() if line[:6] == "State:"), "?")
    return f"{pid} {read('comm')}: {state}, in {read('wchan') or '?'}: {read('cmdline')[:200]}"


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text.rstrip().encode(errors="replace") + b"\n")
