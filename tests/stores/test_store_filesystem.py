"""glance_store's filesystem driver: patched and unpatched side by side."""

import errno
import io
import itertools
import mmap
import os
import pathlib
import platform
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("glance_store")

import fastio
from fastio import counters
from fastio.concurrency.budget import Budget
from fastio.concurrency.pace import SHARE
from fastio.io import image_files, libc
from fastio.io.image_files import SMALL
from fastio.patches.glance_store import _stores, store_filesystem
from tests import fuse
from tests.conftest import needs_eventlet
from tests.glance.faults import small_file_system
from tests.stores.images import KIB, MIB, ImageFile, Ticker

CHUNK = 16 * KIB
#: Size of a file's write buffer. It is 128 KiB by default from Python 3.14 on.
BUFFER = 8 * KIB
NAMES = ("store_filesystem", "image_fairness", "image_hashing")


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, OSError], None]:
    """``fail(after, error)``: the files that the driver opens from now on fail after so many writes."""
    from glance_store._drivers import filesystem

    def fail(after: int, error: OSError) -> None:
        left = [None] * after

        class Raw(io.FileIO):
            def write(self, data: Any) -> Any:
                if not left:
                    raise error
                left.pop()
                return super().write(data)

        monkeypatch.setattr(
            filesystem, "open", lambda path, mode: io.BufferedWriter(Raw(path, mode), BUFFER), raising=False
        )

    return fail


def path_of(url: str) -> pathlib.Path:
    return pathlib.Path(url.removeprefix("file://"))


@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("code", ["ENOSPC", "EFBIG", "EACCES", "EIO"])
def test_errors_of_the_file_system(
    filesystem_store: Any, fail: Callable[[int, OSError], None], code: str, after: int
) -> None:
    """The exception and whether the partial file goes are upstream's, chunk for chunk."""
    partial = pathlib.Path(filesystem_store.driver.datadir, "partial")
    data = os.urandom(5 * CHUNK)

    def failing() -> Any:
        fail(after, OSError(getattr(errno, code), os.strerror(getattr(errno, code))))
        with pytest.raises(Exception) as caught:  # noqa: B017 - whatever upstream raises
            filesystem_store.add(data, image_id="partial")
        left = partial.exists()
        partial.unlink(missing_ok=True)
        return type(caught.value), str(caught.value), left

    with fastio.patched((), strict=True):
        filesystem_store.driver.READ_CHUNKSIZE = filesystem_store.driver.WRITE_CHUNKSIZE = CHUNK
        stock = failing()
    with fastio.patched(NAMES, strict=True, store_chunk_sizes={"filesystem": CHUNK}):
        assert failing() == stock


def test_several_directories(tmp_path: pathlib.Path) -> None:
    from glance_store._drivers import filesystem
    from oslo_config import cfg

    directories = [tmp_path / "low", tmp_path / "high"]
    conf = cfg.ConfigOpts()
    conf([])
    driver = filesystem.Store(conf)
    conf.set_override("filesystem_store_datadir", None, group="glance_store")
    conf.set_override(
        "filesystem_store_datadirs", [f"{directories[0]}:10", f"{directories[1]}:20"], group="glance_store"
    )
    driver.configure()
    data = os.urandom(3 * CHUNK + 1)
    with fastio.patched(NAMES, strict=True):
        # One store alone, whose options are in glance_store's own group.
        assert (driver.READ_CHUNKSIZE, driver.WRITE_CHUNKSIZE) == (store_filesystem.CHUNK,) * 2
        url, size, *_ = driver.add("image", io.BytesIO(data), len(data), "sha256")
    assert size == len(data)
    assert path_of(url) == directories[1] / "image"
    assert path_of(url).read_bytes() == data
    assert driver.READ_CHUNKSIZE == 64 * KIB


@pytest.fixture
def thin_store(open_store: Any) -> Any:
    return open_store("filesystem", filesystem_thin_provisioning=True)


