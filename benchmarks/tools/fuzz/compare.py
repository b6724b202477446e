"""Differences between stock and patched code that a program can see."""

import json
from dataclasses import dataclass
from typing import Any

#: Bytes that fit into any default pipe, and into a small one.
_MUCH, _LITTLE = 60_000, 512

#: Allowed outcomes of an operation once the sides are in different states, whatever stock's is: see :func:`difference`.
_ANY_STATE = ("BrokenPipeError", "Timeout", "TimeoutExpired", "UnicodeDecodeError", "ValueError")

_READS = ("read", "read1", "readline", "readinto", "iterate")
#: How the hub refuses a second reader; also in a later call or program, since its ``select()`` leaves listeners behind
#: where one of several descriptors was closed.
LATER = "Second simultaneous"
#: How a buffer and the hub refuse to serve two at the same moment.
_REFUSALS = ("reentrant call inside", LATER)


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
        """Return the signature that a smaller program must share, to show the same fault."""
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

    How much of an input was sent when the time is up follows from the size of the pipe, which patched code makes
    larger: it decides whether stdin is closed, how far the child comes, what it writes. And where closing stdin fails
    it is a matter of chance under a hub which of the outputs were read by then: eventlet's hubs keep who is ready in a
    set. Whether stock refuses a second use at the same moment depends on whether the first waits, so on the size of the
    pipe; and it leaves the hub with a listener that wakes a greenlet at another call. Where the first was served at
    once, the second may wait for ever instead of being refused. A read of what is at hand, or a write of what the pipe
    has room for, does not wait in the hub as stock's does under a monkey patch, and so comes before a close by another
    greenlet. What stock does not end by itself, or not within the operation, ends otherwise. A signal handler that lets
    others run ends in the call that it interrupts or in a later one. From there on the two sides are in different
    states, and only that counts which holds in every state: nothing hangs, no exception comes out that is not meant to,
    others run, and no descriptor is left open.
    """
    if "ops" not in stock:
        return None
    if "ops" not in patched:
        index = patched.get("hang", -1)
        if index >= 0 and LATER in json.dumps(stock["ops"][index]):
            return None
        name = "?" if index < 0 else program["ops"][index]["op"]
        return Difference(index, name, "hang" if "hang" in patched else "died", None, "hang")
    parted = several = False
    for index, (operation, mine, other) in enumerate(zip(program["ops"], stock["ops"], patched["ops"], strict=True)):
        several = several or bool({"turns", "during"} & {*operation})
        parted = (
            parted or _cuts_short(program, operation, mine, other) or _breaks(operation, stock, mine, other)
            or any(refusal in json.dumps(mine) for refusal in (_REFUSALS if several else [LATER]))
            or _comes_first(operation, mine, other) or _races(operation, stock)
            or _ends_later(operation, mine, other) or _is_held(mine, other)
        )  # fmt: skip
        if index < start:
            continue
        found = (_of_parted if parted else _of_operation)(program, index, mine, other)
        if found is not None:
            return found
        if mine["rescued"] != other["rescued"] or ("others" in mine and "others" not in other):
            # Stock was stuck where the patched code went on: from here on they are in different states.
            return None
    if not parted:
        for name in (*stock["left"], *patched["left"]):
            mine, other = (_comparable(program, name, seen["left"].get(name)) for seen in (stock, patched))
            if mine != other:
                return Difference(None, name.split(".")[0], "left", _first(mine, other), _first(other, mine))
    if patched["leaked"] > stock["leaked"]:
        return Difference(None, "program", "leaked", stock["leaked"], patched["leaked"])
    return None


def _cuts_short(
    program: dict[str, Any], operation: dict[str, Any], stock: dict[str, Any], patched: dict[str, Any]
) -> bool:
    """Whether an operation ended before all that it sends was in the pipe: how much that is depends on the pipe.

    Into a pipe that the program has made smaller, stock under eventlet writes 512 bytes where 4,096 have room.
    """
    data = operation.get("input") or operation.get("data") or [0]
    room = _LITTLE if "pipesize" in str(program.get("children")) else _MUCH
    if data[0] <= room:
        return False
    errors = {stock.get("error"), patched.get("error")}
    # Both by the same error: of a stream that was closed meanwhile.
    ended = {"TimeoutExpired", "Timeout"} & errors or len(errors) == 1 and None not in errors
    return bool(ended) or operation["op"] != "communicate" or stock["rescued"] != patched["rescued"]


def _breaks(operation: dict[str, Any], outcome: dict[str, Any], stock: dict[str, Any], patched: dict[str, Any]) -> bool:
    """Whether closing stdin failed in the exchange with a child, where the order of its streams is not determined."""
    errors = {stock.get("error"), patched.get("error")}
    return bool(outcome.get("green")) and operation["op"] == "communicate" and errors == {"BrokenPipeError"}


def _comes_first(operation: dict[str, Any], stock: dict[str, Any], patched: dict[str, Any]) -> bool:
    """Whether a read or write is done before another greenlet closes the file: stock waits in the hub first.

    An exchange with a child that fails at a closed output may have sent more or less of its input by then.
    """
    before, after = _turns(operation, stock), _turns(operation, patched)
    closes = any(other.get("op") == "close" for other in (*before, *operation.get("during", ())))
    return closes and len(before) == len(after) and any(
        "Bad file descriptor" in mine.get("args", "")
        and (mine["op"] in (*_READS, "write") and "value" in other or mine["op"] == "communicate" and mine == other)
        for mine, other in zip(before, after, strict=True)
    )  # fmt: skip


def _ends_later(operation: dict[str, Any], stock: dict[str, Any], patched: dict[str, Any]) -> bool:
    """Whether a signal handler that lets others run ends in this call on one side only.

    Stock's ``wait()`` asks for the child's end every 10 ms, ours is woken by it and returns before such a handler does.
    """
    others = operation.get("during", ())
    yields = any(each["op"] == "yield" for other in others for each in other.get("do", ()))
    return yields and stock.get("handled") != patched.get("handled")


def _is_held(stock: dict[str, Any], patched: dict[str, Any]) -> bool:
    """Whether stock alone waits until its files are closed, or goes on after the operation during which it began."""
    blocked, others = (seen.get("others", []).count("blocked") for seen in (stock, patched))
    return blocked > others or "close" in stock["rescued"] and "close" not in patched["rescued"]


def _races(operation: dict[str, Any], outcome: dict[str, Any]) -> bool:
    """Whether it is chance who reaps the child: on native threads, several wait for it in the kernel."""
    return not outcome.get("green") and any(each["op"] == "reap" for each in operation.get("during", ()))


def _turns(operation: dict[str, Any], seen: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of all operations that take turns, one after the other; or of the only one."""
    value = seen.get("value")
    turns = value.get("turns") if isinstance(value, dict) else None
    return [{"op": operation["op"], **seen}] if turns is None else [each for turn in turns for each in turn]


