"""``communicate`` and ``green_communicate``: tests for both, with real children."""

import array
import contextlib
import errno
import json
import os
import pathlib
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest

import fastio
from fastio import counters
from fastio.concurrency import budget
from fastio.io import feed
from tests.child import BIG, BROKEN_PIPE, OUTPUTS, PIPES, Gate, command, data, digest, dump, err, out
from tests.conftest import MONKEY_PATCHED
from tests.descriptors import descriptors
from tests.io.conftest import refuse_nowait, refuse_proc
from tests.outcome import ATTEMPTS, Call, as_upstream, observe, outcome, timed_out, until

pytestmark = pytest.mark.fast_path("exchanges")

#: CPython 3.15's loop is a function of the module: it does not tell what was sent if it ends with an exception, and
#: a broken pipe never matters to it.
LOOP_OF_MODULE = sys.version_info >= (3, 15)
#: A time-out that never strikes, so that communicate() takes no short cut.
NEVER = 100


PAYLOAD = data(5, 200_002)


@pytest.mark.parametrize(
    "input",
    [
        memoryview(PAYLOAD)[::-2],
        memoryview(PAYLOAD)[::3],
        memoryview(PAYLOAD).cast("B", (2, 100_001)),
        array.array("H", PAYLOAD),
        memoryview(PAYLOAD).cast("h"),
        "text",
        [1, 2],
        5,
    ],
    ids=["backwards", "every third byte", "two dimensions", "shorts", "view of shorts", "text", "list", "number"],
)
def test_inputs_that_can_not_be_sliced_by_bytes_go_to_upstream(sp: ModuleType, input: Any) -> None:
    upstream = as_upstream(lambda: observe(sp, ["digest"], [Call(input)], **PIPES))
    assert "error" in upstream[0] or isinstance(input, (memoryview, array.array))
    # Without a pipe it is ignored.
    as_upstream(lambda: observe(sp, [out(1, 10)], [Call(input)], **OUTPUTS))


@pytest.mark.parametrize("which", ["stdin", "stdout", "stderr"])
def test_a_pipe_that_the_caller_closed(sp: ModuleType, which: str) -> None:
    def go() -> Any:
        popen = sp.Popen(command("in:1", {"stdout": err}.get(which, out)(1, 100_000)), **PIPES)
        getattr(popen, which).close()
        # Some releases refuse a closed stdin.
        found = outcome(lambda: popen.communicate(b"x")), popen.returncode
        popen.kill()
        with popen:
            return found

    as_upstream(go, counts={"exchanges": 1})


def test_a_second_call_after_one_that_failed_at_the_flush(sp: ModuleType) -> None:
    def go() -> Any:
        popen = sp.Popen(command("exit:3"), stdin=sp.PIPE)
        popen.stdin.close()
        return outcome(lambda: popen.communicate(timeout=NEVER)), outcome(popen.communicate), popen.wait()

    as_upstream(go, counts={})


def full(buffering: int) -> Any:
    """A file that takes nothing: a write to it fails with ENOSPC."""
    return open("/dev/full", "wb", buffering)


def closed_below(popen: Any) -> None:
    os.close(popen.stdin.fileno())


def replaced(popen: Any, by: Any) -> None:
    popen.stdin.close()
    popen.stdin = by


def unflushed(popen: Any) -> None:
    replaced(popen, full(-1))
    popen.stdin.write(b"x")


#: Ways to make stdin fail, with the input of communicate(), by another error than a missing reader.
ERRORS = {
    "flush": (unflushed, b"input", errno.ENOSPC),
    "close": (closed_below, None, errno.EBADF),
    "write": (lambda popen: replaced(popen, full(0)), b"input", errno.ENOSPC),
}


@pytest.mark.parametrize("where", ERRORS)
def test_only_a_pipe_without_readers_is_forgiven(sp: ModuleType, is_green: bool, where: str) -> None:
    if where == "write" and is_green:
        pytest.skip("epoll refuses what is always ready")
    spoil, input, expected = ERRORS[where]

    def go() -> Any:
        popen = sp.Popen(command("in:-1"), bufsize=0, **PIPES)
        spoil(popen)
        with pytest.raises(OSError) as caught:
            popen.communicate(input)
        popen.kill()
        popen.wait()
        for stream in (popen.stdin, popen.stdout, popen.stderr):
            with contextlib.suppress(OSError):
                stream.close()
        # Its progress shows who raised.
        return caught.type, caught.value.errno, hasattr(popen, "_fileobj2output")

    assert as_upstream(go, counts={"exchanges": 1}) == (OSError, expected, where == "write")


