"""Watching a service: what its fast paths did, for people, for programs and for what gathers metrics."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from fastio import config

if TYPE_CHECKING:
    from fastio.config import Settings
    from fastio.report import Report


def follow(settings: Settings | None) -> None:
    """Have what ``settings`` ask for be in effect, and nothing else; None: nothing."""
    on = settings if settings is not None and settings.enabled else None
    _tell_calls(on is not None and on.verbose)
    _publish(on)


_tells = False


def _tell_calls(on: bool) -> None:
    global _tells
    if on == _tells:
        return
    # Imported here because few processes need it.
    from fastio import counters
    from fastio.watching import verbose

    _tells = on
    verbose.begin()
    counters.listen(verbose.tell, on)


_publishes = False


def _publish(settings: Settings | None) -> None:
    global _publishes
    asked = settings is not None and any(getattr(settings, name) for name in config.PUBLISHING)
    if asked or _publishes:
        # Imported here for the same reason.
        from fastio.watching import publishing

        _publishes = asked
        publishing.follow(settings)


@contextlib.contextmanager
def during(patched: Callable[[], AbstractContextManager[Report]]) -> Iterator[Report]:
    """The context of ``patched()``, in which its settings also hold for what is watched."""
    try:
        with patched() as report:
            follow(config.in_force())
            yield report
    finally:
        follow(config.in_force())
