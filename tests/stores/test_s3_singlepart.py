"""``s3_singlepart``: an image in one piece is in memory once, and is otherwise as from stock."""

import functools
import os
from typing import Any

import pytest

import fastio

pytest.importorskip("glance_store")
pytest.importorskip("boto3")
hypothesis = pytest.importorskip("hypothesis")

from hypothesis import strategies as st  # noqa: E402

from tests.outcome import peak  # noqa: E402
from tests.stores import s3_wire  # noqa: E402
from tests.stores.images import MIB, ImageFile, Verifier  # noqa: E402
from tests.stores.s3_wire import Wire  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_client")

DATA = os.urandom(MIB) * 33

patched = functools.partial(fastio.patched, ["s3_singlepart"], strict=True)
same = functools.partial(s3_wire.same, "s3_singlepart")


def test_the_image_is_in_memory_once(s3_store: Any) -> None:
    def add(image_id: str) -> None:
        s3_store.add(ImageFile(DATA), image_id, len(DATA))

    # Objects that are allocated only the first time.
    s3_store.add(b"1")
    with patched():
        assert peak(lambda: add("once")) < 1.5 * len(DATA)
    assert peak(lambda: add("twice")) > 1.8 * len(DATA)


@hypothesis.settings(max_examples=10)
@hypothesis.given(
    size=st.sampled_from([0, 1, 4095, 5 * MIB - 1, 5 * MIB, 5 * MIB + 1, 10 * MIB, 12 * MIB + 7]),
    short=st.sampled_from([None, 65536, MIB + 1]),
    known=st.booleans(),
    hashing=st.sampled_from(["sha512", "sha256", "md5"]),
    verified=st.booleans(),
)
def test_any_image(
    s3_store: Any, wire: Wire, size: int, short: int | None, known: bool, hashing: str, verified: bool
) -> None:
    data = DATA[:size]

    def add(store: Any) -> Any:
        verifier = Verifier() if verified else None
        file = ImageFile(data, short)
        added = store.add(file, "image", size if known else 0, hashing=hashing, verifier=verifier)
        assert store.read(added.url) == data
        store.delete(added.url)
        return added, file.asked, verifier and verifier.pieces

    (added, _, _), _ = same(s3_store, wire, add)
    assert added.size == size


def test_the_server_gets_bytes(s3_store: Any) -> None:
    """As from stock, so that botocore signs and sends it in the same way."""
    import glance_store._drivers.s3 as driver

    class Client:
        bodies: list[Any] = []

        def put_object(self, **kwargs: Any) -> None:
            assert sorted(kwargs) == ["Body", "Bucket", "Key"]
            self.bodies.append(kwargs["Body"])

    class Location:
        def get_uri(self) -> str:
            return "s3://"

    store = driver.Store.__new__(driver.Store)
    store.backend_group = None
    for context in (fastio.patched([]), patched()):
        with context:
            added = store._add_singlepart(
                s3_client=Client(), image_file=ImageFile(DATA[: 7 * MIB]), bucket="b", key="k", loc=Location(),
                hashing_algo="sha256", verifier=None, image_size=7 * MIB,
            )  # fmt: skip
            assert added[1] == 7 * MIB
            # A store that is the only one has no name.
            assert added[4] == {}
    assert Client.bodies == [DATA[: 7 * MIB]] * 2
    assert [type(body) for body in Client.bodies] == [bytes, bytes]
