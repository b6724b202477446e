"""The releases of glance that can be started here."""

from benchmarks.backends.glance import RELEASES, Service
from tests.backends.required import missing


def usable(name: str) -> type[Service]:
    """The class of a release; the test is skipped, or fails, where it cannot be started."""
    reason = RELEASES[name]().why_not()
    if reason:
        missing(name, reason)
    return RELEASES[name]