@settings(max_examples=30)
@given(parts=st.lists(st.tuples(st.booleans(), st.integers(1, 5 * 64 * KIB)), max_size=6), known=st.booleans())
@example(parts=[(True, 5 * 64 * KIB)], known=True)
@example(parts=[(True, 64 * KIB + 1), (False, 1), (True, 3 * 64 * KIB)], known=False)
def test_thin_provisioning(thin_store: Any, parts: list[tuple[bool, int]], known: bool) -> None:
    """The same bytes and size as with upstream's chunk of 64 KiB, and no more of the disk."""
    data = b"".join(bytes(length) if hole else b"\1" * length for hole, length in parts)
    size = len(data) if known else 0
    paths = [path_of(thin_store.add(ImageFile(data), size=size).url)]
    with fastio.patched(NAMES, strict=True):
        assert thin_store.driver.WRITE_CHUNKSIZE == MIB
        paths.append(path_of(thin_store.add(ImageFile(data), size=size).url))
    stock, patched = (path.stat() for path in paths)
    assert paths[1].read_bytes() == data
    assert patched.st_size == stock.st_size == len(data)
    # ext4 may give a large write a few more blocks than are in use.
    assert patched.st_blocks * 512 <= stock.st_blocks * 512 + 64 * KIB
    for path in paths:
        path.unlink()


# --- Under eventlet


def knows_nowait(path: pathlib.Path) -> bool:
    with open(path, "rb") as file:
        try:
            os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
        except (OSError, AttributeError):
            return False
    return True


def forget(path: pathlib.Path) -> None:
    """Take the file out of the page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@needs_eventlet
def test_cold_data_is_read_in_a_thread(open_store: Any, tmp_path: pathlib.Path, offloads: list[str]) -> None:
    store = open_store("filesystem", filesystem_store_datadir=str(tmp_path / "images"))
    data = os.urandom(8 * MIB)
    path = path_of(store.add(data).url)
    if not knows_nowait(path):
        pytest.skip("the file system of the temporary directory does not know RWF_NOWAIT")

    def read_warm() -> bool:
        """Whether the file can be read without a thread; the kernel may say "not now" even of what is in memory."""
        for _ in range(20):
            offloads.clear()
            assert store.read(f"file://{path}") == data
            if offloads.count("pread64") == 0:
                return True
        return False

    with fastio.patched("store_filesystem", strict=True, store_chunk_sizes={"filesystem": "64KiB"}):
        assert read_warm()
        forget(path)
        assert store.read(f"file://{path}") == data
        assert offloads.count("pread64") > 0
        assert read_warm()


@needs_eventlet
def test_more_than_a_turn_is_read_in_several(filesystem_store: Any) -> None:
    data = os.urandom(4 * CHUNK)
    url = filesystem_store.add(data).url
    sizes: dict[str, Any] = {"yield_bytes": CHUNK, "store_chunk_sizes": {"filesystem": 2 * CHUNK}}
    with fastio.patched("store_filesystem", strict=True, **sizes), Ticker() as ticker:
        chunks = list(filesystem_store.get(url)[0])
    assert [len(chunk) for chunk in chunks] == [2 * CHUNK, 2 * CHUNK]
    assert b"".join(chunks) == data
    # Others had their turn between any two of the four.
    assert ticker.ticks >= 3


@needs_eventlet
@pytest.mark.parametrize(("many", "share"), [(2, 2 * MIB), (8, MIB)])
def test_with_many_each_reads_its_share(filesystem_store: Any, standing_budget: Budget, many: int, share: int) -> None:
    data = os.urandom(8 * MIB)
    url = filesystem_store.add(data).url
    others = [object() for _ in range(many - 1)]
    sizes: dict[str, Any] = {"yield_bytes": 4 * MIB, "store_chunk_sizes": {"*": 4 * MIB}}
    with fastio.patched("store_filesystem", strict=True, **sizes):
        for other in others:
            standing_budget.enter(other)
        chunks = list(filesystem_store.get(url)[0])
        assert {len(chunk) for chunk in chunks} == {share}
        assert b"".join(chunks) == data


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries keep freed memory otherwise")
def test_chunks_of_concurrent_reads_come_from_memory_that_the_process_has(
    run_python: Any, tmp_path: pathlib.Path
) -> None:
    """As of :mod:`fastio.io.hashing`, whose test has the reason."""
    path = tmp_path / "image"
    path.write_bytes(b"data")
    code = f"""
        import resource
        import fastio
        from glance_store._drivers.filesystem import ChunkedFile
        fastio.patch("store_filesystem", strict=True)
        ChunkedFile({str(path)!r}).close()
        def several():
            chunks = [bytes(bytearray(1 << 20)) for _ in range(20)]
        several()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(5):
            several()
        print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 256)
        """
    assert int(run_python(code).stdout) < 20


@needs_eventlet
def test_writes_leave_the_hub(filesystem_store: Any, offloads: list[str]) -> None:
    data = os.urandom(8 * MIB)
    with fastio.patched("store_filesystem", strict=True):
        url = filesystem_store.add(data).url
    assert offloads.count("write") == 8
    assert path_of(url).read_bytes() == data


@needs_eventlet
def test_closing_early(filesystem_store: Any) -> None:
    url = filesystem_store.add(os.urandom(5 * CHUNK)).url
    with fastio.patched(NAMES, strict=True, store_chunk_sizes={"filesystem": CHUNK}):
        image, _ = filesystem_store.get(url)
        file = image.fp
        iterator = iter(image)
        next(iterator)
        iterator.close()
        assert file.closed and image.fp is None
        unread, _ = filesystem_store.get(url)
        unread.close()
        assert unread.fp is None


@needs_eventlet
def test_other_files_stay_themselves(tmp_path: pathlib.Path) -> None:
    import eventlet

    eventlet.sleep(0)
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as pipe, os.fdopen(writer, "wb"):
        assert image_files.wrap(pipe) is pipe
    memory = io.BytesIO(b"data")
    assert image_files.wrap(memory) is memory
    closed = open(tmp_path / "file", "wb")  # noqa: SIM115
    closed.close()
    assert image_files.wrap(closed) is closed


def test_the_configuration_is_asked_once_for_each_size_that_is_assigned(
    filesystem_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes longer than to open a file."""
    asked = []
    chosen = _stores.chosen_by_operator

    def ask(store: Any, option: _stores.Option) -> bool:
        asked.append(option)
        return chosen(store, option)

    monkeypatch.setattr(_stores, "chosen_by_operator", ask)
    driver = filesystem_store.driver
    with fastio.patched("store_filesystem", strict=True):
        assert driver.READ_CHUNKSIZE == driver.READ_CHUNKSIZE == store_filesystem.CHUNK
        assert len(asked) == 1
        driver.conf.set_override("filesystem_store_chunk_size", CHUNK, group=driver.backend_group)
        driver.configure_add()
        assert driver.READ_CHUNKSIZE == driver.READ_CHUNKSIZE == CHUNK
        assert len(asked) == 2


