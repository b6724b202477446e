"""A paste filter that reports how a real service sent its data: by ``os.sendfile``, or from a mapping of the file.

It returns the response of the application itself, so that nothing lies between that and the server; but for a request
with the header ``X-Wrap``, whose body it looks at.
"""

from __future__ import annotations

import json
import mmap
import os
import posix
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from fastio.io import mapped

PATH = "/counts"

#: bytes that each way has sent
_counts = {"sendfile": 0, "mapped": 0}
#: faults of the next sends, one after the other, before the kernel sends anything
_faults: list[str] = []
_sendfile = os.sendfile
_map = mmap.mmap
_write = posix.write


def _counted(out: int, file: int, offset: int, count: int) -> int:
    _fail(file, offset, count)
    sent = _sendfile(out, file, offset, count)
    _counts["sendfile"] += sent
    return sent


class _Mapped(_map):
    """Tells who is about to send from it, so that a file can be truncated between the two."""

    last = (0, 0, 0)

    def __new__(cls, file: int, length: int, *args: Any, offset: int) -> _Mapped:
        cls.last = (file, offset, length)
        return super().__new__(cls, file, length, *args, offset=offset)  # type: ignore[misc]


def _write_mapped(out: int, data: memoryview) -> int:
    _fail(*_Mapped.last)
    sent = _write(out, data)
    _counts["mapped"] += sent
    return sent


def _fail(file: int, offset: int, count: int) -> None:
    if not _faults:
        return
    fault = _faults.pop(0)
    if fault == "truncate":
        os.truncate(f"/proc/self/fd/{file}", offset + count // 2)
    elif fault.isdigit():
        raise OSError(int(fault), os.strerror(int(fault)))


def factory(_: Any, **__: Any) -> Callable[[Any], Any]:
    """The filter, for paste."""
    os.sendfile = _counted  # type: ignore[assignment]
    mapped.mmap = SimpleNamespace(**{**vars(mmap), "mmap": _Mapped})  # type: ignore[assignment]
    mapped.posix = SimpleNamespace(write=_write_mapped)  # type: ignore[assignment]
    return Counting


class Counting:
    def __init__(self, application: Any) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != PATH:
            body = self._application(environ, start_response)
            return _Wrapped(body) if environ.get("HTTP_X_WRAP") else body
        if environ["QUERY_STRING"]:
            _faults[:] = environ["QUERY_STRING"].split(",")
        content = json.dumps(_counts).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(content)))])
        return [content]


class _Wrapped:
    """As a middleware does that looks at what is sent."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def close(self) -> None:
        self._body.close()

    def __iter__(self) -> Any:
        for chunk in self._body:
            assert type(chunk) is bytes
            yield chunk
