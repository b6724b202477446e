"""Any sequence of calls gives what hashlib gives."""

import hashlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastio.io import hashing
from fastio.io.hashing import BATCH, JOINED, LIMIT, SMALL, BackgroundHash
from tests.child import tile
from tests.concurrency.gate import until
from tests.properties.strategies import patterns

ALGORITHMS = sorted(hashlib.algorithms_guaranteed)
EDGES = [SMALL, JOINED, BATCH, 65536, LIMIT]
SIZES = st.one_of(
    st.integers(0, 5000),
    st.integers(0, 3 * BATCH),
    st.sampled_from([edge + more for edge in EDGES for more in (-1, 0, 1)]),
)
KINDS = st.sampled_from([bytes, bytearray, memoryview])
DATA = st.tuples(st.just("update"), patterns, SIZES, KINDS, st.integers(1, 12))
CALLS = st.one_of(DATA, DATA, DATA, st.tuples(st.sampled_from(["hexdigest", "digest", "copy"])))


def run(hashes: list[Any], calls: list[Any]) -> list[Any]:
    """Return the results of the calls, each of them made on all of ``hashes`` in turn; copies are used from then on."""
    results: list[Any] = []
    for call in calls:
        if call[0] == "update":
            _, pattern, size, kind, times = call
            # Many times a small piece, or a large one about once.
            for number in range(times if size <= BATCH else 1):
                content = bytearray(tile(pattern, size))
                # Each is another one: they have an order.
                content[:1] = [number] * bool(size)
                data = kind(content)
                results += [hash.update(data) for hash in hashes]
                if size and kind is not bytes:
                    # Mutable data is hashed in the state of the call.
                    data[0] ^= 1
        elif call[0] == "copy":
            copies = [hash.copy() for hash in hashes]
            for hash in hashes:
                hash.update(b"this goes nowhere")
            hashes = copies
        else:
            results += [result(hash, call[0]) for hash in hashes]
    return [*results, *(result(hash, "digest") for hash in hashes)]


def result(hash: Any, how: str) -> Any:
    return getattr(hash, how)(*[20] * hash.name.startswith("shake"))


@given(algorithms=st.lists(st.sampled_from(ALGORITHMS), min_size=1, max_size=3), calls=st.lists(CALLS, max_size=8))
def test_the_same_as_hashlib(algorithms: list[str], calls: list[Any]) -> None:
    stock = [hashlib.new(algorithm, usedforsecurity=False) for algorithm in algorithms]
    ours = [BackgroundHash(hash.copy(), hashing.pool) for hash in stock]
    assert run(ours, calls) == run(stock, calls)
    # A thread counts a job as finished just after whoever waited for it has gone on.
    until(lambda: not hashing.pool.load())
