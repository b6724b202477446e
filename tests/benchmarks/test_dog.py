"""The stand-in for sheepdog's ``dog`` does what the real one was seen to do: exit codes, messages, system calls."""

import contextlib
import fcntl
import os
import platform
import random
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from benchmarks.backends import dog

OBJECT = 4 << 20
SECONDS = 60  # until a test gives up on a child; nothing here takes even one
ENDLESS_MS = 3_600_000  # a pause that no test waits for

NO_VDI = b"Failed to open VDI nosuch (snapshot id: 0 snapshot tag: ): No VDI found\n"
REFUSED = b"failed to connect to 127.0.0.1:7999: Connection refused\n" * 2
DOWN = b"failed to connect to 127.0.0.1:7000: Connection refused\n" * 2
IO_ERROR = b"Failed to open VDI img1 (snapshot id: 0 snapshot tag: ): I/O error\n"
UNFORMATTED = b"Waiting for cluster to be formatted\n"
TRY = b"Try 'dog --help' for more information.\n"
SUFFIXES = (
    b"You may use B, K, M, G, T or P suffixes for bytes, kilobytes, megabytes, gigabytes, terabytes and petabytes.\n"
)


class Dog:
    """The stand-in, installed in *directory*; without pauses unless they are given."""

    def __init__(self, directory):
        self.directory = directory
        dog.install(directory)

    def env(self, **settings):
        return {**os.environ, **dog.environment(self.directory, **{**dog.FAST, **settings})}

    def __call__(self, command, *arguments, program="dog", stdin=b"", settings=None, **popen):
        """The exit code, standard output and standard error of ``dog vdi COMMAND ARGUMENT...``."""
        words = [program, "vdi", command, *arguments]
        how = {"stdin": stdin} if isinstance(stdin, int) else {"input": stdin}
        popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        done = subprocess.run(words, env=self.env(**settings or {}), timeout=SECONDS, **how, **popen)
        return done.returncode, done.stdout, done.stderr

    @contextlib.contextmanager
    def running(self, command, *arguments, settings=None, **popen):
        """The process of ``dog vdi COMMAND ARGUMENT...``, killed at the end."""
        popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **popen}
        with subprocess.Popen(["dog", "vdi", command, *arguments], env=self.env(**settings or {}), **popen) as child:
            try:
                yield child
            finally:
                child.kill()

    def file(self, name):
        return dog.image_file(self.directory, name)

    def image(self, name, content):
        """An image of these bytes, or of so many unwritten ones."""
        source = Path(self.directory, "source")
        with open(source, "wb") as file:
            file.truncate(content) if isinstance(content, int) else file.write(content)
        dog.create_image(self.directory, name, source)
        source.unlink()


@pytest.fixture
def sheep(tmp_path):
    return Dog(tmp_path / "sheep")


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory):
    """A store with one image, ``img1`` of 1 MiB, for tests that change nothing."""
    sheep = Dog(tmp_path_factory.mktemp("sheep"))
    sheep.image("img1", 1 << 20)
    yield sheep
    assert [path.name for path in Path(sheep.env()["DOG_STATE"]).iterdir()] == ["img1.vdi"]
    assert sheep.file("img1").stat().st_size == 1 << 20


@pytest.fixture
def pipe():
    """A pipe's two ends, unbuffered files; only what was put in and not read is in it."""
    reader, writer = os.pipe()
    with open(reader, "rb", buffering=0) as r, open(writer, "wb", buffering=0) as w:
        yield r, w


def unread(end):
    """Bytes in the pipe."""
    return struct.unpack("i", fcntl.ioctl(end, termios.FIONREAD, b"\0" * 4))[0]


