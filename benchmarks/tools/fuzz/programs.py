"""Random programs, as data.

A program is what JSON can hold::

    {"children": [{"steps": ["out:10:61", "sync", "in:-1"], "popen": {"stdin": "PIPE", "bufsize": 0, …}}],
     "files": {"data": [1000, "6162"]}, "fifos": {"queue": "peer"},
     "ops": [{"op": "start", "p": 0}, {"op": "await", "p": 0}, {"op": "read", "f": "stdout", "n": [5],
              "during": [{"op": "kill"}]}, …]}

``during`` are operations of somebody else, done while the program's line is blocked in this one. :mod:`child` says what
the steps are; the operations are the methods ``do_…`` of :mod:`worker`, and those of Popen and of its streams.
Time-outs below ten seconds are meant to expire, others never do.

What comes of a program must not be a matter of chance: what returns as much as there is (an unbuffered ``read(n)``,
``select``, ``os.read``) is only done while the child is held at a ``sync`` step or has ended; in between is only what
waits for all of something. And nothing is left in a pipe that may not fit into it.
"""

import random
from typing import Any

#: For ``Timeout`` and time-outs that expire, in seconds.
SHORT = 0.06
LONG = 60
_PATTERNS = [
    b"a line of text\n", b"x", b"\n", b"one\r\ntwo\rthree\n", bytes(range(256)), "größe €\n".encode(),
    b"no line end in this", b"\xff\xfe", b"0123456789abcdef" * 7 + b"\n",
]  # fmt: skip
_SIZES = [0, 1, 2, 5, 10, 15, 60, 100, 511, 512, 513, 1000, 4095, 4096, 4097, 8191, 8192, 8193, 10_000]
_READS = [0, 1, 2, 3, 10, 100, 1000, 4096, 5000, 8192, 10_000, 65_536]
#: All that a child writes before somebody reads must fit into a pipe.
_ROOM = 45_000
_TEXTS: list[dict[str, Any]] = [
    {"text": True}, {"universal_newlines": True}, {"encoding": "utf-8"}, {"encoding": "latin-1"},
    {"encoding": "utf-16"}, {"encoding": "ascii", "errors": "replace"}, {"encoding": "utf-8", "errors": "ignore"},
    {"errors": "surrogateescape"},
]  # fmt: skip

Program = dict[str, Any]


def generate(rng: random.Random, kind: str) -> Program:
    """A program for a group of this kind: ``native``, ``green`` or ``taken``."""
    if kind == "green" and rng.random() < 0.15:
        return _pipe_program(rng)
    if kind != "taken" and rng.random() < 0.08:
        return _function_program(rng)
    if kind != "taken" and rng.random() < 0.1:
        return _pipeline_program(rng, kind)
    if kind != "taken" and rng.random() < 0.15:
        return _abandoned_program(rng)
    return _Maker(rng, kind).program()


def _data(rng: random.Random, sizes: list[int] = _SIZES) -> list[Any]:
    return [rng.choice(sizes), rng.choice(_PATTERNS).hex()]


def _input(rng: random.Random, text: bool, sizes: list[int]) -> list[Any]:
    size, pattern = _data(rng, sizes)
    if text:
        return [size, rng.choice([b"text\n", b"\xe4\xf6\n", b"x"]).hex(), "str"]
    return [size, pattern, rng.choice(["bytes", "bytes", "bytearray", "memoryview", "array"])]


def _reading(rng: random.Random, stream: str, *more: dict[str, Any]) -> dict[str, Any]:
    """An operation that reads, in one of the ways that all files have or in one of these."""
    return rng.choice([
        {"op": "read", "f": stream, "n": [rng.choice(_READS)]},
        {"op": "read", "f": stream, "n": [rng.choice(_READS)]},
        {"op": "readline", "f": stream},
        {"op": "readline", "f": stream},
        {"op": "readline", "f": stream, "n": [rng.choice(_READS)]},
        {"op": "read1", "f": stream, "n": [rng.choice(_READS)]},
        {"op": "readinto", "f": stream, "size": rng.choice(_READS)},
        {"op": "iterate", "f": stream, "lines": rng.choice([1, 2, 5])},
        *more,
    ])  # fmt: skip


