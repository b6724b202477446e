"""sheepdog's command ``dog`` (``collie`` before 2013): what each of its answers means.

``dog``'s exit status distinguishes little, so its messages decide, which are the same in all releases from 0.5 to
1.0, and never translated. A command that succeeds says nothing. Messages of commands that exit with 0:

``delete``
    always exits with 0: whatever it says is why the image is still there, at least in part.
``list``
    passes over images that it cannot read: what it says may be about another one, and what it lists is right. If it
    does not list ours, ``read`` has to tell whether that is missing.
``create``, ``resize``, ``read``, ``write``
    fail with 1 or 2 whenever the cluster, or the connection to it, does.
"""

import contextlib
import re
import secrets
import shutil
import signal
from collections.abc import Iterator

from glance_store import exceptions

from fastio.drivers._process import Child

PROGRAMS = ("dog", "collie")

#: Longer names are cut by ``dog``, without a word.
MAX_NAME = 255

#: Exit status of releases that tell these apart (``include/exits.h`` of sheepdog).
_EXISTS, _FULL, _MISSING = 3, 4, 5

#: ``create``'s message when there is no new image: the cluster has refused it, or was never asked.
_NOT_MADE = ("Failed to create VDI", "Failed to get node list", "SD_OP_CLUSTER_INFO")
_USAGE = 64

#: Sizes from which a new image takes its first one, at the least, so that it is no coincidence to have the same.
_TELLING = 1 << 16

#: Seconds: for a program that may be something else to print its help; for a write whose input has ended to end as
#: well, and for each further command of :meth:`Vdi.discard`. Deleting takes longest for a large image.
_HELP, _ENDING, _DISCARDING = 10.0, 5.0, 30.0

#: The output of a command that reads no image is short.
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
        with Child([program], limit=_HELP) as child:
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
        #: whether create() has made the image; None: it is not known
        self._made: bool | None = False
        self._first_size = self._sizes = 0
        self._writer: Child | None = None

    def create(self, most: int) -> None:
        """Make the image, of some size up to ``most`` bytes; :meth:`resize` gives it its own.

        If the answer is lost, an image of that name may be ours, or another client's. By the size, which is known only
        here, :meth:`discard` decides which.
        """
        self._sizes = most
        self._first_size = secrets.randbelow(most) if most else 0
        child = self._start("create", str(self._first_size))
        self._made = None
        _, status, said = self._answer(child)
        if status == 0:
            self._made = True
        elif status in (_EXISTS, _FULL, _USAGE) or any(words in said for words in _NOT_MADE):
            self._made = False
        self._check("create", status, said)

    @property
    def begun(self) -> bool:
        """Whether :meth:`create` has made the image, or may have."""
        return self._made is not False

    def resize(self, size: int) -> None:
        """Make the image larger, to ``size`` bytes."""
        self._run("resize", str(size))

    def size(self, limit: float | None = None) -> int:
        """Bytes of the image."""
        output, said = self._run("list -r", limit=limit)
        listed = [line[2] for line in _LISTED.finditer(output) if line[1] != b"s"]
        if not listed:
            # The list of an unformatted cluster is empty, too; this then fails with the reason.
            self._run("read", "0", "0", limit=limit)
            if said:
                raise self._failure("list -r", "", said)
            raise self._missing()
        return int(listed[0])

    def delete(self, limit: float | None = None) -> None:
        """Delete the image. After any error but NotFound it may be there, also without its content; try again."""
        self._run("delete", limit=limit)

    def discard(self) -> None:
        """Delete what :meth:`create` and :meth:`write` have made, however far they got; nothing of another client's.

        It takes no longer than its limits, whatever the cluster does.
        """
        writer, self._writer = self._writer, None
        if writer is not None:
            # Killed between an object and its entry in the image, it would leave one that belongs to no image.
            writer.stop(grace=_ENDING)
        if self._made is None:
            try:
                size = self.size(_DISCARDING)
            except exceptions.NotFound:
                return
            if self._sizes < _TELLING:
                raise exceptions.BackendException(f"{self} exists, and may be another client's")
            self._made = size == self._first_size
        if self._made:
            with contextlib.suppress(exceptions.NotFound):
                self.delete(_DISCARDING)

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
        """Write ``chunks``, which are ``length`` bytes together, to where they fit into the image.

        After any error the command may still run, until :meth:`discard` ends it.
        """
        child = self._writer = self._start("write", str(offset), str(length), feeds=True)
        unread = False
        for chunk in chunks:
            try:
                child.write(chunk)
            except BrokenPipeError:
                unread = True
                break
        self._check("write", *child.finish())
        child.stop()
        self._writer = None
        if unread:
            raise exceptions.BackendException(f"dog vdi write to {self} did not take all of {length} bytes")

    def _start(self, command: str, *operands: str, feeds: bool = False, limit: float | None = None) -> Child:
        # A name that begins with a dash would be taken for an option.
        name = ["--", self.name] if self.name.startswith("-") else [self.name]
        cluster = ["-a", self.address, "-p", str(self.port)]
        arguments = [self.program, "vdi", *command.split(), *cluster, *name, *operands]
        try:
            return Child(arguments, feeds=feeds, limit=limit)
        except OSError as error:
            raise exceptions.BackendException(f"{self.program} cannot be started: {error}") from error

    def _run(self, command: str, *operands: str, limit: float | None = None) -> tuple[bytes, str]:
        """Return a command's output and its messages."""
        try:
            output, status, said = self._answer(self._start(command, *operands, limit=limit))
        except TimeoutError as error:
            raise self._failure(command, str(error)) from error
        self._check(command, status, said)
        return output, said

    def _answer(self, child: Child) -> tuple[bytes, int, str]:
        with child:
            output = b"".join(child.chunks(_SHORT))
            status, said = child.finish()
        return output, status, said.strip()

    def _check(self, command: str, status: int, said: str) -> None:
        """Raise what ``dog`` means. A failure to delete shows only in what it has said."""
        said = said.strip()
        if status == 0 and not (command == "delete" and said):
            return
        if status == _MISSING or "No VDI found" in said:
            raise self._missing()
        if status == _EXISTS or "VDI exists already" in said:
            raise exceptions.Duplicate(f"{self} exists already")
        if status == _FULL or "no space" in said:
            raise exceptions.StorageFull(f"the sheepdog cluster has no space for {self}: {said}")
        if "failed to connect" in said:
            raise self._failure(command, "no sheep daemon answers there", said)
        if "Waiting for cluster to be formatted" in said:
            raise self._failure(command, "the cluster is not formatted ('dog cluster format' does that)", said)
        if status == 0:
            raise self._failure(command, "", said)
        if command == "write" and status == -signal.SIGPIPE:
            raise self._failure(command, "the daemon has closed the connection", said)
        raise self._failure(command, f"exit status {status}" if status > 0 else f"signal {-status}", said)

    def _failure(self, command: str, reason: str, said: str = "") -> Exception:
        why = ": ".join(filter(None, (reason, "; ".join(dict.fromkeys(said.splitlines())))))
        return exceptions.BackendException(f"dog vdi {command} of {self} failed: {why}")

    def _missing(self) -> Exception:
        return exceptions.NotFound(f"{self} does not exist")

    def __str__(self) -> str:
        return f"Sheepdog image {self.name} at {self.address}:{self.port}"
