"""The settings: one table drives keyword arguments, environment variables, oslo.config's options and defaults.

Keyword arguments of ``fastio.patch()`` take precedence over the environment, the environment over the options of the
service (``[fastio]``, see :mod:`fastio.opts`), and those over the defaults. The kill switch (``FASTIO=0``) takes
precedence over everything, because the operator who sets it cannot edit the service's code.
"""

import os
import re
import stat
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

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
_SIZE = re.compile(r"\s*(\d+)\s*([a-zA-Z]*)\s*", re.ASCII)
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


def parse_size(value: int | str) -> int:
    """Return the number of bytes of a size such as ``65536``, ``"64KiB"``, ``"1 MiB"`` or ``"1M"``.

    ``K``, ``M``, ``G`` and ``KiB``, ``MiB``, ``GiB`` are powers of 1024. ``KB``, ``MB``, ``GB`` are powers of 1000, as
    in dd(1).

    :raises ValueError: for anything else
    """
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("not a size")
    if isinstance(value, int):
        return value
    match = _SIZE.fullmatch(value)
    if match is None or match[2].lower() not in _UNITS:
        raise ValueError("not a size")
    return int(match[1]) * _UNITS[match[2].lower()]


def format_size(size: int) -> str:
    """A size as people write it: ``1 MiB``, ``64 KiB``, ``1000``."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return str(size)


#: The profile without the patches that change more than speed.
SAFE = "safe"
PROFILES = ("default", SAFE)

#: Drivers of glance_store whose chunk size ``store_chunk_sizes`` may name.
STORES = ("filesystem", "http", "swift", "s3", "rbd", "cinder", "vmware", "sheepdog")

_STORE_CHUNK_MINIMUM = 4 * KIB
_STORE_CHUNK_MAXIMUM = 256 * MIB


def _parse_count(value: Any) -> int:
    if isinstance(value, (bool, float)):
        raise ValueError("not a whole number")
    return int(value)


def _parse_store_sizes(value: Any) -> dict[str, int]:
    """``{"s3": 262144}`` from a mapping, or from ``"s3=256KiB,rbd=8MiB"``."""
    if isinstance(value, str):
        pairs = [part.partition("=")[::2] for part in value.split(",") if part.strip()]
    elif isinstance(value, Mapping):
        pairs = list(value.items())
    else:
        raise TypeError("neither a mapping nor text")
    sizes: dict[str, int] = {}
    for store, text in pairs:
        store = store.strip()
        size = parse_size(text)
        if store not in STORES or store in sizes or not _STORE_CHUNK_MINIMUM <= size <= _STORE_CHUNK_MAXIMUM:
            raise ValueError("not the size of a store")
        sizes[store] = size
    return sizes


def _parse_switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError("not a switch")


#: What becomes of a service with a bad setting.
REFUSE, UNPATCHED = "refuse", "unpatched"


def _parse_policy(value: Any) -> str:
    if value not in (REFUSE, UNPATCHED):
        raise ValueError("not a policy")
    return str(value)


def _parse_names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    names = tuple(name.strip() if isinstance(name, str) else _no_name(name) for name in value)
    return tuple(name for name in names if name)


def _no_name(value: Any) -> str:
    raise TypeError(f"{value!r} is no name")


def _parse_profile(value: Any) -> str:
    if str(value).strip().lower() not in PROFILES:
        raise ValueError("not a profile")
    return str(value).strip().lower()


def _parse_directory(value: Any) -> str:
    """The absolute path of a directory that can be written to, or made; nothing is made here."""
    if not str(value).strip() or "\0" in os.fspath(value):
        raise ValueError("not a path")
    found = path = os.path.abspath(os.fspath(value))
    while not os.path.lexists(found) and found != os.path.dirname(found):
        found = os.path.dirname(found)
    if not os.path.isdir(found) or not os.access(found, os.W_OK | os.X_OK):
        raise ValueError("not a directory")
    return path


#: Longest path of a directory in which a socket can be: the kernel has 108 bytes for its path.
_SOCKET_DIRECTORY = 60


def _parse_private_directory(value: Any) -> str:
    """The same of one that only this user can enter."""
    path = _parse_directory(value)
    if len(os.fsencode(path)) > _SOCKET_DIRECTORY or os.path.lexists(path) and not is_private(path):
        raise ValueError("not private")
    return path


def is_private(directory: str) -> bool:
    """Whether nobody else can enter the directory; root may use a service's."""
    found = os.lstat(directory)
    own = found.st_uid == os.geteuid() or os.geteuid() == 0
    return stat.S_ISDIR(found.st_mode) and own and not found.st_mode & 0o077


