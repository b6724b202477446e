"""fastio's access to the service that it runs in: its configuration files, log and new processes."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastio
from fastio import config, log
from fastio.errors import FastioError
from fastio.patching import imports, patcher

_followed = False
#: why nothing is patched, if a bad setting is the reason
_problem = ""

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
    except FastioError as error:
        refuse_or_say(error)
    follow()


def refuse_or_say(
    error: FastioError, environ: Mapping[str, str] | None = None, options: config.Options | None = None
) -> None:
    """Decide whether a service with a bad setting starts.

    :param environ: the variables of the service, and ``options`` those in its files, that have the setting ``on_error``
    :raises FastioError: the error, where it is to refuse; else nothing is patched, and the error is logged
    """
    global _problem
    if config.on_error(environ, options) == config.REFUSE:
        raise error
    patcher.stand_back(f"on_error ({error})")
    _problem = f"fastio: not patched: {error}"
    log.log(log.ERROR, "%s", _problem)


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
            except FastioError as error:
                refuse_or_say(error, options=options)
        return result

    def take_over(conf: Any) -> None:
        try:
            # Also where no option is left: those of before do not count any more.
            if config.read_options(conf) != config.options():
                fastio.patch(conf=conf)
        except FastioError as error:
            # The service runs: unlike at its start, it goes on with what it has.
            log.log(log.ERROR, "fastio: the settings stay unchanged: %s", error)

    def reload(wrapped: Any, conf: Any, *args: Any, **kwargs: Any) -> Any:
        succeeded = wrapped(conf, *args, **kwargs)
        if succeeded:
            take_over(conf)
        return succeeded

    def mutate(wrapped: Any, conf: Any, *args: Any, **kwargs: Any) -> Any:
        # Services' way at SIGHUP: it raises where it fails.
        result = wrapped(conf, *args, **kwargs)
        take_over(conf)
        return result

    _wrap(cfg.ConfigOpts, "__call__", read)
    _wrap(cfg.ConfigOpts, "reload_config_files", reload)
    _wrap(cfg.ConfigOpts, "mutate_config_files", mutate)


def _follow_logging(oslo_log: Any) -> None:
    def set_up(wrapped: Any, *args: Any, **kwargs: Any) -> Any:
        result = wrapped(*args, **kwargs)
        # Messages of the start came before there was a log.
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
        root = str(Path(fastio.__file__).parent.parent)
        return exec, (_PATCH, {"root": root, "options": dict(config.options())})


def _follow_spawning(spawn: Any) -> None:
    """Workers by the start methods ``spawn`` and ``forkserver`` begin in a new interpreter, which is not patched."""

    def get_preparation_data(wrapped: Any, *args: Any, **kwargs: Any) -> Any:
        return {**wrapped(*args, **kwargs), "fastio": _Patching()}

    _wrap(spawn, "get_preparation_data", get_preparation_data)
