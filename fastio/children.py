"""Patches a Python that a program under ``fastio run --children`` has started, once it imports what patches are for.

Most of them import nothing of that: so nothing else is imported here.
"""

import os
import sys
from collections.abc import Callable

from fastio.patching import imports

#: The variable that has the process id of the program itself, which is told if fastio is not installed there.
PROGRAM = "_FASTIO_PROGRAM"
#: Settings that ask for something from the start of a process.
_AT_ONCE = ("FASTIO_TRACE",)
#: What a service is followed through, besides the libraries that have patches; see :mod:`fastio.service`.
_FOLLOWED = ("multiprocessing.spawn", "oslo_config.cfg", "oslo_log.log")
_started = False


def wait() -> None:
    """Start as soon as one of the modules is imported; at once if one is already, or a setting asks for it."""
    patches = os.path.join(os.path.dirname(__file__), "patches")
    names = [*_FOLLOWED, *(name for name in os.listdir(patches) if "." not in name and not name.startswith("_"))]
    if any(name in sys.modules for name in names) or any(os.environ.get(name) for name in _AT_ONCE):
        # site says of a program that ends here that it has failed, and how.
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
