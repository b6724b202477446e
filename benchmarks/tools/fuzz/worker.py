"""Runs programs, one after the other, and reports what can be seen of each: one side of a comparison.

Started by path as ``worker.py JSON``, in a separate process; the JSON is what
:class:`benchmarks.tools.fuzz.sides.Team` says. A program comes as a line of JSON, its outcome goes back as another.
Only necessary modules, and modules that no monkey patch touches, are imported before it: programs see these imports.

A program must end, and end in the same way every time. Nothing in it therefore depends on how long something takes:
children wait at ``sync`` steps until they are let go on. While the program's main line is blocked in an operation and
every child is at rest, the *rescuer* (a greenlet under a hub, else a thread) has another greenlet, thread or signal
handler do what the program has for that moment. When there is nothing left the rescuer helps: it lets children go on,
kills them, releases their grandchildren and closes the other ends of pipes, in this order. How far it had to go is part
of the outcome. Where nothing helps, or where the hub itself is blocked so that the rescuer does not run, the program
hangs.
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
        import eventlet.green.os
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


def _pause_here(seconds):
    """Let others run: greenlets under a hub, threads natively."""
    if GREEN:
        import eventlet

        eventlet.sleep(seconds)
    else:
        _pause(seconds)


class _Actor:
    """A greenlet, natively a thread, that calls a function."""

    def __init__(self, function, *args):
        import threading

        self.ended = False
        self._call = (function, args)
        if GREEN:
            import eventlet

            eventlet.spawn(self._act)
        else:
            threading.Thread(target=self._act, daemon=True).start()

    def _act(self):
        try:
            self._call[0](*self._call[1])
        finally:
            self.ended = True

    def join(self, seconds):
        """Wait for its end; returns whether it has come."""
        end = _monotonic() + seconds
        while not self.ended and _monotonic() < end:
            _pause_here(0.001)
        return self.ended


def _out_of_the_way():
    """The worker's own ends of the conversation, with numbers that programs do not see."""
    own = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in (0, 1, 2)]
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    return [open(fd, mode) for fd, mode in zip(own, "rww", strict=True)]


def _answer(message):
    print(json.dumps(message), file=ANSWERS, flush=True)


# The visible part of a value


def _tell(value):
    """A value as JSON that is equal for equal values only."""
    if isinstance(value, (bytes, bytearray, str)):
        raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
        return {type(value).__name__: [len(value), f"{zlib.crc32(raw):08x}", raw[:8].hex(), raw[-8:].hex()]}
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_tell(item) for item in value]}
    return f"<{type(value).__name__}>"


_CLASSES = ("TimeoutExpired", "SubprocessError")
_BUILTINS = (OSError, ValueError, TypeError, AttributeError, KeyboardInterrupt, EOFError, RuntimeError)


def _tell_error(error, timeout, args):
    import re
    import subprocess

    caught = [name for name in _CLASSES if isinstance(error, getattr(subprocess, name))]
    caught += [cls.__name__ for cls in _BUILTINS if isinstance(error, cls)]
    told = {"error": type(error).__name__, "caught": caught}
    if hasattr(error, "cmd"):
        told["cmd"] = error.cmd == args
        told |= {name: _tell(getattr(error, name)) for name in ("output", "stdout", "stderr")}
        # Waiting for the child at the end may have what was left of it.
        told["timeout"] = "whole" if error.timeout == timeout else "other"
    else:
        args = error.args
        if isinstance(error, UnicodeError) and len(args) == 5:
            # All that was being decoded is a matter of how much was read in one call.
            args = (args[0], args[1][args[2] : args[3]], args[4])
        text = ", ".join(repr(value)[:200] for value in args)
        told["args"] = re.sub(r"0x[0-9a-f]+|fd:? ?\d+|fileno ?\d+|name=\d+", "N", text)
    return told


#: Operations that find out a child's state, that close a pipe, or find out that it is closed.
_SEES_CHILD = ("poll", "kill", "terminate", "close", "exit", "write", "flush", "reap", "together")


class _Gone(Exception):
    """The program names something that it does not have, because what made it failed."""


class Raised(Exception):
    """The exception of a signal handler."""


