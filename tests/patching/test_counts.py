"""The counts of each patch: the calls that it took, their bytes, and why it left others to upstream's code."""

import array
import contextlib
import copy
import os
import pickle
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import fastio
from fastio import counters
from fastio.counters import Reason
from fastio.patching import registry
from tests.conftest import MONKEY_PATCHED, hide_hub
from tests.forked import told_by_a_fork
from tests.targets import can_be_applied, import_targets

SIZE = 300_000
CHUNK = 1 << 20
CAT = [sys.executable, "-ISc", "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"]


def green() -> Any:
    return pytest.importorskip("eventlet.green.subprocess")


def communicated(module: Any) -> tuple[int, int]:
    child = module.Popen(CAT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert len(child.communicate(b"x" * SIZE)[0]) == SIZE
    return 1, 2 * SIZE


def waited(module: Any, method: str = "wait") -> tuple[int, int]:
    # It cannot end before it is waited for, as one that sleeps might: then there would be nothing to wait for.
    child = module.Popen(["cat"], stdin=subprocess.PIPE)
    with pytest.raises(Exception, match="timed out"):
        getattr(child, method)(0.05)
    child.stdin.close()
    # Not by wait(), whose calls are counted.
    _, status = os.waitpid(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    # Nothing to wait for any more.
    assert child.wait(20) == 0
    return 1, 0


def waited_without_poll() -> tuple[int, int]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.delattr(select, "poll", raising=False)
        # wait() of the green Popen is eventlet's own. Its communicate() comes here after Ctrl-C.
        return waited(subprocess, "_wait")


def pipe() -> Any:
    from eventlet.greenio.py3 import GreenFileIO

    reader, writer = os.pipe()
    return GreenFileIO(reader, "r"), GreenFileIO(writer, "w")


def piped() -> tuple[int, int]:
    reader, writer = pipe()
    with reader:
        with writer:
            writer.write(b"x" * 1000)
        assert len(reader.read(100)) == 100
        assert reader.readinto(bytearray(200)) == 200
        assert len(reader.readall()) == 700
    return 4, 2000


def sent() -> tuple[int, int]:
    from eventlet.greenio.base import GreenSocket

    with contextlib.ExitStack() as stack:
        near, far = (stack.enter_context(contextlib.closing(each)) for each in socket.socketpair())
        sender = near if MONKEY_PATCHED else GreenSocket(near)
        sender.sendall(b"x" * 1000)
        assert len(far.recv(2000)) == 1000
    return 1, 1000


def broken_pipe() -> tuple[int, int]:
    from eventlet.green import os as green_os

    reader, writer = os.pipe()
    os.close(reader)
    os.set_blocking(writer, False)
    with pytest.raises(BrokenPipeError):
        green_os.write(writer, b"x")
    os.close(writer)
    return 1, 0


def pipeline() -> tuple[int, int]:
    module = green()
    with module.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        second = module.Popen(CAT, stdin=first.stdout, stdout=subprocess.PIPE)
        first.stdin.write(b"x")
        first.stdin.close()
        assert second.communicate()[0] == b"x"
    return 1, 0


def run_green(**arguments: Any) -> Callable[[], tuple[int, int]]:
    def scenario() -> tuple[int, int]:
        assert green().Popen(["echo", "x"], stdout=subprocess.PIPE, **arguments).communicate()[0].strip() in ("x", b"x")
        return 1, 0

    return scenario


def checked() -> tuple[int, int]:
    assert green().check_output(["echo", "x"]) == b"x\n"
    return 1, 0


def spawned() -> tuple[int, int]:
    processutils = pytest.importorskip("oslo_concurrency.processutils")
    processutils.execute("true")
    processutils.execute("true", preexec_fn=lambda: None)
    assert counters.of("oslo_spawn").fallbacks[Reason.PREEXEC_FN] == 1
    return 1, 0


def hashed() -> tuple[int, int]:
    from glance_store.common import utils

    hasher = utils.get_hasher("sha512", False)
    for _ in range(3):
        hasher.update(b"x" * CHUNK)
    hasher.update(b"x")
    hasher.hexdigest()
    assert counters.of("image_hashing").fallbacks[Reason.SMALL] == 1
    return 1, 3 * CHUNK


def verified() -> tuple[int, int]:
    import hashlib

    from glanceclient.common import utils

    data = b"x" * CHUNK
    digest = hashlib.sha512(data).hexdigest()
    assert list(utils.serious_integrity_iter(iter([data]), hashlib.sha512(), digest)) == [data]
    return 1, CHUNK


def verified_by_openstacksdk() -> tuple[int, int]:
    import hashlib

    from openstack.image import _download

    data = b"x" * CHUNK
    digest = hashlib.sha512(data).hexdigest()
    assert list(_download._integrity_iter(iter([data]), hashlib.sha512(), digest, "sha512")) == [data]
    return 1, CHUNK


SCENARIOS: dict[str, Callable[[], tuple[int, int]]] = {
    "communicate": lambda: communicated(subprocess),
    "fix_green_encoding": run_green(encoding="latin-1"),
    "fix_green_epipe": broken_pipe,
    "fix_green_exceptions": checked,
    "fix_green_pipelines": pipeline,
    "fix_wait_poll": waited_without_poll,
    "glanceclient_hashing": verified,
    "green_communicate": lambda: communicated(green()),
    "green_pipe": piped,
    "green_sendall": sent,
    "green_wait": lambda: waited(green()),
    "image_hashing": hashed,
    "openstacksdk_hashing": verified_by_openstacksdk,
    "oslo_spawn": spawned,
    "wait": lambda: waited(subprocess),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_calls_and_bytes(name: str) -> None:
    if MONKEY_PATCHED and name in ("communicate", "wait", "oslo_spawn"):
        pytest.skip("under eventlet's monkey patch it is the green one that is called")
    import_targets()
    patch = next(patch for patch in registry.patches() if patch.name == name)
    if not any(can_be_applied(patch, target) for target in patch.targets):
        pytest.skip(f"nothing that {name} works on is here")
    hide_hub()
    with fastio.patched(name, strict=True, also=(), store_chunk_sizes={"*": "64KiB"}):
        counters.reset()
        expected = SCENARIOS[name]()
        found = fastio.metrics().patches[name]
    assert (found.calls, found.bytes) == expected


def test_why_a_call_is_left_to_upstream() -> None:
    if MONKEY_PATCHED:
        pytest.skip("the native Popen is not used")
    with fastio.patched("communicate", also=()):
        counters.reset()
        subprocess.Popen(CAT, stdin=subprocess.PIPE, stdout=subprocess.PIPE).communicate(array.array("I", [1]))  # type: ignore[arg-type]
        subprocess.Popen(["true"]).wait(20)
    assert fastio.metrics().patches["communicate"].fallbacks == {"input": 1}
    assert fastio.metrics().patches["communicate"].calls == 0


def test_the_reasons_are_a_closed_set() -> None:
    assert len(set(counters.CAUSES)) == len({cause.meaning for cause in counters.CAUSES}) == len(counters.CAUSES) > 0
    for cause in counters.CAUSES:
        assert cause.isidentifier() and cause.meaning and getattr(Reason, cause.upper()) is cause
        assert copy.deepcopy(cause) is pickle.loads(pickle.dumps(cause)) is cause


@pytest.fixture
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_counts_are_exact_with_threads(quick_switches: None) -> None:
    tally = counters.Tally("test")

    def count(_: int) -> None:
        for _ in range(20_000):
            tally.took()
            tally.moved(3)
            tally.fell_back(Reason.HUB)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    assert (tally.calls, tally.bytes, tally.fallbacks[Reason.HUB]) == (160_000, 480_000, 160_000)


@pytest.mark.filterwarnings("ignore:Using fork", "ignore:.*multi-threaded, use of fork")
def test_a_forked_child_counts_from_zero() -> None:
    counters.of("wait").took()
    counters.of("wait").moved(5)
    counters.io.reads += 1

    def child() -> tuple[Any, ...]:
        found = fastio.metrics()
        return found.pid == os.getpid(), found.patches["wait"].calls, found.patches["wait"].bytes, found.io["reads"]

    assert told_by_a_fork(child) == [True, 0, 0, 0]
    assert fastio.metrics().patches["wait"].calls == 1
