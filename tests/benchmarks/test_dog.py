"""The stand-in for sheepdog's ``dog`` does what the real one was seen to do: exit codes, messages, bytes."""

import fcntl
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.backends import dog
from tests.descriptors import unread

OBJECT = 4 << 20
SECONDS = 60  # until a test gives up on a child; nothing here takes even one

NO_VDI = b"Failed to open VDI %s (snapshot id: 0 snapshot tag: ): %s"
DOWN = b"failed to connect to 127.0.0.1:7000: Connection refused\n" * 2
REFUSED = DOWN.replace(b"7000", b"7999")
UNFORMATTED = b"Waiting for cluster to be formatted\n"
#: Commands that look the image up first, and their exit codes if they do not find it.
OPENING = [("read img1", 1), ("read img1 0 0", 1), ("write img1", 1), ("resize img1 2000000", 1), ("delete img1", 0)]


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


def pattern(size, salt=b"fastio"):
    """*size* bytes of which no two parts are alike, always the same for the same *salt*."""
    return random.Random(salt).randbytes(size)


# --- exit codes and messages


@pytest.mark.parametrize("words", ["", "vdi bogus", "node list", "vdi create new"])
def test_help_has_images_in_it(unchanged, words):
    done = subprocess.run(["collie", *words.split()], env=unchanged.env(), capture_output=True, timeout=SECONDS)
    said = "the stand-in knows vdi create, delete, list, resize, read, write"
    found = (done.returncode, done.stdout.decode(), done.stderr.decode())
    assert found == ((64, "", f"{said}, and not {words}\n") if words else (0, f"{said}\n", ""))


REFUSALS = [
    ({"daemon": "down"}, "list -r img1", 2, DOWN),
    ({"daemon": "down"}, "create new 1000", 2, DOWN + b"Failed to get node list\n"),
    ({"daemon": "unformatted"}, "list -r img1", 0, b""),
    ({"daemon": "unformatted"}, "create img1 1000", 1, b"Failed to create VDI img1: " + UNFORMATTED),
    *(({"daemon": "down"}, words, code, DOWN + NO_VDI % (b"img1", b"I/O error\n")) for words, code in OPENING),
    *(({}, f"{words} -p 7999", code, REFUSED + NO_VDI % (b"img1", b"I/O error\n")) for words, code in OPENING),
    *(({"daemon": "unformatted"}, words, code, NO_VDI % (b"img1", UNFORMATTED)) for words, code in OPENING),
    *(({}, words.replace("img1", "nosuch"), code, NO_VDI % (b"nosuch", b"No VDI found\n")) for words, code in OPENING),
    ({}, "list -r nosuch", 0, b""),
    ({}, "create img1 1000", 1, b"Failed to create VDI img1: VDI exists already\n"),
    ({}, "read img1 1048577", 1, b"Read offset is beyond the end of the VDI\n"),
    ({}, "write img1 1048577", 1, b"Write offset is beyond the end of the VDI\n"),
    ({}, "read img1 1048576", 0, b""),
    ({}, "read img1 0 0", 0, b""),
    ({}, "write img1 1048576", 0, b""),
    ({}, "write img1 0 0", 0, b""),
    ({}, "resize img1 1048576", 0, b""),
    ({}, "resize img1 1024", 64, b"Shrinking VDIs is not implemented\n"),
]


@pytest.mark.parametrize(("settings", "words", "code", "message"), REFUSALS)
def test_impossible_calls_and_calls_without_effect(unchanged, settings, words, code, message):
    assert unchanged(*words.split(), settings=settings) == (code, b"", message)


@pytest.mark.parametrize("program", dog.PROGRAMS)
def test_life_of_an_image(sheep, program):
    options = ["-a", "127.0.0.1", "-p", "7000"]
    before = int(time.time())
    assert sheep("create", *options, "img1", str(5 << 20), program=program) == (0, b"", b"")
    assert sheep.file("img1").stat().st_size == 5 << 20

    _, line, _ = sheep("list", "-r", *options, "img1", program=program)
    *fields, end = line.decode().split(" ")
    assert before <= int(fields.pop(6)) <= time.time()
    assert [*fields, end] == ["=", "img1", "0", "5242880", "0", "0", "9e028f", "1", "", "22\n"]

    os.utime(sheep.file("img1"), (0, 86400))  # so that a changed creation time would show
    assert sheep("write", *options, "img1", str(OBJECT), "1", stdin=b"x", program=program) == (0, b"", b"")
    assert sheep("resize", *options, "img1", str(6 << 20), program=program) == (0, b"", b"")
    assert sheep.file("img1").stat().st_size == 6 << 20
    # One byte was written: its object counts whole.
    assert sheep("list", "-r", "img1", program=program)[1] == b"= img1 0 6291456 4194304 0 86400 9e028f 1  22\n"

    assert sheep("delete", *options, "img1", program=program) == (0, b"", b"")
    assert sheep("list", "-r", "img1", program=program) == (0, b"", b"")
    assert not sheep.file("img1").exists()


# --- names


