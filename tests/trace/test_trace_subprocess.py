"""Commands: each is one span, however it was run, and the program finds everything as without a trace."""

import gc
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import fastio
from fastio.trace import spans
from fastio.trace.instrumentation import trace_subprocess
from tests.conftest import MONKEY_PATCHED
from tests.trace import traces

Ends = Callable[[], list[dict[str, Any]]]
#: Values that differ from one run to the next.
WAITS = ("waits", "wait_ns")


@pytest.fixture
def commands(tmp_path: pathlib.Path) -> Iterator[Ends]:
    """Records commands while the test runs; a call ends that and returns their values, in the order of their ends."""
    fastio.patch([], trace=str(tmp_path))

    def commands() -> list[dict[str, Any]]:
        fastio.unpatch()
        traces.well_formed(traces.spans(tmp_path))
        return traces.ends(tmp_path, "subprocess.command")

    yield commands
    fastio.unpatch()
    assert trace_subprocess._running == {}


@pytest.fixture
def gate() -> Iterator[tuple[int, Callable[[], object]]]:
    """The standard input of a child that waits for a line, and what sends it."""
    reader, writer = os.pipe()
    yield reader, lambda: os.write(writer, b"\n")
    os.close(reader)
    os.close(writer)


def sh(script: str, **more: Any) -> Any:
    return subprocess.Popen(["sh", "-c", script], **more)


def polled(popen: Any) -> int:
    """The exit status, by ``poll()`` alone."""
    while (code := popen.poll()) is None:
        time.sleep(0.005)
    return int(code)


def waited() -> None:
    assert sh("exit 3").wait() == 3


def in_a_block() -> None:
    with sh("exit 3"):
        pass


@pytest.mark.parametrize(
    "run",
    [
        lambda: subprocess.run(["sh", "-c", "exit 3"]),
        lambda: subprocess.run(["sh", "-c", "exit 3"], capture_output=True),
        lambda: subprocess.call(["sh", "-c", "exit 3"]),
        lambda: subprocess.run(["sh", "-c", "exit 3"], timeout=60),
        lambda: sh("exit 3").communicate(),
        lambda: sh("exit 3").wait(60),
        waited,
        in_a_block,
    ],
)
def test_a_command_is_one_span_however_it_is_run(run: Callable[[], object], commands: Ends) -> None:
    run()
    (end,) = commands()
    assert (end["program"], end["code"], end["outcome"]) == ("sh", 3, "ok")


def test_the_data_of_communicate(commands: Ends) -> None:
    done = subprocess.run(["cat"], input=b"x" * 70000, stdout=subprocess.PIPE)
    assert done.stdout == b"x" * 70000
    (end,) = commands()
    assert (end["bytes"], end["code"]) == (140000, 0)
    assert ("waits" in end) is MONKEY_PATCHED


@pytest.mark.parametrize("wiring", [{"stdout": subprocess.PIPE}, {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}])
def test_a_command_ends_with_its_communicate_and_not_before(
    wiring: dict[str, Any], commands: Ends, tmp_path: pathlib.Path
) -> None:
    """Although ``communicate()`` itself waits for it: what comes in between is not yet behind its end."""

    class Own(subprocess.Popen):  # type: ignore[type-arg]
        def wait(self, timeout: float | None = None) -> int:
            code = super().wait(timeout)
            spans.Span("test.waited").end()
            return code

    assert Own(["echo", "a"], **wiring).communicate() == (b"a\n", None)
    (end,) = commands()
    assert (end["bytes"], end["code"]) == (2, 0)
    found = [span.name for span in traces.spans(tmp_path)]
    assert found[-1] == "subprocess.command" and set(found[:-1]) == {"test.waited"}


