"""Digests of data that goes by several times: computed once, and always those of what was given."""

import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from fastio.concurrency.events import NativeEvent
from fastio.counters import Tally
from fastio.io import hashing_once, libcrypto
from fastio.io.hashing import BackgroundHash, Pool
from fastio.io.hashing_once import PIECES, SEGMENT, OnceHash, in_background, one_pass
from tests.concurrency.gate import Gate
from tests.forked import told_by_a_fork

pytestmark = [
    pytest.mark.skipif(libcrypto.poly1305() is None, reason="OpenSSL has no Poly1305"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

MIB = 1 << 20
DATA = random.Random(3).randbytes(2 * SEGMENT + 12_345)
PIECES_OF = {size: [DATA[at : at + size] for at in range(0, len(DATA), size)] for size in (MIB, 99_999, len(DATA))}


@pytest.fixture
def pool() -> Pool:
    pool = Pool()
    pool.new_event = NativeEvent
    return pool


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    hashing_once._states.clear()
    yield
    hashing_once._states.clear()


@pytest.fixture
def counts() -> Tally:
    return Tally("test")


def hashes(pool: Pool, counts: Tally, *names: str) -> list[Any]:
    with one_pass(counts):
        return [in_background(hashlib.new(name), pool, Tally("")) for name in names]


def feed(hashes: Sequence[Any], pieces: Sequence[bytes]) -> None:
    for piece in pieces:
        for hash in hashes:
            hash.update(piece)


def goes_by(pool: Pool, counts: Tally, pieces: Sequence[Any], *names: str) -> int:
    """A pass with hashes of these names: they are right; returns the segments that were not hashed."""
    before = counts.bytes
    found = hashes(pool, counts, *names)
    feed(found, pieces)
    data = b"".join(pieces)
    assert [hash.hexdigest() for hash in found] == [hashlib.new(name, data).hexdigest() for name in names]
    assert [hash.digest() for hash in found] == [hashlib.new(name, data).digest() for name in names]
    return (counts.bytes - before) // SEGMENT


def test_each_digest_is_computed_once(pool: Pool, counts: Tally) -> None:
    assert goes_by(pool, counts, PIECES_OF[MIB], "md5", "md5") == 2
    assert goes_by(pool, counts, PIECES_OF[MIB], "sha512", "md5") == 2
    # However the data is cut.
    for pieces in PIECES_OF.values():
        assert goes_by(pool, counts, pieces, "sha512", "md5") == 4
    assert goes_by(pool, counts, PIECES_OF[MIB], "blake2b", "md5") == 2


@pytest.mark.parametrize("position", [0, SEGMENT - 1, SEGMENT, 2 * SEGMENT, len(DATA) - 1])
def test_data_that_differs(position: int, pool: Pool, counts: Tally) -> None:
    goes_by(pool, counts, PIECES_OF[MIB], "sha512", "md5")
    changed = bytearray(DATA)
    changed[position] ^= 1
    pieces = [bytes(changed[at : at + MIB]) for at in range(0, len(changed), MIB)]
    assert goes_by(pool, counts, pieces, "sha512", "md5") == 2 * (position // SEGMENT)
    # Both are known now, and so is what is shorter, or longer.
    assert goes_by(pool, counts, pieces, "sha512", "md5") == 4
    assert goes_by(pool, counts, PIECES_OF[MIB], "sha512", "md5") == 4
    assert goes_by(pool, counts, PIECES_OF[MIB][:7], "sha512", "md5") == 2
    assert goes_by(pool, counts, [*PIECES_OF[MIB], DATA], "sha512", "md5") == 4


def test_digests_in_between_and_copies(pool: Pool, counts: Tally) -> None:
    goes_by(pool, counts, PIECES_OF[MIB], "sha512")
    for seen in (1, 4, 5):
        (hash,) = hashes(pool, counts, "sha512")
        known = hashlib.sha512()
        for at, piece in enumerate(PIECES_OF[MIB]):
            if at == seen:
                assert hash.hexdigest() == known.hexdigest()
                copy = hash.copy()
                assert type(copy) is BackgroundHash and copy.hexdigest() == known.hexdigest()
            hash.update(piece)
            known.update(piece)
        assert hash.hexdigest() == known.hexdigest()
    assert (hash.name, hash.digest_size, isinstance(hash, type(known))) == ("sha512", 64, True)


@pytest.mark.parametrize("odd", [bytearray(b"?"), memoryview(b"?" * MIB), b""])
def test_data_that_could_change(odd: Any, pool: Pool, counts: Tally) -> None:
    goes_by(pool, counts, PIECES_OF[MIB], "sha512")
    goes_by(pool, counts, [*PIECES_OF[MIB][:5], odd, *PIECES_OF[MIB]], "sha512")


def test_errors_are_hashlibs(pool: Pool, counts: Tally) -> None:
    (hash,) = hashes(pool, counts, "sha512")
    with pytest.raises(TypeError, match="object supporting the buffer API required"):
        hash.update(1)
    with pytest.raises(TypeError, match="Strings must be encoded before hashing"):
        hash.update("1")


def test_tiny_pieces_are_hashed_as_ever(pool: Pool, counts: Tally) -> None:
    assert goes_by(pool, counts, [b"?"] * (PIECES + 2) + PIECES_OF[MIB], "sha512") == 0


def test_two_hashes_of_the_same_data_side_by_side(pool: Pool, counts: Tally) -> None:
    """The second hash follows, also while the threads have yet to hash the promised data."""
    pool.limit = lambda: 16 * SEGMENT  # type: ignore[method-assign]
    gate = Gate(pool.workers)
    try:
        first, second = hashes(pool, counts, "sha512")[0], hashes(pool, counts, "sha512")[0]
        feed([first, second], PIECES_OF[MIB][:7])
        assert counts.bytes == SEGMENT
    finally:
        gate.open()
    feed([first, second], PIECES_OF[MIB][7:])
    assert [hash.hexdigest() for hash in (first, second)] == [hashlib.sha512(DATA).hexdigest()] * 2


def test_outside_of_a_pass(pool: Pool, counts: Tally) -> None:
    goes_by(pool, counts, PIECES_OF[MIB], "sha512")
    hash = in_background(hashlib.sha512(), pool, counts)
    assert type(hash) is BackgroundHash
    with one_pass(counts):
        assert type(in_background(hashlib.sha512(), pool, counts)) is OnceHash
    assert type(in_background(hashlib.sha512(), pool, counts)) is BackgroundHash


def test_without_poly1305(monkeypatch: pytest.MonkeyPatch, pool: Pool, counts: Tally) -> None:
    monkeypatch.setattr(hashing_once, "poly1305", lambda: None)
    with one_pass(counts):
        assert type(in_background(hashlib.sha512(), pool, counts)) is BackgroundHash


def test_openssl_fails(monkeypatch: pytest.MonkeyPatch, pool: Pool, counts: Tally) -> None:
    monkeypatch.setattr(hashing_once, "poly1305", lambda: lambda pieces: b"")
    for _ in range(2):
        assert goes_by(pool, counts, PIECES_OF[MIB], "sha512") == 0
    assert not hashing_once._states


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch, pool: Pool, counts: Tally) -> None:
    monkeypatch.setattr(hashing_once, "STATES", 3)
    monkeypatch.setattr(hashing_once, "MOST", 2)
    data = [*PIECES_OF[MIB], *PIECES_OF[MIB]]
    assert goes_by(pool, counts, data, "sha512") == 0
    # Data beyond the most is hashed each time.
    assert goes_by(pool, counts, data, "sha512") == 2
    goes_by(pool, counts, data, "md5")
    assert len(hashing_once._states) == 3


def test_a_forked_child_goes_on_hashing(pool: Pool, counts: Tally) -> None:
    goes_by(pool, counts, PIECES_OF[MIB], "sha512")
    following, leading = hashes(pool, counts, "sha512", "md5")
    feed([following, leading], PIECES_OF[MIB][:6])

    def end() -> list[Any]:
        feed([following, leading], PIECES_OF[MIB][6:])
        return [len(hashing_once._states), following.hexdigest(), leading.hexdigest()]

    digests = [hashlib.sha512(DATA).hexdigest(), hashlib.md5(DATA).hexdigest()]
    # It knows no states but those that it has made itself.
    assert told_by_a_fork(end) == [2, *digests]
    assert end() == [4, *digests]


def test_poly1305_tags_data_in_pieces() -> None:
    tag = libcrypto.poly1305()
    assert tag is not None
    assert tag([DATA[:MIB], DATA[MIB:]]) == tag([DATA]) != tag([DATA[:-1]])
    assert len(tag([b""])) == 16
