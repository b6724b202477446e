"""``trace_requests``: the requests of glance-api, and what its controllers do.

``load_paste_app()`` returns glance-api's application, under eventlet and in any other server. This is the one place
that all of a request passes, and nothing else. ``glance.request`` has the method, the path, the request ids, the
status and the number of bytes sent. Within it, ``glance.<controller>.<action>`` is the time in which a controller
decides what to answer; for an upload, it includes the data. ``glance.body`` is the time in which the body is sent. If
a controller raises an error, for example one of the database, its text is that of the request.

The application is wrapped when the service builds it. Tracing that is switched on later records no requests.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target
from fastio.trace import spans
from fastio.trace.wsgi import traced


def make_load_paste_app(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``load_paste_app``."""

    def load_paste_app(*args: Any, **kwargs: Any) -> Any:
        return traced(wrapped(*args, **kwargs), "glance-api", "glance")

    return load_paste_app


def make_dispatch(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Resource.dispatch``."""

    def dispatch(self: Any, obj: Any, action: Any, *args: Any, **kwargs: Any) -> Any:
        outer = spans.current.get()
        if outer is None:
            return wrapped(self, obj, action, *args, **kwargs)
        try:
            if obj is not self.controller:
                return wrapped(self, obj, action, *args, **kwargs)
            with spans.begin(_name(type(obj), action)):  # type: ignore[arg-type]
                return wrapped(self, obj, action, *args, **kwargs)
        except Exception as error:
            outer.root.note(error)
            raise

    return dispatch


def _name(cls: type, action: Any) -> str:
    """``glance.image_data.download`` of ``ImageDataController`` and ``download``."""
    known = isinstance(action, str) and hasattr(cls, action)
    return f"glance.{_controller(cls.__name__, cls.__module__)}.{action if known else 'default'}"


@functools.lru_cache(maxsize=512)
def _controller(cls: str, module: str) -> str:
    short = cls.removesuffix("Controller") or module.rpartition(".")[2]
    return re.sub(r"(?<!^)(?=[A-Z])", "_", short).lower()


PATCH = Patch(
    __name__,
    summary="glance-api: each request, its controller and its body",
    targets=(
        Target(
            "glance.common.config:load_paste_app",
            make_load_paste_app,
            Uses("*_", "deploy loadapp"),
        ),
        Target(
            "glance.common.wsgi:Resource.dispatch",
            make_dispatch,
            Uses("self, obj, action, *args, **kwargs", "getattr default"),
        ),
    ),
)