@needs_eventlet
@pytest.mark.parametrize(
    ("size", "there", "whole", "itself"),
    [
        (1, True, True, True),
        (SHARE, True, True, True),
        (SHARE + 1, True, True, False),
        (SHARE, False, True, False),
        (SHARE, True, False, False),
    ],
)
def test_a_small_file_in_memory_is_read_like_upstream(
    tmp_path: pathlib.Path, size: int, there: bool, whole: bool, itself: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import eventlet

    eventlet.sleep(0)
    monkeypatch.setattr(image_files.InMemory, "has", lambda *_: there)
    path = tmp_path / "file"
    path.write_bytes(bytes(size))
    with path.open("rb") as file:
        assert (image_files.wrap(file, whole=whole) is file) == itself


@needs_eventlet
@pytest.mark.parametrize(("size", "told", "stands_in"), [
    (SMALL, SMALL, False), (SMALL + 1, SMALL + 1, True), (SMALL, 0, True),
])  # fmt: skip
def test_only_an_image_that_is_known_to_be_small_is_written_by_the_file_itself(
    filesystem_store: Any, size: int, told: int, stands_in: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import eventlet

    eventlet.sleep(0)
    wrapped = []

    def wrap(file: Any, counts: counters.Tally) -> Any:
        wrapped.append(file)
        return file

    monkeypatch.setattr(image_files, "wrap", wrap)
    data = os.urandom(size)
    with fastio.patched("store_filesystem", strict=True):
        added = filesystem_store.driver.add(str(uuid.uuid4()), io.BytesIO(data), told, "sha512")
    assert path_of(added[0]).read_bytes() == data
    assert bool(wrapped) == stands_in


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_file_systems_in_memory(tmp_path: pathlib.Path, kind: str) -> None:
    make: Any = small_file_system if kind == "memory" else lambda path, _: fuse.mounted(path)
    try:
        with make(tmp_path / kind, MIB) as mounted:
            path = pathlib.Path(mounted if kind == "memory" else mounted.directory, "file")
            path.write_bytes(b"data")
            with path.open("rb") as file:
                assert image_files._in_memory(file.fileno()) is (kind == "memory")
                assert image_files.InMemory(file.fileno()).has(0, 4) is (kind == "memory")
    except OSError as error:
        pytest.skip(str(error))


# --- What is in memory


#: The first bytes of three pages, the last ones before them, and those beside.
EDGES = [page * mmap.PAGESIZE + beside for page in range(4) for beside in (-1, 0, 1) if page or beside >= 0]


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("missing", [set(), {0}, {1}, {2}, {3}, {0, 2}], ids=str)
@pytest.mark.parametrize("size", [3 * mmap.PAGESIZE, 3 * mmap.PAGESIZE + 1, 4 * mmap.PAGESIZE, 4 * mmap.PAGESIZE - 1])
def test_every_page_of_a_range_is_looked_at(
    tmp_path: pathlib.Path, size: int, missing: set[int], counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which pages the kernel keeps is not in a test's hands, so what it would tell of them is made up here."""
    path = tmp_path / "file"
    path.write_bytes(bytes(size))

    def preadv(fd: int, buffers: Any, offset: int, flags: int) -> int:
        if offset // mmap.PAGESIZE in missing:
            raise BlockingIOError(errno.EAGAIN, "not now")
        return 1

    def missing_pages(fd: int, start: int, end: int) -> int | None:
        return len(missing & set(range(start // mmap.PAGESIZE, -(-end // mmap.PAGESIZE)))) if counts else None

    monkeypatch.setattr(os, "preadv", preadv)
    monkeypatch.setattr(libc, "missing_pages", missing_pages)
    monkeypatch.setattr(image_files, "_PROBED", mmap.PAGESIZE)
    monkeypatch.setattr(image_files, "_in_memory", lambda fileno: False)
    with path.open("rb") as file:
        for start, end in itertools.product(EDGES, [*EDGES, size - 1, size, size + 1, size + mmap.PAGESIZE]):
            last = min(end, size) - 1
            wanted = set(range(start // mmap.PAGESIZE, last // mmap.PAGESIZE + 1)) if start <= last else set()
            has = image_files.InMemory(file.fileno()).has(start, end)
            assert has == (not wanted & missing), (start, end)


@pytest.mark.parametrize(
    ("error", "given_up"),
    [
        (OSError(errno.EIO, "a block that cannot be read"), False),
        (OSError(errno.EOPNOTSUPP, "not on this file system"), True),
        (OSError(errno.EPERM, "a filter"), True),
        (NotImplementedError("not in this C library"), True),
    ],
    ids=repr,
)
def test_only_a_call_that_is_refused_is_not_made_again(
    tmp_path: pathlib.Path, error: Exception, given_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(MIB))
    asked = []

    def preadv(fd: int, buffers: Any, offset: int, flags: int) -> int:
        asked.append(offset)
        if offset < 4096:
            raise error
        return 1

    monkeypatch.setattr(os, "preadv", preadv)
    monkeypatch.setattr(libc, "missing_pages", lambda fd, start, end: 0)
    monkeypatch.setattr(image_files, "_in_memory", lambda fileno: False)
    with path.open("rb") as file:
        memory = image_files.InMemory(file.fileno())
        # The read itself, which is not made in the hub then, reports the error.
        assert not memory.has(0, 4096)
        assert memory.has(4096, 8192) != given_up
    assert asked == ([0] if given_up else [0, 4095, 8191])


def test_the_kernel_counts_pages(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(MIB))
    with path.open("rb") as file:
        os.fsync(file.fileno())
        file.read()
        found = libc.missing_pages(file.fileno(), 0, MIB)
        if found is None:
            pytest.skip("the kernel does not count pages (Linux 6.5)")
        assert found == libc.missing_pages(file.fileno(), 1, MIB - 1) == 0
        # Beyond the end there are none.
        assert libc.missing_pages(file.fileno(), 0, MIB + 1) == 1
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if image_files._in_memory(file.fileno()):
            pytest.skip("the temporary directory is in memory")
        assert libc.missing_pages(file.fileno(), 0, MIB) == MIB // mmap.PAGESIZE
