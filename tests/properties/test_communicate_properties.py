"""Any bytes through any chunk, pipe, turn, input, time-out, text mode and wiring: as the unpatched code has them.

The expected output of a child is known from its acts. Beyond that a patched run is compared, with everything that a
caller can see, to an unpatched one: natively stock subprocess; under eventlet stock subprocess of native threads, and
stock eventlet where that neither hangs nor is wrong.
"""

import subprocess
import warnings
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

import fastio
from fastio import counters
from tests.child import Gate
from tests.conftest import MONKEY_PATCHED
from tests.outcome import Call, observe
from tests.properties.strategies import Child, children, fastio_settings, inputs
from tests.targets import SENDS_REST

if MONKEY_PATCHED:
    import eventlet.patcher

    native = eventlet.patcher.original("subprocess")
else:
    native = subprocess

NEVER = 100
WHERE = {"PIPE": subprocess.PIPE, "STDOUT": subprocess.STDOUT, "DEVNULL": subprocess.DEVNULL, "None": None}
#: The effect of a text mode on the bytes of a child, and of its input.
TEXTS: list[dict[str, Any]] = [
    {"text": True},
    {"universal_newlines": True},
    {"encoding": "utf-8"},
    {"encoding": "latin-1"},
    {"encoding": "utf-16"},
    {"encoding": "ascii", "errors": "replace"},
    {"encoding": "utf-8", "errors": "ignore"},
    {"errors": "surrogateescape"},
    {"errors": "strict"},
]


