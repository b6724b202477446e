"""``fix_green_exceptions``: the exceptions are the ones that ``subprocess`` shows."""

import functools
import pickle
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.child import PIPES, Gate, command, data, err, out
from tests.outcome import ATTEMPTS

pytest.importorskip("eventlet")

from eventlet.green import subprocess as green  # noqa: E402

pytestmark = pytest.mark.no_fast_path(reason="some of what is run here has no pipes")


def test_the_classes_are_one(patched: Any) -> None:
    assert green.TimeoutExpired is subprocess.TimeoutExpired
    assert green.CalledProcessError is subprocess.CalledProcessError


def communicate(gate: Gate, timeout: float, **options: Any) -> None:
    green.Popen(command(out(1, 100), gate.wait), pass_fds=gate.fds, **options).communicate(timeout=timeout)


def waiting(name: str, gate: Gate, timeout: float, **options: Any) -> None:
    getattr(green, name)(command(gate.wait), pass_fds=gate.fds, timeout=timeout, **options)


#: Every call that ends in a TimeoutExpired.
EXPIRED: dict[str, Any] = {
    "communicate, three pipes": functools.partial(communicate, **PIPES),
    "communicate, one pipe": functools.partial(communicate, stdout=-1),
    "communicate, text": functools.partial(communicate, stdout=-1, text=True),
    "wait": lambda gate, timeout: green.Popen(command(gate.wait), pass_fds=gate.fds).wait(timeout),
    "run": functools.partial(waiting, "run"),
    "run, captured": functools.partial(waiting, "run", capture_output=True),
    "call": functools.partial(waiting, "call"),
    "check_call": functools.partial(waiting, "check_call"),
    "check_output": functools.partial(waiting, "check_output"),
}


def expired(how: str, timeout: float) -> Any:
    """The exception of one of them; the child's gate is its own, so that no other child is let go."""
    with Gate() as gate, pytest.raises(Exception, match="timed out") as caught:
        EXPIRED[how](gate, timeout)
    return caught.value


@pytest.mark.parametrize("how", EXPIRED)
def test_timeout_expired(patched: Any, how: str) -> None:
    # How long a child takes to start is the machine's business.
    for timeout in (0.2, *ATTEMPTS) if "communicate" in how else (0.1,):
        error = expired(how, timeout)
        assert type(error) is subprocess.TimeoutExpired
        # The rest of it, which may be nothing any more, is what Popen.wait() has at the end of some of them.
        assert error.timeout <= timeout
        if error.output:
            break
    if "communicate" in how:
        assert error.output == data(1, 100)
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is subprocess.TimeoutExpired


FAILED = {
    "run": lambda: green.run(command(out(1, 9), err(2, 9), "exit:3"), capture_output=True, check=True),
    "check_call": lambda: green.check_call(command("exit:3")),
    "check_output": lambda: green.check_output(command(out(1, 9), err(2, 9), "exit:3"), stderr=-1),
}


@pytest.mark.parametrize("how", FAILED)
def test_called_process_error(patched: Any, how: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        FAILED[how]()
    error = caught.value
    assert type(error) is subprocess.CalledProcessError and error.returncode == 3
    assert (error.output, error.stderr) == ((None, None) if how == "check_call" else (data(1, 9), data(2, 9)))


def test_check_output_works_as_before(patched: Any) -> None:
    assert green.check_output(command(out(1, 100_000))) == data(1, 100_000)
    assert green.check_output(command("echo"), input=b"abc") == b"abc"
    assert green.check_output(command("echo"), input="abc", text=True) == "abc"
    assert green.check_output(command("echo"), input=None, text=True) == ""
    with pytest.raises(ValueError, match="stdout argument not allowed"):
        green.check_output(command("exit:0"), stdout=-1)


def test_check_output_lets_others_run(patched: Any, hub: Any, gate: Gate) -> None:
    import eventlet

    other = eventlet.spawn(lambda: gate.open())
    assert green.check_output(command(gate.wait, out(1, 9)), pass_fds=gate.fds) == data(1, 9)
    other.wait()


IN_THE_HUB = """
    import eventlet
    eventlet.monkey_patch(os=False)
    import subprocess
    import fastio
    from eventlet import hubs
    with fastio.patched():
        hubs.get_hub().schedule_call_global(
            0, lambda: print(subprocess.check_output(["sh", "-c", "sleep 0.1; echo done"], text=True)))
        eventlet.sleep(0.01)
"""


def test_check_output_in_the_hub_blocks_like_upstream(run_python: Callable[..., Any]) -> None:
    result = run_python(IN_THE_HUB, options=("-W", "ignore"))
    assert result.stdout == "done\n\n", result.stderr
