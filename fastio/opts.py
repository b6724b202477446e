"""The settings as options of oslo.config, in the group ``[fastio]``.

``oslo-config-generator --namespace fastio`` prints them; ``fastio.patch(conf=CONF)`` reads them. Only
programs that have oslo.config import this module.
"""

from typing import Any

from oslo_config import cfg

from fastio.config import SETTINGS, format_size

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
