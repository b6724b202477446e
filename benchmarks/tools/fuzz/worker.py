"""Runs programs, one after the other, and tells what can be seen of each: one side of a comparison.

Started by path as ``worker.py JSON``, in a process of its own; the JSON is what
:class:`benchmarks.tools.fuzz.sides.Team` says. A program comes as a line of JSON, its outcome goes back as another.
Only what has to be, and what no monkey patch touches, is imported before it: that is a part of what programs see.

A program must end, and end in the same way every time. So nothing in it depends on how long something takes: children
wait at ``sync`` steps until they are let go on. While the program's main line is blocked in an operation and every
child is at rest, the *rescuer* (a greenlet under a hub, else a thread) does what the program has for that moment, and
when there is nothing left it helps: it lets children go on, kills them, releases their grandchildren and closes the
other ends of pipes, in this order. How far it had to go is part of the outcome. Where nothing helps, or where the hub
itself is blocked so that the rescuer does not run, the program hangs.
"""

import faulthandler
import fcntl
import gc
import json
import os
import posix
import struct
import sys
import termios
import time
import zlib
from typing import Any

# Taken before the monkey patch, which replaces them in place.
_read, _write, _close, _open, _pipe, _kill = posix.read, posix.write, posix.close, posix.open, posix.pipe, posix.kill
_monotonic, _pause = time.monotonic, time.sleep
_F_GETPIPE_SZ = 1032

CONFIG = json.loads(sys.argv[1])
HUB, FLAVOUR = CONFIG["hub"], CONFIG["flavour"]
_CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")
GREEN = HUB != "native"


def _prepare():
    """Monkey patch and patch as this side has it; returns the module with the Popen to use, and the fixes applied."""
    import warnings

    warnings.simplefilter("ignore")
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))]
    if FLAVOUR == "taken":
        import subprocess
    if GREEN:
        import eventlet.hubs

        eventlet.hubs.use_hub(HUB)
        if FLAVOUR in ("monkey", "taken"):
            # A native Popen stays where a program took its module's functions before.
            eventlet.monkey_patch(**({"subprocess": False} if FLAVOUR == "taken" else {}))
        import eventlet.green.select
        import eventlet.green.subprocess
        import eventlet.greenio
    import subprocess

    fixes = []
    if CONFIG["patched"]:
        import fastio

        disabled = [] if CONFIG["fixes"] else [name for name in fastio.names() if name.startswith("fix_")]
        report = fastio.patch(disabled=disabled)
        applied = {entry.name for entry in report.entries if entry.outcome.value == "applied"}
        fixes = sorted(name for name in applied if name.startswith("fix_"))
    if CONFIG["plant"]:
        import runpy

        runpy.run_path(CONFIG["plant"])
    return (eventlet.green.subprocess if FLAVOUR == "explicit" else subprocess), fixes


def _shut(file):
    try:
        file.close()
    except Exception:
        pass


class _Line:
    """The worker's own ends of the conversation, out of the way of descriptors that programs see."""

    def __init__(self):
        self.commands = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 100)
        self.answers = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 100)
        self.errors = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, 100)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.close(null)
        self._rest = b""

    def receive(self):
        while b"\n" not in self._rest:
            data = _read(self.commands, 1 << 20)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def send(self, message):
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[_write(self.answers, data) :]


# The visible part of a value


def _digest(data):
    ends = [data[:8].hex(), data[-8:].hex()] if isinstance(data, bytes) else [data[:8], data[-8:]]
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    return [len(data), f"{zlib.crc32(raw):08x}", *ends]


def _tell(value):
    """A value as JSON that is equal for equal values only."""
    if isinstance(value, (bytes, bytearray)):
        return {type(value).__name__: _digest(bytes(value))}
    if isinstance(value, str):
        return {"str": _digest(value)}
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_tell(item) for item in value]}
    return f"<{type(value).__name__}>"


_CLASSES = ("TimeoutExpired", "CalledProcessError", "SubprocessError")
_BUILTINS = (OSError, ValueError, TypeError, AttributeError, KeyboardInterrupt, EOFError, RuntimeError)


