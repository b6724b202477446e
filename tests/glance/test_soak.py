"""The soak finds what it is there to find."""

import contextlib
import http.client
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from benchmarks.backends.glance_api import Api
from benchmarks.backends.glance_service import RELEASES, Service
from benchmarks.tools.soak import GIVEN_AWAY, LASTING, SLOW_CLIENTS, Soak, _waits_for_the_log
from tests.benchmarks.test_soak_options import FLAT
from tests.conftest import MONKEY_PATCHED
from tests.eventually import until

pytestmark = pytest.mark.skipif(MONKEY_PATCHED, reason="the services are processes of their own")


@pytest.fixture(params=RELEASES)
def soak(request: pytest.FixtureRequest, serve: Callable[..., Service]) -> Iterator[Soak]:
    yield Soak(serve(request.param, fastio="on"), seed=5)


def test_every_operation_succeeds_and_damage_is_found(soak: Soak) -> None:
    chance = random.Random(7)
    for operation in (
        soak._upload, soak._chunked_upload, soak._upload, soak._download, soak._range, soak._slow_download,
        soak._abort_download, soak._abort_upload,
    ):  # fmt: skip
        soak._do(operation, chance)
    if soak._service.name == "glance-32":
        soak._do(soak._one_connection, chance)
    assert soak.tally.faults == []
    assert soak.tally.done["upload"] == 2
    images = [image for image in soak._images.values() if image.size]
    assert images
    for image in images:
        path = soak._service.images / image.identifier
        with open(path, "r+b") as file:
            file.seek(image.size // 2)
            (byte,) = file.read(1)
            file.seek(image.size // 2)
            file.write(bytes([byte ^ 1]))
    soak._verify_all()
    assert len(soak.tally.faults) == len(images)
    soak._images = {image.identifier: image for image in images}
    for image in images:
        with open(soak._service.images / image.identifier, "r+b") as file:
            file.truncate(image.size // 2)
    soak._do(soak._download, chance)
    soak._do(soak._slow_download, chance)
    assert len(soak.tally.faults) == len(images) + 2


@pytest.mark.parametrize("release", RELEASES)
def test_slow_clients_succeed_and_damage_is_found(serve: Callable[..., Service], release: str) -> None:
    soak = Soak(serve(release, fastio="on", also=SLOW_CLIENTS), seed=5, slow=2)
    soak.prepare()
    assert [image.size for image in soak._lasting] == list(LASTING)
    chance = random.Random(7)
    operations = (soak._slow_client, soak._slow_range, soak._fast_client, soak._slow_abort)
    for operation in operations:
        soak._do(operation, chance)
    assert soak.tally.faults == [] and set(soak.tally.done.values()) == {1} and len(soak.tally.done) == 4
    soak.tally.done.update(download=1, upload=1, reloads=1)
    soak.tally.samples = [FLAT] * 3
    if release == "glance-33":
        until(lambda: GIVEN_AWAY in soak._service.log(), "the line of the log")
    soak._judge()
    assert soak.tally.faults == []
    for image in soak._lasting:
        with open(soak._service.images / image.identifier, "r+b") as file:
            file.write(bytes([image.data[0] ^ 1]))
    soak._do(soak._slow_client, chance)
    soak._verify_all()
    # The image that was read, and all of them at the end.
    assert len(soak.tally.faults) == 1 + len(LASTING) and "between 0 and" in soak.tally.faults[0]
    for image in soak._lasting:
        with open(soak._service.images / image.identifier, "r+b") as file:
            file.write(image.data[:1])
            file.truncate(image.size // 2)
    soak._do(soak._slow_client, chance)
    assert len(soak.tally.faults) == 2 + len(LASTING)


def test_a_patch_that_does_nothing_is_found(serve: Callable[..., Service]) -> None:
    soak = Soak(serve("glance-33", fastio="on", disabled=SLOW_CLIENTS, also=SLOW_CLIENTS), seed=5, slow=1)
    soak.prepare()
    chance = random.Random(7)
    soak._do(soak._fast_client, chance)
    soak.tally.done.update(download=1, upload=1)
    soak.tally.samples = [FLAT] * 3
    soak._judge()
    assert soak.tally.faults == ["no slow client has had its image", f"{SLOW_CLIENTS} has sent nothing"]


@pytest.mark.parametrize("killed", [False, True], ids=["by itself", "with the log's lock"])
def test_who_hangs_as_it_ends(serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch, killed: bool) -> None:
    """A worker that is killed while it writes a line of the log has upstream's first process wait for ever."""
    monkeypatch.setattr("benchmarks.tools.soak.ENDING", 3.0)
    service = serve("glance-32", fastio="on", workers=2, environment={"PYTHONFAULTHANDLER": "1"})
    soak = Soak(service, seed=5)
    if killed:
        stop_while_it_logs(service)
    else:
        monkeypatch.setattr(service, "signal", lambda number: None)
    soak._end_and_start()
    assert soak.tally.done["ends by force"] == 1
    assert len(soak.tally.faults) == (not killed)
    assert soak._api.ask("GET", "/healthcheck").status == 200


def stop_while_it_logs(service: Service) -> None:
    """Kill the workers when one of them has the lock."""
    over = threading.Event()

    def ask() -> None:
        # Who was killed does not answer.
        api = Api(service.http_port, timeout=2)
        while not over.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                api.ask("GET", "/v2/images/none")

    workers = service.workers()
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        deadline = time.monotonic() + 60
        while True:
            signal_all(workers, signal.SIGSTOP)
            time.sleep(0.002)
            if _waits_for_the_log(workers[0]):
                break
            assert time.monotonic() < deadline
            signal_all(workers, signal.SIGCONT)
            time.sleep(0.003)
        signal_all(workers, signal.SIGKILL)
    finally:
        over.set()
        for thread in threads:
            thread.join()


def signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, number)
