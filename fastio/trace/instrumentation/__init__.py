"""The instrumentation: the patches that record a trace, one module each. The setting ``trace`` asks for them."""

from fastio.config import Settings
from fastio.errors import SettingError
from fastio.trace import recorder

#: Bytes of memory that an event takes, with the objects in it: 414 were measured.
_EVENT = 512


def begin(settings: Settings) -> None:
    """Record into the directory that the setting names.

    :raises fastio.errors.SettingError: if it cannot be made
    """
    assert settings.trace is not None
    limits = recorder.Limits((32 << 20) // _EVENT, 64 << 20, 1 << 30)
    try:
        recorder.start(settings.trace, limits)
    except OSError as error:
        source = settings.sources.get("trace", "")
        raise SettingError("trace", settings.trace, source, f"a directory that can be written to ({error})") from None


def end() -> None:
    """Record no more."""
    recorder.stop()


def notes() -> list[str]:
    """What an operator should know of the recorder."""
    found = recorder.active
    if found is None:
        return []
    state = [f"trace: {found.written} events of this process written to {found.directory}, {found.lost} lost"]
    return state + ([f"trace: the last error of writing: {found.failure}"] if found.failure else [])
