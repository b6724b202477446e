"""Whether uWSGI gives the connection of a request away, and how: what is known of it, and of its options.

A request has a copy of its connection's descriptor made. uWSGI closes its own at the end of the request, which ends
nothing while there is the copy: it calls ``close()``, and never ``shutdown()``. This holds for HTTP and for uWSGI's own
protocol, in which its router and proxies ask the workers: an answer is the same bytes in both.

uWSGI's own offload threads do not do here. Python cannot ask for them: ``uwsgi.offload()`` does nothing in 2.0. With
``wsgi.file_wrapper`` they send a file from its first byte to its last, whatever range was asked for, and do not report
how much of it the client got.
"""

import functools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from fastio.concurrency import current

#: Releases whose code has been read: what writes an answer and what ends a request is the same in all of them.
KNOWN = "2.0.21 to 2.0.31"
_KNOWN = re.compile(r"2\.0\.(2[1-9]|3[01])(\.\d+)?(-debian)?")

#: Options by which clients or proxies reach the workers, with answers left unchanged.
_SERVED_BY = {"http-socket", "http", "https", "socket", "uwsgi-socket"}
#: The action of a route that only keeps a request out of uWSGI's log.
_HARMLESS_ACTION = re.compile(r"(^|\s)donotlog:\s*$")

#: Options that neither change what is sent on a connection, nor end a worker that has nothing to do.
_HARMLESS = {
    "ini", "xml", "yaml", "json", "include", "config", "strict", "set-placeholder", "plugin", "plugins", "plugin-dir",
    "plugins-dir", "need-plugin", "need-plugins", "autoload",
    *_SERVED_BY, "http-auto-chunked", "http-chunked-input", "http-raw-body", "http-timeout", "http-connect-timeout",
    "http-headers-timeout", "http-buffer-size", "http-processes", "http-workers", "http-manage-expect", "http-quiet",
    "listen", "buffer-size", "post-buffering", "post-buffering-bufsize", "socket-timeout", "so-keepalive",
    "tcp-nodelay", "tcp-fast-open", "so-send-timeout", "reuse-port", "freebind", "chmod-socket", "chown-socket",
    "umask", "add-header", "rem-header", "del-header", "thunder-lock", "http-keepalive",
    "chunked-input-limit", "chunked-input-timeout",
    "processes", "workers", "threads", "thread-stacksize", "threads-stacksize", "enable-threads", "master",
    "lazy-apps", "lazy", "single-interpreter", "need-app", "vacuum", "die-on-term", "exit-on-reload", "no-orphans",
    "procname", "auto-procname", "procname-prefix", "procname-prefix-spaced", "procname-append", "procname-master",
    "uid", "gid", "master-as-root", "mule", "mules", "spooler", "spooler-processes",
    "chdir", "pidfile", "pidfile2", "safe-pidfile", "safe-pidfile2", "daemonize", "daemonize2",
    "harakiri", "harakiri-verbose", "reload-mercy", "worker-reload-mercy", "master-fifo", "touch-reload",
    "touch-workers-reload", "touch-chain-reload", "hook-master-start", "start-time", "env", "unenv", "rlimit-as",
    "max-fd", "close-on-exec", "close-on-exec2", "limit-post", "limit-as", "memory-report", "cpu-affinity",
    "auto-fork-server", "signal-timeout", "stats", "stats-server", "stats-http", "stats-no-cores", "stats-no-metrics",
    "disable-logging", "log-4xx", "log-5xx", "log-date", "log-format", "log-master", "log-maxsize", "log-micros",
    "log-prefix", "log-reopen", "log-slow", "log-x-forwarded-for", "log-zero", "logdate", "logformat", "logger",
    "logto", "logto2", "req-logger",
    "logfile-chown", "logfile-chmod", "threaded-logger", "touch-logreopen", "touch-logrotate", "log-syslog",
    "syslog", "ignore-sigpipe", "ignore-write-errors", "disable-write-exception", "static-map",
    "manage-script-name", "mount", "name", "module", "wsgi",
    "wsgi-file", "file", "callable", "import", "pyimport", "pymodule-alias", "pythonpath", "python-path", "pp", "home",
    "virtualenv", "venv", "pyhome", "pyargv", "pyrun", "py-call-osafterfork", "py-call-uwsgi-fork-hooks",
    "skip-atexit-teardown", "no-site", "optimize", "wsgi-env-behaviour", "py-tracebacker", "python-worker-override",
    "wsgi-disable-file-wrapper", "wsgi-accept-buffer", "wsgi-strict",
}  # fmt: skip
#: Plugins that leave the connections to uWSGI's own core.
_PLUGINS = {"python", "python3", "http", "logfile", "logsocket", "syslog", "rsyslog", "stats_pusher_file"}
_OFF = {b"false", b"off", b"no", b"0"}
#: Seconds for which a client may leave no room in its connection, where the option does not say.
_PATIENCE = 4
#: Bytes that a chunk of a request may have, where the option does not say.
_CHUNK_LIMIT = 1 << 20


