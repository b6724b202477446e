"""The benchmark of slow clients: with little data, what its clients notice, and what is asked of the figures."""

import dataclasses
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import slow_clients
from benchmarks.harness.slow_clients import Clients, Plan
from benchmarks.suites.glance.bench_glance import ELSEWHERE
from tests.eventually import until
from tests.stores.http_server import Answer, Request, Server, serving

#: Divides nothing.
CONTENT = os.urandom(1_300_001)


# --- the clients


class Service:
    """Has an image, and takes others."""

    def __init__(self) -> None:
        self.body, self.length, self.status = CONTENT, len(CONTENT), "200 OK"

    def answer(self, request: Request) -> Answer:
        if request.method == "GET":
            return Answer(self.status, {"Content-Length": str(self.length)}, self.body, breaks_off=len(self.body))
        return Answer("204 No Content" if self.status == "200 OK" else self.status)


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def server(service: Service) -> Iterator[Server]:
    with serving(service.answer) as running:
        yield running


@pytest.fixture
def plan(server: Server, tmp_path: Path) -> Plan:
    file = tmp_path / "image"
    file.write_bytes(CONTENT)
    return Plan(server.port, "/image", str(file), clients=3, rate=1e9, ramp=0)


def test_clients_read_one_image_after_the_other(server: Server, plan: Plan) -> None:
    with Clients(dataclasses.replace(plan, source=ELSEWHERE)) as running:
        running.wait()
        # A client asks again when a download has ended.
        count = len(server.requests)
        until(lambda: len(server.requests) > count + 2 * plan.clients, "further downloads")
        figures = running.stop()
    assert set(server.clients) == {ELSEWHERE}
    assert 2 <= figures["ended"] <= len(server.requests)
    assert figures["bytes"] >= (figures["ended"] - plan.clients) * len(CONTENT)
    assert 1 <= figures["served"] <= plan.clients


def test_clients_keep_to_their_rate(plan: Plan) -> None:
    """With a byte a second, the first piece is all that they read for the next hours."""
    with Clients(dataclasses.replace(plan, rate=1)) as running:
        # If they read on, they do so now.
        time.sleep(0.3)
        figures = running.stop()
    assert figures["bytes"] <= plan.clients * slow_clients.PIECE < len(CONTENT)
    assert figures["ended"] == 0


#: Other content of the same length.
OTHER = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])


@pytest.mark.parametrize(
    ("damaged", "named"),
    [
        ({"body": OTHER}, "other bytes than those of the image"),
        ({"body": CONTENT[:-1]}, "a body ended after 1300000 of 1300001 bytes"),
        ({"length": len(CONTENT) - 1}, "a body ended after 1300000 of 1300001 bytes"),
        ({"status": "503 Busy"}, "503"),
    ],
)
def test_wrong_answers_are_noticed(
    service: Service, plan: Plan, damaged: dict[str, Any], named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    vars(service).update(damaged)
    with pytest.raises(RuntimeError, match="a slow client failed"), Clients(plan) as running:
        running.wait()
    assert named in capfd.readouterr().err


def test_later_errors_are_noticed(service: Service, server: Server, plan: Plan) -> None:
    with Clients(plan) as running:
        running.wait()
        service.body = OTHER
        count = len(server.requests)
        # Each client has had the other content, so at least one has failed and ended the process.
        until(lambda: len(server.requests) > count + plan.clients or running.process.poll() is not None, "its end")
        until(lambda: running.process.poll() is not None, "the end of the process")
        with pytest.raises(RuntimeError, match="a slow client failed"):
            running.stop()


@pytest.fixture
def uploads(plan: Plan) -> Plan:
    images = [f"image-{number}" for number in range(7)]
    return Plan(**{**dataclasses.asdict(plan), "path": "/v2/{}/file", "images": images})


@pytest.mark.parametrize("chunked", [False, True], ids=["with its length", "chunked"])
def test_clients_upload_one_image_after_the_other(server: Server, uploads: Plan, chunked: bool) -> None:
    plan = dataclasses.replace(uploads, chunked=chunked, source=ELSEWHERE)
    with Clients(plan) as running:
        running.wait()
        # When there is none left, the clients wait for the end.
        until(lambda: sum(bool(each.body) for each in server.requests) == len(plan.images), "all uploads")
        figures = running.stop()
    assert sorted(each.path for each in server.requests) == [f"/v2/{image}/file" for image in plan.images]
    for each in server.requests:
        assert each.body == CONTENT
        length = ("chunked", None) if chunked else (None, str(len(CONTENT)))
        assert (each.headers.get("transfer-encoding"), each.headers.get("content-length")) == length
    assert set(server.clients) == {ELSEWHERE}
    # The answers of those that came last may not have.
    assert set(figures["complete"]) <= set(plan.images)
    assert len(plan.images) - plan.clients <= len(figures["complete"]) and figures["ended"] >= 1
    assert figures["bytes"] <= len(CONTENT) * len(plan.images) and figures["served"] <= plan.clients


def test_an_upload_that_is_refused_is_noticed(
    service: Service, uploads: Plan, capfd: pytest.CaptureFixture[str]
) -> None:
    service.status = "410 Gone"
    with pytest.raises(RuntimeError, match="a slow client failed"), Clients(uploads) as running:
        running.wait()
    assert "/file: 410" in capfd.readouterr().err
