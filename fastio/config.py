"""The settings: one class drives keyword arguments, environment variables, oslo.config's options and the pages.

Keyword arguments of ``fastio.patch()`` take precedence over the environment, the environment over the options of the
service (``[fastio]``), and those over the defaults. The kill switch (``FASTIO=0``) takes precedence over everything,
because the operator who sets it cannot edit the service's code.
"""

import contextlib
import itertools
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from fastio import log
from fastio.errors import SettingError, meant

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

_UNITS = {
    "": 1, "b": 1,
    "k": KIB, "kib": KIB, "kb": 1000,
    "m": MIB, "mib": MIB, "mb": 1000**2,
    "g": GIB, "gib": GIB, "gb": 1000**3,
}  # fmt: skip
_SIZE = r"\s*(\d+)\s*([a-zA-Z]*)\s*"
_CODE = r"[\w.]+:[\w.]+@[0-9a-f]{16}"
_SWITCH = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}

#: The profile without the patches that change more than speed.
SAFE = "safe"
PROFILES = ("default", SAFE)
#: Values of ``on_error``: what becomes of a service with a bad setting.
REFUSE, UNPATCHED = "refuse", "unpatched"
#: Drivers of glance_store whose chunk size ``store_chunk_sizes`` may name, and the name of all of them.
STORES = ("filesystem", "http", "swift", "s3", "rbd", "cinder", "vmware", "sheepdog")
ALL_STORES = "*"
#: Their types in configuration files, where these are other names.
_TYPES = {"file": "filesystem", "https": "http", "vsphere": "vmware"}


def parse_size(value: int | str) -> int:
    """Return the number of bytes of a size such as ``65536``, ``"64KiB"``, ``"1 MiB"`` or ``"1M"``.

    ``K``, ``M``, ``G`` and ``KiB``, ``MiB``, ``GiB`` are powers of 1024. ``KB``, ``MB``, ``GB`` are powers of 1000, as
    in dd(1).

    :raises ValueError: for anything else
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(_SIZE, value, re.ASCII) if isinstance(value, str) else None
    if match is None or match[2].lower() not in _UNITS:
        raise ValueError("not a size")
    return int(match[1]) * _UNITS[match[2].lower()]


def format_size(size: int) -> str:
    """Return a size as people write it: ``1 MiB``, ``64 KiB``, ``1000``."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return str(size)


