"""The differences that the ``fix_`` patches are there for: everything else is a failure."""

from collections.abc import Callable
from typing import Any

from benchmarks.tools.fuzz.compare import Difference

Program = dict[str, Any]
Seen = dict[str, Any]


def _popens(program: Program) -> list[dict[str, Any]]:
    return [child.get("popen", {}) for child in program.get("children", ())]


def _exceptions(program: Program, found: Difference, stock: Seen, patched: Seen) -> bool:
    if found.operation == "run":
        # check_output() and run() used a Popen that blocks.
        return True
    return set(stock.get("caught", ())) < set(patched.get("caught", ())) and all(
        stock.get(key) == patched.get(key) for key in {*stock, *patched} - {"caught"}
    )


def _encoding(program: Program, found: Difference, stock: Seen, patched: Seen) -> bool:
    # The same text has another length in bytes, so that a buffer is written at another time.
    return any("encoding" in popen or "errors" in popen for popen in _popens(program))


def _pipelines(program: Program, found: Difference, stock: Seen, patched: Seen) -> bool:
    # Where a child met EAGAIN it stopped, and everything after that is different.
    wires = [popen.get(name) for popen in _popens(program) for name in ("stdin", "stdout", "stderr")]
    return any(isinstance(wire, list) and wire[0] in ("child", "fifo") for wire in wires)


#: Whether the difference of an operation, as it is seen in stock and patched, is what a fix is there for.
RULES: dict[str, Callable[[Program, Difference, Seen, Seen], bool]] = {
    "fix_green_encoding": _encoding,
    "fix_green_exceptions": _exceptions,
    "fix_green_pipelines": _pipelines,
}
#: Fixes after which a program goes on as in stock, so that the rest of it is compared, too.
PASSING = ("fix_green_exceptions",)


def explained(program: Program, found: Difference, stock: Seen, patched: Seen, fixes: frozenset[str]) -> str | None:
    """The name of the fix that a difference is there for, or None. A hang is never meant."""
    if found.field in ("hang", "died", "leaked"):
        return None
    seen = [{} if found.index is None else outcome["ops"][found.index] for outcome in (stock, patched)]
    return next((name for name, rule in RULES.items() if name in fixes and rule(program, found, *seen)), None)