def until(condition, what):
    """Wait for *condition* to give something true, and return that."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.001)
    raise AssertionError(f"waited in vain for {what}")


def take(end, size):
    """Exactly *size* bytes from the pipe."""
    data = bytearray()
    while len(data) < size:
        part = end.read(size - len(data))
        assert part, f"the pipe ended after {len(data)} of {size} bytes"
        data += part
    return bytes(data)


def asleep(child, path):
    """Wait until *child* has the file *path* open and waits for something."""

    def condition():
        assert child.poll() is None, f"exited with {child.returncode}"
        descriptors = Path(f"/proc/{child.pid}/fd")
        with contextlib.suppress(FileNotFoundError):
            if str(path) not in {os.readlink(descriptor) for descriptor in descriptors.iterdir()}:
                return False
        return Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"

    until(condition, f"the child to sleep with {path} open")


SYSTEM_CALLS = {"x86_64": {"read": 0, "write": 1}, "aarch64": {"read": 63, "write": 64}}


def requested(child, call, fd, accept=lambda size: True):
    """Wait until *child* is blocked in read(2) or write(2) on *fd*; return the size it asked for, once accepted."""
    numbers = SYSTEM_CALLS.get(platform.machine())
    if numbers is None:
        pytest.skip(f"the system calls' numbers on {platform.machine()} are not known here")
    sizes = []

    def condition():
        try:
            words = Path(f"/proc/{child.pid}/syscall").read_text().split()
        except OSError as error:
            pytest.skip(f"the kernel does not show what a child waits for: {error}")
        if len(words) < 4 or (int(words[0]), int(words[1], 16)) != (numbers[call], fd):
            return False
        sizes.append(int(words[3], 16))
        return accept(sizes[-1])

    until(condition, f"{call}() on descriptor {fd}; sizes seen: {sizes[-1:]}")
    return sizes[-1]


def pattern(size, salt=b"fastio"):
    """*size* bytes of which no two parts are alike, always the same for the same *salt*."""
    return random.Random(salt).randbytes(size)


# --- exit codes and messages


class TestUsage:
    @pytest.mark.parametrize("program", dog.PROGRAMS)
    def test_no_arguments(self, unchanged, program):
        done = subprocess.run([program], env=unchanged.env(), capture_output=True, timeout=SECONDS)
        assert (done.returncode, len(done.stdout), done.stderr) == (0, 2475, b"")

    @pytest.mark.parametrize(
        "words, start",
        [
            (["vdi"], b"Available vdi commands:\n  vdi "),
            (["vdi", "bogus"], b"Invalid command 'vdi bogus'\nAvailable vdi commands:\n  vdi "),
            (["bogus", "x"], b"Invalid command 'bogus'\n" + TRY),
            (["-p", "7000", "vdi", "list"], b"Invalid command '-p'\n" + TRY),
        ],
    )
    def test_unknown_commands(self, unchanged, words, start):
        done = subprocess.run(["collie", *words], env=unchanged.env(), capture_output=True, timeout=SECONDS)
        assert (done.returncode, done.stdout) == (64, b"")
        assert done.stderr.startswith(start)

    @pytest.mark.parametrize("program", dog.PROGRAMS)
    @pytest.mark.parametrize(
        "words, message",
        [
            (["img1", "-5"], "{}: invalid option -- '5'\n"),
            (["-x", "img1"], "{}: invalid option -- 'x'\n"),
            (["-w", "img1"], "{}: invalid option -- 'w'\n"),
            (["img1", "-p"], "{}: option requires an argument -- 'p'\n"),
            (["img1", "--port"], "{}: option '--port' requires an argument\n"),
            (["img1", "--bogus=1"], "{}: unrecognized option '--bogus=1'\n"),
            (["img1", "--raw=1"], "{}: option '--raw' doesn't allow an argument\n"),
        ],
    )
    def test_options_that_getopt_refuses(self, unchanged, program, words, message):
        expected = message.format(program).encode() + TRY
        assert unchanged("read", *words, program=program) == (64, b"", expected)

    @pytest.mark.parametrize(
        "words",
        [
            ["-r", "-a", "127.0.0.1", "-p", "7000", "img1"],
            ["img1", "-a", "localhost", "-p", "7000", "-r"],
            ["-r", "img1", "--address=localhost", "--port", "7000"],
            ["-rp7000", "img1"],
            ["--raw", "--", "img1"],
        ],
    )
    def test_options_may_stand_anywhere(self, unchanged, words):
        code, out, err = unchanged("list", *words)
        assert (code, err) == (0, b"")
        assert out.startswith(b"= img1 0 1048576 ")

    @pytest.mark.parametrize("command", ["create", "read", "write", "list", "resize", "delete"])
    @pytest.mark.parametrize("port", ["0", "abc", "65536", "70 00"])
    def test_ports(self, unchanged, command, port):
        assert unchanged(command, "-p", port, "img1") == (64, b"", f"Invalid port number '{port}'\n".encode())

    def test_only_numbers_and_known_hosts_are_addresses(self, unchanged):
        code, out, err = unchanged("list", "-a", "no such host")
        assert (code, out, err) == (1, b"", b"Invalid ip address no such host\n")

    @pytest.mark.parametrize(
        "words, size, message",
        [
            (["create"], 813, b""),
            (["create", "new"], 813, b"Please specify the VDI size\n"),
            (["create", "new", "abc"], 813, b"Invalid size 'abc'\n" + SUFFIXES),
            (["create", "new", "1KB"], 813, b"Invalid size '1KB'\n" + SUFFIXES),
            (["create", "new", "1_0"], 813, b"Invalid size '1_0'\n" + SUFFIXES),
            (["create", "new", "0x"], 813, b"Invalid size '0x'\n" + SUFFIXES),
            (["read"], 386, b""),
            (["read", "img1", "abc"], 386, b"Invalid size 'abc'\n" + SUFFIXES),
            (["read", "img1", "0", "abc"], 386, b"Invalid size 'abc'\n" + SUFFIXES),
            (["write"], 363, b""),
            (["write", "img1", "0", "abc"], 363, b"Invalid size 'abc'\n" + SUFFIXES),
            (["resize"], 306, b""),
            (["resize", "img1"], 306, b"Please specify the new size for the VDI\n"),
            (["resize", "img1", "1K"], 306, b"Shrinking VDIs is not implemented\n"),
            (
                ["resize", "img1", "4398046511105"],
                306,
                b"New VDI size is too large. This volume's max size is 4398046511104\n",
            ),
            (["delete"], 768, b""),
        ],
    )
    def test_usage_goes_to_standard_output(self, unchanged, words, size, message):
        code, out, err = unchanged(*words)
        assert (code, len(out), err) == (64, size, message)

    def test_too_large_to_create(self, unchanged):
        code, out, err = unchanged("create", "new", "5T")
        assert (code, len(out)) == (64, 813)
        assert err.startswith(b"VDI size is larger than 4.0 TB bytes, please use '-y' ")


@pytest.mark.parametrize(
    "words, code, message",
    [
        (["list", "-r", "img1"], 2, b""),
        (["create", "new", "1M"], 2, b"Failed to get node list\n"),
        (["create", "new"], 2, b"Failed to get node list\n"),
        (["read", "img1"], 1, IO_ERROR),
        (["read", "img1", "0", "0"], 1, IO_ERROR),
        (["write", "img1"], 1, IO_ERROR),
        (["resize", "img1", "2M"], 1, IO_ERROR),
        (["delete", "img1"], 0, IO_ERROR),
    ],
)
def test_without_a_daemon(unchanged, words, code, message):
    assert unchanged(*words, settings={"daemon": "down"}) == (code, b"", DOWN + message)
    assert unchanged(*words, "-p", "7999", "-a", "localhost") == (code, b"", REFUSED + message)
    assert unchanged(*words, "-p", "7000", settings={"port": 7999}) == (code, b"", DOWN + message)


@pytest.mark.parametrize(
    "words, code, message",
    [
        (["list", "-r", "img1"], 0, b""),
        (["create", "img1", "1M"], 1, b"Failed to create VDI img1: " + UNFORMATTED),
        (["read", "img1"], 1, IO_ERROR[:-10] + UNFORMATTED),
        (["read", "img1", "0", "0"], 1, IO_ERROR[:-10] + UNFORMATTED),
        (["resize", "img1", "2M"], 1, IO_ERROR[:-10] + UNFORMATTED),
        (["write", "img1"], 1, IO_ERROR[:-10] + UNFORMATTED),
        (["delete", "img1"], 0, IO_ERROR[:-10] + UNFORMATTED),
    ],
)
def test_cluster_not_formatted(unchanged, words, code, message):
    assert unchanged(*words, settings={"daemon": "unformatted"}) == (code, b"", message)


@pytest.mark.parametrize(
    "words, code, message",
    [
        (["list", "-r", "nosuch"], 0, b""),
        (["read", "nosuch"], 1, NO_VDI),
        (["read", "nosuch", "0", "0"], 1, NO_VDI),
        (["write", "nosuch"], 1, NO_VDI),
        (["resize", "nosuch", "1M"], 1, NO_VDI),
        (["delete", "nosuch"], 0, NO_VDI),
        (["create", "img1", "1M"], 1, b"Failed to create VDI img1: VDI exists already\n"),
        (["read", "img1", "1048577"], 1, b"Read offset is beyond the end of the VDI\n"),
        (["write", "img1", "1048577"], 1, b"Write offset is beyond the end of the VDI\n"),
        (["read", "img1", "1M"], 0, b""),
        (["read", "img1", "0", "0"], 0, b""),
        (["write", "img1", "1M"], 0, b""),
        (["write", "img1", "0", "0"], 0, b""),
        (["write", "-w", "img1", "1M", "1"], 0, b""),
        (["resize", "img1", "1M"], 0, b""),
    ],
)
def test_missing_existing_and_beyond_the_end(unchanged, words, code, message):
    assert unchanged(*words) == (code, b"", message)


@pytest.mark.parametrize("program", dog.PROGRAMS)
def test_life_of_an_image(sheep, program):
    options = ["-a", "127.0.0.1", "-p", "7000"]
    before = int(time.time())
    assert sheep("create", *options, "img1", "5M", program=program) == (0, b"", b"")
    assert sheep.file("img1").stat().st_size == 5 << 20

    _, line, _ = sheep("list", "-r", *options, "img1", program=program)
    *fields, end = line.decode().split(" ")
    created = int(fields.pop(6))
    assert before <= created <= time.time()
    assert fields == ["=", "img1", "0", "5242880", "0", "0", "9e028f", "1", ""]
    assert end == "22\n"

    os.utime(sheep.file("img1"), (0, 86400))  # so that a changed creation time would show
    assert sheep("write", *options, "img1", "4M", "1", stdin=b"x", program=program) == (0, b"", b"")
    assert sheep("resize", *options, "img1", "6M", program=program) == (0, b"", b"")
    assert sheep.file("img1").stat().st_size == 6 << 20
    # One byte was written: its object counts whole.
    assert sheep("list", "-r", program=program)[1] == b"= img1 0 6291456 4194304 0 86400 9e028f 1  22\n"
    assert sheep("list", "img1", program=program)[1].decode().splitlines()[1].split() == (
        ["img1", "0", "6.0", "MB", "4.0", "MB", "0.0", "MB"]
        + time.strftime("%Y-%m-%d %H:%M", time.localtime(86400)).split()
        + ["9e028f", "1", "22"]
    )

    assert sheep("delete", *options, "img1", program=program) == (0, b"", b"")
    assert sheep("list", "-r", program=program) == (0, b"", b"")
    assert not sheep.file("img1").exists()


@pytest.mark.parametrize(
    "word, size",
    [("0", 0), ("", 0), ("1", 1), ("1.5", 1), ("1048576.0", 1 << 20), ("3b", 3), ("1.5K", 1536), ("2m", 2 << 20)]
    + [("1G", 1 << 30), ("1e3", 1000), ("0x10", 16), ("0X10", 16), ("0x10b", 267), ("0x10K", 16384), ("0x1p3", 8)],
)
def test_sizes(sheep, word, size):
    assert sheep("create", "new", word) == (0, b"", b"")
    assert sheep.file("new").stat().st_size == size
    assert sheep("list", "-r", "new")[1].split()[3] == str(size).encode()


# --- names


@pytest.mark.parametrize(
    "locale, name",
    [
        (None, name)
        for name in [b".", b"..", b"../../up", b"/etc/passwd", b"a/b", b"%41", b"A", b"a b\\c\td\n", b"*", b"$(id)"]
        + [b"-r", b"", b"x" * 255, b"/" * 255, b"y" * 200, b"e 4.vdi"]
    ]
    + [(locale, name) for locale in ("C", "C.UTF-8") for name in ("Schäfchen".encode(), b"\xff\xfe")],
)
def test_any_name(sheep, locale, name, monkeypatch):
    if locale:
        monkeypatch.setenv("LC_ALL", locale)
    before = set(Path(sheep.directory).rglob("*"))
    sheep.image("A" if name == b"%41" else "%41", b"other")
    assert sheep("create", "--", name, "3M") == (0, b"", b"")
    assert sheep("create", "--", name, "3M")[2] == b"Failed to create VDI " + name + b": VDI exists already\n"
    assert sheep("write", "--", name, "1", "4", stdin=b"data") == (0, b"", b"")
    assert sheep("read", "--", name, "0", "6") == (0, b"\0data\0", b"")
    assert sheep.file(name).read_bytes()[:6] == b"\0data\0"

    escaped = b"".join(b"\\" + bytes([byte]) if byte in b" \t\n\\" else bytes([byte]) for byte in name)
    assert sheep("list", "-r", "--", name)[1].startswith(b"= " + escaped + b" 0 3145728 4194304 0 ")
    assert sheep("list", "-r")[1].count(b"= " + escaped + b" 0 3145728 ") == 1

    made = set(Path(sheep.directory).rglob("*")) - before
    assert made and all(path.is_relative_to(sheep.env()["DOG_STATE"]) for path in made)
    assert sheep("delete", "--", name) == (0, b"", b"")
    assert sheep("list", "-r")[1].count(b"\n") == 1


def test_a_blank_in_a_name_puts_the_size_elsewhere(sheep):
    sheep.image("e 4", 3 << 20)
    assert sheep("list", "-r", "e 4")[1].split(b" ")[3] == b"0"


def test_an_image_grows_by_segments(sheep):
    """As an image of unknown size does; each command sees the size that the one before it has left."""
    data = random.Random(1).randbytes(OBJECT + 5)
    assert sheep("create", "a", "0") == (0, b"", b"")
    for offset, end in ((0, 3), (3, OBJECT - 1), (OBJECT - 1, OBJECT + 5)):
        assert sheep("resize", "a", str(end)) == (0, b"", b"")
        assert sheep("write", "a", str(offset), str(end - offset), stdin=data[offset:end]) == (0, b"", b"")
    assert sheep("read", "a") == (0, data, b"")
    assert sheep("list", "-r", "a")[1].split(b" ")[3] == str(len(data)).encode()


def test_a_write_that_is_killed_leaves_what_can_be_deleted(sheep):
    assert sheep("create", "a", "12M") == (0, b"", b"")
    with sheep.running("write", "a", stdin=subprocess.PIPE) as child:
        child.stdin.write(b"x" * (OBJECT + 5))
        child.stdin.flush()
        until(lambda: sheep.file("a").read_bytes()[:OBJECT] == b"x" * OBJECT, "the first object")
        child.kill()
        assert child.wait() == -signal.SIGKILL
    assert sheep("read", "a", "0", str(2 * OBJECT))[1] == b"x" * OBJECT + bytes(OBJECT)
    assert sheep("delete", "a") == (0, b"", b"")
    assert sheep("list", "-r", "a") == (0, b"", b"")


def test_names_are_cut_at_255_bytes(sheep):
    assert sheep("create", "x" * 300, "1M") == (0, b"", b"")
    assert sheep("read", "x" * 255, "0", "1") == (0, b"\0", b"")
    assert sheep("read", "x" * 256, "0", "1") == (0, b"\0", b"")
    assert sheep("list", "-r", "x" * 255)[1].count(b"\n") == 1
    assert sheep("list", "-r", "x" * 256) == (0, b"", b"")


def test_list_shows_all_images_by_id(sheep):
    for name in ("img2", "big", "img1"):
        sheep.image(name, 0)
    lines = sheep("list", "-r")[1].decode().splitlines()
    assert [line.split()[1] for line in lines] == ["big", "img1", "img2"]
    assert [line.split(" ")[7] for line in lines] == ["4fd259", "9e028f", "9e0442"]


# --- read


class TestRead:
    def test_bytes(self, sheep):
        content = pattern(2 * OBJECT + 12345)
        sheep.image("img", content)
        assert sheep("read", "img") == (0, content, b"")
        for offset, length in [(0, 1), (100, OBJECT), (OBJECT - 1, 2), (OBJECT, OBJECT), (2 * OBJECT + 12344, 7)]:
            expected = content[offset : offset + length]
            assert sheep("read", "img", str(offset), str(length)) == (0, expected, b"")
        assert sheep("read", "img", "8M") == (0, content[2 * OBJECT :], b"")

    def test_one_write_for_each_object(self, sheep, pipe):
        """An offset shifts nothing: pieces end where the image's objects do. The first object was never written."""
        content = bytes(OBJECT) + pattern(2 * OBJECT)
        sheep.image("img", content)
        reader, writer = pipe
        with sheep.running("read", "img", "100", "10000000", stdout=writer) as child:
            start = 100
            for size in (4194204, 4194304, 1611492):
                until(lambda: unread(reader), "output")
                assert requested(child, "write", 1) == size
                assert take(reader, size) == content[start : start + size]
                start += size
            assert child.wait(SECONDS) == 0
        assert unread(reader) == 0

    def test_never_fetches_ahead(self, sheep, pipe):
        """While the first object waits for its reader, the second is changed: the change must be seen."""
        sheep.image("img", pattern(2 * OBJECT))
        reader, writer = pipe
        with sheep.running("read", "img", stdout=writer) as child:
            until(lambda: unread(reader), "output")
            requested(child, "write", 1)
            with open(sheep.file("img"), "r+b") as file:
                file.seek(OBJECT)
                file.write(b"changed")
            assert take(reader, 2 * OBJECT)[OBJECT : OBJECT + 7] == b"changed"
            assert child.wait(SECONDS) == 0

    @pytest.mark.parametrize("pause", ["start_ms", "fetch_ms"])
    def test_nothing_comes_before_the_pauses(self, sheep, pipe, pause):
        sheep.image("img", pattern(OBJECT))
        reader, writer = pipe
        with sheep.running("read", "img", stdout=writer, settings={pause: ENDLESS_MS}) as child:
            asleep(child, sheep.file("img"))
            assert unread(reader) == 0

    def test_a_pause_for_each_fetched_object_only(self, sheep):
        """Objects never written cost nothing, and a part costs its share."""
        sheep.image("empty", 3 * OBJECT)
        assert sheep("read", "empty", settings={"fetch_ms": ENDLESS_MS}) == (0, bytes(3 * OBJECT), b"")
        sheep.image("img", pattern(OBJECT))
        assert sheep("read", "img", "0", "4", settings={"fetch_ms": ENDLESS_MS}) == (0, pattern(OBJECT)[:4], b"")

    def test_leaves_standard_input_alone(self, sheep, pipe):
        sheep.image("img", 10)
        reader, writer = pipe
        writer.write(b"not for you")
        assert sheep("read", "img", stdin=reader.fileno()) == (0, bytes(10), b"")
        assert unread(reader) == 11

    def test_leaves_the_pipe_as_it_was(self, sheep, pipe):
        sheep.image("img", 1000)
        reader, writer = pipe

        def state():
            return [(fcntl.fcntl(end, fcntl.F_GETFL), fcntl.fcntl(end, fcntl.F_GETPIPE_SZ)) for end in pipe]

        before = state()
        assert sheep("read", "img", stdout=writer)[0] == 0
        assert sheep("write", "img", "0", "1000", stdin=reader.fileno())[0] == 0
        assert state() == before

    def test_dies_of_sigpipe(self, sheep):
        sheep.image("img", OBJECT)
        with sheep.running("read", "img", stdout=subprocess.PIPE) as child:
            child.stdout.close()
            assert child.wait(SECONDS) == -signal.SIGPIPE
            assert child.stderr.read() == b""

    def test_sigpipe_ignored_by_the_parent(self, sheep):
        sheep.image("img", OBJECT)
        assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN
        with sheep.running("read", "img", stdout=subprocess.PIPE, restore_signals=False) as child:
            child.stdout.close()
            assert child.wait(SECONDS) == 2
            assert child.stderr.read() == b"Failed to write to stdout: Broken pipe\n"

    def test_no_place_for_the_output(self, sheep):
        sheep.image("img", 10)
        with open("/dev/full", "wb") as full:
            code, _, err = sheep("read", "img", stdout=full)
        assert (code, err) == (2, b"Failed to write to stdout: No space left on device\n")
        code, _, err = closed(sheep, ">&-", "read", "img")
        assert (code, err) == (2, b"Failed to write to stdout: Invalid argument\n")


