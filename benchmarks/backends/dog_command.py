"""A stand-in for sheepdog's ``dog`` command, once named ``collie``: what a driver sees of it, without the cluster.

The exit codes, the messages, the order of the system calls on standard input and output, their sizes and the time
they take are those of a real one-node sheepdog 1.0.1. Each image is one sparse file, of exactly the image's size,
below the directory ``DOG_STATE``. It runs as ``python3 -ISs dog_command.pyc PROGRAM SIGIGN SPENT ARGUMENT...``: the
launchers that :func:`benchmarks.backends.dog.install` makes do that.

Only ``vdi create``, ``write``, ``read``, ``list``, ``resize`` and ``delete`` exist, with ``-a``, ``-p``, ``-r``,
``-h`` and (``write``) ``-w``. Known differences: ``-r`` is accepted by all of them (the real one knows it for
``create`` and ``list`` only), the usage texts have the real ones' sizes but not their words, there are no
snapshots, and any address reaches the daemon.

Environment, beside ``DOG_STATE``; all times are in milliseconds:

``DOG_START_MS`` (21)
    ``read`` and ``write``: from exec to the first byte. Includes the start of Python, which is the lower limit.
``DOG_FETCH_MS`` (3.7), ``DOG_STORE_MS`` (9), ``DOG_NEW_MS`` (22)
    Time to get one object of 4 MiB, to put one that is there already, and to put a new one, which has to be entered
    in the image as well; a part of an object takes its share. 0: as fast as the disk.
``DOG_PORT`` (7000)
    Where the daemon listens; on any other port the connection is refused.
``DOG_DAEMON`` (up)
    ``down``: nothing listens. ``stopped``: it accepts, and never answers. ``unformatted``: no cluster yet.
``DOG_DIE_AFTER``, ``DOG_HANG_AFTER`` (never)
    The daemon dies, or stops answering, after so many objects of one ``read`` or ``write``.
``DOG_CUT`` (nowhere)
    The connection breaks. ``create``: before the daemon has the request; ``created``, ``deleted``: the daemon has done
    what it was asked, and its answer is lost; ``inode``: after the image was looked up, by whatever command; for
    ``list`` that is each image; ``discarded``: the image to be deleted has lost its content, and no more.
``DOG_EAGAIN`` (spin)
    What a non-blocking standard input or output does: ``spin`` tries again at once, like the real one (right data,
    100 % CPU); ``fail`` is an error, to catch whoever made the child's end of a pipe non-blocking.
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

# Seconds from exec to the launcher's first line: what /bin/sh takes to start.
LAUNCHER_START = 0.0005

STORE_MS = 9.0
NEW_MS = 22.0

LIST_MS = 8
LIST_FURTHER_MS = 0.2

# Name: its operands, the size in bytes of the real usage text.
COMMANDS = {
    "create": ("<vdiname> <size>", 813),
    "delete": ("<vdiname>", 768),
    "list": ("[vdiname]", 533),
    "resize": ("<vdiname> <new size>", 306),
    "read": ("<vdiname> [<offset> [<len>]]", 386),
    "write": ("<vdiname> [<offset> [<len>]]", 363),
}
HELP_SIZE = 2475

LONG_OPTIONS = {"a": "address", "p": "port", "r": "raw", "h": "help", "w": "writeback"}
WITH_ARGUMENT = "ap"

SUFFIXES = {"b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


class Exit(Exception):
    """The command ends with *status*, after *lines* on standard error and *text* on standard output."""

    def __init__(self, status: int, *lines: str, text: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.lines = lines
        self.text = text


# --- settings


class Settings:
    """The ``DOG_`` variables of *environ*; raises ValueError that names the variable, its value and what is allowed."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        def choice(name: str, *allowed: str) -> str:
            value = environ.get(name, allowed[0])
            if value not in allowed:
                raise ValueError(f"{name}={value!r}: allowed are {', '.join(allowed)}")
            return value

        def number(name: str, default: "float | None", kind: Callable[[str], float], allowed: str):
            value = environ.get(name)
            if value is None:
                return default
            try:
                result = kind(value)
            except ValueError:
                result = -1
            if not 0 <= result < float("inf"):
                raise ValueError(f"{name}={value!r}: allowed is {allowed}")
            return result

        self.state = environ.get("DOG_STATE", "")
        if not os.path.isdir(self.state):
            raise ValueError(f"DOG_STATE={self.state!r}: allowed is the path of an existing directory")
        milliseconds = "a number of milliseconds, 0 or more"
        objects = "a number of whole objects, 0 or more"
        self.start = number("DOG_START_MS", 21.0, float, milliseconds) / 1000
        self.fetch = number("DOG_FETCH_MS", 3.7, float, milliseconds) / 1000
        self.store = number("DOG_STORE_MS", STORE_MS, float, milliseconds) / 1000
        self.new = number("DOG_NEW_MS", NEW_MS, float, milliseconds) / 1000
        self.port = number("DOG_PORT", 7000, int, "a port number")
        self.daemon = choice("DOG_DAEMON", "up", "down", "stopped", "unformatted")
        self.die_after = number("DOG_DIE_AFTER", None, int, objects)
        self.hang_after = number("DOG_HANG_AFTER", None, int, objects)
        self.cut = choice("DOG_CUT", "nowhere", "create", "created", "inode", "discarded", "deleted")
        self.spin = choice("DOG_EAGAIN", "spin", "fail") == "spin"


