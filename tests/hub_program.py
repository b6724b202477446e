"""A service with a hub does all that fastio patches; prints which waits of fastio's were in the kernel meanwhile.

Each call of a C function that may wait is seen by a profile function of the hub's thread. One that fastio's own code
makes, be it through the standard library's selectors, is told. Run by ``tests/test_hub.py``.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from subprocess import Popen as NativePopen  # before monkey_patch(), as some modules of a service do
from typing import Any

import eventlet

faulthandler.dump_traceback_later(100, exit=True)
eventlet.monkey_patch()

import pathlib  # noqa: E402
import socket  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402

import fastio  # noqa: E402
from fastio.concurrency import offload  # noqa: E402
from fastio.io import hashing, hashing_pool, image_files, libc, paced  # noqa: E402
from fastio.patching import registry  # noqa: E402
from tests.child import command, data, err, out  # noqa: E402
from tests.waits import AT_ONCE  # noqa: E402

ROOT = os.path.dirname(fastio.__file__) + os.sep
BLOCKING = {
    "poll", "select", "sleep", "acquire", "get", "waitid", "waitpid", "wait3", "wait4", "recv", "recv_into", "accept",
    "connect", "flock", "lockf",
}  # fmt: skip
#: Functions whose calls return at once: those on the list, and two that only try to get a lock, acquire(False).
HARMLESS = {place.split(":")[1].rpartition(".")[2] for place, _ in AT_ONCE} | {"_settle", "_write_in_hub"}
seen: set[str] = set()
counted = 0


def profile(frame: Any, event: str, function: Any) -> None:
    global counted
    if event != "c_call" or function.__name__ not in BLOCKING:
        return
    counted += 1
    kind = type(getattr(function, "__self__", None)).__name__
    if kind in ("dict", "mappingproxy", "ContextVar", "OrderedDict"):
        return
    while frame is not None and frame.f_code.co_filename.endswith(("/selectors.py", "/contextlib.py")):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_filename.startswith(ROOT) and frame.f_code.co_name not in HARMLESS:
        place = frame.f_code.co_filename.removeprefix(ROOT)
        seen.add(f"{place}:{frame.f_code.co_name} calls {kind}.{function.__name__}")


def native_popen() -> None:
    popen = NativePopen(command("sleep:0.1", "exit:3"))
    assert popen.wait(timeout=50) == 3
    popen = NativePopen(command("echo", err(1, 1000)), stdin=-1, stdout=-1, stderr=-1)
    assert popen.communicate(data(2, 300_000), timeout=50) == (data(2, 300_000), data(1, 1000))
    popen = NativePopen(command("in:-1"), stdin=-1, stdout=-1)
    try:
        popen.communicate(data(1, 3_000_000), timeout=0)
    except subprocess.TimeoutExpired:
        pass
    popen.kill()
    popen.communicate()


def green_popen() -> None:
    popen = subprocess.Popen(command("echo", err(1, 1000)), stdin=-1, stdout=-1, stderr=-1)
    assert popen.communicate(data(2, 3_000_000), timeout=50) == (data(2, 3_000_000), data(1, 1000))
    assert subprocess.Popen(command("sleep:0.1", "exit:3")).wait(timeout=50) == 3
    popen = subprocess.Popen(command("in:-1"), stdin=-1, stdout=-1)
    try:
        popen.communicate(data(1, 3_000_000), timeout=0)
    except Exception as error:
        assert "timed out" in str(error)
    popen.kill()
    popen.communicate()


def pipeline() -> None:
    first = subprocess.Popen(command(out(1, 300_000)), stdout=-1)
    second = subprocess.Popen(command("echo"), stdin=first.stdout, stdout=-1)
    first.stdout.close()
    assert second.communicate()[0] == data(1, 300_000)
    first.wait()


def pipes() -> None:
    popen = subprocess.Popen(command("echo"), stdin=-1, stdout=-1)
    writer = eventlet.spawn(lambda: (popen.stdin.write(data(1, 3_000_000)), popen.stdin.close()))
    buffer = bytearray(100_000)
    output: Any = popen.stdout
    got = [output.read(70_000), bytes(buffer[: output.readinto(buffer)]), output.read()]
    writer.wait()
    assert b"".join(got) == data(1, 3_000_000)
    popen.wait()


def sockets() -> None:
    near, far = socket.socketpair()

    def send() -> None:
        near.sendall(data(1, 5_000_000))
        near.close()

    sender = eventlet.spawn(send)
    assert b"".join(iter(lambda: far.recv(100_000), b"")) == data(1, 5_000_000)
    sender.wait()
    far.close()


def threads() -> None:
    import hashlib

    hashed = hashing.BackgroundHash(hashlib.sha512(), hashing_pool.pool)
    for _ in range(40):
        hashed.update(data(1, 1 << 20))
    assert hashed.hexdigest() == hashlib.sha512(data(1, 1 << 20) * 40).hexdigest()
    with tempfile.TemporaryFile(dir=os.environ["DIRECTORY"]) as raw:
        call = libc.pread(raw.fileno(), 100, 0)
        assert call is not None and offload.run(*call) == 0


def files() -> None:
    path = pathlib.Path(os.environ["DIRECTORY"]) / "file"
    with image_files.wrap(open(path, "wb")) as file:
        for _ in range(10):
            file.write(data(1, 1 << 20))
    with open(path, "rb") as raw:
        os.posix_fadvise(raw.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file = image_files.wrap(raw)
        assert b"".join(iter(lambda: file.read(1 << 20), b"")) == data(1, 1 << 20) * 10
    assert list(paced.wrap(iter([b"x" * (1 << 20)] * 3))) == [b"x" * (1 << 20)] * 3


def driver() -> None:
    from fastio.drivers._process import Child

    with Child(command(out(1, 3_000_000))) as child:
        assert b"".join(child.chunks(1 << 20)) == data(1, 3_000_000)
        assert child.finish()[0] == 0
    with Child(command("in:-1", "exit:4"), feeds=True) as child:
        child.write(data(1, 3_000_000))
        assert child.finish()[0] == 4
    with Child(command("sleep:100")):
        pass


def commands() -> None:
    try:
        from oslo_concurrency import processutils
    except ImportError:
        return
    assert processutils.execute("cat", process_input=data(1, 300_000), binary=True)[0] == data(1, 300_000)


def http() -> None:
    try:
        import requests

        from fastio.io import http_bodies
    except ImportError:
        return
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "3000000")
            self.end_headers()
            self.wfile.write(data(1, 3_000_000))

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    serving = eventlet.spawn(server.serve_forever)
    for timeout in (None, 60):
        session = requests.Session()
        session.trust_env = False
        response = session.get(f"http://127.0.0.1:{server.server_port}/", stream=True, timeout=timeout)
        http_bodies.read_unbuffered(response)
        assert b"".join(response.iter_content(1 << 20)) == data(1, 3_000_000)
    serving.kill()


OPERATIONS = (native_popen, green_popen, pipeline, pipes, sockets, threads, files, driver, commands, http)


def main() -> None:
    report = fastio.patch(strict=True, also=registry.outside_the_default())
    ticks = 0

    def watchdog() -> None:
        nonlocal ticks
        while True:
            eventlet.sleep(0.001)
            ticks += 1

    eventlet.spawn(watchdog)
    sys.setprofile(profile)
    # Greenlets that begin later have the profile of the thread.
    for operation in OPERATIONS:
        before = ticks
        eventlet.spawn(operation).wait()
        eventlet.sleep(0.005)
        assert ticks > before, operation
    from eventlet.patcher import original

    code = compile("def waits(poll):\n    poll.poll(0)", ROOT + "control.py", "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    eventlet.spawn(names["waits"], original("select").poll()).wait()
    sys.setprofile(None)
    print(json.dumps([sorted(seen), counted, report.outcome("green_communicate").value]))


if __name__ == "__main__":
    main()
