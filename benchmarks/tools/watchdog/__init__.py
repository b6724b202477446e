"""A time limit for every test: a pytest plugin, and a process beside pytest that ends a run which is stuck."""

#: Seconds that a test may take unless it says otherwise: many times what it needs on a busy machine.
LIMIT = 120.0

#: The environment's own :data:`LIMIT`.
VARIABLE = "TEST_LIMIT"

#: Names the runs that a process belongs to, one after the other if one has started another.
RUN_VARIABLE = "TEST_RUN"

#: what is sent when what has begun ended
END = b"end\n"


def begin(name: str, seconds: float) -> bytes:
    """The message for the start of a test or fixture that may take so many seconds."""
    # Less than PIPE_BUF, so that it is written as a whole or not at all.
    words = " ".join(name.encode("ascii", "backslashreplace").decode().split())
    return f"begin {seconds:.6f} {words[:2000]}\n".encode()
