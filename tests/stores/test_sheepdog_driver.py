"""The ``sheepdog`` driver, against the stand-in for ``dog``, or a real cluster: ``FASTIO_TEST_DOG=127.0.0.1:7000``."""

import contextlib
import hashlib
import importlib
import io
import os
import pathlib
import signal
import stat
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastio
from benchmarks.backends import dog
from tests.conftest import MONKEY_PATCHED
from tests.descriptors import descriptors
from tests.eventually import until
from tests.tracer import deathless

pytest.importorskip("glance_store", reason="glance_store is not installed: pip install '.[sheepdog]'")

from glance_store import exceptions, location  # noqa: E402
from oslo_config import cfg  # noqa: E402

from fastio.drivers import _dog, _process, sheepdog  # noqa: E402
from tests.stores.images import KIB, MIB, ImageFile, content  # noqa: E402
from tests.stores.test_contract import IMAGE, SIZES  # noqa: E402
from tests.trace import traces  # noqa: E402

#: ``address:port`` of a daemon of a real cluster; ``dog`` has to be in the path.
REAL = os.environ.get("FASTIO_TEST_DOG", "")

stand_in_only = pytest.mark.skipif(bool(REAL), reason="the stand-in is asked for a fault, or looked into")


class Cluster:
    """A cluster and the driver's view of it."""

    def __init__(self, directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.monkeypatch = monkeypatch
        self.address, _, port = (REAL or "127.0.0.1:7000").rpartition(":")
        self.port = int(port)
        self.made: list[str] = []
        if not REAL:
            dog.install(directory)
            self.set()

    def set(self, **options: Any) -> None:
        """Options of :func:`benchmarks.backends.dog.environment`; without pauses unless they are given."""
        for name in [name for name in os.environ if name.startswith("DOG_")]:
            self.monkeypatch.delenv(name)
        for name, value in dog.environment(self.directory, **{**dog.FAST, **options}).items():
            self.monkeypatch.setenv(name, value)

    def store(self, chunk_size: int | None = None, **options: Any) -> sheepdog.Store:
        """A single store, as with ``[glance_store] stores = sheepdog``. ``chunk_size`` in MiB is the option's."""
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[])
        store = sheepdog.Store(conf)
        options = {"sheepdog_store_address": self.address, "sheepdog_store_port": self.port, **options}
        if chunk_size is not None:
            options["sheepdog_store_chunk_size"] = chunk_size
        for name, value in options.items():
            conf.set_override(name, value, group="glance_store")
        store.configure(re_raise_bsc=True)
        return store

    def uri(self, name: str) -> str:
        return f"sheepdog://{self.address}:{self.port}:{name}"

    def add(self, data: Any, size: int | None = None, store: Any = None, name: str | None = None, **more: Any) -> Any:
        """Return the result of ``add()``; the image is deleted after the test."""
        name = str(uuid.uuid4()) if name is None else name
        self.made.append(name)
        file = io.BytesIO(data) if isinstance(data, bytes) else data
        return (store or self.store()).add(name, file, len(data) if size is None else size, "sha512", **more)

    def located(self, uri: str, store: Any) -> Any:
        return location.Location("sheepdog", sheepdog.StoreLocation, store.conf, uri=uri, backend=store.backend_group)

    def get(self, uri: str, store: Any = None, **part: Any) -> tuple[Any, int]:
        store = store or self.store()
        return store.get(self.located(uri, store), **part)

    def read(self, uri: str, **part: Any) -> bytes:
        return b"".join(self.get(uri, **part)[0])

    def exists(self, name: str) -> bool:
        store = self.store()
        try:
            store.get_size(self.located(self.uri(name), store))
        except exceptions.NotFound:
            return False
        return True

    def clean(self) -> None:
        if not REAL:
            return
        store = self.store()
        for name in self.made:
            # A name that cannot be has made no image either.
            with contextlib.suppress(exceptions.NotFound, exceptions.BadStoreUri):
                store.delete(self.located(self.uri(name), store))


@pytest.fixture
def cluster(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path / "sheepdog", monkeypatch)
    yield cluster
    cluster.clean()


