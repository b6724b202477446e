"""Reading what a child writes, all of it, into memory: ``communicate()``, and ``processutils.execute()`` on top of it.

Parameters:

``size``
    bytes that the child writes to each of its outputs
``total``
    bytes wanted from all children together: so many are run, one after the other, at least one and at most
    :data:`MOST_CHILDREN`; a short one alone says little
``streams``
    ``"stdout"``, or ``"both"`` for as much on the standard error at the same time. Three pipes in either case.
``mode``
    ``"binary"``: random bytes; ``"text"``: lines of UTF-8, decoded
``through``
    ``"popen"``, or ``"oslo"`` for ``processutils.execute()``
``settings``
    of fastio
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.harness.modes import REFERENCE_PIPE, Mode, check_fast, choice, enter, read_all, variants, warmed
from benchmarks.harness.worker import Payload, digest, measure, random_payload, text_payload

MOST_CHILDREN = 100


def children(parameters: Mapping[str, Any]) -> int:
    """How many children are run."""
    return min(max(1, parameters.get("total", 0) // parameters["size"]), MOST_CHILDREN)


def is_text(parameters: Mapping[str, Any]) -> bool:
    return choice(parameters, "mode", "binary", "text") == "text"


def fills_both(parameters: Mapping[str, Any]) -> bool:
    return choice(parameters, "streams", "stdout", "both") == "both"


def source(parameters: Mapping[str, Any]) -> Payload:
    """The file that the child writes."""
    make = text_payload if is_text(parameters) else random_payload
    return warmed(make(parameters["size"]))


def command(parameters: Mapping[str, Any], path: str) -> list[str]:
    """The child: the same in every mode."""
    if fills_both(parameters):
        return ["sh", "-c", 'cat "$0" & cat "$0" >&2; wait', path]
    return ["cat", path]


def sha256(output: bytes | str) -> str:
    return digest([output.encode() if isinstance(output, str) else output])


def _popen(arguments: list[str], text: bool) -> tuple[Any, Any]:
    import subprocess

    pipe = subprocess.PIPE
    encoding = "utf-8" if text else None
    with subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, encoding=encoding) as child:
        return child.communicate()


def _oslo(arguments: list[str], text: bool) -> tuple[Any, Any]:
    from oslo_concurrency import processutils

    return processutils.execute(*arguments, binary=not text)


def through(parameters: Mapping[str, Any]) -> Callable[[list[str], bool], tuple[Any, Any]]:
    """The function that the parameters ask for: it is given a command, and whether its outputs are text."""
    return {"popen": _popen, "oslo": _oslo}[choice(parameters, "through", "popen", "oslo")]


def measure_output(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Run the children one after the other and keep what they wrote until it is checked."""
    payload = source(parameters)
    arguments = command(parameters, str(payload.path))
    repeat = children(parameters)
    text, both = is_text(parameters), fills_both(parameters)
    read = through(parameters)
    outputs = []
    with measure() as measured:
        for _ in range(repeat):
            outputs.append(read(arguments, text))
    verified = all(
        sha256(out) == payload.sha256 and (sha256(err) == payload.sha256 if both else not err) for out, err in outputs
    )
    return measured.result(bytes=payload.size * repeat * (2 if both else 1), verified=verified)


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    enter(mode, parameters)
    result = measure_output(parameters)
    check_fast(mode, result["bytes"])
    return result


def reference_one_object(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One C loop on an enlarged pipe, into one bytes object: what no Python code can do faster."""
    payload = source(parameters)
    arguments = command({}, str(payload.path))
    repeat = children(parameters)
    with measure() as measured:
        outputs = [read_all(arguments, REFERENCE_PIPE) for _ in range(repeat)]
    return measured.result(
        bytes=payload.size * repeat, verified=all(sha256(output) == payload.sha256 for output in outputs)
    )


def reference_nothing_kept(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``readv`` into one reused buffer on an enlarged pipe: what the pipe itself can do."""
    payload = source(parameters)
    arguments = command({}, str(payload.path))
    repeat = children(parameters)
    buffer = memoryview(bytearray(REFERENCE_PIPE))
    with measure() as measured:
        count = sum(sum(_read_over(arguments, buffer)) for _ in range(repeat))
    # Hashed in a second pass: nothing of the first is left.
    right = digest(buffer[:size] for size in _read_over(arguments, buffer)) == payload.sha256
    verified = right and count == payload.size * repeat
    return measured.result(bytes=count, verified=verified)


def _read_over(arguments: list[str], buffer: memoryview) -> Iterator[int]:
    """Read into ``buffer`` again and again; yields how many bytes of it are new."""
    import subprocess

    with subprocess.Popen(arguments, stdout=subprocess.PIPE, bufsize=0, pipesize=REFERENCE_PIPE) as child:
        assert child.stdout is not None
        fd = child.stdout.fileno()
        while count := os.readv(fd, [buffer]):
            yield count


VARIANTS = variants(
    run,
    {
        "reference-readall": reference_one_object,
        "reference-readv": reference_nothing_kept,
    },
)