@pytest.mark.parametrize(
    "name", [b"..", b"../../up", b"/etc/passwd", b"%41", b"a b\\c\td\n", b"$(id)", b"-r", b"", b"/" * 255, b"\xff\xfe"]
)
def test_a_sheep_may_have_any_name(sheep, name, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    before = set(Path(sheep.directory).rglob("*"))
    sheep.image("A" if name == b"%41" else "%41", b"other")
    assert sheep("create", "--", name, "3145728") == (0, b"", b"")
    assert sheep("create", "--", name, "3145728")[2] == b"Failed to create VDI " + name + b": VDI exists already\n"
    assert sheep("write", "--", name, "1", "4", stdin=b"data") == (0, b"", b"")
    assert sheep("read", "--", name, "0", "6") == (0, b"\0data\0", b"")
    assert sheep.file(name).read_bytes()[:6] == b"\0data\0"

    escaped = b"".join(b"\\" + bytes([byte]) if byte in b" \t\n\\" else bytes([byte]) for byte in name)
    assert sheep("list", "-r", "--", name)[1].startswith(b"= " + escaped + b" 0 3145728 4194304 0 ")

    made = set(Path(sheep.directory).rglob("*")) - before
    assert made and all(path.is_relative_to(sheep.env()["DOG_STATE"]) for path in made)
    assert sheep("delete", "--", name) == (0, b"", b"")
    assert sheep("list", "-r", "--", name)[1] == b""


# --- read


class TestRead:
    def test_a_part_with_an_object_that_was_never_written(self, sheep):
        content = bytes(OBJECT) + pattern(2 * OBJECT)
        sheep.image("img", content)
        assert sheep("read", "img", "100", "10000000") == (0, content[100 : 100 + 10000000], b"")

    @pytest.mark.parametrize("ignored", [False, True])
    def test_a_pipe_without_readers(self, sheep, ignored):
        """It dies of SIGPIPE, unless its parent has had that ignored."""
        sheep.image("img", OBJECT)
        assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN
        words, pipe = ["dog", "vdi", "read", "img"], subprocess.PIPE
        with subprocess.Popen(
            words, env=sheep.env(), stdout=pipe, stderr=pipe, restore_signals=not ignored
        ) as child:  # fmt: skip
            child.stdout.close()
            assert child.wait(SECONDS) == (2 if ignored else -signal.SIGPIPE)
            assert child.stderr.read() == (b"Failed to write to stdout: Broken pipe\n" if ignored else b"")

    def test_no_place_for_the_output(self, sheep):
        sheep.image("img", 10)
        with open("/dev/full", "wb") as full:
            code, _, err = sheep("read", "img", stdout=full)
        assert (code, err) == (2, b"Failed to write to stdout: No space left on device\n")


# --- write


class TestWrite:
    @pytest.mark.parametrize(
        "arguments, taken",
        [([], 100_000), (["0", "5"], 5), (["99990", "50000"], 10), (["100000"], 0), (["100001"], 0), (["nonsense"], 0)],
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
        assert unread(reader.fileno()) == 150_000 - taken
        assert sheep.file("img").read_bytes().count(b"x") == taken
        assert sheep.file("img").stat().st_size == 100_000

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

        # Input that ends on a boundary clears the next object, unless LEN ends there too.
        assert sheep("write", "img", "0", str(OBJECT), stdin=old[:OBJECT]) == (0, b"", b"")
        assert sheep("write", "img", str(OBJECT), stdin=old[:OBJECT]) == (0, b"", b"")
        assert sheep.file("img").read_bytes() == old[: 2 * OBJECT] + bytes(OBJECT)


@pytest.mark.parametrize(
    ("command", "pause"),
    [("read", "start_ms"), ("read", "fetch_ms"), ("write", "start_ms"), ("write", "store_ms"), ("write", "new_ms")],
)
def test_a_pause_delays_the_command(sheep, command, pause):
    sheep.image("img", OBJECT if pause == "new_ms" else pattern(OBJECT))
    begin = time.monotonic()
    assert sheep(command, "img", stdin=pattern(OBJECT), settings={pause: 300})[0] == 0
    assert time.monotonic() - begin >= 0.25


# --- faults


class TestFaults:
    """Breaking connections and dying daemons are met in tests/stores/test_sheepdog_driver.py."""

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


# --- the helpers


class TestHelpers:
    def test_holes_stay_holes(self, sheep, tmp_path):
        source = tmp_path / "source"
        with open(source, "wb") as file:
            file.seek(16 << 20)
            file.write(pattern(OBJECT + 4097))
            file.truncate((32 << 20) + 1)
        made = dog.create_image(sheep.directory, "img", source)
        assert made == sheep.file("img") and made.read_bytes() == source.read_bytes()
        assert sheep("list", "-r", "img")[1].split()[3:5] == [b"33554433", b"8388608"]
        with pytest.raises(FileExistsError):
            dog.create_image(sheep.directory, "img", source)

    def test_a_pipeline(self, sheep, tmp_path):
        content = pattern(2 * OBJECT + 1)
        source = tmp_path / "source"
        source.write_bytes(content)
        sheep.image("img", 3 * OBJECT)

        def seconds(producer, consumer):
            return dog.time_pipeline(producer.split(), consumer.split(), sheep.env(), 1 << 20)

        assert seconds(f"cat {source}", f"dog vdi write img 10 {len(content)}") > 0
        assert sheep.file("img").read_bytes()[10 : 10 + len(content)] == content
        assert seconds(f"dog vdi read img 10 {len(content)}", f"cmp - {source}") > 0
        for commands in (("dog vdi read nosuch", "cat"), (f"cat {source}", "dog vdi write nosuch")):
            with pytest.raises(subprocess.CalledProcessError, match="nosuch"):
                seconds(*commands)
