"""``get()`` and ``add()`` of glance_store's drivers, through ``glance_store.multi_backend``, as glance does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.harness.modes import MIB, Mode
from benchmarks.harness.worker import MULTIHASH, Payload, digest, digests, random_payload, surroundings
from benchmarks.operations.base import Context, Reading, Work

if TYPE_CHECKING:
    from benchmarks.backends.stores import Store

#: Bytes of images that are left in a store, or in a service, before they are deleted: that takes a time of its own.
LEFT = 256 * MIB


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


def enter(mode: Mode) -> None:
    if mode.green:
        import eventlet

        eventlet.monkey_patch()
    import glance_store  # noqa: F401 (the imports of a service come before the patches)


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

    enter(mode)
    if mode.fast:
        import fastio

        fastio.patch(**parameters.get("settings", {}))
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


@contextlib.contextmanager
def store_get(mode: Mode, context: Context) -> Iterator[Work]:
    images = context["images"]
    with opened_store(mode, {}) as store:

        def run(size: int, take: Callable[[Any], object]) -> None:
            for chunk in get(store, images[str(size)]):
                take(chunk)

        yield Getting(run)


class Getting(Reading):
    counts = False


class Adding(Work):
    """``add()`` of an image."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._urls: list[str] = []
        self._left = 0

    def once(self, size: int) -> int:
        return self._added(size).size

    def sha256(self, size: int) -> str:
        return digest(get(self._store, self._added(size).url))

    def _added(self, size: int) -> Any:
        payload = random_payload(size)
        with contextlib.closing(Source(payload)) as source:
            added = self._store.add(source, size=size, hashing=MULTIHASH)
        self._urls.append(added.url)
        self._left += size
        if (added.checksum, added.multihash) != digests(payload):
            raise RuntimeError(f"{added.url}: another checksum than the payload's")
        return added

    def after(self) -> None:
        if self._left >= LEFT:
            while self._urls:
                self._store.delete(self._urls.pop())
            self._left = 0


@contextlib.contextmanager
def store_add(mode: Mode, context: Context) -> Iterator[Work]:
    with opened_store(mode, {}) as store:
        yield Adding(store)
