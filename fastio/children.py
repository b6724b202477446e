"""Patches a Python under ``fastio run``: the program, or one of its children.

A child is patched once it imports a library that fastio has patches for. Most children import none: nothing else is
imported here.
"""

from __future__ import annotations

import os
import sys

from fastio.patching import imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Settings that ask for something from the start of a process.
_AT_ONCE = ("FASTIO_TRACE",)
#: Modules that services are followed through, besides the libraries that have patches; see :mod:`fastio.service`.
_FOLLOWED = ("multiprocessing.spawn", "oslo_config.cfg", "oslo_log.log")
_started = False


def begin(at_once: bool) -> None:
    """Patch this Python: ``at_once``, or when the first of the libraries is imported."""
    patches = os.path.join(os.path.dirname(__file__), "patches")
    names = [*_FOLLOWED, *(name for name in os.listdir(patches) if "." not in name and not name.startswith("_"))]
    if at_once or any(name in sys.modules for name in names) or any(os.environ.get(name) for name in _AT_ONCE):
        # An exception would not end the program: site reports it, and goes on.
        _start(os._exit)
        return
    for name in names:
        # eventlet imports subprocess before it is complete itself.
        imports.when_imported(name, lambda _: imports.when_none_is_halfway(lambda: _start(sys.exit)))


def _start(end: Callable[[int], object]) -> None:
    global _started
    if _started:
        return
    _started = True
    from fastio import service

    try:
        service.start()
    except Exception as error:
        print(f"fastio: {error}", file=sys.stderr, flush=True)
        end(2)
