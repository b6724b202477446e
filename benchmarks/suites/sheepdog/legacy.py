"""The loop that read a child's output under eventlet in 2016, on today's Python: the baseline of the sheepdog case.

Python 2.7 had two loops, with poll and with select. eventlet's green ``select`` module has no ``poll``, so services ran
the one with select, which reads 1,024 bytes at a time: two trips through eventlet's hub for each kilobyte.
"""

from typing import Any

#: Bytes per read, as in Python 2.7's ``subprocess``.
READ_SIZE = 1024


def install() -> None:
    """Replace ``_communicate`` of eventlet's green Popen; for a process that ends after its measured run."""
    from eventlet.green import subprocess

    subprocess.Popen._communicate = _communicate


def _communicate(self: Any, input: Any, endtime: Any, orig_timeout: Any) -> tuple[bytes | None, bytes | None]:
    """Read stdout and stderr to their ends, and wait. Input and time-outs, which the case has not, are refused."""
    from eventlet.green import os, select

    if input or endtime is not None:
        raise NotImplementedError("the legacy loop has neither input nor time-outs")
    if self.stdin:
        self.stdin.close()
    chunks: dict[Any, list[bytes]] = {stream: [] for stream in (self.stdout, self.stderr) if stream}
    waiting = list(chunks)
    while waiting:
        ready, _, _ = select.select(waiting, [], [])
        for stream in ready:
            data = os.read(stream.fileno(), READ_SIZE)
            if data:
                chunks[stream].append(data)
            else:
                stream.close()
                waiting.remove(stream)
    self.wait()
    output, errors = (b"".join(chunks[stream]) if stream else None for stream in (self.stdout, self.stderr))
    return output, errors
