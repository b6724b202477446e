"""``trace_stores``: the work of glance_store's drivers: ``store.<driver>.get``, ``.add`` and ``.delete``.

``get`` lasts until the last chunk has been taken, or until the data is closed. ``busy_ns`` is the driver's own part of
this time, and the rest is its consumer's. For ``add``, ``input_ns`` is how long it waited for the data that it was to
write.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from fastio.patches.glance_store import _stores
from fastio.patching.known_code import Uses
from fastio.patching.registry import Make, Patch, Target
from fastio.trace import spans, values
from fastio.trace.spans import Span, current
from fastio.trace.streams import Passed, watch


def _get(span: Span, get: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    passed = Passed(span, _got)
    before = current.get()
    current.set(span)
    began = spans.now()
    try:
        data, size = get(*args, **kwargs)
    except BaseException as error:
        span.fail(error)
        raise
    finally:
        passed.ns = spans.now() - began
        current.set(before)
    watched = watch(data, passed)
    if watched is data:
        passed.end(spans.OK)
    return watched, size


def _got(passed: Passed, outcome: str) -> None:
    found = passed.span.values
    found.update(bytes=passed.bytes, chunks=passed.chunks, busy_ns=passed.ns)
    if passed.waits:
        # Bytes of the open included; the request has them already.
        found["waits"] = passed.waits + passed.span.waits
        found["wait_ns"] = passed.wait_ns + passed.span.wait_ns
    passed.span.end(outcome)


def _add(span: Span, add: Callable[..., Any], image_id: Any, image_file: Any, *args: Any, **kwargs: Any) -> Any:
    passed = Passed(span)
    try:
        with span:
            try:
                return add(image_id, watch(image_file, passed), *args, **kwargs)
            finally:
                span.values.update(bytes=passed.bytes, chunks=passed.chunks, input_ns=passed.ns)
    except BaseException:
        if passed.failed and span.parent is not None:
            # Not the store's fault: who sends the data to the request has stopped.
            span.root.values["outcome"] = spans.ABORTED
        raise


def _delete(span: Span, delete: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with span:
        return delete(*args, **kwargs)


#: The recorder of a driver's method, and the code of the method that it relies on.
_METHODS: dict[str, tuple[Callable[..., Any], Uses]] = {
    "get": (_get, Uses("self, *_")),
    "add": (_add, Uses("self, image_id, image_file, *_")),
    "delete": (_delete, Uses("self, *_")),
}


def _maker(driver: str, method: str) -> Make:
    name, record = f"store.{driver}.{method}", _METHODS[method][0]

    def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
        """The wrapper of a driver's method."""

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not spans.is_on():
                return wrapped(self, *args, **kwargs)
            span = spans.begin(name, **_backend(self))
            return record(span, functools.partial(wrapped, self), *args, **kwargs)

        return call

    return make


def _backend(store: Any) -> dict[str, str]:
    """The name of a store, where there may be several of a driver."""
    name = getattr(store, "backend_group", None)
    return {"store": values.name(name)} if isinstance(name, str) else {}


def _targets() -> Iterator[Target]:
    for driver, cls in _stores.CLASSES.items():
        for method in _METHODS if driver not in _stores.READ_ONLY else ("get",):
            key = f"{cls}.{method}"
            yield Target(key, _maker(driver, method), _METHODS[method][1], code=_stores.code_of(key))
    # fastio's own driver, whose methods have decorators of glance_store.
    for method, (_, uses) in _METHODS.items():
        key = f"fastio.drivers.sheepdog:Store.{method}"
        yield Target(key, _maker("sheepdog", method), uses, code=f"glance_store.driver:Store.{method}")


PATCH = Patch(
    __name__,
    summary="glance_store: what its drivers get, add and delete",
    targets=tuple(_targets()),
)
