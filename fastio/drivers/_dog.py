"""sheepdog's command ``dog`` (``collie`` before 2013): what each of its answers means.

``dog`` tells apart little by its exit status: ``delete`` of an image that is not there, and every ``list`` of one,
succeed; reading and writing fail with 1 whatever the reason. So its messages decide, which are the same in all
releases from 0.5 to 1.0, and never translated.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

from glance_store import exceptions

from fastio.drivers._process import Child

PROGRAMS = ("dog", "collie")

#: Longer names are cut by ``dog``, without a word.
MAX_NAME = 255

#: Exit status of releases that tell these apart (``include/exits.h`` of sheepdog).
_EXISTS, _FULL, _MISSING = 3, 4, 5

#: What comes out of a command that reads no image is short.
_SHORT = 64 * 1024

#: A line of ``list -r``: its kind (``s`` is a snapshot), the name with ``\\`` before white space, the size.
_LISTED = re.compile(rb"^([=cs]) (?:[^\\ \n]|\\.)+ \d+ (\d+) ", re.MULTILINE | re.DOTALL)


def find_program() -> str:
    """The path of ``dog``, or else of ``collie``.

    :raises glance_store.exceptions.BackendException: if there is neither
    """
    for name in PROGRAMS:
        path = shutil.which(name)
        # Others have called their programs dog as well.
        if path is not None and _knows_vdi(path):
            return path
    raise exceptions.BackendException(
        f"no command of sheepdog, neither {' nor '.join(PROGRAMS)}, is in the path: install the package sheepdog"
    )


def _knows_vdi(program: str) -> bool:
    """Whether the help of ``program``, which it prints if it is called with nothing, has images in it."""
    try:
        with Child([program]) as child:
            said = b"".join(child.chunks(_SHORT))
            status, _ = child.finish()
    except OSError:
        return False
    return status == 0 and b"vdi" in said


class Vdi:
    """One image ("virtual disk image") of a cluster.

    The errors of all methods are those of glance_store: NotFound, Duplicate, StorageFull, and BackendException, which
    says what ``dog`` has said.

    :param address: of any daemon of the cluster, and its ``port``
    """

    def __init__(self, program: str, address: str, port: int, name: str) -> None:
        self.program = program
        self.address = address
        self.port = port
        self.name = name

    def create(self, size: int) -> None:
        """Make the image, of ``size`` bytes that are zero."""
        self._run("create", str(size))

    def resize(self, size: int) -> None:
        """Make the image larger, to ``size`` bytes."""
        self._run("resize", str(size))

    def size(self) -> int:
        """Bytes of the image."""
        listed = [line[2] for line in _LISTED.finditer(self._run("list -r")) if line[1] != b"s"]
        if not listed:
            # So is every list of a cluster that is not formatted, where this fails with the reason.
            self._run("read", "0", "0")
            raise self._missing()
        return int(listed[0])

    def delete(self) -> None:
        """Delete the image."""
        self._run("delete")

    def start_read(self, offset: int, length: int | None = None) -> Child:
        """Start to read ``length`` bytes from ``offset`` on, or all up to the end; :meth:`read` has what comes."""
        return self._start("read", str(offset), *([] if length is None else [str(length)]))

    def read(self, child: Child, offset: int, length: int, chunk_size: int) -> Iterator[bytes]:
        """The ``length`` bytes that ``child`` reads from ``offset`` on, in pieces of ``chunk_size``.

        An error if there are fewer.
        """
        received = 0
        with child:
            for chunk in child.chunks(chunk_size):
                received += len(chunk)
                yield chunk
            self._check("read", *child.finish())
        if received != length:
            raise exceptions.BackendException(
                f"{self} is truncated: dog vdi read gave {received} of {length} bytes from {offset} on"
            )

    def write(self, chunks: Iterator[bytes], offset: int, length: int) -> None:
        """Write ``chunks``, which are ``length`` bytes together, to where they fit into the image."""
        with self._start("write", str(offset), str(length), feeds=True) as child:
            unread = False
            try:
                for chunk in chunks:
                    child.write(chunk)
            except BrokenPipeError:
                unread = True
            self._check("write", *child.finish())
        if unread:
            raise exceptions.BackendException(f"dog vdi write to {self} did not take all of {length} bytes")

    def _start(self, command: str, *operands: str, feeds: bool = False) -> Child:
        # A name that begins with a dash would be taken for an option.
        name = ["--", self.name] if self.name.startswith("-") else [self.name]
        cluster = ["-a", self.address, "-p", str(self.port)]
        arguments = [self.program, "vdi", *command.split(), *cluster, *name, *operands]
        try:
            return Child(arguments, feeds=feeds)
        except OSError as error:
            raise exceptions.BackendException(f"{self.program} can not be started: {error}") from error

    def _run(self, command: str, *operands: str) -> bytes:
        with self._start(command, *operands) as child:
            output = b"".join(child.chunks(_SHORT))
            self._check(command, *child.finish())
        return output

    def _check(self, command: str, status: int, said: str) -> None:
        """Raise what ``dog`` means. A failure to delete shows only in what it has said."""
        said = said.strip()
        if status == 0 and not (command == "delete" and "Failed to open VDI" in said):
            return
        if status == _MISSING or "No VDI found" in said:
            raise self._missing()
        if status == _EXISTS or "VDI exists already" in said:
            raise exceptions.Duplicate(f"{self} exists already")
        if status == _FULL or "no space" in said:
            raise exceptions.StorageFull(f"the sheepdog cluster has no space for {self}: {said}")
        reason = f"exit status {status}" if status >= 0 else f"signal {-status}"
        if "failed to connect" in said:
            reason = "no sheep daemon answers there"
        elif "Waiting for cluster to be formatted" in said:
            reason = "the cluster is not formatted ('dog cluster format' does that)"
        message = f"dog vdi {command} of {self} failed: {reason}"
        if said:
            message += ": " + "; ".join(dict.fromkeys(said.splitlines()))
        raise exceptions.BackendException(message)

    def _missing(self) -> Exception:
        return exceptions.NotFound(f"{self} does not exist")

    def __str__(self) -> str:
        return f"Sheepdog image {self.name} at {self.address}:{self.port}"
