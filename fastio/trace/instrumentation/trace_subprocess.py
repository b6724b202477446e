"""``trace_subprocess``: each command that ``subprocess`` runs, natively and under eventlet, as ``subprocess.command``.

The span begins before the command is started, and ends when its exit status is known: with ``communicate()`` or
``wait()``. An exit that ``poll()`` finds is seen with the next command, or when the trace ends; a command whose
``Popen`` is forgotten before has no exit status, and the outcome ``unknown``. A command that is already running when
the trace begins is recorded from its ``communicate()`` on.

Of the command, only the program's name is recorded, because arguments may be secret. For a command of a shell it is
``sh``.
"""

import functools
import weakref
from collections.abc import Callable
from typing import Any

from fastio.patches.subprocess import _popen
from fastio.patching.known_code import Uses
from fastio.patching.registry import Patch, Target
from fastio.trace import recorder, spans, values
from fastio.trace.spans import current


class _Command:
    """A command that is running, as far as is known."""

    __slots__ = ("span", "_key", "_popen", "_calls", "_failing", "_sent")

    def __init__(self, popen: Any) -> None:
        self.span = spans.begin("subprocess.command", program=_program(popen))
        self._key = id(popen)
        # Nothing of the Popen is kept: it has to be forgotten as without us.
        self._popen = weakref.ref(popen, functools.partial(_forgotten, self._key))
        #: an element for each call that is under way: threads may add and remove them at any moment
        self._calls: list[None] = []
        #: whether the last exchange has raised an exception
        self._failing = False
        self._sent = 0

    def during(self, call: Callable[[], Any]) -> Any:
        """Return ``call()``, which may learn the exit status; the hub's waits meanwhile are the command's."""
        before = current.get()
        current.set(self.span)
        self._calls.append(None)
        try:
            return call()
        finally:
            self._calls.pop()
            current.set(before)
            self.end_if_over()

    def start(self, call: Callable[[], Any]) -> Any:
        """Return ``call()``, which starts the command, or raises the reason why it cannot."""
        try:
            return call()
        except BaseException as error:
            # Upstream gives the Popen an exit status, which is none of the command's.
            self.span.note(error)
            self.end(spans.ERROR)
            raise

    def exchange(self, call: Callable[[], Any], given: Any) -> Any:
        """Return ``call()``, the ``communicate()`` that sends ``given``."""
        self._failing = False
        try:
            found = call()
        except BaseException as error:
            self._failing = True
            self.span.note(error)
            raise
        # After a time-out the input is not given again.
        self._sent += len(given) if given else 0
        self.span.values["bytes"] = self._sent + sum(len(data) for data in found if data)
        return found

    def end_if_over(self) -> None:
        """End if the exit status is known, and no call is under way that has something to add."""
        code = getattr(self._popen(), "returncode", None)
        if code is not None and not self._calls and not self.span.ended:
            if type(code) is int:
                self.span.values["code"] = code
            self.end(spans.OK)

    def end(self, outcome: str) -> None:
        _running.pop(self._key, None)
        found = self.span.values
        if "error" in found and found.get("code") == 0 and not self._failing:
            # A time-out, after which the program was waited for again.
            found["recovered"] = found.pop("error")
        self.span.end(spans.ERROR if "error" in found else outcome)


#: By the ``id()`` of their Popen, which gets no attribute that others could see.
_running: dict[int, _Command] = {}


def _begin(popen: Any) -> _Command:
    _look()
    command = _running[id(popen)] = _Command(popen)
    return command


def _look() -> None:
    """End what ``poll()`` has found to be over."""
    for command in list(_running.values()):
        command.end_if_over()


def _forgotten(key: int, popen: object) -> None:
    command = _running.get(key)
    if command is not None:
        command.end(spans.UNKNOWN)


recorder.before_end.append(_look)


def make_execute_child(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._execute_child``."""

    def _execute_child(self: Any, args: Any, *more: Any, **named: Any) -> Any:
        # The green class may have this from a class that is patched as well.
        if not spans.is_on() or id(self) in _running:
            return wrapped(self, args, *more, **named)
        command = _begin(self)
        return command.during(lambda: command.start(lambda: wrapped(self, args, *more, **named)))

    return _execute_child


def make_wait(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen._wait``, and of what eventlet has instead: ``wait``."""

    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        command = _running.get(id(self))
        if command is None:
            return wrapped(self, *args, **kwargs)
        return command.during(lambda: wrapped(self, *args, **kwargs))

    return wait


def make_communicate(wrapped: Callable[..., Any], hook: Any) -> Callable[..., Any]:
    """The wrapper of ``Popen.communicate``."""

    def communicate(self: Any, input: Any = None, timeout: float | None = None) -> Any:
        command = _running.get(id(self))
        # One that has ended is recorded already.
        if command is None and (not spans.is_on() or self.returncode is not None):
            return wrapped(self, input, timeout)
        command = command or _begin(self)
        return command.during(lambda: command.exchange(lambda: wrapped(self, input, timeout), input))

    return communicate


def _program(popen: Any) -> values.Recordable:
    try:
        return values.program(popen.args)
    except Exception:
        # Upstream's code complains of a command that is none.
        return values.Recordable(values.MASK)


_EXECUTE_CHILD = Uses("self, args, *_")
_COMMUNICATE = Uses("self, input=None, timeout=None")

PATCH = Patch(
    __name__,
    summary="subprocess: each command, how it ended and what was exchanged with it",
    targets=(
        _popen.native_target(make_execute_child, "_execute_child", _EXECUTE_CHILD),
        _popen.native_target(make_wait, "_wait", Uses("self, timeout")),
        _popen.native_target(make_communicate, "communicate", _COMMUNICATE),
        _popen.green_target(make_execute_child, "_execute_child", _EXECUTE_CHILD),
        Target("eventlet.green.subprocess:Popen.wait", make_wait, Uses("self, timeout=None, *_")),
        _popen.green_target(make_communicate, "communicate", _COMMUNICATE),
    ),
)