# --- the images


def image_path(state: str, name: bytes) -> str:
    """The file of the image *name*: any bytes, the empty name too, made safe for any Linux file system."""
    safe = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    quoted = "".join(chr(byte) if byte in safe else f"%{byte:02x}" for byte in name[:MAX_NAME])
    # A file name has at most 255 bytes; directories' names have no dot, so that they never meet an image's.
    parts = [quoted[start : start + 200] for start in range(0, len(quoted), 200)] or [""]
    return os.path.join(state, *parts) + ".vdi"


def image_name(path: str) -> bytes:
    """The reverse of :func:`image_path`, for a *path* relative to the state directory."""
    first, *rest = path[: -len(".vdi")].replace("/", "").split("%")
    return first.encode() + b"".join(bytes([int(part[:2], 16)]) + part[2:].encode() for part in rest)


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
        """Whether there is a daemon; when there is none, says so twice, like the real one."""
        if self.settings.daemon == "down" or self.port != self.settings.port:
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

    def images(self) -> list[bytes]:
        """The names of all images, in the order of their ids."""
        state = self.settings.state
        names = [
            image_name(os.path.relpath(os.path.join(folder, file), state))
            for folder, _, files in os.walk(state)
            for file in files
            if not file.endswith(ORPHAN)
        ]
        return sorted(names, key=vdi_id)

    def read_inode(self, image: Image) -> list[str]:
        """What is said when the connection breaks before the image's inode has come; nothing if it comes."""
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
        """What every read and write begins with: 12 MiB of inode, whatever the image's size."""
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
            # Whoever is killed meanwhile leaves an object that no image has.
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
    """What becomes of ``write`` once the connection is closed: SIGPIPE, which a parent may have had ignored."""
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


def write_out(piece: memoryview, spin: bool) -> None:
    while piece:
        try:
            piece = piece[os.write(1, piece) :]
        except OSError as error:
            if not (spin and error.errno == errno.EAGAIN):
                raise Exit(SYSTEM_FAILURE, f"Failed to write to stdout: {error.strerror}") from error


def read_in(piece: memoryview, spin: bool) -> int:
    """Fill *piece* from standard input; gives the number of bytes there were before the end."""
    filled = 0
    try:
        # FileIO reads straight into the buffer with a plain read(2), where os.read() would allocate 4 MiB each time.
        stdin = io.FileIO(0, closefd=False)
        while filled < len(piece):
            got = stdin.readinto(piece[filled:])
            if got == 0:
                break
            if got is None and not spin:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            filled += got or 0
    except OSError as error:
        raise Exit(SYSTEM_FAILURE, f"Failed to read from stdin: {error.strerror}") from error
    return filled


def occupy_closed_streams() -> list:
    """Put an epoll where a standard stream is closed, as happens in the real one: reading and writing give EINVAL."""
    epolls = []
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            import select

            epolls.append(select.epoll())
    return epolls


# --- the command line