def closed(sheep, redirection, *words):
    """Run ``dog vdi WORD...`` from a shell that closes a standard stream for it."""
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh", "dog", "vdi", *words]
    done = subprocess.run(shell, env=sheep.env(), capture_output=True, timeout=SECONDS)
    return done.returncode, done.stdout, done.stderr


# --- write


class TestWrite:
    def test_bytes(self, sheep):
        content = pattern(2 * OBJECT + 12345)
        sheep.image("img", len(content))
        assert sheep("write", "img", stdin=content) == (0, b"", b"")
        assert sheep.file("img").read_bytes() == content
        for offset, length in [(0, 1), (100, OBJECT), (OBJECT - 1, 2), (2 * OBJECT + 12340, 5)]:
            new = pattern(length, salt=b"new")
            content = content[:offset] + new + content[offset + length :]
            assert sheep("write", "img", str(offset), str(length), stdin=new) == (0, b"", b"")
            assert sheep.file("img").read_bytes() == content

    def test_asks_for_what_is_missing_of_the_object(self, sheep, pipe):
        sheep.image("img", 3 * OBJECT)
        reader, writer = pipe
        with sheep.running("write", "img", "100", "5000000", stdin=reader) as child:
            size = 4194304 - 100
            assert requested(child, "read", 0) == size
            writer.write(bytes(65536))
            requested(child, "read", 0, lambda seen: seen == size - 65536)
            writer.write(bytes(size - 65536 + 10))
            requested(child, "read", 0, lambda seen: seen == 5000000 - size - 10)
            writer.write(bytes(5000000 - size - 10))
            assert child.wait(SECONDS) == 0
        assert sheep.file("img").stat().st_size == 3 * OBJECT

    @pytest.mark.parametrize(
        "arguments, taken",
        [
            ([], 100_000),
            (["0", "5"], 5),
            (["0", "0"], 0),
            (["99990"], 10),
            (["99990", "50000"], 10),
            (["100000"], 0),
            (["100000", "7"], 0),
            (["100001"], 0),
            (["nonsense"], 0),
        ],
    )
    def test_reads_no_more_than_it_stores(self, sheep, pipe, arguments, taken):
        """Whatever does not fit is cut off silently; errors leave all of the input."""
        sheep.image("img", 100_000)
        reader, writer = pipe
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 18)
        writer.write(b"x" * 150_000)
        code, out, err = sheep("write", "img", *arguments, stdin=reader.fileno())
        assert code == {"100001": 1, "nonsense": 64}.get(arguments[0] if arguments else "", 0)
        assert bool(err) == bool(code)
        assert unread(reader) == 150_000 - taken
        assert sheep.file("img").read_bytes().count(b"x") == taken
        assert sheep.file("img").stat().st_size == 100_000

    @pytest.mark.parametrize("settings", [{}, {"daemon": "down"}, {"daemon": "unformatted"}])
    def test_errors_leave_the_input(self, sheep, pipe, settings):
        reader, writer = pipe
        writer.write(b"x" * 1000)
        code, _, err = sheep("write", "img", stdin=reader.fileno(), settings=settings)
        assert code == 1 and err
        assert unread(reader) == 1000

    def test_a_large_input_meets_a_closed_pipe(self, sheep):
        sheep.image("img", 10)
        with sheep.running("write", "img", stdin=subprocess.PIPE) as child:
            with pytest.raises(BrokenPipeError):
                child.stdin.write(bytes(OBJECT))
                child.stdin.flush()
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()
            assert child.wait(SECONDS) == 0
            assert child.stderr.read() == b""

    def test_short_input_is_padded_with_zeros(self, sheep):
        """Up to the end of LEN or of the object, whichever is first; what follows stays."""
        old = b"\xff" * (3 * OBJECT)
        sheep.image("img", old)
        assert sheep("write", "img", "10", "100", stdin=b"short") == (0, b"", b"")
        expected = old[:10] + b"short" + bytes(95) + old[110:]
        assert sheep.file("img").read_bytes() == expected

        assert sheep("write", "img", str(OBJECT + 10), stdin=b"short") == (0, b"", b"")
        expected = expected[: OBJECT + 10] + b"short" + bytes(OBJECT - 15) + expected[2 * OBJECT :]
        assert sheep.file("img").read_bytes() == expected

    def test_input_that_ends_on_a_boundary_clears_the_next_object(self, sheep):
        old = b"\xff" * (3 * OBJECT)
        sheep.image("img", old)
        assert sheep("write", "img", stdin=pattern(OBJECT)) == (0, b"", b"")
        assert sheep.file("img").read_bytes() == pattern(OBJECT) + bytes(OBJECT) + old[2 * OBJECT :]

        assert sheep("write", "img", "0", str(OBJECT), stdin=old[:OBJECT]) == (0, b"", b"")
        assert sheep.file("img").read_bytes() == old[:OBJECT] + bytes(OBJECT) + old[2 * OBJECT :]

    def test_the_start_comes_before_the_input(self, sheep, pipe):
        sheep.image("img", OBJECT)
        reader, writer = pipe
        writer.write(b"x" * 1000)
        with sheep.running("write", "img", stdin=reader, settings={"start_ms": ENDLESS_MS}) as child:
            asleep(child, sheep.file("img"))
            assert unread(reader) == 1000

    def test_reads_nothing_while_it_stores(self, sheep, pipe):
        sheep.image("img", 2 * OBJECT)
        reader, writer = pipe
        with sheep.running("write", "img", stdin=reader, settings={"new_ms": ENDLESS_MS}) as child:
            writer.write(pattern(OBJECT) + b"next object")
            with open(sheep.file("img"), "rb") as file:
                until(lambda: os.pread(file.fileno(), 10, OBJECT - 10) == pattern(OBJECT)[-10:], "the object")
            asleep(child, sheep.file("img"))
            assert unread(reader) == len("next object")

    def test_a_new_object_has_a_pause_of_its_own(self, sheep):
        sheep.image("img", OBJECT)
        for data, other in ((b"a" * OBJECT, "store_ms"), (b"b" * OBJECT, "new_ms")):
            assert sheep("write", "img", stdin=data, settings={other: ENDLESS_MS}) == (0, b"", b"")
            assert sheep.file("img").read_bytes() == data

    def test_standard_input_is_closed(self, sheep):
        sheep.image("img", 10)
        assert closed(sheep, "<&-", "write", "img") == (2, b"", b"Failed to read from stdin: Invalid argument\n")


