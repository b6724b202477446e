"""How much memory a payload needs while it is moved, and whether it is given back.

Parameters:

``size``
    bytes of the payload
``task``
    ``"output"``: ``execute(binary=True)``; ``"text"``: the same, decoded; ``"input"``: ``execute(process_input=...)``,
    where the payload itself is there from the start; ``"green_pipe"``: ``GreenPipe.read()``
``stock_green_size``
    of ``input``, see :mod:`benchmarks.suites.input.workload`
``settings``
    of fastio

Results: ``peak_memory`` as everywhere, and ``peak_ratio``, that divided by the payload.
"""

from collections.abc import Mapping
from typing import Any

from benchmarks.harness.modes import Mode, choice, variants
from benchmarks.suites.communicate import workload as communicate
from benchmarks.suites.green_pipe import workload as green_pipe
from benchmarks.suites.input import writing


def _with_ratio(result: dict[str, Any]) -> dict[str, Any]:
    return {**result, "peak_ratio": result["peak_memory"] / result["bytes"]}


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    task = choice(parameters, "task", "output", "text", "input", "green_pipe")
    if task == "input":
        return _with_ratio(writing.run(mode, {**parameters, "through": "oslo"}))
    if task == "green_pipe":
        if not mode.green:
            raise ValueError("task 'green_pipe' exists under eventlet only")
        return _with_ratio(green_pipe.run(mode, {**parameters, "style": "read"}))
    content = "text" if task == "text" else "binary"
    return _with_ratio(communicate.run(mode, {**parameters, "through": "oslo", "mode": content}))


def reference(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One C loop into one bytes object."""
    return _with_ratio(communicate.reference_one_object(parameters))


VARIANTS = variants(
    run,
    {
        "reference-readall": reference,
    },
)
