"""The glance-api of :mod:`benchmarks.backends.glance` as tests need it: set up in their way, looked into, signalled."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.backends import glance_logs as logs
from benchmarks.backends.glance import Configuration, Glance, Glance32, Glance33
from benchmarks.backends.keeper import descendants


class Service(Glance):
    """A glance-api; the releases are in :data:`RELEASES`.

    :param command: makes the command line that starts it, instead of the backend's own
    :param config: options by group that are added to glance-api.conf, or replace those in it
    :param environment: of the service, besides the backend's own
    :param parameters: the backend's
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        command: Callable[[Service], list[str]] | None = None,
        config: Configuration | None = None,
        environment: Mapping[str, str] | None = None,
        **parameters: int | str,
    ) -> None:
        super().__init__(directory, **parameters)
        self._own_command = command
        self._config = config or {}
        self._own_environment = environment or {}

    def command(self) -> list[str]:
        return super().command() if self._own_command is None else self._own_command(self)

    def variables(self) -> dict[str, str]:
        quiet = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
        return {**super().variables(), **quiet, **self._own_environment}

    def configuration(self) -> Configuration:
        return merged(merged(super().configuration(), {"DEFAULT": logs.OPTIONS}), self._config)

    def reconfigure(self, config: Configuration) -> None:
        """Write glance-api.conf anew, with ``config`` instead of the options that it has been given."""
        self._config = config
        self.configure(self.configuration())

    def workers(self) -> list[int]:
        """The processes beneath the first one, or that one if there are none."""
        return descendants(self.pid) or [self.pid]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process that was started."""
        os.kill(self.pid, number)

    def expect_end(self) -> None:
        """Forget that the process should run: the test ends it."""
        self._servers.clear()

    def log(self) -> str:
        """Everything that the service has written so far."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.logs.glob("*.log")))


class Service32(Service, Glance32):
    pass


class Service33(Service, Glance33):
    pass


#: by the names of their backends
RELEASES: dict[str, type[Service]] = {each.name: each for each in (Service32, Service33)}
#: what a test runs both with and without -> the backend's parameter ``fastio``
KINDS = {"stock": "off", "patched": "on"}


def merged(one: Configuration, other: Configuration) -> Configuration:
    """``one``, with what ``other`` has added to its groups or put in the place of it."""
    groups: dict[str, Any] = {**one}
    for group, options in other.items():
        groups[group] = {**groups.get(group, {}), **options}
    return groups