# --- faults


class TestFaults:
    @pytest.mark.parametrize("objects", [0, 1, 2])
    def test_daemon_dies_during_a_read(self, sheep, objects):
        sheep.image("big", pattern(2 * OBJECT + 5))
        code, out, err = sheep("read", "big", settings={"die_after": objects})
        assert code == 1
        assert out == pattern(2 * OBJECT + 5)[: objects * OBJECT]
        assert err.decode().splitlines() == [
            "failed to read a response",
            f"Failed to read object 004fd2590000000{objects}",
            "Failed to read VDI",
        ]

    def test_daemon_dies_after_the_read(self, sheep):
        sheep.image("big", pattern(OBJECT))
        assert sheep("read", "big", settings={"die_after": 1}) == (0, pattern(OBJECT), b"")

    @pytest.mark.parametrize("ignored", [False, True])
    def test_daemon_dies_during_a_write(self, sheep, ignored):
        """An object is too much to be sent to a connection that is closed; a request to read one is not."""
        sheep.image("big", 3 * OBJECT)
        code, out, err = sheep(
            "write", "big", stdin=b"\xff" * (3 * OBJECT), settings={"die_after": 1}, restore_signals=not ignored
        )
        said = [
            "failed to write to socket: Broken pipe",
            "failed to send request 1, 4194304: Broken pipe",
            "Failed to write object 004fd25900000001",
            "Failed to write VDI",
        ]
        assert (code, out) == (1 if ignored else -signal.SIGPIPE, b"")
        assert err.decode().splitlines() == (said if ignored else [])
        assert sheep.file("big").read_bytes() == b"\xff" * OBJECT + bytes(2 * OBJECT)

    @pytest.mark.parametrize("cut", ["create", "created"])
    def test_answer_of_create_is_lost(self, sheep, cut):
        assert sheep("create", "img", "5", settings={"cut": cut}) == (2, b"", b"failed to read a response\n")
        assert sheep.file("img").exists() == (cut == "created")

    @pytest.mark.parametrize(
        "words, code, line",
        [
            (["list", "-r", "big"], 0, "Failed to read inode header"),
            (["read", "big"], 1, "Failed to read a vdi big"),
            (["write", "big"], 1, "Failed to read a vdi big"),
            (["resize", "big", "3"], 1, "Failed to read a vdi big"),
            (["delete", "big"], 0, "failed to read inode object: 804fd25900000000"),
        ],
    )
    def test_connection_breaks_after_the_look_up(self, sheep, words, code, line):
        sheep.image("big", b"ab")
        said = ["failed to read a response", "Failed to read object 804fd25900000000", line]
        assert sheep(*words, stdin=b"cd", settings={"cut": "inode"}) == (code, b"", ("\n".join(said) + "\n").encode())
        assert sheep.file("big").read_bytes() == b"ab"

    def test_connection_breaks_while_an_image_is_deleted(self, sheep):
        sheep.image("big", b"ab")
        code, out, err = sheep("delete", "big", settings={"cut": "discarded"})
        assert (code, out) == (0, b"")
        assert err.decode().splitlines() == [
            "failed to read a response",
            "Failed to write object 804fd25900000000",
            "failed to update inode for discarding objects: 804fd25900000000",
        ]
        assert sheep("read", "big") == (0, bytes(2), b"")
        assert sheep("delete", "big", settings={"cut": "deleted"}) == (0, b"", b"failed to read a response\n")
        assert not sheep.file("big").exists()

    @pytest.mark.parametrize("new", [True, False])
    def test_an_orphan_of_a_write_that_is_killed(self, sheep, new):
        """Only a new object has yet to be entered in the image."""
        sheep.image("big", OBJECT if new else b"x" * OBJECT)
        settings = {"new_ms": ENDLESS_MS, "store_ms": ENDLESS_MS}
        with sheep.running("write", "big", stdin=subprocess.PIPE, settings=settings) as child:
            child.stdin.write(b"y" * OBJECT)
            child.stdin.flush()
            until(lambda: sheep.file("big").read_bytes() == b"y" * OBJECT, "the object")
            child.kill()
        assert dog.orphans(sheep.directory) == (["004fd25900000000"] if new else [])
        assert sheep("delete", "big") == (0, b"", b"")
        assert len(dog.orphans(sheep.directory)) == new
        assert sheep("list", "-r") == (0, b"", b"")

    def test_daemon_hangs_during_a_read(self, sheep, pipe):
        sheep.image("img", pattern(2 * OBJECT))
        reader, writer = pipe
        with sheep.running("read", "img", stdout=writer, settings={"hang_after": 1}) as child:
            assert take(reader, OBJECT) == pattern(2 * OBJECT)[:OBJECT]
            asleep(child, sheep.file("img"))
            assert unread(reader) == 0
            child.send_signal(signal.SIGINT)
            assert child.wait(SECONDS) == -signal.SIGINT
            assert child.stderr.read() == b""

    @pytest.mark.parametrize("command", ["list", "read", "write", "resize", "delete", "create"])
    def test_daemon_stopped(self, sheep, command):
        sheep.image("img", 10)
        with sheep.running(command, "img", "10", stdout=subprocess.PIPE, settings={"daemon": "stopped"}) as child:
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(0.2)
            child.kill()
            assert child.communicate(timeout=SECONDS) == (b"", b"")

    def test_spins_on_a_pipe_made_non_blocking(self, sheep, pipe):
        sheep.image("img", pattern(OBJECT))
        reader, writer = pipe
        os.set_blocking(writer.fileno(), False)
        with sheep.running("read", "img", stdout=writer) as child:
            until(lambda: unread(reader), "output")

            def ticks():
                return sum(map(int, Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))

            used = ticks()
            until(lambda: ticks() >= used + 10, "processor time spent on nothing")
            assert take(reader, OBJECT) == pattern(OBJECT)
            assert child.wait(SECONDS) == 0

        os.set_blocking(writer.fileno(), True)
        os.set_blocking(reader.fileno(), False)
        with sheep.running("write", "img", "0", "7", stdin=reader) as child:
            used = ticks()
            until(lambda: ticks() >= used + 10, "processor time spent on nothing")
            writer.write(b"at last")
            assert child.wait(SECONDS) == 0
        assert sheep.file("img").read_bytes()[:7] == b"at last"

    def test_fails_on_a_pipe_made_non_blocking(self, sheep, pipe):
        sheep.image("img", pattern(OBJECT))
        reader, writer = pipe
        os.set_blocking(writer.fileno(), False)
        os.set_blocking(reader.fileno(), False)
        code, _, err = sheep("read", "img", stdout=writer, settings={"eagain": "fail"})
        assert (code, err) == (2, b"Failed to write to stdout: Resource temporarily unavailable\n")
        take(reader, unread(reader))
        code, _, err = sheep("write", "img", stdin=reader.fileno(), settings={"eagain": "fail"})
        assert (code, err) == (2, b"Failed to read from stdin: Resource temporarily unavailable\n")

    @pytest.mark.parametrize(
        "name, value, allowed",
        [
            ("DOG_START_MS", "soon", "a number of milliseconds, 0 or more"),
            ("DOG_FETCH_MS", "-1", "a number of milliseconds, 0 or more"),
            ("DOG_STORE_MS", "nan", "a number of milliseconds, 0 or more"),
            ("DOG_NEW_MS", "inf", "a number of milliseconds, 0 or more"),
            ("DOG_CUT", "", "nowhere, create, created, inode, discarded, deleted"),
            ("DOG_DIE_AFTER", "1.5", "a number of whole objects, 0 or more"),
            ("DOG_DAEMON", "asleep", "up, down, stopped, unformatted"),
            ("DOG_EAGAIN", "", "spin, fail"),
            ("DOG_STATE", "/nonexistent", "the path of an existing directory"),
        ],
    )
    def test_bad_settings(self, unchanged, name, value, allowed):
        env = {**unchanged.env(), name: value}
        done = subprocess.run(["dog", "vdi", "list"], env=env, capture_output=True, timeout=SECONDS, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"dog stand-in: {name}='{value}': allowed ")
        assert done.stderr.endswith(f" {allowed}\n")

    def test_bad_settings_are_refused_in_advance(self, unchanged):
        with pytest.raises(ValueError, match="DOG_FETCH_MS='-1'.*0 or more"):
            dog.environment(unchanged.directory, fetch_ms=-1)


