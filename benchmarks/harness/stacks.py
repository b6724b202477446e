"""Samples of where programs were, as a sampling profiler takes them, and the difference between two sets of them.

The stacks are those of flamegraph.pl's collapsed form: the frames from the outermost to the innermost, with semicolons
between them, and how often a sample has found them. speedscope and flamegraph.pl read a file of such lines.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.harness.results import ROOT

#: Collapsed stack to its samples.
Stacks = Mapping[str, int]

#: Files of these frames are the import statement's own: dozens deep, and of no module in particular.
_IMPORTING = "<frozen importlib"
#: Where packages and the standard library are, which differs between environments.
_LIBRARIES = re.compile(r".*/(?:site-packages|dist-packages|lib/python3\.\d+)/")


@dataclass(frozen=True)
class Function:
    """What a function takes before and after, in samples: by itself, and with all that it has called."""

    name: str
    own: tuple[int, int]
    total: tuple[int, int]

    def grown(self) -> bool:
        return _growth(self.own) > 0 or _growth(self.total) > 0


def of_speedscope(data: Mapping[str, Any]) -> dict[str, int]:
    """The stacks of a file in speedscope's format, those of all processes and threads together.

    py-spy's own collapsed form has command lines between its semicolons, with whatever is in them.
    """
    frames = [_frame(each) for each in data["shared"]["frames"]]
    found: Counter[str] = Counter()
    for profile in data["profiles"]:
        for sample in profile["samples"]:
            found[";".join(frames[index] for index in sample if frames[index])] += 1
    # A thread that was in no function yet.
    found.pop("", None)
    return dict(found)


def _frame(frame: Mapping[str, Any]) -> str:
    """A function and its file; empty for what is no function: the import machinery, and a process with its command."""
    file = frame.get("file") or ""
    if not file or file.startswith(_IMPORTING):
        return ""
    short = _LIBRARIES.sub("", file.removeprefix(f"{ROOT}/"))
    return " ".join(f"{frame['name']} ({short})".replace(";", ":").split())


def add(several: Iterable[Stacks]) -> dict[str, int]:
    """The samples of several runs together."""
    found: Counter[str] = Counter()
    for each in several:
        found.update(each)
    return dict(found)


def text(stacks: Stacks) -> str:
    """The collapsed form."""
    return "".join(f"{stack} {count}\n" for stack, count in sorted(stacks.items()))


def parse(collapsed: str) -> dict[str, int]:
    """The stacks of a text in the collapsed form.

    :raises ValueError: if a line of it is no stack with a number
    """
    found: Counter[str] = Counter()
    for number, line in enumerate(collapsed.splitlines(), 1):
        stack, _, count = line.rpartition(" ")
        if not stack or not count.isdigit():
            raise ValueError(f"line {number} is no stack with the number of its samples: {line!r}")
        found[stack] += int(count)
    return dict(found)


def difference(before: Stacks, after: Stacks) -> list[Function]:
    """Every function in the order of its growth: by itself first, then with what it has called.

    The numbers of samples have to be those of equally many runs.
    """
    own: dict[str, list[int]] = {}
    total: dict[str, list[int]] = {}
    for side, stacks in enumerate((before, after)):
        for stack, count in stacks.items():
            frames = stack.split(";")
            own.setdefault(frames[-1], [0, 0])[side] += count
            # A function that calls itself is there once.
            for frame in dict.fromkeys(frames):
                total.setdefault(frame, [0, 0])[side] += count
    found = []
    for name, (old, new) in total.items():
        alone = own.get(name, (0, 0))
        found.append(Function(name, (alone[0], alone[1]), (old, new)))
    return sorted(found, key=lambda each: (_growth(each.own), _growth(each.total), each.name), reverse=True)


def _growth(samples: tuple[int, int]) -> int:
    before, after = samples
    return after - before
