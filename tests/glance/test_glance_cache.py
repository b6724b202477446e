"""glance's image cache: what clients get from it, and what is in it, are the same as with stock."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from benchmarks.backends.glance_service import RELEASES, Service
from tests.glance.sending import Sending, start_sending

MIB = 1 << 20
DATA = random.Random(2).randbytes(5 * MIB + 54321)


@pytest.fixture(params=RELEASES)
def start(request: pytest.FixtureRequest, serve: Callable[..., Service], tmp_path: Path) -> Callable[..., Sending]:
    return partial(start_sending, serve, tmp_path, request.param, flavor="caching")


@pytest.mark.parametrize("kind", ["stock", "patched"])
def test_filled_and_read(start: Callable[..., Sending], kind: str) -> None:
    sending = start(kind)
    api = sending.api
    image = api.make(DATA)
    assert api.download(image).body == DATA
    cached = sending.service.cache / image
    assert cached.read_bytes() == DATA
    # The store's own file is not asked again.
    next(sending.service.images.iterdir()).unlink()
    answer = api.download(image, **{"X-Wrap": "1"})
    assert answer.body == DATA
    assert answer.headers["Content-Length"] == str(len(DATA))
    assert sending.counts()["largest"] == (MIB if kind == "patched" else 65536)
    sending.expect_notifications([("INFO", len(DATA))] * 2)


@pytest.mark.parametrize("kind", ["stock", "patched"])
def test_what_is_not_what_was_uploaded_is_not_cached(start: Callable[..., Sending], kind: str) -> None:
    sending = start(kind)
    image = sending.api.make(DATA)
    stored = next(sending.service.images.iterdir())
    stored.write_bytes(DATA[:-1] + b"?")
    answer = sending.api.download(image)
    assert answer.body == stored.read_bytes()
    assert not (sending.service.cache / image).exists()
    assert "Checksum verification failed" in sending.service.log()


@pytest.mark.parametrize("kind", ["stock", "patched"])
def test_a_client_that_goes_away_leaves_no_part_of_it(start: Callable[..., Sending], kind: str) -> None:
    sending = start(kind)
    image = sending.api.make(DATA * 4)
    sending.api.abort_download(image, MIB)
    assert sending.api.download(image).body == DATA * 4
    assert sending.api.download(image).body == DATA * 4
    assert (sending.service.cache / image).read_bytes() == DATA * 4
