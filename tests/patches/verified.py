"""Downloads that threads verify, whatever client they are of: ``glanceclient_hashing``, ``openstacksdk_hashing``."""

from collections.abc import Callable, Iterator

import pytest

import fastio
from fastio.concurrency import native
from fastio.io.hashing_pool import pool
from tests.concurrency.gate import Gate
from tests.patches.image_api import content

MIB = 1 << 20


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    """Threads have nothing to do at a test's end."""
    yield
    while pool.load():
        native.module("threading").Event().wait(0.001)


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def leaves_the_hub_free(patch: str, check: Callable[[Iterator[bytes], bytes], Iterator[bytes]]) -> None:
    """The threads go on when another greenlet has had its turns: a hub that waits for them never comes back.

    :param check: the pieces of this data, verified
    """
    import eventlet

    whole = content(4 * MIB) * 4
    gate = Gate(pool.workers)

    def other() -> None:
        for _ in range(100):
            eventlet.sleep(0)
        gate.open()

    greenlet = eventlet.spawn(other)
    with fastio.patched(patch, strict=True):
        assert b"".join(check(pieces(whole, MIB), whole)) == whole
    greenlet.wait()
