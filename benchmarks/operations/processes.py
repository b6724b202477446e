"""Child processes: all of a child's output and input, eventlet's GreenPipe, and how others do the former two.

Every peer is used as its documentation shows it, with the same child and, where it has them, three pipes.
"""

import collections
import contextlib
import functools
import importlib
import mmap
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, TypeAlias

from benchmarks.harness import modes
from benchmarks.harness.modes import REFERENCE_PIPE, Mode, choice, discard_command, discarded, read_all, write_all
from benchmarks.harness.worker import Payload, digest, text_payload
from benchmarks.operations.base import Context, Reading, Work, Writing, content
from fastio.io import scratch

#: Runs a command with that input (None: no input) and returns its two outputs.
Run: TypeAlias = Callable[[list[str], bytes | None], tuple[Any, Any]]


# --- what runs a command


def _popen(command: list[str], data: bytes | None, text: bool = False, module: str = "subprocess") -> tuple[Any, Any]:
    subprocess = importlib.import_module(module)
    pipe = subprocess.PIPE
    encoding = "utf-8" if text else None
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, encoding=encoding) as child:
        return child.communicate(data)


def _oslo(command: list[str], data: bytes | None, text: bool = False) -> tuple[Any, Any]:
    from oslo_concurrency import processutils

    return processutils.execute(*command, process_input=data, binary=not text)


async def _with_asyncio(command: list[str], data: bytes | None) -> tuple[bytes, bytes]:
    import asyncio

    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    return await child.communicate(data)


@functools.cache
def _loop(library: str) -> Callable[[Awaitable[Any]], Any]:
    """Return a function that runs a coroutine in a loop that stays, since a service starts it only once."""
    import asyncio

    if library == "asyncio":
        return asyncio.new_event_loop().run_until_complete
    import uvloop

    return uvloop.new_event_loop().run_until_complete


def _asyncio(command: list[str], data: bytes | None, library: str = "asyncio") -> tuple[bytes, bytes]:
    return _loop(library)(_with_asyncio(command, data))


def _reference(command: list[str], data: bytes | None) -> tuple[bytes, bytes]:
    """One C loop into one bytes object, or one loop of blocking writes, on an enlarged pipe."""
    import subprocess

    if data is None:
        return read_all(command, REFERENCE_PIPE), b""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, pipesize=REFERENCE_PIPE) as child:
        write_all(child, data, REFERENCE_PIPE)
        # The reader writes one line at its end.
        assert child.stdout is not None and child.stderr is not None
        return child.stdout.read(), child.stderr.read()


RUNS: Mapping[str, Callable[..., tuple[Any, Any]]] = {"popen": _popen, "oslo": _oslo}
#: Whose process is neither patched nor monkey patched; the extra ``peers`` has what they need.
PEERS: Mapping[str, Run] = {
    "gevent": functools.partial(_popen, module="gevent.subprocess"),
    "asyncio": _asyncio,
    "uvloop": functools.partial(_asyncio, library="uvloop"),
    "reference": _reference,
}


def why_not(peer: str) -> str:
    """Why a peer cannot run here, and what to do; empty if it can."""
    missing = peer in ("gevent", "uvloop") and find_spec(peer) is None
    return f"not installed: {peer} (the extra 'peers' has it)" if missing else ""


def _entered(mode: Mode, context: Context, through: str) -> Callable[..., tuple[Any, Any]]:
    """Return a function that runs a command, in a process prepared for the mode."""
    through = through or choice(context, "through", *RUNS, *PEERS)
    if through in PEERS:
        return PEERS[through]
    modes.enter(mode, context)
    return RUNS[through]


# --- the operations


@contextlib.contextmanager
def child_output(mode: Mode, context: Context, through: str = "") -> Iterator[Work]:
    """The output of ``cat``.

    Of the context: ``through``, one of :data:`RUNS` or :data:`PEERS`; ``kind``, ``"binary"`` or ``"text"``;
    ``streams``, ``"stdout"``, or ``"both"`` for as much on the standard error at the same time. There are three pipes
    in any case.
    """
    text = choice(context, "kind", "binary", "text") == "text"
    both = choice(context, "streams", "stdout", "both") == "both"
    run = functools.partial(_entered(mode, context, through), **({"text": True} if text else {}))

    class Output(Reading):
        def length(self, size: int) -> int:
            return super().length(size) * (1 + both)

        def sha256(self, size: int) -> str:
            out, error = run(_cat(self.payload(size), both), None)
            if error != (out if both else type(out)()):
                return "another standard error"
            return digest([out.encode() if text else out])

    def read(size: int, take: Callable[[Any], object]) -> None:
        for each in run(_cat(made.payload(size), both), None):
            take(each)

    made = Output(read, text)
    yield made


def _cat(payload: Payload, both: bool) -> list[str]:
    """The child: the same in every mode."""
    return ["sh", "-c", 'cat "$0" & cat "$0" >&2; wait', str(payload.path)] if both else ["cat", str(payload.path)]


