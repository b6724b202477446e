"""``fix_green_pipelines``: a child that is given another's pipe gets it in blocking mode."""

import gc
import os
import pathlib
import warnings
from typing import Any

import pytest

from tests.child import BIG, Gate, command, data, out
from tests.descriptors import descriptors
from tests.io.conftest import refuse_proc

eventlet = pytest.importorskip("eventlet")

from eventlet.green import subprocess as green  # noqa: E402
from eventlet.greenio import GreenPipe  # noqa: E402

from fastio.patches.eventlet import fix_green_pipelines  # noqa: E402

pytestmark = pytest.mark.fast_path("bytes_in")


@pytest.mark.parametrize("options", [{}, {"bufsize": 0}, {"bufsize": -1}, {"encoding": "latin-1"}], ids=str)
def test_a_pipeline_of_three(patched: Any, hub: Any, options: dict[str, Any]) -> None:
    first = green.Popen(command(out(1, BIG)), stdout=-1, **options)
    second = green.Popen(command("echo"), stdin=first.stdout, stdout=-1, **options)
    first.stdout.close()
    third = green.Popen(command("echo"), stdin=second.stdout, stdout=-1)
    second.stdout.close()
    assert third.communicate()[0] == data(1, BIG)
    assert [child.wait() for child in (first, second, third)] == [0, 0, 0]


@pytest.mark.parametrize("as_number", [False, True], ids=["file", "number"])
def test_a_slow_writer_does_not_end_the_reader(patched: Any, hub: Any, gate: Gate, as_number: bool) -> None:
    """Where the pipe is non-blocking, a reader that finds it empty gets EAGAIN, and gives up."""
    first = green.Popen(command(out(1, 10), gate.wait, out(2, BIG)), stdout=-1, pass_fds=gate.fds)
    given = first.stdout.fileno() if as_number else first.stdout
    second = green.Popen(["cat"], stdin=given, stdout=-1, stderr=-1)
    first.stdout.close()
    assert second.stdout.read(10) == data(1, 10)
    gate.open()
    assert second.communicate() == (data(2, BIG), b"")
    assert (first.wait(), second.returncode) == (0, 0)


@pytest.mark.parametrize("as_number", [False, True], ids=["file", "number"])
@pytest.mark.parametrize("which", ["stdout", "stderr"])
def test_outputs_into_another_childs_input(patched: Any, hub: Any, which: str, as_number: bool) -> None:
    reader = green.Popen(command("digest"), stdin=-1, stdout=-1)
    given = reader.stdin.fileno() if as_number else reader.stdin
    writer = green.Popen(command(out(1, BIG, to=which[3:])), **{which: given})
    assert not os.get_blocking(reader.stdin.fileno())
    reader.stdin.close()
    reader.stdin = None
    assert writer.wait() == 0
    assert reader.communicate()[0].split()[0] == str(BIG).encode()


#: Commands that cannot be started.
REFUSED: list[tuple[list[str], dict[str, Any]]] = [
    (["/no such command"], {}),
    (["true"], {"cwd": "/no such directory"}),
    (["true"], {"stdin": 10**6}),
    (["true"], {"stderr": "nonsense"}),
    (["true"], {"user": "no such user"}),
    (["true", "a\0b"], {}),
]


def test_no_descriptor_stays_open_where_the_child_can_not_be_started(patched: Any, hub: Any) -> None:
    """Also while the exception is kept, as long as a service likes: the pipe's reader must see the end."""
    gc.collect()
    reader = green.Popen(command("digest"), stdin=-1, stdout=-1)
    before = descriptors()
    kept = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for argv, options in REFUSED:
            try:
                green.Popen(argv, stdout=reader.stdin, **options)
            except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
                kept.append(error)
            gc.collect()
    assert len(kept) == len(REFUSED)
    assert not descriptors() - before
    reader.stdin.close()
    reader.stdin = None
    assert reader.communicate()[0].split()[0] == b"0"


# Numbers of descriptors


def blocking(stdin: Any) -> bytes:
    """Whether a child that gets ``stdin`` finds it in blocking mode."""
    return green.run(command("blocking:0"), stdin=stdin, stdout=-1).stdout


@pytest.mark.parametrize("buffering", [0, -1], ids=["raw", "buffered"])
def test_only_the_number_of_an_open_green_pipe_counts(patched: Any, hub: Any, buffering: int) -> None:

    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    # It was the program itself that made this one non-blocking.
    assert blocking(reader) == b"False"
    os.set_blocking(reader, True)
    stream = GreenPipe(reader, "rb", buffering)
    assert blocking(reader) == blocking(stream) == b"True"
    # The number is another pipe's by now, which its owner wants like that.
    other, other_writer = os.pipe()
    os.set_blocking(other, False)
    os.dup2(other, reader)
    assert blocking(reader) == b"False"
    stream.close()
    os.dup2(other, reader)
    assert blocking(reader) == b"False"
    for fd in (reader, writer, other, other_writer):
        os.close(fd)