@pytest.fixture(autouse=True)
def leaves_no_child() -> Iterator[None]:
    """No test leaves a child or a descriptor; greenlets and threads of the tests have all ended then."""
    if MONKEY_PATCHED:
        # The hub's own descriptors are opened by the first wait.
        importlib.import_module("eventlet").sleep(0)
    before = descriptors()
    yield
    until_all_have_ended()
    # An earlier test's sockets may have been closed meanwhile: with the garbage.
    assert descriptors() - before == set()


def until_all_have_ended() -> None:
    """Each command that starts reaps those that could not be waited for when they were killed."""
    until(lambda: _process._reap() or pids() == [])  # type: ignore[func-returns-value]


def pids() -> list[pathlib.Path]:
    """Where ``/proc`` shows each child of this process, zombies too; not the keepers of the session's backends."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                if int(parent) == os.getpid() and b"keeper.py" not in (entry / "cmdline").read_bytes():
                    found.append(entry)
    return found


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The operands of each command that the driver starts: ``["vdi", "read", …]`` without address and port."""
    started: list[list[str]] = []
    original = _dog.Child

    def start(arguments: list[str], **options: Any) -> Any:
        words = arguments[1:]
        for option in ("-a", "-p"):
            position = words.index(option) if option in words else len(words)
            del words[position : position + 2]
        started.append(words)
        return original(arguments, **options)

    monkeypatch.setattr(_dog, "Child", start)
    return started


