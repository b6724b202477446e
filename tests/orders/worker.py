"""Runs orders, each in a separate process, and reports the findings after every step.

    python worker.py < cases > results

A case is a line of JSON, ``[target, [step, ...]]``, and so is a result. The process of a case is forked before anything
is imported that is patched, monkey patched or part of fastio: it has what a bare Python has, and the few modules below.
"""

import json
import os
import signal
import sys

#: More than an eventlet that spins would ever need; SIGALRM then ends the process.
SECONDS = 300


def run(target, order, result, stderr):
    """In the child: take the steps, and write down what was there at the start and after each of them."""
    signal.alarm(SECONDS)
    os.dup2(stderr, 2)
    found = {"modules": sorted(sys.modules), "steps": []}
    questions = Questions()
    for step in order:
        take(step, target)
        found["steps"].append(questions.ask())
    with open(result, "w", closefd=False) as file:
        json.dump(found, file)


def take(step, target):
    if step == "import":
        __import__(target)
    elif step == "monkey_patch":
        import eventlet

        eventlet.monkey_patch()
    else:
        import fastio

        getattr(fastio, step)()


class Questions:
    """Looks at everything that is imported by now. Nothing here imports further modules."""

    def __init__(self):
        #: the standard library's Popen as a module got it that imported it early
        self.early = None
        #: every attribute's function when first seen; where it was ours by then, the original that ours names
        self.originals = {}

    def ask(self):
        modules: dict = sys.modules
        found: dict = {"imported": {}}
        subprocess = modules.get("subprocess")
        green = modules.get("eventlet.green.subprocess")
        if subprocess is not None:
            if self.early is None and (green is None or subprocess.Popen is not green.Popen):
                self.early = subprocess.Popen
                modules["__main__"].early_popen = self.early
            found["imported"]["subprocess"] = self.popen(subprocess.Popen)
        if self.early is not None:
            found["imported"]["early"] = self.popen(self.early)
        if green is not None:
            found["imported"]["eventlet.green.subprocess"] = self.popen(green.Popen)
        if "eventlet.greenio.py3" in modules:
            found["imported"]["eventlet.greenio"] = self.green_pipe(modules["eventlet.greenio.py3"])
        if "eventlet.greenio.base" in modules:
            found["imported"]["eventlet.greenio.base"] = self.sendall(modules["eventlet.greenio.base"])
        if "eventlet.green.os" in modules:
            found["imported"]["eventlet.green.os"] = self.write(modules["eventlet.green.os"])
            if os.write is modules["eventlet.green.os"].write:
                found["imported"]["os"] = self.write(os)
        fastio = modules.get("fastio")
        if fastio is not None:
            report = fastio.status()
            found["outcomes"] = {f"{entry.name} {entry.target}": entry.outcome.value for entry in report.entries}
            found["late_holders"] = list(report.late_holders)
        return found

    def attributes(self, name, owner, *attributes):
        """Whether each attribute is fastio's, and whether the original is the very object that was there."""
        found = {}
        for attribute in attributes:
            # A class may define it or only inherit it; a module has it.
            having = [base for base in getattr(owner, "__mro__", (owner,)) if attribute in vars(base)]
            value = vars(having[0])[attribute]
            ours = is_ours(value)
            original = value.__wrapped__ if ours else value
            known = self.originals.setdefault((name, attribute), original)
            if ours and is_ours(original):
                found[attribute] = "twice"
            elif original is not known:
                found[attribute] = "another original"
            elif ours:
                found[attribute] = "ours"
            elif any(vars(base)[attribute] is value for base in having[1:]):
                found[attribute] = "original, but left on a class that inherits it"
            else:
                found[attribute] = "original"
        return found

    def popen(self, popen):
        names = ["_communicate"]
        names += ["_wait"] if popen is self.early else ["wait", "__init__", "_check_timeout", "_get_handles"]
        oslo = "oslo_concurrency.processutils" in sys.modules
        if popen is not self.early or oslo:
            # oslo_spawn is the only patch at the native one, and waits for what it relies on.
            names.append("_execute_child")
        found = self.attributes(id(popen), popen, *names)
        found["oslo"] = oslo
        found["hub"] = has_hub()
        data = b"\x00fastio\n" * 4096
        before = counts()
        process = popen(["cat"], stdin=-1, stdout=-1, stderr=-1)
        output, errors = process.communicate(data)
        found["counts"] = {name: after - before[name] for name, after in counts().items()}
        found["right"] = output == data and errors == b"" and process.returncode == 0
        found["bytes"] = len(data)
        return found

    def green_pipe(self, greenio):
        found = self.attributes("greenio", greenio.GreenFileIO, "read", "readall", "readinto", "write")
        reader, writer = os.pipe()
        data = b"\x00fastio\n" * 2048
        before = counts()
        with greenio.GreenPipe(writer, "wb", 0) as file:
            file.write(data)
        with greenio.GreenPipe(reader, "rb") as file:
            output = file.read()
        found["counts"] = {name: after - before[name] for name, after in counts().items()}
        found["right"] = output == data
        found["bytes"] = len(data)
        return found

    def sendall(self, greenio):
        found = self.attributes("sockets", greenio.GreenSocket, "sendall")
        data = b"\x00fastio\n" * 2048
        before = counts()
        one, two = map(greenio.GreenSocket, greenio.socket.socketpair())
        with one, two:
            one.sendall(data)
            output = two.recv(len(data))
        sent = counts()["bytes_out"] - before["bytes_out"]
        found["right"] = output == data and sent == (len(data) if found["sendall"] == "ours" else 0)
        return found

    def write(self, module):
        found = self.attributes("os", module, "write")
        if found["write"] == "ours":
            # Upstream's would try for ever.
            reader, writer = os.pipe()
            os.close(reader)
            try:
                module.write(writer, b"x")
            except BrokenPipeError:
                found["right"] = True
            os.close(writer)
        return found


def is_ours(value):
    code = getattr(value, "__code__", None)
    return code is not None and os.sep + os.path.join("fastio", "") in code.co_filename


def has_hub():
    """Whether this thread has a hub by now; asking does not make one."""
    hubs = sys.modules.get("eventlet.hubs")
    return hubs is not None and getattr(hubs._threadlocal, "hub", None) is not None


def counts():
    counters = sys.modules.get("fastio.counters")
    names = ("exchanges", "bytes_in", "bytes_out")
    return {name: getattr(counters, name, 0) for name in names}


def main():
    for line in sys.stdin:
        target, order = json.loads(line)
        with open(os.memfd_create("result"), "rb") as result, open(os.memfd_create("stderr"), "rb") as stderr:
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    run(target, order, result.fileno(), stderr.fileno())
                    status = 0
                except BaseException:
                    sys.excepthook(*sys.exc_info())
                finally:
                    sys.stderr.flush()
                    os._exit(status)
            _, status = os.waitpid(pid, 0)
            result.seek(0)
            stderr.seek(0)
            text = result.read().decode()
            found = json.loads(text) if text else {"modules": [], "steps": []}
            found["exit"] = os.waitstatus_to_exitcode(status)
            found["stderr"] = stderr.read().decode(errors="replace")
        print(json.dumps([target, order, found]), flush=True)


if __name__ == "__main__":
    main()