def split_address(text: str) -> tuple[str, int]:
    """The IP address and the port of ``127.0.0.1:8125`` or ``[::1]:8125``; a name would have to be looked up."""
    host, _, port = str(text).strip().rpartition(":")
    inner = host.removeprefix("[").removesuffix("]")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16 or (":" in inner) == (inner == host):
        raise ValueError("not an address")
    import _socket

    try:
        _socket.inet_pton(_socket.AF_INET6 if ":" in inner else _socket.AF_INET, inner)
    except OSError:
        raise ValueError("not an address") from None
    return inner, int(port)


def _parse_address(value: Any) -> str:
    split_address(value)
    return str(value).strip()


def _parse_opentelemetry(value: Any) -> bool:
    wanted = _parse_switch(value)
    if wanted:
        from importlib.util import find_spec

        if find_spec("opentelemetry") is None or find_spec("opentelemetry.metrics") is None:
            raise ValueError("not installed")
    return wanted


def _parse_seconds(value: Any) -> int:
    return _parse_count(value)


def _parse_file(value: Any) -> str:
    """The absolute path of a file that can be read."""
    path = os.path.abspath(os.fspath(value))
    if not str(value).strip() or "\0" in path or not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise ValueError("not a file")
    return path


class Setting(NamedTuple):
    """One row of the table."""

    name: str
    env: str
    default: Any
    parse: Callable[[Any], Any]
    allowed: str
    help: str
    minimum: int | None = None
    maximum: int | None = None

    @property
    def unit(self) -> str:
        """What its value counts; empty if it is no number."""
        if self.parse is _parse_seconds:
            return "seconds"
        if self.parse is _parse_count:
            return self.name
        return "bytes" if self.parse in (parse_size, _parse_store_sizes) else ""

    def read(self, value: Any, source: str) -> Any:
        """The checked value, or SettingError."""
        if value is None and self.default is None:
            return None
        try:
            parsed = self.parse(value)
        except (ValueError, TypeError, AttributeError):
            raise SettingError(self.name, value, source, self.allowed) from None
        if self.minimum is not None and parsed < self.minimum or self.maximum is not None and parsed > self.maximum:
            raise SettingError(self.name, value, source, self.allowed)
        return parsed


def _size_setting(name: str, default: int, minimum: int, maximum: int, help: str) -> Setting:
    allowed = (
        f"a size from {format_size(minimum)} to {format_size(maximum)}, such as {default}, "
        f'"{format_size(default)}" or "{format_size(default).replace(" ", "")}"'
    )
    return Setting(name, "FASTIO_" + name.upper(), default, parse_size, allowed, help, minimum, maximum)