def test_a_child_that_closes_its_input_and_goes_on(patched: Any, sp: ModuleType) -> None:
    popen = sp.Popen(command("in:10", "close:0", out(1, BIG), err(2, 10)), **PIPES)
    assert popen.communicate(data(2, BIG)) == (data(1, BIG), data(2, 10))
    assert popen.returncode == 0


def test_a_child_that_closes_its_outputs_and_lives_on(patched: Any, sp: ModuleType, gate: Gate) -> None:
    steps = [out(1, 70_000), "close:1", "close:2", gate.wait, "exit:7"]
    popen = sp.Popen(command(*steps), pass_fds=gate.fds, **OUTPUTS)
    with pytest.raises(sp.TimeoutExpired):
        popen.communicate(timeout=0.3)
    assert popen.returncode is None
    gate.open()
    assert popen.communicate() == (data(1, 70_000), b"")
    assert popen.returncode == 7


@pytest.mark.parametrize("timeout", [0, -1, 1e-9])
def test_a_time_out_of_zero_expires_at_once(sp: ModuleType, gate: Gate, timeout: float) -> None:
    calls = [Call(timeout=timeout, after_tell=True), Call(timeout=timeout), Call(opens=True)]
    steps = [out(1, 1000), err(2, 1000), gate.tell, gate.wait]
    as_upstream(lambda: observe(sp, steps, calls, gate, **OUTPUTS), counts={"exchanges": 3})


def test_run_with_a_timeout_kills_and_has_the_output(patched: Any, sp: ModuleType, gate: Gate) -> None:
    for timeout in ATTEMPTS:
        with pytest.raises(sp.TimeoutExpired) as caught:
            sp.run(command(out(1, 60_000), gate.wait), pass_fds=gate.fds, capture_output=True, timeout=timeout)
        assert data(1, 60_000).startswith(caught.value.output or b"")
        if caught.value.output == data(1, 60_000):
            break
    assert caught.value.output == data(1, 60_000)
    assert caught.value.timeout == timeout


def test_pipes_kept_open_by_a_grandchild(patched: Any, sp: ModuleType, gate: Gate) -> None:
    popen = sp.Popen(command(out(1, 90_000), gate.grandchild, "exit:6"), pass_fds=gate.fds, **OUTPUTS)
    errors = [timed_out(sp, popen, 0.5)]
    until(lambda: len(errors[-1].output or b"") >= 90_000, lambda: errors.append(timed_out(sp, popen, 0.5)))
    assert errors[-1].output == data(1, 90_000)
    gate.open()
    assert popen.communicate(timeout=NEVER) == (data(1, 90_000), b"")
    assert popen.returncode == 6


#: Output before and after a time-out, and its text: no part can be decoded by itself.
CUT = {
    "utf-8": (b"a\xe2\x82", b"\xacb", "a\u20acb"),
    "utf-16": ("\ufeff\u20ac".encode("utf-16-le")[:3], "\u20acb".encode("utf-16-le")[1:], "\u20acb"),
    "newline": (b"a\r", b"\nb", "a\nb"),
}


@pytest.mark.parametrize("stream", ["out", "err"])
@pytest.mark.parametrize("kind", CUT)
def test_text_that_a_timeout_cuts(patched: Any, sp: ModuleType, gate: Gate, kind: str, stream: str) -> None:
    before, after, text = CUT[kind]
    steps = [f"{stream}:{len(before)}:9:{before.hex()}", gate.tell, gate.wait, f"{stream}:{len(after)}:9:{after.hex()}"]
    encoding = "utf-16" if kind == "utf-16" else "utf-8"
    popen = sp.Popen(command(*steps), pass_fds=gate.fds, encoding=encoding, **OUTPUTS)
    gate.reached()
    name = {"out": "stdout", "err": "stderr"}[stream]
    errors = [timed_out(sp, popen, 0.2)]
    until(lambda: getattr(errors[-1], name), lambda: errors.append(timed_out(sp, popen, 0.2)))
    # It is reported as bytes.
    assert getattr(errors[-1], name) == before
    gate.open()
    assert popen.communicate() == ((text, "") if stream == "out" else ("", text))


