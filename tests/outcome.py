"""A caller's view of ``communicate()``, as plain data that two implementations can be compared by."""

import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

import fastio
from fastio import counters
from tests.child import Gate, command

STREAMS = ("stdin", "stdout", "stderr")

#: Time-outs in seconds for what comes at once, unless the machine stands still; a test tries one after the other.
ATTEMPTS = (0.5, 5, 40)


def outcome(function: Callable[[], Any]) -> Any:
    """Return its result; or the class of its exception, and the exception's attributes."""
    try:
        return function()
    except Exception as error:
        return type(error), str(error)


def raising(error: BaseException | type[BaseException]) -> Callable[..., Any]:
    """A function that raises ``error``, whatever it is given."""

    def raises(*_: object, **__: object) -> Any:
        raise error

    return raises


def peak(call: Callable[[], object]) -> int:
    """Bytes that Python had allocated at most during ``call``."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def as_upstream(go: Callable[[], Any], *names: str, counts: dict[str, int] | None = None, **settings: Any) -> Any:
    """Return ``go()``, which must be the same patched and unpatched.

    :param names: of the patches; all of the default without any
    :param counts: the expected counts when patched
    """
    upstream = go()
    with fastio.patched(list(names) or None, **settings):
        counters.reset()
        assert go() == upstream
        seen = counters.snapshot()
    assert {name: seen[name] for name in counts or {}} == (counts or {})
    return upstream


def timed_out(sp: ModuleType, popen: Any, timeout: float, *input: Any) -> Any:
    """The exception of a ``communicate()`` that takes longer than ``timeout`` seconds."""
    with pytest.raises(sp.TimeoutExpired) as caught:
        popen.communicate(*input, timeout=timeout)
    return caught.value


@dataclass(frozen=True)
class Call:
    """One ``communicate()`` call."""

    input: Any = None
    timeout: float | None = None
    #: the call is made when the child has reached its ``tell`` step
    after_tell: bool = False
    #: one of the child's ``gate`` steps is let go before the call
    opens: bool = False


def until(condition: Callable[[], object], step: Callable[[], object]) -> None:
    """Call ``step``, which takes its time, until ``condition`` holds, or has not for so long that it never will.

    How long a child takes to start and to do what it does is the machine's business: a call that has timed out says
    nothing about the output by then.
    """
    for _ in range(200):
        if condition():
            return
        step()


def describe(error: BaseException, timeout: float | None) -> dict[str, Any]:
    """An exception with what it says, its module left out: eventlet has copies of ``subprocess``."""
    found = {"error": type(error).__name__, "text": str(error)}
    if hasattr(error, "cmd"):
        found = {"error": type(error).__name__}
        for name in ("cmd", "output", "stdout", "stderr"):
            value = getattr(error, name)
            found[name] = value
            found[f"{name}'s type"] = type(value).__name__
        # The wait at the end has what is left of the timeout, in most releases.
        left = error.timeout  # type: ignore[attr-defined]
        found["timeout"] = left if left == timeout else "the rest"
    return found


def observe(
    module: ModuleType, steps: Sequence[str], calls: Sequence[Call], gate: Gate | None = None, **options: Any
) -> list[dict[str, Any]]:
    """Start a child with ``module.Popen``, make the calls, and tell after each what can be seen."""
    seen: list[dict[str, Any]] = []
    try:
        popen = module.Popen(command(*steps), pass_fds=gate.fds if gate else (), **options)
    except (ValueError, LookupError, TypeError) as error:
        return [describe(error, None)]
    try:
        for call in calls:
            if call.after_tell:
                gate.reached()
            if call.opens:
                gate.open()
            try:
                found: dict[str, Any] = {"result": popen.communicate(call.input, timeout=call.timeout)}
            except Exception as error:
                found = describe(error, call.timeout)
            seen.append({**found, **_state(popen)})
    finally:
        # How a child ends that no call waited for is a race between its own end and this signal.
        ended = popen.returncode
        popen.kill()
        popen.wait()
        for name in STREAMS:
            stream = getattr(popen, name)
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
    assert popen.returncode is not None
    seen.append({"returncode": ended})
    return seen


def _state(popen: Any) -> dict[str, Any]:
    streams = {name: getattr(popen, name) for name in STREAMS}
    collected = getattr(popen, "_fileobj2output", None)
    return {
        "returncode": popen.returncode,
        "closed": {name: stream and stream.closed for name, stream in streams.items()},
        "collected": collected
        and {
            name: None if stream not in collected else (b"".join(collected[stream]), b"" in collected[stream])
            for name, stream in streams.items()
            if name != "stdin" and stream is not None
        },
        "started": popen._communication_started,
        "input": popen._input,
        "offset": getattr(popen, "_input_offset", None),
        "text": popen.text_mode,
    }
