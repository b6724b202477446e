"""A service with a hub does all that fastio patches; prints which waits of fastio's were in the kernel meanwhile.

Each call of a C function that may wait is seen by a profile function of the hub's thread. One that fastio's own code
makes, be it through the standard library's selectors, is reported. Run by ``tests/test_hub.py``.
"""

import faulthandler
import functools
import json
import os
import subprocess
import sys
import types
from typing import Any

import eventlet

faulthandler.dump_traceback_later(100, exit=True)
NATIVE = types.SimpleNamespace(**vars(subprocess))
eventlet.monkey_patch()

import hashlib  # noqa: E402
import pathlib  # noqa: E402
import socket  # noqa: E402

import fastio  # noqa: E402
from fastio.concurrency import offload  # noqa: E402
from fastio.io import hashing, image_files, libc, paced  # noqa: E402
from tests import programs  # noqa: E402
from tests.programs import DATA  # noqa: E402
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


def sockets() -> None:
    near, far = socket.socketpair()

    def send() -> None:
        near.sendall(DATA)
        near.close()

    sender = eventlet.spawn(send)
    assert b"".join(iter(lambda: far.recv(100_000), b"")) == DATA
    sender.wait()
    far.close()


def much_to_hash() -> None:
    hashed = hashing.BackgroundHash(hashlib.sha512(), hashing.pool)
    for _ in range(20):
        hashed.update(DATA)
    assert hashed.hexdigest() == hashlib.sha512(DATA * 20).hexdigest()


def cold_files() -> None:
    path = pathlib.Path(os.environ["DIRECTORY"]) / "file"
    with image_files.wrap(open(path, "wb")) as file:
        for _ in range(3):
            file.write(DATA)
    with open(path, "rb") as raw:
        os.posix_fadvise(raw.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file = image_files.wrap(raw)
        assert b"".join(iter(lambda: file.read(1 << 20), b"")) == DATA * 3
        call = libc.pread(raw.fileno(), 100, 0)
        assert call is not None and offload.run(*call) == 100
    assert list(paced.wrap(iter([b"x" * (1 << 20)] * 3))) == [b"x" * (1 << 20)] * 3


def commands() -> None:
    try:
        from oslo_concurrency import processutils
    except ImportError:
        return
    assert processutils.execute("cat", process_input=DATA, binary=True)[0] == DATA


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
            self.send_header("Content-Length", str(len(DATA)))
            self.end_headers()
            self.wfile.write(DATA)

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    serving = eventlet.spawn(server.serve_forever)
    for timeout in (None, 60):
        session = requests.Session()
        session.trust_env = False
        response = session.get(f"http://127.0.0.1:{server.server_port}/", stream=True, timeout=timeout)
        read = functools.partial(http_bodies.Body(response.raw).read, 1 << 18)
        assert b"".join(iter(read, b"")) == DATA
    serving.kill()


def program(function: Any, module: Any) -> Any:
    return lambda: list(function(module) or ())


#: with the native class as well, as some modules of a service have it from before
OPERATIONS = (
    *(program(each, subprocess) for each in [*programs.OF_UPSTREAM, *programs.OF_FASTIO, *programs.GREEN]),
    *(program(each, NATIVE) for each in (programs.communicate, programs.communicate_times_out, programs.waits)),
    sockets, much_to_hash, cold_files, commands, http,
)  # fmt: skip


def main() -> None:
    report = fastio.patch(strict=True)
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
