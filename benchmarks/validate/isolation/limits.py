"""What a sandbox may use of the machine: far more than any suite or benchmark does, and less than the machine has."""

from dataclasses import dataclass

_GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """Of all processes of a variant, or of each of them."""

    #: bytes of address space that each process may have
    memory: int = 8 * _GIB
    #: processes and threads that there may be at a time
    processes: int = 4096
    #: bytes that a file may have
    file_size: int = 2 * _GIB
    #: seconds of CPU time that each process may use
    cpu_seconds: int = 3600
    #: bytes in each of the two file systems in memory, ``/tmp`` and ``/dev/shm``
    temporary: int = 2 * _GIB

    def __str__(self) -> str:
        return (
            f"at most {self.processes} processes, each with {self.memory / _GIB:g} GiB of memory, {self.cpu_seconds} s "
            f"of CPU time and files of {self.file_size / _GIB:g} GiB"
        )

    def resources(self) -> dict[str, int]:
        """By the names of the module ``resource``."""
        return {
            "RLIMIT_AS": self.memory, "RLIMIT_NPROC": self.processes, "RLIMIT_FSIZE": self.file_size,
            "RLIMIT_CPU": self.cpu_seconds, "RLIMIT_CORE": 0,
        }  # fmt: skip


LIMITS = Limits()
