"""Uploads of the suite ``glance``, and what they cost at the least.

Parameters: those of :mod:`benchmarks.suites.glance.workload` for uploads.

``reference-parts`` reads the image in pieces of 1 MiB (a copy, as that from the socket is), computes md5 and sha512 of
each piece, and writes it to the store's directory, one after the other in one thread. So its ``server_cpu_seconds`` are
what an upload costs without a server. ``reference-md5`` and ``reference-sha512`` read it and compute one hash.
"""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from typing import Any

from benchmarks.harness.modes import MIB, warmed
from benchmarks.harness.worker import digests, measure, random_payload, surroundings
from benchmarks.suites.glance import workload as glance


def parts(parameters: Mapping[str, Any], *names: str, written: bool = True) -> dict[str, Any]:
    """Copy and hash the image, and write it."""
    payload = warmed(random_payload(parameters["size"]))
    hashers = [hashlib.new(name, usedforsecurity=False) for name in names]
    glance.settle(parameters)
    place = surroundings()["access"]["images"] if written else None
    with open(payload.path, "rb", buffering=0) as source, tempfile.TemporaryFile(dir=place, buffering=0) as target:
        with measure() as found:
            while piece := source.read(MIB):
                for hasher in hashers:
                    hasher.update(piece)
                if written and target.write(piece) != len(piece):
                    raise RuntimeError("the file system did not take all of it")
            said = [hasher.hexdigest() for hasher in hashers]
        known = digests(payload)
        verified = said == [known.checksum if name == "md5" else known.multihash for name in names]
        if written:
            verified &= os.fstat(target.fileno()).st_size == payload.size
    return found.result(bytes=payload.size, verified=verified, server_cpu_seconds=found.cpu_seconds)


VARIANTS = {
    "transfer": glance.run,
    "prepare": glance.prepare,
    "reference-parts": lambda parameters: parts(parameters, "md5", "sha512"),
    "reference-md5": lambda parameters: parts(parameters, "md5", written=False),
    "reference-sha512": lambda parameters: parts(parameters, "sha512", written=False),
}