class _Maker:
    """A program about one child, by the phases between its ``sync`` steps."""

    def __init__(self, rng: random.Random, kind: str) -> None:
        self.rng = rng
        self.kind = kind
        self.files: dict[str, Any] = {}
        self.fifos: dict[str, str] = {}
        self.ops: list[dict[str, Any]] = [{"op": "start", "p": 0}]
        self.room = {"out": _ROOM, "err": _ROOM}
        self.popen = self._popen()
        self.text = any(key in self.popen for key in ("text", "encoding", "errors", "universal_newlines"))
        self.pipes = [name for name in ("stdin", "stdout", "stderr") if self.popen.get(name) == "PIPE"]
        self.outputs = [name for name in self.pipes if name != "stdin"]
        self.buffered = self.text or self.popen.get("bufsize", -1 if kind == "native" else 0) not in (0, 1)
        self.stdin_open = "stdin" in self.pipes
        self.sent = 0

    def _popen(self) -> dict[str, Any]:
        rng = self.rng
        popen: dict[str, Any] = {}
        stdin = rng.choices(["PIPE", "DEVNULL", "file", "fifo", None], [60, 10, 5, 8, 17])[0]
        popen["stdin"] = self._wired(stdin, "input")
        stdout = rng.choices(["PIPE", "DEVNULL", "file", "fifo", None], [82, 4, 6, 3, 5])[0]
        popen["stdout"] = self._wired(stdout, "out")
        popen["stderr"] = self._wired(
            rng.choices(["PIPE", "STDOUT", "DEVNULL", "file", None], [45, 18, 8, 5, 24])[0], "err"
        )
        if rng.random() < 0.4:
            popen["bufsize"] = rng.choice([-1, -1, 0, 1, 10, 4096, 100_000])
        if rng.random() < 0.3:
            popen.update(rng.choice(_TEXTS))
        for name, values, chance in (
            ("pipesize", [4096, 16384, 200_000], 0.12), ("close_fds", [False], 0.08), ("preexec", [True], 0.04),
            ("start_new_session", [True], 0.08), ("restore_signals", [False], 0.08),
        ):  # fmt: skip
            if rng.random() < chance:
                popen[name] = rng.choice(values)
        if popen.get("pipesize") == 4096:
            self.room = {"out": 1500, "err": 1500}
        elif popen.get("pipesize") == 16384:
            self.room = {"out": 8000, "err": 8000}
        return {key: value for key, value in popen.items() if value is not None}

    def _wired(self, spec: Any, name: str) -> Any:
        if spec == "file":
            if name == "input":
                self.files[name] = _data(self.rng)
            return ["file", name, self.rng.choice(["file", "fileno"])]
        if spec == "fifo":
            name = f"fifo-{name}"
            self.fifos[name] = self.rng.choice(["peer", "alone"]) if name == "fifo-input" else "peer"
            return ["fifo", name, self.rng.choice(["file", "fileno", "green" if self.kind == "green" else "file"])]
        return spec

    def program(self) -> Program:
        rng = self.rng
        steps: list[str] = []
        for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):
            steps += self._phase(last=False)
            steps.append("sync")
            self._to_sync()
        big = rng.random() < 0.15 and "pipesize" not in self.popen
        steps += self._phase(last=True, big=big)
        self._ending(big)
        program: Program = {"children": [{"steps": steps, "popen": self.popen}], "ops": self.ops}
        if self.files:
            program["files"] = self.files
        if self.fifos:
            program["fifos"] = self.fifos
        return program

    # what the child does

    def _phase(self, last: bool, big: bool = False) -> list[str]:
        rng = self.rng
        steps: list[str] = []
        if rng.random() < 0.12:
            steps.append("flags")
        if rng.random() < 0.15:
            steps.append(rng.choice(["ignore:15", "onsignal:15:7", "ignore:2", "ignore:13", "onsignal:10:5"]))
        if "stdin" in self.pipes and rng.random() < (0.45 if last else 0.3):
            steps.append(self._reading(last))
        if "pipesize" in self.popen and rng.random() < 0.7:
            steps.append(f"capacity:{rng.choice([0, 1])}")
        written = {"out"} if any(step.startswith("echo:") for step in steps) else set()
        for stream in rng.sample(["out", "err"], rng.choice([0, 1, 1, 1, 2])):
            pipe = "out" if self.popen.get("stderr") == "STDOUT" else stream
            size = min(rng.choice(_SIZES), self.room[pipe])
            if big and stream == "out" and self.outputs == ["stdout"]:
                size = rng.choice([70_000, 131_072, 300_000])
            step = f"{stream}:{size}:{rng.choice(_PATTERNS).hex()}"
            if pipe in written:
                # An unbuffered read that waits may return with the first piece, or with both.
                continue
            written.add(pipe)
            steps.append(step)
            self.room[pipe] -= min(size, self.room[pipe])
        if rng.random() < 0.08:
            steps.append(f"close:{rng.choice([0, 1, 1, 2])}")
        if rng.random() < 0.1:
            steps.append(f"grandchild:{rng.choice(['0', '1', '2', '01', '012', '12'])}")
        if last:
            steps.append(rng.choice(["exit:0", "exit:0", "exit:3", "kill:15", "kill:9"]))
        return steps

    def _reading(self, last: bool) -> str:
        """A step that reads what is written to it before; or until the end of its input."""
        rng = self.rng
        if last:
            return rng.choice(["in:-1", "in:-1", "in:-1", "in:10", "in:100000"])
        if not self.stdin_open:
            return "in:-1"
        if rng.random() < 0.15:
            self.ops.append({"op": "close", "f": "stdin"})
            self.stdin_open = False
            return "in:-1"
        size = rng.choice([1, 5, 100, 1000, 4096])
        self.ops.append({"op": "write", "f": "stdin", "data": _input(rng, self.text, [size, size, size + 7])[:3]})
        if rng.random() < 0.8:
            self.ops.append({"op": "flush", "f": "stdin"})
        return f"{rng.choice(['in', 'in', 'echo'])}:{size}"

    # what is done with it

    def _to_sync(self) -> None:
        """The child is at its next ``sync`` step: look at it in any way, and let it go on."""
        rng = self.rng
        self.ops.append({"op": "await", "p": 0})
        for _ in range(rng.choice([0, 1, 1, 2, 3, 4])):
            operation = self._while_held()
            if operation is not None:
                self._add(operation)
        if rng.random() < 0.9:
            self.ops.append({"op": "go", "p": 0})

    def _add(self, operation: dict[str, Any]) -> None:
        """Add an operation; what a signal of it does is waited for."""
        self.ops.append(operation)
        if any(each["op"] in ("kill", "terminate", "signal") for each in (operation, *operation.get("during", ()))):
            self.ops.append({"op": "await", "p": 0, "signalled": True})

    def _while_held(self) -> dict[str, Any] | None:
        rng = self.rng
        choices = ["timeout", "child"]
        if self.outputs and self.kind != "taken":
            choices += ["read"] * 5 + ["look"] * 2 + ["close"]
        if "stdin" in self.pipes and self.kind != "taken":
            choices += ["write", "close stdin"]
        for name in self.fifos:
            if self.fifos[name] == "peer" and name == "fifo-input":
                if rng.random() >= 0.3:
                    return None
                feed: dict[str, Any] = {"op": "feed", "name": name, "data": _data(rng)}
                return rng.choice([feed, {"op": "hangup", "name": name}])
        kind = rng.choice(choices)
        if kind == "timeout":
            timeout = rng.choice([SHORT, SHORT, 0, -1, 1e-9])
            if rng.random() < 0.4:
                return {"op": "wait", "timeout": timeout}
            operation: dict[str, Any] = {"op": "communicate", "timeout": timeout}
            if "stdin" in self.pipes and rng.random() < 0.5:
                operation["input"] = _input(rng, self.text, [0, 10, 1000, 5000, 100_000])
            return operation
        if kind == "child":
            signal: dict[str, Any] = {"op": "signal", "signal": rng.choice([2, 10, 0])}
            return rng.choice([{"op": "poll"}, {"op": "kill"}, {"op": "terminate"}, signal])
        if kind == "write":
            return {"op": "write", "f": "stdin", "data": _input(rng, self.text, [0, 1, 10, 1000])[:3]}
        if kind == "close stdin":
            return {"op": "close", "f": "stdin"}
        stream = rng.choice(self.outputs)
        if kind == "close":
            return {"op": "close", "f": stream}
        if kind == "look":
            looks: list[dict[str, Any]] = [{"op": "select", "f": stream, "timeout": each} for each in (0.0, SHORT)]
            looks.append({"op": "osread", "f": stream, "size": rng.choice(_READS[1:])})
            looks.append({"op": "capacity" if "pipesize" in self.popen else "blocking", "f": stream})
            return rng.choice(looks)
        return self._blocked(_reading(rng, stream))

    def _blocked(self, operation: dict[str, Any]) -> dict[str, Any]:
        """What may happen to an operation while it waits."""
        rng = self.rng
        if rng.random() < 0.3:
            choices: list[dict[str, Any]] = [{"op": "kill"}, {"op": "terminate"}, {"op": "interrupt"}, {"op": "poll"}]
            if self.kind == "green":
                # Natively, a file that is closed while another thread is in it is anybody's guess.
                choices += [{"op": "close", "f": operation["f"]} for _ in range(3)]
            if self.stdin_open:
                choices.append({"op": "close", "f": "stdin"})
            operation["during"] = rng.sample(choices, rng.choice([1, 1, 2]))
        elif self.kind == "green" and rng.random() < 0.15:
            operation["within"] = SHORT
        return operation

    def _ending(self, big: bool) -> None:
        rng = self.rng
        text = self.text
        add = self._add
        if self.kind == "taken":
            add({"op": "communicate", "timeout": LONG} if rng.random() < 0.5 else {"op": "wait", "timeout": LONG})
            return
        ended = not big and rng.random() < 0.4
        if ended:
            if "stdin" in self.pipes and rng.random() < 0.7:
                add({"op": "close", "f": "stdin"})
            add({"op": "await", "p": 0})
            for _ in range(rng.choice([0, 1, 2, 3])):
                if self.outputs:
                    stream = rng.choice(self.outputs)
                    add(rng.choice([_reading(rng, stream), {"op": "select", "f": stream, "timeout": 0.0}]))
        end = rng.choice(["communicate"] * 6 + ["read", "wait", "exit"])
        if not ended and self.outputs and rng.random() < 0.3:
            # Only what does not depend on how far the child is: what is in a buffer does, and communicate() leaves it.
            stream = rng.choice(self.outputs)
            if self.buffered and end == "read" and rng.random() < 0.5:
                add({"op": "read", "f": stream, "n": [rng.choice(_READS)]})
            elif not self.buffered or end == "read":
                add(self._blocked({"op": "readline", "f": stream}))
        if big and end in ("wait", "exit"):
            end = "communicate"
        if end == "communicate":
            operation: dict[str, Any] = {"op": "communicate"}
            if "stdin" in self.pipes and rng.random() < 0.5:
                operation["input"] = _input(rng, text, [0, 1, 1000, 5000, 70_000, 200_000])
            if rng.random() < 0.3:
                operation["timeout"] = LONG
            add(operation)
            if rng.random() < 0.2:
                add({"op": "communicate"})
        elif end == "read":
            if "stdin" in self.pipes:
                add({"op": "close", "f": "stdin"})
            for stream in self.outputs:
                add(self._blocked({"op": "read", "f": stream, "n": rng.choice([[], [-1]])}))
            add({"op": "wait"})
        elif end == "exit":
            add({"op": "exit"})
        else:
            add({"op": "wait", "timeout": LONG} if rng.random() < 0.5 else {"op": "wait"})
        if rng.random() < 0.1:
            self.ops += [{"op": "await", "p": 0}, {"op": "poll"}]


