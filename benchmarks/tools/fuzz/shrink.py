"""Making a program smaller that shows a difference."""

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

Program = dict[str, Any]


def shrink(program: Program, fails: Callable[[Program], bool], seconds: float, last: int | None = None) -> Program:
    """The smallest program found for which ``fails`` holds, as it does for ``program``.

    Steps are taken away, large ones first, and what is left is made plainer, until nothing more goes or ``seconds``
    are over.

    :param last: the number of the operation that fails; those after it go first
    """
    end = time.monotonic() + seconds
    if last is not None and last + 1 < len(program["ops"]):
        candidate = _changed(program, lambda new: new["ops"].__delitem__(slice(last + 1, None)))
        if fails(candidate):
            program = candidate
    done = 0
    while True:
        for number, candidate in enumerate(_smaller(program)):
            if time.monotonic() > end:
                return program
            if number >= done and fails(candidate):
                # A part that had to stay before mostly has to stay now; it is tried again at the end.
                program, done = candidate, number
                break
        else:
            if not done:
                return program
            done = 0


def _smaller(program: Program) -> Iterator[Program]:
    """Smaller programs, those first with which most is won."""
    for part in _parts(len(program["ops"])):
        yield _changed(program, lambda new, p=part: new["ops"].__delitem__(slice(*p)))
    for number, child in enumerate(program.get("children", [])):
        if len(child.get("popen", {})) > 1:
            yield _changed(program, lambda new, n=number: new["children"][n].update(popen={}))
        for part in _parts(len(child["steps"]), whole=True):
            yield _changed(program, lambda new, n=number, p=part: new["children"][n]["steps"].__delitem__(slice(*p)))
        for key in child.get("popen", {}):
            yield _changed(program, lambda new, n=number, k=key: new["children"][n]["popen"].pop(k))
    for index, operation in enumerate(program["ops"]):
        for key in ("during", "within", "timeout", "input"):
            if key in operation:
                yield _changed(program, lambda new, i=index, k=key: new["ops"][i].pop(k))
        for other in range(len(operation.get("during", ()))):
            if len(operation["during"]) > 1:
                yield _changed(program, lambda new, i=index, o=other: new["ops"][i]["during"].pop(o))
    for name in ("files", "fifos"):
        if name in program and not any(item in str(program["children"]) for item in program[name]):
            yield _changed(program, lambda new, n=name: new.pop(n))
    yield from _plainer(program)


def _parts(size: int, whole: bool = False) -> Iterator[tuple[int, int]]:
    """Where parts of a list begin and end: halves and smaller ones, the last first."""
    part = size if whole else size // 2
    while part:
        for start in range(size - part, -1, -part):
            yield start, start + part
        part //= 2


def _plainer(program: Program) -> Iterator[Program]:
    """The same with smaller sizes and plainer data."""
    for number, child in enumerate(program.get("children", [])):
        for step, text in enumerate(child["steps"]):
            name, *words = text.split(":")
            if name not in ("out", "err"):
                continue
            for size, pattern in _plainer_data(int(words[0]), words[1]):
                plain = [*child["steps"][:step], f"{name}:{size}:{pattern}", *child["steps"][step + 1 :]]
                yield _changed(program, lambda new, n=number, p=plain: new["children"][n].update(steps=p))
    for index, operation in enumerate(program["ops"]):
        for key in ("data", "input"):
            if key in operation:
                size, pattern, *kind = operation[key]
                values = [[*data, *kind] for data in _plainer_data(size, pattern)]
                if kind not in ([], ["bytes"], ["str"]):
                    values.append([size, pattern])
                for value in values:
                    yield _changed(program, lambda new, i=index, k=key, v=value: new["ops"][i].update({k: v}))


def _plainer_data(size: int, pattern: str) -> Iterator[tuple[int, str]]:
    for smaller in (0, 1, 10, size // 4, size // 2):
        if smaller < size:
            yield smaller, pattern
    if pattern not in ("78", "780a"):
        yield size, "78"
        yield size, "780a"


def _changed(program: Program, change: Callable[..., object]) -> Program:
    new = copy.deepcopy(program)
    change(new)
    return new
