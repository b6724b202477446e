"""What is written to a child and measured: by this suite, and by those that compare input with something else."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.harness.modes import (
    REFERENCE_PIPE,
    Mode,
    check_fast,
    choice,
    discard_command,
    discarded,
    enter,
    write_all,
)
from benchmarks.harness.worker import Payload, measure, random_payload

#: Runs a command with that input and returns its two outputs.
Write = Callable[[list[str], bytes], tuple[bytes, bytes]]


def source(parameters: Mapping[str, Any], slow: bool = False) -> tuple[Payload, bytes]:
    """The file, and its bytes in memory."""
    size = parameters["size"]
    payload = random_payload(min(size, parameters["stock_green_size"]) if slow else size)
    return payload, payload.path.read_bytes()


def right_hash(said: bytes, payload: Payload) -> bool:
    """Whether ``sha256sum`` has read the payload."""
    return said.decode().split()[0] == payload.sha256


def _popen(arguments: list[str], payload: bytes) -> tuple[bytes, bytes]:
    import subprocess

    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe) as child:
        return child.communicate(payload)


def _oslo(arguments: list[str], payload: bytes) -> tuple[bytes, bytes]:
    from oslo_concurrency import processutils

    return processutils.execute(*arguments, process_input=payload, binary=True)


def through(parameters: Mapping[str, Any]) -> Write:
    """The function that the parameters ask for."""
    return {"popen": _popen, "oslo": _oslo}[choice(parameters, "through", "popen", "oslo")]


def measure_input(write: Write, payload: Payload, data: bytes) -> dict[str, Any]:
    """Measure one exchange, then check the bytes in another."""
    with measure() as measured:
        _, said = write(discard_command(), data)
    checked, _ = write(["sha256sum"], data)
    verified = discarded(said) == payload.size and right_hash(checked, payload)
    return measured.result(bytes=payload.size, verified=verified)


def run(mode: Mode, parameters: Mapping[str, Any]) -> dict[str, Any]:
    enter(mode, parameters)
    payload, data = source(parameters, slow=mode.green and not mode.fast)
    result = measure_input(through(parameters), payload, data)
    check_fast(mode, 2 * payload.size)
    return result


def reference(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One loop of blocking writes on an enlarged pipe."""
    payload, data = source(parameters)
    return measure_input(write_plainly, payload, data)


def write_plainly(arguments: list[str], payload: bytes) -> tuple[bytes, bytes]:
    import subprocess

    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, pipesize=REFERENCE_PIPE) as child:
        write_all(child, payload, REFERENCE_PIPE)
        # The reader writes one line at its end.
        assert child.stdout is not None and child.stderr is not None
        return child.stdout.read(), child.stderr.read()
