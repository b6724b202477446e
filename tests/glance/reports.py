"""The report on the trace of a service that is still running, and writes only now and then."""

from pathlib import Path

from fastio.trace.analysis.analysis import Analysis, analyse
from fastio.trace.analysis.model import TraceError


def reported(*paths: Path) -> Analysis | None:
    """The report on the records written so far; None if there are none yet."""
    try:
        return analyse(paths)
    except TraceError:
        return None
