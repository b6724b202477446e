"""What is different between what stock and patched code let a program see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: What fits into any default pipe, and into a small one.
_MUCH, _LITTLE = 60_000, 512


#: How much of the input is sent decides whether stdin is closed, where the time is up, and how far the child comes.
_BY_INPUT = ("caught", "closed", "timeout", "returncode")
_LOOKS = ("poll", "wait", "kill", "terminate")


@dataclass(frozen=True)
class Difference:
    """The first difference of two outcomes."""

    #: the operation's number; None if it is about the program as a whole
    index: int | None
    operation: str
    field: str
    stock: Any
    patched: Any

    @property
    def kind(self) -> str:
        """What a smaller program has to have too, to show the same fault."""
        return f"{self.operation}: {self.field}: {_short(self.stock)} -> {_short(self.patched)}"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("error") or next(iter(value), "{}"))
    if isinstance(value, list):
        return " ".join(sorted({_short(item).split()[0] for item in value if item})) or "[]"
    return str(value) if value is None or isinstance(value, (bool, str)) else type(value).__name__


def difference(
    program: dict[str, Any], stock: dict[str, Any], patched: dict[str, Any], start: int = 0
) -> Difference | None:
    """The first difference that counts, from the operation ``start`` on, or None.

    Where stock itself hangs or dies there is nothing to compare with. To need less help than stock, to let others run
    where stock does not, and to leave fewer descriptors open is no fault.
    """
    if "ops" not in stock:
        return None
    if "ops" not in patched:
        index = patched.get("hang", -1)
        name = "?" if index < 0 else program["ops"][index]["op"]
        return Difference(index, name, "hang" if "hang" in patched else "died", None, "hang")
    much = ""
    for index, (operation, mine, other) in enumerate(zip(program["ops"], stock["ops"], patched["ops"], strict=True)):
        if is_much(program, operation):
            much = "echo" if "echo:" in str(program.get("children")) else "input"
        if index < start:
            continue
        found = _of_operation(index, operation, mine, other, much)
        if found is not None:
            return found
        if mine["rescued"] != other["rescued"]:
            # Stock was stuck where the patched code went on: from here on they are in different states.
            return None
    if not much and stock["left"] != patched["left"]:
        name = next(
            name
            for name in (*stock["left"], *patched["left"])
            if stock["left"].get(name) != patched["left"].get(name)
        )
        mine, other = stock["left"].get(name), patched["left"].get(name)
        return Difference(None, name.split(".")[0], "left", _first(mine, other), _first(other, mine))
    if patched["leaked"] > stock["leaked"]:
        return Difference(None, "program", "leaked", stock["leaked"], patched["leaked"])
    return None


def _first(mine: Any, other: Any) -> Any:
    """The first line of a report that is not in the other."""
    if not isinstance(mine, list) or not isinstance(other, list):
        return mine
    return next((str(line) for i, line in enumerate(mine) if other[i : i + 1] != [line]), "nothing")


def is_much(program: dict[str, Any], operation: dict[str, Any]) -> bool:
    """Whether an operation may end before all that it sends is in the pipe: how much that is depends on the pipe.

    Into a pipe that the program has made smaller, stock under eventlet writes 512 bytes where 4,096 have room.
    """
    data = operation.get("input") or operation.get("data") or [0]
    room = _LITTLE if "pipesize" in str(program.get("children")) else _MUCH
    return bool(data[0] > room and (operation["op"] != "communicate" or operation.get("timeout", 99) < 10))


def _of_operation(
    index: int, operation: dict[str, Any], stock: dict[str, Any], patched: dict[str, Any], much: str
) -> Difference | None:
    name = operation["op"]
    less_help = set(patched["rescued"]) <= set(stock["rescued"])
    stuck = less_help and stock["rescued"] != patched["rescued"]
    if much and stuck:
        return None
    # Where stock was stuck its children were killed and its pipes closed: only what the operation did counts.
    rest = () if stuck else sorted({*stock, *patched})
    for field in ("others", "rescued", "error", "value", *rest):
        if stock.get(field) == patched.get(field):
            continue
        if field == "rescued" and less_help:
            continue
        on_stdin = operation.get("f") == "stdin" and name != "capacity"
        if much and (field in _BY_INPUT or on_stdin or name in _LOOKS or much == "echo"):
            continue
        if field == "others ran" and not stock.get(field):
            continue
        if field == "others" and stock["rescued"] != patched["rescued"]:
            continue
        if field in ("error", "value") and ("error" in stock) != ("error" in patched):
            return Difference(index, name, "result", _result(stock), _result(patched))
        return Difference(index, name, field, stock.get(field), patched.get(field))
    return None


def _result(seen: dict[str, Any]) -> Any:
    return seen.get("error") or ("gone" if "gone" in seen else "value")
