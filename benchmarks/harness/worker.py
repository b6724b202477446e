"""One measured run in a fresh process, and what workloads need for it.

``python -m benchmarks.harness.worker WORKLOAD VARIANT JSON`` calls ``VARIANTS[VARIANT]`` of
``benchmarks.suites.WORKLOAD.workload`` with the parameters and prints its result, a JSON object, as the last line of
its output. A workload measures like this::

    payload = random_payload(parameters["size"])
    with measure() as measured:
        output = ...
    return measured.result(bytes=len(output), verified=sha256(output) == payload.sha256)

This module imports next to nothing, because what a process has imported is part of what is measured.
"""

import hashlib
import importlib
import json
import math
import os
import platform
import random
import resource
import selectors
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

MIB = 1 << 20

#: A file system in memory, where there is one.
MEMORY = Path("/dev/shm")

#: Where payload files are kept between runs; the temporary directory unless this variable names another one.
CACHE_VARIABLE = "FASTIO_BENCHMARK_CACHE"
#: Variable in which the engine describes what it has started and prepared for the runs of a case, as JSON.
SURROUNDINGS_VARIABLE = "FASTIO_BENCHMARK_SURROUNDINGS"


class Payload(NamedTuple):
    """A file with known content."""

    path: Path
    #: bytes
    size: int
    #: of the content, in hexadecimal
    sha256: str


def cache_directory() -> Path:
    """The directory of the payload files, made if need be, for this user only.

    :raises PermissionError: if another user has made it in the temporary directory, which is world-writable
    """
    if chosen := os.environ.get(CACHE_VARIABLE):
        path = Path(chosen)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path
    path = Path(tempfile.gettempdir()) / f"fastio-benchmarks-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(
            f"{path} is not a directory that belongs to this user and that no other user may write to: "
            f"remove it, or name another one in {CACHE_VARIABLE}"
        )
    return path


def surroundings() -> dict[str, Any]:
    """Return what the engine has started and prepared for this case.

    ``access`` and ``pids`` of its backend (:func:`benchmarks.harness.servers.running`) and in ``prepared`` the result
    of the variant that has prepared it; each only where the case has it. ``beside`` has ``access`` and ``pids`` of
    further backends; one that did not start has ``failed`` instead, the reason.
    """
    return json.loads(os.environ.get(SURROUNDINGS_VARIABLE, "{}"))


def running(name: str | None, told: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """``access`` and ``pids`` of the backend that runs beside the case's by that name; of the case's own without one.

    :raises RuntimeError: if it did not start, or could not be prepared
    """
    told = surroundings() if told is None else told
    found = told["beside"].get(name, {"failed": "there is no such server"}) if name else told
    failed = found.get("failed") or told.get("prepared", {}).get("failed", {}).get(name)
    if failed:
        # Logs, mostly.
        print(failed, file=sys.stderr)
        raise RuntimeError(f"{name}: {failed.splitlines()[0]}")
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of ``values`` that at least ``share`` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * share) - 1)]


def digest(pieces: Iterable[bytes | memoryview], algorithm: str = "sha256") -> str:
    """The hash of all of the pieces together, in hexadecimal."""
    hasher = hashlib.new(algorithm)
    for piece in pieces:
        hasher.update(piece)
    return hasher.hexdigest()


def pieces_of(file: Any) -> Iterator[bytes]:
    """Read the rest of a file, piece by piece."""
    return iter(lambda: file.read(MIB), b"")


def command_digest(command: Sequence[str], algorithm: str = "sha256", **options: Any) -> str:
    """The hash of what a command writes to its standard output.

    :param options: of ``Popen``
    :raises RuntimeError: if it fails
    """
    import subprocess

    with subprocess.Popen(command, stdout=subprocess.PIPE, **options) as child:
        found = digest(pieces_of(child.stdout), algorithm)
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit status {child.returncode}")
    return found


def memory_directory(room: int) -> Path | None:
    """:data:`MEMORY` if it has room for so many bytes: a disk, with its later write-back, is not to be measured."""
    return MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(MEMORY).free >= room else None


def random_payload(size: int, seed: int = 0) -> Payload:
    """A file of ``size`` random bytes, the same for the same ``seed``."""

    def pieces() -> Iterator[bytes]:
        source = random.Random(seed)
        for start in range(0, size, MIB):
            yield source.randbytes(min(MIB, size - start))

    return _cached(f"random-{size}-{seed}", size, pieces)