class Run:
    """One run of a program."""

    def __init__(self, program, scale, module):
        self.program, self.scale, self.module = program, scale, module
        #: how long a blocked operation is left alone before it counts as blocked, in seconds
        self.patience = 0.04 * scale
        self.count = len(program.get("children", ()))
        self.popens, self.files = {}, {}
        self.told, self.gone = [0] * self.count, [0] * self.count
        #: descriptors of the run itself, and the help that it needed
        self.own, self.rescued = [], []
        #: work of others, and planned and finished work of a signal handler
        self.others, self.handling, self.handled = [], None, []
        #: the overridden methods of Popen that were called
        self.called = set()
        self.now, self.since, self.ended, self.ticks = None, 0.0, False, 0
        explicit = GREEN and FLAVOUR == "explicit"
        self.select = sys.modules["eventlet.green.select" if explicit else "select"]
        self.os = sys.modules["eventlet.green.os"] if explicit else os

    # the pipes by which children are synchronised

    def fifo(self, name):
        os.mkfifo(name)
        fd = _open(name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
        _close(fd)
        self.own.append(high)
        return high

    def set_up(self):
        self.tells = [self.fifo(f"tell.{number}") for number in range(self.count)]
        self.gates = [self.fifo(f"gate.{number}") for number in range(self.count)]
        self.hold = self.fifo("hold")
        for name, spec in self.program.get("files", {}).items():
            with open(name, "wb") as file:
                file.write(self.data(spec))

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

    def watch(self):
        """Until the program has ended: see to it that no operation is blocked for ever."""
        quiet, before = 0, None
        while not self.ended:
            _pause_here(0.005)
            self.ticks += 1
            operation: Any = self.now
            since = self.since
            progress = operation and self.progress(operation)
            if not progress or progress != before:
                # Stock may need a trip through the hub for every byte: it is slow, and not blocked.
                quiet, before = 0, progress
                continue
            # A child that goes on before a time-out expires may be fast enough for it, or not.
            waiting = (
                operation,
                *operation.get("during", ()),
                *(each for turn in operation.get("turns", ()) for each in turn),
            )
            limits = [operation.get("within"), *(each.get("timeout") for each in waiting)]
            patience = self.patience + max((each for each in limits if each and each < 10), default=0) * self.scale
            states = {number: self.state(number) for number in self.popens}
            quiet = 0 if "runs" in states.values() else quiet + 1
            if _monotonic() - since < patience or quiet < 4 * self.scale or self.now is not operation:
                continue
            self.help(operation, states)
            self.since, quiet = _monotonic(), 0

    def progress(self, operation):
        """Return a value that changes as long as an operation gets on; None while there is something to read."""
        found = [len(self.handled), *(len(item["did"]) for item in self.others)]
        popen = self.popens.get(operation.get("p", 0))
        for name in ("stdin", "stdout", "stderr", "r", "w"):
            stream: Any = self.files.get(name) if name in "rw" else getattr(popen, name, None)
            try:
                count = struct.unpack("i", fcntl.ioctl(stream.fileno(), termios.FIONREAD, bytes(4)))[0]
            except (AttributeError, ValueError, OSError):
                continue
            reads = operation.get("f") == name or operation["op"] == "communicate" and name != "stdin"
            if count and reads and operation["op"] != "write" and not self.others:
                return None
            found.append(count)
        return [*found, getattr(popen, "_input_offset", 0)]

    def help(self, operation, states):
        begun = sum(item["count"] for item in self.others if item["during"] is operation)
        waiting = operation.get("during", ())[begun:]
        if waiting:
            # A greenlet does all of it before others run. Threads may not, so they do one after the other.
            waiting = waiting if GREEN else waiting[:1]
            item = {"during": operation, "did": [], "count": len(waiting)}
            self.others.append(item)
            item["actor"] = _Actor(self.perform_all, waiting, item["did"])
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
            if self.hold in self.own:
                self.own.remove(self.hold)
                _close(self.hold)
        elif "close" not in done and self.files:
            action = "close"
            for name, file in list(self.files.items()):
                if name != operation.get("f"):
                    _shut(file)
        else:
            # Nothing helps. The process is given up.
            index = next((i for i, other in enumerate(self.program["ops"]) if other is operation), -1)
            _answer({"hang": index, "rescued": done})
            posix._exit(3)
        self.rescued.append((operation, action))

    # names in operations

    def popen(self, operation):
        number = operation.get("p", 0)
        if number not in self.popens:
            raise _Gone(f"child {number}")
        return self.popens[number]

    def stream(self, operation):
        name = operation["f"]
        streams = ("stdin", "stdout", "stderr")
        stream = getattr(self.popen(operation), name) if name in streams else self.files.get(name)
        if stream is None:
            raise _Gone(name)
        return stream

    def seconds(self, timeout):
        """Time-outs that are to expire grow with ``scale``; others stay."""
        return timeout * self.scale if timeout is not None and 0 < timeout < 10 else timeout

    def timeout(self, operation):
        return {"timeout": self.seconds(operation["timeout"])} if "timeout" in operation else {}

    def data(self, spec):
        """The data to write: ``[size, pattern]``, and its type."""
        size, pattern, *kind = spec
        raw = bytes.fromhex(pattern)
        raw = (raw * (size // len(raw) + 1))[:size]
        if kind == ["str"]:
            return raw.decode("latin-1")
        if kind == ["array"]:
            import array

            return array.array("I", raw[: size // 4 * 4])
        return {"bytearray": bytearray, "memoryview": memoryview}.get(kind[0] if kind else "bytes", bytes)(raw)

    def popen_class(self, names):
        """A subclass of Popen that overrides methods; ``deadline`` is a ``poll`` that kills at the third call."""
        base, called = self.module.Popen, self.called

        def override(name):
            def method(popen, *args, **keywords):
                called.add(name)
                return getattr(base, name)(popen, *args, **keywords)

            return method

        def deadline(popen):
            # Only while the child is held does the number of calls not depend on how fast it is.
            if any(each is popen and self.state(number) == "held" for number, each in self.popens.items()):
                popen.polls = getattr(popen, "polls", 0) + 1
                if popen.polls == 3:
                    _kill(popen.pid, 9)
            return base.poll(popen)

        methods = {"poll": deadline} if "deadline" in names else {}
        return type("Popen", (base,), {name: override(name) for name in names if name != "deadline"} | methods)

    def command(self, number):
        steps = self.program["children"][number]["steps"]
        return [os.path.realpath(sys.executable), "-I", "-S", _CHILD, str(number), *steps]

    # operations

    def perform(self, operation):
        """Do one operation; returns what can be seen of it."""
        within = operation.get("within")
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
            args = self.command(operation.get("p", 0)) if self.count else None
            return _tell_error(error, self.seconds(operation.get("timeout")), args)
        return {"value": _tell(value)}

    def perform_all(self, operations, seen):
        for operation in operations:
            seen.append({"op": operation["op"], **self.perform(operation)})

    def do(self, operation):
        name = operation["op"]
        if name in _OF_CHILDREN:
            return _OF_CHILDREN[name](self, operation, self.popen(operation))
        if name in _OF_STREAMS:
            return _OF_STREAMS[name](self, operation, self.stream(operation))
        if name in _OF_ALL:
            return _OF_ALL[name](self, operation)
        # The method of that name of a stream.
        return getattr(self.stream(operation), name)(*operation.get("n", operation.get("args", ())))

    def begin(self, operation):
        """Start a child."""
        keywords = dict(self.program["children"][operation["p"]].get("popen", {}))
        for name in ("stdin", "stdout", "stderr"):
            if name in keywords:
                keywords[name] = getattr(self.module, keywords[name])
        names = keywords.pop("overrides", None)
        popen = self.popen_class(names) if names else self.module.Popen
        self.popens[operation["p"]] = popen(self.command(operation["p"]), **keywords)

    def wait_for(self, operation):
        """Until the child is held, has ended or sleeps."""
        self.popen(operation)
        if operation.get("signalled"):
            # A signal has not taken effect yet when it has been sent.
            _pause_here(0.02 * self.scale)
        asleep = 0
        while True:
            state = self.state(operation.get("p", 0))
            asleep = asleep + 1 if state == "asleep" else 0
            if state in ("held", "ended") or asleep > 30 * self.scale:
                return state
            _pause_here(0.002)

    def iterate(self, operation, stream):
        lines: list[Any] = []
        for line in stream:
            lines.append(line)
            if len(lines) >= operation["lines"]:
                break
        return lines

    def readinto(self, operation, stream):
        buffer = bytearray(operation["size"])
        count = stream.readinto(buffer)
        return [count, bytes(buffer[: count or 0])]

    def pipe(self, operation):
        for name, fd, mode in zip("rw", _pipe(), "rw", strict=True):
            keywords = dict(self.program["pipes"][name])
            mode += "" if keywords.pop("text", False) else "b"
            self.files[name] = sys.modules["eventlet.greenio"].GreenPipe(fd, mode, **keywords)

    def open(self, operation):
        """A regular file, by its descriptor: under eventlet a GreenPipe."""
        append = os.O_APPEND if "a" in operation["mode"] else 0
        fd = _open(operation["name"], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | append, 0o600)
        self.files["shared"] = self.os.fdopen(fd, operation["mode"], operation["buffering"])

    def together(self, operation):
        """Greenlets, natively threads, that have turns; a thread begins once the one before has ended or is blocked."""
        seen: list[list[Any]] = [[] for _ in operation["turns"]]
        order: list[int] = []

        def turn(number):
            for each in operation["turns"][number]:
                self.perform_all([each], seen[number])
                order.append(number)

        actors = []
        for number in range(len(seen)):
            actors.append(_Actor(turn, number))
            if not GREEN:
                actors[-1].join(self.patience)
        while not all(actor.join(0.01) for actor in actors):
            pass
        # Where nothing waits, no other greenlet has a turn meanwhile.
        return {"turns": seen, "order": order if operation.get("file") else None}

    def interrupt(self, operation):
        """A signal to the process itself; its handler does something, and may raise."""
        self.handling = operation
        if operation.get("hub") and GREEN:
            sys.modules["eventlet.hubs"].get_hub().schedule_call_global(0, _kill, os.getpid(), 10)
        else:
            _kill(os.getpid(), 10)

    def handle(self, *_):
        operation, self.handling = self.handling, None
        if operation is not None:
            self.perform_all(operation.get("do", ()), self.handled)
            if operation.get("raises") and self.now is not None:
                raise Raised

    # all of it

    def main(self):
        self.seen = []
        for operation in self.program["ops"]:
            expires = operation["op"] in ("wait", "communicate") and operation.get("timeout", 99) < 10
            if expires or operation["op"] in _SEES_CHILD or self.sends(operation):
                # A child that has closed its pipes may be about to end, and one that writes meets an open pipe or not.
                self.settle()
            ticks, began, handled = self.ticks, _monotonic(), len(self.handled)
            self.since, self.now = began, operation
            seen = self.perform(operation)
            self.now = None
            took = _monotonic() - began
            seen["rescued"] = [what for where, what in self.rescued if where is operation]
            if "kill" in seen["rescued"]:
                # An operation ends when the pipes are closed, a moment before the child can be waited for.
                _pause_here(0.02 * self.scale)
                self.settle()
            mine = [item for item in self.others if item["during"] is operation]
            if mine:
                ended = [item["actor"].join(self.patience) for item in mine]
                seen["others"] = [each for item in mine for each in item["did"]] + ["blocked"] * ended.count(False)
            if len(self.handled) > handled:
                seen["handled"] = self.handled[handled:]
            # Stock's native class holds the hub, and it is chance whether others run before and after that.
            if seen.get("error") in ("TimeoutExpired", "Timeout") and took > 0.05 and FLAVOUR != "taken":
                seen["others ran"] = self.ticks > ticks
            popen = self.popens.get(operation.get("p", 0))
            if popen is not None:
                seen["returncode"] = popen.returncode
            seen["closed"] = self.closed(popen)
            self.seen.append(seen)
        # Children that were not waited for may still be writing their reports.
        self.settle()
        blocked = [item["actor"] for item in self.others if not item["actor"].ended]
        if blocked:
            self.since, self.now = _monotonic(), {"op": "join"}
            while not all(actor.join(0.01) for actor in blocked):
                pass
            self.now = None

    def sends(self, operation):
        """Whether an operation may find out that the child reads no more."""
        popen = self.popens.get(operation.get("p", 0))
        return operation["op"] == "communicate" and popen is not None and popen.stdin is not None

    def settle(self):
        """Until every child is at rest."""
        for number in self.popens:
            self.wait_for({"p": number})

    def closed(self, popen):
        streams = {name: getattr(popen, name, None) for name in ("stdin", "stdout", "stderr")}
        streams.update({name: file for name, file in self.files.items() if name in ("r", "w", "shared")})
        return [name for name, stream in streams.items() if stream is not None and stream.closed]

    def clean_up(self):
        """End what is left, without letting it be seen."""
        for fd in self.own:
            _close(fd)
        for popen in self.popens.values():
            for stream in filter(None, (popen.stdin, popen.stdout, popen.stderr)):
                _shut(stream)
            if popen.returncode is None:
                popen.returncode = -9
                try:
                    _kill(popen.pid, 9)
                    posix.waitpid(popen.pid, 0)
                except OSError:
                    pass
        for file in self.files.values():
            _shut(file)

    def left(self):
        """Return the children's findings, the contents of files, and the results of others."""
        left: dict[str, list[Any]] = {}
        for name in sorted(os.listdir(".")):
            if name.startswith("report."):
                with open(name) as file:
                    left[name] = file.read().splitlines()
            elif os.path.isfile(name):
                with open(name, "rb") as file:
                    data = file.read()
                left[name] = [len(data), f"{zlib.crc32(data):08x}"]
        if self.called:
            left["called"] = sorted(self.called)
        # The last, since a rule may explain a difference in it.
        if self.others:
            left["others"] = [each for item in self.others for each in item["did"]]
        return left


#: Operations by name: what they need, and what is done.
_OF_CHILDREN = {
    "poll": lambda run, operation, popen: popen.poll(),
    "kill": lambda run, operation, popen: popen.kill(),
    "terminate": lambda run, operation, popen: popen.terminate(),
    "wait": lambda run, operation, popen: popen.wait(**run.timeout(operation)),
    "exit": lambda run, operation, popen: popen.__exit__(None, None, None),
    "go": lambda run, operation, popen: run.go(operation["p"]),
    # Other code kills the child and takes its exit status.
    "reap": lambda run, operation, popen: [_kill(popen.pid, 9), posix.waitpid(popen.pid, 0)[1]],
    "communicate": lambda run, operation, popen: popen.communicate(
        run.data(operation["input"]) if "input" in operation else None, **run.timeout(operation)
    ),
}
_OF_STREAMS = {
    "write": lambda run, operation, stream: stream.write(run.data(operation["data"])),
    "osread": lambda run, operation, stream: run.os.read(stream.fileno(), operation["size"]),
    "capacity": lambda run, operation, stream: fcntl.fcntl(stream.fileno(), _F_GETPIPE_SZ),
    "iterate": Run.iterate,
    "readinto": Run.readinto,
    "select": lambda run, operation, stream: [
        len(each) for each in run.select.select([stream], [], [], run.seconds(operation["timeout"]))
    ],
}
_OF_ALL = {
    "start": Run.begin,
    "await": Run.wait_for,
    "pipe": Run.pipe,
    "open": Run.open,
    "together": Run.together,
    "interrupt": Run.interrupt,
    "yield": lambda run, operation: _pause_here(0),
    # A file becomes shorter, or longer, from outside.
    "cut": lambda run, operation: os.truncate(operation["name"], operation["size"]),
}


def _run(program, scale, module):
    """Run a program in a separate directory; returns its outcome."""
    import shutil
    import signal
    import tempfile

    directory = tempfile.mkdtemp(dir=CONFIG["directory"])
    os.chdir(directory)
    fds = len(os.listdir("/proc/self/fd"))
    run = Run(program, scale, module)
    signal.signal(signal.SIGUSR1, run.handle)
    try:
        run.set_up()
        rescuer = _Actor(run.watch)
        if GREEN:
            import eventlet

            eventlet.spawn(run.main).wait()
        else:
            run.main()
        run.ended = True
        rescuer.join(60)
    finally:
        run.clean_up()
    left, seen = run.left(), run.seen
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    del run, rescuer
    gc.collect()
    leaked = len(os.listdir("/proc/self/fd")) - fds
    os.chdir("/")
    shutil.rmtree(directory, ignore_errors=True)
    return {"ops": seen, "left": left, "leaked": leaked, "green": GREEN and FLAVOUR != "taken"}


def main():
    faulthandler.enable(ERRORS)
    try:
        module, fixes = _prepare()
    except Exception:
        import traceback

        traceback.print_exc(file=ERRORS)
        ERRORS.flush()
        posix._exit(1)
    gc.collect()
    gc.freeze()
    _answer({"ready": True, "fixes": fixes})
    for line in COMMANDS:
        _answer(_run(**json.loads(line), module=module))
    posix._exit(0)


COMMANDS, ANSWERS, ERRORS = _out_of_the_way()
if __name__ == "__main__":
    main()
