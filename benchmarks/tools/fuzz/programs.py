"""Random programs, as data, by strategies of Hypothesis.

A program is what JSON can hold::

    {"children": [{"steps": ["out:10:61", "sync", "in:-1"], "popen": {"stdin": "PIPE", "bufsize": 0, …}}],
     "files": {"data": [1000, "6162"]},
     "ops": [{"op": "start", "p": 0}, {"op": "await", "p": 0}, {"op": "read", "f": "stdout", "n": [5],
              "during": [{"op": "kill"}]}, …]}

``during`` are operations of another greenlet or thread, done while the program's line is blocked in this one, or of a
signal handler (``interrupt``). ``together`` has ``turns``, one list of operations for each greenlet or thread.
:mod:`child` says what the steps are; the operations are those in the tables of :mod:`worker`, and methods of streams.
Time-outs below ten seconds are meant to expire, others never do.

The outcome of a program must not be a matter of chance: a call that returns as much as there is (an unbuffered
``read(n)``, ``select``, ``os.read``) is only done while the child is held at a ``sync`` step or has ended; in between
is only what waits for all of something. And nothing is left in a pipe that may not fit into it.
"""

from typing import Any

from hypothesis import strategies as st

#: For ``Timeout`` and time-outs that expire, in seconds.
SHORT = 0.06
LONG = 60
_PATTERNS = [data.hex() for data in (
    b"x", b"\n", b"a line of text\n", b"one\r\ntwo\rthree\n", bytes(range(256)), "größe €\n".encode(),
    b"no line end in this", b"\xff\xfe", b"0123456789abcdef" * 7 + b"\n",
)]  # fmt: skip
_SIZES = [0, 1, 2, 5, 10, 15, 60, 100, 511, 512, 513, 1000, 4095, 4096, 4097, 8191, 8192, 8193, 10_000]
_READS = [0, 1, 2, 3, 10, 100, 1000, 4096, 5000, 8192, 10_000, 65_536]
#: All that a child writes before a read must fit into a pipe of this size, or a default one.
_ROOM = {None: 45_000, 200_000: 45_000, 16384: 8000, 4096: 1500}
_TEXTS: list[dict[str, Any]] = [
    {"text": True}, {"universal_newlines": True}, {"encoding": "utf-8"}, {"encoding": "latin-1"},
    {"encoding": "utf-16"}, {"encoding": "ascii", "errors": "replace"}, {"encoding": "utf-8", "errors": "ignore"},
    {"errors": "surrogateescape"},
]  # fmt: skip
#: Methods that a subclass of Popen overrides.
_OVERRIDES = [["poll"], ["wait"], ["deadline"], ["_communicate"], ["poll", "wait", "communicate", "kill"]]
_TEXT_KEYS = {key for text in _TEXTS for key in text}

Program = dict[str, Any]
Operation = dict[str, Any]


@st.composite
def programs(draw: st.DrawFn, kind: str) -> Program:
    """Programs for a group of this kind: ``native``, ``green`` or ``taken``."""
    make = _Maker(draw, kind)
    others = {"native": [make.contended] * 5, "taken": []}
    others["green"] = [*others["native"], make.pipe, make.pipe, make.shared_pipe, make.shared_file, make.shared_file]
    program: Program = make.pick(*[make.one_child] * 8, *others[kind])()
    return program


def runs_natively(program: Program) -> bool:
    """Whether a program has a meaning on native threads: no greenlets, nothing closed while another thread is in it."""
    return "pipes" not in program and not any(
        "within" in each or "turns" in each
        or any(other["op"] == "close" and other["f"] == each.get("f") for other in each["during"])
        for each in ({"during": (), **operation} for operation in program["ops"])
    )  # fmt: skip


def _op(name: str, /, **more: Any) -> Operation:
    return {"op": name, **more}


