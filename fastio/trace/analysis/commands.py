"""The commands of a trace: the programs that its processes have run as their children."""

from fastio.trace.analysis.model import Span, Trace

COMMAND = "subprocess.command"


def commands(trace: Trace) -> list[Span]:
    """All commands, in the order of their beginnings; the times of the spans have to be corrected before."""
    return sorted((span for span in trace.spans() if span.name == COMMAND), key=lambda span: (span.start, span.id))


def program(span: Span) -> str:
    """The name of the program; ``unknown`` if it is not in the files."""
    return span.text("program") or "unknown"


def failed(span: Span) -> bool:
    """Whether the command could not be started, has an exit status but 0, or was given up with an error."""
    return bool(span.number_of("code")) or span.text("outcome") == "error"


def why(span: Span) -> str:
    """Describe a failure; empty if there is none."""
    code = span.number_of("code")
    said = span.text("error")
    ended = f"killed by signal {-code}" if code < 0 else f"exit status {code}" if code else ""
    return ", ".join(filter(None, (said, ended))) or ("an error without a class" if failed(span) else "")


def outlasts(span: Span, outer: Span) -> bool:
    """Whether a command goes on after the span in which it was started: it was not waited for there."""
    return span.name == COMMAND and span.end > outer.end
