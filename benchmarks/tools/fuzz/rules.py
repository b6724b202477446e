"""The differences that the ``fix_`` patches are there for: everything else is a failure.

A rule looks at the first difference between stock and patched code in a program under a hub; the oracle is what stock
has natively, where a fix promises "as natively".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.tools.fuzz.compare import Difference


@dataclass(frozen=True)
class Case:
    """The input of a rule."""

    program: dict[str, Any]
    found: Difference
    stock: dict[str, Any]
    patched: dict[str, Any]
    #: stock's outcome natively; empty where the program cannot be run so
    native: dict[str, Any]
    #: the ``fix_`` patches that are applied
    fixes: frozenset[str]

    @property
    def operation(self) -> dict[str, Any]:
        return {} if self.found.index is None else self.program["ops"][self.found.index]

    def seen(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return an outcome's entry for the operation."""
        if self.found.index is None or "ops" not in outcome:
            return {}
        seen: dict[str, Any] = outcome["ops"][self.found.index]
        return seen

    @property
    def popen(self) -> dict[str, Any]:
        """How the operation's child is started."""
        children = self.program.get("children", [])
        number = self.operation.get("p", 0)
        found: dict[str, Any] = children[number].get("popen", {}) if number < len(children) else {}
        return found

    @property
    def as_natively(self) -> bool:
        """The patched code has what stock has natively."""
        if self.found.index is None:
            # A child's report: what comes after the line that differs may depend on how much is buffered.
            left = self.native.get("left", {})
            return left == self.patched.get("left") or any(
                self.found.patched in (lines or ()) for lines in left.values()
            )
        native, patched = self.seen(self.native), self.seen(self.patched)
        if not native or not patched:
            return False
        return all(native.get(key) == patched.get(key) for key in ("error", "value", "args", "output", "stderr"))


def _green_exceptions(case: Case) -> bool:
    stock, patched = case.seen(case.stock), case.seen(case.patched)
    if case.found.operation == "others":
        # The program leaves the results of others once more at its end.
        stock, patched = case.stock["left"]["others"], case.patched["left"]["others"]
    return stock != patched and _catches_more(stock, patched)


def _catches_more(stock: Any, patched: Any) -> bool:
    """Whether the same was seen, also by handlers and others meanwhile, but for more classes that catch an error."""
    if isinstance(stock, list) and isinstance(patched, list) and len(stock) == len(patched):
        return all(map(_catches_more, stock, patched))
    if isinstance(stock, dict) and isinstance(patched, dict) and {*stock} == {*patched}:
        return all(
            {*stock[key]} <= {*patched[key]} if key == "caught" else _catches_more(stock[key], patched[key])
            for key in stock
        )
    return bool(stock == patched)


_READS = ("read", "read1", "readline", "readlines", "readinto", "iterate")


def _green_encoding(case: Case) -> bool:
    decides = bool(case.popen.get("encoding") or case.popen.get("errors"))
    # Some operations exist with greenlets only, and natively a large read loses parts of packets.
    alone = (not case.native or "packets" in str(case.program.get("children"))) and case.operation.get("op") in (
        None,
        "communicate",
        *_READS,
    )
    # The same text has another length in bytes, so that a buffer is written at another time.
    errors = {case.seen(case.stock).get("error"), case.seen(case.patched).get("error")}
    breaks = errors == {None, "BrokenPipeError"} and case.operation.get("f") == "stdin"
    return decides and (case.as_natively or alone or breaks)


RULES: dict[str, Callable[[Case], bool]] = {
    "fix_green_encoding": _green_encoding,
    "fix_green_exceptions": _green_exceptions,
}


#: Fixes after which a program goes on as in stock, so that the rest of it is compared, too.
PASSING = ("fix_green_exceptions",)


def explained(case: Case) -> str | None:
    """The name of the fix that a difference is there for, or None. A hang is never meant."""
    if case.found.field in ("hang", "died", "leaked"):
        return None
    return next((name for name, rule in RULES.items() if name in case.fixes and rule(case)), None)