class Setting(NamedTuple):
    """The description of a setting."""

    default: Any
    help: str
    #: returns the value that a text or an argument stands for; ValueError, TypeError or AttributeError if there is none
    parse: Callable[[Any], Any]
    #: allowed values, in words
    allowed: str
    #: unit of its value; empty if it is no number
    unit: str = ""
    name: str = ""

    @property
    def env(self) -> str:
        """The environment variable."""
        return "FASTIO" if self.name == "enabled" else "FASTIO_" + self.name.upper()

    def read(self, value: Any, source: str) -> Any:
        """Return the checked value.

        :raises SettingError: if it is not allowed
        """
        try:
            return self.parse(value)
        except (ValueError, TypeError, AttributeError):
            raise SettingError(self.name, value, source, self.allowed) from None

    def show(self, value: Any) -> str:
        """Return the value as text, as people write it."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int):
            return format_size(value) if self.unit == "bytes" else str(value)
        if isinstance(value, Mapping):
            value = [f"{store}={format_size(size)}" for store, size in value.items()]
        return value if isinstance(value, str) else ", ".join(value or ()) or "-"


def _within(value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise ValueError("not allowed")
    return value


def _size(default: int, most: int, help: str) -> Any:
    text, least = format_size(default), 4 * KIB
    allowed = (
        f"a size from {format_size(least)} to {format_size(most)}, such as "
        f'{default}, "{text}" or "{text.replace(" ", "")}"'
    )
    return Setting(default, help, lambda value: _within(parse_size(value), least, most), allowed, "bytes")


def _count(default: int, most: int, unit: str, help: str) -> Any:
    def parse(value: Any) -> int:
        if isinstance(value, (bool, float)):
            raise ValueError("not a whole number")
        return _within(int(value), 1, most)

    return Setting(default, help, parse, f"a whole number from 1 to {most}", unit)


def _switch(default: bool, help: str) -> Any:
    def parse(value: Any) -> bool:
        if not isinstance(value, bool) and str(value).strip().lower() not in _SWITCH:
            raise ValueError("not a switch")
        return value if isinstance(value, bool) else _SWITCH[str(value).strip().lower()]

    return Setting(default, help, parse, "1, true, yes, on or 0, false, no, off")


def _choice(choices: tuple[str, ...], help: str) -> Any:
    def parse(value: Any) -> str:
        return choices[choices.index(str(value).strip().lower())]

    return Setting(choices[0], help, parse, " or ".join(choices))


def _parse_names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    if not all(isinstance(name, str) for name in value):
        raise TypeError("not names")
    return tuple(name.strip() for name in value if name.strip())


def _parse_code(value: Any) -> tuple[str, ...]:
    """Return the entries of ``accept_code``. Whether fastio has such functions is not looked at."""
    entries = _parse_names(value)
    if not all(re.fullmatch(_CODE, each, re.ASCII) for each in entries) or len({*entries}) < len(entries):
        raise ValueError("not code, or the same code twice")
    return entries


def _parse_store_sizes(value: Any) -> dict[str, int]:
    """Return ``{"s3": 262144}`` from a mapping, or from ``"s3=256KiB,rbd=8MiB"``."""
    pairs = [part.partition("=")[::2] for part in _parse_names(value)] if isinstance(value, str) else value.items()
    sizes: dict[str, int] = {}
    for store, text in pairs:
        store = store.strip()
        if store not in (*STORES, ALL_STORES) or store in sizes:
            raise ValueError("not a store")
        sizes[store] = _within(parse_size(text), 4 * KIB, 256 * MIB)
    return sizes


def _directory(help: str) -> Any:
    """A directory that can be written to, or created; nothing is created here."""

    def parse(value: Any) -> str | None:
        if value is None:
            return None
        if not str(value).strip() or "\0" in os.fspath(value):
            raise ValueError("not a path")
        found = path = os.path.abspath(os.fspath(value))
        while not os.path.lexists(found) and found != os.path.dirname(found):
            found = os.path.dirname(found)
        if not os.path.isdir(found) or not os.access(found, os.W_OK | os.X_OK):
            raise ValueError("not a directory")
        return path

    return Setting(None, help, parse, "a directory that can be written to, or created")


def is_trusted(found: os.stat_result) -> bool:
    """Return whether only this user and root can exchange the files of a directory."""
    return found.st_uid in (0, os.geteuid()) and bool(not found.st_mode & 0o022 or found.st_mode & stat.S_ISVTX)


#: Settings that a service's configuration files give, each with its source.
Options = Mapping[str, tuple[Any, str]]


class Settings(NamedTuple):
    """The settings in effect, and in ``sources`` where each of them came from.

    A field's default is the :class:`Setting` that it is read by, see :data:`SETTINGS`.
    """

    # The defaults of the first three were measured: doc/source/measuring/benchmarks.rst, "The defaults".
    chunk_size: int = _size(
        MIB, 256 * MIB, "Bytes requested in one read, and passed to one write. More than the pipe holds has no effect."
    )
    pipe_size: int = _size(
        MIB,
        GIB,
        "Capacity requested from the kernel for a pipe that carries much data. A pipe is never made smaller. If the "
        "kernel refuses (pipe-max-size, pipe-user-pages-soft), half of it is tried, and so on. Active transfers share "
        "it, at least 64 KiB each. All pipes of a process together have at most four times as much.",
    )
    yield_bytes: int = _size(
        MIB,
        256 * MIB,
        "Bytes that all transfers of a hub together move before the hub runs other greenlets. The active "
        "transfers share it equally: at least 64 KiB for each, and 1 MiB for an image. communicate() moves as much as "
        "its share on each of a child's pipes.",
    )
    store_chunk_sizes: Mapping[str, int] = Setting(
        {},
        "Bytes that drivers of glance_store read and write in one step, whatever their own options say. Without it, a "
        "driver uses glance_store's own option if there is one and the operator has set it, and otherwise fastio's "
        "default.",
        _parse_store_sizes,
        f"sizes from {format_size(4 * KIB)} to {format_size(256 * MIB)} of drivers, such as "
        f'"s3=256KiB,rbd=8MiB", each at most once; the drivers are {", ".join(STORES)}, and {ALL_STORES} is all others',
        "bytes",
    )  # type: ignore[assignment]
    transfers: int = _count(
        256,
        65536,
        "transfers",
        "Downloads of a process that glance_slow_clients sends concurrently. Each holds two descriptors, and all "
        "together at most half of those that the process may have. If a store's images are not files, each takes "
        "memory: three chunks of the store each, at least 1 MiB and a chunk, and all together at most 512 KiB times "
        "this number. Downloads beyond this hold their workers, same as upstream.",
    )
    trace: str | None = _directory(
        "Directory for the files of a trace: how long each request and each transfer took, and what failed. "
        "Without it, nothing is traced, and no tracing code is in place."
    )
    profile: str = _choice(
        PROFILES,
        "Which patches are applied without being named. The profile safe leaves out those that change more than "
        "speed, all fixes among them.",
    )
    disabled: tuple[str, ...] = Setting(
        (),
        "Patches that are not applied.",
        _parse_names,
        "names of patches, separated by commas (see fastio.names()); or all, which leaves only what a trace needs",
    )  # type: ignore[assignment]
    also: tuple[str, ...] = Setting(
        (),
        "Patches that are applied besides those of the profile.",
        _parse_names,
        "names of patches, separated by commas (see fastio.names())",
    )  # type: ignore[assignment]
    accept_code: tuple[str, ...] = Setting(
        (),
        "Code that fastio does not know and that this site has read, such as a distribution's fixes. Patches are "
        "in effect with exactly this code as well, and take it for that of the newest known release that is not newer "
        "than the installed one.",
        _parse_code,
        "functions that patches rely on, each once, as fastio status prints them, separated by commas, such as "
        '"eventlet.green.os:write@0123456789abcdef"',
    )  # type: ignore[assignment]
    run_dir: str | None = _directory(
        "Directory in which each process keeps two files: its status, for fastio status --pid, and its counts, "
        "for the textfile collector of Prometheus's node exporter. Best in memory, such as below /run. It has to be "
        "the user's own or root's, and others must not be able to exchange files in it."
    )
    enabled: bool = _switch(True, "The kill switch: with FASTIO=0, fastio.patch() does nothing.")
    on_error: str = _choice(
        (REFUSE, UNPATCHED),
        "How a service that is started with a bad setting behaves: it refuses to start, or it starts "
        "unpatched and logs the error. fastio.patch() in a program always raises an error.",
    )
    sources: Mapping[str, str] = MappingProxyType({})

    def store_chunk_size(self, driver: str) -> int | None:
        """Return the chunk size of a driver of glance_store; None if no setting gives one."""
        return self.store_chunk_sizes.get(driver, self.store_chunk_sizes.get(ALL_STORES))


SETTINGS: tuple[Setting, ...] = tuple(
    setting._replace(name=name) for name, setting in Settings._field_defaults.items() if isinstance(setting, Setting)
)
_NAMES = [setting.name for setting in SETTINGS]


def resolve(
    arguments: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
    options: Options | None = None,
) -> Settings:
    """Check and merge ``arguments`` (of ``patch()``), the environment, the service's options and the defaults.

    :param options: values with their sources; by default those that were put in effect last
    :raises SettingError: for an unknown name or a value that is not allowed
    """
    environ = os.environ if environ is None else environ
    options = _options if options is None else options
    for name, value in arguments.items():
        if name not in _NAMES:
            allowed = "one of the settings " + ", ".join(_NAMES)
            raise SettingError(name, value, "keyword argument", allowed, meant(name, _NAMES))
    switched_off = is_off(environ)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for setting in SETTINGS:
        name = setting.name
        if name in arguments and not (switched_off and name == "enabled"):
            value, source = arguments[name], "keyword argument"
        elif environ.get(setting.env, "").strip():
            value, source = environ[setting.env], f"environment {setting.env}"
        else:
            value, source = options.get(name, (setting.default, "default"))
        try:
            values[name], sources[name] = setting.read(value, source), source
        except SettingError:
            # An operator who switches fastio off is not kept from it by another setting.
            if not switched_off:
                raise
            values[name], sources[name] = setting.default, "default"
    return Settings(**values, sources=sources)


def is_off(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether the kill switch is used: then other settings are not refused, so that they cannot prevent it."""
    environ = os.environ if environ is None else environ
    return _SWITCH.get(environ.get("FASTIO", "").strip().lower()) is False


