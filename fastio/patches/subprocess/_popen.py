"""``Popen._communicate`` on top of the I/O core: what the native and the green replacement have in common.

Everything around the moving of bytes is as in CPython 3.10 to 3.15 (the fingerprints say exactly
which code): when stdin is flushed and closed, what ``_fileobj2output``, ``_input`` and
``_input_offset`` hold, when time-outs are looked at, and in which order streams are closed, the
child is waited for and text is decoded. In what the releases differ is a dialect, see
:mod:`fastio.patches.subprocess._dialects`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from fastio import config, counters
from fastio.concurrency.pace import Pace
from fastio.config import Settings
from fastio.counters import Reason, Tally
from fastio.io.drain import LEAST, Drain
from fastio.io.exchange import exchange
from fastio.io.feed import Feed
from fastio.patches.subprocess._dialects import Dialect, dialect_of, share
from fastio.patching import holders
from fastio.patching.known_code import Uses
from fastio.patching.registry import Make, Target

if TYPE_CHECKING:
    from fastio.concurrency.waiting import Waiter

#: The parameters of ``_check_timeout``.
CHECK_TIMEOUT = "self, endtime, orig_timeout, stdout_seq, stderr_seq, skip_check_and_raise=False"
#: Code that a replacement of ``Popen._communicate`` relies on beside it. The functions of the module are those that
#: eventlet copies as well.
RELIES_ON = {
    "_save_input": Uses("self, input", "_input _input_offset"),
    "_check_timeout": Uses(CHECK_TIMEOUT, "TimeoutExpired args"),
    "_translate_newlines": Uses("self, data, encoding, errors"),
    "communicate": Uses("self, input=None, timeout=None", "_communicate _communication_started"),
    "_remaining_time": Uses("self, endtime", "_time", python="< 3.15"),
    "subprocess:_deadline_remaining": Uses("endtime", "_time", python=">= 3.15"),
    "subprocess:_communicate_io_posix": Uses(python=">= 3.15"),
    "subprocess:_flush_stdin": Uses(python=">= 3.15"),
    "subprocess:_make_input_view": Uses(python=">= 3.15"),
}


def native_target(make: Make, name: str, uses: Uses, **declared: Any) -> Target:
    """``name`` of the Popen of native threads; the rest is as in :class:`Target`."""
    return Target(f"subprocess:Popen.{name}", make, uses, find_owner=holders.native_popen, **declared)


def green_target(make: Make, name: str, uses: Uses, **declared: Any) -> Target:
    """Return the target in eventlet's Popen, whose code is CPython's."""
    return Target(f"eventlet.green.subprocess:Popen.{name}", make, uses, code=f"subprocess:Popen.{name}", **declared)


def plain_bytes(data: Any) -> bool:
    """Whether ``data`` can be sliced by bytes; the standard library's own code keeps what cannot."""
    try:
        view = memoryview(data)
    except TypeError:
        return False
    return view.itemsize == 1 and view.ndim == 1 and view.contiguous


def has_pipes_of_chosen_size(popen: Any) -> bool:
    """Whether the caller has said how large the pipes are, which they stay then."""
    return getattr(popen, "pipesize", -1) > 0


class Mode(NamedTuple):
    """How one class of Popen waits, and is fair."""

    waiter: Waiter
    #: the amount that one descriptor moves before the selector is asked again
    new_pace: Callable[[Settings], Pace]
    #: whether it may wait in the running thread; else upstream's code is to
    may_wait: Callable[[], bool]


def communicate(
    popen: Any,
    input: Any,
    endtime: float | None,
    orig_timeout: float | None,
    dialect: Dialect,
    mode: Mode,
    counts: Tally,
) -> tuple[Any, Any]:
    """Replace ``Popen._communicate``.

    :param counts: of the patch that takes the call
    """
    counts.took()
    settings = config.effective()
    counters.io.exchanges += 1
    if popen.stdin and not popen._communication_started:
        try:
            popen.stdin.flush()
        except BrokenPipeError:
            pass
        except ValueError:
            if not dialect.resumes_input or not popen.stdin.closed:
                raise
        if not input:
            try:
                popen.stdin.close()
            except BrokenPipeError:
                pass

    if not popen._communication_started:
        popen._fileobj2output = {}
        if popen.stdout:
            popen._fileobj2output[popen.stdout] = []
        if popen.stderr:
            popen._fileobj2output[popen.stderr] = []
    stdout = popen._fileobj2output[popen.stdout] if popen.stdout else None
    stderr = popen._fileobj2output[popen.stderr] if popen.stderr else None

    popen._save_input(input)

    talk = dialect.communication(dialect, popen, endtime, orig_timeout)
    pipe_size = 0 if has_pipes_of_chosen_size(popen) else settings.pipe_size
    for stream in (popen.stdout, popen.stderr):
        if stream and not stream.closed:
            drain = Drain(stream.fileno(), max(settings.chunk_size, LEAST), pipe_size)
            talk.files[drain.fd] = stream
            talk.outputs.append(drain)
    sent_before = 0
    if popen.stdin and (popen._input and not popen.stdin.closed if dialect.resumes_input else input):
        fd = popen.stdin.fileno()
        talk.files[fd] = popen.stdin
        sent_before = popen._input_offset
        talk.feed = Feed(fd, memoryview(popen._input), popen._input_offset, settings.chunk_size, pipe_size)
    try:
        talk.begin()
        with mode.waiter.open_selector() as selector:
            exchange(talk.outputs, talk.feed, selector, talk, mode.new_pace(settings))
        talk.loop_ended()
    finally:
        sent = 0 if talk.feed is None else talk.feed.offset - sent_before
        counts.moved(sent + sum(drain.total for drain in talk.outputs))
        talk.close()

    try:
        popen.wait(timeout=dialect.remaining(popen, endtime))
    except Exception as error:
        if dialect.names_whole_timeout and hasattr(error, "timeout"):
            error.timeout = orig_timeout
        raise

    return _result(popen, popen.stdout, stdout), _result(popen, popen.stderr, stderr)


def replacement(wrapped: Callable[..., Any], hook: Any, mode: Mode, counts: Tally) -> Callable[..., Any]:
    """A ``_communicate`` that exchanges in ``mode``; see :func:`communicate`."""
    dialect = dialect_of(hook.release)(hook.original.__globals__)

    def _communicate(self: Any, input: Any, endtime: float | None, orig_timeout: float | None) -> tuple[Any, Any]:
        share(self)
        to_send = (dialect.resumes_input and self._input) or (None if self.text_mode else input)
        if to_send and not plain_bytes(to_send):
            counts.fell_back(Reason.INPUT)
        elif not mode.may_wait():
            counts.fell_back(Reason.HUB)
        else:
            return communicate(self, input, endtime, orig_timeout, dialect, mode, counts)
        return wrapped(self, input, endtime, orig_timeout)

    return _communicate


def _result(popen: Any, stream: Any, chunks: list[bytes] | None) -> Any:
    if chunks is None:
        return None
    # A single chunk is handed on uncopied.
    data = b"".join([chunk for chunk in chunks if chunk])
    if popen.text_mode:
        return popen._translate_newlines(data, stream.encoding, stream.errors)
    return data