def _abandoned_program(rng: random.Random) -> Program:
    """A child whose time is up, what is done with it then, and what is left of it."""
    text = rng.choice(_TEXTS) if rng.random() < 0.2 else {}
    popen: dict[str, Any] = {"stdin": "PIPE", **text}
    popen["stdout"] = rng.choice(["PIPE", "PIPE", "PIPE", "DEVNULL"])
    popen["stderr"] = rng.choice(["PIPE", "PIPE", "STDOUT", "DEVNULL"])
    if rng.random() < 0.3:
        popen["pipesize"] = rng.choice([4096, 16384, 200_000])
    steps = [f"out:{rng.choice([0, 10, 1000])}:{rng.choice(_PATTERNS).hex()}"]
    if rng.random() < 0.5:
        steps.append(f"grandchild:{rng.choice(['0', '0', '1', '2', '01', '02', '12', '012'])}")
    if rng.random() < 0.3:
        steps.append(rng.choice(["ignore:15", "onsignal:15:7"]))
    steps.append("sync")
    if "pipesize" in popen:
        steps += ["in:100", "capacity:0"]
    steps += [rng.choice(["in:-1", "echo:-1", "in:1000"]), f"out:10:{rng.choice(_PATTERNS).hex()}", "exit:3"]
    first: dict[str, Any] = {"op": "communicate", "timeout": rng.choice([SHORT, SHORT, 0])}
    if rng.random() < 0.8:
        # The last is more than the largest pipe has room for.
        first["input"] = _input(rng, bool(text), [10, 5000, 100_000, 2_000_000])
    ops = [{"op": "start", "p": 0}, {"op": "await", "p": 0}, first]
    if "pipesize" in popen:
        ops.append({"op": "capacity", "f": rng.choice(["stdin", "stdin", "stdout"])})
    if rng.random() < 0.2:
        ops.append({"op": "communicate", "timeout": SHORT})
    for _ in range(rng.choice([1, 1, 2])):
        what = rng.choice(["kill", "kill", "terminate", "close", "go"])
        ops.append({"op": what, **({"f": rng.choice(["stdin", "stdin", "stdout"])} if what == "close" else {"p": 0})})
        if what in ("kill", "terminate"):
            ops.append({"op": "await", "p": 0, "signalled": True})
    ends: list[dict[str, Any]] = [{"op": "communicate"}, {"op": "communicate", "timeout": LONG}]
    ops.append(rng.choice([*ends, {"op": "wait"}, {"op": "exit"}]))
    return {"children": [{"steps": steps, "popen": popen}], "ops": ops}