def _tell_error(error, timeout, args):
    import re
    import subprocess

    caught = [name for name in _CLASSES if isinstance(error, getattr(subprocess, name))]
    caught += [cls.__name__ for cls in _BUILTINS if isinstance(error, cls)]
    told = {"error": type(error).__name__, "caught": caught}
    if hasattr(error, "cmd"):
        told["cmd"] = error.cmd == args
        for name in ("output", "stdout", "stderr", "returncode"):
            if hasattr(error, name):
                told[name] = _tell(getattr(error, name))
        if hasattr(error, "timeout"):
            # Waiting for the child at the end may have what was left of it.
            told["timeout"] = "whole" if error.timeout == timeout else "other"
    else:
        args = error.args
        if isinstance(error, UnicodeError) and len(args) == 5:
            # All that was being decoded is a matter of how much was read at a time.
            args = (args[0], args[1][args[2] : args[3]], args[4])
        text = ", ".join(repr(value)[:200] for value in args)
        told["args"] = re.sub(r"0x[0-9a-f]+|fd:? ?\d+|fileno ?\d+", "N", text)
    return told


#: Operations that find a child as it is then, that close a pipe, or find out that it is closed.
_SEES_CHILD = ("poll", "kill", "terminate", "signal", "close", "exit", "write", "flush")


class _Gone(Exception):
    """The program names something that it does not have, because what made it failed."""


