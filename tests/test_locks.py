"""Every lock and every thread of fastio's has been looked at: who may want it, and what may run meanwhile."""

import ast
import pathlib
from collections import Counter
from collections.abc import Iterator

import fastio

ROOT = pathlib.Path(fastio.__file__).parent
MAKE = {
    "Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Thread", "Timer", "allocate_lock",
    "start_new_thread", "ThreadPoolExecutor", "TryLock",
}  # fmt: skip

#: Locks that are made, where, how often, and why they are harmless.
REVIEWED = {
    # Patching is the caller's own, and the lock is its thread's again in a handler or a finalizer.
    ("patching/exclusive.py", "allocate_lock"): 1,
    # For threads whose loop is C: concurrency/threads.py.
    ("concurrency/native.py", "start_new_thread"): 1,
    ("concurrency/threads.py", "start_new_thread"): 1,
    ("trace/recorder.py", "start_new_thread"): 1,
    # None is waited for, and in a forked child those are free that another thread had. The first is its own name.
    ("concurrency/try_lock.py", "TryLock"): 1,
    ("io/pipes.py", "TryLock"): 1,
    ("io/transfers.py", "TryLock"): 1,
    ("run_dir.py", "TryLock"): 1,
    # Under uWSGI without green threads. One sends. One for each body asks a store for its chunks, and one runs what the
    # service does at its end; a worker's own thread would otherwise do both.
    ("io/transfers.py", "start_new_thread"): 2,
    # As the driver's own, which bounds how many parts are read ahead; each upload has its own.
    ("patches/glance_store/store_s3.py", "Semaphore"): 1,
    # As the driver's own threads, which send parts: Python of botocore and requests. Each part of a download has its
    # own, and only its reader waits for it.
    ("concurrency/handover.py", "Semaphore"): 1,
    ("concurrency/handover.py", "Thread"): 1,
}


def made() -> Iterator[tuple[str, str]]:
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            # Also where it is only handed on.
            name = getattr(node, "attr", "") if isinstance(node, ast.Attribute) else getattr(node, "id", "")
            # The recorder's events are called so, too.
            if name in MAKE and (name, type(node)) != ("Event", ast.Name):
                yield str(path.relative_to(ROOT)), name


def test_every_lock_and_thread_is_reviewed() -> None:
    """A new one: no collection, handler of a signal or fork may want it while it is held; no Python in a thread."""
    assert Counter(made()) == REVIEWED
