"""fastio's access to the service that it runs in: its configuration files, log and new processes."""

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import fastio
from fastio import config, log
from fastio.errors import FastioError
from fastio.patching import imports, patcher

_followed = False
#: why nothing is patched, if a bad setting is the reason
_problem = ""

#: Exit status of uWSGI and of a worker whose application cannot be loaded.
_FAILED_APP = 22
#: The code that a new interpreter runs with ``root`` and ``options``. multiprocessing gives it the parent's sys.path
#: afterwards.
_PATCH = """\
import sys
sys.path.append(root)
try:
    from fastio import service
    service.join(options)
except Exception as error:
    print(f"fastio: {error}", file=sys.stderr)
    sys.exit(2)
"""


def start() -> None:
    """Patch, and follow the service, without an edit to its code.

    :raises FastioError: for a bad setting, unless ``on_error`` says otherwise
    """
    try:
        fastio.patch()
    except Exception as error:
        refuse_or_say(error)
    follow()


def refuse_or_say(error: Exception, conf: Any = None, options: config.Options | None = None) -> None:
    """Decide whether a service starts that has a bad setting, or in which ``patch()`` has failed otherwise.

    :param conf: the service's oslo.config object, and ``options`` those of its files, if it has read them
    :raises Exception: the error, where it is to refuse; else nothing is patched, and the error is logged
    """
    global _problem
    what = str(error) if isinstance(error, FastioError) else f"{type(error).__name__}: {error}"
    uwsgi = sys.modules.get("uwsgi")
    if config.on_error(options=options) == config.REFUSE and not (uwsgi and _serves(uwsgi)):
        _problem = f"fastio: {what}"
        hook = sys.excepthook
        with contextlib.suppress(Exception):
            # Services set up their log later, and this one does not come to that.
            sys.modules["oslo_log.log"].setup(conf, conf.project)
        # Standard error has the exception, too.
        sys.excepthook = hook
        if uwsgi:
            _end(uwsgi)
        raise error
    patcher.stand_back(f"on_error ({what})")
    _problem = f"fastio: not patched: {what}"
    log.log(log.ERROR, "%s", _problem)


def _serves(uwsgi: Any) -> bool:
    """Return whether this is a worker that uWSGI starts again: others have loaded the service, or it has served."""
    return uwsgi.worker_id() > 0 and any(each["apps"] or each["requests"] for each in uwsgi.workers())


def _end(uwsgi: Any) -> None:
    """End uWSGI: it would report an exception and serve without the service, or start its workers for ever."""
    import signal

    print(_problem, file=sys.stderr, flush=True)
    if uwsgi.worker_id() and uwsgi.masterpid():
        # The other workers that find the same wait here until they are killed.
        uwsgi.lock()
        with contextlib.suppress(OSError):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            # Each other signal, and uwsgi.stop(), reloads it with or without die-on-term.
            os.kill(uwsgi.masterpid(), signal.SIGINT)
            # It sends its workers the same, and starts none from then on. One that is at an import would take that for
            # an exception, and go on for a minute.
            signal.sigtimedwait({signal.SIGINT}, 5)
        for each in uwsgi.workers():
            if each["pid"] and each["id"] != uwsgi.worker_id():
                with contextlib.suppress(OSError):
                    os.kill(each["pid"], signal.SIGKILL)
    os._exit(_FAILED_APP)


def follow() -> None:
    """Take over ``[fastio]`` once the service has read its files, log the summary once it logs, patch what it spawns.

    Services read their configuration long after the patches have to be in place.
    """
    global _followed
    if _followed:
        return
    _followed = True
    imports.when_imported("oslo_config.cfg", _follow_configuration)
    imports.when_imported("oslo_log.log", _follow_logging)
    imports.when_imported("multiprocessing.spawn", _follow_spawning)


def _wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Have ``around`` called in place of a function, with that function as its first argument."""
    wrapped = getattr(owner, name)

    @functools.wraps(wrapped)
    def function(*args: Any, **kwargs: Any) -> Any:
        return around(wrapped, *args, **kwargs)

    setattr(owner, name, function)


def _follow_configuration(cfg: Any) -> None:
    def read(wrapped: Any, conf: Any, *args: Any, **kwargs: Any) -> Any:
        result = wrapped(conf, *args, **kwargs)
        options = config.read_options(conf)
        if options:
            try:
                fastio.patch(conf=conf)
            except Exception as error:
                refuse_or_say(error, conf, options)
        return result

    def read_again(wrapped: Any, conf: Any, *args: Any, **kwargs: Any) -> Any:
        # Services do this at SIGHUP: mutating raises where it fails, reloading returns False.
        result = wrapped(conf, *args, **kwargs)
        try:
            # Also where no option is left: those of before do not count any more.
            if result is not False and config.read_options(conf) != config.options():
                fastio.patch(conf=conf)
        except FastioError as error:
            # The service runs: unlike at its start, it goes on with what it has.
            log.log(log.ERROR, "fastio: the settings stay unchanged: %s", error)
        return result

    _wrap(cfg.ConfigOpts, "__call__", read)
    _wrap(cfg.ConfigOpts, "reload_config_files", read_again)
    _wrap(cfg.ConfigOpts, "mutate_config_files", read_again)


def _follow_logging(oslo_log: Any) -> None:
    def set_up(wrapped: Any, *args: Any, **kwargs: Any) -> Any:
        result = wrapped(*args, **kwargs)
        # Messages of the start came before there was a log.
        for text in config.unknown():
            log.log(log.WARNING, "fastio: %s", text)
        log.log(*((log.ERROR, "%s", _problem) if _problem else (log.INFO, "%s", fastio.status().summary())))
        return result

    _wrap(oslo_log, "setup", set_up)


def join(options: config.Options) -> None:
    """Patch this process, which a patched one has spawned, with the ``options`` of that one."""
    config.put_options(options)
    start()


class _Patching:
    """Patches the process that unpickles it, which may not find fastio by itself."""

    def __reduce__(self) -> Any:
        root = os.path.dirname(os.path.dirname(fastio.__file__))
        return exec, (_PATCH, {"root": root, "options": dict(config.options())})


def _follow_spawning(spawn: Any) -> None:
    """Workers by the start methods ``spawn`` and ``forkserver`` begin in a new interpreter, which is not patched."""

    def get_preparation_data(wrapped: Any, *args: Any, **kwargs: Any) -> Any:
        return {**wrapped(*args, **kwargs), "fastio": _Patching()}

    _wrap(spawn, "get_preparation_data", get_preparation_data)
