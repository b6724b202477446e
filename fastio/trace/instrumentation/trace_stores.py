"""``trace_stores``: the work of glance_store's drivers: ``store.<driver>.get``, ``.add`` and ``.delete``.

``get`` lasts until the last chunk has been taken, or until the data is closed. ``busy_ns`` is the driver's own part of
this time, and the rest is its consumer's. For ``add``, ``input_ns`` is how long it waited for the data that it was to
write.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from fastio import config
from fastio.patches.glance_store import _own, _stores
from fastio.patching.registry import Layer, Patch, Target
from fastio.trace import spans, values
from fastio.trace.spans import current
from fastio.trace.streams import Passed, watch


def _make_get(name: str) -> Callable[..., Any]:
    name = f"store.{name}.get"

    def make_get(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
        """The wrapper of a driver's ``get``."""

        def get(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not spans.is_on():
                return wrapped(self, *args, **kwargs)
            span = spans.begin(name, **_backend(self))
            passed = Passed(span, _got)
            before = current.get()
            current.set(span)
            began = spans.now()
            try:
                data, size = wrapped(self, *args, **kwargs)
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

        return get

    return make_get


def _got(passed: Passed, outcome: str) -> None:
    found = passed.span.values
    found.update(bytes=passed.bytes, chunks=passed.chunks, busy_ns=passed.ns)
    if passed.waits:
        # Those of the open included; the request has them already.
        found["waits"] = passed.waits + passed.span.waits
        found["wait_ns"] = passed.wait_ns + passed.span.wait_ns
    passed.span.end(outcome)


def _make_add(name: str) -> Callable[..., Any]:
    name = f"store.{name}.add"

    def make_add(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
        """The wrapper of a driver's ``add``."""

        def add(self: Any, image_id: Any, image_file: Any, *args: Any, **kwargs: Any) -> Any:
            if not spans.is_on():
                return wrapped(self, image_id, image_file, *args, **kwargs)
            span = spans.begin(name, **_backend(self))
            passed = Passed(span)
            try:
                with span:
                    try:
                        return wrapped(self, image_id, watch(image_file, passed), *args, **kwargs)
                    finally:
                        span.values.update(bytes=passed.bytes, chunks=passed.chunks, input_ns=passed.ns)
            except BaseException:
                if passed.failed and span.parent is not None:
                    # Not the store's fault: who sends the data to the request has stopped.
                    span.root.values["outcome"] = spans.ABORTED
                raise

        return add

    return make_add


def _make_delete(name: str) -> Callable[..., Any]:
    name = f"store.{name}.delete"

    def make_delete(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
        """The wrapper of a driver's ``delete``."""

        def delete(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not spans.is_on():
                return wrapped(self, *args, **kwargs)
            with spans.begin(name, **_backend(self)):
                return wrapped(self, *args, **kwargs)

        return delete

    return make_delete


_MAKE = {"get": _make_get, "add": _make_add, "delete": _make_delete}


@functools.cache
def _made(driver: str, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    return _MAKE[name](driver)(method, None)


def _of_own(driver: str, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The wrapper of a method of one of fastio's own drivers, which no patch changes."""
    if not spans.is_on() or PATCH.name in config.effective().disabled:
        return method
    return _made(driver, name, method)


_own.recording = _of_own


def _backend(store: Any) -> dict[str, str]:
    """The name of a store, where there may be several of a driver."""
    name = getattr(store, "backend_group", None)
    return {"store": values.name(name)} if isinstance(name, str) else {}


#: Driver as the names of spans have it: module, class.
_DRIVERS = {
    "filesystem": ("filesystem", "Store"),
    "http": ("http", "Store"),
    "swift": ("swift.store", "BaseStore"),
    "s3": ("s3", "Store"),
    "rbd": ("rbd", "Store"),
    "cinder": ("cinder", "Store"),
    "vmware": ("vmware_datastore", "Store"),
}
_READ_ONLY = ("http",)
_GET = """
    def get(self, *_):
        return _, _
"""


def _targets() -> Iterator[Target]:
    for name, (module, cls) in _DRIVERS.items():
        made = {"get": (_make_get(name), _GET)}
        if name not in _READ_ONLY:
            made["add"] = _make_add(name), "def add(self, image_id, image_file, *_): ..."
            made["delete"] = _make_delete(name), "def delete(self, *_): ..."
        for method, (make, contract) in made.items():
            key = f"glance_store._drivers.{module}:{cls}.{method}"
            yield Target(key, make, contract=contract, code=_stores.code_of(key))


PATCH = Patch(
    __name__,
    summary="glance_store: what its drivers get, add and delete",
    layer=Layer.TRACE,
    targets=tuple(_targets()),
)
