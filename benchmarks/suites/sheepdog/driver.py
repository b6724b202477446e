"""Whole images through fastio's sheepdog driver for glance_store.

With the parameter ``task`` ``"get"`` the chunks of an image are thrown away, with ``"add"`` an image comes from a file,
with MD5 and SHA-512. The driver runs in a process in which everything is patched. Its reference has no Python in the
way: ``dog vdi read | cat >/dev/null``, or ``cat | dog vdi write``.
"""

import contextlib
import importlib.util
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.backends import dog
from benchmarks.harness.modes import Mode
from benchmarks.harness.worker import Measured, digest, measure, pieces_of
from benchmarks.suites.sheepdog.cluster import (
    ADDRESS,
    IMAGE,
    PORT,
    dog_environment,
    readable_cluster,
    reference_pipeline,
)
from benchmarks.suites.sheepdog.cluster import writable_cluster as writable_pieces

ADDED = "added"


def store_of(driver: Any) -> Any:
    """A single store of the driver's module, as its options are by default."""
    from oslo_config import cfg

    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    store = driver.Store(conf)
    store.configure(re_raise_bsc=True)
    return store


def chunks_of(store: Any) -> Iterator[bytes]:
    from glance_store import location

    uri = f"sheepdog://{ADDRESS}:{PORT}:{IMAGE}"
    where = location.Location("sheepdog", store.get_store_location_class(), store.conf, uri=uri)
    return iter(store.get(where)[0])


def get(store: Any, sha256: str) -> tuple[Measured, int, bool]:
    """What was measured, how many bytes it was, and whether a second pass found them to be right."""
    with measure() as measured:
        size = sum(map(len, chunks_of(store)))
    return measured, size, digest(chunks_of(store)) == sha256


def add(store: Any, path: Path, directory: Path, sha256: str) -> tuple[Measured, int, bool]:
    size = path.stat().st_size
    with open(path, "rb") as file, measure() as measured:
        _, written, _, multihash, _ = store.add(ADDED, file, size, "sha512")
    with open(dog.image_file(directory, ADDED), "rb") as image, open(path, "rb") as file:
        right = digest(pieces_of(image)) == sha256 and digest(pieces_of(file), "sha512") == multihash
    return measured, written, right


@contextlib.contextmanager
def writable_cluster(parameters: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """A cluster for this run only, and the file that is to be added as one image."""
    with writable_pieces({**parameters, "chunk": parameters["size"]}) as (directory, (source,)):
        yield directory, source


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    if mode.green:
        import eventlet

        eventlet.monkey_patch()
    with contextlib.ExitStack() as stack:
        reads = parameters["task"] == "get"
        if reads:
            directory, payload = readable_cluster(parameters)
        else:
            directory, payload = stack.enter_context(writable_cluster(parameters))
        os.environ.update(dog_environment(directory, {**parameters, "new": True}))
        import fastio
        from fastio.drivers import sheepdog

        fastio.patch(**parameters.get("settings", {}))
        store = store_of(sheepdog)
        if reads:
            measured, size, right = get(store, payload.sha256)
        else:
            measured, size, right = add(store, payload.path, directory, payload.sha256)
    return measured.result(bytes=size, verified=right and size == payload.size)


def reference(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One command for all of the image, from or to ``cat``."""
    task = "read" if parameters["task"] == "get" else "write"
    return reference_pipeline({**parameters, "task": task, "chunk": parameters["size"], "new": True})


def why_not() -> str:
    """Why the driver cannot run here; empty if it can."""
    return (
        "" if importlib.util.find_spec("glance_store") else "not installed: glance_store (the extra 'sheepdog' has it)"
    )
