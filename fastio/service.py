"""What fastio takes from, and gives to, the service that it runs in: its configuration files, log and new processes."""

import logging
from pathlib import Path
from typing import Any

import fastio
from fastio import config
from fastio.errors import FastioError

LOG = logging.getLogger("fastio")
_followed = False

#: What a new interpreter runs with ``root`` and ``options``. multiprocessing gives it the parent's sys.path afterwards.
_PATCH = """\
import sys
sys.path.append(root)
try:
    from fastio import service
    service.join(options)
except Exception as error:
    print(f"fastio: not patched: {type(error).__name__}: {error}", file=sys.stderr)
"""


def follow() -> None:
    """Take over ``[fastio]`` once the service has read its files, log the summary once it logs, patch what it spawns.

    Services read their configuration long after the patches have to be in place.
    """
    global _followed
    if _followed:
        return
    _followed = True
    import wrapt

    wrapt.register_post_import_hook(_follow_configuration, "oslo_config.cfg")
    wrapt.register_post_import_hook(_follow_logging, "oslo_log.log")
    wrapt.register_post_import_hook(_follow_spawning, "multiprocessing.spawn")


def _follow_configuration(cfg: Any) -> None:
    import wrapt

    def read(wrapped: Any, conf: Any, args: Any, kwargs: Any) -> Any:
        result = wrapped(*args, **kwargs)
        from fastio import opts

        if opts.read(conf):
            fastio.patch(conf=conf)
        return result

    def take_over(conf: Any) -> None:
        from fastio import opts

        try:
            # Also where no option is left: those of before do not count any more.
            if opts.read(conf) != config.options():
                fastio.patch(conf=conf)
        except FastioError as error:
            # The service runs: unlike at its start, it goes on with what it has.
            LOG.error("fastio: the settings stay as they were: %s", error)

    def reload(wrapped: Any, conf: Any, args: Any, kwargs: Any) -> Any:
        succeeded = wrapped(*args, **kwargs)
        if succeeded:
            take_over(conf)
        return succeeded

    def mutate(wrapped: Any, conf: Any, args: Any, kwargs: Any) -> Any:
        # What services do at SIGHUP: it raises where it fails.
        result = wrapped(*args, **kwargs)
        take_over(conf)
        return result

    wrapt.wrap_function_wrapper(cfg, "ConfigOpts.__call__", read)
    wrapt.wrap_function_wrapper(cfg, "ConfigOpts.reload_config_files", reload)
    wrapt.wrap_function_wrapper(cfg, "ConfigOpts.mutate_config_files", mutate)


def _follow_logging(log: Any) -> None:
    import wrapt

    def set_up(wrapped: Any, _module: Any, args: Any, kwargs: Any) -> Any:
        result = wrapped(*args, **kwargs)
        LOG.info("%s", fastio.status().summary())
        return result

    wrapt.wrap_function_wrapper(log, "setup", set_up)


def join(options: config.Options) -> None:
    """Patch this process, which a patched one has spawned, with the ``options`` of that one."""
    config.put_options(options)
    fastio.patch()
    follow()


class _Patching:
    """Patches the process that unpickles it, which may not find fastio by itself."""

    def __reduce__(self) -> Any:
        root = str(Path(fastio.__file__).parent.parent)
        return exec, (_PATCH, {"root": root, "options": dict(config.options())})


def _follow_spawning(spawn: Any) -> None:
    """Workers by the start methods ``spawn`` and ``forkserver`` begin in a new interpreter, which is not patched."""
    import wrapt

    def get_preparation_data(wrapped: Any, _module: Any, args: Any, kwargs: Any) -> Any:
        return {**wrapped(*args, **kwargs), "fastio": _Patching()}

    wrapt.wrap_function_wrapper(spawn, "get_preparation_data", get_preparation_data)
