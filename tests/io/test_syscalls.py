"""What of a system call's failures means that it cannot be made here."""

import errno
import os
from collections.abc import Callable

import pytest

from fastio.io import syscalls


@pytest.mark.parametrize(
    ("errors", "refused"),
    [
        ([errno.ENOSYS, errno.EPERM, errno.EACCES, errno.EMFILE, errno.ENOMEM], True),
        ([errno.EAGAIN, errno.EPIPE, errno.EIO, errno.EBADF, errno.EINTR, errno.ENOSPC], False),
    ],
)
def test_whether_it_cannot_be_made_or_came_to_nothing(errors: list[int], refused: bool) -> None:
    assert {syscalls.refused(OSError(number, os.strerror(number))) for number in errors} == {refused}
    # What a C library lacks.
    assert syscalls.refused(NotImplementedError() if refused else ValueError()) == refused


def test_whether_a_descriptor_blocks(pipe: Callable[..., tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    for blocking in (True, False):
        assert [syscalls.is_blocking(fd) for fd in pipe(blocking)] == [blocking, blocking]
    with pytest.raises(OSError):
        syscalls.is_blocking(-1)

    def get_blocking(fd: int) -> bool:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(syscalls.os, "get_blocking", get_blocking)
    assert syscalls.is_blocking(pipe(False)[0])
