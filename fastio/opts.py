"""The settings as options of oslo.config, in the group ``[fastio]``.

``oslo-config-generator --namespace fastio`` prints them; ``fastio.patch(conf=CONF)`` reads them. Only
programs that have oslo.config import this module.
"""

import contextlib
import glob
import os
from collections.abc import Iterator
from typing import Any

from oslo_config import cfg

from fastio import unknown
from fastio.config import SETTINGS, format_size
from fastio.errors import meant

GROUP = "fastio"


def _sample(default: Any) -> str | None:
    if isinstance(default, bool):
        return str(default).lower()
    return format_size(default) if isinstance(default, int) else None


# Text, and without defaults: the one parser and the one table of defaults are in fastio.config.
_OPTIONS = [
    cfg.StrOpt(
        setting.name,
        help=f"{setting.help} Allowed: {setting.allowed}.",
        sample_default=_sample(setting.default) or "<none>",
        # They count at once when a service mutates its configuration at SIGHUP.
        mutable=True,
    )
    for setting in SETTINGS
]


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """The options by group, as the entry point ``oslo.config.opts`` has it."""
    return [(GROUP, list(_OPTIONS))]


def read(conf: cfg.ConfigOpts) -> dict[str, tuple[Any, str]]:
    """The settings that ``conf`` has, with where each was found; registers the options if need be."""
    conf.register_opts(_OPTIONS, group=GROUP)
    found = {}
    for option in _OPTIONS:
        value = conf[GROUP][option.name]
        if value is not None:
            location = conf.get_location(option.name, GROUP)
            where = location.detail if location is not None and location.detail else "set by the program"
            found[option.name] = (value, f"oslo.config [{GROUP}] {option.name} ({where})")
    return found


def tell_unknown(conf: cfg.ConfigOpts) -> None:
    """Log the options of the group that the files of ``conf`` have and fastio does not, each once."""
    known = [option.name for option in _OPTIONS]
    unknown.tell(
        [
            f"oslo.config [{GROUP}] {name} ({path}): there is no such option{meant(name, known)}"
            for path in _files(conf)
            for name in sorted(_names(path))
            if name not in known
        ]
    )


def _files(conf: cfg.ConfigOpts) -> Iterator[str]:
    """The files that ``conf`` has read; none, if it has not been called yet."""
    if "config_file" in conf:
        yield from conf.config_file or []
        for directory in conf.config_dir or []:
            yield from sorted(glob.glob(os.path.join(directory, "*.conf")))


def _names(path: str) -> set[str]:
    """The options of the group in a file, known or not."""
    sections: dict[str, dict[str, Any]] = {}
    # The service has read the file before, and has said so if it could not.
    with contextlib.suppress(OSError, cfg.ParseError):
        cfg.ConfigParser(path, sections).parse()
    return {name for section, options in sections.items() if section.lower() == GROUP for name in options}
