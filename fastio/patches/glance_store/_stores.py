"""The chunk size in force, shared by the patches of glance_store's drivers.

A driver's chunk size is an attribute: of its class, or of the instance where ``configure_add``
copies an option into it; and several drivers are built anew for every operation. fastio therefore puts a
data descriptor on the class. It sees what ``configure_add`` assigns, and holds for every instance,
also for those that exist already.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from fastio import config, counters
from fastio.patching.known_code import Uses
from fastio.patching.registry import Target

#: The classes of glance_store's drivers, by their names in ``store_chunk_sizes``.
CLASSES = {
    "filesystem": "glance_store._drivers.filesystem:Store",
    "http": "glance_store._drivers.http:Store",
    "swift": "glance_store._drivers.swift.store:BaseStore",
    "s3": "glance_store._drivers.s3:Store",
    "rbd": "glance_store._drivers.rbd:Store",
    "cinder": "glance_store._drivers.cinder:Store",
    "vmware": "glance_store._drivers.vmware_datastore:Store",
}
#: Those that take no images.
READ_ONLY = ("http",)


def code_of(key: str) -> str:
    """Where upstream has a driver's attribute from, see ``Target.code``; empty if it is from there itself.

    The cinder driver was one module up to 4.2. It is a package since, which takes everything from its ``store``.
    """
    code = key.replace("._drivers.cinder:", "._drivers.cinder.store:")
    return "" if code == key else code


def explicit(driver: str) -> int | None:
    """The chunk size in bytes that fastio's own settings give for ``driver``; None if they give none."""
    return config.effective().store_chunk_size(driver)


def chunk_size(driver: str, default: int) -> int:
    """The chunk size in bytes of ``driver`` where glance_store has no option for it."""
    size = explicit(driver)
    return default if size is None else size


def size_told(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The size that is passed to ``add()``, among its arguments behind the image's data."""
    return args[0] if args else kwargs.get("image_size")


def is_at_most(size: Any, most: int) -> bool:
    """Whether an image is known to have no more than so many bytes.

    :param size: given to a driver or by one; 0, None or something else than a number where it is not known
    """
    return type(size) is int and 0 < size <= most


class Option(NamedTuple):
    """glance_store's own option of a chunk size."""

    name: str
    #: bytes per unit of the option's value
    unit: int = 1


def chosen_by_operator(store: Any, option: Option) -> bool:
    """Whether ``option`` of the store's backend was set, be it to the default value."""
    try:
        group, _ = _where(store, option)
        location = store.conf.get_location(option.name, group)
    except Exception:
        # If that is unknown, the value stays the one that the store assumed.
        return True
    return location is not None and location.location.name != "opt_default"


def _where(store: Any, option: Option) -> tuple[str, Any]:
    """The group that gives the store its option, and the value there.

    One of several backends has a separate group. glance_store makes None the default there, for the shared group's.
    """
    group = getattr(store, "backend_group", None) or "glance_store"
    value = store.conf[group][option.name]
    if value is None:
        group = "backend_defaults"
        value = store.conf[group][option.name]
    return group, value


class ChunkSize:
    """Stands for ``READ_CHUNKSIZE`` or the like on a driver's class.

    The order of precedence: fastio's setting for the driver, fastio's setting for all drivers, the operator's
    option or whatever else was assigned to the instance on purpose, fastio's default.
    """

    def __init__(self, stock: int, hook: Any, name: str, driver: str, default: int, option: Option | None) -> None:
        self._counts = counters.of(f"store_{driver}")
        self._stock = stock
        self._hook = hook
        self._name = name
        self._driver = driver
        self._default = default
        self._option = option
        #: store -> the size assigned last, and whether that is but the option's default: to ask the configuration takes
        #: longer than to open a file
        self._defaults: WeakKeyDictionary[Any, tuple[int, bool]] = WeakKeyDictionary()

    def __get__(self, store: Any, owner: type | None = None) -> int:
        assigned = None if store is None else vars(store).get(self._name)
        if not self._hook.active:
            return self._stock if assigned is None else assigned
        if store is not None:
            # Most drivers ask once for each image that they read or write.
            self._counts.took()
        size = explicit(self._driver)
        if size is not None:
            return size
        if assigned is not None and not self._is_default(store, assigned):
            return assigned
        return self._default

    def _is_default(self, store: Any, assigned: int) -> bool:
        """Whether ``assigned`` is but the default of the option, copied by ``configure_add``."""
        if self._option is None:
            return False
        last, is_default = self._defaults.get(store, (None, False))
        if last != assigned:
            is_default = not chosen_by_operator(store, self._option) and (
                assigned == _where(store, self._option)[1] * self._option.unit
            )
            self._defaults[store] = assigned, is_default
        return is_default

    def __set__(self, store: Any, value: int) -> None:
        # Options may have changed at a later assignment.
        self._defaults.pop(store, None)
        vars(store)[self._name] = value

    def __delete__(self, store: Any) -> None:
        try:
            del vars(store)[self._name]
        except KeyError:
            raise AttributeError(self._name) from None


def restore_write_size(store: Any) -> None:
    """Have the instance's ``WRITE_CHUNKSIZE`` be the operator's.

    ``configure_add`` copies it from ``READ_CHUNKSIZE``, which is what fastio says while it is patched.
    """
    own = vars(store)
    if "READ_CHUNKSIZE" in own:
        own["WRITE_CHUNKSIZE"] = own["READ_CHUNKSIZE"]


def make_configure_add(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Store.configure_add``: the write size stays the operator's, for when fastio is taken back."""

    def configure_add(self: Any) -> None:
        try:
            wrapped(self)
        finally:
            # Also where it fails after the sizes are set: the filesystem driver looks for its directories then.
            restore_write_size(self)

    return configure_add


#: Code that :func:`make_configure_add` relies on.
CONFIGURE_ADD = Uses("self", "READ_CHUNKSIZE chunk_size WRITE_CHUNKSIZE")


class Size(NamedTuple):
    """A chunk size that a driver's class has, in bytes."""

    #: where neither a setting nor the operator says otherwise
    ours: int
    stock: int
    #: the functions that read it, see ``Target.relies_on``
    readers: dict[str, Uses] = {}


def chunk_sizes(driver: str, option: Option | None = None, **sizes: Size) -> tuple[Target, ...]:
    """The targets of a driver's chunk sizes, by the names of the attributes.

    An option's value is assigned in ``configure_add``, which is a reader of all of them then.

    :param driver: name in ``store_chunk_sizes``
    :param option: glance_store's option that ``configure_add`` copies into the instance's attribute
    """

    def make(stock: Any, hook: Any) -> Any:
        """The descriptor that has fastio's chunk size while the patch is on."""
        name = hook.attribute.name
        return ChunkSize(stock, hook, name, driver, sizes[name].ours, option)

    def target(name: str, size: Size) -> Target:
        readers = size.readers if option is None else {**size.readers, "configure_add": CONFIGURE_ADD}
        key = f"{CLASSES[driver]}.{name}"
        return Target(key, make, relies_on=readers, code=code_of(key), stock=size.stock)

    return tuple(target(name, size) for name, size in sizes.items())