class Run:
    """One run of a program."""

    def __init__(self, program, scale, module):
        self.program = program
        self.scale = scale
        self.module = module
        #: how long a blocked operation is left alone before it counts as blocked, in seconds
        self.patience = 0.04 * scale
        self.count = len(program.get("children", ()))
        self.popens = {}
        self.files = {}
        self.told = [0] * self.count
        self.gone = [0] * self.count
        self.own = []
        self.peers = {}
        self.rescued = []
        self.now = None
        self.since = 0.0
        self.ended = False
        self.others = []
        self.ticks = 0
        self.select = sys.modules["eventlet.green.select" if GREEN and FLAVOUR == "explicit" else "select"]
        self.os = os
        if GREEN and FLAVOUR == "explicit":
            import eventlet.green.os

            self.os = eventlet.green.os

    # the pipes by which children are synchronised

    def _fifo(self, name):
        os.mkfifo(name)
        fd = _open(name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        return self._keep(fd)

    def _keep(self, fd):
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
        _close(fd)
        self.own.append(high)
        return high

    def give_up(self, fd):
        if fd in self.own:
            self.own.remove(fd)
            _close(fd)

    def set_up(self):
        self.tells = [self._fifo(f"tell.{number}") for number in range(self.count)]
        self.gates = [self._fifo(f"gate.{number}") for number in range(self.count)]
        self.hold = self._fifo("hold")
        for name, (size, pattern) in self.program.get("files", {}).items():
            data = bytes.fromhex(pattern)
            with open(name, "wb") as file:
                file.write((data * (size // len(data) + 1))[:size])
        for name in self.program.get("fifos", {}):
            os.mkfifo(name)
            if self.program["fifos"][name] == "peer":
                self.peers[name] = self._keep(_open(name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))

    def state(self, number):
        """``new``, ``held`` at a sync step, ``asleep``, ``ended`` or ``runs``."""
        popen = self.popens.get(number)
        if popen is None:
            return "new"
        try:
            while _read(self.tells[number], 1):
                self.told[number] += 1
        except BlockingIOError:
            pass
        if popen.returncode is not None:
            return "ended"
        try:
            with open(f"/proc/{popen.pid}/stat", "rb", 0) as file:
                letter = file.read(4096).rpartition(b") ")[2][:1]
        except OSError:
            return "ended"
        if letter in b"ZX":
            return "ended"
        if self.told[number] > self.gone[number]:
            return "held"
        return "asleep" if letter == b"S" else "runs"

    def go(self, number):
        self.gone[number] += 1
        _write(self.gates[number], b"!")

    # the rescuer

    def sleep(self, seconds):
        if GREEN:
            import eventlet

            eventlet.sleep(seconds)
        else:
            _pause(seconds)

    def watch(self):
        """Until the program has ended: see to it that no operation is blocked for ever."""
        quiet, before = 0, None
        while not self.ended:
            self.sleep(0.005)
            self.ticks += 1
            operation: Any = self.now
            since = self.since
            progress = operation and self.progress(operation)
            if not progress or progress != before:
                # Stock may need a trip through the hub for every byte: it is slow, and not blocked.
                quiet, before = 0, progress
                continue
            within = operation.get("within", 0) or operation.get("timeout", 0) or 0
            patience = self.patience + (within * self.scale if 0 < within < 10 else 0)
            states = {number: self.state(number) for number in self.popens}
            quiet = 0 if "runs" in states.values() else quiet + 1
            if _monotonic() - since < patience or quiet < 4 * self.scale or self.now is not operation:
                continue
            self.help(operation, states)
            self.since = _monotonic()
            quiet = 0

    def progress(self, operation):
        """What changes as long as an operation gets on; None while there is something that it has still to read."""

        found = []
        popen = self.popens.get(operation.get("p", 0))
        for name in ("stdin", "stdout", "stderr", "r", "w"):
            stream: Any = self.files.get(name) if name in "rw" else getattr(popen, name, None)
            try:
                count = struct.unpack("i", fcntl.ioctl(stream.fileno(), termios.FIONREAD, bytes(4)))[0]
            except (AttributeError, ValueError, OSError):
                continue
            reads = operation.get("f") == name or operation["op"] == "communicate" and name != "stdin"
            if count and reads and operation["op"] != "write":
                return None
            found.append(count)
        return [*found, getattr(popen, "_input_offset", 0)]

    def help(self, operation, states):
        begun = len([item for item in self.others if item["during"] is operation])
        waiting = operation.get("during", ())[begun:]
        if waiting:
            # Greenlets do all of it before others run. Threads may not, so they do one after the other.
            for each in waiting if GREEN else waiting[:1]:
                item = {"during": operation, "did": None}
                self.others.append(item)
                item["did"] = self.perform(each)
            return
        done = [what for where, what in self.rescued if where is operation]
        held = [number for number, state in states.items() if state == "held"]
        alive = [number for number, state in states.items() if state not in ("ended", "new")]
        if held:
            action = f"go {held[0]}"
            self.go(held[0])
        elif alive and "kill" not in done:
            action = "kill"
            for number in alive:
                _kill(self.popens[number].pid, 9)
        elif "release" not in done:
            action = "release"
            for fd in (self.hold, *self.peers.values()):
                self.give_up(fd)
        elif "close" not in done and self.program.get("pipes"):
            action = "close"
            for name, file in list(self.files.items()):
                if name != operation.get("f"):
                    _shut(file)
        else:
            # Nothing helps. The process is given up.
            LINE.send({"hang": self.index(operation), "rescued": done})
            posix._exit(3)
        self.rescued.append((operation, action))

    def index(self, operation):
        return next((i for i, other in enumerate(self.program["ops"]) if other is operation), -1)

    # operations

    def stream(self, operation):
        name = operation["f"]
        if name in ("stdin", "stdout", "stderr"):
            stream = getattr(self.popen(operation), name)
            if stream is None:
                raise _Gone(name)
            return stream
        if name not in self.files:
            raise _Gone(name)
        return self.files[name]

    def popen(self, operation):
        number = operation.get("p", 0)
        if number not in self.popens:
            raise _Gone(f"child {number}")
        return self.popens[number]

    def seconds(self, timeout):
        """Time-outs that are to expire grow with ``scale``; others are as they are."""
        return timeout * self.scale if timeout is not None and 0 < timeout < 10 else timeout

    def timeout(self, operation):
        return {"timeout": self.seconds(operation["timeout"])} if "timeout" in operation else {}

    def data(self, spec):
        """What is written: ``[size, pattern]``, and the type that it has."""
        size, pattern, *kind = spec
        raw = bytes.fromhex(pattern)
        raw = (raw * (size // len(raw) + 1))[:size]
        kind = kind[0] if kind else "bytes"
        if kind == "str":
            return raw.decode("latin-1")
        if kind == "array":
            import array

            return array.array("I", raw[: size // 4 * 4])
        return {"bytes": bytes, "bytearray": bytearray, "memoryview": memoryview}[kind](raw)

    def wiring(self, spec, writes):
        module = self.module
        if spec in (None, "PIPE", "DEVNULL", "STDOUT"):
            return spec and getattr(module, spec)
        kind, name, *rest = spec
        how = rest[0] if rest else "file"
        if kind == "child":
            stream = self.popens[name].stdout if name in self.popens else None
            if stream is None:
                raise _Gone(f"child {name}")
            return stream.fileno() if how == "fileno" else stream
        if kind == "file":
            file = open(name, "wb" if writes else "rb", 0)  # noqa: SIM115
        else:
            fd = _open(name, (os.O_RDWR if writes else os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC)
            if how == "green" and GREEN:
                import eventlet.greenio

                return self.opened(eventlet.greenio.GreenPipe(fd, "wb" if writes else "rb", 0))
            os.set_blocking(fd, True)
            file = os.fdopen(fd, "wb" if writes else "rb", 0)
        self.opened(file)
        return file.fileno() if how == "fileno" else file

    def opened(self, file):
        self.files[f"wired{len(self.files)}"] = file
        return file

    def start(self, operation):
        import functools

        number = operation["p"]
        spec = self.program["children"][number]
        keywords = dict(spec.get("popen", {}))
        for name in ("stdin", "stdout", "stderr"):
            if name in keywords:
                keywords[name] = self.wiring(keywords[name], name != "stdin")
        if keywords.pop("preexec", False):
            keywords["preexec_fn"] = functools.partial(len, [])
        return self.command(number, spec), keywords

    def command(self, number, spec):
        return [os.path.realpath(sys.executable), "-I", "-S", _CHILD, str(number), *spec["steps"]]

    def perform(self, operation):
        """Do one operation; returns what can be seen of it."""
        within = operation.get("within")
        args = self.command(0, self.program["children"][0]) if self.count else None
        try:
            if within and GREEN:
                import eventlet

                with eventlet.Timeout(within * self.scale):
                    value = self.do(operation)
            else:
                value = self.do(operation)
        except _Gone as error:
            return {"gone": str(error)}
        except BaseException as error:
            if operation.get("p"):
                args = self.command(operation["p"], self.program["children"][operation["p"]])
            return _tell_error(error, self.seconds(operation.get("timeout")), args)
        return {"value": _tell(value)}

    def do(self, operation):
        name = operation["op"]
        if hasattr(self, f"do_{name}"):
            return getattr(self, f"do_{name}")(operation)
        if name in _OF_CHILDREN:
            return _OF_CHILDREN[name](self, operation, self.popen(operation))
        if name in _OF_STREAMS:
            return _OF_STREAMS[name](self, operation, self.stream(operation))
        if name in _OF_ALL:
            return _OF_ALL[name](self, operation)
        # The method of that name of a stream.
        return getattr(self.stream(operation), name)(*operation.get("n", operation.get("args", ())))

    def do_start(self, operation):
        command, keywords = self.start(operation)
        self.popens[operation["p"]] = self.module.Popen(command, **keywords)

    def do_run(self, operation):
        command, keywords = self.start(operation)
        keywords |= self.timeout(operation)
        if operation.get("input"):
            keywords["input"] = self.data(operation["input"])
            keywords.pop("stdin", None)
        for key in ("check", "capture_output"):
            if key in operation:
                keywords[key] = operation[key]
        popen_class, run = self.module.Popen, self
        # The rescuer has to know of the child while the function is at work.
        original = popen_class.__init__

        def noted(popen, *args, **kwargs):
            original(popen, *args, **kwargs)
            run.popens[operation["p"]] = popen

        popen_class.__init__ = noted
        try:
            result = getattr(self.module, operation["function"])(command, **keywords)
        finally:
            popen_class.__init__ = original
        if operation["function"] == "run":
            return [result.returncode, result.stdout, result.stderr]
        return result

    def do_await(self, operation):
        """Until the child is held, has ended or sleeps."""
        number = operation["p"]
        self.popen(operation)
        if operation.get("signalled"):
            # A signal has not taken effect yet when it has been sent.
            self.sleep(0.02 * self.scale)
        asleep = 0
        while True:
            state = self.state(number)
            if state in ("held", "ended"):
                return state
            asleep = asleep + 1 if state == "asleep" else 0
            if asleep > 30 * self.scale:
                return state
            self.sleep(0.002)

    def do_iterate(self, operation):
        stream, lines = self.stream(operation), []
        for line in stream:
            lines.append(line)
            if len(lines) >= operation["lines"]:
                break
        return lines

    def do_readinto(self, operation):
        stream = self.stream(operation)
        buffer = bytearray(operation["size"])
        count = stream.readinto(buffer)
        return [count, bytes(buffer[: count or 0])]

    def do_pipe(self, operation):
        import eventlet.greenio

        spec = self.program["pipes"]
        read_end, write_end = _pipe()
        for name, fd, mode in (("r", read_end, "r"), ("w", write_end, "w")):
            keywords = dict(spec[name])
            mode += "" if keywords.pop("text", False) else "b"
            self.files[name] = eventlet.greenio.GreenPipe(fd, mode, **keywords)

    # all of it

    def main(self):
        self.seen = []
        for operation in self.program["ops"]:
            expires = operation["op"] in ("wait", "communicate") and operation.get("timeout", 99) < 10
            if expires or operation["op"] in _SEES_CHILD or self.sends(operation):
                # A child that has closed its pipes may be about to end, and one that writes meets an open pipe or not.
                self.settle()
            ticks, began = self.ticks, _monotonic()
            self.since, self.now = began, operation
            seen = self.perform(operation)
            self.now = None
            took = _monotonic() - began
            seen["rescued"] = [what for where, what in self.rescued if where is operation]
            if "kill" in seen["rescued"]:
                # What ends an operation is that the pipes are closed, a moment before the child can be waited for.
                self.sleep(0.02 * self.scale)
                self.settle()
            did = [item["did"] for item in self.others if item["during"] is operation]
            if did:
                seen["others"] = did
            if seen.get("error") in ("TimeoutExpired", "Timeout") and took > 0.05:
                seen["others ran"] = self.ticks > ticks
            popen = self.popens.get(operation.get("p", 0))
            if popen is not None:
                seen["returncode"] = popen.returncode
            seen["closed"] = self.closed(popen)
            self.seen.append(seen)
        # Children that were not waited for may still be writing their reports.
        self.settle()

    def sends(self, operation):
        """Whether an operation may find out that the child reads no more."""
        popen = self.popens.get(operation.get("p", 0))
        return operation["op"] == "communicate" and popen is not None and popen.stdin is not None

    def settle(self):
        """Until every child is at rest."""
        for number in self.popens:
            self.do_await({"p": number})

    def closed(self, popen):
        streams = {name: getattr(popen, name, None) for name in ("stdin", "stdout", "stderr")}
        streams.update({name: file for name, file in self.files.items() if name in ("r", "w")})
        return [name for name, stream in streams.items() if stream is not None and stream.closed]

    def clean_up(self):
        """End what is left, without letting it be seen."""
        for fd in self.own:
            _close(fd)
        for popen in self.popens.values():
            for name in ("stdin", "stdout", "stderr"):
                stream = getattr(popen, name)
                if stream is not None:
                    _shut(stream)
            if popen.returncode is None:
                try:
                    _kill(popen.pid, 9)
                    _, status = posix.waitpid(popen.pid, 0)
                    popen.returncode = -9
                except OSError:
                    popen.returncode = 0
        for file in self.files.values():
            _shut(file)
        self.popens.clear()
        self.files.clear()

    def left(self):
        """What children found out and what is in files."""

        left: dict[str, list[Any]] = {}
        for name in sorted(os.listdir(".")):
            if name.startswith("report."):
                with open(name) as file:
                    left[name] = file.read().splitlines()
            elif os.path.isfile(name):
                with open(name, "rb") as file:
                    data = file.read()
                left[name] = [len(data), f"{zlib.crc32(data):08x}"]
        return left


_OF_CHILDREN = {
    "poll": lambda run, operation, popen: popen.poll(),
    "kill": lambda run, operation, popen: popen.kill(),
    "terminate": lambda run, operation, popen: popen.terminate(),
    "signal": lambda run, operation, popen: popen.send_signal(operation["signal"]),
    "wait": lambda run, operation, popen: popen.wait(**run.timeout(operation)),
    "exit": lambda run, operation, popen: popen.__exit__(None, None, None),
    "go": lambda run, operation, popen: run.go(operation["p"]),
    "communicate": lambda run, operation, popen: popen.communicate(
        run.data(operation["input"]) if "input" in operation else None, **run.timeout(operation)
    ),
}
_OF_STREAMS = {
    "write": lambda run, operation, stream: stream.write(run.data(operation["data"])),
    "osread": lambda run, operation, stream: run.os.read(stream.fileno(), operation["size"]),
    "capacity": lambda run, operation, stream: fcntl.fcntl(stream.fileno(), _F_GETPIPE_SZ),
    "blocking": lambda run, operation, stream: os.get_blocking(stream.fileno()),
    "select": lambda run, operation, stream: [
        len(each) for each in run.select.select([stream], [], [], run.seconds(operation["timeout"]))
    ],
}
_OF_ALL = {
    # Something is written to a named pipe from outside, or this end of it is closed.
    "feed": lambda run, operation: _write(run.peers[operation["name"]], run.data(operation["data"])),
    "hangup": lambda run, operation: run.give_up(run.peers.pop(operation["name"])),
    # A signal to the process itself, whose handler only counts.
    "interrupt": lambda run, operation: _kill(os.getpid(), 10),
}


def _run(program, scale, module):
    """Run a program in a directory of its own; returns its outcome."""
    import shutil
    import tempfile

    directory = tempfile.mkdtemp(dir=CONFIG["directory"])
    os.chdir(directory)
    fds = len(os.listdir("/proc/self/fd"))
    run = Run(program, scale, module)
    try:
        run.set_up()
        if GREEN:
            import eventlet

            rescuer = eventlet.spawn(run.watch)
            eventlet.spawn(run.main).wait()
            run.ended = True
            rescuer.wait()
        else:
            import threading

            rescuer = threading.Thread(target=run.watch, daemon=True)
            rescuer.start()
            run.main()
            run.ended = True
            rescuer.join()
    finally:
        run.clean_up()
    left = run.left()
    seen = run.seen
    run = None  # type: ignore[assignment]
    gc.collect()
    leaked = len(os.listdir("/proc/self/fd")) - fds
    os.chdir("/")
    shutil.rmtree(directory, ignore_errors=True)
    return {"ops": seen, "left": left, "leaked": leaked, "green": GREEN and FLAVOUR != "taken"}


def main():
    import signal

    faulthandler.enable(LINE.errors)
    try:
        module, fixes = _prepare()
    except Exception:
        import traceback

        _write(LINE.errors, traceback.format_exc().encode())
        posix._exit(1)
    signal.signal(signal.SIGUSR1, lambda *_: None)

    gc.collect()
    gc.freeze()
    LINE.send({"ready": True, "fixes": fixes})
    while True:
        message = LINE.receive()
        if message is None:
            posix._exit(0)
        LINE.send(_run(message["program"], message["scale"], module))


LINE = _Line()
if __name__ == "__main__":
    main()
