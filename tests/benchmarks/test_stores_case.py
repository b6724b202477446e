"""The stores' benchmarks on real backends, at a small size, as the engine runs them; they notice what is wrong."""

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("glance_store", reason="the stores' benchmarks need glance_store")

from benchmarks.harness import servers, worker
from benchmarks.suites.stores import references
from tests.benchmarks.running import needs, started, work
from tests.conftest import with_services

pytestmark = [with_services, pytest.mark.usefixtures("cache")]

#: Divides nothing.
SIZE = 300_001

Start = Callable[..., "subprocess.CompletedProcess[str]"]
Moves = Callable[..., dict[str, Any]]


# --- runs by hand, beside a running filesystem backend


@pytest.fixture
def told(tmp_path: Path) -> Iterator[dict[str, Any]]:
    needs("filesystem")
    with servers.running("filesystem", {}, tmp_path) as told:
        yield told


@pytest.fixture
def start(told: Mapping[str, Any]) -> Start:
    def start(variant: str, task: str, *, prepared: Any = None, size: int = SIZE, **environ: str) -> Any:
        return started("stores", variant, {"task": task, "size": size}, {**told, "prepared": prepared}, **environ)

    return start


@pytest.fixture
def moves(told: Mapping[str, Any]) -> Moves:
    def moves(variant: str, task: str, *, prepared: Any = None, size: int = SIZE) -> dict[str, Any]:
        return work("stores", variant, {"task": task, "size": size}, {**told, "prepared": prepared})

    return moves


# That all of them verify what is right is seen in test_every_variant().


def test_an_image_that_is_not_right(moves: Moves) -> None:
    prepared = moves("prepare", "get")
    image = Path(prepared["images"][str(SIZE)].removeprefix("file://"))
    content = bytearray(image.read_bytes())
    content[-1] ^= 1
    image.write_bytes(content)
    for variant in ("native-stock", "native-fastio", "reference"):
        assert moves(variant, "get", prepared=prepared)["verified"] is False, variant


def test_digests_that_are_not_right(moves: Moves, cache: Path) -> None:
    size = SIZE + 1
    worker.digests(worker.random_payload(size))
    kept = cache / f"random-{size}-0.digests"
    before = kept.read_text()
    kept.write_text(before[:-1] + ("0" if before[-1] != "0" else "1"))
    for variant in ("native-stock", "native-fastio", "limit-sha512"):
        assert moves(variant, "add", size=size)["verified"] is False, variant


def test_an_image_that_is_stored_wrong(moves: Moves, cache: Path) -> None:
    """Its digests are right, so only what is read back can tell."""
    size = SIZE + 2
    payload = worker.random_payload(size)
    worker.digests(payload)
    for kept in (cache / f"random-{size}-0.sha256", cache / f"random-{size}-0.digests"):
        kept.write_text(kept.read_text().replace(payload.sha256, "0" * 64))
    assert moves("native-stock", "add", size=size)["verified"] is False


def test_a_fast_row_that_is_not_patched_fails(start: Start) -> None:
    done = start("native-fastio", "add", FASTIO="0")
    assert done.returncode != 0
    assert "fastio's patches are not all in effect for glance_store._drivers.filesystem" in done.stderr


@pytest.mark.parametrize(("variant", "task"), [("native-stock", "put"), ("limit-sha512", "get"), ("reference", "add")])
def test_a_task_that_can_not_be(start: Start, variant: str, task: str) -> None:
    done = start(variant, task)
    assert done.returncode != 0
    assert f"parameter task {task!r}: allowed are " in done.stderr


# --- the suites


def test_a_reference_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "find_program", lambda name: None)
    assert references.why_not("swift").startswith("curl is not installed; install it with: apt-get install")