def helped(text: str, size: int) -> str:
    """*text*, as long as the real text, so that a pipe sees the same write."""
    return text.ljust(size - 1) + "\n"


def general_help() -> str:
    lines = [f"  vdi {command} {operands}" for command, (operands, _) in COMMANDS.items()]
    text = "A stand-in for sheepdog's dog command, for tests and benchmarks. It knows:\n" + "\n".join(lines)
    return helped(text, HELP_SIZE)


def command_help(command: str) -> str:
    operands, size = COMMANDS[command]
    text = f"Usage: dog vdi {command} [-a address] [-p port] [-r] [-h] {operands}"
    return helped(text, size)


def options(program: str, accepted: str, words: list[str], operands: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (letter, argument) as GNU getopt_long() does; the other words, wherever they stand, go to *operands*."""

    def refuse(message: str) -> Exit:
        return Exit(USAGE, f"{program}: {message}", "Try 'dog --help' for more information.")

    words = list(words)
    while words:
        word = words.pop(0)
        if word == "--":
            operands += words
            return
        if word.startswith("--"):
            name, equals, argument = word[2:].partition("=")
            letters = [letter for letter in accepted if LONG_OPTIONS[letter].startswith(name)]
            if len(letters) != 1:
                raise refuse(f"unrecognized option '{word}'")
            (letter,) = letters
            if letter not in WITH_ARGUMENT and equals:
                raise refuse(f"option '--{LONG_OPTIONS[letter]}' doesn't allow an argument")
            if letter in WITH_ARGUMENT and not equals:
                if not words:
                    raise refuse(f"option '--{LONG_OPTIONS[letter]}' requires an argument")
                argument = words.pop(0)
            yield letter, argument
        elif word.startswith("-") and word != "-":
            rest = word[1:]
            while rest:
                letter, rest = rest[0], rest[1:]
                argument = ""
                if letter not in accepted:
                    raise refuse(f"invalid option -- '{letter}'")
                if letter in WITH_ARGUMENT:
                    if not rest and not words:
                        raise refuse(f"option requires an argument -- '{letter}'")
                    argument, rest = rest or words.pop(0), ""
                yield letter, argument
        else:
            operands.append(word)


def parse_port(word: str) -> int:
    if not (word.isascii() and word.isdigit() and 0 < int(word) < 65536):
        raise Exit(USAGE, f"Invalid port number '{word}'")
    return int(word)


def parse_address(word: str) -> str:
    """The numeric address of host *word*."""
    if word in ("localhost", "127.0.0.1"):
        return "127.0.0.1"
    import _socket

    try:
        return str(_socket.getaddrinfo(word, None, 0, _socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise Exit(FAILURE, f"Invalid ip address {word}") from error


def parse_size(word: str, command: str) -> int:
    """Bytes: a number as strtod() reads it, cut to a whole one, with an optional suffix for its unit."""
    number, shift = word, 0
    hexadecimal = word.lstrip(" +-")[:2].lower() == "0x"
    # A hexadecimal number takes its b, as a digit.
    if word[-1:].lower() in SUFFIXES and not (hexadecimal and word[-1:] in "bB"):
        number, shift = word[:-1], SUFFIXES[word[-1].lower()]
    try:
        if "_" in number or number != number.rstrip():
            raise ValueError("float() takes what strtod() does not")
        size = int((float.fromhex(number) if hexadecimal else float(number or "0")) * (1 << shift))
        return size if size >= 0 else size + (1 << 64)
    except (ValueError, OverflowError) as error:
        raise Exit(
            USAGE,
            f"Invalid size '{word}'",
            "You may use B, K, M, G, T or P suffixes for "
            "bytes, kilobytes, megabytes, gigabytes, terabytes and petabytes.",
            text=command_help(command),
        ) from error


def readable(size: int, raw: bool) -> str:
    """*size* as lists show it: bytes, or else a number of at least two digits with its unit."""
    if raw:
        return str(size)
    units = ["MB", "GB", "TB", "PB"]
    number = size / (1 << 20)
    while number >= 1024 and len(units) > 1:
        number /= 1024
        del units[0]
    return f"{number:.{0 if number >= 10 else 1}f} {units[0]}"


# --- the commands


def required(command: str, operands: list[str]) -> tuple[bytes, list[str]]:
    """The image's name, and the operands after it."""
    if not operands:
        raise Exit(USAGE, text=command_help(command))
    return os.fsencode(operands[0]), operands[1:]


def create(daemon: Daemon, operands: list[str], raw: bool) -> None:
    if not daemon.connect():
        raise Exit(SYSTEM_FAILURE, "Failed to get node list")
    name, numbers = required("create", operands)
    if not numbers:
        raise Exit(USAGE, "Please specify the VDI size", text=command_help("create"))
    size = parse_size(numbers[0], "create")
    failed = f"Failed to create VDI {os.fsdecode(name)}"
    if not daemon.formatted:
        raise Exit(FAILURE, f"{failed}: Waiting for cluster to be formatted")
    if size > MAX_SIZE:
        raise Exit(
            USAGE,
            f"VDI size is larger than {readable(MAX_SIZE, raw)} bytes, please use '-y' to create a hyper volume"
            f" with size up to {readable(1 << 54, raw)} bytes or use '-z' to create larger object size volume",
            text=command_help("create"),
        )
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


def resize(daemon: Daemon, operands: list[str], raw: bool) -> None:
    name, numbers = required("resize", operands)
    if not numbers:
        raise Exit(USAGE, "Please specify the new size for the VDI", text=command_help("resize"))
    size = parse_size(numbers[0], "resize")
    image = daemon.open_inode(name, os.O_RDWR)
    if size > MAX_SIZE:
        line = f"New VDI size is too large. This volume's max size is {MAX_SIZE}"
        raise Exit(USAGE, line, text=command_help("resize"))
    if size < image.size:
        raise Exit(USAGE, "Shrinking VDIs is not implemented", text=command_help("resize"))
    os.ftruncate(image.fd, size)
    image.keep_creation_time()


def delete(daemon: Daemon, operands: list[str], raw: bool) -> None:
    name, _ = required("delete", operands)
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


def read(daemon: Daemon, operands: list[str], raw: bool) -> None:
    name, numbers = required("read", operands)
    wanted = [parse_size(number, "read") for number in numbers[:2]]
    image = daemon.open_inode(name, os.O_RDONLY)
    # Clearing the buffer takes a millisecond, which belongs to the start.
    buffer = memoryview(bytearray(OBJECT))
    daemon.load_inode()
    offset, end = span(image, "Read", *wanted)
    while offset < end:
        index = offset // OBJECT
        piece = buffer[: min(end, (index + 1) * OBJECT) - offset]
        if image.allocated(index):
            daemon.fetch(image, index, piece, offset)
        else:
            piece[:] = bytes(len(piece))
        write_out(piece, daemon.settings.spin)
        offset += len(piece)
    try:
        os.fsync(1)
    except OSError:
        pass


def write(daemon: Daemon, operands: list[str], raw: bool) -> None:
    name, numbers = required("write", operands)
    wanted = [parse_size(number, "write") for number in numbers[:2]]
    image = daemon.open_inode(name, os.O_RDWR)
    # Clearing the buffer takes a millisecond, which belongs to the start.
    buffer = memoryview(bytearray(OBJECT))
    daemon.load_inode()
    offset, end = span(image, "Write", *wanted)
    try:
        while offset < end:
            index = offset // OBJECT
            piece = buffer[: min(end, (index + 1) * OBJECT) - offset]
            filled = read_in(piece, daemon.settings.spin)
            if filled < len(piece):
                # The real one pads too: with a whole object of zeros when the input ends on a boundary.
                piece[filled:] = bytes(len(piece) - filled)
                end = offset + len(piece)
            daemon.store(image, index, piece, offset)
            offset += len(piece)
    finally:
        image.keep_creation_time()


def span(image: Image, verb: str, offset: int = 0, length: int = MAX_SIZE) -> tuple[int, int]:
    """The offsets where a read or write of *image* begins and ends."""
    if offset > image.size:
        raise Exit(FAILURE, f"{verb} offset is beyond the end of the VDI")
    return offset, min(image.size, offset + length)


def list_images(daemon: Daemon, operands: list[str], raw: bool) -> None:
    text = ""
    if not raw:
        text = "  Name        Id    Size    Used  Shared    Creation time   VDI id  Copies  Tag   Block Size Shift\n"
    if not daemon.connect():
        raise Exit(SYSTEM_FAILURE, text=text)
    names = daemon.images() if daemon.formatted else []
    lines: list[str] = []
    for name in names:
        if operands and name != os.fsencode(operands[0]):
            continue
        try:
            image = Image(image_path(daemon.settings.state, name), name)
        except FileNotFoundError:
            continue  # deleted meanwhile
        if unread := daemon.read_inode(image):
            lines += [*unread, "Failed to read inode header"]
            continue
        text += list_line(image, raw)
    sleep_until(daemon.started + (LIST_MS + LIST_FURTHER_MS * (len(names) - 1)) / 1000)
    raise Exit(OK, *lines, text=text)


def list_line(image: Image, raw: bool) -> str:
    name = os.fsdecode(image.name)
    size, used, shared = (readable(number, raw) for number in (image.size, image.used(), 0))
    seconds = image.created_ns // 10**9
    if raw:
        name = "".join("\\" + char if char in " \t\n\v\f\r\\" else char for char in name)
        return f"= {name} 0 {size} {used} {shared} {seconds} {image.vid:x} 1  22\n"
    created = time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
    return f"  {name:<8} {0:5} {size:>7} {used:>7} {shared:>7} {created}  {image.vid:7x} {1:>6} {'':>13} {22:3}\n"


FUNCTIONS = {"create": create, "delete": delete, "list": list_images, "resize": resize, "read": read, "write": write}


def run(program: str, words: list[str], started: float) -> None:
    if not words or words[0] in ("help", "--help", "-h"):
        raise Exit(OK, text=general_help())
    if words[0] != "vdi":
        raise Exit(USAGE, f"Invalid command '{words[0]}'", "Try 'dog --help' for more information.")
    command = words[1] if len(words) > 1 else "help"
    if command not in COMMANDS:
        lines = ["Available vdi commands:", *(f"  vdi {known}" for known in COMMANDS)]
        if command not in ("help", "--help", "-h"):
            lines.insert(0, f"Invalid command 'vdi {command}'")
        raise Exit(USAGE, *lines)

    address, port, raw = "127.0.0.1", 7000, False
    operands: list[str] = []
    for letter, argument in options(program, "aprhw" if command == "write" else "aprh", words[2:], operands):
        if letter == "a":
            address = parse_address(argument)
        elif letter == "p":
            port = parse_port(argument)
        elif letter == "r":
            raw = True
        elif letter == "h":
            raise Exit(OK, text=command_help(command))
    try:
        settings = Settings(os.environ)
    except ValueError as error:
        raise Exit(SYSTEM_FAILURE, f"dog stand-in: {error}") from error
    FUNCTIONS[command](Daemon(settings, address, port, started), operands, raw)


def main(program: str, ignored: str, spent: str, words: list[str]) -> int:
    """Run the command called *program* with the arguments *words*.

    *ignored* is the mask of the signals (hexadecimal, as in /proc/PID/status) that were ignored when it was executed:
    Python itself ignores SIGPIPE, so that it cannot be asked any more. *spent* is the processor time, in nanoseconds,
    that the process had used when its launcher began; before that it was the parent's child, and no concern of ours.
    """
    # All of the start is computing, so that the processor time since then tells how long ago it was.
    started = time.monotonic() - (time.process_time() - int(spent) / 1e9) - LAUNCHER_START
    for number in (_signal.SIGINT, _signal.SIGPIPE):
        if not int(ignored, 16) >> (number - 1) & 1:
            _signal.signal(number, _signal.SIG_DFL)
    occupied = occupy_closed_streams()
    try:
        run(program, words, started)
        result = Exit(OK)
    except Exit as exit_:
        result = exit_
    except OSError as error:
        result = Exit(SYSTEM_FAILURE, f"dog stand-in: {error}")
    for line in result.lines:
        say(line)
    try:
        write_out(memoryview(os.fsencode(result.text)), spin=True)
    except Exit:
        # The real one does not look whether its texts arrived.
        pass
    del occupied
    return result.status


if __name__ == "__main__":
    # Leaving by os._exit() saves the millisecond that it takes to take the interpreter down.
    os._exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
