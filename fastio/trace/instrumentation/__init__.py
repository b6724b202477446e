"""The instrumentation: the patches that record a trace, one module each. The setting ``trace`` asks for them."""

from fastio.config import Settings
from fastio.errors import SettingError
from fastio.trace import recorder


def begin(settings: Settings) -> None:
    """Record into the directory that the setting names.

    :raises fastio.errors.SettingError: if it cannot be made, or must not be written to
    """
    assert settings.trace is not None
    try:
        recorder.start(settings.trace)
    except OSError as error:
        source = settings.sources.get("trace", "")
        raise SettingError("trace", settings.trace, source, f"a directory that can be written to ({error})") from None


def end() -> None:
    """Record no more."""
    recorder.stop()


def notes() -> list[str]:
    """Return notes about the recorder for an operator."""
    found = recorder.active
    if found is None:
        return []
    found.settle()
    return [f"trace: {found.written} spans of this process written to {found.directory}, {found.lost} lost"]
