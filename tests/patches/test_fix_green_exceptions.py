"""``fix_green_exceptions``: the exceptions are the ones that ``subprocess`` shows."""

from __future__ import annotations

import pickle
import subprocess
from typing import Any

import pytest

import fastio
from tests.child import Gate, command, data, err, out

pytest.importorskip("eventlet")

from eventlet.green import subprocess as green  # noqa: E402

pytestmark = pytest.mark.no_fast_path(reason="some of what is run here has no pipes")

PIPES = {"stdin": -1, "stdout": -1, "stderr": -1}


def test_the_classes_are_one(patched: Any) -> None:
    assert green.TimeoutExpired is subprocess.TimeoutExpired
    assert green.CalledProcessError is subprocess.CalledProcessError


def expired(gate: Gate) -> dict[str, Any]:
    """Every way to a TimeoutExpired."""

    def communicate(**options: Any) -> None:
        green.Popen(command(out(1, 100), gate.wait), pass_fds=gate.fds, **options).communicate(timeout=0.2)

    return {
        "communicate, three pipes": lambda: communicate(**PIPES),
        "communicate, one pipe": lambda: communicate(stdout=-1),
        "communicate, text": lambda: communicate(stdout=-1, text=True),
        "wait": lambda: green.Popen(command(gate.wait), pass_fds=gate.fds).wait(0.1),
        "run": lambda: green.run(command(gate.wait), pass_fds=gate.fds, timeout=0.1),
        "run, captured": lambda: green.run(command(gate.wait), pass_fds=gate.fds, capture_output=True, timeout=0.1),
        "call": lambda: green.call(command(gate.wait), pass_fds=gate.fds, timeout=0.1),
        "check_call": lambda: green.check_call(command(gate.wait), pass_fds=gate.fds, timeout=0.1),
        "check_output": lambda: green.check_output(command(gate.wait), pass_fds=gate.fds, timeout=0.1),
    }


@pytest.mark.parametrize("way", expired(None))  # type: ignore[arg-type]
def test_timeout_expired(patched: Any, gate: Gate, way: str) -> None:
    try:
        with pytest.raises(subprocess.TimeoutExpired) as caught:
            expired(gate)[way]()
    finally:
        gate.open()
    assert type(caught.value) is subprocess.TimeoutExpired
    assert 0 < caught.value.timeout <= 0.2
    if "communicate" in way:
        assert caught.value.output == data(1, 100)
    copied = pickle.loads(pickle.dumps(caught.value))
    assert type(copied) is subprocess.TimeoutExpired


FAILED = {
    "run": lambda: green.run(command(out(1, 9), err(2, 9), "exit:3"), capture_output=True, check=True),
    "check_call": lambda: green.check_call(command("exit:3")),
    "check_output": lambda: green.check_output(command(out(1, 9), err(2, 9), "exit:3"), stderr=-1),
}


@pytest.mark.parametrize("way", FAILED)
def test_called_process_error(patched: Any, way: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        FAILED[way]()
    error = caught.value
    assert type(error) is subprocess.CalledProcessError and error.returncode == 3
    assert (error.output, error.stderr) == ((None, None) if way == "check_call" else (data(1, 9), data(2, 9)))


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


def test_run_has_its_signature(patched: Any) -> None:
    import inspect

    assert inspect.signature(green.run) == inspect.signature(subprocess.run)
    with pytest.raises(ValueError, match="capture_output"):
        green.run(["true"], capture_output=True, stdout=-1)
    with pytest.raises(ValueError, match="stdin and input"):
        green.run(["true"], input=b"x", stdin=-1)


def test_switched_off() -> None:
    def classes() -> list[type]:
        found = []
        for way in ("communicate, three pipes", "run, captured"):
            # A gate of its own: a child that was killed has not taken what opens it.
            with Gate() as gate:
                try:
                    expired(gate)[way]()
                except Exception as error:
                    found.append(type(error))
        return found

    upstream = classes()
    assert {cls.__name__ for cls in upstream} == {"TimeoutExpired"}
    with fastio.patched(disabled=["fix_green_exceptions"]):
        assert classes() == upstream