#: The defaults of the first three sizes come from ``benchmarks/suites/sweep/bench_sweep.py`` (chunk x pipe x yield,
#: throughput and the lateness of a heartbeat greenlet); its table is in doc/source/measuring/benchmarks.rst.
SETTINGS = (
    _size_setting(
        "chunk_size", MIB, 4 * KIB, 256 * MIB,
        "Bytes requested in one read, and passed to one write. More than the pipe holds has no effect.",
    ),
    _size_setting(
        "pipe_size", MIB, 4 * KIB, GIB,
        "Capacity requested from the kernel for a pipe that carries much data. A pipe is never made smaller. If "
        "the kernel refuses (pipe-max-size, pipe-user-pages-soft), half of it is tried, and so on. "
        "Active transfers share it, at least 64 KiB each. All pipes of a process together have at most four times as "
        "much.",
    ),
    _size_setting(
        "yield_bytes", MIB, 4 * KIB, 256 * MIB,
        "Bytes that all transfers of a hub together move before the hub runs other greenlets. The active transfers "
        "share it equally: at least 64 KiB for each, and 1 MiB for an image. communicate() moves as much as its "
        "share on each of a child's pipes.",
    ),
    Setting(
        "store_chunk_size", "FASTIO_STORE_CHUNK_SIZE", None, parse_size,
        f"a size from {format_size(_STORE_CHUNK_MINIMUM)} to {format_size(_STORE_CHUNK_MAXIMUM)}, such as "
        '"1 MiB" or "256KiB"',
        "Bytes that glance_store's drivers read and write at a time, whatever their own options say. Without it, a "
        "driver uses glance_store's own option if there is one and the operator has set it, and otherwise fastio's "
        "default.",
        _STORE_CHUNK_MINIMUM, _STORE_CHUNK_MAXIMUM,
    ),
    Setting(
        "store_chunk_sizes", "FASTIO_STORE_CHUNK_SIZES", {}, _parse_store_sizes,
        f"sizes from {format_size(_STORE_CHUNK_MINIMUM)} to {format_size(_STORE_CHUNK_MAXIMUM)} of drivers, such as "
        '"s3=256KiB,rbd=8MiB", each at most once; the drivers are ' + ", ".join(STORES),
        "The same for single drivers of glance_store. Takes precedence over store_chunk_size.",
    ),
    Setting(
        "transfers", "FASTIO_TRANSFERS", 256, _parse_count, "a number from 1 to 65536",
        "Downloads of a process that glance_slow_clients sends at a time. Each holds two descriptors, and all together "
        "at most half of those that the process may have. Those beyond this hold their workers, as upstream.",
        1, 65536,
    ),
    _size_setting(
        "transfer_memory", 128 * MIB, 4 * MIB, 64 * GIB,
        "Memory of a process for images that glance_slow_clients sends from stores whose images are not files: three "
        "chunks of the store for each download, at least 1 MiB and a chunk. Downloads beyond this hold their workers, "
        "as upstream.",
    ),
    Setting(
        "trace", "FASTIO_TRACE", None, _parse_directory,
        "a directory that can be written to, or created",
        "Directory for the files of a trace: how long each request and each transfer took, and what failed. Without "
        "it, nothing is traced, and no tracing code is in place.",
    ),
    _size_setting(
        "trace_buffer", 32 * MIB, 128 * KIB, 2 * GIB,
        "Memory of a process for events that wait to be written to the trace, 512 bytes for each. Events beyond this "
        "are lost, and counted.",
    ),
    _size_setting(
        "trace_file_size", 64 * MIB, 64 * KIB, 16 * GIB,
        "Size of one file of the trace in bytes. Then the process goes on in a new file.",
    ),
    _size_setting(
        "trace_total_size", GIB, 128 * KIB, 1024 * GIB,
        "Size of all trace files of one process in bytes. Beyond this, its oldest files are deleted, and their events "
        "count as lost.",
    ),
    Setting("trace_context", "FASTIO_TRACE_CONTEXT", False, _parse_switch,
            "1, true, yes, on or 0, false, no, off",
            "While there is a trace, requests that urllib3 sends, also those of requests and boto3, have the headers "
            "traceparent and tracestate of W3C's Trace Context, so that other tracers see what belongs together."),
    Setting("profile", "FASTIO_PROFILE", "default", _parse_profile, " or ".join(PROFILES),
            "Which patches are applied without being named. The profile safe leaves out those that change more than "
            "speed, all fixes among them."),
    Setting("disabled", "FASTIO_DISABLED", (), _parse_names,
            "names of patches, separated by commas (see fastio.names()); or all, which leaves only what a trace needs",
            "Patches that are not applied."),
    Setting("also", "FASTIO_ALSO", (), _parse_names,
            "names of patches, separated by commas (see fastio.names())",
            "Patches outside the default that are applied as well. They change what programs written for upstream may "
            "rely on."),
    Setting("site_fingerprints", "FASTIO_SITE_FINGERPRINTS", None, _parse_file,
            "a file that fastio fingerprint add has written",
            "File with the code that this site has read and signed, such as a distribution's fixes. Patches are in "
            "effect with this code as well."),
    Setting("verbose", "FASTIO_VERBOSE", False, _parse_switch,
            "1, true, yes, on or 0, false, no, off",
            "A line in the log for each call: that a patch took it, or why it went to upstream's code. For looking "
            "into something, not for a busy service."),
    Setting("run_dir", "FASTIO_RUN_DIR", None, _parse_private_directory,
            f"a directory of at most {_SOCKET_DIRECTORY} characters that only the service's user can enter (mode "
            "0700), or that can be created",
            "Directory in which each process of the service has a socket, for fastio status --pid, and a file with its "
            "counts, so that the endpoint for Prometheus has those of all processes. Best in memory, such as below "
            "/run."),
    Setting("metrics_textfile", "FASTIO_METRICS_TEXTFILE", None, _parse_directory,
            "a directory that can be written to, or created",
            "Directory of the textfile collector of Prometheus's node exporter, in which each process has a file."),
    Setting("metrics_statsd", "FASTIO_METRICS_STATSD", None, _parse_address,
            'an IP address and a port, such as "127.0.0.1:8125" or "[::1]:8125"',
            "Address of a statsd, to which each process sends its counts by UDP."),
    Setting("metrics_opentelemetry", "FASTIO_METRICS_OPENTELEMETRY", False, _parse_opentelemetry,
            "1, true, yes, on or 0, false, no, off; on only where opentelemetry-api is installed",
            "Counters for the OpenTelemetry SDK that the program sets up."),
    Setting("metrics_interval", "FASTIO_METRICS_INTERVAL", 10, _parse_seconds, "a whole number from 1 to 3600",
            "Time from one file or datagram with counts to the next.", 1, 3600),
    Setting("enabled", "FASTIO", True, _parse_switch,
            "1, true, yes, on or 0, false, no, off", "The kill switch: with FASTIO=0, fastio.patch() does nothing."),
    Setting("on_error", "FASTIO_ON_ERROR", REFUSE, _parse_policy, f"{REFUSE} or {UNPATCHED}",
            "What becomes of a service that is started with a bad setting: it refuses to start, or it starts unpatched "
            "and says so. fastio.patch() in a program always raises an error."),
)  # fmt: skip

