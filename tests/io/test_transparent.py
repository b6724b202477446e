"""Proxies of a driver's data, which keep the pace or count: they are seen as the original."""

import io
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastio.concurrency.pace import Pace
from fastio.io import paced
from fastio.trace import spans
from fastio.trace.streams import Passed, watch

Wrap = Callable[[Any], Any]
WRAPS: dict[str, Wrap] = {
    "paced": lambda data: paced.stand_in(data, Pace()),
    "watched": lambda data: watch(data, Passed(spans.Span("test.stream"))),
}


@pytest.fixture(params=list(WRAPS))
def wrap(request: pytest.FixtureRequest) -> Wrap:
    return WRAPS[request.param]


class Image:
    """Data that a driver may return: an object with a length, indexable, whose iterator is another object."""

    def __init__(self) -> None:
        self.chunks = [b"ab", b"c"]
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.chunks)

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def __getitem__(self, index: int) -> bytes:
        return self.chunks[index]

    def close(self) -> None:
        self.closed = True


def test_an_object_that_is_iterated_over(wrap: Wrap) -> None:
    image: Any = Image()
    found: Any = wrap(image)
    assert type(found) is not Image
    assert isinstance(found, Image) is True
    assert found == image and image == found.__wrapped__ and hash(found) == hash(image)
    assert repr(found) == repr(image)
    assert len(found) == 3 and found[1] == b"c" and bool(found)
    assert list(found) == [b"ab", b"c"] and list(found) == [b"ab", b"c"]
    assert not hasattr(found, "read") and not hasattr(type(found), "__next__")
    found.note = 1
    assert image.note == 1
    del found.note
    assert not hasattr(image, "note")
    with pytest.raises(AttributeError):
        _ = found.nothing
    found.close()
    assert image.closed


def test_a_generator(wrap: Wrap) -> None:
    ended = []

    def chunks() -> Iterator[bytes]:
        try:
            yield b"a"
            yield b"b"
        finally:
            ended.append(True)

    found = wrap(chunks())
    assert isinstance(found, types.GeneratorType)
    assert not hasattr(found, "__len__")
    assert next(found) == b"a"
    found.close()
    assert ended == [True]
    with pytest.raises(StopIteration):
        next(found)


def test_a_file(wrap: Wrap, tmp_path: Any) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    file = wrap(open(path, "rb"))  # noqa: SIM115
    with file as found:
        assert found is file
        assert found.read(3) == b"012"
        assert found.read(size := -1) == b"3456789" and size == -1
        assert found.tell() == 10
        assert found.fileno() > 2
        found.seek(0)
        assert list(found) == [b"0123456789"]
    assert found.closed


def test_attributes_of_data_are_looked_for_in_each(wrap: Wrap) -> None:
    """Also if another of its class, which has not the same, was seen before."""
    plain, readable = Image(), Image()
    readable.read = io.BytesIO(b"read").read  # type: ignore[attr-defined]
    found = [wrap(each) for each in (plain, readable, plain)]
    assert [hasattr(each, "read") for each in found] == [False, True, False]
    assert found[1].read() == b"read"


def test_classes_that_compare_in_their_own_way(wrap: Wrap) -> None:
    class Same(type):
        def __eq__(cls, other: object) -> bool:
            return isinstance(other, Same)

        def __hash__(cls) -> int:
            return 1

    class Unhashable(type):
        __hash__ = None  # type: ignore[assignment]

    def method(self: Any) -> Any:
        return iter((b"iterated",))

    for metaclass in (Same, Unhashable):
        first = metaclass("first", (), {"__iter__": method})()
        second = metaclass("second", (), {"__iter__": method, "__len__": lambda self: 7})()
        found = [wrap(each) for each in (first, second)]
        assert [list(each) for each in found] == [[b"iterated"]] * 2
        assert len(found[1]) == 7 and not hasattr(type(found[0]), "__len__")