def on_error(environ: Mapping[str, str] | None = None, options: Options | None = None) -> str:
    """Return the setting of that name, also where another setting is bad; if it is bad itself, its default."""
    environ = os.environ if environ is None else environ
    option, _ = (_options if options is None else options).get("on_error", ("", ""))
    value = environ.get("FASTIO_ON_ERROR", "").strip() or option
    return value if value in (REFUSE, UNPATCHED) else REFUSE


_effective: Settings | None = None
#: options of the service's configuration files, with the source of each
_options: Options = {}
#: set by commands that only report: they create no directories and write no files
only_reporting = False


def effective() -> Settings:
    """Return the settings in effect: those of the last ``patch()``, and before it those of the environment."""
    return _effective if _effective is not None else resolve({})


def in_force() -> Settings | None:
    """Return what ``put_in_force`` was last given."""
    return _effective


def put_in_force(settings: Settings | None) -> None:
    """Make ``settings`` the ones that the patches read from now on."""
    global _effective
    _effective = settings


def options() -> Options:
    """Return what ``put_options`` was last given."""
    return _options


def put_options(options: Options) -> None:
    """Use ``options`` for all later ``resolve()`` calls."""
    global _options
    _options = options


# oslo.config: ``oslo-config-generator --namespace fastio`` prints the options; ``fastio.patch(conf=CONF)`` reads them.