def _pipeline_program(rng: random.Random, kind: str) -> Program:
    """``p1 | p2``, as the manual has it."""
    size = rng.choice([0, 10, 1000, 5000, 70_000, 300_000])
    producer = [f"out:{size}:{rng.choice(_PATTERNS).hex()}", "exit:0"]
    reads = rng.choice(["in:-1", "in:-1", "echo:-1", "in:5"])
    consumer = ["flags", reads, f"out:10:{b'done'.hex()}", "exit:0"]
    # The consumer is there, or has gone, before anything comes: it may be given a pipe that does not block.
    producer.insert(0, "sync")
    how = rng.choice(["file", "file", "fileno"])
    first: dict[str, Any] = {"stdout": "PIPE"}
    if rng.random() < 0.3:
        first["bufsize"] = rng.choice([-1, 0, 4096])
    second = {"stdin": ["child", 0, how], "stdout": "PIPE", **({"text": True} if rng.random() < 0.2 else {})}
    ops: list[dict[str, Any]] = [{"op": "start", "p": 0}, {"op": "start", "p": 1}]
    if rng.random() < 0.7:
        ops.append({"op": "close", "f": "stdout", "p": 0})
    ops += [{"op": "await", "p": 1}, {"op": "go", "p": 0}, {"op": "communicate", "p": 1}, {"op": "wait", "p": 0}]
    return {"children": [{"steps": producer, "popen": first}, {"steps": consumer, "popen": second}], "ops": ops}


