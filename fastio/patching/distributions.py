"""The installed versions of distributions."""

from functools import cache


@cache
def version(distribution: str) -> str | None:
    """The installed version, None if there is none."""
    # The libraries that have versions import it themselves; it takes longer to import than most of fastio.
    import importlib.metadata

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