GROUP = "fastio"


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the options by group, for the entry point ``oslo.config.opts``."""
    from oslo_config import cfg

    # Text, and without defaults: the one parser and the one place of defaults are here.
    options = [
        cfg.StrOpt(
            setting.name,
            help=f"{setting.help} Allowed: {setting.allowed}.",
            sample_default=str(setting.default).lower() if isinstance(setting.default, bool)
            else setting.show(setting.default) if isinstance(setting.default, int) else "<none>",
            # They count at once when a service mutates its configuration at SIGHUP.
            mutable=True,
        )
        for setting in SETTINGS
    ]  # fmt: skip
    return [(GROUP, options)]


def read_options(conf: Any) -> dict[str, tuple[Any, str]] | None:
    """Return the settings that ``conf`` has, with where each was found, and log unknown options of its files once.

    None without a ``conf``.
    """
    if conf is None:
        return None
    for group, options in list_opts():
        conf.register_opts(options, group=group)
    found = {}
    for name in _NAMES:
        value = conf[GROUP][name]
        if value is not None:
            location = conf.get_location(name, GROUP)
            where = location.detail if location is not None and location.detail else "set by the program"
            found[name] = (value, f"oslo.config [{GROUP}] {name} ({where})")
    warn_of_unknown(_unknown_options_of(conf))
    return found


def files_of(conf: Any) -> list[str]:
    """Return the files that ``conf`` has read, in their order; none, if it has not been called yet."""
    if "config_file" not in conf:
        return []
    import glob

    directories = (sorted(glob.glob(os.path.join(each, "*.conf"))) for each in conf.config_dir or [])
    return [*(conf.config_file or []), *itertools.chain.from_iterable(directories)]


#: the configuration of a service that is only asked about; None in a service
asked_about: Any = None


def stores(conf: Any = None) -> frozenset[str]:
    """Return the drivers of the service's stores; none if it has no configuration files, or is not glance.

    :param conf: an oslo.config object, by default that of the service
    """
    conf = conf or asked_about or getattr(sys.modules.get("oslo_config.cfg"), "CONF", None)
    try:
        if not files_of(conf):
            return frozenset()
        backends = getattr(conf, "enabled_backends", None)
        if isinstance(backends, dict) and backends:
            types = [*backends.values()]
        else:
            types = [*conf.glance_store.stores, conf.glance_store.default_store]
    except Exception:
        # The service reports bad options itself.
        return frozenset()
    return frozenset(_TYPES.get(each, each) for each in types if each)


def _unknown_options_of(conf: Any) -> Iterator[str]:
    """Yield a line for each option in the files that ``conf`` has read."""
    from oslo_config import cfg

    for path in files_of(conf):
        sections: dict[str, dict[str, Any]] = {}
        # The service has read the file before, and has reported it if it could not.
        with contextlib.suppress(OSError, cfg.ParseError):
            cfg.ConfigParser(path, sections).parse()
        given = {name for section, options in sections.items() if section.lower() == GROUP for name in options}
        for name in sorted(given.difference(_NAMES)):
            yield f"oslo.config [{GROUP}] {name} ({path}): there is no such option{meant(name, _NAMES)}"


# Variables and options whose names fastio does not know

#: Beginnings of variables that other programs of the project read: the load generator, the suites and the tests.
_OF_OTHERS = ("FASTIO_BENCHMARK_", "FASTIO_LOAD_", "FASTIO_TEST_", "FASTIO_UPSTREAM_")
_unknown_options: tuple[str, ...] = ()
_warned: set[str] = set()


def unknown() -> list[str]:
    """Return a line for each of them."""
    known = [setting.env for setting in SETTINGS]
    variables = [
        f"environment {name}: there is no such setting{meant(name, known)}"
        for name in sorted(os.environ)
        if name.startswith("FASTIO_") and name not in known and not name.startswith(_OF_OTHERS)
    ]
    return [*variables, *_unknown_options]


def warn_of_unknown(options: Iterable[str] | None = None) -> None:
    """Log each of them, once in a process.

    :param options: the lines about options of the service's files, by default those of the last call
    """
    global _unknown_options
    if options is not None:
        _unknown_options = tuple(options)
    for text in unknown():
        if text not in _warned:
            _warned.add(text)
            log.log(log.WARNING, "fastio: %s", text)
