"""What of a system call's failures means that it cannot be made here."""

import errno
import os
from collections.abc import Callable

import pytest

from fastio.io import syscalls


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM, errno.EACCES, errno.EMFILE, errno.ENOMEM])
def test_refusals(number: int) -> None:
    assert syscalls.refused(OSError(number, os.strerror(number)))


def test_what_a_c_library_lacks() -> None:
    assert syscalls.refused(NotImplementedError())


@pytest.mark.parametrize("error", [errno.EAGAIN, errno.EPIPE, errno.EIO, errno.EBADF, errno.EINTR, errno.ENOSPC])
def test_what_came_of_a_call(error: int) -> None:
    assert not syscalls.refused(OSError(error, os.strerror(error)))
    assert not syscalls.refused(ValueError())


def test_whether_a_descriptor_blocks(pipe: Callable[..., tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    for blocking in (True, False):
        assert [syscalls.is_blocking(fd) for fd in pipe(blocking)] == [blocking, blocking]
    with pytest.raises(OSError):
        syscalls.is_blocking(-1)

    def get_blocking(fd: int) -> bool:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(syscalls.os, "get_blocking", get_blocking)
    assert syscalls.is_blocking(pipe(False)[0])