def text_payload(size: int, seed: int = 0) -> Payload:
    """A file of ``size`` bytes of UTF-8: lines of 1 to 120 characters, every eighth of more than one byte."""

    def pieces() -> Iterator[bytes]:
        source = random.Random(seed)
        alphabet = "abcdefghijklmnopqrstuvwxyz      " * 7 + "äößéłжяλ€漢字🙂" * 2 + "ñçøåüïùê"
        lines = [("".join(source.choices(alphabet, k=source.randint(1, 120))) + "\n").encode() for _ in range(10_000)]
        left = size
        while left > 1024:
            line = lines[source.randrange(len(lines))]
            yield line
            left -= len(line)
        if left:
            yield b"x" * (left - 1) + b"\n"

    return _cached(f"text-{size}-{seed}", size, pieces)


def _cached(name: str, size: int, pieces: Callable[[], Iterable[bytes]]) -> Payload:
    path = cache_directory() / (name + ".bin")
    digest_path = path.with_suffix(".sha256")
    try:
        if path.stat().st_size == size:
            return Payload(path, size, digest_path.read_text().strip())
    except FileNotFoundError:
        pass
    digest = hashlib.sha256()
    partial = path.with_suffix(f".{os.getpid()}")
    with open(partial, "wb") as file:
        for piece in pieces():
            file.write(piece)
            digest.update(piece)
    os.replace(partial, path)
    partial.write_text(digest.hexdigest() + "\n")
    os.replace(partial, digest_path)
    return Payload(path, size, digest.hexdigest())


#: The multihash's algorithm: glance's default.
MULTIHASH = "sha512"


class Digests(NamedTuple):
    """Return the hashes that glance and its stores keep of an image, in hexadecimal: MD5, and SHA-512."""

    checksum: str
    multihash: str


def digests(payload: Payload) -> Digests:
    """MD5 and multihash of a payload, computed once and kept beside it."""
    path = payload.path.with_suffix(".digests")
    if not path.exists():
        hashers = [hashlib.md5(usedforsecurity=False), hashlib.new(MULTIHASH)]
        with open(payload.path, "rb", buffering=0) as file:
            for piece in pieces_of(file):
                for hasher in hashers:
                    hasher.update(piece)
        # Threads of a server may come at the same time.
        partial = path.with_name(f"{path.name}.{threading.get_native_id()}")
        partial.write_text(" ".join([payload.sha256, *(hasher.hexdigest() for hasher in hashers)]))
        os.replace(partial, path)
    of, *known = path.read_text().split()
    # Another file of the same name would be an image whose digests are not known.
    return Digests(*known) if of == payload.sha256 else Digests("", "")


class Measured:
    """The findings of :func:`measure`; complete when its block is left."""

    def __init__(self) -> None:
        #: wall time of the block
        self.seconds = 0.0
        #: of this process and of its children that were waited for in the block
        self.cpu_seconds = 0.0
        #: largest resident memory in the block beyond what it was at its start, in bytes; None where that is not known
        self.peak_memory: int | None = None
        #: read system calls of Python code that returned data; None unless any was seen
        self.reads: int | None = None
        #: times that a greenlet went to the hub, or a selector was asked; None unless any was seen
        self.waits: int | None = None

    def result(self, *, verified: bool, bytes: int = 0, **extra: float) -> dict[str, Any]:
        """The run's result: what was measured, the ``bytes`` that were moved and whether their SHA-256 was right."""
        figures = {**vars(self), "bytes": bytes, **extra}
        return {"verified": bool(verified), **{name: value for name, value in figures.items() if value is not None}}


@contextmanager
def measure() -> Iterator[Measured]:
    """Measure the block: time, CPU time, peak memory, reads and waits.

    Counting adds a Python call to each ``os.read`` and two to each wait, some 0.1 µs each.
    """
    measured = Measured()
    with ExitStack() as stack:
        # An empty read is the end of the pipe on which subprocess hears of a failed exec, or of a stream.
        reads = _count(stack, _read_functions(), bool)
        waits = _count_waits(stack)
        own = _fastio_reads()
        memory_known = reset_peak()
        memory = peak()
        cpu = _cpu_seconds()
        start = time.perf_counter()
        yield measured
        measured.seconds = time.perf_counter() - start
        measured.cpu_seconds = _cpu_seconds() - cpu
        most = peak()
        if memory_known or most > memory:
            measured.peak_memory = most - memory
        measured.reads = reads() + _fastio_reads() - own or None
        measured.waits = waits() or None


