"""A stand-in for sheepdog's ``dog`` command, once named ``collie``: what a driver sees of it, without the cluster.

The exit codes, the messages, the order of the system calls on standard input and output, their sizes and the time
they take are those of a real one-node sheepdog 1.0.1. Each image is one sparse file, of exactly the image's size,
below the directory ``DOG_STATE``. It runs as ``python3 -ISs dog_command.pyc SIGIGN SPENT ARGUMENT...``: the launchers
that :func:`benchmarks.backends.dog.install` makes do that.

It knows what drivers use: ``vdi create``, ``write``, ``read``, ``list -r``, ``resize`` and ``delete`` of one image,
with ``-a`` and ``-p``. Known differences: ``-r`` is accepted by all of them, and ``list`` needs the image's name alone;
sizes are whole numbers of bytes; an unknown command is refused in other words; there are no snapshots, and any address
reaches the daemon.

Environment, beside ``DOG_STATE``; all times are in milliseconds:

``DOG_START_MS`` (21)
    ``read`` and ``write``: from exec to the first byte. Includes the start of Python, which is the lower limit.
``DOG_FETCH_MS`` (3.7), ``DOG_STORE_MS`` (9), ``DOG_NEW_MS`` (22)
    Time to get one object of 4 MiB, to put one that is there already, and to put a new one, which has to be entered
    in the image as well; a part of an object takes its share. 0: as fast as the disk.
``DOG_DAEMON`` (up)
    ``down``: nothing listens, as on any port but 7000. ``stopped``: it accepts, and never answers. ``unformatted``:
    there is no cluster yet.
``DOG_DIE_AFTER``, ``DOG_HANG_AFTER`` (never)
    The daemon dies, or stops answering, after so many objects of one ``read`` or ``write``.
``DOG_CUT`` (nowhere)
    The connection breaks. ``create``: before the daemon has the request; ``created``, ``deleted``: the daemon has done
    what it was asked, and its answer is lost; ``inode``: after the image was looked up, by whatever command;
    ``discarded``: the image to be deleted has lost its content, and no more.
"""

# The modules behind signal and collections.abc: those import enum and collections, which takes milliseconds.
import _signal
import errno
import io
import os
import sys
import time
from _collections_abc import Callable, Iterator, Mapping

OBJECT = 4 << 20
MAX_SIZE = OBJECT << 20
MAX_NAME = 255

# How the file ends that stands for an object without an image.
ORPHAN = ".orphan"

OK, FAILURE, SYSTEM_FAILURE, USAGE = 0, 1, 2, 64

# Of an image's object: its index, where the part begins in the image, and a buffer for it.
Piece = tuple[int, int, memoryview]

# Seconds from exec to the launcher's first line: what /bin/sh takes to start.
LAUNCHER_START = 0.0005

STORE_MS = 9.0
LIST_MS = 8
MILLISECONDS = {"DOG_START_MS": 21.0, "DOG_FETCH_MS": 3.7, "DOG_STORE_MS": STORE_MS, "DOG_NEW_MS": 22.0}

PORT = 7000