#: Options of a uWSGI that is only asked about, each with what it is set to; None in a service.
asked_about: Mapping[str, Sequence[str]] | None = None


def module() -> Any:
    """uWSGI's own module; None in any other server."""
    return sys.modules.get("uwsgi")


def serves() -> bool:
    """Whether the server is uWSGI, or is to be."""
    return module() is not None or asked_about is not None


def why_not() -> str:
    """Why connections cannot be given away here; empty if they can."""
    if "gunicorn.workers" in sys.modules:
        return "gunicorn shuts a connection down when it has the whole response, or keeps it for the next request"
    if module() is None and asked_about is not None:
        return _why_not()
    if module() is None:
        return "the server is not uWSGI"
    return "there are green threads in this process" if current.is_green() else _why_not()


@functools.cache
def _why_not() -> str:
    options = _options()
    if asked_about is None and not _KNOWN.fullmatch(version := module().version.decode()):
        return f"uWSGI {version} is not known, only {KNOWN}"
    if "https-socket" in options:
        return "uWSGI's workers encrypt what goes to an https-socket: its router (https) or a proxy can do that"
    unknown = sorted(name for name in set(options) - _HARMLESS if not _is_harmless_route(name))
    if unknown:
        return f"uWSGI's use of the option {unknown[0]} is not known"
    plugins = {name.strip() for key in options if "plugin" in key and "dir" not in key for name in _values(key)}
    if plugins - _PLUGINS:
        return f"the effect of uWSGI's plugin {min(plugins - _PLUGINS)} is not known"
    if not _SERVED_BY & set(options):
        return f"uWSGI has none of {', '.join(sorted(_SERVED_BY))}"
    if not (_is_on("enable-threads") or "threads" in options):
        return "uWSGI runs no threads of Python's without enable-threads"
    return ""


def _options() -> Mapping[str, Any]:
    if asked_about is None:
        return module().opt  # type: ignore[no-any-return]
    return {name: [value.encode() for value in values] for name, values in asked_about.items()}


def _is_harmless_route(option: str) -> bool:
    """Whether this is an option for routes, all of which only keep requests out of the log."""
    given = _given(option)
    return option.startswith("route") and bool(given) and all(map(_HARMLESS_ACTION.search, given))


def _given(option: str) -> list[str]:
    """The values that an option is given."""
    found = _options().get(option, [])
    values = found if isinstance(found, list) else [found]
    # A route's pattern may have any bytes.
    return [each.decode(errors="replace") for each in values if isinstance(each, bytes)]


def _values(option: str) -> list[str]:
    """Return each part of an option's value."""
    return [part for value in _given(option) for part in value.split(",")]


def _is_on(option: str) -> bool:
    value = _options().get(option, b"off")
    value = value[-1] if isinstance(value, list) else value
    return value is True or value.lower() not in _OFF


def number(given: Sequence[str], default: int) -> int:
    """Return the number that an option is set to; like uWSGI, read the sign and the digits at the beginning.

    :param given: its values, of which the last one counts
    """
    return int(digits[0]) if given and (digits := re.match(r"\s*[+-]?\d+", given[-1])) else default


def patience() -> int:
    """Seconds for which a client may leave no room in its connection, as uWSGI has it."""
    return number(_given("socket-timeout"), _PATIENCE)


def harakiri() -> int | None:
    """Seconds after which uWSGI's master replaces a worker that has not done with a request; None if it never does."""
    return number(_given("harakiri"), 0) or None


def why_no_chunk(seconds: float) -> str:
    """Why ``chunked_read()`` has failed after ``seconds``, which uWSGI does not say."""
    timeout = number(_given("chunked-input-timeout"), 0) or patience()
    if 0 < timeout <= seconds:
        return f"nothing came for {timeout} s, see uWSGI's chunked-input-timeout and socket-timeout"
    limit = number(_given("chunked-input-limit"), _CHUNK_LIMIT)
    return f"the client has gone, or a chunk has more than {limit} bytes, see uWSGI's chunked-input-limit"


def raises_write_errors() -> bool:
    """Whether uWSGI reports to an application that its client is gone."""
    return not _is_on("disable-write-exception")


def has_master() -> bool:
    """Whether a master limits the time that a worker takes to end."""
    return bool(module().masterpid())


def connection() -> int:
    """A copy of the descriptor of this request's connection, which outlives the request.

    :raises OSError: there is none to be had, or it is in blocking mode
    """
    copy = os.dup(module().connection_fd())
    if os.get_blocking(copy):
        os.close(copy)
        raise OSError("the connection is in blocking mode")
    return copy