def _cpu_seconds() -> float:
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def reset_peak(process: int | str = "self") -> bool:
    """Make the kernel forget the peak up to now; False where it does not let us (then only a new peak can be seen)."""
    try:
        with open(f"/proc/{process}/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return False
    return True


def peak(process: int | str = "self") -> int:
    """The largest resident memory of a process in bytes (``ru_maxrss`` would include the process it came from)."""
    with open(f"/proc/{process}/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _fastio_reads() -> int:
    counters = sys.modules.get("fastio.counters")
    return counters.reads if counters else 0


def _read_functions() -> Iterator[tuple[Any, str]]:
    """Where the code that is measured looks up the reading system calls."""
    green = sys.modules.get("eventlet.green.os")
    if green is not None:
        yield green, "__original_read__"
    if green is None or os.read is not green.read:
        yield os, "read"
    if "fastio.counters" not in sys.modules:
        # fastio counts its own.
        yield os, "readv"


def _count_waits(stack: ExitStack) -> Callable[[], int]:
    """Count how often a greenlet goes to the hub or, where there is none, a selector is asked."""
    hubs = sys.modules.get("eventlet.hubs")
    # Libraries import eventlet without using it, and get_hub() would make a hub.
    if hubs is None or not (hasattr(hubs._threadlocal, "hub") or sys.modules["eventlet.patcher"].already_patched):
        names = ("PollSelector", "EpollSelector", "SelectSelector")
        places = [(getattr(selectors, name), "select") for name in names if hasattr(selectors, name)]
        return _count(stack, places, lambda _: True)
    # A green selector waits in the hub and would be counted twice. A wrapper of the hub's switch() would be one more
    # frame of a greenlet that sleeps, which green_wait looks at.
    import greenlet

    hub, total = hubs.get_hub(), 0

    def note(event: str, between: tuple[Any, Any]) -> None:
        nonlocal total
        total += event == "switch" and between[1] is hub.greenlet

    stack.callback(greenlet.settrace, greenlet.settrace(note))
    return lambda: total


def _count(stack: ExitStack, places: Iterable[tuple[Any, str]], counts: Callable[[Any], bool]) -> Callable[[], int]:
    """Count the calls at these places whose result ``counts``; the places are as before when ``stack`` is closed."""
    total = 0

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any, **kwargs: Any) -> Any:
            nonlocal total
            result = function(*args, **kwargs)
            total += counts(result)
            return result

        return count

    for owner, name in places:
        inherited = name not in vars(owner)
        function = getattr(owner, name)
        setattr(owner, name, counting(function))
        if inherited:
            stack.callback(delattr, owner, name)
        else:
            stack.callback(setattr, owner, name, function)
    return lambda: total


def variant(workload: str, name: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The variant of a workload; ValueError that names what there is if there is no such one."""
    module = importlib.import_module(f"benchmarks.suites.{workload}.workload")
    if name not in module.VARIANTS:
        raise ValueError(f"workload {workload} has no variant {name!r}, only {', '.join(module.VARIANTS)}")
    return module.VARIANTS[name]


def recorded(status: dict[str, Any]) -> dict[str, Any]:
    """A status of fastio without its explanations: every run has one, and results are kept."""
    kept = [{key: patch[key] for key in ("name", "target", "outcome")} for patch in status["patches"]]
    return {**status, "patches": kept}


def main(arguments: list[str]) -> None:
    workload, name, parameters = arguments
    result = variant(workload, name)(json.loads(parameters))
    result["python"] = platform.python_version()
    if "fastio.counters" in sys.modules:
        import fastio
        from fastio import counters

        report = fastio.status()
        # glance_store imports fastio's own driver, which patches nothing.
        if any(entry.in_effect for entry in report.entries):
            result["fastio"] = {**recorded(report.to_dict()), "counters": counters.snapshot()}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