#: Those with which a process tells others what it does.
PUBLISHING = ("run_dir", "metrics_textfile", "metrics_statsd", "metrics_opentelemetry")

#: Settings that a service's configuration files give, each with its source.
Options = Mapping[str, tuple[Any, str]]


class Settings(NamedTuple):
    """The settings in effect, and in ``sources`` where each of them came from."""

    chunk_size: int
    pipe_size: int
    yield_bytes: int
    store_chunk_size: int | None
    store_chunk_sizes: Mapping[str, int]
    transfers: int
    transfer_memory: int
    trace: str | None
    trace_buffer: int
    trace_file_size: int
    trace_total_size: int
    trace_context: bool
    profile: str
    disabled: tuple[str, ...]
    also: tuple[str, ...]
    site_fingerprints: str | None
    verbose: bool
    run_dir: str | None
    metrics_textfile: str | None
    metrics_statsd: str | None
    metrics_opentelemetry: bool
    metrics_interval: int
    enabled: bool
    on_error: str
    sources: Mapping[str, str] = MappingProxyType({})


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
    known = [setting.name for setting in SETTINGS]
    for name, value in arguments.items():
        if name not in known:
            allowed = "one of the settings " + ", ".join(known)
            raise SettingError(name, value, "keyword argument", allowed, meant(name, known))
    switched_off = is_off(environ)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for setting in SETTINGS:
        if setting.name in arguments and not (switched_off and setting.name == "enabled"):
            source, value = "keyword argument", arguments[setting.name]
        elif environ.get(setting.env, "").strip():
            source, value = f"environment {setting.env}", environ[setting.env]
        elif setting.name in options:
            value, source = options[setting.name]
        else:
            source, value = "default", setting.default
        try:
            values[setting.name] = setting.read(value, source)
        except SettingError:
            # An operator who switches fastio off is not kept from it by another setting.
            if not switched_off:
                raise
            values[setting.name], source = setting.default, "default"
        sources[setting.name] = source
    return Settings(**values, sources=sources)


def is_off(environ: Mapping[str, str] | None = None) -> bool:
    """Whether the kill switch is used: then other settings are not refused, so that they do not get in its way."""
    environ = os.environ if environ is None else environ
    return environ.get("FASTIO", "").strip().lower() in _FALSE


def on_error(environ: Mapping[str, str] | None = None, options: Options | None = None) -> str:
    """The setting of that name, also where another setting is bad; if it is bad itself, its default."""
    environ = os.environ if environ is None else environ
    options = _options if options is None else options
    option, _ = options.get("on_error", ("", ""))
    value = environ.get("FASTIO_ON_ERROR", "").strip() or option
    return value if value in (REFUSE, UNPATCHED) else REFUSE


_effective: Settings | None = None
#: what the service's configuration files say, with the source of each
_options: Options = {}


def effective() -> Settings:
    """Return the settings in effect: those of the last ``patch()``, and before it those of the environment."""
    return _effective if _effective is not None else resolve({})


def in_force() -> Settings | None:
    """What ``put_in_force`` was last given."""
    return _effective


def put_in_force(settings: Settings | None) -> None:
    """Make ``settings`` the ones that the patches read from now on."""
    global _effective
    _effective = settings


def options() -> Options:
    """What ``put_options`` was last given."""
    return _options


def put_options(options: Options) -> None:
    """Have ``options`` count from the next ``resolve`` on."""
    global _options
    _options = options