def test_a_program_that_is_not_there(commands: Ends, tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        subprocess.run(["/no/such/SECRET", "ARGUMENT"])
    assert caught.value.filename == "/no/such/SECRET"
    (end,) = commands()
    assert {name: value for name, value in end.items() if name not in WAITS} == {
        "program": "***", "outcome": "error", "error": "FileNotFoundError ENOENT"
    }  # fmt: skip
    assert all(b"SECRET" not in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize("args", [5, [5], [None], [["sh"]], ["sh\0"]])
def test_an_invalid_command_has_upstreams_error(args: Any, commands: Ends) -> None:
    found: list[Any] = []
    for _ in range(2):
        try:
            subprocess.Popen(args).wait()
            found.append(None)
        except Exception as error:
            found.append((type(error), str(error)))
        ends = commands()
    assert len(ends) == 1
    assert found[0] == found[1]


def test_arguments_that_can_be_taken_only_once(commands: Ends) -> None:
    assert subprocess.run(iter(["echo", "a"]), stdout=subprocess.PIPE).stdout == b"a\n"  # type: ignore[call-overload]
    (end,) = commands()
    assert (end["program"], end["code"]) == ("***", 0)


def waited_out(popen: Any, open_gate: Callable[[], object]) -> None:
    for _ in range(2):
        with pytest.raises(Exception, match="timed out after"):
            popen.communicate(timeout=0.05)
    open_gate()
    assert popen.communicate() == (b"done\n", None)


def too_soon(popen: Any, open_gate: Callable[[], object]) -> None:
    with pytest.raises(Exception, match="timed out after"):
        popen.wait(0.05)
    open_gate()
    assert popen.wait() == 0


def killed(popen: Any, open_gate: Callable[[], object]) -> None:
    with pytest.raises(Exception, match="timed out after"):
        popen.communicate(timeout=0.05)
    popen.kill()
    assert popen.wait() == -9


@pytest.mark.parametrize(
    ("use", "code", "error"), [(waited_out, 0, "recovered"), (too_soon, 0, None), (killed, -9, "error")]
)
def test_a_time_out(
    use: Any, code: int, error: str | None, commands: Ends, gate: tuple[int, Callable[[], object]]
) -> None:
    """It is an error if the command is not waited for any more."""
    reader, open_gate = gate
    use(sh("read line; echo done", stdin=reader, stdout=subprocess.PIPE), open_gate)
    (end,) = commands()
    assert (end["outcome"], end["code"]) == ("error" if error == "error" else "ok", code)
    named = {name: value for name, value in end.items() if name in ("error", "recovered")}
    assert [*named] == ([] if error is None else [error]) and all("TimeoutExpired" in each for each in named.values())


@pytest.mark.parametrize("more", [True, False])
def test_an_exit_that_poll_finds_is_seen_later(more: bool, commands: Ends) -> None:
    popen = sh("exit 3")
    assert polled(popen) == 3
    if more:
        subprocess.run(["true"])
    first, *others = commands()
    assert (first["program"], first["code"], first["outcome"]) == ("sh", 3, "ok")
    assert [end["program"] for end in others] == ["true"] * more


class Own(subprocess.Popen):  # type: ignore[type-arg]
    """Has no slots: others may set attributes."""


@pytest.mark.parametrize("held", [False, True], ids=["at once", "by the collector"])
def test_a_command_that_is_forgotten(commands: Ends, held: bool) -> None:
    popen = Own(["sh", "-c", "exit 3"])
    if held:
        popen.me = popen  # type: ignore[attr-defined]
    polled(popen)
    del popen
    gc.collect()
    (end,) = commands()
    assert {name: value for name, value in end.items() if name not in WAITS} == {"program": "sh", "outcome": "unknown"}


def test_a_command_that_goes_on_has_no_end(
    commands: Ends, gate: tuple[int, Callable[[], object]], tmp_path: pathlib.Path
) -> None:
    reader, open_gate = gate
    popen = sh("read line", stdin=reader)
    fastio.unpatch()
    assert traces.spans(tmp_path) == []
    open_gate()
    # Existing objects still belong to the trace that has ended.
    fastio.patch([], trace=str(tmp_path / "next"))
    assert popen.wait() == 0
    fastio.unpatch()
    assert traces.spans(tmp_path / "next") == []


def test_a_command_that_was_there_before(tmp_path: pathlib.Path) -> None:
    popen = sh("cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with fastio.patched([], trace=str(tmp_path)):
        assert popen.communicate(b"abc") == (b"abc", None)
    (end,) = traces.ends(tmp_path, "subprocess.command")
    assert (end["program"], end["code"], end["bytes"]) == ("sh", 0, 6)


def test_several_threads_wait_for_one_command(commands: Ends, gate: tuple[int, Callable[[], object]]) -> None:
    reader, open_gate = gate
    popen = sh("read line; exit 3", stdin=reader)
    with ThreadPoolExecutor(4) as pool:
        codes = [pool.submit(popen.wait) for _ in range(4)]
        open_gate()
        assert [code.result(60) for code in codes] == [3] * 4
    (end,) = commands()
    assert (end["code"], end["outcome"]) == (3, "ok")


def test_a_popen_has_the_attributes_of_upstream(tmp_path: pathlib.Path) -> None:
    def attributes() -> dict[str, Any]:
        popen = sh("exit 3", stdout=subprocess.PIPE)
        popen.communicate()
        return {name: type(value) for name, value in vars(popen).items()}

    stock = attributes()
    with fastio.patched([], trace=str(tmp_path)):
        assert attributes() == stock


def test_a_forked_child_ends_nothing_of_its_parent_s(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, subprocess\n"
        "popen = subprocess.Popen(['cat'], stdin=subprocess.PIPE)\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    popen.wait()\n"
        "    subprocess.run(['true'])\n"
        "    raise SystemExit\n"
        "popen.communicate(b'')\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FASTIO")}
    command = [sys.executable, "-m", "fastio", "run", "--trace", str(tmp_path), "--", str(script)]
    subprocess.run(command, check=True, env=environment, timeout=60, cwd=pathlib.Path(fastio.__file__).parent.parent)
    traces.well_formed(traces.spans(tmp_path))
    programs = sorted(end["program"] for end in traces.ends(tmp_path, "subprocess.command"))
    assert programs == ["cat", "true"]