def _function_program(rng: random.Random) -> Program:
    """``run()``, ``call()`` and their like."""
    steps = [f"{rng.choice(['out', 'err'])}:{rng.choice(_SIZES)}:{rng.choice(_PATTERNS).hex()}"]
    held = rng.random() < 0.4
    if held:
        steps.append("sync")
    if rng.random() < 0.3:
        steps.append(f"out:{rng.choice(_SIZES)}:{rng.choice(_PATTERNS).hex()}")
    steps.append(rng.choice(["exit:0", "exit:3", "kill:9"]))
    function = rng.choice(["run", "run", "check_output", "call", "check_call"])
    popen: dict[str, Any] = {}
    if function in ("run", "check_output") and rng.random() < 0.3:
        popen.update(rng.choice(_TEXTS))
    operation: dict[str, Any] = {"op": "run", "p": 0, "function": function}
    if function == "run":
        operation["check"] = rng.random() < 0.5
        operation["capture_output"] = rng.random() < 0.6
    if function in ("run", "check_output") and rng.random() < 0.4:
        steps.insert(0, "in:-1")
        operation["input"] = _input(rng, bool(popen), [0, 10, 1000, 70_000])
    if held or rng.random() < 0.3:
        operation["timeout"] = SHORT * 4 if held else LONG
    return {"children": [{"steps": steps, "popen": popen}], "ops": [operation]}