def _chose_size(program: dict[str, Any], number: int) -> bool:
    """Whether the program says how large the pipes of a child are; else that is up to the code, and may differ."""
    children = program.get("children", [])
    return number < len(children) and "pipesize" in children[number].get("popen", {})


def _comparable(program: dict[str, Any], name: str, left: Any) -> Any:
    """Return the compared part of a file that a program left: all but the sizes of pipes that it did not choose."""
    report, _, number = name.partition(".")
    if report == "report" and left is not None and not _chose_size(program, int(number)):
        return [line for line in left if not line.startswith("capacity")]
    return left


def _first(mine: Any, other: Any) -> Any:
    """The first line of a report that is not in the other."""
    if not isinstance(mine, list) or not isinstance(other, list):
        return mine
    return next((str(line) for i, line in enumerate(mine) if other[i : i + 1] != [line]), "nothing")


def _of_operation(
    program: dict[str, Any], index: int, stock: dict[str, Any], patched: dict[str, Any]
) -> Difference | None:
    operation = program["ops"][index]
    name = operation["op"]
    less_help = set(patched["rescued"]) <= set(stock["rescued"])
    # A bad argument may be refused without waiting for others, too.
    no_others = "others" in stock and "others" not in patched
    stuck = less_help and (stock["rescued"] != patched["rescued"] or no_others)
    # Where stock was stuck its children were killed and its pipes closed: only what the operation did counts.
    rest = () if stuck else sorted({*stock, *patched})
    for field in ("others", "rescued", "error", "value", *rest):
        if stock.get(field) == patched.get(field):
            continue
        if field == "rescued" and less_help:
            continue
        if field == "others ran" and not stock.get(field):
            continue
        if field == "others" and (stock["rescued"] != patched["rescued"] or no_others):
            continue
        if field in ("error", "value") and ("error" in stock) != ("error" in patched):
            return Difference(index, name, "result", _result(stock), _result(patched))
        if name == "capacity" and field == "value" and not _chose_size(program, operation.get("p", 0)):
            continue
        return Difference(index, name, field, stock.get(field), patched.get(field))
    return None


def _of_parted(
    program: dict[str, Any], index: int, stock: dict[str, Any], patched: dict[str, Any]
) -> Difference | None:
    operation = program["ops"][index]
    name = operation["op"]
    if stock.get("others ran") and patched.get("others ran") is False:
        return Difference(index, name, "others ran", True, False)
    error = patched.get("error")
    # Others run meanwhile only if it waits, and that may differ.
    if error in (None, stock.get("error"), *_ANY_STATE) or {"during", "turns"} & {*operation}:
        return None
    return Difference(index, name, "result", _result(stock), error)


def _result(seen: dict[str, Any]) -> Any:
    return seen.get("error") or ("gone" if "gone" in seen else "value")