def run(module: Any, child: Child, calls: list[Call], options: dict[str, Any], gate: Gate | None = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # line buffering of bytes
        return observe(module, child.steps, calls, gate, **options)


def comparable(seen: Any, child: Child) -> Any:
    """Without how far an input came that the child does not read: that is a matter of speed."""
    if child.reads_all:
        return seen
    return [{key: value for key, value in found.items() if key != "offset"} for found in seen]


def wired(child: Child, stdout: str, stderr: str) -> tuple[bytes | None, bytes | None]:
    """Return communicate()'s result for the child, by the wiring."""
    if stderr == "STDOUT":
        return (child.merged, None) if stdout == "PIPE" else (None, None)
    return child.stdout if stdout == "PIPE" else None, child.stderr if stderr == "PIPE" else None


@st.composite
def wirings(draw: st.DrawFn) -> tuple[Child, str, str, str]:
    """A child and where its streams go; what goes to the terminal of the tests stays empty."""
    stdin = draw(st.sampled_from(["PIPE", "PIPE", "PIPE", "DEVNULL", "None"]))
    stdout = draw(st.sampled_from(["PIPE", "PIPE", "PIPE", "DEVNULL", "None"]))
    stderr = draw(st.sampled_from(["PIPE", "PIPE", "PIPE", "STDOUT", "DEVNULL", "None"]))
    streams = []
    if stdout != "None":
        streams.append("out")
    if stderr not in ("None", "STDOUT") or (stderr == "STDOUT" and stdout != "None"):
        streams.append("err")
    child = draw(children(reads=stdin != "None", streams=tuple(streams)))
    return child, stdin, stdout, stderr


def options_of(stdin: str, stdout: str, stderr: str, **more: Any) -> dict[str, Any]:
    return {"stdin": WHERE[stdin], "stdout": WHERE[stdout], "stderr": WHERE[stderr], **more}


def goes_fast(options: dict[str, Any], timeout: float | None) -> bool:
    """With one pipe and no time-out, communicate() reads or writes that pipe directly."""
    count = sum(options[name] == subprocess.PIPE for name in ("stdin", "stdout", "stderr"))
    return timeout is not None or count >= 2


#: Each example starts children: half as many as the profile has of others.
HALF = settings(max_examples=settings.default.max_examples // 2)


@HALF
@given(
    wiring=wirings(),
    input=inputs(),
    timeout=st.sampled_from([None, NEVER]),
    bufsize=st.sampled_from([-1, 0, 1, 4096, 65536]),
    sizes=fastio_settings,
)
def test_bytes(wiring: Any, input: Any, timeout: float | None, bufsize: int, sizes: dict[str, Any]) -> None:
    child, stdin, stdout, stderr = wiring
    options = options_of(stdin, stdout, stderr, bufsize=bufsize)
    calls = [Call(input, timeout)]
    with fastio.patched(**sizes):
        before = counters.exchanges
        seen = run(subprocess, child, calls, options)
        assert counters.exchanges - before == goes_fast(options, timeout)
    assert seen[0]["result"] == wired(child, stdout, stderr)
    assert seen[0]["returncode"] == child.returncode
    if stdin == "PIPE" and child.reads_all and goes_fast(options, timeout):
        assert seen[0]["offset"] == (len(input) if input else seen[0]["offset"])
    if stdin == "PIPE" and input and not child.reads_all and MONKEY_PATCHED:
        event("stock eventlet spins for ever on EPIPE")
        return
    assert comparable(run(native, child, calls, options), child) == comparable(seen, child)
    if MONKEY_PATCHED:
        assert comparable(run(subprocess, child, calls, options), child) == comparable(seen, child)


@HALF
@given(
    child=children(),
    text=st.text(max_size=30),
    times=st.sampled_from([1, 100, 5000]),
    mode=st.sampled_from(TEXTS),
    timeout=st.sampled_from([None, NEVER]),
    bufsize=st.sampled_from([-1, 1, 4096]),
    stderr=st.sampled_from(["PIPE", "STDOUT"]),
    sizes=fastio_settings,
)
def test_text(
    child: Child, text: str, times: int, mode: Any, timeout: float | None, bufsize: int, stderr: str,
    sizes: dict[str, Any],
) -> None:  # fmt: skip
    options = options_of("PIPE", "PIPE", stderr, bufsize=bufsize, **mode)
    calls = [Call(text * times, timeout)]
    with fastio.patched(**sizes):
        before = counters.exchanges
        seen = run(subprocess, child, calls, options)
        assert counters.exchanges - before == 1
    if text and not child.reads_all and MONKEY_PATCHED:
        event("stock eventlet spins for ever on EPIPE")
        return
    assert comparable(run(native, child, calls, options), child) == comparable(seen, child)
    event(seen[0].get("error", "text"))


@settings(max_examples=max(settings.default.max_examples // 4, 10))
@given(
    before=children(reads=False),
    after=children(),
    input=inputs(),
    timeouts=st.lists(st.sampled_from([0, -1, 0.0, 1e-9, 0.05]), min_size=1, max_size=3),
    stderr=st.sampled_from(["PIPE", "STDOUT"]),
    mode=st.sampled_from([{}, {}, {"encoding": "latin-1"}]),
    sizes=fastio_settings,
)
def test_timeouts(
    before: Child, after: Child, input: Any, timeouts: list[float], stderr: str, mode: Any, sizes: dict[str, Any]
) -> None:
    """Calls that time out while the child waits, and a last one in which it goes on."""
    with Gate() as gate:
        closed = {step for step in before.steps if step.startswith("close:")}
        rest = [
            step for step in after.steps
            if not (step.startswith("out:") and "close:1" in closed or step.startswith("err:") and "close:2" in closed)
            and step not in closed
        ]  # fmt: skip
        child = Child([*before.steps[:-1], gate.wait, *rest], b"", b"", b"", after.returncode, after.reads_all)
        if mode and input is not None:
            input = bytes(input).decode("latin-1")
        if not SENDS_REST:
            # The child would wait for the rest of it.
            input = None
        calls = [
            *(Call(None if number else input, timeout) for number, timeout in enumerate(timeouts)),
            Call(opens=True, timeout=NEVER),
        ]
        options = options_of("PIPE", "PIPE", stderr, **mode)
        with fastio.patched(**sizes):
            seen = run(subprocess, child, calls, options, gate)
    expected_out = before.stdout + (after.stdout if "close:1" not in closed else b"")
    expected_err = before.stderr + (after.stderr if "close:2" not in closed else b"")
    for timeout, found in zip(timeouts, seen, strict=False):
        assert found["error"] == "TimeoutExpired"
        # With both outputs at their end it is the wait for the child that times out.
        assert found["timeout"] == timeout or found["timeout"] == "the rest" and len(closed) == 2
        assert found["cmd"] == child.command() and found["returncode"] is None
        if stderr == "PIPE":
            assert expected_out.startswith(found["output"] or b"")
            assert expected_err.startswith(found["stderr"] or b"")
        else:
            assert found["stderr"] is None
        if timeout < 1e-6 and timeout == timeouts[0] and found is seen[0]:
            assert found["output"] is None and found["stderr"] is None
    last = seen[len(timeouts)]
    if mode and "result" in last:
        results = [part if part is None else part.encode("latin-1") for part in last["result"]]
        expected_out, expected_err = (
            part.replace(b"\r\n", b"\n").replace(b"\r", b"\n") for part in (expected_out, expected_err)
        )
    else:
        results = list(last["result"])
    if stderr == "PIPE":
        assert results == [expected_out, expected_err]
    else:
        assert results[1] is None
    assert last["returncode"] == child.returncode
    if input and child.reads_all:
        assert last["offset"] == len(input.encode("latin-1") if mode else input)


@settings(max_examples=max(settings.default.max_examples // 4, 10))
@given(
    child=children(reads=False),
    stdout=st.sampled_from(["PIPE", "PIPE", "DEVNULL"]),
    stderr=st.sampled_from(["PIPE", "PIPE", "STDOUT", "DEVNULL"]),
    mode=st.sampled_from([{}, {"text": True, "errors": "replace"}]),
    sizes=fastio_settings,
)
def test_the_output_of_a_timeout(child: Child, stdout: str, stderr: str, mode: Any, sizes: dict[str, Any]) -> None:
    """The exception of a call in which everything that is to come has come: every attribute as unpatched."""
    options = options_of("DEVNULL", stdout, stderr, **mode)
    for timeout in (0.1, 1, 10):
        with Gate() as gate:
            waiting = Child([*child.steps[:-1], gate.tell, gate.wait], b"", b"", b"", 0, True)
            calls = [Call(timeout=timeout), Call(opens=True, timeout=NEVER)]
            with fastio.patched(**sizes):
                seen = run(subprocess, waiting, calls, options, gate)
            gate.reached()
        with Gate() as gate:
            waiting.steps[-2:] = [gate.tell, gate.wait]
            reference = run(native, waiting, calls, options, gate)
            gate.reached()
        # The commands name descriptors, which may differ.
        for found in (*seen, *reference):
            found.pop("cmd", None)
        if seen == reference:
            break
        event(f"not all had come in {timeout} s")
    assert seen == reference
