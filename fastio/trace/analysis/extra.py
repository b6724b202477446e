"""Libraries of the extra ``trace``: imported where they are needed, as reading needs none of them."""

import importlib
from typing import Any

from fastio.trace.analysis.model import TraceError


def needed(module: str) -> Any:
    """The module.

    :raises TraceError: if it is not installed
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise TraceError(
            f"this needs {module.partition('.')[0]}, which cannot be imported ({error}): pip install 'fastio[trace]'"
        ) from error
