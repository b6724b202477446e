"""``s3_ranges``: an image of a service far away comes in parts, of one version of the object."""

import functools
import os
from collections.abc import Callable
from typing import Any

import pytest

import fastio
from fastio import counters
from fastio.io import ahead

pytest.importorskip("glance_store")
pytest.importorskip("boto3")

MIB = 1 << 20
SIZE = 24 * MIB + 7
AWAY = {"latency_ms": 5, "rate": 40_000_000}

patched = functools.partial(fastio.patched, ["s3_ranges", "s3_client"], strict=True)


@pytest.fixture
def store(open_store: Callable[..., Any]) -> Any:
    return open_store("s3", AWAY, "far")


def test_an_image_comes_in_parts(store: Any) -> None:
    data = os.urandom(SIZE)
    place = store.place(data)
    with patched():
        before = counters.of("s3_ranges").calls
        assert store.read(place) == data
        assert counters.of("s3_ranges").calls - before == 3


def test_an_object_that_is_replaced_meanwhile_is_never_mixed(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data, other = os.urandom(SIZE), os.urandom(SIZE)
    place = store.place(data)
    monkeypatch.setattr(ahead, "MOST", 2)
    with patched():
        pieces, _ = store.get(place)
        found = [next(iter(pieces))]
        client = store.driver._create_s3_client()
        key = place.rpartition("/")[2]
        client.put_object(Bucket="images", Key=key, Body=other)
        try:
            found += pieces
        except Exception as error:
            # The server may not keep what it has begun to send.
            assert "IncompleteRead" in repr(error) or "Connection" in repr(error), error
            assert data.startswith(b"".join(found))
        else:
            assert b"".join(found) == data


@pytest.mark.parametrize("what", ["small", "untagged", "encoded"])
def test_upstream_reads_all_else(store: Any, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    data = os.urandom(MIB if what == "small" else SIZE)
    place = store.place(data)
    import botocore.client

    call = botocore.client.BaseClient._make_api_call

    def changed(self: Any, operation: str, arguments: Any) -> Any:
        answer = call(self, operation, arguments)
        if operation == "GetObject":
            answer.update({"untagged": {"ETag": 'W/"weak"'}, "encoded": {"ContentEncoding": "gzip"}}.get(what, {}))
        return answer

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", changed)
    with patched():
        before = counters.of("s3_ranges").calls
        assert store.read(place) == data
        assert counters.of("s3_ranges").calls == before
