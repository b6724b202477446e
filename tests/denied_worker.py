"""Small programs with a system call forbidden: ``python -m tests.denied_worker WORLD PATCHED``.

WORLD is ``native`` or ``green``, which is monkey patched; PATCHED is ``stock`` or ``patched``. Each line of stdin is
what ``tests.filters`` takes, or ``nothing``; it prints what was seen. A filter cannot be taken back, so each has a
separate, forked process with this one's imports and a separate hub.
"""

import hashlib
import importlib
import json
import os
import posix
import signal
import socket
import sys
import tempfile
import threading
import traceback
import types
import warnings
from typing import Any

from tests import filters

warnings.simplefilter("ignore")

#: SIGALRM ends a process that hangs.
SECONDS = 30

DATA = bytes(range(251)) * 12_000


def short(data):
    return len(data), hashlib.sha256(data).hexdigest()[:16]


def communicate(subprocess):
    """3 MB in and out, natively through a selector and under eventlet through the hub."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        out, err = child.communicate(DATA)
        return short(out), err, child.returncode


def nobody_reads(subprocess):
    """Under eventlet it hangs without ``fix_green_epipe``."""
    done = subprocess.run(["true"], input=DATA, capture_output=True, check=True)
    return done.stdout, done.returncode


def times_out(subprocess):
    with subprocess.Popen(["sleep", "60"]) as child:
        yield expired(subprocess, lambda: child.wait(0.01))
        child.kill()
        yield child.wait(), child.returncode


def communicate_times_out(subprocess):
    """Under eventlet it can be caught by its name only with ``fix_green_exceptions``."""
    with subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        yield expired(subprocess, lambda: child.communicate(timeout=0.01))
        child.kill()
        yield child.communicate(), child.returncode


def expired(subprocess, wait):
    try:
        wait()
    except subprocess.TimeoutExpired as error:
        return error.cmd, error.timeout


def waits(subprocess):
    for status, timeout in ((3, 25), (4, None)):
        with subprocess.Popen(["sh", "-c", f"sleep 0.02; exit {status}"]) as child:
            yield child.wait(timeout), child.returncode


def pipeline(subprocess):
    """Under eventlet only ``fix_green_pipelines`` brings all of the data."""
    first = subprocess.Popen(["head", "-c", "3000000", "/dev/zero"], stdout=subprocess.PIPE)
    with first, subprocess.Popen(["wc", "-c"], stdin=first.stdout, stdout=subprocess.PIPE) as second:
        first.stdout.close()
        return second.communicate()[0].strip(), first.wait(), second.returncode


def files_of_pipes(subprocess):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        writer = threading.Thread(target=lambda: (child.stdin.write(b"one\n" + DATA), child.stdin.close()))
        writer.start()
        yield child.stdout.readline(), child.stdout.read(1)
        buffer, filled = memoryview(bytearray(100_000)), 0
        while filled < len(buffer):
            filled += child.stdout.readinto(buffer[filled:])
        yield short(buffer), short(child.stdout.read())
        writer.join()
        yield child.wait()


def hashes(subprocess):
    """In a thread of ours, which notifies its waiter."""
    from fastio.io.hashing import BackgroundHash, pool

    for algorithm in ("md5", "sha512"):
        ours = BackgroundHash(hashlib.new(algorithm), pool)
        for start in range(0, len(DATA), 600_000):
            ours.update(DATA[start : start + 600_000])
        yield ours.hexdigest() == hashlib.new(algorithm, DATA).hexdigest()


def child_of_a_driver(subprocess):
    from fastio.drivers._process import Child

    with Child(["sh", "-c", "echo said >&2; head -c 3000000 /dev/zero; exit 5"]) as child:
        yield sum(map(len, child.chunks(1 << 20)))
        yield child.finish()
    with Child(["sh", "-c", "wc -c >&2"], feeds=True) as child:
        child.write(DATA)
        status, said = child.finish()
        yield status, int(said)
    with Child(["sleep", "60"]):
        yield "killed"


def images(subprocess):
    """Files whose pages are asked for, and messages that the kernel is to gather."""
    from fastio.io import image_files, lowwater

    with tempfile.TemporaryFile(dir=os.curdir) as stored:
        file = image_files.wrap(stored)
        file.write(DATA)
        stored.seek(0)
        yield short(b"".join(iter(lambda: file.read(1 << 20), b"")))
    near, far = socket.socketpair()
    with near, far:
        sender = threading.Thread(target=far.sendall, args=(DATA + DATA,))
        sender.start()
        with near.makefile("rb") as below:
            yield short(lowwater.read(near, below.read, 1 << 20, len(DATA)))
            yield short(below.read(2 * len(DATA) - (1 << 20)))
        sender.join()


def sent_from_a_file(subprocess):
    """Bytes that the kernel does not send are read."""
    from eventlet.green import socket as green

    from fastio.io import file_pieces
    from fastio.patches.glance import glance_sendfile

    near, far = green.socketpair()
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.extend(iter(lambda: far.recv(1 << 16), b"")))
    reader.start()
    with near, tempfile.TemporaryFile() as stored:
        stored.write(DATA)
        stored.seek(0)
        file = file_pieces.PieceFile(stored)
        response: Any = types.SimpleNamespace(headers_sent=True, count=lambda sent: None)
        body = glance_sendfile.Body(iter(lambda: file.read(1 << 20), b""), near, response)
        body._local = False
        file.start()
        for chunk in body:
            near.sendall(chunk)
    reader.join()
    far.close()
    return short(b"".join(received))


#: Programs that upstream can run as well, natively and under eventlet; the others are compared with nothing forbidden.
OF_UPSTREAM = [communicate, times_out, waits, files_of_pipes]
OF_FASTIO = [nobody_reads, communicate_times_out, pipeline, hashes, child_of_a_driver, images]
GREEN = [sent_from_a_file]


def seen(program, subprocess):
    try:
        result = program(subprocess)
        return repr(list(result) if isinstance(result, types.GeneratorType) else result)
    except BaseException as error:
        return f"raises {type(error).__name__}: {error}"


def run(world, patched, denial):
    signal.alarm(SECONDS)
    if denial != "nothing":
        filters.deny(denial)
    if world == "green":
        from eventlet import hubs

        hubs.use_hub()
    chosen = OF_UPSTREAM
    if patched == "patched":
        chosen = chosen + OF_FASTIO + GREEN * (world == "green")
    subprocess = importlib.import_module("subprocess")
    return {program.__name__: seen(program, subprocess) for program in chosen}


def main(world, patched):
    if world == "green":
        import eventlet

        eventlet.monkey_patch()
    import fastio

    if patched == "patched":
        fastio.patch(strict=True)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as file:
            pid = os.fork()
            if pid == 0:
                try:
                    posix.write(file.fileno(), json.dumps(run(world, patched, line.strip())).encode())
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(0)
            _, status = posix.waitpid(pid, 0)
            text = os.pread(file.fileno(), 1 << 20, 0).decode()
        print(text or json.dumps({"ends": status}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