@contextlib.contextmanager
def child_input(mode: Mode, context: Context, through: str = "") -> Iterator[Work]:
    """Input for ``dd``, which says how many bytes it got, or for ``sha256sum``; of the context ``through``."""
    run = _entered(mode, context, through)

    def send(payload: Payload, hashed: bool) -> str:
        output, said = run(["sha256sum"] if hashed else discard_command(), content(payload))
        return output.decode().split()[0] if hashed else str(discarded(said))

    yield Writing(send, content)


@contextlib.contextmanager
def read_at(mode: Mode, context: Context) -> Iterator[Work]:
    """Reads of 1 MiB into one buffer that begins ``offset`` bytes into its page; of the ``source`` file or pipe."""
    source, offset = choice(context, "source", "file", "pipe"), context["offset"]
    modes.enter(mode, context)
    buffer = memoryview(mmap.mmap(-1, modes.MIB + mmap.PAGESIZE))[offset : offset + modes.MIB]

    def read(size: int, take: Callable[[Any], object]) -> None:
        with contextlib.ExitStack() as stack:
            stream: Any = stack.enter_context(open(made.payload(size).path, "rb", buffering=0))
            if source == "pipe":
                import subprocess

                stream = stack.enter_context(
                    subprocess.Popen(["cat"], bufsize=0, stdin=stream, stdout=-1, pipesize=REFERENCE_PIPE)
                ).stdout
            while count := stream.readinto(buffer):
                take(buffer[:count])

    made = Reading(read)
    made.counts = False
    yield made


# --- GreenPipe

#: Of the context of the following: ``n`` bytes of a read or a write, and ``bufsize`` of Popen.
STYLES = ("read_n", "read", "readinto", "lines", "text_lines")


def _pieces(stream: Any, style: str, n: int) -> Iterable[Any]:
    """Read ``stream``, piece by piece, up to its end."""
    if style in ("lines", "text_lines"):
        return stream
    if style == "readinto":
        buffer = scratch.allocate(n)
        return (buffer[:count] for count in iter(functools.partial(stream.readinto, buffer), 0))
    return iter(functools.partial(stream.read, *([n] if style == "read_n" else [])), b"")


def _buffering(context: Context) -> dict[str, Any]:
    return {"bufsize": context["bufsize"]} if "bufsize" in context else {}


@contextlib.contextmanager
def pipe_read(mode: Mode, context: Context) -> Iterator[Work]:
    """Reads in one of the :data:`STYLES`, to the end.

    ``"lines"`` and ``"text_lines"`` are iterations. Without a ``bufsize`` eventlet's Popen has 0, with which upstream
    reads lines one byte after the other.
    """
    style = choice(context, "style", *STYLES)
    modes.enter(mode, context)
    import subprocess

    class Pipe(Reading):
        # fastio's read(n) is too small to count what it does.
        counts = style in ("read", "readinto")

        def payload(self, size: int) -> Payload:
            return text_payload(size) if style == "lines" else super().payload(size)

        def once(self, size: int) -> int:
            # Only counted, by C code as far as possible: the pipe is measured.
            counts: list[int] = []
            self.opened(size, lambda pieces: counts.append(sum(map(len, pieces))))
            return counts[0]

        def opened(self, size: int, take: Callable[[Iterable[Any]], object]) -> None:
            encoding = "utf-8" if style == "text_lines" else None
            arguments = ["cat", str(self.payload(size).path)]
            with subprocess.Popen(
                arguments, **_buffering(context), stdout=subprocess.PIPE, encoding=encoding
            ) as child:  # fmt: skip
                take(_pieces(child.stdout, style, context.get("n", 64 * modes.KIB)))

    def read(size: int, take: Callable[[Any], object]) -> None:
        made.opened(size, lambda pieces: [take(piece) for piece in pieces])

    made = Pipe(read, style == "text_lines")
    yield made


@contextlib.contextmanager
def pipe_write(mode: Mode, context: Context) -> Iterator[Work]:
    """Writes of ``n`` bytes each; of all without it."""
    modes.enter(mode, context)
    import subprocess

    @functools.cache
    def parts(payload: Payload) -> list[bytes]:
        data = content(payload)
        n = context.get("n", len(data))
        return [data[start : start + n] for start in range(0, len(data), n)]

    def send(payload: Payload, hashed: bool) -> str:
        command = ["sha256sum"] if hashed else discard_command()
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, **_buffering(context), stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT
        ) as child:  # fmt: skip
            assert child.stdin is not None and child.stdout is not None
            collections.deque(map(child.stdin.write, parts(payload)), maxlen=0)
            child.stdin.close()
            said = child.stdout.read()
        return said.decode().split()[0] if hashed else str(discarded(said))

    yield Writing(send, parts)


@contextlib.contextmanager
def pipe_echo(mode: Mode, context: Context) -> Iterator[Work]:
    """``n`` bytes to ``cat`` and back, again and again, as in a dialogue."""
    modes.enter(mode, context)
    import subprocess

    def read(size: int, take: Callable[[Any], object]) -> None:
        data, n = content(made.payload(size)), context["n"]
        with subprocess.Popen(["cat"], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdin is not None and child.stdout is not None
            for start in range(0, len(data), n):
                left = child.stdin.write(data[start : start + n])
                while left:
                    answer = child.stdout.read(left)
                    take(answer)
                    left -= len(answer)

    class Echo(Reading):
        counts = False

    made = Echo(read)
    yield made
