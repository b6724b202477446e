"""glance_store in this process, set up for running backends.

>>> with opened(backend.access()) as store:                       # doctest: +SKIP
...     added = store.add(b"data")
...     assert store.read(added.url) == b"data"
...     store.delete(added.url)

It goes the way glance goes: ``enabled_backends`` in oslo.config's global ``CONF``, ``create_multi_stores()``, and the
functions of :mod:`glance_store.multi_backend`, which look at no other configuration.
"""

import contextlib
import io
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from benchmarks.backends import backend

#: Seconds since an image of a store that is only read was changed.
AGE = 3600


class Added(NamedTuple):
    """The result of ``add_with_multihash()``."""

    url: str
    #: bytes
    size: int
    #: MD5, in hexadecimal
    checksum: str
    multihash: str
    metadata: dict[str, Any]


class Store:
    """A configured store of glance_store, by its identifier."""

    def __init__(self, identifier: str, access: Mapping[str, Any]) -> None:
        self.identifier = identifier
        #: of the backend
        self.access = access
        #: context of requests where none is given
        self.context = SimpleNamespace(**access["context"]) if "context" in access else None

    @property
    def driver(self) -> Any:
        """The driver object; for swift, s3 and rbd a new one each time, as glance_store makes one per operation."""
        from glance_store import multi_backend

        return multi_backend.get_store_from_store_identifier(self.identifier)

    def add(
        self,
        data: Any,
        image_id: str | None = None,
        size: int | None = None,
        *,
        hashing: str = "sha512",
        verifier: Any = None,
        context: Any = None,
    ) -> Added:
        """Add an image.

        :param data: bytes, or anything that ``add()`` of a driver takes: an object with ``read()``
        :param image_id: a new UUID by default
        :param size: in bytes; of ``data`` by default if that is bytes, else 0, which is glance's "unknown"
        :param hashing: algorithm of the multihash
        """
        from glance_store import multi_backend
        from oslo_config import cfg

        if isinstance(data, (bytes, bytearray, memoryview)):
            size = len(data) if size is None else size
            data = io.BytesIO(data)
        return Added(
            *multi_backend.add_with_multihash(
                cfg.CONF, image_id or str(uuid.uuid4()), data, size or 0, self.identifier, hashing,
                context=context or self.context, verifier=verifier,
            )
        )  # fmt: skip

    def place(self, data: bytes) -> str:
        """Put an image where :meth:`get` finds it, and return its URL; :meth:`add` does it unless the store only reads.

        Such a store's backend has ``place`` in its access, the directory and the URL where the directory is served.
        """
        place = self.access.get("place")
        if place is None:
            return self.add(data).url
        name = str(uuid.uuid4())
        path = Path(place["directory"], name)
        path.write_bytes(data)
        # The date of a new one would tell no versions apart.
        os.utime(path, (time.time() - AGE,) * 2)
        return f"{place['url']}/{name}"

    def get(self, url: str, offset: int = 0, chunk_size: int | None = None, context: Any = None) -> tuple[Any, int]:
        """The iterator of chunks and the size in bytes. ``chunk_size`` is the LENGTH of a partial read."""
        from glance_store import multi_backend

        context = context or self.context
        return multi_backend.get(url, self.identifier, offset=offset, chunk_size=chunk_size, context=context)

    def read(self, url: str, offset: int = 0, chunk_size: int | None = None) -> bytes:
        """The whole of what :meth:`get` gives."""
        return b"".join(self.get(url, offset, chunk_size)[0])

    def size(self, url: str, context: Any = None) -> int:
        """Bytes of the image."""
        from glance_store import multi_backend

        return multi_backend.get_size_from_uri_and_backend(url, self.identifier, context=context or self.context)

    def delete(self, url: str, context: Any = None) -> None:
        """Delete the image."""
        from glance_store import multi_backend

        multi_backend.delete(url, self.identifier, context=context or self.context)


@contextlib.contextmanager
def opened(access: Mapping[str, Any], identifier: str | None = None, **options: Any) -> Iterator[Store]:
    """The store of a running backend.

    Nothing of it is left in glance_store and in the global configuration afterwards. Blocks may be nested, with
    different identifiers; the store of the outermost one is the default.

    :param access: :meth:`benchmarks.backends.base.Backend.access`
    :param identifier: of the store in ``enabled_backends``; the backend's name by default
    :param options: glance_store options of its group, these win over the backend's
    """
    from glance_store import location

    identifier = identifier or access["backend"]
    kind = backend(access["backend"])
    options = {**access["options"], **options}
    with kind.in_client(access), configured(identifier, access["driver"], options) as conf:
        import glance_store

        try:
            glance_store.create_multi_stores(conf)
            if not any(identifier in stores for stores in location.SCHEME_TO_CLS_BACKEND_MAP.values()):
                # create_multi_stores() logs why and goes on.
                raise RuntimeError(f"glance_store could not set up {identifier}; its log says why")
            kind.after_stores(access, identifier)
            yield Store(identifier, {**access, "options": options})
        finally:
            for stores in location.SCHEME_TO_CLS_BACKEND_MAP.values():
                stores.pop(identifier, None)


@contextlib.contextmanager
def configured(identifier: str, driver: str, options: Mapping[str, Any]) -> Iterator[Any]:
    """oslo.config's global ``CONF`` with the store in ``enabled_backends`` and the options of its group."""
    import glance_store
    from oslo_config import cfg

    conf = cfg.CONF
    new = "enabled_backends" not in conf
    if new:
        conf.register_opt(cfg.DictOpt("enabled_backends", default={}))
    # Where glance has registered the option, it is None unless it is set.
    before = dict(conf.enabled_backends or {})
    if identifier in before:
        raise RuntimeError(f"store {identifier!r} is configured already")
    with contextlib.ExitStack() as stack:
        # Callbacks run in reverse: the options go first.
        if new:
            stack.callback(conf.unregister_opt, cfg.DictOpt("enabled_backends"))
            stack.callback(conf.clear_override, "enabled_backends")
        else:
            stack.callback(conf.set_override, "enabled_backends", before)
        conf.set_override("enabled_backends", {**before, identifier: driver})
        glance_store.register_store_opts(conf)
        if driver == "sheepdog":
            from fastio.drivers import sheepdog

            # The store itself registers them, but here they are set before.
            conf.register_opts(sheepdog._OPTIONS, group=identifier)
        for option, value in options.items():
            conf.set_override(option, value, group=identifier)
            stack.callback(_clear_override, conf, option, identifier)
        if not before:
            conf.set_override("default_backend", identifier, group="glance_store")
            stack.callback(conf.clear_override, "default_backend", group="glance_store")
        yield conf


def _clear_override(conf: Any, option: str, group: str) -> None:
    """Have the option be as if it had not been set: oslo.config itself goes on to say where it was set."""
    conf.clear_override(option, group=group)
    conf._get_opt_info(option, group).pop("location", None)


def snippet(access: Mapping[str, Any]) -> str:
    """The part of glance-api.conf that lets glance use the backend."""
    identifier = access["backend"]
    lines = [
        "[DEFAULT]", f"enabled_backends = {identifier}:{access['driver']}", "",
        "[glance_store]", f"default_backend = {identifier}", "", f"[{identifier}]",
    ]  # fmt: skip
    for name, value in access["options"].items():
        # An option that may be given several times has one line for each.
        lines += [f"{name} = {each}" for each in (value if isinstance(value, list) else [value])]
    return "\n".join(lines)
