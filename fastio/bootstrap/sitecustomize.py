"""Patches a Python that a program under ``fastio run --children`` has started, then runs the site's own sitecustomize.

The directory stands in PYTHONPATH for the children of children, and is taken out of sys.path, where nothing but this
file is to be found in it.
"""

import os
import sys


def _patch() -> None:
    try:
        from fastio import children
    except ImportError as error:
        # A Python of an environment without fastio is none of ours, unless it is the program itself.
        if error.name != "fastio" or os.environ.get("_FASTIO_PROGRAM") == str(os.getpid()):
            print(f"fastio: not patched: {sys.prefix}: {error}", file=sys.stderr)
    else:
        children.wait()


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
