"""Forbidding a system call, with an error of one's choice, to this process and all that it starts.

It cannot be taken back. It holds for the thread that asks for it, and for those that this one starts later on.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys
import termios
from dataclasses import dataclass

#: The machines whose numbers of system calls are known, with what the kernel calls their architecture.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

#: ``fcntl(2)``; Python 3.10 has no names for them everywhere.
_F_SETPIPE_SZ: int = getattr(fcntl, "F_SETPIPE_SZ", 1031)
_F_GETPIPE_SZ: int = getattr(fcntl, "F_GETPIPE_SZ", 1032)

_FORBIDDEN = (errno.EPERM, errno.ENOSYS)
_NO_DESCRIPTOR = (*_FORBIDDEN, errno.EMFILE)


@dataclass(frozen=True)
class Call:
    """A system call that can be forbidden.

    :param numbers: on x86_64 and on aarch64
    :param arguments: index and value of those that say what is wanted, where the call has many uses
    :param errors: the errors of forbidden calls
    """

    numbers: tuple[int, int]
    arguments: tuple[tuple[int, int], ...] = ()
    errors: tuple[int, ...] = _FORBIDDEN


#: Calls that upstream does not make, or not for the same thing. ``pread64`` is not among them: the dynamic linker makes
#: it, so where it is forbidden no program starts.
CALLS = {
    "pwritev2": Call((328, 287)),
    "preadv2": Call((327, 286)),
    "readv": Call((19, 65)),
    "F_SETPIPE_SZ": Call((72, 25), ((1, _F_SETPIPE_SZ),)),
    "F_GETPIPE_SZ": Call((72, 25), ((1, _F_GETPIPE_SZ),)),
    "pidfd_open": Call((434, 434), errors=_NO_DESCRIPTOR),
    "waitid": Call((247, 95)),
    "memfd_create": Call((319, 279), errors=_NO_DESCRIPTOR),
    "eventfd2": Call((290, 19), errors=_NO_DESCRIPTOR),
    "sendfile": Call((40, 71)),
    "cachestat": Call((451, 451)),
    "FIONREAD": Call((16, 29), ((1, termios.FIONREAD),)),
    "SO_RCVLOWAT": Call((54, 208), ((1, socket.SOL_SOCKET), (2, socket.SO_RCVLOWAT))),
}

#: All that can be forbidden, in the form that :func:`deny` takes: ``pwritev2:EPERM``.
DENIALS = [f"{name}:{errno.errorcode[error]}" for name, call in CALLS.items() for error in call.errors]

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16


def supported() -> bool:
    """Whether the system calls of this machine are known."""
    return sys.platform == "linux" and os.uname().machine in _ARCHITECTURES and sys.maxsize > 2**32


def deny(denial: str) -> None:
    """Forbid what ``denial`` says, a call and an error such as ``pwritev2:EPERM``.

    :raises ValueError: there is no such call or error
    :raises OSError: the kernel has no filters, or allows none
    """
    name, _, error = denial.partition(":")
    if name not in CALLS or not hasattr(errno, error):
        raise ValueError(f"{denial!r} is no CALL:ERROR with one of the calls {', '.join(CALLS)}")
    machine = os.uname().machine
    call = CALLS[name]
    tests = [
        (_ARCHITECTURE, _ARCHITECTURES[machine]),
        (_NUMBER, call.numbers[list(_ARCHITECTURES).index(machine)]),
    ]
    # The lower half of 64 bits; both machines are little-endian.
    tests += [(_ARGUMENTS + 8 * index, value) for index, value in call.arguments]
    program = []
    for index, (offset, value) in enumerate(tests):
        # Unequal calls go on at the last instruction, which allows the call.
        program += [(_LOAD, 0, 0, offset), (_JUMP_IF_EQUAL, 0, 2 * (len(tests) - index - 1) + 1, value)]
    program += [(_RETURN, 0, 0, _ERROR | getattr(errno, error)), (_RETURN, 0, 0, _ALLOW)]
    _install(b"".join(struct.pack("HBBI", *instruction) for instruction in program), len(program))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _install(instructions: bytes, length: int) -> None:
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    zero = ctypes.c_ulong(0)
    program = _Program(length, instructions)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero),
        (_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(program), zero, zero),
    ):
        if prctl(*arguments):
            raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")
