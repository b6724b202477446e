"""Candidates that are broken on purpose, a module for each project: faults that a reviewer could miss."""

from . import cpython, eventlet, glance, glance_store, ironic, nova, oslo_concurrency
from .candidate import Broken

#: by the projects' names
BROKEN: dict[str, tuple[Broken, ...]] = {
    "eventlet": eventlet.BROKEN,
    "oslo.concurrency": oslo_concurrency.BROKEN,
    "glance_store": glance_store.BROKEN,
    "glance": glance.BROKEN,
    "cpython": cpython.BROKEN,
    "nova": nova.BROKEN,
    "ironic": ironic.BROKEN,
}
