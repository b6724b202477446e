"""How late other greenlets run while commands move much data.

A heartbeat greenlet sleeps for a period again and again; its lateness is how much longer than that it slept. Meanwhile
``transfers`` greenlets of a pool each read a child's output through ``processutils.execute()``.

Parameters:

``transfers``
    how many at the same time
``size``
    bytes of each. The results of a batch are kept until they are hashed after it, so ``transfers`` x ``size`` bytes of
    memory are used, by stock twice that; as its transfers end at about the same time, it would be little less without.
``batches``
    how often all of that is done, because one small batch sees only few heartbeats
``period``
    seconds between two heartbeats
``settings``
    of fastio

Results: ``mb_s`` of all transfers together; ``p50_ms``, ``p99_ms`` and ``worst_ms`` of the heartbeats;
``arrival_p99_ms``, the 99th percentile of what a request that comes at any instant waits for the hub. The former count
a long stop as one late heartbeat, the latter by its length.
"""

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness.modes import GREEN, KIB, MIB, Mode, check_fast, enter, variants, warmed
from benchmarks.harness.worker import Measured, Payload, measure, percentile, random_payload


class Heartbeat:
    """A greenlet that notes how late it is run, in seconds."""

    def __init__(self, period: float) -> None:
        import eventlet

        self.period = period
        self.late: list[float] = []
        self._sleep = eventlet.sleep
        self._greenlet = eventlet.spawn(self._beat)
        # From here on it sleeps, and nothing of its start is measured.
        eventlet.sleep(2 * period)
        self.late.clear()

    def _beat(self) -> None:
        clock = time.perf_counter
        before = clock()
        while True:
            self._sleep(self.period)
            now = clock()
            self.late.append(now - before - self.period)
            before = now

    def stop(self) -> list[float]:
        """Let a heartbeat that is due happen, then end; returns the latenesses."""
        self._sleep(self.period)
        self._greenlet.kill()
        return self.late


def arrival_percentile(stops: Sequence[float], duration: float, share: float) -> float:
    """What ``share`` of the requests that come at any instant of ``duration`` seconds do not exceed in waiting.

    One that comes while the hub runs nothing else for s seconds waits between 0 and s.
    """
    low, high = 0.0, max(stops)
    for _ in range(50):
        middle = (low + high) / 2
        beyond = sum(stop - middle for stop in stops if stop > middle)
        low, high = (middle, high) if beyond > (1 - share) * duration else (low, middle)
    return high


def lateness(late: Sequence[float], period: float) -> dict[str, float]:
    """The figures of a heartbeat, in milliseconds."""
    late = [max(0.0, value) for value in late]
    return {
        "p50_ms": percentile(late, 0.50) * 1000,
        "p99_ms": percentile(late, 0.99) * 1000,
        "worst_ms": max(late) * 1000,
        "arrival_p99_ms": arrival_percentile(late, sum(late) + len(late) * period, 0.99) * 1000,
        "heartbeats": len(late),
    }


def require_memory(size: int) -> None:
    """Check that so many bytes of memory are available. Otherwise the kernel might kill a process.

    :raises MemoryError: if they are not
    """
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) * KIB for line in file if line.startswith("MemAvailable:"))
    if size > available:
        raise MemoryError(f"needs {size // MIB} MiB of memory, available are {available // MIB}: take fewer or smaller")


def transfer_all(payload: Payload, transfers: int) -> list[bytes]:
    """Read that many children at the same time, each in a greenlet, as a service does."""
    import eventlet
    from oslo_concurrency import processutils

    pool = eventlet.GreenPool(transfers)
    running = [pool.spawn(processutils.execute, "cat", str(payload.path), binary=True) for _ in range(transfers)]
    return [thread.wait()[0] for thread in running]


def all_right(outputs: list[bytes], payload: Payload) -> bool:
    """Hash the outputs, and let go of each."""
    right = bool(outputs)
    while outputs:
        right &= hashlib.sha256(outputs.pop()).hexdigest() == payload.sha256
    return right


def together(parts: Sequence[Measured]) -> Measured:
    """Several measured parts as one; the heartbeat's trips to the hub are among its waits."""
    whole = Measured()
    whole.seconds = sum(part.seconds for part in parts)
    whole.cpu_seconds = sum(part.cpu_seconds for part in parts)
    whole.reads = sum(part.reads or 0 for part in parts)
    whole.waits = sum(part.waits or 0 for part in parts)
    whole.peak_memory = max(part.peak_memory or 0 for part in parts)
    return whole


def measure_fairness(parameters: Mapping[str, Any]) -> dict[str, Any]:
    payload = warmed(random_payload(parameters["size"]))
    transfers, period = parameters["transfers"], parameters.get("period", 0.001)
    require_memory(2 * transfers * payload.size)
    batches, late, verified = [], [], True
    for _ in range(parameters.get("batches", 1)):
        heartbeat = Heartbeat(period)
        with measure() as measured:
            outputs = transfer_all(payload, transfers)
        late += heartbeat.stop()
        batches.append(measured)
        verified &= len(outputs) == transfers and all_right(outputs, payload)
    whole = together(batches)
    size = payload.size * transfers * len(batches)
    return whole.result(bytes=size, verified=verified, mb_s=size / whole.seconds / 1e6, **lateness(late, period))


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    enter(mode, parameters)
    result = measure_fairness(parameters)
    check_fast(mode, result["bytes"])
    return result


VARIANTS = variants(run, names=GREEN)