def test_text_is_decoded_once_the_child_has_ended(sp: ModuleType, gate: Gate) -> None:
    """The caller that gets a decoding error finds a child that has been waited for, and in time, like upstream's."""

    def go() -> Any:
        steps = [out(1, 1000), "close:1", "close:2", gate.tell, gate.wait, "settled", "exit:3"]
        popen = sp.Popen(command(*steps), pass_fds=gate.fds, encoding="utf-8", **OUTPUTS)
        gate.reached()
        error = timed_out(sp, popen, 0.2)
        assert popen.returncode is None and error.cmd == popen.args
        gate.open()
        with pytest.raises(UnicodeDecodeError):
            popen.communicate()
        return popen.returncode

    assert as_upstream(go, counts={"exchanges": 2}) == 3


INTERRUPTED = """
import json, signal, subprocess, sys
# What a shell starts in the background ignores the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
import fastio
from fastio import counters
from tests.child import Gate, command, data, err, out

if sys.argv[2] == "patched":
    fastio.patch(strict=True)
counters.reset()
gate = Gate()
popen = subprocess.Popen(
    command(out(1, 200_000), "in:1000", "settled", "interrupt", gate.wait, "in:-1", out(2, 200_000), err(3, 10),
            "exit:2"),
    stdin=-1, stdout=-1, stderr=-1, pass_fds=gate.fds)
try:
    popen.communicate(data(4, 1000) if sys.argv[3] == "sent" else data(4, 3_000_000))
    caught = "nothing"
except KeyboardInterrupt:
    caught = "KeyboardInterrupt"
seen = {"caught": caught, "returncode then": popen.returncode, "sent": popen._input_offset > 0,
        "started": popen._communication_started}
gate.open()
if sys.argv[3] != "sent":
    popen.stdin.close()
stdout, stderr = popen.communicate()
seen.update({"stdout": stdout == data(1, 200_000) + data(2, 200_000), "stderr": stderr == data(3, 10),
             "returncode": popen.returncode, "exchanges": counters.exchanges})
print(json.dumps(seen))
"""


@pytest.mark.parametrize("how", ["sent", "partly sent"])
def test_ctrl_c_and_then_go_on(request: pytest.FixtureRequest, in_mode: Any, how: str) -> None:
    if LOOP_OF_MODULE and "green" in request.node.callspec.params.values():
        pytest.skip("CPython 3.15 waits with select.poll() after Ctrl-C, which eventlet takes away")
    seen = json.loads(in_mode(INTERRUPTED, "patched", how))
    assert seen == {
        "caught": "KeyboardInterrupt", "returncode then": None, "sent": not LOOP_OF_MODULE, "started": True,
        "stdout": True, "stderr": True, "returncode": 2, "exchanges": 2,
    }  # fmt: skip
    assert {**seen, "exchanges": 0} == json.loads(in_mode(INTERRUPTED, "stock", how))


@pytest.fixture
def many_files() -> Any:
    """Every descriptor below 1,100 is in use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip(f"only {hard} descriptors are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    opened = [os.open(os.devnull, os.O_RDONLY)]
    while opened[-1] < 1100:
        opened.append(os.dup(opened[0]))
    yield
    for fd in opened:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_descriptors_above_those_of_select(patched: Any, sp: ModuleType, many_files: Any) -> None:
    popen = sp.Popen(command("echo", err(1, 100_000)), **PIPES)
    assert min(popen.stdin.fileno(), popen.stdout.fileno(), popen.stderr.fileno()) > 1024
    assert popen.communicate(data(2, BIG), timeout=NEVER) == (data(2, BIG), data(1, 100_000))


@pytest.fixture(params=["without pwritev2", "without the flag", "without /proc"])
def older_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes that never wait are not to be had, as with an older kernel or in a container."""
    if MONKEY_PATCHED:
        pytest.skip("green pipes do not block")
    if request.param == "without the flag":
        monkeypatch.setattr(feed, "_NOWAIT", 0)
    else:
        refuse_nowait(monkeypatch)
    if request.param == "without /proc":
        refuse_proc(monkeypatch)


def test_older_kernels_never_wait_in_a_write(patched: Any, older_kernel: None) -> None:
    # The child makes room for one write, and then wants to be read: who writes twice waits for ever.
    popen = subprocess.Popen(command("in:65536", "sleep:0.2", out(1, BIG), "digest"), **PIPES)
    stdout, _ = popen.communicate(data(2, BIG), timeout=NEVER)
    assert stdout == data(1, BIG) + digest(data(2, BIG)[65536:])


def test_older_kernels_leave_no_descriptor(patched: Any, older_kernel: None, gate: Gate) -> None:
    before = descriptors()
    for _ in range(3):
        subprocess.run(command("digest"), input=data(1, BIG), capture_output=True, check=True)
        subprocess.run(command("exit:3"), input=data(1, BIG), capture_output=True)
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(command(gate.wait), pass_fds=gate.fds, input=data(1, BIG), capture_output=True, timeout=0.1)
    assert not descriptors() - before