class Exit(Exception):
    """The command ends with *status*, after *lines* on standard error and *text* on standard output."""

    def __init__(self, status: int, *lines: str, text: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.lines = lines
        self.text = text


class Settings:
    """The ``DOG_`` variables of *environ*."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.state = environ["DOG_STATE"]
        self.daemon, self.cut = environ.get("DOG_DAEMON", "up"), environ.get("DOG_CUT", "nowhere")
        self.start, self.fetch, self.store, self.new = (
            float(environ.get(name, default)) / 1000 for name, default in MILLISECONDS.items()
        )
        # -1 is never.
        self.die_after, self.hang_after = (int(environ.get(f"DOG_{name}_AFTER", -1)) for name in ("DIE", "HANG"))


# --- the images


def image_path(state: str, name: bytes) -> str:
    """The file of the image *name*: any bytes, the empty name too, made safe for any Linux file system."""
    safe = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    quoted = "".join(chr(byte) if byte in safe else f"%{byte:02x}" for byte in name[:MAX_NAME])
    # A file name has at most 255 bytes; directories' names have no dot, so that they never meet an image's.
    parts = [quoted[start : start + 200] for start in range(0, len(quoted), 200)] or [""]
    return os.path.join(state, *parts) + ".vdi"


def vdi_id(name: bytes) -> int:
    """The number sheepdog gives an image: 24 bits of the FNV-1a hash of its name."""
    value = 0xCBF29CE484222325
    for byte in name:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value & 0xFFFFFF


class Image:
    """An open image. Its file's modification time is kept at the time of the image's creation."""

    def __init__(self, path: str, name: bytes, flags: int = os.O_RDONLY) -> None:
        self.fd = os.open(path, flags)
        self.name = name
        self.vid = vdi_id(name)
        status = os.fstat(self.fd)
        self.size = status.st_size
        self.created_ns = status.st_mtime_ns

    def keep_creation_time(self) -> None:
        os.utime(self.fd, ns=(time.time_ns(), self.created_ns))

    def object_id(self, index: int) -> int:
        return self.vid << 32 | index

    @property
    def inode_id(self) -> int:
        return 0x80 << 56 | self.vid << 32

    def next_data(self, offset: int) -> int:
        """Where the first data at or after *offset* lie; the image's size when there are none."""
        try:
            return os.lseek(self.fd, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return self.size

    def allocated(self, index: int) -> bool:
        return self.next_data(index * OBJECT) < min(self.size, (index + 1) * OBJECT)

    def used(self) -> int:
        """Bytes of the objects that were ever written to; each counts whole."""
        objects = 0
        offset = self.next_data(0)
        while offset < self.size:
            objects += 1
            offset = self.next_data((offset // OBJECT + 1) * OBJECT)
        return objects * OBJECT


# --- the daemon


class Daemon:
    """The other side of the connection: the images, with the time it takes to reach them and the faults asked for.

    *started* is when the command was executed, on the clock of time.monotonic().
    """

    def __init__(self, settings: Settings, address: str, port: int, started: float) -> None:
        self.settings = settings
        self.address = address
        self.port = port
        self.started = started
        self.objects = 0

    def connect(self) -> bool:
        """Whether there is a daemon; when there is none, prints that twice, like the real one."""
        if self.settings.daemon == "down" or self.port != PORT:
            for _ in range(2):
                say(f"failed to connect to {self.address}:{self.port}: Connection refused")
            return False
        if self.settings.daemon == "stopped":
            hang()
        return True

    @property
    def formatted(self) -> bool:
        return self.settings.daemon != "unformatted"

    def open(self, name: bytes, flags: int) -> Image:
        if not self.connect():
            reason = "I/O error"
        elif not self.formatted:
            reason = "Waiting for cluster to be formatted"
        else:
            try:
                return Image(image_path(self.settings.state, name), name[:MAX_NAME], flags)
            except FileNotFoundError:
                reason = "No VDI found"
        raise Exit(FAILURE, f"Failed to open VDI {os.fsdecode(name)} (snapshot id: 0 snapshot tag: ): {reason}")

    def read_inode(self, image: Image) -> list[str]:
        """Print the message of a connection that breaks before the image's inode has come; nothing if it comes."""
        if self.settings.cut != "inode":
            return []
        return ["failed to read a response", f"Failed to read object {image.inode_id:016x}"]

    def open_inode(self, name: bytes, flags: int) -> Image:
        """The image, after its inode was read."""
        image = self.open(name, flags)
        if lines := self.read_inode(image):
            raise Exit(FAILURE, *lines, f"Failed to read a vdi {os.fsdecode(name)}")
        return image

    def load_inode(self) -> None:
        """Read the inode, as every read and write does first: 12 MiB, whatever the image's size."""
        sleep_until(self.started + self.settings.start)

    def fetch(self, image: Image, index: int, piece: memoryview, offset: int) -> None:
        done = time.monotonic() + self.settings.fetch * len(piece) / OBJECT
        self._fault(f"read object {image.object_id(index):016x}", "read VDI")
        os.preadv(image.fd, [piece], offset)
        sleep_until(done)

    def store(self, image: Image, index: int, piece: memoryview, offset: int) -> None:
        new = not image.allocated(index)
        done = time.monotonic() + (self.settings.new if new else self.settings.store) * len(piece) / OBJECT
        if self.objects == self.settings.die_after:
            # An object is more than the socket takes, so that the end of the connection shows while it is sent.
            broken_socket(image.object_id(index), len(piece))
        self._fault()
        orphan = os.path.join(self.settings.state, f"{image.object_id(index):016x}{ORPHAN}")
        if new:
            # A command killed meanwhile leaves an object that no image has.
            os.close(os.open(orphan, os.O_WRONLY | os.O_CREAT, 0o666))
        os.pwrite(image.fd, piece, offset)
        sleep_until(done)
        if new:
            os.unlink(orphan)

    def _fault(self, *failed: str) -> None:
        if failed and self.objects == self.settings.die_after:
            raise Exit(FAILURE, "failed to read a response", *(f"Failed to {what}" for what in failed))
        if self.objects == self.settings.hang_after:
            hang()
        self.objects += 1


def broken_socket(oid: int, length: int) -> None:
    """End ``write`` once the connection is closed: SIGPIPE, which a parent may have had ignored."""
    _signal.raise_signal(_signal.SIGPIPE)
    raise Exit(
        FAILURE,
        "failed to write to socket: Broken pipe",
        f"failed to send request 1, {length}: Broken pipe",
        f"Failed to write object {oid:016x}",
        "Failed to write VDI",
    )


def sleep_until(moment: float) -> None:
    """Sleep up to *moment*, on the clock of time.monotonic()."""
    remaining = moment - time.monotonic()
    if remaining > 0:
        time.sleep(remaining)


def hang() -> None:
    while True:
        time.sleep(3600)


# --- standard input and output


def say(line: str) -> None:
    try:
        os.write(2, os.fsencode(line) + b"\n")
    except OSError:
        pass


def write_out(piece: memoryview) -> None:
    while piece:
        try:
            piece = piece[os.write(1, piece) :]
        except BlockingIOError:
            pass  # like the real one, it tries again at once: right data, at 100 % CPU
        except OSError as error:
            raise Exit(SYSTEM_FAILURE, f"Failed to write to stdout: {error.strerror}") from error


def read_in(piece: memoryview) -> int:
    """Fill *piece* from standard input; gives the number of bytes there were before the end."""
    filled = 0
    try:
        # FileIO reads into the buffer itself with a plain read(2), where os.read() would allocate 4 MiB each time.
        stdin = io.FileIO(0, closefd=False)
        while filled < len(piece):
            got = stdin.readinto(piece[filled:])
            if got == 0:
                break
            # None: it does not block, and there is nothing yet.
            filled += got or 0
    except OSError as error:
        raise Exit(SYSTEM_FAILURE, f"Failed to read from stdin: {error.strerror}") from error
    return filled


# --- the command line


def parsed(words: list[str], operands: list[str]) -> tuple[str, int]:
    """The address and the port of ``-a`` and ``-p``; words that are no options go to *operands*."""
    address, port = "127.0.0.1", PORT
    left = iter(words)
    for word in left:
        if word == "-a":
            address = next(left)
        elif word == "-p":
            port = number(next(left))
        elif word == "--":
            operands += left
        elif word != "-r":
            operands.append(word)
    return address, port


def number(word: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise Exit(USAGE, f"Invalid size '{word}'")
    return int(word)


# --- the commands


def create(daemon: Daemon, operands: list[str]) -> None:
    if not daemon.connect():
        raise Exit(SYSTEM_FAILURE, "Failed to get node list")
    name, size = os.fsencode(operands[0]), number(operands[1])
    failed = f"Failed to create VDI {os.fsdecode(name)}"
    if not daemon.formatted:
        raise Exit(FAILURE, f"{failed}: Waiting for cluster to be formatted")
    if size > MAX_SIZE:
        raise Exit(USAGE, f"VDI size is larger than {MAX_SIZE} bytes, please use '-y' to create a hyper volume")
    lost = Exit(SYSTEM_FAILURE, "failed to read a response")
    if daemon.settings.cut == "create":
        raise lost
    path = image_path(daemon.settings.state, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError as error:
        raise Exit(FAILURE, f"{failed}: VDI exists already") from error
    os.ftruncate(fd, size)
    if daemon.settings.cut == "created":
        raise lost


def resize(daemon: Daemon, operands: list[str]) -> None:
    size = number(operands[1])
    image = daemon.open_inode(os.fsencode(operands[0]), os.O_RDWR)
    if size > MAX_SIZE:
        raise Exit(USAGE, f"New VDI size is too large. This volume's max size is {MAX_SIZE}")
    if size < image.size:
        raise Exit(USAGE, "Shrinking VDIs is not implemented")
    os.ftruncate(image.fd, size)
    image.keep_creation_time()


def delete(daemon: Daemon, operands: list[str]) -> None:
    name = os.fsencode(operands[0])
    lost = "failed to read a response"
    try:
        image = daemon.open(name, os.O_RDWR)
    except Exit as failure:
        raise Exit(OK, *failure.lines) from failure
    if lines := daemon.read_inode(image):
        raise Exit(OK, *lines, f"failed to read inode object: {image.inode_id:016x}")
    if daemon.settings.cut == "discarded":
        os.ftruncate(image.fd, 0)
        os.ftruncate(image.fd, image.size)
        image.keep_creation_time()
        lines = [f"Failed to write object {image.inode_id:016x}"]
        raise Exit(OK, lost, *lines, f"failed to update inode for discarding objects: {image.inode_id:016x}")
    try:
        os.unlink(image_path(daemon.settings.state, name))
    except FileNotFoundError:
        pass  # deleted meanwhile
    if daemon.settings.cut == "deleted":
        raise Exit(OK, lost)


def read(daemon: Daemon, operands: list[str]) -> None:
    image, pieces = transfer(daemon, operands, "Read", os.O_RDONLY)
    for index, offset, piece in pieces:
        if image.allocated(index):
            daemon.fetch(image, index, piece, offset)
        else:
            piece[:] = bytes(len(piece))
        write_out(piece)
    try:
        os.fsync(1)
    except OSError:
        pass


def write(daemon: Daemon, operands: list[str]) -> None:
    image, pieces = transfer(daemon, operands, "Write", os.O_RDWR)
    try:
        for index, offset, piece in pieces:
            filled = read_in(piece)
            # The real one pads too: with a whole object of zeros when the input ends on a boundary.
            piece[filled:] = bytes(len(piece) - filled)
            daemon.store(image, index, piece, offset)
            if filled < len(piece):
                break
    finally:
        image.keep_creation_time()


def transfer(daemon: Daemon, operands: list[str], verb: str, flags: int) -> tuple[Image, Iterator[Piece]]:
    """The image of a read or write, once its inode has come, and the parts of its objects."""
    wanted = [number(word) for word in operands[1:3]]
    image = daemon.open_inode(os.fsencode(operands[0]), flags)
    # Clearing the buffer takes a millisecond, which belongs to the start.
    buffer = memoryview(bytearray(OBJECT))
    daemon.load_inode()
    return image, pieces_of(image, verb, buffer, *wanted)


def pieces_of(image: Image, verb: str, buffer: memoryview, offset: int = 0, length: int = MAX_SIZE) -> Iterator[Piece]:
    """The part of each object that lies between *offset* and the end of *length* bytes, or of the image."""
    if offset > image.size:
        raise Exit(FAILURE, f"{verb} offset is beyond the end of the VDI")
    end = min(image.size, offset + length)
    while offset < end:
        index = offset // OBJECT
        piece = buffer[: min(end, (index + 1) * OBJECT) - offset]
        yield index, offset, piece
        offset += len(piece)


def list_image(daemon: Daemon, operands: list[str]) -> None:
    if not daemon.connect():
        raise Exit(SYSTEM_FAILURE)
    name = os.fsencode(operands[0])
    listed = Exit(OK)
    if daemon.formatted:
        try:
            listed = line_of(daemon, Image(image_path(daemon.settings.state, name), name))
        except FileNotFoundError:
            pass
    sleep_until(daemon.started + LIST_MS / 1000)
    raise listed


def line_of(daemon: Daemon, image: Image) -> Exit:
    if lines := daemon.read_inode(image):
        return Exit(OK, *lines, "Failed to read inode header")
    shown = "".join("\\" + char if char in " \t\n\v\f\r\\" else char for char in os.fsdecode(image.name))
    seconds = image.created_ns // 10**9
    return Exit(OK, text=f"= {shown} 0 {image.size} {image.used()} 0 {seconds} {image.vid:x} 1  22\n")


#: name -> what it does, and how many operands it needs
COMMANDS: dict[str, tuple[Callable[[Daemon, list[str]], None], int]] = {
    "create": (create, 2), "delete": (delete, 1), "list": (list_image, 1), "resize": (resize, 2), "read": (read, 1),
    "write": (write, 1),
}  # fmt: skip


def run(words: list[str], started: float) -> None:
    known = f"the stand-in knows vdi {', '.join(COMMANDS)}"
    if not words:
        raise Exit(OK, text=f"{known}\n")
    operands: list[str] = []
    address, port = parsed(words[2:], operands)
    command, needed = COMMANDS.get("".join(words[1:2]), (None, 0))
    if words[:1] != ["vdi"] or command is None or len(operands) < needed:
        raise Exit(USAGE, f"{known}, and not {' '.join(words)}")
    command(Daemon(Settings(os.environ), address, port, started), operands)


def main(ignored: str, spent: str, words: list[str]) -> int:
    """Run the command with the arguments *words*.

    *ignored* is the mask of the signals (hexadecimal, as in /proc/PID/status) that were ignored when it was executed:
    Python itself ignores SIGPIPE, so that it cannot be asked any more. *spent* is the processor time, in nanoseconds,
    that the process had used when its launcher began; before that it was the parent's child, and no concern of ours.
    """
    # All of the start is computing, so that the processor time since then shows how long ago it was.
    started = time.monotonic() - (time.process_time() - int(spent) / 1e9) - LAUNCHER_START
    for number in (_signal.SIGINT, _signal.SIGPIPE):
        if not int(ignored, 16) >> (number - 1) & 1:
            _signal.signal(number, _signal.SIG_DFL)
    try:
        run(words, started)
        result = Exit(OK)
    except Exit as exit_:
        result = exit_
    except OSError as error:
        result = Exit(SYSTEM_FAILURE, f"dog stand-in: {error}")
    for line in result.lines:
        say(line)
    try:
        write_out(memoryview(os.fsencode(result.text)))
    except Exit:
        # The real one does not look whether its texts arrived.
        pass
    return result.status


if __name__ == "__main__":
    # Leaving by os._exit() saves the millisecond that it takes to take the interpreter down.
    os._exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
