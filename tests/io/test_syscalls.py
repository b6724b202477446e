"""Assumptions where the system gives no answer. Calls that cannot be made are in test_drain.py and test_feed.py."""

import errno
from collections.abc import Callable

import pytest

from fastio.io import syscalls
from tests.outcome import raising


def test_whether_a_descriptor_blocks(pipe: Callable[..., tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    for blocking in (True, False):
        assert [syscalls.is_blocking(fd) for fd in pipe(blocking)] == [blocking, blocking]
    with pytest.raises(OSError):
        syscalls.is_blocking(-1)
    refused = PermissionError(errno.EPERM, "Operation not permitted")
    monkeypatch.setattr(syscalls.os, "get_blocking", raising(refused))
    assert syscalls.is_blocking(pipe(False)[0])
