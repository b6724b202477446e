"""Runs the site's own sitecustomize, then patches this Python: of fastio run, or with --children of its children.

Each Python that is started with this directory in PYTHONPATH runs this file, Python 2 and others that fastio is not for
as well: it does nothing there, and its syntax is theirs.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_program = os.environ.get("_FASTIO_PROGRAM", "children")
_children = _program.endswith("children")
if not _children:
    # The program has the environment that it would have without fastio.
    del os.environ["_FASTIO_PROGRAM"]
    _paths = [_path for _path in os.environ.pop("PYTHONPATH", _here).split(os.pathsep) if _path != _here]
    if _paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(_paths)
sys.path[:] = [_path for _path in sys.path if os.path.abspath(_path) != _here]
# Python 2 clears a module that nothing refers to.
_this = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ImportError as _error:
    if getattr(_error, "name", "sitecustomize") != "sitecustomize":
        raise
    sys.modules["sitecustomize"] = _this  # type: ignore[assignment]
finally:
    _paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _children and _here in _paths[1:]:
        # A tracer has put its directory first, whose sitecustomize may run no other.
        os.environ["PYTHONPATH"] = os.pathsep.join([_here] + [_path for _path in _paths if _path != _here])
    _is_program = _program.split(" ")[0] == str(os.getpid())
    if sys.version_info >= (3, 10):  # noqa: UP036 - others run this file too
        _root = os.path.dirname(os.path.dirname(_here))
        try:
            import fastio  # noqa: F401
        except ImportError:
            # A Python that fastio is not installed for has this one; nothing else of its directory is found.
            sys.path.append(_root)
            import fastio  # noqa: F401

            sys.path.remove(_root)
        from fastio import children

        children.begin(_is_program)
    elif _is_program:
        _version = sys.version.split()[0]
        sys.stderr.write("fastio: " + sys.executable + " is Python " + _version + "; fastio needs 3.10\n")
        sys.stderr.flush()
        if os.environ.get("FASTIO_ON_ERROR", "").strip() != "unpatched":
            os._exit(2)
