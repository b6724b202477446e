"""Backends of the benchmarks and the tests: real servers, and stand-ins for those that cannot be had."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.backends.base import Backend

#: Name of a backend -> its module and class. A new backend adds its line here.
BACKENDS = {
    "filesystem": "benchmarks.backends.filesystem:Filesystem",
    "http": "benchmarks.backends.http:Http",
    "swift": "benchmarks.backends.swift:Swift",
    "s3": "benchmarks.backends.s3:S3",
    "ceph": "benchmarks.backends.ceph:Ceph",
    "cinder": "benchmarks.backends.cinder:Cinder",
    "vmware": "benchmarks.backends.vmware:Vmware",
}

#: Backends of services that have such a backend themselves.
SERVICES = {
    "glance-32": "benchmarks.backends.glance:Glance32",
    "glance-33": "benchmarks.backends.glance:Glance33",
}


def backend(name: str) -> type[Backend]:
    """The class of a backend or a service. Raises ValueError that names those that there are."""
    known = {**BACKENDS, **SERVICES}
    if name not in known:
        raise ValueError(f"backend {name!r} is not one of {', '.join(known)}")
    module, _, attribute = known[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