@pytest.mark.no_fast_path(reason="nothing is read")
def test_a_green_pipe_that_is_gone_is_forgotten(patched: Any, hub: Any) -> None:

    reader, writer = os.pipe()
    stream = GreenPipe(reader, "rb", 0)
    assert fix_green_pipelines._made[reader] is stream
    stream.close()
    assert not os.path.exists(f"/proc/self/fd/{reader}")
    with pytest.raises(OSError, match="Bad file descriptor"):
        green.run(["true"], stdin=reader)
    del stream
    gc.collect()
    assert reader not in fix_green_pipelines._made
    os.close(writer)


# Named pipes

#: ``sys.argv``: the path of a named pipe, and what becomes of it
NAMED = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
import eventlet
eventlet.monkey_patch()
import fastio
from eventlet.greenio import GreenPipe
import subprocess

path, case = sys.argv[1:]
if case != "stock":
    fastio.patch(strict=True)
os.mkfifo(path)
both = os.open(path, os.O_RDWR | os.O_NONBLOCK)
reader = os.open(path, os.O_RDONLY)
writer = os.open(path, os.O_WRONLY)
os.write(writer, b"abc")
signal.alarm(60)

def run(argv, **options):
    done = subprocess.run(argv, stderr=-1, **options)
    print(done.returncode, done.stdout, done.stderr, flush=True)

POLLS = "import select; p = select.poll(); p.register(0); print(p.poll(10000))"
os.close(both)
with GreenPipe(reader, "rb", 0) as stream:
    # Its writer is there.
    run(["head", "-c1"], stdin=stream, stdout=-1)
    os.close(writer)
    # No other end, and something in the pipe, which is no reason to wait for a writer.
    run([sys.executable, "-c", POLLS], stdin=stream, stdout=-1)
    run(["cat"], stdin=stream, stdout=-1)
    run([sys.executable, "-c", POLLS], stdin=stream, stdout=-1)
    print(stream.read())
    writer = os.open(path, os.O_WRONLY)
with GreenPipe(writer, "wb", 0) as stream:
    # No reader any more.
    run(["sh", "-c", "echo x || exit 3"], stdout=stream)
# To read and to write at once: what is given has both directions as well.
both = os.open(path, os.O_RDWR)
os.write(both, b"abc")
with GreenPipe(both, "r+b", 0) as stream:
    run(["sh", "-c", "head -c3; echo def >&0"], stdin=stream, stdout=-1)
    print(stream.read(4))
"""


def test_named_pipes_without_the_other_end(run_python: Any, tmp_path: pathlib.Path) -> None:
    stock, ours = (
        run_python(NAMED, str(tmp_path / case), case, options=("-W", "ignore"), check=False)
        for case in ("stock", "patched")
    )
    assert "abc" in stock.stdout or "bc" in stock.stdout
    assert stock.returncode == 0, stock.stderr
    assert (ours.returncode, ours.stdout) == (0, stock.stdout), ours.stderr


@pytest.mark.fast_path("exchanges")
def test_a_named_pipe_that_was_never_opened_to_write(patched: Any, hub: Any, tmp_path: pathlib.Path) -> None:
    """poll() does not tell that its other end is missing, and an open that may wait would wait for a writer."""

    path = tmp_path / "pipe"
    os.mkfifo(path)
    with GreenPipe(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", 0) as stream:
        popen = green.Popen(["cat"], stdin=stream, stdout=-1, stderr=-1)
        assert popen.communicate() == (b"", b"")


def test_a_named_pipe_with_a_slow_writer(patched: Any, hub: Any, gate: Gate, tmp_path: pathlib.Path) -> None:

    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY)
    os.set_blocking(reader, True)
    first = green.Popen(command(gate.wait, out(1, BIG)), stdout=writer, pass_fds=gate.fds)
    os.close(writer)
    with GreenPipe(reader, "rb", 0) as stream:
        second = green.Popen(["cat"], stdin=stream, stdout=-1, stderr=-1)
    gate.open()
    assert second.communicate() == (data(1, BIG), b"")
    first.wait()


def test_everything_else_is_passed_on_unchanged(patched: Any, hub: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data(1, 100_000))
    with open(path, "rb") as file:
        assert green.run(["cat"], stdin=file, capture_output=True).stdout == data(1, 100_000)
    with open(path, "rb") as file:
        # The position is shared, as it must be.
        assert green.run(["head", "-c", "10"], stdin=file, capture_output=True).stdout == data(1, 10)
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) > 0
    fd = os.open(path, os.O_RDONLY)
    assert green.run(["cat"], stdin=fd, capture_output=True).stdout == data(1, 100_000)
    os.close(fd)
    with open(path, "wb") as file:
        file.write(b"before ")
        file.flush()
        green.run(["echo", "after"], stdout=file, stderr=green.STDOUT, check=True)
    assert path.read_bytes() == b"before after\n"

    with GreenPipe(str(path), "rb") as stream:
        assert green.run(["cat"], stdin=stream, capture_output=True).stdout == b"before after\n"


def test_without_proc(patched: Any, hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is then upstream's."""
    refuse_proc(monkeypatch)
    first = green.Popen(command(out(1, 1000)), stdout=-1)
    first.wait()
    assert green.run(command("blocking:0"), stdin=first.stdout, stdout=-1).stdout == b"False"
    first.stdout.close()
