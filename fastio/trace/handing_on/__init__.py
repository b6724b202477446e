"""The patches that hand the trace on in requests that go out. The setting ``trace_context`` asks for them.

It is off by default. Who records a trace does not expect that a service's requests change, and a header more is a
change that others see: stores, proxies, and any server that the address of an image leads to.
"""

from fastio.config import Settings
from fastio.trace import recorder


def begin(settings: Settings) -> None:
    """There is nothing to do: what is handed on belongs to the spans of the recorder."""


def end() -> None:
    """The same."""


def notes() -> list[str]:
    """What an operator should know."""
    if recorder.active is not None:
        return []
    return ["trace_context: nothing is handed on, because nothing is traced without the setting trace"]