class _Maker:
    """Makes one program; the first of the choices is the simplest one, to which Hypothesis shrinks."""

    def __init__(self, draw: st.DrawFn, kind: str) -> None:
        self.draw = draw
        self.kind = kind
        self.ops: list[Operation] = []

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def out(self, stream: str, size: int) -> str:
        return f"{stream}:{size}:{self.pick(*_PATTERNS)}"

    def input(self, text: bool, *sizes: int) -> list[Any]:
        """The data to send: its size, the pattern and its type."""
        size = self.pick(*sizes)
        if text:
            return [size, self.pick(b"x", b"text\n", b"\xe4\xf6\n").hex(), "str"]
        kinds = ["bytes", "bytes", "bytearray", "memoryview", "array"]
        return [size, self.pick(*_PATTERNS), self.pick(*kinds)]

    def reading(self, stream: str, *more: Operation) -> Operation:
        """An operation that reads, in one of the ways that all files have or in one of these."""
        size = self.pick(*_READS)
        read, line = _op("read", f=stream, n=[size]), _op("readline", f=stream)
        operation = self.pick(
            read, read, line, line, _op("readline", f=stream, n=[size]), _op("read1", f=stream, n=[size]),
            _op("readinto", f=stream, size=size), _op("iterate", f=stream, lines=self.pick(1, 2, 5)), *more,
        )  # fmt: skip
        return dict(operation)

    # one child, by the phases between its ``sync`` steps

    def one_child(self) -> Program:
        self.add(_op("start", p=0))
        self.popen = self.keywords()
        room = _ROOM[self.popen.get("pipesize")]
        self.room = {"out": room, "err": room}
        self.text = bool(_TEXT_KEYS & set(self.popen))
        self.pipes = [name for name in ("stdin", "stdout", "stderr") if self.popen.get(name) == "PIPE"]
        self.outputs = [name for name in self.pipes if name != "stdin"]
        self.buffered = self.text or self.popen.get("bufsize", -1 if self.kind == "native" else 0) not in (0, 1)
        self.stdin_open = "stdin" in self.pipes
        # Natively, stock itself loses what a read is too short for.
        steps = ["packets:1"] if self.kind == "green" and self.chance(12) else []
        for _ in range(self.pick(0, 1, 1, 1, 2, 2, 3)):
            steps += [*self.phase(), "sync"]
            self.add(_op("await", p=0))
            for _ in range(self.pick(0, 1, 1, 2, 3, 4)):
                self.while_held()
            if not self.chance(10):
                self.add(_op("go", p=0))
        big = self.outputs == ["stdout"] and "pipesize" not in self.popen and self.chance(30)
        steps += self.phase(last=True, big=big)
        self.end(big)
        return {"children": [{"steps": steps, "popen": self.popen}], "ops": self.ops}

    def keywords(self) -> dict[str, Any]:
        popen: dict[str, Any] = {
            "stdin": self.pick(*[None] * 3, *["PIPE"] * 12, *["DEVNULL"] * 2),
            "stdout": self.pick(*["PIPE"] * 16, None, "DEVNULL"),
            "stderr": self.pick(*[None] * 5, *["PIPE"] * 9, *["STDOUT"] * 4, "DEVNULL"),
        }
        for name, values, percent in (
            ("bufsize", [-1, -1, 0, 1, 10, 4096, 100_000], 40), ("pipesize", [4096, 16384, 200_000], 12),
            ("overrides", _OVERRIDES, 12),
        ):  # fmt: skip
            if self.chance(percent):
                popen[name] = self.pick(*values)
        popen.update(self.pick(*_TEXTS) if self.chance(30) else {})
        return {key: value for key, value in popen.items() if value is not None}

    def phase(self, last: bool = False, big: bool = False) -> list[str]:
        steps: list[str] = []
        if "stdin" in self.pipes and self.chance(45 if last else 30):
            steps.append(self.pick("in:-1", "in:-1", "in:-1", "in:10", "in:100000") if last else self.received())
        if "pipesize" in self.popen and self.chance(70):
            steps.append(f"capacity:{self.pick(0, 1)}")
        # An unbuffered read that waits may return with the first piece, or with both: each pipe gets one piece.
        written = {"out"} if any(step.startswith("echo:") for step in steps) else set()
        for stream in self.pick([], ["out"], ["out"], ["err"], ["err"], ["out", "err"], ["err", "out"]):
            pipe = "out" if self.popen.get("stderr") == "STDOUT" else stream
            if pipe not in written:
                size = min(self.pick(*_SIZES), self.room[pipe])
                if big and stream == "out":
                    size = self.pick(70_000, 131_072, 300_000)
                steps.append(self.out(stream, size))
                written.add(pipe)
                self.room[pipe] -= min(size, self.room[pipe])
        if self.chance(8):
            steps.append(f"close:{self.pick(0, 1, 1, 2)}")
        if self.chance(10):
            steps.append(f"grandchild:{self.pick('0', '1', '2', '01', '012', '12')}")
        return [*steps, self.pick("exit:0", "exit:0", "exit:3", "kill:15", "kill:9")] if last else steps

    def received(self) -> str:
        """A step that reads what is written to it before; or until the end of its input."""
        if self.stdin_open and self.chance(15):
            self.add(_op("close", f="stdin"))
            self.stdin_open = False
        if not self.stdin_open:
            return "in:-1"
        size = self.pick(1, 5, 100, 1000, 4096)
        self.add(_op("write", f="stdin", data=self.input(self.text, size, size, size + 7)))
        if not self.chance(20):
            self.add(_op("flush", f="stdin"))
        return f"{self.pick('in', 'in', 'echo')}:{size}"

    def add(self, operation: Operation) -> None:
        """Add an operation; what a signal of it does is waited for."""
        self.ops.append(operation)
        if any(each["op"] in ("kill", "terminate") for each in (operation, *operation.get("during", ()))):
            self.ops.append(_op("await", p=0, signalled=True))

    def while_held(self) -> None:
        """Add something that is done while the child is at a ``sync`` step."""
        kinds = ["child", "timeout"]
        if self.kind != "taken":
            kinds += [*["read"] * 5, "look", "look", "close"] if self.outputs else []
            kinds += ["write", "close stdin"] if "stdin" in self.pipes else []
        kind = self.pick(*kinds)
        stream = self.pick(*self.outputs) if self.outputs else ""
        if kind == "timeout":
            operation = _op(self.pick("wait", "communicate"), timeout=self.pick(SHORT, SHORT, 0, -1, 1e-9))
            if operation["op"] == "communicate" and "stdin" in self.pipes and self.chance(50):
                operation["input"] = self.input(self.text, 0, 10, 1000, 5000, 100_000)
        elif kind == "child":
            operation = self.pick(_op("poll"), _op("kill"), _op("terminate"), _op("reap"))
        elif kind == "write":
            operation = _op("write", f="stdin", data=self.input(self.text, 0, 1, 10, 1000))
        elif kind == "look":
            operation = self.pick(
                _op("select", f=stream, timeout=0.0), _op("select", f=stream, timeout=SHORT),
                _op("osread", f=stream, size=self.pick(*_READS[1:])), _op("capacity", f=stream),
            )  # fmt: skip
        elif kind == "read":
            operation = self.blocked(self.reading(stream))
        else:
            operation = _op("close", f="stdin" if kind == "close stdin" else stream)
        self.add(operation)

    def blocked(self, operation: Operation) -> Operation:
        """Return ``operation`` with an event that may happen while it waits."""
        if self.chance(30):
            # Natively, the outcome of closing a file while another thread is in it is undefined.
            choices = [_op("close", f=operation["f"])] * 3 if self.kind == "green" else []
            choices += [_op("close", f="stdin")] if self.stdin_open else []
            choices = [_op("poll"), _op("kill"), _op("terminate"), _op("reap"), *[self.interrupt()] * 2, *choices]
            operation["during"] = [self.pick(*choices) for _ in range(self.pick(1, 1, 2))]
        elif self.kind == "green" and self.chance(15):
            operation["within"] = SHORT
        return operation

    def interrupt(self) -> Operation:
        """A signal whose handler uses the child, too."""
        does = _op("poll"), _op("kill"), _op("wait", timeout=0), _op("communicate"), _op("communicate", timeout=0)
        operation = _op("interrupt", do=[dict(self.pick(_op("yield"), *does))] if self.chance(70) else [])
        if self.chance(40):
            operation["raises"] = True
        if self.kind == "green" and self.chance(40):
            operation["hub"] = True
        return operation

    def end(self, big: bool) -> None:
        if self.kind == "taken":
            self.add(_op(self.pick("wait", "communicate"), timeout=LONG))
            return
        ended = not big and self.chance(40)
        if ended:
            if "stdin" in self.pipes and self.chance(70):
                self.add(_op("close", f="stdin"))
            self.add(_op("await", p=0))
            for _ in range(self.pick(0, 1, 2, 3) if self.outputs else 0):
                stream = self.pick(*self.outputs)
                self.add(self.pick(self.reading(stream), _op("select", f=stream, timeout=0.0)))
        end = self.pick(*["communicate"] * 6, "read", *([] if big else ["wait", "exit"]))
        if not ended and self.outputs and self.chance(30):
            # Only what does not depend on how far the child is: what is in a buffer does, and communicate() leaves it.
            stream = self.pick(*self.outputs)
            if self.buffered and end == "read" and self.chance(50):
                self.add(_op("read", f=stream, n=[self.pick(*_READS)]))
            elif not self.buffered or end == "read":
                self.add(self.blocked(_op("readline", f=stream)))
        if end == "read":
            if "stdin" in self.pipes:
                self.add(_op("close", f="stdin"))
            for stream in self.outputs:
                self.add(self.blocked(_op("read", f=stream, n=self.pick([], [-1]))))
        operation = _op({"read": "wait"}.get(end, end))
        if end == "communicate" and "stdin" in self.pipes and self.chance(50):
            operation["input"] = self.input(self.text, 0, 1, 1000, 5000, 70_000, 200_000)
        if end in ("communicate", "wait") and self.chance(40):
            operation["timeout"] = LONG
        self.ops += [operation, *([_op("communicate")] if end == "communicate" and self.chance(20) else [])]
        self.ops += [_op("await", p=0), _op("poll")] if self.chance(10) else []

    # other programs

    def pipe(self) -> Program:
        """Two GreenPipes, the ends of one pipe."""
        pipes: dict[str, dict[str, Any]] = {}
        for name in ("r", "w"):
            pipes[name] = self.pick({}, {}, {}, {"text": True}, {"text": True, "encoding": "latin-1"}).copy()
            if self.chance(60):
                pipes[name]["buffering"] = self.pick(-1, 1, 10, 4096, 100_000, *([] if pipes[name] else [0, 0, 0]))

        def write() -> list[Operation]:
            operation = _op("write", f="w", data=self.input("text" in pipes["w"], *_SIZES))
            return [operation] if self.chance(30) else [operation, _op("flush", f="w")]

        def read() -> Operation:
            more = _op("read", f="r", n=self.pick([], [-1], [None])), _op("readall", f="r")
            operation = self.reading("r", *more)
            if self.chance(50):
                close = _op("close", f="w")
                operation["during"] = self.pick(write(), [*write(), close], [close], [_op("close", f="r")])
            elif self.chance(20):
                operation["within"] = SHORT
            return operation

        ops: list[Operation] = [_op("pipe")]
        for _ in range(self.pick(1, 2, 3, 5, 8)):
            name = self.pick("r", "w")
            other = self.pick(
                _op("close", f=name), _op("select", f="r", timeout=0.0), _op("osread", f="r", size=10, within=SHORT)
            )
            ops += self.pick(write, write, lambda: [read()], lambda: [read()], lambda o=other: [o])()
        ops += [_op("close", f="w"), read(), _op("close", f="r")]
        return {"pipes": pipes, "ops": ops}

    # objects in use by several at the same moment

    def contended(self) -> Program:
        """One child that several greenlets, threads or handlers use while it is held."""
        popen: dict[str, Any] = {
            "stdin": self.pick("PIPE", "DEVNULL"),
            "stdout": "PIPE",
            "stderr": self.pick("PIPE", "STDOUT"),
        }
        for key, values, percent in (("bufsize", [-1, 0, 4096], 40), ("overrides", _OVERRIDES, 30)):
            if self.chance(percent):
                popen[key] = self.pick(*values)
        steps = ["packets:1"] if self.kind == "green" and self.chance(20) else []
        steps += [self.out("out", self.pick(0, 10, 1000, 5000, 9000)), "sync", *self.pick(["in:-1"], [])]
        steps += [self.out("out", self.pick(0, 10, 1000, 30_000)), "exit:3"]
        uses = [
            _op("communicate"),
            _op("communicate", timeout=SHORT),
            _op("wait"),
            _op("wait", timeout=SHORT),
            _op("poll"),
        ]
        kills = [_op("kill"), _op("terminate"), _op("reap")]
        reads = [_op("read", f="stdout", n=[]), _op("readline", f="stdout"), _op("read", f="stdout", n=[10])]
        closes = [_op("close", f=name) for name in ("stdin", "stdout") if popen[name] == "PIPE"]
        if popen["stdin"] == "PIPE":
            uses += [_op("communicate", input=[self.pick(10, 5000, 2_000_000), "78"])]
        self.ops = [_op("start", p=0), _op("await", p=0)]
        for _ in range(self.pick(1, 1, 2)):
            first = dict(self.pick(*uses, *reads))
            if self.kind == "green" and self.chance(50):
                turns = [[dict(self.pick(*uses, *kills, *reads, *closes))] for _ in range(self.pick(1, 1, 2, 3))]
                first = _op("together", turns=[[first], *turns])
            else:
                closes = [] if self.kind == "native" and first["op"] != "wait" else closes
                others = [*uses[2:5], *kills, *closes] if self.kind == "native" else [*uses, *kills, *reads, *closes]
                first["during"] = [self.pick(self.interrupt(), *others) for _ in range(self.pick(1, 1, 2))]
            self.add(first)
        self.ops += [_op("go", p=0)] if self.chance(60) else []
        self.ops += [dict(self.pick(_op("communicate"), _op("wait"), _op("exit")))]
        return {"children": [{"steps": steps, "popen": popen}], "ops": self.ops}

    def shared_file(self) -> Program:
        """A regular file that greenlets share, and that is cut or extended from elsewhere."""
        mode = self.pick("r+b", "r+b", "a+b", "r+")
        buffering = self.pick(*([-1, 4096] if mode == "r+" else [-1, 0, 10, 4096]))

        def turn() -> list[Operation]:
            seek = _op("seek", f="shared", args=[self.pick(0, 1, 100, 5000)])
            write = _op("write", f="shared", data=self.input(mode == "r+", 1, 100, 5000, 20_000))
            flush, cut = _op("flush", f="shared"), _op("cut", name="data", size=self.pick(0, 100, 50_000))
            read = self.pick(_op("readline", f="shared"), _op("read", f="shared", n=[self.pick(1, 100, 10_000)]))
            pairs = [[seek, read], [seek, write], [seek, write, flush], [write, flush], [read], [flush, cut]]
            return [*self.pick(*pairs), *(self.pick(*pairs) if self.chance(50) else [])]

        data = [self.pick(1000, 10_000, 100_000), self.pick(*_PATTERNS[:4])]
        self.ops = [_op("open", name="data", mode=mode, buffering=buffering)]
        for _ in range(self.pick(1, 1, 2)):
            self.ops += [_op("together", file=True, turns=[turn() for _ in range(self.pick(2, 2, 3))])]
        return {"files": {"data": data}, "ops": [*self.ops, _op("close", f="shared")]}

    def shared_pipe(self) -> Program:
        """Two GreenPipes on which several greenlets read, write and close."""
        pipes = {name: self.pick({}, {"buffering": 0}, {"buffering": 4096}).copy() for name in ("r", "w")}
        flush, close = _op("flush", f="w"), _op("close", f="w")

        def writes() -> list[Operation]:
            write = _op("write", f="w", data=self.input(False, 10, 1000, 5000, 2_000_000))
            return [write, flush, *([close] if self.chance(40) else [])]

        def reads() -> list[Operation]:
            read = _op("read", f="r", n=self.pick([], [10], [5000]))
            return [dict(self.pick(read, _op("readline", f="r"), _op("osread", f="r", size=100)))]

        turns = [writes(), reads()]
        for _ in range(self.pick(0, 1, 1, 2)):
            turns.append(self.pick(writes, reads, lambda: [_op("close", f=self.pick("r", "w"))])())
        return {"pipes": pipes, "ops": [_op("pipe"), _op("together", turns=self.draw(st.permutations(turns)))]}
