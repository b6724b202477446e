"""``get()`` and ``add()`` of glance_store's drivers, through ``glance_store.multi_backend``, as glance does."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.harness import modes
from benchmarks.harness.modes import Mode
from benchmarks.harness.worker import (
    MULTIHASH,
    Payload,
    digest,
    digests,
    measure,
    pieces_of,
    random_payload,
    surroundings,
)
from benchmarks.operations.base import Context, Keeping, Work

if TYPE_CHECKING:
    from benchmarks.backends.stores import Store


class Source:
    """An image's data as glance has it: something to read from, not a file."""

    def __init__(self, payload: Payload) -> None:
        self._file = open(payload.path, "rb", buffering=0)  # noqa: SIM115 - it is closed by its user
        #: reads that returned data
        self.reads = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.reads += bool(data)
        return data

    def close(self) -> None:
        self._file.close()


def hashed(payload: Payload, *names: str, place: str | None = None) -> dict[str, Any]:
    """The result of hashing an image in this thread, and of writing it to ``place``, in pieces of 1 MiB.

    Of what is written ``server_cpu_seconds`` are what that costs.
    """
    hashers = [hashlib.new(name, usedforsecurity=False) for name in names]
    with open(payload.path, "rb", buffering=0) as source, contextlib.ExitStack() as stack:
        target = stack.enter_context(tempfile.TemporaryFile(dir=place, buffering=0)) if place else None
        with measure() as found:
            for piece in pieces_of(source):
                for hasher in hashers:
                    hasher.update(piece)
                if target and target.write(piece) != len(piece):
                    raise RuntimeError("the file system did not take all of it")
            said = [hasher.hexdigest() for hasher in hashers]
        known = digests(payload)
        verified = said == [known.multihash if name == MULTIHASH else known.checksum for name in names]
        verified &= target is None or os.fstat(target.fileno()).st_size == payload.size
    spent = {"server_cpu_seconds": found.cpu_seconds} if place else {}
    return found.result(bytes=payload.size, verified=verified, **spent)


def check_patched(store: Store) -> None:
    """Check that fastio's patches of this store's driver are in effect.

    :raises RuntimeError: if one is not: stock under the name of fastio would be a wrong result
    """
    import fastio

    module = type(store.driver).__module__
    targets = (f"{module}:", "glance_store.common.")
    entries = [entry for entry in fastio.status().entries if entry.target.startswith(targets)]
    if not any(entry.in_effect for entry in entries) or any(entry.left_alone for entry in entries):
        raise RuntimeError(f"fastio's patches are not all in effect for {module}:\n{fastio.status()}")


@contextlib.contextmanager
def opened_store(mode: Mode, parameters: Mapping[str, Any]) -> Iterator[Store]:
    """The case's store in this process, made to be used in that mode, and used once."""
    from benchmarks.backends.stores import opened

    modes.enter(mode, parameters, ("glance_store",), ())
    with opened(surroundings()["access"], **parameters.get("options", {})) as store:
        if mode.fast:
            check_patched(store)
        yield store


def get(store: Store, url: str) -> Iterator[bytes]:
    """The image's chunks; an error if they do not add up to its size."""
    data, size = store.get(url)
    for chunk in data:
        size -= len(chunk)
        yield chunk
    if size:
        raise RuntimeError(f"{url}: {abs(size)} bytes {'are missing' if size > 0 else 'too many'}")


class Getting(Work):
    """``get()`` of an image of each size, whose URL is known."""

    def __init__(self, store: Store, images: Mapping[str, str]) -> None:
        self._store = store
        self._images = images
        #: chunks that have come in all calls
        self.pieces = 0

    def once(self, size: int) -> int:
        pieces = moved = 0
        for chunk in self._get(size):
            pieces += 1
            moved += len(chunk)
        self.pieces += pieces
        return moved

    def sha256(self, size: int) -> str:
        return digest(self._get(size))

    def _get(self, size: int) -> Iterator[bytes]:
        return get(self._store, self._images[str(size)])


@contextlib.contextmanager
def store_get(mode: Mode, context: Context) -> Iterator[Getting]:
    """Of the context: ``images``, the URL of each size, and what :func:`opened_store` takes."""
    with opened_store(mode, context) as store:
        yield Getting(store, context["images"])


class Adding(Keeping):
    """``add()`` of an image; what it says of the image has to be right."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.delete)
        self._store = store
        self._right = True
        #: reads of the image's data, in all calls
        self.pieces = 0

    def before(self, size: int, calls: int) -> None:
        # From then on they are known.
        digests(random_payload(size))

    def once(self, size: int) -> int:
        payload = random_payload(size)
        with contextlib.closing(Source(payload)) as source:
            added = self._store.add(source, size=size, hashing=MULTIHASH)
        self.pieces += source.reads
        self.keep(added.url, size)
        self._right &= (added.checksum, added.multihash) == digests(payload)
        return added.size

    def sha256(self, size: int) -> str:
        self.once(size)
        return self.stored()

    def stored(self) -> str:
        """The SHA-256 of the image that was added last."""
        return digest(get(self._store, self._kept[-1])) if self._right else "another checksum than the payload's"


@contextlib.contextmanager
def store_add(mode: Mode, context: Context) -> Iterator[Adding]:
    """Of the context: what :func:`opened_store` takes."""
    with opened_store(mode, context) as store:
        work = Adding(store)
        try:
            yield work
        finally:
            work.clear()
