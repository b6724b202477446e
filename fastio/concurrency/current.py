"""Whether the running thread has a hub: the one answer for everything that waits.

In a thread with a hub, a wait in the kernel stops every greenlet of the thread. Code that waits there either waits
in the hub, or leaves the wait to upstream's code. In a thread without a hub there is no other greenlet to stop,
whatever was monkey patched.
"""

import sys
from typing import Any


def hub_of_thread() -> Any:
    """eventlet's hub of this thread, or None; none is made. A finalizer may ask, also while eventlet is imported."""
    threadlocal = getattr(sys.modules.get("eventlet.hubs"), "_threadlocal", None)
    return getattr(threadlocal, "hub", None)


def _of_gevent() -> Any:
    """gevent's hub of this thread, or None; none is made."""
    local = sys.modules.get("gevent._hub_local")
    find = getattr(local, "get_hub_if_exists", None)
    return None if find is None else find()


def hub() -> Any:
    """eventlet's hub that other greenlets of this thread wait for; None natively, and in the hub itself."""
    found = hub_of_thread()
    return None if found is None or _runs(found) else found


def in_hub() -> bool:
    """Whether this is the greenlet of eventlet's hub, which cannot wait for itself."""
    found = hub_of_thread()
    return found is not None and _runs(found)


def _runs(hub: Any) -> bool:
    return hub.greenlet is sys.modules["greenlet"].getcurrent()


def is_idle(hub: Any) -> bool:
    """Whether no other greenlet would run now if this one yielded to ``hub``: no timer is due, no descriptor is ready.

    False also for a hub that cannot be asked. Asking takes a tenth of the time of a trip through the hub.
    """
    try:
        # Two of eventlet's hubs have a select.epoll or a select.poll here. The others cannot be asked.
        poll = hub.poll.poll
        due = hub.closed or hub.next_timers or (hub.timers and hub.timers[0][0] <= hub.clock())
        return not due and not poll(0)
    except (AttributeError, LookupError, OSError, TypeError, ValueError):
        return False


def may_block() -> bool:
    """Whether a wait in the kernel stops no other greenlet: this thread has no hub, neither eventlet's nor gevent's."""
    return hub_of_thread() is None and _of_gevent() is None


def is_green() -> bool:
    """Whether greenlets may move bytes here: this thread has a hub, or eventlet has monkey patched the process."""
    return hub_of_thread() is not None or bool(getattr(sys.modules.get("eventlet.patcher"), "already_patched", None))


def threads_are_green() -> bool:
    """Whether the program's threads are greenlets: eventlet has monkey patched them."""
    patched = getattr(sys.modules.get("eventlet.patcher"), "is_monkey_patched", None)
    return patched is not None and bool(patched("thread") and patched("socket"))
