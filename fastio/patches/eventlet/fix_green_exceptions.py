"""``fix_green_exceptions``: under eventlet, ``except subprocess.TimeoutExpired`` catches what ``communicate(timeout)``
raises.

eventlet keeps private copies of ``subprocess``. Its green Popen inherits ``_check_timeout`` from one copy, and its
``check_output`` calls ``run`` of another copy: they raise a TimeoutExpired and a CalledProcessError that are not
the classes in ``subprocess``. With this patch, both functions look up names in ``eventlet.green.subprocess``, which
has the right classes. As a consequence, ``check_output`` uses the green Popen instead of one that blocks the hub. In
the hub's greenlet, which cannot wait for itself, upstream's code runs. If a child could not be started, its
SubprocessError is raised again as the class in ``subprocess``.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

from fastio import counters
from fastio.concurrency import current
from fastio.counters import Reason
from fastio.patches.subprocess import _popen
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target

_counts = counters.of(__name__)


def make(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The same function, looking its names up in ``eventlet.green.subprocess``."""
    from eventlet.green import subprocess as green

    original = hook.original
    function = FunctionType(original.__code__, vars(green), original.__name__, original.__defaults__)
    function.__kwdefaults__ = original.__kwdefaults__
    return function


def make_run(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The replacement of ``run`` of ``check_output``."""
    function = make(wrapped, hook)

    def run(*args: Any, **kwargs: Any) -> Any:
        if current.in_hub():
            _counts.fell_back(Reason.HUB)
            return wrapped(*args, **kwargs)
        _counts.took()
        return function(*args, **kwargs)

    return run


def make_execute_child(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._execute_child``."""
    import subprocess

    private = hook.original.__globals__["SubprocessError"]

    def _execute_child(self: Any, *args: Any) -> Any:
        try:
            return wrapped(self, *args)
        except private as error:
            if type(error) is not private:
                raise
            _counts.took()
            raise subprocess.SubprocessError(*error.args).with_traceback(error.__traceback__) from None

    return _execute_child


PATCH = Patch(
    __name__,
    summary="eventlet: the exceptions are of the classes that subprocess shows",
    changes="time-outs and failures of commands are of the classes that subprocess shows",
    targets=(
        _popen.green_target(
            make,
            "_check_timeout",
            Uses(_popen.CHECK_TIMEOUT, "TimeoutExpired"),
        ),
        _popen.green_target(make_execute_child, "_execute_child", Uses("self, *_", "SubprocessError")),
        Target(
            "eventlet.green.subprocess:run",
            make_run,
            Uses(
                "*popenargs, input=None, capture_output=False, timeout=None, check=False, **kwargs",
                "Popen CalledProcessError",
            ),
            code="subprocess:run",
        ),
    ),
)
