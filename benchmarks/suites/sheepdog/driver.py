"""Whole images through fastio's sheepdog driver for glance_store.

With the parameter ``task`` ``"get"`` the chunks of an image are thrown away, with ``"add"`` an image comes from a file,
with MD5 and SHA-512. The driver runs in a process in which everything is patched. Its reference has no Python in the
way: ``dog vdi read | cat >/dev/null``, or ``cat | dog vdi write``.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.backends import dog
from benchmarks.harness import modes
from benchmarks.harness.modes import Mode
from benchmarks.harness.worker import digest, digests, measure, pieces_of
from benchmarks.suites.sheepdog.cluster import ADDRESS, IMAGE, PORT, dog_environment, readable_cluster, writable_cluster

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


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    with contextlib.ExitStack() as stack:
        reads = parameters["task"] == "get"
        if reads:
            directory, payload = readable_cluster(parameters)
        else:
            whole = {**parameters, "chunk": parameters["size"]}
            directory, (payload,) = stack.enter_context(writable_cluster(whole))
        os.environ.update(dog_environment(directory, {**parameters, "new": True}))
        modes.enter(mode, parameters, (), ())
        from fastio.drivers import sheepdog

        store = store_of(sheepdog)
        with open(payload.path, "rb") as file, measure() as measured:
            if reads:
                size = sum(map(len, chunks_of(store)))
            else:
                _, size, _, multihash, _ = store.add(ADDED, file, payload.size, "sha512")
        if reads:
            # A second pass.
            right = digest(chunks_of(store)) == payload.sha256
        else:
            with open(dog.image_file(directory, ADDED), "rb") as image:
                right = digest(pieces_of(image)) == payload.sha256 and multihash == digests(payload).multihash
    return measured.result(bytes=size, verified=right and size == payload.size)
