"""``fix_closed_stdin``: communicate() after stdin was closed."""

from types import ModuleType
from typing import Any

import pytest

from tests.child import PIPES, Gate, command, data, digest, err, out
from tests.outcome import as_upstream, describe, until

pytestmark = pytest.mark.fast_path("exchanges")


@pytest.mark.parametrize("bufsize", [{}, {"bufsize": 0}, {"bufsize": 1000}, {"text": True}], ids=str)
@pytest.mark.parametrize("timeout", [None, 100])
def test_the_outputs_are_returned(patched: Any, sp: ModuleType, timeout: Any, bufsize: dict[str, Any]) -> None:
    popen = sp.Popen(command("digest", f"err:200000:5000:{b'abc'.hex()}", "exit:3"), **PIPES, **bufsize)
    stdin = popen.stdin
    stdin.write("xyz" if "text" in bufsize else b"xyz")
    stdin.close()
    expected: Any = (digest(b"xyz"), (b"abc" * 70_000)[:200_000])
    if "text" in bufsize:
        expected = tuple(part.decode() for part in expected)
    assert popen.communicate(timeout=timeout) == expected
    assert popen.returncode == 3
    assert popen.stdin is stdin


def test_input_that_can_not_be_sent_any_more(patched: Any, sp: ModuleType) -> None:
    """As in CPython 3.15 it is not sent."""
    popen = sp.Popen(command("digest"), **PIPES)
    popen.stdin.close()
    assert popen.communicate(b"abc") == (digest(b""), b"")


def test_with_a_timeout_in_between(patched: Any, sp: ModuleType, gate: Gate) -> None:
    steps = [out(1, 100_000), gate.wait, err(2, 10)]
    popen = sp.Popen(command(*steps), pass_fds=gate.fds, **PIPES)
    stdin = popen.stdin
    stdin.close()
    outputs: list[bytes] = []

    def time_out() -> None:
        with pytest.raises(sp.TimeoutExpired) as caught:
            popen.communicate(timeout=0.4)
        outputs.append(caught.value.output or b"")
        assert popen.stdin is stdin

    time_out()
    until(lambda: len(outputs[-1]) >= 100_000, time_out)
    assert outputs[-1] == data(1, 100_000)
    gate.open()
    assert popen.communicate() == (data(1, 100_000), data(2, 10))


@pytest.mark.no_fast_path(reason="left to upstream")
def test_one_pipe_only_is_as_upstream(sp: ModuleType) -> None:
    def go() -> Any:
        popen = sp.Popen(command("exit:3"), stdin=-1)
        popen.stdin.close()
        try:
            return popen.communicate(), popen.returncode
        except ValueError as error:
            return describe(error, None), popen.wait()

    as_upstream(go)
