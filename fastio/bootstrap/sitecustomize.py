"""Patches a Python that a program under ``fastio run --children`` has started, then runs the site's own sitecustomize.

The directory stands in PYTHONPATH for the children of children, and is taken out of sys.path, where nothing but this
file is to be found in it.
"""

import os
import sys


def _patch() -> None:
    try:
        import fastio.auto  # noqa: F401
    except Exception as error:
        # The service goes on. A Python of an environment without fastio is none of ours.
        if getattr(error, "name", None) != "fastio":
            print(f"fastio: not patched: {type(error).__name__}: {error}", file=sys.stderr)


def _chain(directory: str) -> None:
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != directory]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


_chain(os.path.dirname(os.path.abspath(__file__)))
_patch()