def flags_seen_by_a_child(sp: ModuleType, fd: int) -> bytes:
    """Return a child's report on ``fd`` as its stdin: whether it is in blocking mode."""
    return sp.run(command("blocking:0"), stdin=fd, stdout=-1, check=True).stdout


@pytest.mark.skipif(MONKEY_PATCHED, reason="green pipes are non-blocking")
def test_pipes_stay_blocking_natively(patched: Any, gate: Gate) -> None:
    sp = subprocess
    popen = sp.Popen(command(out(1, BIG), gate.wait, "in:-1", out(2, 10)), pass_fds=gate.fds, **PIPES)
    kept = [os.dup(getattr(popen, name).fileno()) for name in ("stdin", "stdout", "stderr")]
    try:
        timed_out(sp, popen, 0.3, data(3, BIG))
        # The pipes are in use, and another child is given them.
        assert [flags_seen_by_a_child(sp, fd) for fd in kept] == [b"True"] * 3
        # Or the child's input would never end: not all releases send the rest of it.
        os.close(kept.pop(0))
        popen.stdin.close()
        gate.open()
        assert popen.communicate() == (data(1, BIG) + data(2, 10), b"")
        assert [flags_seen_by_a_child(sp, fd) for fd in kept] == [b"True"] * 2
    finally:
        for fd in kept:
            os.close(fd)


def test_the_child_has_blocking_pipes(patched: Any, sp: ModuleType) -> None:
    popen = sp.Popen(command("in:100000", "blocking:0", "blocking:1", "blocking:2"), **PIPES)
    assert popen.communicate(data(1, 100_000)) == (b"TrueTrueTrue", b"")


def test_many_threads_at_once(patched: Any) -> None:
    def go(number: int) -> bool:
        popen = subprocess.Popen(command("echo", err(number + 50, 200_000, 1001)), **PIPES)
        payload = data(number, 700_000 + number)
        return popen.communicate(payload) == (payload, data(number + 50, 200_000))

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(go, range(12))) == [True] * 12
    assert budget.shared.active() == 0


def test_a_writer_without_readers_ends_by_the_broken_pipe(patched: Any, sp: ModuleType) -> None:
    popen = sp.Popen(command(err(1, 10), out(2, BIG)), **OUTPUTS)
    popen.stdout.close()
    assert popen.communicate(timeout=NEVER) == (b"", data(1, 10))
    assert popen.returncode == BROKEN_PIPE


@pytest.mark.parametrize("input", [None, b"more"])
def test_broken_pipe_at_the_flush(sp: ModuleType, input: bytes | None) -> None:
    def go() -> Any:
        popen = sp.Popen(command(out(1, 1000), err(2, 1000), "exit:3"), bufsize=100_000, **PIPES)
        popen.stdin.write(b"buffered")
        popen.wait()
        try:
            return popen.communicate(input), popen.returncode
        except BrokenPipeError as error:
            # Until 3.15, upstream closes stdin once more where the child does not read, and does not expect data in its
            # buffer. That comes first: nothing of the outputs is lost.
            return str(error), popen.returncode, popen.stdout.read(), popen.stderr.read()

    # Under eventlet upstream spins for ever; natively it is so.
    outputs = data(1, 1000), data(2, 1000)
    forgiven = input is None or LOOP_OF_MODULE
    expected = (outputs, 3) if forgiven else ("[Errno 32] Broken pipe", 3, *outputs)
    if sp.__name__ == "subprocess" and not MONKEY_PATCHED:
        assert go() == expected
    with fastio.patched():
        counters.reset()
        assert go() == expected
        assert counters.exchanges == 1


def test_reads_and_waits_are_few(patched: Any, sp: ModuleType, tmp_path: Any) -> None:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(1 << 20) * 16)

    def reads() -> int:
        """Of this thread, as the kernel counts them; those of a process get its children's added."""
        found = dict(line.split(": ") for line in pathlib.Path("/proc/thread-self/io").read_text().splitlines())
        return int(found["syscr"])

    popen = sp.Popen(dump(path), **OUTPUTS)
    counters.reset()
    before = reads()
    stdout, _ = popen.communicate()
    # Stock needs at least 32 per MiB.
    assert reads() - before <= 8 * 16
    assert stdout == path.read_bytes()
    assert counters.bytes_in == len(stdout)
    assert counters.reads <= 8 * 16 and counters.waits <= 8 * 16, counters.snapshot()
