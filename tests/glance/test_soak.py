"""The soak finds what it is there to find."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.backends.glance import RELEASES, Service
from benchmarks.tools import soak as tool
from benchmarks.tools.soak import GROWTH, SLACK, Sample, Soak

FLAT = Sample(descriptors=20, threads=4, resident={1: 100 << 20})


@pytest.fixture(params=RELEASES)
def soak(request: pytest.FixtureRequest, serve: Callable[..., Service]) -> Iterator[Soak]:
    yield Soak(serve(request.param, fastio="on"))


def damage(soak: Soak, change: Callable[[Any, int], object]) -> int:
    """Change the file of each image that has data; returns how many these are."""
    images = {image: data for image, data in soak.images.items() if data}
    for image, data in images.items():
        with open(soak._service.images / image, "r+b") as file:
            change(file, len(data))
    soak.images = images
    return len(images)


def test_every_operation_succeeds_and_damage_is_found(soak: Soak) -> None:
    chance = random.Random(7)
    operations = [soak.upload, *(operation for operation in soak.operations if operation != soak.delete)]
    for operation in operations:
        soak.do(operation, chance)
    assert soak.done.pop("bytes") > 0
    assert soak.faults == [] and soak.done == Counter(operation.__name__ for operation in operations)
    wrong = damage(soak, lambda file, size: file.write(b"\0\1\2"))
    soak.verify_all()
    assert len(soak.faults) == wrong > 0
    damage(soak, lambda file, size: file.truncate(size // 2))
    soak.verify_all()
    assert len(soak.faults) == 2 * wrong


def test_a_hanging_program_is_ended(serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "ENDING", 3.0)
    service = serve("glance-32", fastio="on", workers=2)
    soak = Soak(service)
    monkeypatch.setattr(service, "signal", lambda number: None)
    soak.end_and_start()
    assert soak.done["ends by force"] == 1 and len(soak.faults) == 1
    assert soak._apis[0].ask("GET", "/healthcheck").status == 200


@pytest.mark.parametrize(
    ("last", "named"),
    [
        (FLAT, []),
        (Sample(20 + 4 * SLACK["descriptors"], 4 + 4 * SLACK["threads"], FLAT.resident), []),
        (Sample(20 + 4 * SLACK["descriptors"] + 1, 4, FLAT.resident), ["descriptors"]),
        (Sample(20, 4 + 4 * SLACK["threads"] + 1, FLAT.resident), ["threads"]),
        (Sample(20, 4, {1: FLAT.resident[1] + GROWTH + 1}), ["has grown"]),
    ],
)
def test_the_verdict_names_every_leak_and_failure(last: Sample, named: list[str]) -> None:
    chosen = {"workers": 4}
    service = SimpleNamespace(http_port=1, eventlet=False, chosen=chosen, log=lambda: "nothing")
    load = Soak(service)  # type: ignore[arg-type]
    load.done.update(download=1, upload=1)
    load.samples = [FLAT, FLAT, last]
    load.judge()
    assert len(load.faults) == len(named)
    assert all(name in fault for name, fault in zip(named, load.faults, strict=True))


def test_a_bad_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tool.main(["--seconds", "3"])
    assert "--seconds 3: at least 15" in capsys.readouterr().err
