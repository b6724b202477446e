"""``fix_input_items``: input whose items are larger than a byte."""

from __future__ import annotations

import array
import hashlib
from types import ModuleType
from typing import Any

import pytest

import fastio
from fastio import counters
from tests.child import Gate, command, data
from tests.outcome import Call, observe

pytestmark = pytest.mark.fast_path("exchanges")

PIPES: dict[str, Any] = {"stdin": -1, "stdout": -1, "stderr": -1}
BYTES = data(1, 400_008)


def digest(payload: bytes) -> bytes:
    return f"{len(payload)} {hashlib.sha256(payload).hexdigest()}".encode()


INPUTS: dict[str, Any] = {
    "shorts": array.array("H", BYTES),
    "ints": array.array("I", BYTES),
    "doubles": array.array("d", BYTES),
    "view of longs": memoryview(BYTES).cast("q"),
    "writable view": memoryview(array.array("i", BYTES)),
    "two dimensions": memoryview(BYTES).cast("B").cast("I", (2, 50_001)),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_all_of_it_is_sent(patched: Any, sp: ModuleType, kind: str) -> None:
    popen = sp.Popen(command("digest"), **PIPES)
    assert popen.communicate(INPUTS[kind]) == (digest(BYTES), b"")
    assert popen.returncode == 0


def test_numpy(patched: Any, sp: ModuleType) -> None:
    numpy = pytest.importorskip("numpy")
    values = numpy.arange(100_000, dtype="float64")
    popen = sp.Popen(command("digest"), **PIPES)
    assert popen.communicate(memoryview(values)) == (digest(values.tobytes()), b"")


def test_with_a_timeout_in_between(patched: Any, sp: ModuleType, gate: Gate) -> None:
    popen = sp.Popen(command(gate.wait, "digest"), pass_fds=gate.fds, **PIPES)
    with pytest.raises(sp.TimeoutExpired):
        popen.communicate(INPUTS["ints"], timeout=0.2)
    gate.open()
    assert popen.communicate() == (digest(BYTES), b"")


def test_run(patched: Any, sp: ModuleType) -> None:
    assert sp.run(command("digest"), input=INPUTS["ints"], capture_output=True).stdout == digest(BYTES)


@pytest.mark.parametrize("kind", ["every other item", "backwards"])
def test_what_is_not_contiguous_is_as_upstream(sp: ModuleType, kind: str) -> None:
    view = memoryview(array.array("I", BYTES))[:: 2 if kind == "every other item" else -1]
    upstream = observe(sp, ["digest"], [Call(view)], **PIPES)
    with fastio.patched():
        assert observe(sp, ["digest"], [Call(view)], **PIPES) == upstream
    assert upstream[0]["error"] == "BufferError"


def test_text_mode_refuses_it_as_upstream(sp: ModuleType) -> None:
    upstream = observe(sp, ["digest"], [Call(INPUTS["ints"])], text=True, **PIPES)
    with fastio.patched():
        assert observe(sp, ["digest"], [Call(INPUTS["ints"])], text=True, **PIPES) == upstream
    assert upstream[0]["error"] == "AttributeError"


@pytest.mark.no_fast_path(reason="without the fix it is left to upstream")
def test_switched_off(sp: ModuleType) -> None:
    small = array.array("I", BYTES[:4000])
    upstream = observe(sp, ["digest"], [Call(small)], **PIPES)
    with fastio.patched(disabled=["fix_input_items"]):
        counters.reset()
        assert observe(sp, ["digest"], [Call(small)], **PIPES) == upstream