def fake(monkeypatch: pytest.MonkeyPatch, directory: pathlib.Path, script: str, helpful: bool = True) -> None:
    """A ``dog`` that does what ``script`` says; called with nothing it prints a help if it is ``helpful``."""
    directory.mkdir(exist_ok=True)
    program = directory / "dog"
    help = "[ $# = 0 ] && echo dog vdi list && exit\n" if helpful else ""
    program.write_text(f"#!/bin/sh\n{help}{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(directory), prepend=os.pathsep)


# --- what glance does


def test_one_command_reads_and_one_writes(cluster: Cluster, commands: list[list[str]]) -> None:
    data = content(9 * MIB)
    store = cluster.store()
    commands.clear()
    uri = cluster.add(data, store=store, name="a")[0]
    (_, create, *first), *others = commands
    assert (create, first[0]) == ("create", "a")
    assert 0 <= int(first[1]) < len(data), "a size that distinguishes this image from others of its name"
    assert others == [["vdi", "resize", "a", str(len(data))], ["vdi", "write", "a", "0", str(len(data))]]
    commands.clear()
    chunks, _ = cluster.get(uri, store)
    # The read begins first and goes on beside the other.
    assert commands == [["vdi", "read", "a", "0"], ["vdi", "list", "-r", "a"]]
    assert b"".join(chunks) == data
    assert len(commands) == 2
    assert b"".join(chunks) == data
    assert commands[2:] == [["vdi", "read", "a", "0", str(len(data))]]


def test_a_trace_has_what_the_driver_does(cluster: Cluster, tmp_path: pathlib.Path) -> None:
    """Unless it is left out, by the name of what records the other drivers."""
    data = content(3 * MIB)
    asked: list[dict[str, Any]] = [{}, {"disabled": "trace_stores"}]
    for more in asked:
        fastio.patch([], trace=str(tmp_path / "trace"), **more)
        try:
            store = cluster.store()
            uri = cluster.add(data, store=store)[0]
            assert b"".join(cluster.get(uri, store)[0]) == data
            store.delete(cluster.located(uri, store))
        finally:
            fastio.unpatch()
    found = [span for span in traces.spans(tmp_path / "trace") if span.name.startswith("store.")]
    assert [(span.name, span.values["outcome"], span.values.get("bytes")) for span in found] == [
        ("store.sheepdog.add", "ok", 3 * MIB), ("store.sheepdog.get", "ok", 3 * MIB),
        ("store.sheepdog.delete", "ok", None),
    ]  # fmt: skip


def test_a_read_that_has_begun_ends_with_the_iterator(cluster: Cluster) -> None:
    uri = cluster.add(IMAGE)[0]
    for close in (False, True):
        image, _ = cluster.get(uri)
        assert len(pids()) == 1
        if close:
            chunks = iter(image)
            next(chunks)
            chunks.close()
            until_all_have_ended()
        del image
        until_all_have_ended()
    assert list(cluster.get(uri, offset=len(IMAGE))[0]) == []


@pytest.mark.skipif(not MONKEY_PATCHED, reason="there is no hub")
@pytest.mark.parametrize("iterated", [False, True])
def test_a_read_that_has_begun_is_thrown_away_in_the_hub(
    cluster: Cluster, iterated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing may wait; an error of a finalizer would only be printed."""
    import eventlet

    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    held: list[Any] = [cluster.get(cluster.add(IMAGE)[0])[0]]
    if iterated:
        held.append(iter(held[0]))
        next(held[1])
    let_go = eventlet.event.Event()

    def let_it_go() -> None:
        held.clear()
        let_go.send()

    (reading,) = pids()
    with deathless(int(reading.name)) as living:
        eventlet.hubs.get_hub().schedule_call_global(0, let_it_go)
        let_go.wait()
        assert living()
    assert unraisable == []
    until_all_have_ended()


def test_no_read_goes_on_for_an_image_that_is_not_there(cluster: Cluster) -> None:
    uri = cluster.add(b"x")[0]
    with pytest.raises(exceptions.NotFound):
        cluster.get(uri[:-1] + "-")
    assert pids() == []


def test_without_a_size_each_segment_takes_two_commands(
    cluster: Cluster, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheepdog, "SEGMENT", 2 * MIB)
    store = cluster.store()
    commands.clear()
    cluster.add(content(3 * MIB), size=0, store=store, name="a")
    assert commands[0][:3] == ["vdi", "create", "a"]
    assert 0 <= int(commands[0][3]) < MIB, "the first chunk is known to have that much"
    assert [words[1:] for words in commands[1:]] == [
        ["resize", "a", str(2 * MIB)],
        ["write", "a", "0", str(2 * MIB)],
        ["resize", "a", str(3 * MIB)],
        ["write", "a", str(2 * MIB), str(MIB)],
    ]


def test_a_bad_setting_is_a_bad_configuration(cluster: Cluster) -> None:
    with cluster.monkeypatch.context() as context:
        context.setenv("FASTIO_STORE_CHUNK_SIZES", "sheepdog=128")
        with pytest.raises(exceptions.BadStoreConfiguration, match="store_chunk_sizes"):
            cluster.store()


# --- parts and sizes


@settings(max_examples=15)
@given(
    size=SIZES,
    known=st.booleans(),
    most=st.none() | st.integers(1, 100).map(lambda n: n * 10_007),
    segment=st.sampled_from([1, 100_003, MIB, 64 * MIB]),
)
def test_an_image_of_any_size(cluster: Cluster, size: int, known: bool, most: int | None, segment: int) -> None:
    data = IMAGE[:size]
    if segment == 1:
        # As many commands as there are pieces.
        data, most = data[: 30 * KIB], 10_007
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(sheepdog, "SEGMENT", segment)
        uri, written, checksum, multihash, _ = cluster.add(ImageFile(data, most), size=len(data) if known else 0)
    assert written == len(data)
    assert (checksum, multihash) == (hashlib.md5(data).hexdigest(), hashlib.sha512(data).hexdigest())
    assert cluster.read(uri) == data
    store = cluster.store()
    assert store.get_size(cluster.located(uri, store)) == len(data)


# --- what goes wrong


class Cancelled(BaseException):
    pass


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    "error",
    [OSError("no more data"), BrokenPipeError("of the source, not of the child"), Cancelled()],
    ids=["error", "broken pipe", "cancelled"],
)
def test_a_partial_image_is_deleted(
    cluster: Cluster, known: bool, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheepdog, "SEGMENT", MIB)

    def source() -> Iterator[bytes]:
        yield content(3 * MIB)
        assert cluster.exists("a"), "the test is of no use"
        raise error

    with pytest.raises(type(error)) as caught:
        cluster.add(source(), size=9 * MIB if known else 0, name="a")
    assert caught.value is error
    assert not cluster.exists("a")


OPERATIONS: dict[str, Callable[[Cluster, sheepdog.Store, Any], Any]] = {
    "get": lambda cluster, store, where: store.get(where),
    "get_size": lambda cluster, store, where: store.get_size(where),
    "read": lambda cluster, store, where: b"".join(store.get(where)[0]),
    "add": lambda cluster, store, where: cluster.add(IMAGE, store=store, name="b"),
    "add of unknown size": lambda cluster, store, where: cluster.add(IMAGE, size=0, store=store, name="b"),
    "delete": lambda cluster, store, where: store.delete(where),
}
ADDS = ("add", "add of unknown size")
UNREACHABLE = "no sheep daemon answers there: failed to connect to 127.0.0.1:7000: Connection refused"
UNFORMATTED = "the cluster is not formatted .*: Failed to .*: Waiting for cluster to be formatted"
UNREAD = "failed to read a response; Failed to read object 80.*; failed to read inode object"

#: A fault of the stand-in, the operations that meet it, the message, and what is left of their image: one that was
#: there has ``data``, and one that is added has nothing.
FAULTS: list[tuple[dict[str, Any], Any, str, bytes | None]] = [
    ({"daemon": "down"}, ("get", "get_size", "delete"), UNREACHABLE, b"data"),
    ({"daemon": "down"}, ADDS, UNREACHABLE, None),
    ({"daemon": "unformatted"}, ("get", "get_size", "delete"), UNFORMATTED, b"data"),
    ({"daemon": "unformatted"}, ADDS, UNFORMATTED, None),
    # An image that cannot be read is not missing.
    ({"cut": "inode"}, ("get", "get_size"), "Failed to read object 80", b"data"),
    # ``dog`` exits with 0 all the same.
    ({"cut": "inode"}, ["delete"], f"dog vdi delete of .* failed: .*{UNREAD}", b"data"),
    ({"cut": "discarded"}, ["delete"],
     "dog vdi delete of .* failed: .*Failed to write object .*; failed to update inode for discarding", b"\0\0\0\0"),
    ({"cut": "deleted"}, ["delete"], "dog vdi delete of .* failed: .*failed to read a response", None),
    ({"cut": "create"}, ADDS, "dog vdi create of .*: failed to read a response", None),
    ({"cut": "created"}, ADDS, "dog vdi create of .*: failed to read a response", None),
    ({"die_after": 0}, ADDS, "write of .* failed: the daemon has closed the connection", None),
    ({"die_after": 1}, ADDS, "write of .* failed: the daemon has closed the connection", None),
]  # fmt: skip


@stand_in_only
@pytest.mark.parametrize(
    ("fault", "operation", "message", "left"),
    [(fault, operation, message, left) for fault, met, message, left in FAULTS for operation in met],
)
def test_a_fault_of_the_cluster(
    cluster: Cluster, fault: dict[str, Any], operation: str, message: str, left: bytes | None
) -> None:
    store = cluster.store()
    where = cluster.located(cluster.add(b"data", store=store, name="a")[0], store)
    cluster.set(**fault)
    with pytest.raises(exceptions.BackendException, match=message):
        OPERATIONS[operation](cluster, store, where)
    cluster.set()
    image = dog.image_file(cluster.directory, "b" if operation in ADDS else "a")
    assert (image.read_bytes() if image.exists() else None) == left
    # The same again, with the cluster that is there now.
    with pytest.raises(exceptions.NotFound) if operation == "delete" and not left else contextlib.nullcontext():
        OPERATIONS[operation](cluster, store, where)
    assert cluster.exists("a") == (operation != "delete")
    assert operation not in ADDS or cluster.read(cluster.uri("b")) == IMAGE


@stand_in_only
@pytest.mark.parametrize("objects", [0, 1, 2])
def test_the_daemon_dies_while_an_image_is_read(cluster: Cluster, objects: int) -> None:
    uri = cluster.add(IMAGE)[0]
    cluster.set(die_after=objects)
    chunks, size = cluster.get(uri)
    received = []
    with pytest.raises(exceptions.BackendException, match="exit status 1: failed to read a response; Failed to read"):
        for chunk in chunks:
            received.append(chunk)  # chunks before the error are kept
    assert size == len(IMAGE)
    assert b"".join(received) == IMAGE[: objects * 4 * MIB]


@stand_in_only
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("size", [0, len(IMAGE) // 2, len(IMAGE)])
def test_an_image_of_another_client_whose_create_was_faster(cluster: Cluster, known: bool, size: int) -> None:
    """The daemon has never seen our ``create``, and theirs have the same name."""
    cluster.add(IMAGE[:size], name="a")
    cluster.set(cut="create")
    with pytest.raises(exceptions.BackendException, match="dog vdi create of"):
        cluster.add(IMAGE, size=len(IMAGE) if known else 0, name="a")
    cluster.set()
    assert dog.image_file(cluster.directory, "a").read_bytes() == IMAGE[:size]


@stand_in_only
def test_a_small_image_could_be_another_clients(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    cluster.set(cut="created")
    with pytest.raises(exceptions.BackendException, match="dog vdi create of"):
        cluster.add(b"data", name="a")
    cluster.set()
    assert cluster.exists("a")
    assert "image a at 127.0.0.1:7000 may be left behind: " in caplog.text
    assert "exists, and may be another client's" in caplog.text


@stand_in_only
@pytest.mark.parametrize("operation", ["get", "get_size"])
def test_an_image_that_can_be_read_again_after_the_list(
    cluster: Cluster, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the list it was not."""
    store = cluster.store()
    where = cluster.located(cluster.add(b"data", store=store, name="a")[0], store)
    cluster.set(cut="inode")
    run = _dog.Vdi._run

    def later(self: _dog.Vdi, command: str, *operands: str, **options: Any) -> Any:
        if command == "read":
            cluster.set()
        return run(self, command, *operands, **options)

    monkeypatch.setattr(_dog.Vdi, "_run", later)
    with pytest.raises(exceptions.BackendException, match="Failed to read object 80"):
        OPERATIONS[operation](cluster, store, where)


@stand_in_only
@pytest.mark.parametrize("error", [OSError("no more data"), Cancelled()], ids=["error", "cancelled"])
def test_a_write_that_is_given_up_leaves_no_object(
    cluster: Cluster, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``dog`` would if it was killed between an object and its entry in the image."""
    monkeypatch.setattr(sheepdog, "_PATIENCE", None)
    cluster.set(new_ms=500)

    def source() -> Iterator[bytes]:
        yield IMAGE[: 4 * MIB]
        until(lambda: dog.orphans(cluster.directory))
        raise error

    with pytest.raises(type(error)):
        cluster.add(source(), size=len(IMAGE), name="a")
    assert not cluster.exists("a")
    assert dog.orphans(cluster.directory) == []


def stops_meanwhile(cluster: Cluster, size: int) -> Iterator[bytes]:
    """Some bytes of an image whose daemon stops to answer before any are stored: ``dog`` takes one object."""
    yield IMAGE[:MIB]
    cluster.set(daemon="stopped")
    yield IMAGE[MIB:size]


@stand_in_only
def test_the_clean_up_is_given_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_dog, "_ENDING", 0.1)
    monkeypatch.setattr(_dog, "_DISCARDING", 0.1)
    cluster.set(hang_after=0)

    def source() -> Iterator[bytes]:
        yield from stops_meanwhile(cluster, 4 * MIB)
        raise ValueError("the first error")

    with pytest.raises(ValueError, match="the first error"):
        cluster.add(source(), size=len(IMAGE), name="a")
    assert "image a at 127.0.0.1:7000 may be left behind: dog vdi delete of" in caplog.text
    assert "it has not ended within 0.1 seconds" in caplog.text
    cluster.set()
    assert cluster.exists("a")


@stand_in_only
@pytest.mark.skipif(not MONKEY_PATCHED, reason="a thread cannot be interrupted")
@pytest.mark.parametrize("cleaning", [False, True])
def test_a_time_out_does_not_wait_for_the_clean_up(
    cluster: Cluster, cleaning: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It comes back to whoever has set it, and the clean-up that it begins, or comes in, goes on."""
    import eventlet

    monkeypatch.setattr(_dog, "_ENDING", 60)
    if not cleaning:
        monkeypatch.setattr(sheepdog, "_PATIENCE", 0.1)
    cluster.set(hang_after=0)
    timeout = eventlet.Timeout(0.5)

    def source() -> Iterator[bytes]:
        # The pipe takes less than the whole image, and so that waits for a command that never ends.
        yield from stops_meanwhile(cluster, 4 * MIB if cleaning else len(IMAGE))
        timeout.start()
        raise ValueError("the first error")

    if cleaning:
        timeout.cancel()
    with pytest.raises(eventlet.Timeout) as caught:
        cluster.add(source(), size=len(IMAGE), name="a")
    assert caught.value is timeout
    assert "image a at 127.0.0.1:7000 could not be stored" in caplog.text
    assert ("the first error" in caplog.text) == cleaning
    assert "may be left behind" not in caplog.text
    # The clean-up waits for the write that hangs.
    (writing,) = [pid for pid in pids() if b"write" in (pid / "cmdline").read_bytes()]
    cluster.set()
    os.kill(int(writing.name), signal.SIGKILL)
    until(lambda: not cluster.exists("a"))


@pytest.mark.skipif(bool(REAL), reason="there is a dog")
def test_a_missing_command_is_named(tmp_path: pathlib.Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    message = "neither dog nor collie, is in the path: install the package sheepdog"
    with pytest.raises(exceptions.BadStoreConfiguration, match=message):
        cluster.store()
    store = sheepdog.Store(cfg.ConfigOpts())
    store.conf([], default_config_files=[])
    store.configure()
    with pytest.raises(exceptions.StoreAddDisabled):
        store.add("a", io.BytesIO(), 0, "sha512")
    with pytest.raises(exceptions.BackendException, match=message):
        store.get(cluster.located("sheepdog://127.0.0.1:7000:a", store))


@stand_in_only
@pytest.mark.parametrize(
    "script", [None, "echo usage; exit 3", "echo vdi; exec sleep 1000"], ids=["none", "fails", "never ends"]
)
def test_collie_where_dog_is_another_program_or_none(
    cluster: Cluster, tmp_path: pathlib.Path, script: str | None
) -> None:
    """There is a DNS client of that name."""
    cluster.monkeypatch.setattr(_dog, "_HELP", 0.5)
    if script:
        fake(cluster.monkeypatch, tmp_path / "other", script, helpful=False)
    else:
        (cluster.directory / "bin" / "dog").unlink()
        cluster.monkeypatch.setenv("PATH", f"{cluster.directory / 'bin'}:/usr/bin:/bin")
    assert cluster.store()._program == str(cluster.directory / "bin" / "collie")
    assert cluster.read(cluster.add(b"data")[0]) == b"data"


@stand_in_only
def test_a_dog_that_has_gone(cluster: Cluster) -> None:
    store = cluster.store()
    for program in dog.PROGRAMS:
        (cluster.directory / "bin" / program).unlink()
    with pytest.raises(exceptions.BackendException, match="dog cannot be started: .*No such file"):
        cluster.add(b"data", store=store)


@stand_in_only
@pytest.mark.parametrize(
    ("script", "operation", "ends", "message"),
    [
        # sheepdog 0.5 to 0.8
        ("echo 'Failed to open VDI a (snapshot id: 0 snapshot tag: ): No VDI found' >&2; exit 5", "delete",
         exceptions.NotFound, "does not exist"),
        ("exit 5", "delete", exceptions.NotFound, "does not exist"),
        ("echo noise >&2", "delete", exceptions.BackendException, "dog vdi delete of .* failed: noise"),
        ("[ $2 != write ] || cat >/dev/null; echo noise >&2", "add", None, ""),
        ("exit 2", "delete", exceptions.BackendException, "dog vdi delete of .* failed: exit status 2"),
        # The first look-up breaks, or the whole of another image's inode; it is there.
        ("[ $2 = read ] || echo Failed to read inode >&2", "get_size", exceptions.BackendException,
         "dog vdi list -r of .* failed: Failed to read inode"),
        ("[ $2 = list ] && echo Failed to read inode >&2 && exit; echo No VDI found >&2; exit 1", "get_size",
         exceptions.NotFound, "does not exist"),
        ("exit 3", "add", exceptions.Duplicate, "exists already"),
        ("exit 4", "add", exceptions.StorageFull, "no space"),
        ("[ $2 = list ] && printf '= a 0 3 0 0 0 1 1  22\\n'; [ $2 != read ] || printf ab", "read",
         exceptions.BackendException, "a at .* is truncated: dog vdi read gave 2 of 3 bytes from 0 on"),
        ("[ $2 = list ] && printf '= a 0 3 0 0 0 1 1  22\\n'; [ $2 != read ] || kill -9 $$", "read",
         exceptions.BackendException, "failed: signal 9"),
        ("exit 0", "add", exceptions.BackendException, f"write to .* did not take all of {len(IMAGE)} bytes"),
        ("exit 77", "get_size", exceptions.BackendException, "dog vdi list -r of Sheepdog image a .*: exit status 77"),
        # Snapshots are passed over.
        *((f"[ $2 = list ] && printf '{listed}' && exit; echo 'Failed to open VDI a: No VDI found' >&2; exit 1",
           "get_size", ends, "does not exist") for listed, ends in (
               (r"s a 1 5 0 0 0 1 1 tag 22\n= a 0 7 0 0 0 1 1  22\n", 7),
               (r"s a 1 5 0 0 0 1 1 tag 22\ns a 2 5 0 0 0 1 1 tag 22\nc a 0 8 0 0 0 1 1  22\n", 8),
               (r"s a 1 5 0 0 0 1 1 tag 22\n", exceptions.NotFound),
           )),
    ],
)  # fmt: skip
def test_answers_of_dog_become_exceptions(
    cluster: Cluster, tmp_path: pathlib.Path, script: str, operation: str, ends: Any, message: str
) -> None:
    fake(cluster.monkeypatch, tmp_path / "fake", script)
    store = cluster.store()
    where = cluster.located(cluster.uri("a"), store)
    with pytest.raises(ends, match=message) if isinstance(ends, type) else contextlib.nullcontext():
        found = OPERATIONS[operation](cluster, store, where)
        assert ends in (None, found)


# --- consumers that go away, and many at once


@stand_in_only
@pytest.mark.skipif(not MONKEY_PATCHED, reason="a thread cannot be interrupted")
@pytest.mark.parametrize("operation", ["read", "add"])
def test_a_daemon_that_hangs_holds_up_no_other(
    cluster: Cluster, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import eventlet

    monkeypatch.setattr(_dog, "_ENDING", 0.1)
    uri = cluster.add(IMAGE)[0]
    cluster.set(hang_after=1)
    store = cluster.store()
    received: list[bytes] = []
    source = io.BytesIO(IMAGE)
    current = eventlet.getcurrent()

    def end_it() -> None:
        # The first object was moved, and the command stands at the second one, or is about to.
        while sum(map(len, received)) < 4 * MIB and source.tell() < 8 * MIB:
            eventlet.sleep(0.01)
        eventlet.sleep(0.2)
        eventlet.hubs.get_hub().schedule_call_global(0, current.throw, Cancelled())

    ending = eventlet.spawn(end_it)
    with pytest.raises(Cancelled):
        if operation == "read":
            for chunk in cluster.get(uri, store)[0]:
                received.append(chunk)  # end_it() looks how far it is
        else:
            cluster.add(source, size=len(IMAGE), store=store, name="a")
        ending.kill()
        raise AssertionError("the stand-in has not hung")
    until_all_have_ended()
    assert not cluster.exists("a")


def test_concurrent_images_do_not_mix(cluster: Cluster) -> None:
    images = {f"image-{number}": content(MIB * number + number) for number in range(6)}
    store = cluster.store()

    def life(name: str, data: bytes) -> None:
        uri = cluster.add(data, size=len(data) if len(data) % 2 else 0, store=store, name=name)[0]
        for _ in range(2):
            assert b"".join(cluster.get(uri, store)[0]) == data
        store.delete(cluster.located(uri, store))

    with ThreadPoolExecutor(len(images)) as pool:
        list(pool.map(life, *zip(*images.items(), strict=True)))


# --- names and locations


@pytest.mark.parametrize("name", ["with blanks", "tab\t", "back\\slash", "-r", "--", "ümläut", "x" * 255, "%20"])
def test_an_image_may_have_any_name(cluster: Cluster, name: str) -> None:
    data = content(1000)
    uri = cluster.add(data, name=name)[0]
    assert uri == cluster.uri(name)
    assert cluster.read(uri) == data
    store = cluster.store()
    store.delete(cluster.located(uri, store))
    assert not cluster.exists(name)


@pytest.mark.parametrize("name", ["", "x" * 256, "ü" * 128, "nul\0", "a:b:c"])
def test_names_that_can_not_be(cluster: Cluster, name: str) -> None:
    with pytest.raises(exceptions.BadStoreUri):
        cluster.add(b"data", name=name)


def parse(uri: str, store: Any = None) -> tuple[str, int, str]:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    conf.register_opts(sheepdog._OPTIONS, group="glance_store")
    parsed = sheepdog.StoreLocation({}, conf)
    parsed.parse_uri(uri)
    return parsed.addr, parsed.port, parsed.image


UUID = "a6c9a8a5-0f53-4b6c-8d5d-0f3a3d0f6e1a"


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        (f"sheepdog://192.0.2.1:7001:{UUID}", ("192.0.2.1", 7001, UUID)),
        (f"sheepdog://sheep.example.org:7000:{UUID}", ("sheep.example.org", 7000, UUID)),
        # before 2014
        (f"sheepdog://{UUID}", ("127.0.0.1", 7000, UUID)),
        # The old driver wrote such ones, and could not read them.
        (f"sheepdog://2001:db8::1:7000:{UUID}", ("2001:db8::1", 7000, UUID)),
        (f"sheepdog://::1:7000:{UUID}", ("::1", 7000, UUID)),
        (f"sheepdog://[::1]:7000:{UUID}", ("::1", 7000, UUID)),
    ],
)
def test_locations(uri: str, expected: tuple[str, int, str]) -> None:
    assert parse(uri) == expected


@pytest.mark.parametrize(
    "uri",
    [
        f"http://127.0.0.1:7000:{UUID}", f"sheepdog:/127.0.0.1:7000:{UUID}", "sheepdog://", "sheepdog://127.0.0.1:7000:",
        f"sheepdog://127.0.0.1:{UUID}", f"sheepdog://:7000:{UUID}", f"sheepdog://127.0.0.1::{UUID}",
        f"sheepdog://127.0.0.1:x:{UUID}", f"sheepdog://127.0.0.1:0:{UUID}", f"sheepdog://127.0.0.1:65536:{UUID}",
        f"sheepdog://127.0.0.1:7000:{UUID}\0",
    ],
)  # fmt: skip
def test_invalid_locations(uri: str) -> None:
    with pytest.raises(exceptions.BadStoreUri):
        parse(uri)


def test_a_location_says_which_cluster(cluster: Cluster) -> None:
    """Not the configuration, which may have changed since."""
    uri = cluster.add(b"data")[0]
    store = cluster.store(sheepdog_store_address="192.0.2.1", sheepdog_store_port=1)
    assert b"".join(cluster.get(uri, store)[0]) == b"data"
    name = uri.rpartition(":")[2]
    assert cluster.read(f"sheepdog://{name}") == b"data"


# --- as glance_store finds it


CONFIGURED = """
from oslo_config import cfg
import glance_store, sys
from glance_store import backend
conf = cfg.CONF
glance_store.register_opts(conf)
conf(["--config-file", sys.argv[1]])
glance_store.create_stores(conf)
store = backend.get_store_from_scheme("sheepdog")
print(store._options.sheepdog_store_address, store._options.sheepdog_store_port)
"""


def test_the_options_of_a_configuration_file(tmp_path: pathlib.Path, run_python: Any) -> None:
    """Of a single store; as one of several it is in ``test_contract.py``."""
    path = tmp_path / "glance-api.conf"
    path.write_text(
        "[glance_store]\nstores = sheepdog\ndefault_store = sheepdog\n"
        "sheepdog_store_address = 192.0.2.7\nsheepdog_store_port = 7077\n"
    )
    done = run_python(CONFIGURED, str(path), options=("-W", "ignore"))
    assert done.stdout == "192.0.2.7 7077\n", done.stderr