def _pipe_program(rng: random.Random) -> Program:
    """Two GreenPipes, the ends of one pipe."""

    def end() -> dict[str, Any]:
        keywords: dict[str, Any] = {}
        if rng.random() < 0.25:
            keywords.update({"text": True, **rng.choice([{}, {"encoding": "utf-8"}, {"encoding": "latin-1"}])})
        if rng.random() < 0.5:
            keywords["buffering"] = rng.choice([-1, 1, 10, 4096, 100_000, *([0] if "text" not in keywords else [])])
        elif rng.random() < 0.4 and "text" not in keywords:
            keywords["buffering"] = 0
        return keywords

    pipes = {"r": end(), "w": end()}
    text = "text" in pipes["w"]
    ops: list[dict[str, Any]] = [{"op": "pipe"}]

    def write() -> list[dict[str, Any]]:
        operation = {"op": "write", "f": "w", "data": _input(rng, text, _SIZES)[:3]}
        return [operation, {"op": "flush", "f": "w"}] if rng.random() < 0.7 else [operation]

    def read() -> dict[str, Any]:
        everything = {"op": "read", "f": "r", "n": rng.choice([[], [-1], [None]])}
        operation = _reading(rng, "r", everything, {"op": "readall", "f": "r"})
        if rng.random() < 0.5:
            close = {"op": "close", "f": "w"}
            operation["during"] = rng.choice([write(), [*write(), close], [close], [{"op": "close", "f": "r"}]])
        elif rng.random() < 0.2:
            operation["within"] = SHORT
        return operation

    for _ in range(rng.choice([1, 2, 3, 5, 8])):
        kind = rng.choice(["write", "write", "read", "read", "other"])
        if kind == "write":
            ops += write()
        elif kind == "read":
            ops.append(read())
        else:
            name = rng.choice(["r", "w"])
            asks = [{"op": each, "f": name} for each in ("tell", "isatty", "readable", "writable", "seekable", "close")]
            ops.append(rng.choice([
                *asks,
                {"op": "seek", "f": name, "args": [0]},
                {"op": "truncate", "f": name, "args": [5]},
                {"op": "select", "f": "r", "timeout": 0.0},
                {"op": "osread", "f": "r", "size": 10, "within": SHORT},
            ]))  # fmt: skip
    ops += [{"op": "close", "f": "w"}, read(), {"op": "close", "f": "r"}]
    return {"pipes": pipes, "ops": ops}


def runs_natively(program: Program) -> bool:
    """Whether a program has a meaning on native threads: no greenlets, nothing closed while another thread is in it."""
    if "pipes" in program:
        return False
    for operation in program["ops"]:
        during = operation.get("during", ())
        if "within" in operation or any(each["op"] == "close" and each["f"] == operation.get("f") for each in during):
            return False
    return True
