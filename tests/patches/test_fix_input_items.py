"""``fix_input_items``: input whose items are larger than a byte."""

import array
from types import ModuleType
from typing import Any

import pytest

from tests.child import PIPES, Gate, command, data, digest
from tests.outcome import Call, as_upstream, observe, timed_out
from tests.targets import not_needed

pytestmark = pytest.mark.fast_path("exchanges")

BYTES = data(1, 400_008)


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
    timed_out(sp, popen, 0.2, INPUTS["ints"])
    gate.open()
    assert popen.communicate() == (digest(BYTES), b"")


@pytest.mark.skipif(not not_needed("fix_input_resume"), reason="upstream sends nothing more after a time-out")
@pytest.mark.parametrize("kind", ["view of longs", "writable view"])
def test_upstream_alone_sends_a_view_after_a_timeout(sp: ModuleType, gate: Gate, kind: str) -> None:
    """Without the patch, such a view is left to upstream in every call."""

    def go() -> Any:
        popen = sp.Popen(command(gate.wait, "digest"), pass_fds=gate.fds, **PIPES)
        with pytest.raises(Exception, match="timed out"):
            popen.communicate(INPUTS[kind], timeout=0.2)
        gate.open()
        return popen.communicate(), popen._input_offset

    assert as_upstream(go, "communicate", "green_communicate") == ((digest(BYTES), b""), len(BYTES))


#: The releases that send the rest of the input after a time-out make bytes of a view first.
NOT_CONTIGUOUS = "TypeError" if not_needed("fix_input_resume") else "BufferError"


@pytest.mark.parametrize(
    ("view", "text", "error"),
    [
        (memoryview(array.array("I", BYTES))[::2], False, NOT_CONTIGUOUS),
        (memoryview(array.array("I", BYTES))[::-1], False, NOT_CONTIGUOUS),
        (INPUTS["ints"], True, "AttributeError"),
    ],
    ids=["every other item", "backwards", "text mode"],
)
def test_what_is_refused_as_upstream_refuses_it(sp: ModuleType, view: Any, text: bool, error: str) -> None:
    upstream = as_upstream(lambda: observe(sp, ["digest"], [Call(view)], text=text, **PIPES))
    assert upstream[0]["error"] == error