# --- the helpers


class TestHelpers:
    def test_launchers_survive_a_blank_in_their_path(self, tmp_path):
        sheep = Dog(tmp_path / "with 'a quote' and $blanks")
        assert sheep("create", "$HOME 'x'", "1") == (0, b"", b"")
        assert sheep("list", "-r")[1].startswith(b"= $HOME\\ 'x' 0 1 0 0 ")

    def test_installing_again_keeps_the_images(self, sheep):
        sheep.image("img", b"content")
        assert dog.install(sheep.directory) == Path(sheep.directory, "bin")
        assert sheep("read", "img") == (0, b"content", b"")

    def test_create_image(self, sheep, tmp_path):
        content = pattern(OBJECT + 4097)
        source = tmp_path / "source"
        with open(source, "wb") as file:
            file.seek(16 << 20)
            file.write(content)
            file.truncate((32 << 20) + 1)
        made = dog.create_image(sheep.directory, "img", source)
        assert made == sheep.file("img")
        assert made.read_bytes() == source.read_bytes()
        assert made.stat().st_size == (32 << 20) + 1
        assert made.stat().st_blocks * 512 < 8 << 20
        assert sheep("list", "-r", "img")[1].split()[3:5] == [b"33554433", b"8388608"]
        with pytest.raises(FileExistsError):
            dog.create_image(sheep.directory, "img", source)

    @pytest.mark.parametrize("pipe_size", [None, 1 << 20])
    def test_peers(self, sheep, tmp_path, pipe_size):
        content = pattern(2 * OBJECT + 1)
        source = tmp_path / "source"
        source.write_bytes(content)
        sheep.image("img", 3 * OBJECT)
        additions = dog.environment(sheep.directory, **dog.FAST)
        assert dog.time_write_from_cat(additions, "img", source, 10, pipe_size=pipe_size) > 0
        assert sheep.file("img").read_bytes()[10 : 10 + len(content)] == content
        assert dog.time_read_into_cat(additions, "img", 10, len(content), pipe_size=pipe_size) > 0
        with pytest.raises(subprocess.CalledProcessError, match="nosuch"):
            dog.time_read_into_cat(additions, "nosuch", pipe_size=pipe_size)
        with pytest.raises(subprocess.CalledProcessError, match="nosuch"):
            dog.time_write_from_cat(additions, "nosuch", source, pipe_size=pipe_size)
